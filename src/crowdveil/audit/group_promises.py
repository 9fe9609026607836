"""Trials of effects and secret groups: voters who change their group, and records that change their scenario type.

The mechanism measures both crowds. Everything that is released follows from the noisy sums, so these are drawn
thousands of times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.setups import same_estimate
from crowdveil.audit.trial import PureEpsilonSubject, Rows, Score
from crowdveil.ballots.ballots import Ballots, resampled
from crowdveil.ballots.columns import CODE, Categories
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.mechanisms.effect_counts import EffectCounts, PublicCrowd
from crowdveil.privacy.mechanisms.fisher_scoring import VoterScore
from crowdveil.privacy.mechanisms.group_bits import GroupBits
from crowdveil.privacy.mechanisms.group_mechanism import Grouping, NoisyGroup
from crowdveil.privacy.mechanisms.group_scores import GroupScores, split
from crowdveil.privacy.mechanisms.mechanism import Measurement, MechanismSettings
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.noise.experimental_noise import NoiseRequest, ReplayedNoise, SilentNoise
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.study import Study

_FEATURES = 3
_DILEMMAS = 4
_SCENARIOS = ("Gender", "Species")
_GROUPING = Grouping("team", ("one", "other"))
_STUDY = synthetic_study(2, 4)
_SETTINGS = MechanismSettings(_STUDY, _STUDY.norm_bound)
_COUNTED = 30.0
"""Noisy count of either group. Any number will do, because the rest is private given this count."""


@dataclass(frozen=True)
class EffectsPromise(PureEpsilonSubject):
    """Noisy counts of two crowds that differ in one voter or record."""

    mechanism: EffectCounts
    settings: MechanismSettings
    left: Ballots
    right: Ballots
    remark: str
    neighbours: str

    name = EffectCounts.name

    @property
    def paradigm(self) -> str:
        """Who is promised what."""
        return {Unit.VOTER: "vlcp", Unit.RECORD: "rlcp", Unit.CHOICE: "alcp"}[self.mechanism.unit]

    def with_sensitivity(self, steps: int) -> EffectsPromise:
        """Make a mistake: noise for sums that move by at most this much."""
        blocks = tuple(replace(block, sensitivity=steps) for block in self.mechanism.blocks)
        return replace(self, mechanism=replace(self.mechanism, blocks=blocks))

    def sample(self, left: bool, draws: int) -> Rows:
        """Draw the noisy sums of one of the two crowds again and again."""
        return self._exact(self.left if left else self.right) + self.mechanism.draw(BulkNoise(), draws)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the likelihood ratio: noise on the cube, independent in all groups and blocks."""
        ours, theirs = self._exact(self.left), self._exact(self.right)
        return [lambda rows: self._surprise(rows - theirs) - self._surprise(rows - ours)]

    def same_release(self) -> bool:
        """Release both with noise that makes the noisy sums equal: everything else must be equal, too."""
        measured = [self.mechanism.measure(one, self.settings, self.epsilon) for one in (self.left, self.right)]
        ours, theirs = (self.mechanism.public_part(one) for one in measured)
        if not np.array_equal(ours, theirs):
            return False
        (block, *others) = self.mechanism.blocks
        if others:
            return True
        drawn = self.mechanism.draw(BulkNoise(), 1).reshape(-1, block.columns)
        gap = (measured[0].total - measured[1].total).reshape(-1, block.columns)
        made = [
            self.mechanism.release(one, self.settings, self.epsilon, ReplayedNoise(noise))
            for one, noise in zip(measured, (drawn, drawn + gap), strict=True)
        ]
        return same_estimate(*made)

    def _exact(self, ballots: Ballots) -> IntArray:
        return self.mechanism.measure(ballots, self.settings, self.epsilon).total

    def _surprise(self, noise: IntArray) -> FloatArray:
        """Return the negative logarithm of the density of the noise (rows), up to a constant."""
        by_group = np.abs(noise).reshape(len(noise), self.mechanism.groups, -1)
        total = np.zeros(len(noise))
        start = 0
        for block in self.mechanism.blocks:
            largest = by_group[:, :, start : start + block.columns].max(axis=2).sum(axis=1)
            total += largest * (block.epsilon.value / block.sensitivity)
            start += block.columns
        return total


