"""The known distribution of the noise in a release: what error bars and certainty are computed from.

Six kinds exist. ``LaplaceSum``: each coordinate of the parameter carries an independent sum of Laplace variables
of known scales. ``Gaussian``: each coordinate carries an independent normal variable of known standard deviation.
``CubeNoise``: a linear map of cube noise; ``CubeSum``: a sum of several. ``CoinSum``: a linear map of means of coin
tosses. ``EmpiricalNormal``: a covariance matrix, estimated from reports that are already private. None depends on an
exact record, so all may be published.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any, ClassVar, Protocol

import numpy as np

from crowdveil.arrays import FloatArray

ROUNDING = 1e-12
"""Size below which a coordinate of a direction is rounding error, relative to the largest."""


class NoiseDistribution(Protocol):
    """The noise that privacy added to a released parameter."""

    @property
    def description(self) -> str:
        """The law in words."""

    def below(self, direction: FloatArray, margin: float) -> float:
        """Return the probability that the noise along ``direction`` is less than ``margin``."""

    def half_widths(self, confidence: float) -> FloatArray | float:
        """Return how far each coordinate's noise reaches with probability ``confidence``."""

    def half_width(self, direction: FloatArray, confidence: float) -> float:
        """Return how far the noise along ``direction`` reaches with probability ``confidence``."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""


@dataclass(frozen=True)
class LaplaceSum:
    """Independent coordinates, each the sum of ``counts[g]`` Laplace variables of scale ``scales[g]``.

    The exact noise is discrete on a grid 2^-30 of the norm bound; its continuous limit differs by less than
    one step, far below anything computed here.
    """

    scales: tuple[float, ...]
    counts: tuple[int, ...]

    @property
    def description(self) -> str:
        """The law in words."""
        if len(self.scales) == 1 and self.counts[0] == 1:
            return f"Laplace noise of scale {self.scales[0]:.4g} on each coordinate"
        return (
            f"the sum of {sum(self.counts)} independent Laplace variables on each coordinate "
            f"(standard deviation {math.sqrt(self.variance):.4g})"
        )

    @cached_property
    def variance(self) -> float:
        """Variance of one coordinate's noise."""
        return float(sum(2 * n * b * b for b, n in zip(self.scales, self.counts, strict=True)))

    def below(self, direction: FloatArray, margin: float) -> float:
        """Return P(noise along ``direction`` < ``margin``) by inverting its characteristic function.

        The characteristic function of sum_k u_k R_k is prod 1 / (1 + (b u_k t)^2)^n: real and positive.
        Gil-Pelaez with the trapezoidal rule of step h is off by at most the probability of the noise
        exceeding 2 pi / h - |margin|, and cutting at T by the integral beyond it; both are held below 1e-9.
        A single Laplace variable has a closed form.
        """
        sizes = np.abs(direction)
        used = sizes[sizes > ROUNDING * np.max(sizes, initial=0.0)]
        deviation = math.sqrt(self.variance * float(used @ used))
        if deviation == 0:
            return 0.5 if margin == 0 else float(margin > 0)
        x = margin / deviation
        if abs(x) > 40:
            return float(x > 0)
        if len(used) == sum(self.counts) == 1:
            beyond = 0.5 * math.exp(-math.sqrt(2) * abs(x))
            return 1 - beyond if x > 0 else beyond
        levels, repeats = np.unique(used, return_counts=True)
        squares = (np.outer(np.asarray(self.scales), levels) / deviation).ravel() ** 2
        powers = np.outer(self.counts, repeats).ravel()
        step = 2 * math.pi / (abs(x) + 60)
        total = 0.0
        block = 4096
        start = 0
        while True:
            t = (np.arange(start, start + block) + 1) * step
            decay = np.exp(-powers @ np.log1p(np.outer(squares, t * t)))
            total += float(np.sum(np.sin(t * x) * decay / t))
            start += block
            if decay[-1] < 1e-9 or start >= 2**21:
                break
        return min(1.0, max(0.0, 0.5 + (x * step / 2 + step * total) / math.pi))

    def half_widths(self, confidence: float) -> float:
        """Return how far each coordinate's noise reaches with probability ``confidence``."""
        if len(self.scales) == 1 and self.counts[0] == 1:
            return -self.scales[0] * math.log1p(-confidence)
        return self.half_width(np.ones(1), confidence)

    def half_width(self, direction: FloatArray, confidence: float) -> float:
        """Return how far the noise along ``direction`` reaches with probability ``confidence``."""
        deviation = math.sqrt(self.variance * float(direction @ direction))
        return _reach(lambda margin: self.below(direction, margin), deviation, confidence)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "kind": "laplace",
            "description": self.description,
            "scales": list(self.scales),
            "counts": list(self.counts),
        }


