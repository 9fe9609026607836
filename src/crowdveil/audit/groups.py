"""Secret groups on trial: a voter who leaves one group and enters the other, with opposite answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.attack import Rows, Score
from crowdveil.audit.trial import Point
from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import CODE, Categories
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.fisher_scoring import VoterScore
from crowdveil.privacy.mechanisms.group_bits import GroupBits
from crowdveil.privacy.mechanisms.group_scores import GroupScores, split
from crowdveil.privacy.mechanisms.grouping import Grouping, NoisyGroup
from crowdveil.privacy.mechanisms.mechanism import Measurement, Settings
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.noise.experimental_noise import NoiseRequest, SilentNoise
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.bundled import synthetic_study

_STUDY = synthetic_study(2, 4)
_SETTINGS = Settings(_STUDY, _STUDY.norm_bound)
_GROUPING = Grouping("team", ("one", "other"))
_COUNTED = 30.0
"""What noisy counts say of either group: any number, as what follows is private given it."""


def _crowd(left: bool, others: bool) -> Ballots:
    """Return a voter who is loud in one group, or loud the other way in the other, and perhaps one more in each."""
    records = np.full((1, 2), 9.0 if left else -9.0)
    codes = [0 if left else 1]
    if others:
        records, codes = np.concatenate([records, [[1.0, -1.0], [-1.0, 0.5]]]), [*codes, 0, 1]
    made = Ballots.from_differences(_STUDY, np.arange(len(codes) + 1), records)
    return replace(made, about={"team": Categories(_GROUPING.labels, np.array(codes, CODE))})


@dataclass(frozen=True)
class GroupScoresPromise:
    """The noisy counts of two groups, and the noisy sums of their first step, of two crowds."""

    epsilon: Epsilon
    noise: Noise
    counts_hidden: bool = True

    name = GroupScores.name
    paradigm = "vlcp"
    remark = "a voter changes her group"
    neighbours = "a voter who leaves one group and enters the other: counts and sums of both move by all that they can"
    reach = None

    @property
    def promised(self) -> Sequence[Point]:
        """The epsilon."""
        return [Point(self.epsilon.value)]

    def sample(self, left: bool, draws: int) -> Rows:
        """Draw what leaves of one of the two crowds again and again."""
        exact, made = self._exact(left), GroupScores(_GROUPING)
        counted = made.draw(self.noise, split(self.epsilon)[0], draws)
        drawn = [request.draw(self.noise, draws) for request in self._requests(left)]
        return exact + np.hstack([counted if self.counts_hidden else 0 * counted, *drawn])

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the likelihood ratio: Laplace noise on counts, noise on the cube in each group."""
        ours, theirs = self._exact(True), self._exact(False)
        return [lambda rows: self._surprise(rows - theirs) - self._surprise(rows - ours)]

    def noise_p_value(self, rows: Rows) -> None:
        """Return None: the laws of either noise are tried where it is alone."""

    def same_release(self) -> bool:
        """Check that both crowds ask for the same noise in each group."""
        return self._requests(True) == self._requests(False)

    def _measured(self, left: bool) -> list[Measurement]:
        made, ballots = GroupScores(_GROUPING), _crowd(left, others=True)
        groups = [NoisyGroup(label, (code,), _COUNTED, 1.0) for code, label in enumerate(_GROUPING.labels)]
        return [made.scores(group, ballots, _SETTINGS, split(self.epsilon)[1]) for group in groups]

    def _exact(self, left: bool) -> IntArray:
        counts = GroupScores(_GROUPING).measure(_crowd(left, others=True), _SETTINGS, self.epsilon).total
        return np.concatenate([counts, *(measured.total for measured in self._measured(left))])

    def _requests(self, left: bool) -> list[NoiseRequest]:
        """Return the noise that each group's first step asks for."""
        found = []
        for measured in self._measured(left):
            silent = SilentNoise()
            VoterScore().release(measured, _SETTINGS, split(self.epsilon)[1], silent)
            found.append(silent.requests[0])
        return found

    def _surprise(self, noise: IntArray) -> FloatArray:
        """Return minus the logarithm of the density of noise (rows), up to a constant."""
        counts, *sums = np.split(np.abs(noise), [2, 2 + (noise.shape[1] - 2) // 2], axis=1)
        of_counts, of_scores = split(self.epsilon)
        request = self._requests(True)[0]
        largest = sum(part.max(axis=1) for part in sums)
        return np.asarray(
            counts.sum(axis=1) * of_counts.value / 2 + largest * of_scores.value / request.sensitivity, np.float64
        )


@dataclass(frozen=True)
class GroupBitsPromise:
    """The report of a voter of one group, and of one of the other."""

    epsilon: Epsilon
    noise: Noise
    report: Callable[[Ballots, Epsilons, Noise], IntArray]
    """What leaves, a row a voter."""

    name = GroupBits.name
    paradigm = "vldp"
    remark = "a voter changes her group"
    neighbours = "a voter of one group, and one of the other, loud the other way: nothing is further apart"
    reach = None

    @property
    def promised(self) -> Sequence[Point]:
        """The epsilon."""
        return [Point(self.epsilon.value)]

    def sample(self, left: bool, draws: int) -> Rows:
        """Report again and again."""
        copies = _crowd(left, others=False).take(np.zeros(draws, np.int64))
        return self.report(copies, Epsilons.same(self.epsilon, draws), self.noise)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the answer itself: how often each is reported says everything, and is learned."""
        return [lambda rows: rows.sum(axis=1).astype(np.float64)]

    def noise_p_value(self, rows: Rows) -> None:
        """Return None: no noise is added."""

    def same_release(self) -> bool:
        """Return True: the rows are all that leaves."""
        return True


def report_hidden(ballots: Ballots, epsilons: Epsilons, noise: Noise) -> IntArray:
    """Report as devices do."""
    rows = GroupBits(_GROUPING).report(ballots, _SETTINGS, epsilons, noise).rows()
    return rows[:, -2:]


def report_group_as_it_is(ballots: Ballots, epsilons: Epsilons, noise: Noise) -> IntArray:
    """Make a mistake: only the bit goes through coin tosses, and the group is sent beside it."""
    said = report_hidden(ballots, epsilons, noise)
    return np.column_stack([said, ballots.about["team"].codes.astype(np.int64)])


def group_scores(epsilon: Epsilon) -> GroupScoresPromise:
    """Return the promise of central noise."""
    return GroupScoresPromise(epsilon, BulkNoise())


def group_bits(epsilon: Epsilon) -> GroupBitsPromise:
    """Return the promise of devices."""
    return GroupBitsPromise(epsilon, BulkNoise(), report_hidden)
