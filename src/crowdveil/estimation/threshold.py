"""A third answer: a threshold beside the probit, fitted from choices that a coin has completed.

Where people may answer "treat them equally", a crowd's margin t = beta . (x - z) is read with a threshold tau >= 0:

    P(x) = Phi(t - tau),    P(z) = Phi(-t - tau),    and the rest would toss a coin.

Do what those people ask for: toss a fair coin wherever the answer is neither. Then x comes out with probability

    g(t) = Phi(t - tau) + (1 - Phi(t - tau) - Phi(-t - tau)) / 2 = (Phi(t - tau) + Phi(t + tau)) / 2,

the law of t + Z + tau R > 0 with Z normal and R = +1 or -1, both equally likely. Its noise has the variance
1 + tau^2, so a probit of the completed choices finds a shrunk preference, about beta / sqrt(1 + tau^2). (A probit of
the decided choices alone is different: it fits P(x) / (P(x) + P(z)), which is steeper than Phi(t), and does not
identify tau.) One more number, the share of indifferent choices, identifies the threshold. Both are fitted together:
for each tau, we find the stretch that solves the score equation of the probit on the study's public dilemmas, and with
it the share of indifferent choices that tau implies.

Exactly and without privacy, which is what a release of three answers estimates, preference and threshold maximise the
mean over voters of her mean ln P of what she answered, where with t = beta . (x - z) P(x) = Phi(t - tau), P(z) = Phi(-t
- tau), and the rest is neither. In (beta, tau) the logarithm of each of the three is concave (an interval of a log-
concave law), so there is one maximum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

from crowdveil.arrays import FloatArray
from crowdveil.ballots.ballots import BallotSource
from crowdveil.errors import ImpossibleEstimate
from crowdveil.estimation.crowd_preference import Weighting

LARGEST_TAU = 3.0
"""Largest tau: at it, a crowd with no preference would toss a coin in 99.7 % of its choices."""
_STEPS, _FINE_STEPS = 31, 3001
_ROUNDS = 60
_SETTLED = 1e-12
"""A step of the stretch that changes nothing."""
_DILEMMAS = 4000


@dataclass(frozen=True)
class Threshold:
    """The posterior of a crowd's threshold."""

    tau: float
    """The posterior mean."""
    deviation: float
    low: float
    """The ends of a 95 % interval."""
    high: float
    stretch: float
    """Ratio of the crowd's preference to that of the completed choices."""
    stretch_deviation: float

    def less_sure(self, deviation: float) -> Threshold:
        """Return the threshold with an independent error of this standard deviation added to tau."""
        both = math.hypot(self.deviation, deviation)
        wider = both / self.deviation if self.deviation > 0 else 1.0
        extra = 0.0 if self.deviation > 0 else 2 * deviation
        low = max(self.tau - wider * (self.tau - self.low) - extra, 0.0)
        return replace(self, deviation=both, low=low, high=self.tau + wider * (self.high - self.tau) + extra)


def fit_threshold(margins: FloatArray, spreads: FloatArray, share: float, deviation: float) -> Threshold:
    """Find the threshold of a crowd, given a probit of its completed choices and the share of indifferent ones.

    ``margins`` are the completed choices' margins on dilemmas like those that were asked, and ``spreads`` their
    standard errors. ``deviation`` is the standard error of the share, for noise and sampling together. The prior on the
    share is Beta(1, 2), the marginal of a uniform prior over the shares of three answers.
    """
    coarse, taus = (np.linspace(0.0, LARGEST_TAU, steps) for steps in (_STEPS, _FINE_STEPS))
    drawn = _thinned(margins, spreads)
    stretched = [(tau, stretch_for(drawn, tau)) for tau in coarse.tolist()]
    implied = [float(three_shares(drawn * stretch, tau)[:, 2].mean()) for tau, stretch in stretched]
    stretches = CubicSpline(coarse, [stretch for _, stretch in stretched])(taus)
    shares = CubicSpline(coarse, implied)(taus)
    weights = np.maximum(np.gradient(shares), 0) * np.maximum(1 - shares, 0)
    weights = weights * np.exp(-0.5 * np.square((shares - share) / max(deviation, 1e-6)))
    if not weights.sum() > 0:  # the noise has carried the share beyond all that is possible: the nearest is left
        weights = np.zeros(len(taus))
        weights[int(np.argmin(np.abs(shares - share)))] = 1.0
    weights = weights / weights.sum()
    tau, stretch = float(weights @ taus), float(weights @ stretches)
    below = np.cumsum(weights)
    low, high = (float(np.interp(level, below, taus)) for level in (0.025, 0.975))
    return Threshold(
        tau,
        float(np.sqrt(weights @ np.square(taus - tau))),
        min(low, tau),
        max(high, tau),
        stretch,
        float(np.sqrt(weights @ np.square(stretches - stretch))),
    )


