"""Preferences and effects from one budget: the split is shown before it is spent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crowdveil.ballots import BallotSource
from crowdveil.effect_release import EffectsRelease
from crowdveil.errors import CrowdveilError
from crowdveil.files import check_writable
from crowdveil.privacy.epsilon import LEAST_MICRO, Epsilon, EpsilonLike
from crowdveil.privacy.guarantee import Paradigm
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.privacy.ledger.entries import Charge
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.publish import publish
from crowdveil.publish_effects.publish import publish_effects
from crowdveil.publish_effects.request import EffectsPreview, preview_effects
from crowdveil.releases import Release
from crowdveil.request import Preview, Request, check_selection, preview_request

EFFECTS_SHARE = 0.3
"""Of epsilon, by default: effects are means of what a release has to fit a model to."""


@dataclass(frozen=True)
class Together:
    """A release of preferences and one of effects, with what each spends. Nothing was spent."""

    request: Request
    preferences: Preview
    effects: EffectsPreview

    @property
    def charge(self) -> Charge:
        """The two charges, added up: they are promises about the same people."""
        one = self.preferences.charge
        other = self.effects.charge
        return replace(one, epsilon=one.epsilon + other.epsilon, purpose=f"{one.purpose} and effects")

    def as_dict(self) -> dict[str, Any]:
        """Return it in plain words."""
        split = {
            "preferences": self.preferences.guarantee.epsilon.value,
            "effects": self.effects.guarantee.epsilon.value,
        }
        return {
            "dry_run": True,
            "split": split,
            "preferences": self.preferences.as_dict(),
            "effects": self.effects.as_dict(),
        }


def preview_together(
    ballots: BallotSource,
    paradigm: str | Paradigm,
    *,
    epsilon: EpsilonLike,
    effects_share: float = EFFECTS_SHARE,
    by: str | None = None,
    one_record_each: bool = False,
    public_selection: str | None = None,
) -> Together:
    """Split an epsilon between preferences and effects, and tell what each would cost and give."""
    whole = Epsilon(epsilon)
    if not 0 < effects_share < 1:
        raise CrowdveilError(f"the share of effects is a number between 0 and 1, got {effects_share}")
    part = round(whole.micro * effects_share)
    if not LEAST_MICRO <= part <= whole.micro - LEAST_MICRO:
        raise CrowdveilError(f"epsilon {whole} is too small to be split {effects_share:g} to {1 - effects_share:g}")
    request = Request(
        find_paradigm(paradigm),
        Epsilon.of_millionths(whole.micro - part),
        one_record_each=one_record_each,
        public_selection=public_selection,
    )
    preferences = preview_request(ballots, request)
    check_selection(preferences.dataset, public_selection)
    effects = preview_effects(
        ballots,
        paradigm,
        epsilon=Epsilon.of_millionths(part),
        by=by,
        one_record_each=one_record_each,
        public_selection=public_selection,
    )
    return Together(request, preferences, effects)


def publish_together(
    ballots: BallotSource, asked: Together, ledger: Ledger, path: str | Path, effects_path: str | Path
) -> tuple[Release, EffectsRelease]:
    """Make and write both, each charged before its noise is drawn, once it is known that the budget covers both."""
    check_writable(Path(path))
    check_writable(Path(effects_path))
    fits = ledger.preview(asked.charge)
    if not fits.fits:
        raise CrowdveilError(
            f"both together cost {asked.charge.epsilon}, and {fits.remaining} of {fits.budget} are left: "
            "nothing was spent"
        )
    made = publish(ballots, asked.request, ledger, path)
    return made, publish_effects(ballots, asked.effects, ledger, effects_path)
