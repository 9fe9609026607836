"""The dilemmas of a file that the study's generator did not draw: the public design, exponentially tilted.

People choose which dilemmas to answer, and files are filtered. The *moments* of a dilemma x along the axes of the
public design are 2 min(x_i^2 / 4, 1) - 1 for each axis, and x_i x_j / 2 clipped to [-1, 1] for each pair. We model a
file's dilemmas as the generator's, but e^(lambda . moments) times as frequent: of all distributions with these mean
moments, this is the one nearest to the generator's. A file matches the generator in most moments and is far from it in
a few (say, a kind of dilemma that was left out). So the prior on each lambda is TILT times Student's t with three
degrees of freedom. Noisy mean moments with a known error covariance C then give the posterior mode of lambda by
Gauss-Newton: with F the covariance of the moments, the curvature is F C^-1 F + 4 / (3 TILT^2 + lambda^2). Without data,
the prior remains, and with it the doubt.

The number of pairs grows with the square of the axes. Var lambda = 3 TILT^2, and a product has a variance of about 0.2.
With more than a dozen axes the prior alone would make a file's dilemmas e times as frequent or as rare as the
generator's. Beyond that only squares are reported, and products are assumed to be those of the generator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numba
import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.estimation.design import Design, measured_design, weighted_squares
from crowdveil.estimation.dilemma_moments import product_deviation, shown_range
from crowdveil.study.study import Study

TILT = 0.15
"""Prior scale of lambda: most moments are within a third as frequent as the generator's, and a few are anything."""
_FREEDOM = 3
_PAIRED_AXES = 12
"""Maximum number of axes at which products are reported."""
_SQUARE = 4.0
_PRODUCT = 2.0
_DILEMMAS = 15_000
_ROUNDS = 40
_REPEATS = 8
_SETTLED = 1e-4
_LONGEST_STEP = 1.0
_REPORTED = 2.0
"""Standard deviations of a mean square that was reported, within which it is taken to be."""
_LEAST_SHOWN = 0.1
"""Least mean square in any direction. A sample that noisy reports have tilted may show nothing at all in one."""


def moment_count(axes: int) -> int:
    """Return the number of moments: the squares first."""
    return axes * (axes + 1) // 2 if axes <= _PAIRED_AXES else axes


def moment_axes(axes: int) -> tuple[IntArray, IntArray]:
    """Return the two axes of each moment, which are the same for a square."""
    squares = np.arange(axes)
    first, second = np.triu_indices(axes, 1)
    products = moment_count(axes) - axes
    return np.concatenate([squares, first[:products]]), np.concatenate([squares, second[:products]])


def moments(along: FloatArray) -> FloatArray:
    """Return the moments of dilemmas along the axes (rows), each within [-1, 1]."""
    first, second = moment_axes(along.shape[1])
    result = np.empty((len(along), len(first)))
    _fill_moments(along, first, second, result)
    return result


@numba.njit(cache=True, nogil=True)
def _fill_moments(along: Any, first: Any, second: Any, result: Any) -> None:
    for i in range(len(along)):
        for j in range(len(first)):
            result[i, j] = moment(along[i, first[j]], along[i, second[j]], first[j] == second[j])


@numba.njit(cache=True, nogil=True)
def moment(x: Any, y: Any, square: Any) -> Any:
    """Return the moment of a dilemma that is x and y along its two axes."""
    if square:
        return 2 * min(x * y / _SQUARE, 1.0) - 1
    return min(max(x * y / _PRODUCT, -1.0), 1.0)


def moment_variance(study: Study) -> float:
    """Return the variance of a moment over a study's own dilemmas, averaged over all moments."""
    return float(np.diag(_moment_covariance(study)).mean())


def prior_variance(study: Study) -> FloatArray:
    """Return the prior variance of each mean moment of a file: what is known of it before any report."""
    return np.asarray(
        _FREEDOM / (_FREEDOM - 2) * TILT**2 * np.square(_moment_covariance(study)).sum(axis=1), np.float64
    )


@lru_cache(maxsize=32)
def _moment_covariance(study: Study) -> FloatArray:
    every = moments(measured_design(study).along[:_DILEMMAS])
    return np.atleast_2d(np.cov(every, rowvar=False, bias=True))


