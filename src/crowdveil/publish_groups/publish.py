"""release_by(ballots, question, paradigm): a release of preferences for each group of voters."""

from __future__ import annotations

from crowdveil.ballots import BallotSource
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import EpsilonLike
from crowdveil.privacy.guarantee import Paradigm, Unit
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.publish_groups.protected import charged_groups, preview_groups
from crowdveil.publish_groups.public import groups_of, release_groups
from crowdveil.publish_groups.releases import GroupReleases
from crowdveil.request import Request


def release_by(
    ballots: BallotSource,
    by: str,
    paradigm: str | Paradigm,
    *,
    epsilon: EpsilonLike,
    ledger: Ledger,
    public_groups: bool = False,
    smallest: int = 0,
    one_record_each: bool = False,
    public_selection: str | None = None,
) -> GroupReleases:
    """Release the preference of each group of voters with exact noise, charged to a ledger.

    ``by`` names a question that voters answered about themselves (``ballots.about``). Where voters are protected, so is
    who is in which group: one charge pays for all groups, and those that a noisy count says to have fewer than
    ``smallest`` voters are merged. ``public_groups`` declares that everybody may know who is in which.
    Nothing is written until ``releases.save(path)``.
    """
    request = Request.of({**locals(), "zcdp": None})
    if secret_groups(request, public_groups=public_groups, smallest=smallest):
        return charged_groups(ballots, preview_groups(ballots, by, request), ledger, smallest)
    return GroupReleases(by, release_groups(groups_of(ballots, by, request), request, ledger))


def secret_groups(request: Request, *, public_groups: bool, smallest: int) -> bool:
    """Tell whether who is in which group is among what is protected."""
    if request.paradigm.unit is Unit.VOTER and not public_groups:
        return True
    if smallest:
        raise CrowdveilError("smallest merges groups by noisy counts: where groups are public, leave it out")
    return False