def crowd_counts(unit: Unit, study: Study, epsilon: Epsilon, grouping: Grouping | None = None) -> EffectCounts:
    """Return the mechanism as it would be used with many voters, with everything that its budget can buy.

    Pairs with a scenario of their own are rare, so nearly all of epsilon is spent on them.
    """
    apart = tuple(factor.scenario in _SCENARIOS for factor in study.factors)
    many = np.where(apart, 1e3, 1e6)
    return EffectCounts.planned(unit, epsilon, PublicCrowd(apart, many, many, np.full(len(apart), 3.0)), grouping)


def moves_group(epsilon: Epsilon) -> EffectsPromise:
    """A voter who always prefers more, in one group, or one who always prefers less, in the other."""
    study = synthetic_study(_FEATURES, _DILEMMAS)

    def crowd(sign: float, group: int) -> Ballots:
        records = np.concatenate([np.full((2, _FEATURES), sign), np.tile([1.0, -1.0, 1.0], (2, 1))])
        made = Ballots.from_differences(study, np.array([0, 2, 3, 4]), records)
        return replace(made, about={"team": Categories(_GROUPING.labels, np.array([group, 0, 1], CODE))})

    return EffectsPromise(
        epsilon,
        crowd_counts(Unit.VOTER, study, epsilon, _GROUPING),
        MechanismSettings(study, study.norm_bound),
        crowd(1.0, 0),
        crowd(-1.0, 1),
        "by group",
        "a voter who leaves one group and enters the other: the sums of both move by all that they can",
    )


def moves_scenario(epsilon: Epsilon) -> EffectsPromise:
    """A record about gender, or one about species instead."""
    study = load_study("moral-machine")
    sides = {
        "Gender": ({"woman": 2, "legality": 1, "barrier": 1}, {"man": 2, "legality": -1, "intervention": 1}),
        "Species": ({"dog": 2, "legality": -1, "intervention": 1}, {"man": 2, "legality": 1, "barrier": 1}),
    }

    def crowd(scenario: str) -> Ballots:
        spared, other = ([study.alternative(one, "x").values] * 2 for one in sides[scenario])
        spared[1], other[1] = (study.alternative(one, "x").values for one in sides["Gender"])
        made = Ballots.from_arrays(study, ["a", "b"], spared, other, [1, 1])
        codes = np.array([_SCENARIOS.index(scenario), 0], CODE)
        return replace(made, scenarios=Categories(_SCENARIOS, codes))

    return EffectsPromise(
        epsilon,
        crowd_counts(Unit.RECORD, study, epsilon),
        MechanismSettings(study, study.norm_bound),
        crowd("Gender"),
        crowd("Species"),
        "by scenario",
        "a record about one factor, and one about another in its place, opposed in all that both are about",
    )


def _crowd(left: bool, others: bool) -> Ballots:
    """Return a voter with extreme scores in one group, or opposite ones in the other, and perhaps one more in each."""
    records = np.full((1, 2), 9.0 if left else -9.0)
    codes = [0 if left else 1]
    if others:
        records = np.concatenate([records, [[1.0, -1.0], [-1.0, 0.5]]])
        codes = [*codes, 0, 1]
    made = Ballots.from_differences(_STUDY, np.arange(len(codes) + 1), records)
    return replace(made, about={"team": Categories(_GROUPING.labels, np.array(codes, CODE))})


def _measured(epsilon: Epsilon, left: bool) -> list[Measurement]:
    """Measure the first step of each group."""
    made = GroupScores(_GROUPING)
    ballots = _crowd(left, others=True)
    groups = [NoisyGroup(label, (code,), _COUNTED, 1.0) for code, label in enumerate(_GROUPING.labels)]
    return [made.scores(group, ballots, _SETTINGS, split(epsilon)[1]) for group in groups]


@lru_cache(maxsize=8)
def _requests(epsilon: Epsilon, left: bool) -> list[NoiseRequest]:
    """Make a whole release without noise, and return the noise that the first step of each group requests."""
    found = []
    for measured in _measured(epsilon, left):
        silent = SilentNoise()
        VoterScore().release(measured, _SETTINGS, split(epsilon)[1], silent)
        found.append(silent.requests[0])
    return found


