"""From the mean of voters' clipped mean scores to the crowd's preference, where nobody knows the ballots' lengths.

A voter's score along an axis of the public design is the mean over her records; it is divided by a public clip c and
kept within [-1, 1], so that no voter weighs more than another. What is seen of the crowd, through noise, is the mean of
these numbers along each axis, and the mean over voters of 1 / n, where n is the length of a ballot: short ballots
scatter more than long ones, so more of them is clipped. How much, is a model's (``ballot_means``).

The clipped means tell the direction, and 1 / n makes the size right. For each 1 / n of a grid, the most probable gamma
under its prior is found and what is unknown of it (``moments``). The results are mixed by the probability of 1 / n: its
prior times the likelihood of what was seen. A priori, log v ~ N(log v_0, 0.8^2) where the loudness is
v = 1 / n + SCORE_DISAGREEMENT^2, the variance of a mean of unit records of voters who disagree, and v_0 that of a
ballot of all records; the width lets ballots be a tenth as long, and what was seen soon outweighs it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.estimation.moments import Belief, ScoreFit, fit_scores

SCORE_DISAGREEMENT = 0.15
"""Deviation of voters' own mean scores around the crowd's, in units of a record's: about what voters show who differ by
0.25 along each of nine axes (``guess.most_alike`` tells how that follows). It affects accuracy only."""
LONGEST = 100
"""Ballots of more records are told as ballots of so many."""

_LOUDNESS_WIDTH = 0.8
_NODES = 9
_REFINEMENTS = 4
_NEGLIGIBLE = 1e-4


class VoterMeans(Protocol):
    """A model of voters' clipped mean scores, such as ``BallotMeans``."""

    def expected(self, inverse_length: float, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means along the axes in a crowd of this preference, and their derivative by it."""


@dataclass(frozen=True)
class ClippedFit:
    """The preference along the axes that explains clipped means, and what is not known of it."""

    mean: FloatArray
    """Posterior mean, over all lengths."""
    covariance: FloatArray
    """Posterior covariance, over all lengths."""
    center: FloatArray
    """The estimate without a prior on the preference, linear in what was seen: its error is the gain times theirs."""
    gain: FloatArray
    """The derivative of the center in the clipped means."""
    inverse_length: float
    """Posterior mean of 1 / n, at which center and gain are taken."""
    stretch: FloatArray
    """Covariance of the center over what is not known of the lengths: nearly along the center itself."""


def loudness(inverse_length: float) -> float:
    """Return the variance of a voter's mean score in terms of a record's."""
    return inverse_length + SCORE_DISAGREEMENT**2


def voter_clip(ballot_length: int) -> float:
    """Return the deviation of a voter's mean score over a whole ballot."""
    return math.sqrt(loudness(1 / ballot_length))


def fit_clipped_means(
    voters: VoterMeans,
    observed: FloatArray,
    covariance: FloatArray,
    told: tuple[float, float],
    ballot_length: int,
) -> ClippedFit:
    """Fit a preference along the axes to clipped means with errors of this covariance.

    ``told`` is the mean of 1 / n with the variance of its error, ``ballot_length`` that of a ballot of all records.
    """
    precision = np.linalg.inv(covariance)
    prior = Belief.before(len(observed))
    fits: dict[float, tuple[ScoreFit, float]] = {}

    def fit_at(log_loudness: float) -> tuple[ScoreFit, float]:
        """Return the fit, and the logarithm of how probable the lengths are."""
        if log_loudness not in fits:
            inverse_length = _inverse_length(log_loudness)
            nearest = min(fits, key=lambda other: abs(other - log_loudness), default=None)
            start = None if nearest is None else fits[nearest][0].mean
            expected = partial(voters.expected, inverse_length)
            fit = fit_scores(expected, observed, covariance, prior, start)
            miss = observed - expected(fit.mean)[0]
            loss = float(miss @ precision @ miss + fit.mean @ np.linalg.solve(prior.covariance, fit.mean))
            evidence = 0.5 * (float(np.linalg.slogdet(fit.covariance)[1]) - loss)
            usual = (log_loudness - math.log(loudness(1 / ballot_length))) / _LOUDNESS_WIDTH
            fits[log_loudness] = fit, evidence - 0.5 * ((inverse_length - told[0]) ** 2 / told[1] + usual**2)
        return fits[log_loudness]

    low, high = (math.log(loudness(end)) for end in (1 / LONGEST, 1.0))
    for _ in range(_REFINEMENTS):
        nodes = np.linspace(low, high, _NODES)
        logs = np.array([fit_at(node)[1] for node in nodes.tolist()])
        weights = np.exp(logs - logs.max())
        heavy = np.flatnonzero(weights > _NEGLIGIBLE)
        first = max(heavy[0] - 1, 0)
        last = min(heavy[-1] + 1, _NODES - 1)
        if last - first > _NODES // 2:
            break
        low, high = nodes[first], nodes[last]
    weights /= weights.sum()

    chosen = [fit_at(node)[0] for node in nodes.tolist()]
    means, centers = (np.array([getattr(fit, name) for fit in chosen]) for name in ("mean", "center"))
    mean = weights @ means
    inverse_length = float(weights @ [_inverse_length(node) for node in nodes.tolist()])
    best = fit_scores(partial(voters.expected, inverse_length), observed, covariance, prior, mean)
    within = np.tensordot(weights, np.array([fit.covariance for fit in chosen]), 1)
    return ClippedFit(
        mean,
        within + _scatter(weights, means - mean),
        best.center,
        best.gain,
        inverse_length,
        _scatter(weights, centers - best.center),
    )


def _inverse_length(log_loudness: float) -> float:
    return math.exp(log_loudness) - SCORE_DISAGREEMENT**2


def _scatter(weights: FloatArray, gaps: FloatArray) -> FloatArray:
    return np.asarray((gaps * weights[:, None]).T @ gaps, np.float64)


@dataclass(frozen=True)
class ClippedNormal:
    """The law of clip(s / c, -1, 1) where s is normal, an entry for each axis."""

    centre: FloatArray
    variance: FloatArray
    clip: float

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """The clip's upper and lower end, in deviations from the centre."""
        deviation = np.sqrt(self.variance)
        return (self.clip - self.centre) / deviation, (-self.clip - self.centre) / deviation

    @cached_property
    def kept(self) -> FloatArray:
        """P(|s| < c)."""
        above, below = self._ends
        return np.asarray(ndtr(above) - ndtr(below))

    @property
    def mean(self) -> FloatArray:
        """The mean of the clipped."""
        above, below = self._ends
        inside = self.centre * self.kept - np.sqrt(self.variance) * (_density(above) - _density(below))
        return np.asarray(inside / self.clip + ndtr(-above) - ndtr(below))

    @property
    def slope(self) -> FloatArray:
        """The derivative of the mean in the centre."""
        return self.kept / self.clip

    @property
    def bend(self) -> FloatArray:
        """The derivative of the mean in the variance."""
        above, below = self._ends
        return (_density(below) - _density(above)) / (2 * self.clip * np.sqrt(self.variance))


def _density(x: FloatArray) -> FloatArray:
    return np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)
