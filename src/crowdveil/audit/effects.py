"""Effects on trial: voters who change their group, and records that change their type of scenario.

The mechanism measures both crowds; the noisy sums, from which everything that is released follows, are what is drawn
thousands of times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.attack import Rows, Score
from crowdveil.audit.setups import same_estimate
from crowdveil.audit.trial import Point
from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import CODE, Categories
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.mechanisms.effect_counts import EffectCounts, PublicCrowd
from crowdveil.privacy.mechanisms.grouping import Grouping
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.noise.experimental_noise import ReplayedNoise
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.study import Study

_FEATURES, _DILEMMAS = 3, 4
_SCENARIOS = ("Gender", "Species")
_GROUPING = Grouping("team", ("one", "other"))


@dataclass(frozen=True)
class EffectsPromise:
    """Noisy counts of two crowds that differ in one voter or record."""

    mechanism: EffectCounts
    settings: Settings
    epsilon: Epsilon
    left: Ballots
    right: Ballots
    remark: str
    neighbours: str

    name = EffectCounts.name
    reach = None

    @property
    def paradigm(self) -> str:
        """Who is promised what."""
        return {Unit.VOTER: "vlcp", Unit.RECORD: "rlcp", Unit.CHOICE: "alcp"}[self.mechanism.unit]

    @property
    def promised(self) -> Sequence[Point]:
        """The epsilon."""
        return [Point(self.epsilon.value)]

    def with_sensitivity(self, steps: int) -> EffectsPromise:
        """Make a mistake: noise for sums that move by no more than this."""
        blocks = tuple(replace(block, sensitivity=steps) for block in self.mechanism.blocks)
        return replace(self, mechanism=replace(self.mechanism, blocks=blocks))

    def sample(self, left: bool, draws: int) -> Rows:
        """Draw the noisy sums of one of the two crowds again and again."""
        return self._exact(self.left if left else self.right) + self.mechanism.draw(BulkNoise(), draws)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the likelihood ratio: noise on the cube, independent in all groups and blocks."""
        ours, theirs = self._exact(self.left), self._exact(self.right)
        return [lambda rows: self._surprise(rows - theirs) - self._surprise(rows - ours)]

    def noise_p_value(self, rows: Rows) -> None:
        """Return None: the noise of one block is tried where there is one block."""

    def same_release(self) -> bool:
        """Release both with noise that makes the noisy sums equal: all else must be equal, too."""
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
        """Return minus the logarithm of the density of noise (rows), up to a constant."""
        by_group = np.abs(noise).reshape(len(noise), self.mechanism.groups, -1)
        total = np.zeros(len(noise))
        start = 0
        for block in self.mechanism.blocks:
            largest = by_group[:, :, start : start + block.columns].max(axis=2).sum(axis=1)
            total += largest * (block.epsilon.value / block.sensitivity)
            start += block.columns
        return total


def crowd_counts(unit: Unit, study: Study, epsilon: Epsilon, grouping: Grouping | None = None) -> EffectCounts:
    """Return the mechanism as it would be used with many voters: with all that it may buy.

    Pairs of a scenario of their own are rare, so that nearly all of epsilon is spent on them.
    """
    apart = tuple(factor.scenario in _SCENARIOS for factor in study.factors)
    many = np.where(apart, 1e3, 1e6)
    return EffectCounts.planned(unit, epsilon, PublicCrowd(apart, many, many, np.full(len(apart), 3.0)), grouping)


def moves_group(epsilon: Epsilon) -> EffectsPromise:
    """A voter who always prefers more in one group, or one who always prefers less in the other."""
    study = synthetic_study(_FEATURES, _DILEMMAS)

    def crowd(sign: float, group: int) -> Ballots:
        records = np.concatenate([np.full((2, _FEATURES), sign), np.tile([1.0, -1.0, 1.0], (2, 1))])
        made = Ballots.from_differences(study, np.array([0, 2, 3, 4]), records)
        return replace(made, about={"team": Categories(_GROUPING.labels, np.array([group, 0, 1], CODE))})

    return EffectsPromise(
        crowd_counts(Unit.VOTER, study, epsilon, _GROUPING),
        Settings(study, study.norm_bound),
        epsilon,
        crowd(1.0, 0),
        crowd(-1.0, 1),
        "by group",
        "a voter who leaves one group and enters the other: the sums of both move by all that they can",
    )


def moves_scenario(epsilon: Epsilon) -> EffectsPromise:
    """A record about gender, or one about species in its place."""
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
        crowd_counts(Unit.RECORD, study, epsilon),
        Settings(study, study.norm_bound),
        epsilon,
        crowd("Gender"),
        crowd("Species"),
        "by scenario",
        "a record about one factor, and one about another in its place, opposed in all that both are about",
    )
