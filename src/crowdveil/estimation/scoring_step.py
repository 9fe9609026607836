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
it is from that is doubt (``CLIP_DOUBT``). Both come from crowds that are simulated from the public studies
(tests/statistics/constants.py), whose disagreement was widened after a look at real answers.
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
from crowdveil.estimation.prior import prior_deviation, rest_deviation
from crowdveil.estimation.probit import slopes_and_weights

STEP_DOUBT = 0.1
"""How far, relative to its length, a step may go wrong: how much of it the clip of voters' means keeps is a model's."""
_INFLATION = 0.12
"""A clip at d deviations moves a preference out by this part of it, over d."""
CLIP_DOUBT = 0.15
"""How far, relative to a preference, a clip at LEAST_DEVIATIONS may move it. A wider clip moves it less."""
LEAST_DEVIATIONS, MOST_DEVIATIONS = 1.7, 16.0
_LEAST_INFORMATION = 0.01


@dataclass(frozen=True)
class Step:
    """A step of scoring, laid down before the scores are looked at: where from, and how scores are clipped."""

    start: FloatArray
    deviations: float
    instrument_clips: FloatArray
    """Where the largest score that a dilemma allows is clipped along each axis, in units of a score."""
    clips: FloatArray
    """C: where the score of a unit is clipped along each axis, in units of a score."""
    sample: AxisSample
    instruments: FloatArray
    """How scores in the sample's dilemmas (rows), in units of C, follow what is chosen, on average."""
    variances: FloatArray
    """Of a record's score along each axis, in units of C."""

    @classmethod
    def at(cls, start: FloatArray, sample: AxisSample, scatter: float | None, deviations: float) -> Step:
        """Lay down a step from a preference that is known, with scores clipped at so many of their deviations.

        ``scatter`` is the variance of a voter's mean score in terms of a record's; None where records are the units.
        The shorter ballots are, the nearer the two clips are to one another: a voter's single score is clipped once.
        """
        margins = sample.along @ start
        ours, theirs = slopes_and_weights(margins)[0], slopes_and_weights(-margins)[0]
        larger = np.maximum(ours, theirs)
        information = np.square(sample.along).T @ (ours * theirs) / len(margins)
        unit = 1.0 if scatter is None else math.sqrt(min(scatter, 1.0))
        deviation = np.sqrt(information + _LEAST_INFORMATION)
        instrument_clips = deviations * deviation / math.sqrt(unit)
        clips = deviations * deviation * unit
        largest = np.clip(sample.along * larger[:, None], -instrument_clips, instrument_clips)
        kept = 1.0 if unit == 1.0 else 2 * float(ndtr(deviations)) - 1
        instruments = kept * largest * ((ours + theirs) / larger)[:, None] / clips
        variances = np.square(largest / clips).T @ (ours * theirs / larger**2) / len(margins)
        return cls(start, deviations, instrument_clips, clips, sample, instruments, np.asarray(variances, np.float64))

    def expected(self, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean score, in units of C, of a crowd of this preference, and its derivative."""
        inflated = 1 + _INFLATION / self.deviations
        mean, derivative = self.sample.instrumented(self.instruments / 2, inflated * preference)
        return mean - self._at_the_start, inflated * derivative + np.diag(_LEAST_INFORMATION / self.clips)

    @cached_property
    def _at_the_start(self) -> FloatArray:
        return self.sample.instrumented(self.instruments / 2, self.start)[0]

    def doubt(self, fit: ScoreFit, noise: float, design: FloatArray) -> FloatArray:
        """Return a bound on what an unshrunk estimate may be wrong by along each axis, beside noise and sampling.

        A part of it goes with the way from the start. That is not made of noise: so noise of this variance on each mean
        is taken off the way of the unshrunk estimate, down to that of the most probable preference.
        ``design`` is how far, relatively, mean squares along the axes may be from those of the sample.
        """
        way = np.square(fit.center - self.start) - noise * np.square(fit.gain).sum(axis=1)
        moved = np.sqrt(np.maximum(way, np.square(fit.mean - self.start)))
        return np.asarray(clip_doubt(self.deviations) * np.abs(fit.center) + (STEP_DOUBT + design) * moved, np.float64)


def clip_doubt(deviations: float) -> float:
    """Return how far, relatively, a clip at so many deviations may move a preference, beyond its usual inflation."""
    return CLIP_DOUBT * LEAST_DEVIATIONS / max(deviations, LEAST_DEVIATIONS)


def clip_in_deviations(noise: float, scatter: float | None, directions: int) -> float:
    """Return where to clip scores, so that noise (a deviation, in units of the clip) and the clip's bias are alike.

    In units of a preference, the noise is about d v noise for a clip at d of the deviations v of a unit's score, and
    the bias CLIP_DOUBT LEAST_DEVIATIONS / d of what the preference is along an axis, a priori.
    """
    bias = CLIP_DOUBT * LEAST_DEVIATIONS * prior_deviation(directions)
    unit = 1.0 if scatter is None else math.sqrt(min(scatter, 1.0))
    return min(max(math.sqrt(bias / (noise * unit)), LEAST_DEVIATIONS), MOST_DEVIATIONS)


def widened(belief: Belief, left_out: int) -> Belief:
    """Return a belief that is about the directions that factors leave out, too: their prior."""
    axes = len(belief.mean)
    covariance = np.eye(axes + left_out) * rest_deviation(left_out) ** 2
    covariance[:axes, :axes] = belief.covariance
    return Belief(np.concatenate([belief.mean, np.zeros(left_out)]), covariance)


def doubted(belief: Belief, size: float, along: FloatArray) -> Belief:
    """Return a belief that may be off by a part of its size, and by so much along each axis."""
    covariance = belief.covariance + size**2 * np.outer(belief.mean, belief.mean) + np.diag(along**2)
    return Belief(belief.mean, covariance)
