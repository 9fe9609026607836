"""Fisher scoring with noise: one step from a preference toward the crowd's, told by a noisy mean score.

The crowd's preference is where the mean over voters of the score u(gamma) = mean of x mills(gamma . x) is zero,
whatever dilemmas they were shown. So a mean score, taken at a preference gamma_0 that is known already, tells how far
off it is: to first order mean u(gamma_0) = H (gamma* - gamma_0), where H is the information in a record. What H is
taken from (the study's generator, corrected or not) matters to second order only, because gamma_0 is near already; and
not at all where gamma_0 is right.

A record's score is x a, where a = mills(t) and t = gamma_0 . x is the margin of the side that was chosen; had the other
side been chosen, it would be -x b with b = mills(-t). So the dilemma itself, whatever was chosen in it, bounds the
score by |x| max(a, b), and it is this bound that is clipped, as if the dilemma differed less. Clipped scores are then
still zero on average where the model holds, and one answer weighs no more than another for being a surprise. A voter's
mean over several records is clipped once more, nearer; there, what was chosen evens out.

Where voters differ, or sometimes answer at random, no probit holds exactly. The pooled one is drawn toward zero by what
people choose in dilemmas that differ much, and a clip plays these down: the zero of clipped scores lies further out,
the nearer the clip. It is corrected by what it is on average over simulated populations (``_INFLATION``), and how far
it is from that is doubt (``CLIP_SIZE``, ``CLIP_TURN``). They come from crowds that are simulated from the public
studies (tests/statistics/constants.py), whose disagreement was widened after a look at real answers.
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
from crowdveil.estimation.probit import slopes_and_weights

STEP_DOUBT = 0.1
"""How far, relative to its length, a step may go wrong: how much of it the clip of voters' means keeps is a model's."""
_INFLATION = 0.06
"""A clip at d deviations moves a preference out by this part of it, over d."""
LEAST_TURN, CLIP_TURN = 0.02, 0.03
"""How long an error may be relative to a preference, without a clip, and more by a clip at LEAST_DEVIATIONS."""
LEAST_SIZE, CLIP_SIZE = 0.02, 0.05
"""The same for its size."""
LEAST_DEVIATIONS, MOST_DEVIATIONS = 1.7, 16.0
_LEAST_INFORMATION = 0.01


@dataclass(frozen=True)
class Step:
    """A step of scoring, laid down before the scores are looked at: where from, and how scores are clipped."""

    start: FloatArray
    deviations: float
    """Where scores along the axes of factors are clipped."""
    instrument_clips: FloatArray
    """Where the largest score that a dilemma allows is clipped along each mixed axis, in units of a score."""
    clips: FloatArray
    """C: where the score of a unit is clipped along each mixed axis, in units of a score."""
    sample: AxisSample
    instruments: FloatArray
    """How scores in the sample's dilemmas (rows), in units of C, follow what is chosen, on average."""
    variances: FloatArray
    """Of a record's score along each mixed axis, in units of C."""

    @classmethod
    def at(
        cls,
        start: FloatArray,
        sample: AxisSample,
        scatter: float | None,
        deviations: float,
        rest_deviations: float = 1.0,
    ) -> Step:
        """Lay down a step from a preference that is known, with scores clipped at so many of their deviations.

        ``scatter`` is the variance of a voter's mean score in terms of a record's; None where records are the units.
        The shorter ballots are, the nearer the two clips are to one another: a voter's single score is clipped once.
        """
        margins = sample.along @ start
        ours, theirs = slopes_and_weights(margins)[0], slopes_and_weights(-margins)[0]
        larger = np.maximum(ours, theirs)
        information = np.square(sample.mixed).T @ (ours * theirs) / len(margins)
        unit = 1.0 if scatter is None else math.sqrt(min(scatter, 1.0))
        deviation = np.sqrt(information + _LEAST_INFORMATION)
        at = np.repeat([deviations, rest_deviations], [len(start) - sample.left_out, sample.left_out])
        instrument_clips = at * deviation / math.sqrt(unit)
        clips = at * deviation * unit
        largest = np.clip(sample.mixed * larger[:, None], -instrument_clips, instrument_clips)
        kept = 1.0 if unit == 1.0 else 2 * ndtr(at) - 1
        instruments = kept * largest * ((ours + theirs) / larger)[:, None] / clips
        variances = np.square(largest / clips).T @ (ours * theirs / larger**2) / len(margins)
        return cls(start, deviations, instrument_clips, clips, sample, instruments, np.asarray(variances, np.float64))

    @cached_property
    def mixed_start(self) -> FloatArray:
        """The start along the mixed axes."""
        return np.asarray(self.sample.mixing.T @ self.start, np.float64)

    def expected(self, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean score, in units of C, of a crowd of this preference, and its derivative."""
        inflated = 1 + _INFLATION / self.deviations
        mean, derivative = self.sample.instrumented(self.instruments / 2, inflated * preference)
        ridge = (_LEAST_INFORMATION / self.clips)[:, None] * self.sample.mixing.T
        return mean - self._at_the_start, inflated * derivative + ridge

    @cached_property
    def _at_the_start(self) -> FloatArray:
        return self.sample.instrumented(self.instruments / 2, self.start)[0]

    def moved(self, fit: ScoreFit, noise: FloatArray) -> FloatArray:
        """Return how far along each axis the crowd is from the start.

        That is not made of noise: so noise of these variances on the means is taken off the way of the unshrunk
        estimate, down to that of the most probable preference.
        """
        way = np.square(fit.center - self.start) - np.square(fit.gain) @ noise
        return np.asarray(np.sqrt(np.maximum(way, np.square(fit.mean - self.start))), np.float64)

    def doubt(self, fit: ScoreFit, moved: FloatArray) -> tuple[float, float]:
        """Return bounds on what an unshrunk estimate may be off by, beside noise, sampling and other dilemmas.

        The first is on the length of any error along the axes but for the size, the second on the size, relatively.
        """
        turn, size = clip_doubts(self.deviations)
        long = float(np.linalg.norm(fit.center[: len(fit.center) - self.sample.left_out]))
        return turn * long + STEP_DOUBT * float(np.linalg.norm(moved)), size


def clip_doubts(deviations: float) -> tuple[float, float]:
    """Return how long an error may be relative to a preference, and how far its size may be off, by a clip there."""
    nearness = LEAST_DEVIATIONS / max(deviations, LEAST_DEVIATIONS)
    return LEAST_TURN + CLIP_TURN * nearness, LEAST_SIZE + CLIP_SIZE * nearness


def clip_in_deviations(noise: float, scatter: float | None, prior: float) -> float:
    """Return where to clip scores, so that noise (a deviation, in units of the clip) and the clip's bias are alike.

    In units of a preference, the noise is about d v noise for a clip at d of the deviations v of a unit's score, and
    the bias CLIP_SIZE LEAST_DEVIATIONS / d of what the preference is along an axis, a priori.
    """
    bias = CLIP_SIZE * LEAST_DEVIATIONS * prior
    unit = 1.0 if scatter is None else math.sqrt(min(scatter, 1.0))
    return min(max(math.sqrt(bias / (noise * unit)), LEAST_DEVIATIONS), MOST_DEVIATIONS)


def widened(belief: Belief, left_out: int) -> Belief:
    """Return a belief that is about the directions that factors leave out, too: their prior."""
    axes = len(belief.mean)
    covariance = np.eye(axes + left_out) * rest_deviation(left_out) ** 2
    covariance[:axes, :axes] = belief.covariance
    return Belief(np.concatenate([belief.mean, np.zeros(left_out)]), covariance)


def doubted(belief: Belief, size: float, turn: float, along: FloatArray) -> Belief:
    """Return a belief that may be off by a part of its size, by an error of this length, and so much along each axis.

    All three are deviations; the direction of the error is any.
    """
    covariance = belief.covariance + size**2 * np.outer(belief.mean, belief.mean)
    covariance = covariance + np.diag(along**2 + turn**2 / len(along))
    return Belief(belief.mean, covariance)
