"""From the mean of the voters' clipped mean scores to the crowd's preference, where nobody knows the ballots' lengths.

A voter's score along an axis of the public design is the mean over her records; it is divided by a public clip c and
kept within [-1, 1], so that no voter weighs more than another. What is seen of the crowd, through noise, is the mean of
these numbers along each axis, and the share of voters whose mean score is not clipped (the share kept).

Voters' mean scores along an axis are taken as normal. Their centre g is known from the public design and the crowd's
preference gamma (``AxisSample.expected_means``). Their variance is s^2 = v (q - g^2): q is the mean square of a
record's score, 1 for the study's own dilemmas, and v, the *loudness*, is not known: ballots of one record scatter more
than ballots of thirteen, and voters disagree. With a = (c - g) / s and b = (-c - g) / s,

    share kept              P = Phi(a) - Phi(b),
    mean of the clipped     E = (g P - s (phi(a) - phi(b))) / c + 1 - Phi(a) - Phi(b),
    its derivatives         dE/dg = P / c,   dE/ds^2 = (phi(b) - phi(a)) / (2 c s).

The clipped means tell the direction, the share kept tells v, and v makes the size right. For each v of a grid, the most
probable gamma under its prior is found by Gauss-Newton and what is unknown of it by Laplace's method. The
results are mixed by the probability of v: its prior, log v ~ N(log(1 / n + SCORE_DISAGREEMENT^2), 0.8^2) for a ballot
of all n records, times the likelihood of what was seen. The prior's mean is the variance for unit records of voters who
all answer everything; its width lets ballots be a tenth as long, and what was seen soon outweighs it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.estimation.prior import prior_deviation

SCORE_DISAGREEMENT = 0.15
"""Deviation of voters' own mean scores around the crowd's, in units of a record's. It affects accuracy only."""

_LOUDNESS_WIDTH = 0.8
_LOUDNESS_REACH = (-3.0, 4.0)  # the grid's ends, in deviations of the prior
_NODES = 9
_REFINEMENTS = 4
_NEGLIGIBLE = 1e-4
_LEAST_SCATTER = 0.05  # of (q - g^2) / q: keeps variances positive along axes whose records nearly always agree
_ROUNDS = 50
_SETTLED = 1e-5  # of the loss, which is the square of posterior deviations: 0.003 of one


