"""From noisy means of instruments to the preference along the axes that explains them.

The means of a crowd with preference gamma are g(gamma) on average, where g is known from public dilemmas
(``AxisSample.expected_scores``, ``Step.expected``). What is released is s = g(gamma) plus errors of a known covariance
C. With a prior N(m, T) on gamma, the most probable preference minimises

    (s - g(gamma))' C^-1 (s - g(gamma)) + (gamma - m)' T^-1 (gamma - m),

found by Gauss-Newton. The prior keeps directions of which the noise tells nothing near its mean; it hardly matters for
the others. The inverse curvature at the minimum tells what is not known of it.
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
    """A preference along the axes as it is known: normal, with this mean and covariance."""

    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def before(cls, directions: int) -> Belief:
        """Return what is believed before anything is seen."""
        return cls(np.zeros(directions), np.eye(directions) * prior_deviation(directions) ** 2)


@dataclass(frozen=True)
class ScoreFit:
    """A preference along the axes that explains means of instruments, and what is not known of it."""

    mean: FloatArray
    """The most probable preference."""
    covariance: FloatArray
    center: FloatArray
    """The estimate without a prior: linear in the means, so that noise around it is symmetric."""
    gain: FloatArray
    """The derivative of the center in the means."""


Expected = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Returns the means that a crowd of a preference shows, and their derivative."""


def fit_scores(
    expected: Expected,
    observed: FloatArray,
    covariance: FloatArray,
    prior: Belief,
    start: FloatArray | None = None,
) -> ScoreFit:
    """Fit a preference along the axes to means whose errors have this covariance, beginning at a start or the prior."""
    precision, before = np.linalg.inv(covariance), np.linalg.inv(prior.covariance)
    preference = prior.mean if start is None else start

    def evaluate(candidate: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        mean, derivative = expected(candidate)
        miss, moved = observed - mean, candidate - prior.mean
        return float(miss @ precision @ miss + moved @ before @ moved), miss, derivative

    loss, miss, derivative = evaluate(preference)
    for _ in range(_ROUNDS):
        downhill = derivative.T @ precision @ miss - before @ (preference - prior.mean)
        step = np.linalg.solve(derivative.T @ precision @ derivative + before, downhill)
        promised = float(downhill @ step)
        if promised < _SETTLED:
            break
        reached = evaluate(preference + step)
        # Where the noise is large a full step overshoots: ask for half of what the quadratic model promises.
        while loss - reached[0] < promised / 2 and promised > _SETTLED:
            step, promised = step / 2, promised / 2
            reached = evaluate(preference + step)
        gained, (loss, miss, derivative) = loss - reached[0], reached
        preference = preference + step
        if gained < _SETTLED:
            break
    posterior = np.linalg.inv(derivative.T @ precision @ derivative + before)
    # The unshrunk estimate is a line through a point that is nearer to the prior's mean the more is noise: were it the
    # most probable preference itself, noise would bend the line.
    moved = preference - prior.mean
    point = prior.mean + moved - posterior @ before @ moved
    _, miss, derivative = evaluate(point)
    gain = np.asarray(np.linalg.pinv(derivative), np.float64)
    return ScoreFit(preference, np.asarray(posterior, np.float64), point + gain @ miss, gain)
