"""Means over crowds with their 95 % intervals (Student's t)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from crowdveil.arrays import FloatArray

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate and where the truth lies with 95 % confidence."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"


def half_width(values: FloatArray, confidence: float = CONFIDENCE) -> FloatArray:
    """Return half the width of the interval of the mean over the first axis."""
    crowds = len(values)
    if crowds < 2:
        return np.full(values.shape[1:], np.inf)
    result: FloatArray = stdtrit(crowds - 1, (1 + confidence) / 2) * values.std(axis=0, ddof=1) / np.sqrt(crowds)
    return result


def mean(values: FloatArray, confidence: float = CONFIDENCE) -> Interval:
    """Return the mean over crowds. Of the difference of two values of the same crowds, it is a paired comparison."""
    estimate, half = float(np.mean(values)), float(half_width(values, confidence))
    return Interval(estimate, estimate - half, estimate + half)


def difference(first: FloatArray, second: FloatArray) -> Interval:
    """Return the difference of the means of two independent sets of crowds (Welch)."""
    estimate = float(first.mean() - second.mean())
    parts = [float(values.var(ddof=1)) / len(values) for values in (first, second)]
    if sum(parts) == 0:
        return Interval(estimate, estimate, estimate)
    freedom = sum(parts) ** 2 / sum(p**2 / (len(v) - 1) for p, v in zip(parts, (first, second), strict=True))
    half = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * sum(parts) ** 0.5
    return Interval(estimate, estimate - half, estimate + half)


def ratio(numerator: FloatArray, denominator: FloatArray) -> Interval:
    """Return the ratio of the means of two values of the same crowds (delta method)."""
    bottom = float(denominator.mean())
    estimate = float(numerator.mean()) / bottom
    half = float(half_width(numerator - estimate * denominator)) / bottom
    return Interval(estimate, estimate - half, estimate + half)
