"""Fit a preference along the axes to noisy means of instruments.

The means of a crowd with preference gamma have expectation g(gamma), where g is known from public dilemmas
(``AxisSample.expected_scores``, ``ScoringStep.expected``). The released means are s = g(gamma) plus errors of a known
covariance C. With a prior N(m, T) on gamma, the posterior mode minimises

    (s - g(gamma))' C^-1 (s - g(gamma)) + (gamma - m)' T^-1 (gamma - m),

by Gauss-Newton. The prior keeps directions that are lost in the noise near its mean, and hardly affects the others. The
inverse curvature at the minimum is the posterior covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.estimation.prior import prior_deviation

_ROUNDS = 50
_SETTLED = 1e-5  # of the loss, which is the square of posterior deviations: 0.003 of one


@dataclass(frozen=True)
class Belief:
    """A normal distribution of a preference along the axes."""

    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def before(cls, directions: int) -> Belief:
        """Return the prior."""
        return cls(np.zeros(directions), np.eye(directions) * prior_deviation(directions) ** 2)


@dataclass(frozen=True)
class ScoreFit:
    """A preference along the axes fitted to means of instruments, and its uncertainty."""

    mean: FloatArray
    """Posterior mode."""
    covariance: FloatArray
    center: FloatArray
    """The estimate without a prior: linear in the means, so its noise is symmetric."""
    gain: FloatArray
    """Derivative of the center with respect to the means."""


ExpectedMeans = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Returns the expected means of a crowd with a given preference, and their derivative."""


def fit_scores(
    expected: ExpectedMeans,
    observed: FloatArray,
    covariance: FloatArray,
    prior: Belief,
    start: FloatArray | None = None,
) -> ScoreFit:
    """Fit a preference along the axes to means whose errors have this covariance.

    Gauss-Newton begins at ``start``, or at the prior mean.
    """
    precision, before = np.linalg.inv(covariance), np.linalg.inv(prior.covariance)
    preference = prior.mean if start is None else start

    def evaluate(candidate: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        mean, derivative = expected(candidate)
        miss = observed - mean
        moved = candidate - prior.mean
        return float(miss @ precision @ miss + moved @ before @ moved), miss, derivative

    loss, miss, derivative = evaluate(preference)
    for _ in range(_ROUNDS):
        downhill = derivative.T @ precision @ miss - before @ (preference - prior.mean)
        step = np.linalg.solve(derivative.T @ precision @ derivative + before, downhill)
        promised = float(downhill @ step)
        if promised < _SETTLED:
            break
        reached = evaluate(preference + step)
        # If the noise is large, a full step overshoots: require half the decrease that the quadratic model predicts.
        while loss - reached[0] < promised / 2 and promised > _SETTLED:
            step, promised = step / 2, promised / 2
            reached = evaluate(preference + step)
        gained = loss - reached[0]
        loss, miss, derivative = reached
        preference = preference + step
        if gained < _SETTLED:
            break
    posterior = np.linalg.inv(derivative.T @ precision @ derivative + before)
    # Linearise the unshrunk estimate at a point that shrinks to the prior mean as the noise grows. At the mode itself,
    # the noise would enter the slope, and the estimate would not be linear.
    moved = preference - prior.mean
    point = prior.mean + moved - posterior @ before @ moved
    _, miss, derivative = evaluate(point)
    gain = np.asarray(np.linalg.pinv(derivative), np.float64)
    return ScoreFit(preference, np.asarray(posterior, np.float64), point + gain @ miss, gain)
