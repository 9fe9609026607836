"""Groups of voters: by a question about themselves, with its public levels, and as noisy counts tell them apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.estimation.design import public_design
from crowdveil.privacy.mechanisms.mechanism import Estimate
from crowdveil.study.study import Study

OTHERS = "all others"
"""The group into which small ones are merged."""
_LEAST_DEVIATIONS = 2.0
"""A group is one if its noisy count is at least so many deviations of its noise."""
_LEAST = 2.0


@dataclass(frozen=True)
class Grouping:
    """What voters are grouped by: a question about themselves, and its public levels."""

    question: str
    labels: tuple[str, ...]

    def codes(self, ballots: Ballots) -> IntArray:
        """Return the group of each voter, -1 where it is not known."""
        return ballots.about[self.question].codes.astype(np.int64)


@dataclass(frozen=True)
class GroupOf:
    """The voters of one group, or of several, as a crowd."""

    source: BallotSource
    grouping: Grouping
    members: tuple[int, ...]
    """The codes of the groups."""
    voters: int
    """How many they are, or how many they are taken to be."""

    @property
    def study(self) -> Study:
        """The study that was asked."""
        return self.source.study

    def batches(self) -> Iterator[Ballots]:
        """Walk the group. One in which nobody is has an empty batch: that it is empty must make no difference."""
        walked = False
        for batch in self.source.batches():
            kept = replace(batch.filter(np.isin(self.grouping.codes(batch), self.members)), selection=batch.selection)
            if kept.voters:
                walked = True
                yield kept
        if not walked:
            yield kept


@dataclass(frozen=True)
class NoisyGroup:
    """A group as noisy counts tell it, or several that are too small to stand alone."""

    label: str
    members: tuple[int, ...]
    """The codes of the groups."""
    voters: float
    """By a noisy count."""
    deviation: float
    """Of that count."""


@dataclass(frozen=True)
class GroupEstimate:
    """What is released of one group."""

    group: NoisyGroup
    estimate: Estimate


def fewest_voters(deviation: float) -> float:
    """Return how many voters a noisy count has to name, if its noise has this deviation, for a group to be one."""
    return max(_LEAST, _LEAST_DEVIATIONS * deviation)


def groups_by_counts(
    labels: Sequence[str], counts: Sequence[float], deviations: Sequence[float], smallest: int
) -> list[NoisyGroup]:
    """Merge the groups that noisy counts say to have fewer than ``smallest`` voters, or hardly any.

    Nothing but the counts is looked at. What is still too small when it is merged is left out.
    """
    named = list(zip(labels, counts, deviations, strict=True))
    kept: list[NoisyGroup] = []
    small: list[NoisyGroup] = []
    for code, (label, count, deviation) in enumerate(named):
        one = NoisyGroup(label, (code,), count, deviation)
        (kept if count >= max(smallest, fewest_voters(deviation)) else small).append(one)
    if small:
        deviation = math.hypot(*(one.deviation for one in small))
        count = sum(one.voters for one in small)
        if count >= max(smallest, fewest_voters(deviation)):
            label = OTHERS if len(small) > 1 else small[0].label
            kept.append(NoisyGroup(label, tuple(code for one in small for code in one.members), count, deviation))
    return kept


def less_sure_of_size(estimate: Estimate, study: Study, relative: float) -> Estimate:
    """Let an estimate's size be as uncertain as a divisor whose relative deviation is this.

    Where margins are normal with a deviation s, mean scores go as s / sqrt(1 + s^2): an error in all of them by a small
    factor moves the preference by that factor times 1 + s^2.
    """
    unknown = estimate.unknown
    assert unknown is not None  # of a preference
    margins = public_design(study).differences @ (unknown.basis @ unknown.mean)
    variance = (relative * (1 + float(np.square(margins).mean()))) ** 2
    return replace(
        estimate,
        unknown=replace(
            unknown,
            covariance=unknown.covariance + variance * np.outer(unknown.mean, unknown.mean),
            sampling=unknown.sampling + variance * np.outer(unknown.center, unknown.center),
        ),
    )