@dataclass(frozen=True)
class Gaussian:
    """Independent coordinates, each normal; the exact noise is discrete on the same fine grid."""

    deviation: float

    @property
    def description(self) -> str:
        """The law in words."""
        return f"Gaussian noise of standard deviation {self.deviation:.4g} on each coordinate"

    def below(self, direction: FloatArray, margin: float) -> float:
        """Return P(noise along ``direction`` < ``margin``)."""
        deviation = self.deviation * math.sqrt(float(direction @ direction))
        if deviation == 0:
            return 0.5 if margin == 0 else float(margin > 0)
        return NormalDist().cdf(margin / deviation)

    def half_widths(self, confidence: float) -> float:
        """Return how far each coordinate's noise reaches with probability ``confidence``."""
        return self.half_width(np.ones(1), confidence)

    def half_width(self, direction: FloatArray, confidence: float) -> float:
        """Return how far the noise along ``direction`` reaches with probability ``confidence``."""
        return NormalDist().inv_cdf((1 + confidence) / 2) * self.deviation * math.sqrt(float(direction @ direction))

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"kind": "gaussian", "description": self.description, "deviation": self.deviation}


@dataclass(frozen=True)
class CubeNoise:
    """A linear map of cube noise: ``gain`` times a vector with density proportional to exp(-|x|_max / scale).

    The vector is R U with U uniform on [-1, 1]^k and R independent of it, Gamma(k + 1) of the given scale.
    """

    scale: float
    gain: tuple[tuple[float, ...], ...]

    @property
    def description(self) -> str:
        """The law in words."""
        return f"cube noise of scale {self.scale:.4g} on the mean score, carried through to the parameter"

    @cached_property
    def matrix(self) -> FloatArray:
        """The linear map, one row per feature."""
        return np.array(self.gain)

    @classmethod
    def of(cls, scale: float, matrix: FloatArray) -> CubeNoise:
        """Return the noise for a linear map with one row per feature."""
        return cls(scale, tuple(map(tuple, matrix.tolist())))

    def deviation(self, direction: FloatArray) -> float:
        """Return the standard deviation along a direction."""
        weights = self.matrix.T @ direction
        k = self.matrix.shape[1]
        return self.scale * math.sqrt(float(weights @ weights) * (k + 1) * (k + 2) / 3)

    def characteristic(self, direction: FloatArray, points: FloatArray) -> FloatArray:
        """Return E cos(t R Y) at each t, the characteristic function along a direction.

        Given R it is the product of sin(w_j R t) / (w_j R t). The mean over R uses Gauss-Laguerre quadrature.
        """
        weights = np.abs(self.matrix.T @ direction) * self.scale
        used = weights[weights > ROUNDING * np.max(weights, initial=0.0)]
        shape = len(weights)
        radii, masses = _radii(shape)
        phases = np.outer(radii, points)
        product = np.ones_like(phases)
        for weight in used.tolist():
            product *= np.sinc(weight / math.pi * phases)
        return np.asarray(masses @ product)

    def below(self, direction: FloatArray, margin: float) -> float:
        """Return P(noise along ``direction`` < ``margin``)."""
        return self.along(direction)(margin)

    def along(self, direction: FloatArray) -> Callable[[float], float]:
        """Return the distribution function of the noise along a direction.

        The noise along a direction is R Y with Y = w . U symmetric, so P(R Y < x) = 1/2 + 1/2 E h(Y) for x >= 0, where
        h(y) = P(R < x / |y|) is known in closed form. As |Y| <= L = sum |w_j|, and h is even, h is a cosine series on
        [-L, L] and E h(Y) = c_0 + 2 sum c_n phi(pi n / L), where phi(t) = prod sin(w_j t) / (w_j t) is the
        characteristic function of Y. Cut after 2^11 terms, the series is off by about 1e-6, unless the margin is
        so small (below L / 500) that the probability is a half to three digits.
        """
        weights = np.abs(self.matrix.T @ direction) * self.scale
        used = weights[weights > 0]
        if len(used) == 0:
            return lambda margin: 0.5 if margin == 0 else float(margin > 0)
        longest = float(used.sum())
        points = np.arange(1, _TERMS + 1) / _TERMS * longest
        characteristic = np.prod(np.sinc(np.outer(used, np.arange(1, _TERMS) / longest)), axis=0)

        def below(margin: float) -> float:
            if margin == 0:
                return 0.5
            reached = np.concatenate(([1.0], _erlang_below(len(weights) + 1, abs(margin) / points)))
            coefficients = np.fft.irfft(reached)[:_TERMS]
            within = float(coefficients[0] + 2 * coefficients[1:] @ characteristic)
            return 0.5 + math.copysign(within, margin) / 2

        return below

    def half_widths(self, confidence: float) -> FloatArray:
        """Return how far each coordinate's noise reaches with probability ``confidence``."""
        return np.array([self.half_width(axis, confidence) for axis in np.eye(len(self.matrix))])

    def half_width(self, direction: FloatArray, confidence: float) -> float:
        """Return how far the noise along ``direction`` reaches with probability ``confidence``."""
        return _reach(self.along(direction), self.deviation(direction), confidence)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "kind": "cube",
            "description": self.description,
            "scale": self.scale,
            "gain": [list(row) for row in self.gain],
        }


