"""Fisher scoring with noise: one step toward the crowd's preference from a noisy mean score.

The crowd's preference gamma* is the root of the mean over voters of the score u(gamma) = mean of x mills(gamma . x),
whatever dilemmas they were shown. So the mean score at a current estimate gamma_0 measures its error: to first order
mean u(gamma_0) = H (gamma* - gamma_0), where H is the information in a record. The dilemmas that H is computed from
(the study's generator, corrected or not) matter only to second order if gamma_0 is close, and not at all if it is
right.

A record's score is x a, where a = mills(t) and t = gamma_0 . x is the margin of the chosen side. If the other side had
been chosen, the score would be -x b with b = mills(-t). So the dilemma alone bounds the score by |x| max(a, b). We clip
this bound, which acts like a smaller difference between the two sides. Clipped scores then still have mean zero if the
model holds, and a surprising answer weighs no more than an expected one. A voter's mean over several records is clipped
again, at a lower bound; the choices average out there.

If voters differ, or sometimes answer at random, no probit holds exactly. Choices in dilemmas with large differences
pull the pooled probit toward zero. A clip reduces the weight of these dilemmas, so the root of the clipped scores lies
further out, the more so the lower the clip. We correct its average over simulated populations (``_INFLATION``), and
count deviations from that average as doubt (``CLIP_SIZE``, ``CLIP_TURN``). The constants come from crowds simulated
from the public studies (tests/statistics/constants.py), whose disagreement was widened after a look at real answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.estimation.design import AxisSample
from crowdveil.estimation.moments import Belief, ScoreFit
from crowdveil.estimation.prior import rest_deviation
from crowdveil.estimation.probit import both_slopes

STEP_DOUBT = 0.1
"""Bound on the error of a step relative to its length: what clipping leaves of voters' means comes from a model."""
_INFLATION = 0.06
"""A clip at d standard deviations inflates a preference by this fraction over d."""
LEAST_TURN, CLIP_TURN = 0.02, 0.03
"""Bound on the length of an error relative to the preference: without a clip, and the addition for a clip at
LEAST_DEVIATIONS."""
LEAST_SIZE, CLIP_SIZE = 0.02, 0.05
"""The same bounds on the relative error of the preference's size."""
LEAST_DEVIATIONS, MOST_DEVIATIONS = 1.7, 16.0
_LEAST_INFORMATION = 0.01


