"""From the mean clipped scores of a crowd's records to its preference along the axes of a public design.

The mean scores s of a crowd with preference gamma are g(gamma) on average, where g is known from public dilemmas
(``AxisSample.expected_scores``). What is released is s plus errors of a known covariance C. With the prior
N(0, tau^2 I) on gamma (``prior``), the most probable preference minimises

    (s - g(gamma))' C^-1 (s - g(gamma)) + |gamma|^2 / tau^2,

found by Gauss-Newton. The prior keeps directions of which the noise tells nothing near zero; it hardly matters for
the others. The inverse curvature at the minimum tells what is not known of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.estimation.design import AxisSample
from crowdveil.estimation.prior import prior_deviation

_ROUNDS = 50
_SETTLED = 1e-6


@dataclass(frozen=True)
class ScoreFit:
    """A preference along the axes that explains mean scores of records, and what is not known of it."""

    mean: FloatArray
    """The most probable preference."""
    covariance: FloatArray
    center: FloatArray
    """The estimate without a prior: linear in the scores, so that noise around it is symmetric."""
    gain: FloatArray
    """The derivative of the center in the scores."""


def fit_scores(sample: AxisSample, observed: FloatArray, covariance: FloatArray, clip: float) -> ScoreFit:
    """Fit a preference along the axes to mean scores whose errors have this covariance."""
    precision = np.linalg.inv(covariance)
    prior = np.eye(len(observed)) / prior_deviation(len(observed)) ** 2
    preference = np.zeros(len(observed))

    def evaluate(candidate: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        mean, derivative = sample.expected_scores(candidate, clip)
        miss = observed - mean
        return float(miss @ precision @ miss + candidate @ prior @ candidate), miss, derivative

    loss, miss, derivative = evaluate(preference)
    for _ in range(_ROUNDS):
        downhill = derivative.T @ precision @ miss - prior @ preference
        step = np.linalg.solve(derivative.T @ precision @ derivative + prior, downhill)
        reached = evaluate(preference + step)
        # Where the noise is large a full step overshoots: ask for half of what the quadratic model promises.
        while loss - reached[0] < downhill @ step / 2 and np.abs(step).max() > _SETTLED:
            step = step / 2
            reached = evaluate(preference + step)
        preference, (loss, miss, derivative) = preference + step, reached
        if np.abs(step).max() <= _SETTLED:
            break
    gain = np.asarray(np.linalg.pinv(derivative), np.float64)
    posterior = np.linalg.inv(derivative.T @ precision @ derivative + prior)
    return ScoreFit(preference, np.asarray(posterior, np.float64), preference + gain @ miss, gain)