@dataclass(frozen=True)
class CubeSum:
    """The sum of independent cube noises, each with a linear map of its own."""

    parts: tuple[CubeNoise, ...]

    @property
    def description(self) -> str:
        """The law in words."""
        scales = " and ".join(f"{part.scale:.4g}" for part in self.parts)
        return f"cube noise of scale {scales} on mean scores, carried through to the parameter"

    @property
    def covariance(self) -> FloatArray:
        """The covariance over the features."""
        maps = ((part.matrix * part.scale, part.matrix.shape[1]) for part in self.parts)
        return np.asarray(sum(m @ m.T * ((k + 1) * (k + 2) / 3) for m, k in maps), np.float64)

    def stretched(self, factor: float) -> CubeSum:
        """Return the distribution of this noise multiplied by a factor."""
        return CubeSum(tuple(CubeNoise.of(part.scale, part.matrix * factor) for part in self.parts))

    def below(self, direction: FloatArray, margin: float) -> float:
        """Return P(noise along ``direction`` < ``margin``)."""
        return self._along(direction)(margin)

    def _along(self, direction: FloatArray) -> Callable[[float], float]:
        """Return the distribution function of the noise along a direction.

        Invert the product of the parts' characteristic functions (Gil-Pelaez) by the trapezoidal rule. With step h, the
        error is at most the probability that the noise exceeds 2 pi / h - |margin|, that is 30 standard deviations.
        """
        if len(self.parts) == 1:
            return self.parts[0].along(direction)
        deviation = math.sqrt(sum(part.deviation(direction) ** 2 for part in self.parts))
        if deviation == 0:
            return lambda margin: 0.5 if margin == 0 else float(margin > 0)
        points = _POINT_STEP * np.arange(1, _POINTS + 1, dtype=np.float64)
        product = np.ones(_POINTS)
        for part in self.parts:
            product *= part.characteristic(direction / deviation, points)

        def below(margin: float) -> float:
            x = margin / deviation
            if abs(x) > _FURTHEST:
                return float(x > 0)
            total = _POINT_STEP * (x / 2 + float(np.sin(points * x) / points @ product))
            return min(1.0, max(0.0, 0.5 + total / math.pi))

        return below

    def half_widths(self, confidence: float) -> FloatArray:
        """Return how far each coordinate's noise reaches with probability ``confidence``."""
        return np.array([self.half_width(axis, confidence) for axis in np.eye(len(self.parts[0].matrix))])

    def half_width(self, direction: FloatArray, confidence: float) -> float:
        """Return how far the noise along ``direction`` reaches with probability ``confidence``."""
        deviation = math.sqrt(sum(part.deviation(direction) ** 2 for part in self.parts))
        return _reach(self._along(direction), deviation, confidence)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "kind": "cubes",
            "description": self.description,
            "parts": [{"scale": part.scale, "gain": [list(row) for row in part.gain]} for part in self.parts],
        }


