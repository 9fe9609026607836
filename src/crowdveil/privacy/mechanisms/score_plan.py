"""How Fisher scoring spends a budget: how many steps, how they share epsilon, where scores are clipped, what is bought.

All of it depends on public numbers only: the study, the number of units (voters or records), and epsilon. What counts
is how loud a crowd is against the noise: units times epsilon, for each direction that is looked along.

The thresholds were chosen on crowds that are simulated from the public Moral Machine study (preferences from the prior,
voters who disagree little and much, ballots of several lengths, dilemmas of the generator and others), so that stated
probabilities lose least: tests/statistics/constants.py. The public Moral Machine file was looked at between rounds of
that, and decided where the simulation hardly did (docs/best-accuracy.md): it is no independent test of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from crowdveil.estimation.clipped_means import voter_clip
from crowdveil.estimation.design import Design, public_design
from crowdveil.estimation.prior import prior_deviation
from crowdveil.estimation.scoring_step import clip_in_deviations
from crowdveil.privacy.epsilon import LEAST_MICRO, Epsilon
from crowdveil.privacy.mechanisms.scores import cube_variance
from crowdveil.study.study import Study

_LENGTHS = 10
"""From so loud on, the mean of one over the length of ballots is worth its noise."""
_LOUD = 200
"""From so loud on, a second step is worth half of epsilon."""
_SQUARES = 150
"""From so loud on, the mean squares along the axes are worth their noise."""
_WORTH_ALL = 75
"""From so many units times epsilon for each of all directions on, a second step looks along those left out by factors.

That costs a little of what probabilities tell, and lets dilemmas be decided in which these directions differ."""
_VOTERS_NOISE, _RECORDS_NOISE = 0.05, 0.03
"""Means are clipped as far out as keeps their noise at this part of what a preference is, a priori."""
_NEAREST_CLIP, _FURTHEST_CLIP = 0.35, 3.0
"""But not nearer, in deviations of a unit over a whole ballot, nor further, in those of a record."""


@dataclass(frozen=True)
class Plan:
    """How a budget is spent. Public."""

    epsilons: tuple[Epsilon, ...]
    """Of each step; they add up to the whole."""
    by_voter: bool
    """Whether voters are the units, or records."""
    rest: bool
    """Whether later steps look along every direction, and not along those of the factors only."""
    lengths: bool
    """Whether the first step buys the mean of one over a ballot's length, which tells how loud voters are."""
    squares: bool
    """Whether the first step buys the mean squares along the axes, to correct the public design."""
    spread: bool
    """Whether the last step buys the scatter of scores, to tell the sampling error."""
    first_noise: float
    """Standard deviation of the first step's noise, in units of its clip."""

    @property
    def bought(self) -> tuple[bool, bool]:
        """Whether the first step looks at lengths, and at squares."""
        return self.lengths, self.squares

    def first_clip(self, study: Study) -> float:
        """Return where the first step clips means along the axes, in units of an axis.

        Unclipped, the means need no model of how much voters scatter. Clipped at half of their deviation, they tell
        nearly as much as signs would.
        """
        unit = voter_clip(study.drawing.dilemmas) if self.by_voter else 1.0
        share = _VOTERS_NOISE if self.by_voter else _RECORDS_NOISE
        allowed = share * prior_deviation(public_design(study).directions) * math.sqrt(2 / math.pi)
        return max(_NEAREST_CLIP * unit, min(allowed / self.first_noise, _FURTHEST_CLIP))

    @classmethod
    def of(cls, design: Design, units: int, epsilon: Epsilon, *, by_voter: bool, design_known: bool) -> Plan:
        """Choose by how loud the crowd is."""
        directions = design.directions
        left_out = design.rest.shape[1]
        loudness = units * epsilon.value / directions
        half = epsilon.micro // 2
        several = loudness >= _LOUD and half >= LEAST_MICRO  # no step with less than any may
        epsilons = (Epsilon.of_millionths(epsilon.micro - half), Epsilon.of_millionths(half)) if several else (epsilon,)
        rest = several and left_out > 0 and units * epsilon.value >= _WORTH_ALL * (directions + left_out)
        looked = directions + left_out if rest else directions
        squares = loudness >= _SQUARES and not design_known
        lengths = by_voter and loudness >= _LENGTHS
        dimension = directions + lengths + (directions if squares else 0)
        return cls(
            epsilons,
            by_voter=by_voter,
            rest=rest,
            lengths=lengths,
            squares=squares,
            first_noise=math.sqrt(cube_variance(2 / (units * epsilons[0].value), 1.0, dimension)),
            spread=several and _worth_the_spread(looked, units, epsilons[-1].value),
        )


def _worth_the_spread(directions: int, units: int, epsilon: float) -> bool:
    """Whether bars get narrower by twice as many noisy numbers, against a public bound on the sampling variance.

    That is taken as twice what the variance is, and a unit's score as clipped where its noise is balanced.
    """
    noise = [cube_variance(2 / (units * epsilon), 1.0, dimension) for dimension in (directions, 2 * directions)]
    clips = [clip_in_deviations(math.sqrt(variance), None, directions) for variance in noise]
    bounded, bought = (noise[i] * clips[i] ** 2 + sampling for i, sampling in enumerate((2 / units, 1 / units)))
    return bought < bounded
