"""From ballots to effects that may be published: charge the ledger, draw the noise, compute the effects of every group.

The paradigm says who is protected. If voters are (vlcp, vldp), everybody counts the same, and voters' answers about
themselves are protected like the rest. If records or choices are (rlcp, rldp, alcp, aldp), every pair counts the same,
and a voter's group is not protected: the release says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.ballots.ballots import Ballots, BallotSource, check_source
from crowdveil.effect_release import Effect, Effects, EffectsRelease, GroupDifference, GroupEffects
from crowdveil.engines.batches import completed, map_batches
from crowdveil.errors import CrowdveilError, check_type, is_number, path_of, shown
from crowdveil.estimation.effects import REPORTS, added_by_group, contrasts, exact_moments, ratio_of
from crowdveil.estimation.ratios import Ratio, difference, told_apart
from crowdveil.files import check_writable
from crowdveil.privacy.epsilon import Epsilon, EpsilonLike
from crowdveil.privacy.guarantee import Paradigm, Place, Unit
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.privacy.ledger.entries import ChargeableLedger, ChargePreview
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.mechanisms.effect_counts import GroupCounts
from crowdveil.privacy.mechanisms.group_mechanism import OTHERS, Grouping
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.privacy.noise.source import Noise
from crowdveil.publish.effects_request import EffectsPreview, Weights, preview_effects
from crowdveil.publish.release import REPORTS_MADE_BY, charge_and_draw, exact_noise, publish
from crowdveil.publish.request import (
    LABELS_NOT_PROTECTED,
    LABELS_PROTECTED,
    Preview,
    Request,
    check_ledger,
    check_seed,
    check_smallest,
    find_grouping,
    preview_allowed,
)
from crowdveil.releases import Release
from crowdveil.study.study import Study
from crowdveil.version import VERSION


def effects(
    ballots: BallotSource,
    paradigm: str | Paradigm,
    *,
    epsilon: EpsilonLike,
    ledger: Ledger,
    by: str | None = None,
    smallest: int = 0,
    weights: Weights | None = None,
    one_record_each: bool = False,
    public_selection: str | None = None,
) -> EffectsRelease:
    """Release how often each side was preferred, factor by factor, with exact noise, charged to a ledger.

    ``by`` names a question that voters answered about themselves (``ballots.about``). Then the release contains the
    effects of each group and the differences between groups. Groups of fewer than ``smallest`` voters, by a noisy
    count, are merged. ``weights`` are public survey weights (vlcp, rlcp, alcp). The rest is as for ``release``.
    """
    asked = preview_effects(
        ballots,
        paradigm,
        epsilon=epsilon,
        by=by,
        weights=weights,
        one_record_each=one_record_each,
        public_selection=public_selection,
    )
    return charged_effects(ballots, asked, ledger, smallest)


def effects_for_experiments(
    ballots: BallotSource,
    paradigm: str | Paradigm,
    *,
    seed: int,
    epsilon: EpsilonLike,
    by: str | None = None,
    smallest: int = 0,
    weights: Weights | None = None,
    public_selection: str | None = None,
) -> EffectsRelease:
    """Make repeatable effects with seeded floating-point noise. They protect nobody, and charge no ledger."""
    asked = preview_effects(
        ballots,
        paradigm,
        epsilon=epsilon,
        by=by,
        weights=weights,
        one_record_each=True,
        public_selection=public_selection,
    )
    return experimental_effects(ballots, asked, seed, smallest)


def exact_effects(ballots: BallotSource, by: str | None = None) -> Effects:
    """Return the effects without privacy, with every pair counted the same and intervals for the sampling of voters.

    They are exact: for comparison, and not for publishing.
    """
    check_source(ballots)
    first = next(iter(ballots.batches()))
    grouping = None if by is None else find_grouping(first, by, ballots.voters)
    choices = ballots if ballots.study.indifference is None else completed(ballots)
    moments: FloatArray = reduce(np.add, map_batches(choices, partial(_exact_tally, grouping)))
    counted = [GroupCounts(tuple(map(ratio_of, group)), float(group[:, REPORTS].max())) for group in moments]
    named = contrasts(ballots.study, typed=first.scenarios is not None)
    question, labels = (None, ()) if grouping is None else (grouping.question, grouping.labels)
    return effects_of(ballots.study, question, labels, named, counted, voters=ballots.voters)


def _exact_tally(grouping: Grouping | None, ballots: Ballots, before: int) -> FloatArray:
    codes = np.zeros(ballots.voters, np.int64) if grouping is None else grouping.codes(ballots)
    return added_by_group(exact_moments(ballots), codes, 1 if grouping is None else len(grouping.labels))


def publish_effects(
    ballots: BallotSource, asked: EffectsPreview, ledger: Ledger, path: str | Path, smallest: int = 0
) -> EffectsRelease:
    """Make effects with exact noise, charge the ledger for them, and write them to ``path``."""
    check_writable(Path(path))
    made = charged_effects(ballots, asked, ledger, smallest)
    made.save(path)
    return made


def charged_effects(
    ballots: BallotSource, asked: EffectsPreview, ledger: ChargeableLedger, smallest: int = 0
) -> EffectsRelease:
    """Make effects with exact noise, charged before it is drawn; a ledger file is notified when they are saved."""
    check_ledger(ledger)
    check_smallest(smallest)
    noise = exact_noise(asked.guarantee.paradigm.place)
    drawn = charge_and_draw(ledger, asked.charge, _prepare(ballots, asked, noise))
    return replace(_released(asked, drawn.found, noise, drawn.reference, smallest), on_save=drawn.deliver)


def experimental_effects(ballots: BallotSource, asked: EffectsPreview, seed: int, smallest: int = 0) -> EffectsRelease:
    """Make effects with seeded floating-point noise, which protects nobody."""
    check_seed(seed)
    check_smallest(smallest)
    noise = FloatNoiseForExperiments(seed)
    return _released(asked, _prepare(ballots, asked, noise)(), noise, None, smallest)


def _prepare(source: BallotSource, asked: EffectsPreview, noise: Noise) -> Callable[[], list[GroupCounts]]:
    """Do everything that needs no noise; if the study allows a third answer, it counts as half of each side."""
    return asked.mechanism.prepare(completed(source), asked.settings, asked.guarantee.epsilon, noise)


def _released(
    asked: EffectsPreview,
    counted: list[GroupCounts],
    noise: Noise,
    ledger: Mapping[str, Any] | None,
    smallest: int,
) -> EffectsRelease:
    paradigm = asked.guarantee.paradigm
    grouping = asked.grouping
    facts: dict[str, Any] = {"weighing": f"every {'voter' if paradigm.unit is Unit.VOTER else 'pair'} counts once"}
    if asked.weight_bound != 1.0 or getattr(asked.mechanism, "weights", None) is not None:
        facts["weights"] = f"public, at most {asked.weight_bound:g}"
    if grouping is not None and paradigm.unit is Unit.VOTER:
        facts["groups_protected"] = LABELS_PROTECTED
    elif grouping is not None:
        facts["groups_not_protected"] = LABELS_NOT_PROTECTED
    if paradigm.place is Place.DISTRIBUTED:
        facts["reports_made_by"] = REPORTS_MADE_BY
    if asked.public_selection is not None:
        facts["selected_by"] = asked.public_selection
    return EffectsRelease(
        effects=effects_of(
            asked.settings.study,
            None if grouping is None else grouping.question,
            () if grouping is None else grouping.labels,
            asked.contrasts,
            counted,
            voters=asked.guarantee.voters,
            smallest=smallest,
            scale=asked.weight_bound,
        ),
        guarantee=asked.guarantee,
        mechanism=asked.mechanism.name,
        sampler=noise.name,
        exact=noise.exact,
        facts=facts,
        ledger=ledger,
        version=VERSION,
    )


def effects_of(
    study: Study,
    question: str | None,
    labels: Sequence[str],
    contrasts: Sequence[str],
    counted: Sequence[GroupCounts],
    *,
    voters: int,
    smallest: int = 0,
    scale: float = 1.0,
    correlation: Callable[[int, int, int], float] | None = None,
) -> Effects:
    """Compute the effects of groups (or of a whole crowd, without a question) from their counts.

    Groups of fewer than ``smallest`` voters, by a noisy or public count, are merged. ``scale`` is the weight of one
    unit in a count, if voters have weights: each then counts as many voters as her weight says. ``correlation`` returns
    the correlation between the errors of a factor's effects in two groups, if it is not zero.
    """
    named = dict(zip(labels, counted, strict=True)) if question is not None else {"": counted[0]}
    if question is not None:
        named = _without_small(named, smallest, scale)
    groups = tuple(
        GroupEffects(
            label,
            float(voters) if question is None else None if one.voters is None else max(one.voters * scale, 0.0),
            tuple(
                _effect(factor.name, contrast, ratio, scale)
                for factor, contrast, ratio in zip(study.factors, contrasts, one.ratios, strict=True)
            ),
        )
        for label, one in named.items()
    )
    return Effects(study, question, groups, _differences(study, named, correlation) if len(named) > 1 else ())


def _without_small(groups: dict[str, GroupCounts], smallest: int, scale: float) -> dict[str, GroupCounts]:
    small = [label for label, one in groups.items() if one.voters is not None and one.voters * scale < smallest]
    if not small:
        return groups
    kept = {label: one for label, one in groups.items() if label not in small}
    return {**kept, OTHERS if len(small) > 1 else small[0]: GroupCounts.merged(groups[label] for label in small)}


def _effect(factor: str, contrast: str, ratio: Ratio, scale: float) -> Effect:
    low, high = ratio.interval()
    known = ratio.known and (low, high) != (-1.0, 1.0)
    return Effect(
        factor,
        contrast,
        float(ratio.estimate),
        float(ratio.standard_error) if ratio.known else None,
        float(low),
        float(high),
        float(ratio.pairs * scale),
        bool(known),
    )


def _differences(
    study: Study, groups: dict[str, GroupCounts], correlation: Callable[[int, int, int], float] | None
) -> tuple[GroupDifference, ...]:
    named = []
    for k, factor in enumerate(study.factors):
        for (g, one), (h, other) in combinations(enumerate(groups), 2):
            shared = 0.0 if correlation is None else correlation(k, g, h)
            named.append((factor.name, one, other, difference(groups[one].ratios[k], groups[other].ratios[k], shared)))
    apart = told_apart([found.p_value for *_, found in named])
    return tuple(
        GroupDifference(factor, one, other, float(found.estimate), float(found.low), float(found.high), told)
        for (factor, one, other, found), told in zip(named, apart, strict=True)
    )


EFFECTS_SHARE = 0.3
"""Default share of epsilon. It is small because effects are means, whereas a release has to fit a model."""


@dataclass(frozen=True)
class JointPreview:
    """A release of preferences and one of effects, with the cost of each. Nothing was spent."""

    request: Request
    preferences: Preview
    effects: EffectsPreview

    def __repr__(self) -> str:
        return f"<previews of both: {self.preferences!r} and {self.effects!r}>"

    def cost(self, ledger: Ledger) -> ChargePreview:
        """Return whether both fit into a ledger, which adds them up its own way: they are about the same people."""
        return ledger.preview(self.preferences.charge, with_others=[self.effects.charge])

    def as_dict(self) -> dict[str, Any]:
        """Return the preview as plain data."""
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
) -> JointPreview:
    """Split an epsilon between preferences and effects, and compute the cost and the accuracy of each."""
    if not (is_number(effects_share) and 0 < effects_share < 1):
        raise CrowdveilError(f"the share of effects is a number between 0 and 1, got {shown(effects_share)}")
    for_effects, for_preferences = Epsilon(epsilon).split(effects_share)
    request = Request(
        find_paradigm(paradigm),
        for_preferences,
        one_record_each=one_record_each,
        public_selection=public_selection,
    )
    preferences = preview_allowed(ballots, request)
    effects = preview_effects(
        ballots,
        paradigm,
        epsilon=for_effects,
        by=by,
        one_record_each=one_record_each,
        public_selection=public_selection,
    )
    return JointPreview(request, preferences, effects)


def publish_together(
    ballots: BallotSource, asked: JointPreview, ledger: Ledger, path: str | Path, effects_path: str | Path
) -> tuple[Release, EffectsRelease]:
    """Make and write both, each charged before its noise is drawn, after checking that the budget covers both."""
    check_source(ballots)
    check_type(asked, JointPreview, "what is asked for", "give what preview_together returned")
    check_ledger(ledger)
    for one in (path, effects_path):
        check_writable(path_of(one))
    if path_of(path).resolve() == path_of(effects_path).resolve():
        raise CrowdveilError(f"both would be written to {path}: give them two names")
    asked.cost(ledger).check("both together")
    made = publish(ballots, asked.request, ledger, path)
    return made, publish_effects(ballots, asked.effects, ledger, effects_path)