_FURTHEST = 20.0
"""Standard deviations beyond which the distribution of a sum of cubes is not computed."""
_POINT_STEP = 2 * math.pi / (30.0 + _FURTHEST)
_POINTS = 96
"""Number of points; the characteristic function is truncated at 12 over a standard deviation."""
_RADII = 48


@lru_cache(maxsize=64)
def _radii(dimension: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes and weights of Gauss-Laguerre quadrature for a Gamma(dimension + 1) radius."""
    points, masses = np.polynomial.laguerre.laggauss(_RADII)
    logs = np.log(masses) + dimension * np.log(points) - math.lgamma(dimension + 1)
    kept = logs > _NEGLIGIBLE
    return points[kept], np.exp(logs[kept])


_NEGLIGIBLE = -40.0
_TERMS = 2**11
_MOST_TERMS_OF_ERLANG = 500


def _erlang_below(shape: int, values: FloatArray) -> FloatArray:
    """Return P(R < v) for a Gamma variable R of integer shape and scale 1: 1 - sum of e^-v v^j / j! for j < shape."""
    if shape > _MOST_TERMS_OF_ERLANG:
        from scipy.special import gammainc

        return np.asarray(gammainc(shape, values))
    v = np.minimum(values, 745.0)  # beyond, e^-v is 0, and so is the sum to 20 digits
    term = np.exp(-v)
    total = term.copy()
    for j in range(1, shape):
        term *= v / j
        total += term
    return 1 - total


@dataclass(frozen=True)
class _NormalBars:
    """A distribution with a known or bounded covariance, whose error bars use the normal approximation."""

    covariance: tuple[tuple[float, ...], ...]

    kind: ClassVar[str]
    description: ClassVar[str]
    """The law in words."""

    @cached_property
    def matrix(self) -> FloatArray:
        """The covariance V: the variance along u is u' V u."""
        return np.array(self.covariance)

    def half_widths(self, confidence: float) -> FloatArray:
        """Return the half-width of each coordinate's interval at ``confidence``, by the normal approximation."""
        return _normal_half_widths(self.matrix, confidence)

    def half_width(self, direction: FloatArray, confidence: float) -> float:
        """Return the half-width of the interval along ``direction`` at ``confidence``, by the normal approximation."""
        return float(_normal_half_widths(np.atleast_2d(direction @ self.matrix @ direction), confidence)[0])

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "kind": self.kind,
            "description": self.description,
            "covariance": [list(r) for r in self.covariance],
        }


@dataclass(frozen=True)
class CoinSum(_NormalBars):
    """A linear map of sums of independent coin tosses, with known upper bounds on the variances.

    A coin that shows +s or -s, whatever its odds, has a centred moment generating function of at most
    exp(s^2 t^2 / 2) (Hoeffding 1963). So a sum of any number of independent ones, along any direction, exceeds x with
    probability at most exp(-x^2 / 2 V), where V is the sum of the s^2. Error bars use the normal distribution of
    variance V, which many coins approach; the true variance is not larger.
    """

    kind = "coins"
    description = "the mean of many coin tosses (error bars by the normal law; certainty by Hoeffding's inequality)"

    def below(self, direction: FloatArray, margin: float) -> float:
        """Return a lower bound on P(noise along ``direction`` < ``margin``), for margins above 0.

        Near 0, where the inequality is vacuous, return one half.
        """
        variance = max(float(direction @ self.matrix @ direction), 0.0)
        if variance == 0 or margin == 0:
            return 0.5 if margin == 0 else float(margin > 0)
        exceeded = min(0.5, math.exp(-(margin**2) / (2 * variance)))
        return 1 - exceeded if margin > 0 else exceeded


