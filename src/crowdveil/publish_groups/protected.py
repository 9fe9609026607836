"""Preferences of groups where voters are protected, and with them who is in which group.

One charge pays for all groups: counts and sums of all of them are one noisy vector, which a voter moves wherever she is
(``GroupScores``, ``GroupBits``). There is a release for each group that the noisy counts leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdveil.ballots import BallotSource
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import Guarantee, Place
from crowdveil.privacy.ledger.entries import Charge, ChargeableLedger
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.mechanisms.group_bits import GroupBits
from crowdveil.privacy.mechanisms.group_scores import GroupScores
from crowdveil.privacy.mechanisms.grouping import GroupEstimate, Grouping
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.registry import check_options
from crowdveil.privacy.noise.exact_noise import BulkNoise, OpenDPNoise
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.unknown import ERROR_BAR
from crowdveil.publish import REPORTS_MADE_BY
from crowdveil.publish_effects.publish import LABELS_PROTECTED, check_smallest, tallies
from crowdveil.publish_effects.request import find_grouping
from crowdveil.publish_groups.releases import GroupReleases
from crowdveil.releases import Release
from crowdveil.request import Request, check_selection, preview_request
from crowdveil.version import VERSION


@dataclass(frozen=True)
class GroupsPreview:
    """A request for the preferences of secret groups, checked against a crowd: its cost and what it would give."""

    mechanism: GroupScores | GroupBits
    settings: Settings
    guarantee: Guarantee
    charge: Charge
    public_selection: str | None

    @property
    def grouping(self) -> Grouping:
        """What voters are grouped by."""
        return self.mechanism.grouping

    @property
    def fewest(self) -> float:
        """How many voters a group needs to be told from none."""
        if isinstance(self.mechanism, GroupScores):
            return self.mechanism.fewest(self.guarantee.epsilon)
        return self.mechanism.fewest(self.guarantee.voters, self.guarantee.epsilon)

    @property
    def expected_error_bar(self) -> float:
        """The most by which the noise would move a coordinate of a group, if all are of the same size (95 %)."""
        voters, epsilon = self.guarantee.voters, self.guarantee.epsilon
        noise = self.mechanism.expected_noise(self.settings, voters, epsilon)
        return float(np.max(noise.half_widths(ERROR_BAR)))

    @property
    def what_is_left(self) -> str | None:
        """How little reports with the group in them leave, in words; None where a trusted aggregator knows groups."""
        if isinstance(self.mechanism, GroupScores):
            return None
        worth = self.mechanism.worth(self.guarantee.epsilon)
        return f"a group tells about as much as one of {worth:.0%} of its size whose members are known"

    def as_dict(self) -> dict[str, Any]:
        """Return it in plain words."""
        return {
            "dry_run": True,
            "guarantee": self.guarantee.as_dict(),
            "mechanism": self.mechanism.name,
            "by": self.grouping.question,
            "groups": list(self.grouping.labels),
            "groups_protected": LABELS_PROTECTED,
            "expected_error_bar": self.expected_error_bar,
            "fewest_voters": round(self.fewest),
            **({} if self.what_is_left is None else {"what_is_left": self.what_is_left}),
        }


def preview_groups(source: BallotSource, by: str, request: Request) -> GroupsPreview:
    """Check a request for the preferences of secret groups. Spends nothing and draws no noise."""
    if not isinstance(request.epsilon, Epsilon) or request.mechanism is not None:
        raise CrowdveilError(
            f"groups whose members are secret need one epsilon for all, and have a mechanism of their own: leave the "
            f"others out, or declare with public_groups=True (--public-groups) that everybody may know who is in which "
            f"group of {by!r}"
        )
    if source.study.indifference is not None:
        raise CrowdveilError(
            f"study {source.study.name} allows a third answer, for which groups whose members are secret have no "
            "threshold: use effects --by, or declare groups public (--public-groups)"
        )
    asked = preview_request(source, request)
    check_selection(asked.dataset, asked.public_selection)
    grouping = find_grouping(next(iter(source.batches())), by, source.voters)
    mechanism = GroupScores(grouping) if request.paradigm.place is Place.CENTRAL else GroupBits(grouping)
    check_options(mechanism, asked.settings)
    charge = replace(asked.charge, purpose=f"{request.paradigm.name} {mechanism.name} by {by}")
    found = GroupsPreview(mechanism, asked.settings, asked.guarantee, charge, asked.public_selection)
    each = asked.guarantee.voters / len(grouping.labels)
    if each < found.fewest:
        raise CrowdveilError(
            f"the question {by!r} has {len(grouping.labels)} levels for {asked.guarantee.voters:,} voters: at epsilon "
            f"{request.epsilon} a group needs about {found.fewest:.0f} to be told from none; cut it into fewer in the "
            "mapping, spend more, or declare groups public (--public-groups)"
        )
    return found


def charged_groups(
    source: BallotSource, asked: GroupsPreview, ledger: ChargeableLedger, smallest: int = 0
) -> GroupReleases:
    """Make the releases of secret groups with exact noise, charged before it is drawn."""
    check_smallest(smallest)
    noise: Noise = OpenDPNoise() if isinstance(asked.mechanism, GroupScores) else BulkNoise()
    draw = _measure(source, asked, noise, smallest)
    entry = ledger.charge(asked.charge)
    releases = _releases(asked, draw(), noise, {"id": entry.ledger, "entry": entry.id})
    deliver = (lambda digest: ledger.deliver(entry.id, digest)) if isinstance(ledger, Ledger) else None
    return GroupReleases(asked.grouping.question, releases, deliver)


def experiment_protected_groups(
    source: BallotSource, asked: GroupsPreview, seed: int, smallest: int = 0
) -> GroupReleases:
    """Make repeatable releases of groups with seeded floating-point noise. They protect nobody."""
    check_smallest(smallest)
    noise = FloatNoiseForExperiments(seed)
    releases = _releases(asked, _measure(source, asked, noise, smallest)(), noise, None)
    return GroupReleases(asked.grouping.question, releases)


def _measure(
    source: BallotSource, asked: GroupsPreview, noise: Noise, smallest: int
) -> Callable[[], list[GroupEstimate]]:
    """Do what needs no noise; return the rest, which does."""
    mechanism, settings, epsilon = asked.mechanism, asked.settings, asked.guarantee.epsilon
    if isinstance(mechanism, GroupScores):
        measured = mechanism.measure(source, settings, epsilon)
        return lambda: mechanism.release(measured, settings, epsilon, noise, smallest)
    return lambda: mechanism.estimates(
        tallies(source, mechanism, settings, epsilon, noise), settings, epsilon, smallest
    )


def _releases(
    asked: GroupsPreview, found: list[GroupEstimate], noise: Noise, ledger: Mapping[str, Any] | None
) -> dict[str, Release]:
    if not found:
        raise CrowdveilError(
            f"by their noisy counts, all groups of {asked.grouping.question!r} are too small to be told from none: "
            "nothing can be released of them, and what was charged stays spent"
        )
    shared: dict[str, Any] = {"grouped_by": asked.grouping.question, "groups_protected": LABELS_PROTECTED}
    if asked.what_is_left is not None:
        shared |= {"what_is_left": asked.what_is_left, "reports_made_by": REPORTS_MADE_BY}
    if asked.public_selection is not None:
        shared["selected_by"] = asked.public_selection
    return {
        one.group.label: Release(
            study=asked.settings.study,
            parameter=one.estimate.parameter,
            guarantee=asked.guarantee,
            mechanism=asked.mechanism.name,
            noise=one.estimate.noise,
            sampler=noise.name,
            exact=noise.exact,
            facts={
                **one.estimate.facts,
                "group": one.group.label,
                "group_voters": max(round(one.group.voters), 0),
                **shared,
            },
            ledger=ledger,
            version=VERSION,
            unknown=one.estimate.unknown,
            indifference=None,
        )
        for one in found
    }
