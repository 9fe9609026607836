"""Intervals for ratios whose numerator and denominator are both noisy, and for differences of such ratios.

The ratio e = S / n, with |e| <= 1, is an effect: S is how often one side was preferred less how often the other, n how
many pairs there were. Both may carry noise, and the voters were drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """An effect: its noisy numerator and denominator, and their uncertainty."""

    difference: float
    """S: plus less minus."""
    pairs: float
    """n: plus and minus."""
    difference_variance: float
    """Variance of the noise in S."""
    pairs_variance: float
    """Variance of the noise in n."""
    covariance: float
    """Covariance of the two noises."""
    clustering: float
    """D: S - e n has the sampling variance n D (1 - e^2). D is 1 if all pairs are independent."""

    @property
    def known(self) -> bool:
        """Whether n is distinguishable from zero; otherwise nothing is known of the effect."""
        return self.pairs > 0 and self.pairs**2 > quantile(CONFIDENCE) ** 2 * self.pairs_variance

    @property
    def estimate(self) -> float:
        """The effect, from -1 to 1; 0 if nothing is known."""
        return min(1.0, max(-1.0, self.difference / self.pairs)) if self.known else 0.0

    @property
    def standard_error(self) -> float:
        """The standard deviation of the estimate due to noise and sampling, to first order."""
        return math.sqrt(max(self._variance_at(self.estimate), 0.0)) / self.pairs if self.known else math.inf

    def _variance_at(self, e: float) -> float:
        noise = self.difference_variance - 2 * e * self.covariance + e * e * self.pairs_variance
        return noise + self.pairs * self.clustering * (1 - e * e)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return Fieller's interval: all e for which S - e n is within z standard deviations of 0.

        (S - e n)^2 <= z^2 (a - 2 b e + c e^2 + n D (1 - e^2)), with a, c and b the variances and the covariance of the
        noise, is quadratic in e. Without noise it is Wilson's interval for a share. Where the pairs cannot be told from
        none, or the quadratic has no two roots, it is the whole range.
        """
        if not self.known:
            return -1.0, 1.0
        s = self.difference
        n = self.pairs
        square = quantile(confidence) ** 2
        drawn = n * self.clustering
        leading = n * n - square * (self.pairs_variance - drawn)
        middle = s * n - square * self.covariance
        last = s * s - square * (self.difference_variance + drawn)
        discriminant = middle * middle - leading * last
        if not (leading > 0 and discriminant >= 0):
            return -1.0, 1.0
        root = math.sqrt(discriminant)
        low = max((middle - root) / leading, -1.0)
        high = min((middle + root) / leading, 1.0)
        return (low, high) if low < high else (-1.0, 1.0)


@dataclass(frozen=True)
class Difference:
    """The difference of two effects, with its interval and p-value."""

    estimate: float
    low: float
    high: float
    p_value: float


def difference(one: Ratio, other: Ratio, correlation: float = 0.0) -> Difference:
    """Return the difference of two effects (the method of variance estimates recovery).

    The distance from each estimate to the ends of its own interval stands for its error on that side (Zou and Donner
    2008), so that what Fieller's intervals know of noisy denominators is kept. Errors of effects of different people
    are not correlated.
    """
    found = one.estimate - other.estimate
    if not (one.known and other.known):
        return Difference(found, -2.0, 2.0, 1.0)
    (low_1, high_1), (low_2, high_2) = one.interval(), other.interval()
    below = _together(one.estimate - low_1, high_2 - other.estimate, correlation)
    above = _together(high_1 - one.estimate, other.estimate - low_2, correlation)
    toward_zero = below if found > 0 else above
    if one.interval() == (-1.0, 1.0) or other.interval() == (-1.0, 1.0) or not toward_zero > 0:
        return Difference(found, -2.0, 2.0, 1.0)
    p_value = 2 * (1 - NormalDist().cdf(abs(found) / (toward_zero / quantile(CONFIDENCE))))
    return Difference(found, max(found - below, -2.0), min(found + above, 2.0), p_value)


def _together(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(one * one + other * other - 2 * correlation * one * other, 0.0))


def told_apart(p_values: Sequence[float], rate: float = 1 - CONFIDENCE) -> list[bool]:
    """Decide which of several differences are there, by the procedure of Benjamini and Hochberg (1995).

    Of those that are called differences, at most this share is none, on average; where there is no difference at all,
    any is called one with at most this probability.
    """
    tests = len(p_values)
    allowed = [p for place, p in enumerate(sorted(p_values), start=1) if p <= rate * place / tests]
    return [bool(allowed and p <= allowed[-1]) for p in p_values]


def quantile(confidence: float) -> float:
    """Return how many standard deviations a normal variable keeps to with this confidence."""
    return NormalDist().inv_cdf((1 + confidence) / 2)
