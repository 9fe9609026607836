"""Noise for the one draw of a central release: Laplace from OpenDP, the field's most trusted sampler."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import opendp.prelude as dp

from crowdveil.arrays import BoolArray, IntArray
from crowdveil.privacy.amount import MICROS_PER_UNIT
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise.bulk_noise import BulkNoise
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.source import check_laplace, exact_scale, rows_by_epsilon

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
            drawn = _measurement(sensitivity, micro)(zeros)
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
def _measurement(sensitivity: int, micro: int) -> dp.Measurement:
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
