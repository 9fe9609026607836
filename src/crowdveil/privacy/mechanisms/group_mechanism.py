"""Groups of voters: defined by a question about themselves with public levels, and merged by noisy counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.estimation.design import public_design
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.mechanism import Estimate, Mechanism, MechanismSettings
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study

OTHERS = "all others"
"""The group into which small ones are merged."""
_LEAST_DEVIATIONS = 2.0
"""Smallest noisy count of a group that stands alone, in standard deviations of its noise."""
_LEAST = 2.0


@dataclass(frozen=True)
class Grouping:
    """A grouping of voters: a question about themselves, and its public levels."""

    question: str
    labels: tuple[str, ...]

    def codes(self, ballots: Ballots) -> IntArray:
        """Return the group of each voter, or -1 if it is not known."""
        return ballots.about[self.question].codes.astype(np.int64)


@dataclass(frozen=True)
class GroupSource:
    """The voters of one group, or of several, as a crowd."""

    source: BallotSource
    grouping: Grouping
    members: tuple[int, ...]
    """The codes of the groups."""
    voters: int
    """Their actual or assumed number."""

    @property
    def study(self) -> Study:
        """The study of the crowd."""
        return self.source.study

    def batches(self) -> Iterator[Ballots]:
        """Yield the group's batches. An empty group yields one empty batch, so that it is treated like any other."""
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
    """A group by its noisy count, or several merged groups that are too small to stand alone."""

    label: str
    members: tuple[int, ...]
    """The codes of the groups."""
    voters: float
    """Noisy count of voters."""
    deviation: float
    """Standard deviation of the noise in that count."""


@dataclass(frozen=True)
class GroupEstimate:
    """The released estimate of one group."""

    group: NoisyGroup
    estimate: Estimate


class GroupMechanism(Mechanism, Protocol):
    """A mechanism that releases the preferences of groups whose membership is secret."""

    @property
    def grouping(self) -> Grouping:
        """The question by which voters are grouped."""

    def fewest(self, voters: int, loss: Epsilon) -> float:
        """Return the smallest noisy size at which a group of a crowd of this many voters counts as non-empty."""

    def what_is_left(self, loss: Epsilon) -> str | None:
        """Return in words what hiding the groups leaves of the information; None if an aggregator knows them."""

    def expected_noise(self, settings: MechanismSettings, voters: int, loss: Epsilon) -> NoiseDistribution:
        """Return the noise of one group's estimate, if all have the same size."""

    def prepare(
        self, source: BallotSource, settings: MechanismSettings, loss: Epsilon, noise: Noise, smallest: int
    ) -> Callable[[], list[GroupEstimate]]:
        """Do everything that needs no noise, and return a function that does the rest.

        Groups of fewer than ``smallest`` voters, by a noisy count, are merged.
        """


def fewest_voters(deviation: float) -> float:
    """Return the smallest noisy count of a group that stands alone, given the noise's standard deviation."""
    return max(_LEAST, _LEAST_DEVIATIONS * deviation)


def groups_by_counts(
    labels: Sequence[str], counts: Sequence[float], deviations: Sequence[float], smallest: int
) -> list[NoisyGroup]:
    """Merge groups whose noisy counts are below ``smallest`` or indistinguishable from zero.

    The result depends on the counts only. If the merged group is still too small, it is dropped.
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
    """Widen an estimate for a divisor of the means that has this relative standard deviation.

    If margins are normal with standard deviation s, mean scores are proportional to s / sqrt(1 + s^2). So a small
    relative error in all of them changes the preference by that error times 1 + s^2.
    """
    unknown = estimate.unknown
    assert unknown is not None  # the estimand is a preference
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