@dataclass(frozen=True)
class EmpiricalNormal(_NormalBars):
    """A normal approximation whose covariance was estimated from the (already private) reports themselves.

    It covers the noise and the differences between voters together, so it is wider than the noise alone. It
    says nothing of a bias that a mechanism's repair may add.
    """

    kind = "spread"
    description = (
        "spread of the noisy reports around their mean (noise and differences between voters together; "
        "normal approximation; a bias of the mechanism is not covered)"
    )

    def below(self, direction: FloatArray, margin: float) -> float:
        """Return P(error along ``direction`` < ``margin``)."""
        deviation = math.sqrt(max(float(direction @ self.matrix @ direction), 0.0))
        if deviation == 0:
            return 0.5 if margin == 0 else float(margin > 0)
        return NormalDist().cdf(margin / deviation)


def _normal_half_widths(covariance: FloatArray, confidence: float) -> FloatArray:
    return np.asarray(NormalDist().inv_cdf((1 + confidence) / 2) * np.sqrt(np.maximum(np.diag(covariance), 0.0)))


def _reach(below: Callable[[float], float], deviation: float, confidence: float) -> float:
    """Return the upper (1 - confidence) / 2 quantile of a symmetric distribution, up to 40 standard deviations."""
    from scipy.optimize import brentq  # here, and not above: a decision needs no error bar

    if deviation == 0:
        return 0.0
    target = (1 + confidence) / 2
    return float(brentq(lambda margin: below(margin) - target, 0, 40 * deviation, xtol=1e-7 * deviation))


def empirical_normal(estimates: FloatArray, weights: FloatArray) -> EmpiricalNormal:
    """Estimate the covariance of the weighted mean of independent estimates (rows) from their spread around it."""
    voters = len(weights)
    centred = weights[:, None] * (estimates - weights @ estimates)
    covariance = centred.T @ centred * (voters / max(voters - 1, 1))
    return EmpiricalNormal(tuple(map(tuple, covariance.tolist())))


def noise_from_dict(data: Mapping[str, Any], dimension: int) -> NoiseDistribution:
    """Read the noise of a release file, over so many features."""
    match data["kind"]:
        case "laplace":
            scales = tuple(float(s) for s in data["scales"])
            counts = tuple(int(c) for c in data["counts"])
            if len(scales) != len(counts) or not all(s > 0 for s in scales) or not all(c > 0 for c in counts):
                raise ValueError("the noise's scales and counts must be positive and come in pairs")
            return LaplaceSum(scales, counts)
        case "gaussian":
            if not 0 < (deviation := float(data["deviation"])) < math.inf:
                raise ValueError("the noise's standard deviation must be positive")
            return Gaussian(deviation)
        case "cube":
            gain = _matrix(data["gain"], dimension)
            if not 0 < float(data["scale"]) < math.inf:
                raise ValueError("cube noise needs a positive scale")
            return CubeNoise(float(data["scale"]), gain)
        case "cubes":
            parts = tuple(noise_from_dict({**part, "kind": "cube"}, dimension) for part in data["parts"])
            if not parts:
                raise ValueError("a sum of cube noises needs at least one")
            return CubeSum(tuple(part for part in parts if isinstance(part, CubeNoise)))
        case "coins":
            return CoinSum(_covariance(data["covariance"], dimension))
        case "spread":
            return EmpiricalNormal(_covariance(data["covariance"], dimension))
        case other:
            raise ValueError(f"unknown kind of noise {other!r}")


def _matrix(rows: Sequence[Sequence[float]], count: int) -> tuple[tuple[float, ...], ...]:
    read = tuple(tuple(float(v) for v in row) for row in rows)
    if len(read) != count or len({len(row) for row in read}) != 1 or not np.isfinite(read).all():
        raise ValueError(f"a map of noise needs {count} rows of finite numbers, all of one length")
    return read


def _covariance(rows: Sequence[Sequence[float]], dimension: int) -> tuple[tuple[float, ...], ...]:
    read = _matrix(rows, dimension)
    if len(read[0]) != dimension or min(read[k][k] for k in range(dimension)) < 0:
        raise ValueError(f"a covariance of noise needs {dimension} columns, and variances of 0 or more")
    return read