@dataclass(frozen=True)
class GroupScoresPromise(PureEpsilonSubject):
    """The noisy counts of two groups and the noisy sums of their first step, for two crowds."""

    noise: Noise
    counts_hidden: bool = True

    name = GroupScores.name
    paradigm = "vlcp"
    remark = "a voter changes groups"
    neighbours = "a voter who leaves one group and enters the other: counts and sums of both move by all that they can"

    def sample(self, left: bool, draws: int) -> Rows:
        """Draw the outputs for one of the two crowds again and again."""
        exact = self._exact(left)
        made = GroupScores(_GROUPING)
        counted = made.draw(self.noise, split(self.epsilon)[0], draws)
        drawn = [request.draw(self.noise, draws) for request in _requests(self.epsilon, left)]
        return exact + np.hstack([counted if self.counts_hidden else 0 * counted, *drawn])

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the likelihood ratio: Laplace noise on counts, noise on the cube in each group."""
        ours, theirs = self._exact(True), self._exact(False)
        return [lambda rows: self._surprise(rows - theirs) - self._surprise(rows - ours)]

    def same_release(self) -> bool:
        """Check that both crowds request the same noise in each group."""
        return _requests(self.epsilon, True) == _requests(self.epsilon, False)

    def _exact(self, left: bool) -> IntArray:
        counts = GroupScores(_GROUPING).measure(_crowd(left, others=True), _SETTINGS, self.epsilon).total
        return np.concatenate([counts, *(measured.total for measured in _measured(self.epsilon, left))])

    def _surprise(self, noise: IntArray) -> FloatArray:
        """Return the negative logarithm of the density of the noise (rows), up to a constant."""
        counts, *sums = np.split(np.abs(noise), [2, 2 + (noise.shape[1] - 2) // 2], axis=1)
        of_counts, of_scores = split(self.epsilon)
        request = _requests(self.epsilon, True)[0]
        largest = sum(part.max(axis=1) for part in sums)
        return np.asarray(
            counts.sum(axis=1) * of_counts.value / 2 + largest * of_scores.value / request.sensitivity, np.float64
        )


@dataclass(frozen=True)
class GroupBitsPromise(PureEpsilonSubject):
    """The report of a voter in one group, and of a voter in the other."""

    noise: Noise
    report: Callable[[Ballots, Epsilons, Noise], IntArray]
    """Returns the outputs, one row per voter."""

    name = GroupBits.name
    paradigm = "vldp"
    remark = "a voter changes groups"
    neighbours = "a voter of one group, and one of the other, loud the other way: nothing is further apart"

    def sample(self, left: bool, draws: int) -> Rows:
        """Report again and again."""
        copies = resampled(_crowd(left, others=False), np.zeros(draws, np.int64))
        return self.report(copies, Epsilons.same(self.epsilon, draws), self.noise)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the answer itself: the frequencies of the answers are all there is, and they are learned."""
        return [lambda rows: rows.sum(axis=1).astype(np.float64)]


def report_hidden(ballots: Ballots, epsilons: Epsilons, noise: Noise) -> IntArray:
    """Report as devices do."""
    rows = GroupBits(_GROUPING).report(ballots, _SETTINGS, epsilons, noise).rows()
    return rows[:, -2:]


def report_group_as_it_is(ballots: Ballots, epsilons: Epsilons, noise: Noise) -> IntArray:
    """Make a mistake: only the bit is randomised, and the group is sent as it is."""
    said = report_hidden(ballots, epsilons, noise)
    return np.column_stack([said, ballots.about["team"].codes.astype(np.int64)])


def group_scores(epsilon: Epsilon) -> GroupScoresPromise:
    """Return the promise of central noise."""
    return GroupScoresPromise(epsilon, BulkNoise())


def group_bits(epsilon: Epsilon) -> GroupBitsPromise:
    """Return the promise of devices."""
    return GroupBitsPromise(epsilon, BulkNoise(), report_hidden)