class Dilemmas(Protocol):
    """Dilemmas along k axes, such as an ``AxisSample``."""

    @property
    def mean_squares(self) -> FloatArray:
        """The mean square along each axis."""

    def expected_means(self, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean of the chosen side along each axis, for a crowd of this preference, and its derivative."""


class ClippedMeans(NamedTuple):
    """What is expected of clipped means along the axes."""

    mean: FloatArray
    derivative: FloatArray
    """By the preference: a row an axis."""
    told: float
    """What tells of the loudness: the share kept over all axes, or the mean of one over the length of a ballot."""


class VoterMeans(Protocol):
    """A model of voters' mean scores: ``NormalMeans``, or ``BallotMeans``."""

    def clipped(self, preference: FloatArray, loudness: float, clips: tuple[float, float]) -> ClippedMeans:
        """Return what is expected in a crowd of this preference: means at the first clip, kept at the second."""


@dataclass(frozen=True)
class NormalMeans:
    """Voters' mean scores that are normal, with a centre and a mean square from public dilemmas."""

    dilemmas: Dilemmas

    def clipped(self, preference: FloatArray, loudness: float, clips: tuple[float, float]) -> ClippedMeans:
        """Return what is expected in a crowd of this preference."""
        squares = self.dilemmas.mean_squares
        centre, derivative = self.dilemmas.expected_means(preference)
        variance = loudness * np.maximum(squares - centre**2, _LEAST_SCATTER * squares)
        law, counted = (ClippedNormal(centre, variance, clip) for clip in clips)
        slope = law.slope - 2 * loudness * centre * law.bend
        return ClippedMeans(law.mean, slope[:, None] * derivative, float(counted.kept.mean()))


@dataclass(frozen=True)
class ClippedFit:
    """The preference along the axes that explains clipped means, and what is not known of it."""

    mean: FloatArray
    """Posterior mean, over all loudnesses."""
    covariance: FloatArray
    """Posterior covariance, over all loudnesses."""
    center: FloatArray
    """The estimate without a prior on the preference, linear in what was seen: its error is the gain times theirs."""
    gain: FloatArray
    """The derivative of the center in the clipped means."""
    loudness: float
    """Posterior mean of v, at which center and gain are taken."""
    stretch: FloatArray
    """Covariance of the center over what is not known of the loudness: nearly along the center itself."""


def voter_clip(ballot_length: int) -> float:
    """Return the public clip: the deviation of a voter's mean score over a whole ballot."""
    return math.sqrt(_expected_loudness(ballot_length))


def fit_clipped_means(
    voters: VoterMeans,
    clip: float,
    observed: FloatArray,
    covariance: FloatArray,
    kept: float,
    kept_variance: float,
    ballot_length: int,
    kept_clip: float | None = None,
) -> ClippedFit:
    """Fit a preference along the axes to clipped means with errors of this covariance, and to the share kept.

    The share kept may have been counted at another clip than the means.
    """
    clips = (clip, clip if kept_clip is None else kept_clip)
    precision: FloatArray = np.linalg.inv(covariance).astype(np.float64)
    fits: dict[float, _Fit] = {}

    def fit_at(log_loudness: float) -> _Fit:
        if log_loudness not in fits:
            nearest = min(fits, key=lambda other: abs(other - log_loudness), default=None)
            start = np.zeros(len(observed)) if nearest is None else fits[nearest].preference
            fits[log_loudness] = _fit(voters, clips, math.exp(log_loudness), observed, precision, start)
        return fits[log_loudness]

    usual = math.log(_expected_loudness(ballot_length))
    fit_at(usual)

    def log_weight(log_loudness: float) -> float:
        fit = fit_at(log_loudness)
        prior = ((log_loudness - usual) / _LOUDNESS_WIDTH) ** 2
        return fit.log_evidence - 0.5 * ((fit.kept - kept) ** 2 / kept_variance + prior)

    low, high = (usual + _LOUDNESS_WIDTH * end for end in _LOUDNESS_REACH)
    for _ in range(_REFINEMENTS):
        nodes = np.linspace(low, high, _NODES)
        logs = np.array([log_weight(node) for node in nodes.tolist()])
        weights = np.exp(logs - logs.max())
        heavy = np.flatnonzero(weights > _NEGLIGIBLE)
        first, last = max(heavy[0] - 1, 0), min(heavy[-1] + 1, _NODES - 1)
        if last - first > _NODES // 2:
            break
        low, high = nodes[first], nodes[last]
    weights /= weights.sum()

    chosen = [fits[node] for node in nodes.tolist()]
    mean = sum((w * fit.preference for w, fit in zip(weights, chosen, strict=True)), np.zeros(len(observed)))
    loudness = float(weights @ np.exp(nodes))
    best = _fit(voters, clips, loudness, observed, precision, mean)
    between = [
        w * np.outer(fit.preference - mean, fit.preference - mean) for w, fit in zip(weights, chosen, strict=True)
    ]
    within = [w * fit.covariance for w, fit in zip(weights, chosen, strict=True)]
    apart = [fit.center - best.center for fit in chosen]
    return ClippedFit(
        mean,
        np.sum(within, axis=0) + np.sum(between, axis=0),
        best.center,
        best.gain,
        loudness,
        np.sum([w * np.outer(gap, gap) for w, gap in zip(weights, apart, strict=True)], axis=0),
    )


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


def _expected_loudness(ballot_length: int) -> float:
    return 1 / ballot_length + SCORE_DISAGREEMENT**2


@dataclass(frozen=True)
class _Fit:
    """The most probable preference at one loudness."""

    preference: FloatArray
    covariance: FloatArray
    center: FloatArray
    gain: FloatArray
    kept: float
    log_evidence: float


def _fit(
    voters: VoterMeans,
    clips: tuple[float, float],
    loudness: float,
    observed: FloatArray,
    precision: FloatArray,
    start: FloatArray,
) -> _Fit:
    prior = np.eye(len(observed)) / prior_deviation(len(observed)) ** 2

    def evaluate(preference: FloatArray) -> tuple[float, FloatArray, FloatArray, float]:
        expected = voters.clipped(preference, loudness, clips)
        miss = observed - expected.mean
        loss = float(miss @ precision @ miss + preference @ prior @ preference)
        return loss, miss, expected.derivative, expected.told

    preference = start
    loss, miss, jacobian, kept = evaluate(preference)
    for _ in range(_ROUNDS):
        curvature = jacobian.T @ precision @ jacobian + prior
        downhill = jacobian.T @ precision @ miss - prior @ preference
        step = np.linalg.solve(curvature, downhill)
        promised = float(downhill @ step)
        if promised < _SETTLED:
            break
        reached = evaluate(preference + step)
        # Where the noise is large a full step overshoots: ask for half of what the quadratic model promises.
        while loss - reached[0] < promised / 2 and promised > _SETTLED:
            step, promised = step / 2, promised / 2
            reached = evaluate(preference + step)
        preference, (loss, miss, jacobian, kept) = preference + step, reached
    covariance: FloatArray = np.linalg.inv(jacobian.T @ precision @ jacobian + prior).astype(np.float64)
    gain: FloatArray = np.linalg.inv(jacobian).astype(np.float64)
    log_evidence = 0.5 * (float(np.linalg.slogdet(covariance)[1]) - loss)
    return _Fit(preference, covariance, preference + gain @ miss, gain, kept, log_evidence)