def stretch_for(margins: FloatArray, tau: float) -> float:
    """Return s such that a probit of completed choices has these margins if the crowd's are s times as large.

    The probit maximises the likelihood, so its score along itself is zero: the mean of w(u) u (g(s u) - Phi(u)), where
    w = phi / (Phi (1 - Phi)).

    That mean grows with s, and its root lies between 1 and k = exp(tau^2 / 2). For u > 0, g(u) <= Phi(u), as g
    falls with tau: phi(u + tau) <= phi(u - tau). And g(k u) >= Phi(u): the difference is 0 at 0 and at infinity, and
    its derivative, phi(u) (exp(-(k^2 - 1) u^2 / 2) cosh(k tau u) - 1), is first positive, then negative, because
    log cosh(k tau u) is concave in u^2 and begins with a slope of k^2 tau^2 / 2 >= (k^2 - 1) / 2.
    """
    moving = np.abs(margins[margins != 0])  # the mean is even in u, and read in the tail where it keeps its digits
    stretch = float(np.sqrt(1 + tau**2))
    if not len(moving):
        return stretch
    weights = np.exp(-0.5 * moving**2 - log_ndtr(moving) - log_ndtr(-moving)) * moving
    against, pull = ndtr(-moving), weights * moving
    low, high = 1.0, math.exp(tau**2 / 2)
    for _ in range(_ROUNDS):
        near, far = stretch * moving - tau, stretch * moving + tau
        excess = float(weights @ (against - (ndtr(-near) + ndtr(-far)) / 2))
        slope = float(pull @ (np.exp(-0.5 * near**2) + np.exp(-0.5 * far**2)))
        slope /= 2 * np.sqrt(2 * np.pi)
        if abs(excess) <= _SETTLED * slope:
            break
        low, high = (low, stretch) if excess > 0 else (stretch, high)
        newton = stretch - excess / slope if slope > 0 else high
        stretch = newton if low < newton < high else (low + high) / 2
    return stretch


def three_shares(margins: FloatArray, tau: float, variances: FloatArray | float = 0.0) -> FloatArray:
    """Return P(x), P(z) and the share of indifferent people for each margin, in three columns.

    ``variances`` are those of normal errors in the margins (less the threshold), over which the shares are averaged.
    """
    scale = np.sqrt(1 + np.asarray(variances))
    first, second = ndtr((margins - tau) / scale), ndtr((-margins - tau) / scale)
    return np.stack([first, second, np.maximum(1 - first - second, 0.0)], axis=-1)


def _thinned(margins: FloatArray, spreads: FloatArray) -> FloatArray:
    """Subsample the dilemmas, and draw a margin for each from its distribution, with a fixed seed."""
    places = np.linspace(0, len(margins) - 1, min(len(margins), _DILEMMAS)).astype(np.int64)
    drawn = np.random.default_rng(0).standard_normal(len(places))
    return np.asarray(margins[places] + spreads[places] * drawn, np.float64)


_LEAST = 1e-9
_RIDGE = 1e-9
"""Ridge that keeps directions without variation at zero, and has no other effect."""


@dataclass(frozen=True)
class ExactThreshold:
    """The exact preference and threshold of a crowd. They protect nobody."""

    preference: FloatArray
    tau: float
    log_loss: float
    """The mean of -ln P of the answers, at the maximum."""


def exact_threshold(source: BallotSource, *, weighting: Weighting = "voters") -> ExactThreshold:
    """Fit a crowd's preference and threshold to its three answers."""
    rows, choices, weights = [], [], []
    for batch in source.batches():
        rows.append(batch.dilemmas.astype(np.float64))
        choices.append(batch.choices.astype(np.float64))
        each = np.repeat(1 / batch.counts, batch.counts) if weighting == "voters" else np.ones(batch.records)
        weights.append(each)
    dilemmas, answered, weight = np.concatenate(rows), np.concatenate(choices), np.concatenate(weights)
    if not answered.any():
        raise ImpossibleEstimate("no choice was decided: a crowd's preference needs at least one")
    weight = weight / weight.sum()

    def loss(given: FloatArray) -> tuple[float, FloatArray]:
        beta = given[:-1]
        tau = float(given[-1])
        values, slopes, by_tau = _log_shares(dilemmas @ beta, tau, answered)
        gradient = np.concatenate([(weight * slopes) @ dilemmas, [weight @ by_tau]])
        penalty = np.concatenate([_RIDGE * beta, [0.0]])
        return float(-weight @ values + _RIDGE * (beta @ beta) / 2), penalty - gradient

    start = np.append(np.zeros(dilemmas.shape[1]), 0.3)
    bounds = [(None, None)] * dilemmas.shape[1] + [(_LEAST, None)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-13, "gtol": 1e-9})
    values = _log_shares(dilemmas @ found.x[:-1], float(found.x[-1]), answered)[0]
    return ExactThreshold(np.asarray(found.x[:-1], np.float64), float(found.x[-1]), float(-weight @ values))


def _log_shares(margins: FloatArray, tau: float, choices: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ln P of each answer, and its derivatives with respect to the margin and to tau."""
    away = choices * margins - tau
    decided = log_ndtr(away)
    steep = np.exp(-0.5 * away**2 - decided) / np.sqrt(2 * np.pi)
    # The interval is read in the tail where it keeps its digits.
    low, high = -np.abs(margins) - tau, -np.abs(margins) + tau
    neither = np.maximum(ndtr(high) - ndtr(low), 1e-300)
    at_low, at_high = (np.exp(-0.5 * end**2) / np.sqrt(2 * np.pi) for end in (low, high))
    none = choices == 0
    slopes = np.where(none, -np.sign(margins) * (at_high - at_low) / neither, choices * steep)
    by_tau = np.where(none, (at_high + at_low) / neither, -steep)
    return np.where(none, np.log(neither), decided), slopes, by_tau
