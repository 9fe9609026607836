"""The sources of exact noise: our own for millions of voters, OpenDP's for the one draw of a central release.

OpenDP is the field's most trusted sampler. Its discrete Gaussian noise makes a release rho-zCDP (``zcdp``).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
import opendp.prelude as dp

from crowdveil.arrays import BoolArray, IntArray
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import MICROS_PER_UNIT, Epsilons
from crowdveil.privacy.noise.coins import Coin, LaplaceCoins, Odds, draw, wrapped
from crowdveil.privacy.noise.cube_noise import cube_noise
from crowdveil.privacy.noise.source import (
    GREATEST_SCALE,
    check_cube,
    check_laplace,
    check_tosses,
    check_uniform,
    exact_scale,
    rows_by_epsilon,
)
from crowdveil.privacy.noise.uniform import AesStream, ByteSource, invert, uniform_integers


class BulkNoise:
    """Exact integer noise at about the speed of numpy's floating-point noise: some 20 ns a Laplace draw.

    Formal guarantee. Given uniform bytes, every value is X modulo 2^64, read as an int64, where X has exactly the
    distribution of scale sensitivity / epsilon, a rational number: it is put together from coins (`coins`,
    `cube_noise`), each tossed by comparing as many binary digits as it takes, and from uniform integers
    (`uniform`). No two draws share a bit.

    Overflow. Int64 sums wrap around, so a vector v of int64 plus the noise is (v + X) modulo 2^64: post-processing of
    v + X, which costs no privacy, so that the guarantee is pure and has no delta. X itself is outside int64 with a
    probability of exp(-2^63 / scale) for Laplace, which is at most exp(-2^11), as no scale above 2^52 is served, and
    below exp(-2^8) for the cube, as `check_cube` shows.

    An instance holds no state and may be shared by threads; see `AesStream` for forks. The time that a draw takes is
    not constant: do not let those who receive a release time it.
    """

    name = "exact integer noise (independent binary digits)"
    exact = True

    def __init__(self, source: ByteSource | None = None) -> None:
        self._source: ByteSource = AesStream() if source is None else source

    def laplace(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return exact noise, as `Noise.laplace` says."""
        check_laplace(sensitivity, epsilons, columns)
        noise = np.empty((len(epsilons), columns), dtype=np.int64)
        for micro, rows in rows_by_epsilon(epsilons, columns):
            coins = LaplaceCoins.of_scale(exact_scale(sensitivity, micro))
            values, tails = draw(self._source, coins, rows.size * columns)
            for i, successes in tails:
                value = int(values[i])
                beyond = successes << coins.digits
                values[i] = wrapped(value + beyond if value > 0 else value - beyond)
            noise[rows] = values.reshape(rows.size, columns)
        return noise

    def cube(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return exact noise, as `Noise.cube` says."""
        check_cube(sensitivity, epsilons, columns)
        noise = np.empty((len(epsilons), columns), dtype=np.int64)
        for micro, rows in rows_by_epsilon(epsilons, columns + 1):
            noise[rows] = cube_noise(self._source, exact_scale(sensitivity, micro), rows.size, columns)
        return noise

    def tosses(self, odds: Odds, epsilons: Epsilons, columns: int) -> BoolArray:
        """Return exact tosses, as `Noise.tosses` says."""
        check_tosses(odds, epsilons, columns)
        tosses = np.empty((len(epsilons), columns), dtype=np.bool_)
        for micro, rows in rows_by_epsilon(epsilons, columns):
            up = invert(self._source, Coin(odds, micro), rows.size * columns) == 0
            tosses[rows] = up.reshape(rows.size, columns)
        return tosses

    def uniform(self, below: int, rows: int, columns: int) -> IntArray:
        """Return exact uniform integers, as `Noise.uniform` says."""
        check_uniform(below, rows, columns)
        return uniform_integers(self._source, np.full(rows, below), columns)


# OpenDP's name for all that its own committee has not vetted line by line; the proof of its sampler is published.
dp.enable_features("contrib")


class OpenDPNoise:
    """Discrete Laplace noise from OpenDP's exact sampler (Canonne, Kamath and Steinke 2020): 10 to 30 us a draw.

    OpenDP has no noise of the cube, no tosses with irrational odds and no uniform integers: these are `BulkNoise`'s.

    Formal guarantee. OpenDP takes the scale as a double and draws from exactly that rational scale. The double given
    is the least one that is no smaller than sensitivity / epsilon, so the noise is never less than the theorem asks
    for, and more by less than one part in 10^15. The random bits are the operating system's, through OpenDP.

    OpenDP returns 64-bit integers and clamps what does not fit: an event of probability exp(-2^63 / scale) a draw,
    which is at most exp(-2^11).
    """

    name = "exact integer noise (Laplace by OpenDP, all other kinds by independent binary digits)"
    exact = True

    def __init__(self) -> None:
        self._others = BulkNoise()

    def laplace(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return exact noise, as `Noise.laplace` says."""
        check_laplace(sensitivity, epsilons, columns)
        noise = np.empty((len(epsilons), columns), dtype=np.int64)
        for micro, rows in rows_by_epsilon(epsilons, columns):
            zeros = np.zeros(rows.size * columns, dtype=np.int64)
            drawn = _laplace_measurement(sensitivity, micro)(zeros)
            noise[rows] = np.array(drawn, dtype=np.int64).reshape(rows.size, columns)
        return noise

    def cube(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return exact noise, as `Noise.cube` says."""
        return self._others.cube(sensitivity, epsilons, columns)

    def tosses(self, odds: Odds, epsilons: Epsilons, columns: int) -> BoolArray:
        """Return exact tosses, as `Noise.tosses` says."""
        return self._others.tosses(odds, epsilons, columns)

    def uniform(self, below: int, rows: int, columns: int) -> IntArray:
        """Return exact uniform integers, as `Noise.uniform` says."""
        return self._others.uniform(below, rows, columns)


@lru_cache(maxsize=1024)
def _laplace_measurement(sensitivity: int, micro: int) -> dp.Measurement:
    scale = double_above(exact_scale(sensitivity, micro))
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    measurement: dp.Measurement = space >> dp.m.then_laplace(scale=scale)
    # OpenDP divides exactly and rounds the quotient up to a double. As sensitivity / scale <= epsilon, its answer is
    # at most epsilon rounded up in the same way: this holds without any tolerance.
    epsilon = double_above(Fraction(micro, MICROS_PER_UNIT))
    if not measurement.check(sensitivity, epsilon):
        raise AssertionError(f"OpenDP accounts more than epsilon {epsilon} for {sensitivity} steps at scale {scale}")
    return measurement


def double_above(x: Fraction) -> float:
    """Return the least double that is not below x."""
    nearest = float(x)
    return nearest if nearest >= x else math.nextafter(nearest, math.inf)


dp.enable_features("contrib")


def gaussian_variance(sensitivity: int, rho: Fraction) -> Fraction:
    """Return the sigma^2 of discrete Gaussian noise that makes a release rho-zCDP, exactly: sensitivity^2 / (2 rho).

    Theorem (Canonne, Kamath and Steinke 2020). Let f map data to integer vectors with |f(D) - f(D')|_2 <= s for all
    neighbours. Then f(D) + X, where the coordinates of X are independent and P(X_j = x) is proportional to
    exp(-x^2 / (2 sigma^2)) on the integers, is (s^2 / (2 sigma^2))-zCDP.

    Proof. Renyi divergences of independent coordinates add up, so take one, with means m and n. As
    alpha (x - m)^2 + (1 - alpha) (x - n)^2 = (x - c)^2 - alpha (alpha - 1) (m - n)^2 for c = alpha m + (1 - alpha) n,

        E_n [(P_m / P_n)^alpha] = exp(alpha (alpha - 1) (m - n)^2 / (2 sigma^2)) g(c) / g(0),

    where g(c) is the sum of exp(-(x - c)^2 / (2 sigma^2)) over all integers x; P_m and P_n are both normalised by
    g(0), as m and n are integers. By Poisson summation g(c) = sum_k G(k) cos(2 pi k c) with positive G(k), so
    g(c) <= g(0), and D_alpha <= alpha (m - n)^2 / (2 sigma^2).

    For the sum of preferences, s = ``grid.sum_of_preferences()`` in l2 as in l1: two points of the l1 ball of
    STEPS are at most 2 STEPS apart in l1, hence in l2, and opposite vertices are that far apart in both.
    """
    if not (isinstance(sensitivity, int) and sensitivity > 0):
        raise CrowdveilError(f"the sensitivity is {sensitivity!r}, and must be a positive whole number of grid steps")
    if not rho > 0:
        raise CrowdveilError(f"rho must be a positive number, got {rho}")
    return Fraction(sensitivity) ** 2 / (2 * rho)


class GaussianNoise(Protocol):
    """A source of Gaussian noise."""

    @property
    def name(self) -> str:
        """The sampler, in the words of a release file."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the law holds to the letter; False for experiments only."""
        ...

    def gaussian(self, sensitivity: int, rho: Fraction, columns: int) -> IntArray:
        """Return ``columns`` independent integers with the distribution that makes this l2 sensitivity rho-zCDP."""
        ...


class OpenDPGaussian:
    """Discrete Gaussian noise from OpenDP's exact sampler (Canonne, Kamath and Steinke 2020).

    OpenDP takes sigma as a double and draws from exactly that rational. The double given is the least whose square is
    no smaller than the theorem's sigma^2. The random bits are the operating system's, through OpenDP.
    """

    name = "exact integer noise (discrete Gaussian by OpenDP)"
    exact = True

    def gaussian(self, sensitivity: int, rho: Fraction, columns: int) -> IntArray:
        """Return exact noise, as `GaussianNoise.gaussian` says."""
        if not columns > 0:
            raise CrowdveilError(f"noise was asked for in {columns} columns, and must be for a positive whole number")
        return np.array(_gaussian_measurement(sensitivity, rho)([0] * columns), dtype=np.int64)


@lru_cache(maxsize=64)
def _gaussian_measurement(sensitivity: int, rho: Fraction) -> dp.Measurement:
    variance = gaussian_variance(sensitivity, rho)
    if not variance <= GREATEST_SCALE**2:
        raise CrowdveilError(
            f"a sensitivity of {sensitivity} steps at rho {float(rho):g} needs noise of a standard deviation above "
            "2^52, too near the end of 64-bit integers: use a larger rho"
        )
    scale = root_above(variance)
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    measurement: dp.Measurement = space >> dp.m.then_gaussian(scale=scale)
    # OpenDP's own account of the same noise, which it rounds up to a double.
    if not measurement.check(float(sensitivity), double_above(rho)):
        raise AssertionError(f"OpenDP accounts more than rho {rho} for {sensitivity} steps at scale {scale}")
    return measurement


def root_above(x: Fraction) -> float:
    """Return the least double whose square is not below x."""
    root = math.sqrt(x)
    while Fraction(root) ** 2 >= x:
        root = math.nextafter(root, 0)
    while Fraction(root) ** 2 < x:
        root = math.nextafter(root, math.inf)
    return root
