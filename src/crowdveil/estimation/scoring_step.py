"""Fisher scoring with noise: one step from a preference toward the crowd's, told by a noisy mean score.

The crowd's preference is where the mean over voters of the score u(gamma) = mean of x mills(gamma . x) is zero,
whatever dilemmas they were shown. So a mean score, taken at a preference gamma_0 that is known already, tells how far
off it is: to first order mean u(gamma_0) = H (gamma* - gamma_0), where H is the information in a record. What H is
taken from (the study's generator, corrected or not) matters to second order only, because gamma_0 is near already; and
not at all where gamma_0 is right.

A record's score is an instrument, x phi / (Phi (1 - Phi)) at gamma_0 . x, times the probability 1 - Phi of not having
chosen as the voter did. Only the instrument is clipped, which does not know what was chosen: so clipped scores are
still zero on average where the model holds, and one answer weighs no more than another for being a surprise. A voter's
mean over several records is clipped once more; there, what was chosen evens out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.estimation.design import AxisSample
from crowdveil.estimation.prior import rest_deviation

MODEL_DOUBT = 0.25
"""How far, relative to its size, a preference may be off before a step: its size is a model's (``clipped_means``)."""
STEP_DOUBT = 0.25
"""How far, relative to its length, a step may go wrong: the information is a public design's."""
_LEAST_INFORMATION = 0.01
_INSTRUMENT_REACH = 6.0
"""Instruments of voters' records are clipped at so many deviations of a score: about three of a difference."""


@dataclass(frozen=True)
class Belief:
    """A preference along the axes as it is known: normal, with this mean and covariance."""

    mean: FloatArray
    covariance: FloatArray


@dataclass(frozen=True)
class Step:
    """A step of scoring, laid down before the scores are looked at: where from, and how scores are clipped."""

    start: FloatArray
    directions: FloatArray
    """A column for each direction that scores are taken along; the start lies in what they span."""
    instrument_clips: FloatArray
    """Where the instruments of records are clipped along each direction, in units of a score."""
    clips: FloatArray
    """C: where the score of a unit is clipped along each direction, in units of a score."""
    slope: FloatArray
    """The derivative by the preference of the mean clipped score, in units of C."""

    @classmethod
    def at(
        cls,
        start: FloatArray,
        dilemmas: AxisSample,
        scatter: float | None,
        deviations: float,
        directions: FloatArray | None = None,
    ) -> Step:
        """Lay down a step from a preference that is known, with scores clipped at so many of their deviations.

        ``scatter`` is the variance of a voter's mean score in terms of a record's; None where records are the units.
        Scores are taken along all axes, unless fewer directions are given.
        """
        if directions is None:
            directions = np.eye(len(start))
        information = dilemmas.information(start)
        along = np.diag(directions.T @ information @ directions) + _LEAST_INFORMATION
        clips = deviations * np.sqrt(along * (1.0 if scatter is None else scatter))
        instrument_clips = clips if scatter is None else np.maximum(clips, _INSTRUMENT_REACH * np.sqrt(along))
        slope = (
            dilemmas.instrumented_information(start, directions, instrument_clips) + _LEAST_INFORMATION * directions.T
        )
        kept = 1.0 if scatter is None else 2 * float(ndtr(deviations)) - 1
        return cls(start, directions, instrument_clips, clips, kept * slope / clips[:, None])

    @classmethod
    def of_size(cls, start: FloatArray, dilemmas: AxisSample, scatter: float | None, deviations: float) -> Step:
        """Lay down a step along the preference itself: one number, which tells its size."""
        length = float(np.linalg.norm(start))
        direction = start / length if length > 0 else np.eye(len(start))[0]
        return cls.at(start, dilemmas, scatter, deviations, direction[:, None])

    @property
    def gain(self) -> FloatArray:
        """How the unshrunk estimate follows the mean clipped score."""
        return np.asarray(np.linalg.inv(self.slope), np.float64)

    def center(self, score: FloatArray) -> FloatArray:
        """Return the unshrunk estimate."""
        return self.start + self.gain @ score

    def doubt(self, score: FloatArray) -> FloatArray:
        """Return a bound on what the step may be wrong by along each axis, beside noise and sampling."""
        return STEP_DOUBT * np.abs(self.gain @ score)

    def updated(self, belief: Belief, score: FloatArray, variances: FloatArray) -> Belief:
        """Return what is believed after the step: the belief before it, and a mean score with errors like these."""
        before = doubted(belief).covariance
        seen = self.slope @ before @ self.slope.T + np.diag(variances)
        weight = np.linalg.solve(seen, self.slope @ before).T
        covariance = before - weight @ self.slope @ before
        return Belief(self.start + weight @ score, (covariance + covariance.T) / 2)


def widened(belief: Belief, left_out: int) -> Belief:
    """Return a belief that is about the directions that factors leave out, too: their prior."""
    axes = len(belief.mean)
    covariance = np.eye(axes + left_out) * rest_deviation(left_out) ** 2
    covariance[:axes, :axes] = belief.covariance
    return Belief(np.concatenate([belief.mean, np.zeros(left_out)]), covariance)


def doubted(belief: Belief) -> Belief:
    """Return a belief that knows that its size may be off."""
    return Belief(belief.mean, belief.covariance + MODEL_DOUBT**2 * np.outer(belief.mean, belief.mean))
