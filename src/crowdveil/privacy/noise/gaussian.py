"""Discrete Gaussian noise: exact integers that make a release rho-zCDP (``zcdp``)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
import opendp.prelude as dp

from crowdveil.arrays import IntArray
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.noise.opendp_noise import double_above
from crowdveil.privacy.noise.source import GREATEST_SCALE

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

    For the sum of preferences, s = ``sensitivity.sum_of_preferences()`` in l2 as in l1: two points of the l1 ball of
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
        """Return so many independent integers of the law that makes vectors of this l2 sensitivity rho-zCDP."""
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
        return np.array(_measurement(sensitivity, rho)([0] * columns), dtype=np.int64)


@lru_cache(maxsize=64)
def _measurement(sensitivity: int, rho: Fraction) -> dp.Measurement:
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
