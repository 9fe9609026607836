"""Accuracy: the share of test pairs that are decided rightly, and its mean over crowds with a 95 % interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from crowdveil.arrays import FloatArray, IntArray


def sides(pairs: npt.NDArray[Any], learned: FloatArray) -> FloatArray:
    """Return which side of each pair (rows) each learned parameter (rows) chooses: 1, -1, or 0 where indifferent."""
    result: FloatArray = np.sign(pairs @ learned.T)
    return result


def share(chosen: FloatArray, expected: FloatArray | float) -> FloatArray:
    """Return the share of pairs on which each parameter chose the expected side.

    Where either is indifferent it is counted as half right: a coin would be.
    """
    result: FloatArray = (1 + np.mean(chosen * expected, axis=0)) / 2
    return result


def same_side(pairs: npt.NDArray[Any], truth: FloatArray, learned: FloatArray) -> FloatArray:
    """Return, for each learned parameter (rows), the share of pairs decided as the truth decides them."""
    return share(sides(pairs, learned), sides(pairs, truth[None]))


def on_all_gaussian_pairs(truth: FloatArray, learned: FloatArray) -> FloatArray:
    """Return what ``same_side`` tends to as Gaussian pairs become many: 1 - angle / pi.

    A Gaussian difference has a uniformly random direction; it lies between the two hyperplanes with probability
    angle / pi. Parameters are along the last axis. A parameter of length zero decides nothing: one half.
    """
    lengths = np.linalg.norm(truth, axis=-1) * np.linalg.norm(learned, axis=-1)
    product = np.sum(truth * learned, axis=-1)
    cosine = np.divide(product, lengths, out=np.zeros_like(product), where=lengths > 0)
    result: FloatArray = 1 - np.arccos(np.clip(cosine, -1, 1)) / np.pi
    return result


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


@dataclass(frozen=True)
class ClusteredMean:
    """The mean of values of which those in one cluster are one draw, with its deviation (a sandwich estimate)."""

    estimate: float
    deviation: float
    """Infinite where there is one cluster."""
    clusters: int

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return float(stdtrit(max(self.clusters - 1, 1), (1 + CONFIDENCE) / 2)) * self.deviation

    @property
    def interval(self) -> Interval:
        """The mean with its interval."""
        return Interval(self.estimate, self.estimate - self.half_width, self.estimate + self.half_width)


def clustered_mean(values: FloatArray, clusters: IntArray) -> ClusteredMean:
    """Return the mean of values that are numbered by cluster, in any way."""
    estimate = float(values.mean())
    _, places = np.unique(clusters, return_inverse=True)
    sums = np.bincount(places, values - estimate)
    if len(sums) == 1:
        return ClusteredMean(estimate, np.inf, 1)
    deviation = float(np.sqrt(sums @ sums * len(sums) / (len(sums) - 1))) / len(values)
    return ClusteredMean(estimate, deviation, len(sums))


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