@dataclass(frozen=True)
class ScoringStep:
    """A scoring step, fixed before any scores are computed: its starting point and its clips."""

    start: FloatArray
    deviations: float
    """Clip of the scores along the axes of factors, in standard deviations."""
    instrument_clips: FloatArray
    """Clip of the largest score that a dilemma allows, along each mixed axis, in units of a score."""
    clips: FloatArray
    """C: clip of a unit's score along each mixed axis, in units of a score."""
    kept: FloatArray
    """Share of a weak preference that the clip of a unit's score keeps, along each mixed axis."""
    sample: AxisSample

    @classmethod
    def at(
        cls,
        start: FloatArray,
        sample: AxisSample,
        scatter: float | None,
        deviations: float,
        rest_deviations: float = 1.0,
    ) -> ScoringStep:
        """Plan a step from a known preference, with scores clipped at this many of their standard deviations.

        ``scatter`` is the variance of a voter's mean score relative to a record's; None if records are the units. The
        shorter the ballots, the closer the two clips: for ballots of one record they coincide.
        """
        ours, theirs = both_slopes(sample.along @ start)
        information = np.square(sample.mixed).T @ (ours * theirs) / len(ours)
        unit = 1.0 if scatter is None else math.sqrt(min(scatter, 1.0))
        deviation = np.sqrt(information + _LEAST_INFORMATION)
        at = np.repeat([deviations, rest_deviations], [len(start) - sample.left_out, sample.left_out])
        instrument_clips = at * deviation / math.sqrt(unit)
        kept = np.ones(len(start)) if unit == 1.0 else 2 * ndtr(at) - 1
        return cls(start, deviations, instrument_clips, at * deviation * unit, kept, sample)

    @cached_property
    def _largest(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The clipped largest score of each of the sample's dilemmas (rows), and both slopes over the larger one."""
        ours, theirs = both_slopes(self.sample.along @ self.start)
        larger = np.maximum(ours, theirs)
        clips = self.instrument_clips
        return np.clip(self.sample.mixed * larger[:, None], -clips, clips), ours / larger, theirs / larger

    @cached_property
    def instruments(self) -> FloatArray:
        """Mean difference in score, in units of C, between the two choices in each of the sample's dilemmas (rows)."""
        largest, ours, theirs = self._largest
        return np.asarray(self.kept * largest * (ours + theirs)[:, None] / self.clips, np.float64)

    @cached_property
    def variances(self) -> FloatArray:
        """Variance of a record's score along each mixed axis, in units of C."""
        largest, ours, theirs = self._largest
        return np.asarray(np.square(largest / self.clips).T @ (ours * theirs) / len(ours), np.float64)

    @cached_property
    def mixed_start(self) -> FloatArray:
        """The start along the mixed axes."""
        return np.asarray(self.sample.mixing.T @ self.start, np.float64)

    def expected(self, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean score, in units of C, of a crowd with this preference, and its derivative."""
        inflated = 1 + _INFLATION / self.deviations
        mean, derivative = self.sample.instrumented(self.instruments / 2, inflated * preference)
        ridge = (_LEAST_INFORMATION / self.clips)[:, None] * self.sample.mixing.T
        return mean - self._at_the_start, inflated * derivative + ridge

    @cached_property
    def _at_the_start(self) -> FloatArray:
        return self.sample.instrumented(self.instruments / 2, self.start)[0]

    def moved(self, fit: ScoreFit, noise: FloatArray) -> FloatArray:
        """Return the distance from the start to the crowd's preference along each axis.

        Subtract the variance due to noise (of these variances on the means) from the squared distance of the unshrunk
        estimate, down to no less than that of the posterior mode.
        """
        way = np.square(fit.center - self.start) - np.square(fit.gain) @ noise
        return np.asarray(np.sqrt(np.maximum(way, np.square(fit.mean - self.start))), np.float64)

    def distance(self, fit: ScoreFit, noise: FloatArray) -> float:
        """Return the length of the way from the start to the crowd's preference, less the noise of all axes together.

        Where many axes are lost in the noise, the lengths along each (``moved``) would add up to far too much.
        """
        way = np.square(fit.center - self.start).sum() - (np.square(fit.gain) @ noise).sum()
        return math.sqrt(max(float(way), float(np.square(fit.mean - self.start).sum())))

    def doubt(self, fit: ScoreFit, moved: FloatArray) -> tuple[float, float]:
        """Return bounds on the errors of an unshrunk estimate other than noise, sampling and different dilemmas.

        The first bounds the length of any error other than in the size; the second, the relative error of the size.
        """
        turn, size = clip_doubts(self.deviations)
        long = float(np.linalg.norm(fit.center[: len(fit.center) - self.sample.left_out]))
        return turn * long + STEP_DOUBT * float(np.linalg.norm(moved)), size


def clip_doubts(deviations: float) -> tuple[float, float]:
    """Return bounds for a clip there: the relative length of an error, and the relative error of the size."""
    nearness = LEAST_DEVIATIONS / max(deviations, LEAST_DEVIATIONS)
    return LEAST_TURN + CLIP_TURN * nearness, LEAST_SIZE + CLIP_SIZE * nearness


def clip_in_deviations(noise: float, scatter: float | None, prior: float) -> float:
    """Return the clip that balances noise (a standard deviation, in units of the clip) and clipping bias.

    For a clip at d standard deviations v of a unit's score, in units of a preference, the noise is about d v noise. The
    bias is CLIP_SIZE LEAST_DEVIATIONS / d times the prior standard deviation of the preference along an axis.
    """
    bias = CLIP_SIZE * LEAST_DEVIATIONS * prior
    unit = 1.0 if scatter is None else math.sqrt(min(scatter, 1.0))
    return min(max(math.sqrt(bias / (noise * unit)), LEAST_DEVIATIONS), MOST_DEVIATIONS)


def widened(belief: Belief, left_out: int) -> Belief:
    """Return a belief extended by the prior on the directions that factors leave out."""
    axes = len(belief.mean)
    covariance = np.eye(axes + left_out) * rest_deviation(left_out) ** 2
    covariance[:axes, :axes] = belief.covariance
    return Belief(np.concatenate([belief.mean, np.zeros(left_out)]), covariance)


def doubted(belief: Belief, size: float, turn: float, along: FloatArray) -> Belief:
    """Return a belief widened by a relative error in size, an error of length ``turn``, and errors along each axis.

    All three are standard deviations; the error of length ``turn`` has a uniformly random direction.
    """
    covariance = belief.covariance + size**2 * np.outer(belief.mean, belief.mean)
    covariance = covariance + np.diag(along**2 + turn**2 / len(along))
    return Belief(belief.mean, covariance)
