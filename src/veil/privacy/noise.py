"""Exact integer noise: what a noise source promises, and the one that asks OpenDP.

Theorem. Let f map data to integer vectors, and |f(D) - f(D')|_1 <= s for all neighbours D, D'. Then f(D) + X, where
the coordinates of X are independent with P(X_j = x) proportional to exp(-|x| eps / s), is eps-differentially private.

Proof. For every integer vector y,
    P(f(D) + X = y) / P(f(D') + X = y) = exp(eps/s * sum_j (|y_j - f(D')_j| - |y_j - f(D)_j|))
                                      <= exp(eps/s * |f(D) - f(D')|_1) <= exp(eps),
as the normalising constants are equal and by the triangle inequality in each coordinate. All outputs are integers,
so the bound for single outputs gives it for every set of outputs.

The proof needs the probabilities to be exactly these, which is why nothing here rounds a floating-point sample.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
import opendp.prelude as dp
from numpy.typing import NDArray

from veil.errors import VeilError
from veil.privacy.epsilon import GREATEST_MICRO, LEAST_MICRO, MICROS_PER_UNIT

# Noise of this scale is outside int64 with a probability of exp(-2^63 / 2^52) = exp(-2^11).
GREATEST_SCALE = 2**52

_VALUES_AT_ONCE = 1 << 16

# OpenDP's name for all that its own committee has not vetted line by line; the proof of its sampler is published.
dp.enable_features("contrib")


class LaplaceNoise(Protocol):
    """A source of independent discrete Laplace noise."""

    @property
    def name(self) -> str:
        """What a release file says about the noise."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the theorem above holds to the letter; False for experiments only."""
        ...

    def laplace(self, sensitivity: int, epsilons: NDArray[np.int64], columns: int) -> NDArray[np.int64]:
        """Return noise of shape (len(epsilons), columns), with P(x) proportional to exp(-|x| eps_i / sensitivity).

        `epsilons` are in millionths, one for each row; `sensitivity` is the l1 sensitivity of a row in grid steps.
        """
        ...


def exact_scale(sensitivity: int, micro: int) -> Fraction:
    """Return the scale sensitivity / epsilon, exactly."""
    return Fraction(sensitivity * MICROS_PER_UNIT, micro)


def check_request(sensitivity: int, epsilons: NDArray[np.int64], columns: int) -> None:
    """Refuse a request that no noise source could serve faithfully."""
    if isinstance(sensitivity, bool) or not isinstance(sensitivity, int) or not sensitivity > 0:
        raise VeilError(f"the sensitivity is {sensitivity!r}, and must be a positive whole number of grid steps.")
    if isinstance(columns, bool) or not isinstance(columns, int) or not columns > 0:
        raise VeilError(f"noise was asked for in {columns!r} columns, and must be for a positive whole number.")
    if not isinstance(epsilons, np.ndarray) or epsilons.dtype != np.int64 or epsilons.ndim != 1:
        given = f"{epsilons.dtype} of shape {epsilons.shape}" if isinstance(epsilons, np.ndarray) else repr(epsilons)
        raise VeilError(f"the epsilons are {given}, and must be a one-dimensional int64 array of millionths.")
    if epsilons.size == 0:
        return
    least, greatest = int(epsilons.min()), int(epsilons.max())
    if not (least >= LEAST_MICRO and greatest <= GREATEST_MICRO):
        raise VeilError(
            f"the epsilons run from {least} to {greatest} millionths, and must stay between {LEAST_MICRO} (0.0001) "
            f"and {GREATEST_MICRO} (50)."
        )
    if not exact_scale(sensitivity, least) <= GREATEST_SCALE:
        raise VeilError(
            f"a sensitivity of {sensitivity} steps at epsilon {least / MICROS_PER_UNIT} needs noise of a scale above "
            "2^52, too near the end of 64-bit integers. Use a coarser grid or a larger epsilon."
        )


def rows_by_epsilon(epsilons: NDArray[np.int64], columns: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield every distinct epsilon with the rows that carry it, in blocks that keep the memory small."""
    if epsilons.size == 0:
        return
    at_most = max(1, _VALUES_AT_ONCE // columns)
    order = np.argsort(epsilons, kind="stable")
    values, starts = np.unique(epsilons[order], return_index=True)
    for micro, rows in zip(values, np.split(order, starts[1:]), strict=True):
        for start in range(0, rows.size, at_most):
            yield int(micro), rows[start : start + at_most]


class OpenDPNoise:
    """Discrete Laplace noise from OpenDP's exact sampler (Canonne, Kamath and Steinke 2020): 10 to 30 us a draw.

    Formal guarantee. OpenDP takes the scale as a double and draws from exactly that rational scale. The double given
    is the least one that is no smaller than sensitivity / epsilon, so the noise is never less than the theorem asks
    for, and more by less than one part in 10^15. The random bits are the operating system's, through OpenDP.

    OpenDP returns 64-bit integers and clamps what does not fit: an event of probability exp(-2^63 / scale) a draw,
    which is at most exp(-2^11).
    """

    name = "exact discrete Laplace (OpenDP)"
    exact = True

    def laplace(self, sensitivity: int, epsilons: NDArray[np.int64], columns: int) -> NDArray[np.int64]:
        """Return exact noise, as `LaplaceNoise.laplace` says."""
        check_request(sensitivity, epsilons, columns)
        noise = np.empty((epsilons.size, columns), dtype=np.int64)
        for micro, rows in rows_by_epsilon(epsilons, columns):
            zeros = np.zeros(rows.size * columns, dtype=np.int64)
            drawn = _measurement(sensitivity, micro)(zeros)
            noise[rows] = np.array(drawn, dtype=np.int64).reshape(rows.size, columns)
        return noise


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