@dataclass(frozen=True)
class TiltedDesign:
    """A sample that models a file's dilemmas, and the uncertainty of its tilt."""

    differences: FloatArray
    """Dilemmas in model units, one per row."""
    moments: FloatArray
    """Moments of each dilemma."""
    noise: FloatArray
    """Covariance of lambda due to errors in the mean moments."""
    untold: FloatArray
    """Covariance of the prior's shrinkage of lambda toward zero."""
    spread: FloatArray
    """Posterior covariance of lambda."""
    told: FloatArray
    """Mean moments as reported."""
    errors: FloatArray
    """Covariance of their errors."""

    def shown(self, along: FloatArray, direction: FloatArray) -> tuple[float, float]:
        """Return bounds on the mean square of dilemmas in a direction along the axes, relative to that in the sample.

        ``along`` is the sample along the axes. Far from the clips, x_i^2 is 2 (m + 1), and x_i x_j is 2 m, of the
        moment m. So the reported moments tell the mean square without a prior, to within _REPORTED deviations of their
        errors, and of what to expect of products that were not reported. What is usual of files (``shown_range``)
        bounds it, too, unless the reports contradict that.
        """
        u = direction / max(float(np.linalg.norm(direction)), np.finfo(float).tiny)
        sampled = max(float(np.square(along @ u).mean()), _LEAST_SHOWN)
        first, second = moment_axes(len(u))
        slopes = np.where(first == second, 2.0, 4.0) * u[first] * u[second]
        reported = sampled + float(slopes @ (self.told - self.moments.mean(axis=0)))
        variance = float(slopes @ self.errors @ slopes)
        if len(first) == len(u):
            variance += 2 * (1 - float(np.sum(u**4))) * product_deviation(len(u)) ** 2
        reach = _REPORTED * math.sqrt(variance)
        low, high = max(reported - reach, _LEAST_SHOWN), max(reported + reach, _LEAST_SHOWN)
        least, most = shown_range(len(u))
        if low < most and high > least:
            low, high = max(low, least), min(high, most)
        return low / sampled, high / sampled


def tilted(design: Design, told: FloatArray, covariance: FloatArray) -> TiltedDesign:
    """Tilt a study's design toward mean moments whose errors have this covariance."""
    every = moments(design.along[:_DILEMMAS])
    precision = np.linalg.inv(covariance)
    tilt = np.zeros(len(told))
    for _ in range(_ROUNDS):
        weights = _weights(every, tilt)
        mean, fisher = _mean_and_covariance(every, weights)
        prior = _prior(tilt)
        downhill = fisher @ precision @ (told - mean) - prior @ tilt
        step = np.linalg.solve(fisher @ precision @ fisher + prior, downhill)
        tilt = tilt + step / max(1.0, float(np.abs(step).max()) / _LONGEST_STEP)
        if np.abs(step).max() <= _SETTLED:
            break
    weights = _weights(every, tilt)
    _, fisher = _mean_and_covariance(every, weights)
    # Systematic resampling: as many dilemmas again, each in proportion to its weight.
    rows = np.searchsorted(np.cumsum(weights), (np.arange(len(weights)) + 0.5) / len(weights))
    rows = np.minimum(rows, len(weights) - 1)
    told_of = fisher @ precision @ fisher
    prior = _prior(tilt)
    spread = np.linalg.inv(told_of + prior)
    # Student's t is a normal with unknown precision. Given lambda and its variance v, the expected precision is
    # 4 / (3 TILT^2 + lambda^2 + v) (mean field).
    known = spread
    for _ in range(_REPEATS):
        known = np.linalg.inv(told_of + _prior(tilt, np.diag(known)))
    return TiltedDesign(
        design.differences[rows],
        every[rows],
        noise=np.asarray(spread @ told_of @ spread, np.float64),
        # At its mode, Student's t is more curved than a normal of the same variance.
        untold=np.asarray((_FREEDOM + 1) * spread @ prior @ spread, np.float64),
        spread=np.asarray(known, np.float64),
        told=told,
        errors=covariance,
    )


def _prior(tilt: FloatArray, variance: FloatArray | float = 0.0) -> FloatArray:
    """Return the precision of the normal that approximates Student's t at a tilt, or around it."""
    return np.diag((_FREEDOM + 1) / (_FREEDOM * TILT**2 + tilt**2 + variance))


def _weights(every: FloatArray, tilt: FloatArray) -> FloatArray:
    raised = every @ tilt
    weights = np.exp(raised - raised.max())
    return np.asarray(weights / weights.sum(), np.float64)


def _mean_and_covariance(every: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = weights @ every
    return mean, len(weights) * weighted_squares(every, weights) - np.outer(mean, mean)
