"""From the crowd's mean scores to its preference: one estimator for all mechanisms that release scores.

The mean scores s of a crowd with preference beta are g(beta) on average, where g is known from the study's public
design (``Design.expected_scores``). What is released is s plus noise of a known covariance C. With a weak prior
N(0, tau^2 I) on beta, the most probable preference minimises

    (s - g(beta))' C^-1 (s - g(beta)) + |beta|^2 / tau^2,

found by Gauss-Newton. The prior keeps directions of which the noise tells nothing near zero; it hardly matters for
the others. The inverse curvature at the minimum, with the law of the noise, gives the error bars.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.estimation.design import AxisSample, Design
from crowdveil.estimation.prior import prior_deviation

PRIOR_DEVIATION = 1.0
_ROUNDS = 50
_SETTLED = 1e-6


@dataclass(frozen=True)
class MomentFit:
    """A preference fitted to noisy mean scores."""

    preference: FloatArray
    gain: FloatArray
    """The derivative of the preference in the scores, at the solution."""


def preference_from_scores(design: Design, scores: FloatArray, covariance: FloatArray) -> MomentFit:
    """Fit a preference to mean scores whose error has the given covariance."""
    precision = np.linalg.inv(covariance)
    prior = np.eye(design.directions) / PRIOR_DEVIATION**2
    preference = np.zeros(len(prior))

    def evaluate(candidate: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        mean, derivative = design.expected_scores(candidate)
        miss = scores - mean
        return float(miss @ precision @ miss + candidate @ prior @ candidate), miss, derivative

    loss, miss, derivative = evaluate(preference)
    for _ in range(_ROUNDS):
        curvature = derivative.T @ precision @ derivative + prior
        downhill = derivative.T @ precision @ miss - prior @ preference
        step = np.linalg.solve(curvature, downhill)
        reached = evaluate(preference + step)
        # Where the noise is large a full step overshoots: ask for half of what the quadratic model promises.
        while loss - reached[0] < downhill @ step / 2 and np.abs(step).max() > _SETTLED:
            step = step / 2
            reached = evaluate(preference + step)
        preference, (loss, miss, derivative) = preference + step, reached
        if np.abs(step).max() <= _SETTLED:
            break
    curvature = derivative.T @ precision @ derivative + prior
    gain = np.linalg.solve(curvature, derivative.T @ precision)
    return MomentFit(design.basis @ preference, design.basis @ gain)


@dataclass(frozen=True)
class ScoreFit:
    """A preference along the axes that explains mean scores of records, and what is not known of it."""

    mean: FloatArray
    covariance: FloatArray
    center: FloatArray
    """The estimate without a prior, linear in the scores."""
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
        while loss - reached[0] < downhill @ step / 2 and np.abs(step).max() > _SETTLED:
            step = step / 2
            reached = evaluate(preference + step)
        preference, (loss, miss, derivative) = preference + step, reached
        if np.abs(step).max() <= _SETTLED:
            break
    gain = np.asarray(np.linalg.pinv(derivative), np.float64)
    posterior = np.linalg.inv(derivative.T @ precision @ derivative + prior)
    return ScoreFit(preference, np.asarray(posterior, np.float64), preference + gain @ miss, gain)
