"""From noisy counts of groups to their effects, the differences between them, and what can be told of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from crowdveil.effect_release import Effect, Effects, GroupDifference, GroupEffects
from crowdveil.estimation.ratios import Ratio, difference, told_apart
from crowdveil.privacy.mechanisms.effect_counts import GroupCounts
from crowdveil.privacy.mechanisms.grouping import OTHERS
from crowdveil.study.study import Study


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
    """Read the effects of groups (or of a whole crowd, without a question) from their counts.

    Groups that a count, noisy or public, says to have fewer than ``smallest`` voters are merged. ``scale`` is what one
    in a count stands for, where voters have weights. ``correlation`` tells how the errors of a factor's effects in two
    groups go together, where that is not zero.
    """
    named = dict(zip(labels, counted, strict=True)) if question is not None else {"": counted[0]}
    if question is not None:
        named = _without_small(named, smallest)
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


def _without_small(groups: dict[str, GroupCounts], smallest: int) -> dict[str, GroupCounts]:
    small = [label for label, one in groups.items() if one.voters is not None and one.voters < smallest]
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
