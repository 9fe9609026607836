"""Exact integer noise: what a noise source promises.

Theorem. Let f map data to integer vectors, and |f(D) - f(D')|_1 <= s for all neighbours D, D'. Then f(D) + X, where
the coordinates of X are independent with P(X_j = x) proportional to exp(-|x| eps / s), is eps-differentially private.

Proof. For every integer vector y,
    P(f(D) + X = y) / P(f(D') + X = y) = exp(eps/s * sum_j (|y_j - f(D')_j| - |y_j - f(D)_j|))
                                      <= exp(eps/s * |f(D) - f(D')|_1) <= exp(eps),
as the normalising constants are equal and by the triangle inequality in each coordinate. All outputs are integers,
so the bound for single outputs gives it for every set of outputs.

The theorem for the largest coordinate in place of the sum of all is in `cube_noise`. The proofs need the
probabilities to be exactly these, which is why nothing here rounds a floating-point sample.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crowdveil.arrays import BoolArray, IntArray
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import MICROS_PER_UNIT, Epsilons
from crowdveil.privacy.noise.coins import Odds

# Noise of this scale is outside int64 with a probability of exp(-2^63 / 2^52) = exp(-2^11).
GREATEST_SCALE = 2**52
GREATEST_BOUND = 2**62

_VALUES_AT_ONCE = 1 << 16


class Noise(Protocol):
    """A source of independent randomness for mechanisms. There is an epsilon for each row."""

    @property
    def name(self) -> str:
        """The sampler, in the words of a release file."""
        ...

    @property
    def exact(self) -> bool:
        """Whether the laws below hold to the letter; False for experiments only."""
        ...

    def laplace(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return noise of shape (len(epsilons), columns), with P(x) proportional to exp(-|x| eps_i / sensitivity).

        `sensitivity` is the l1 sensitivity of a row in grid steps.
        """
        ...

    def cube(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return noise of shape (len(epsilons), columns), whose row i is a vector x of integers with a probability
        proportional to exp(-max_j |x_j| eps_i / sensitivity).

        `sensitivity` is the sensitivity of a row in the maximum norm, in grid steps.
        """
        ...

    def tosses(self, odds: Odds, epsilons: Epsilons, columns: int) -> BoolArray:
        """Return tosses of shape (len(epsilons), columns): in row i, True with the probability that the odds give
        for eps_i.
        """
        ...

    def uniform(self, below: int, rows: int, columns: int) -> IntArray:
        """Return integers of shape (rows, columns), uniform on 0, ..., below - 1."""
        ...


def exact_scale(sensitivity: int, micro: int) -> Fraction:
    """Return the scale sensitivity / epsilon, exactly."""
    return Fraction(sensitivity * MICROS_PER_UNIT, micro)


def check_laplace(sensitivity: int, epsilons: Epsilons, columns: int) -> None:
    """Refuse a request for Laplace noise that no source could serve faithfully."""
    _check_rows(epsilons, columns)
    _check_scale(sensitivity, epsilons, 1)


def check_cube(sensitivity: int, epsilons: Epsilons, columns: int) -> None:
    """Refuse a request for noise of the cube that no source could serve faithfully.

    With d = columns, t the scale and (d + 1) t <= 2^52, the radius R of the cube is 2^62 or more with a probability
    below exp(-2^8). In the words of `cube_noise`, R = K + G_0 + ... + G_d, where K <= d < 2^61 and
    E exp(G_i / 2t) = 1 + exp(-1 / 2t) < 2; so by Markov's inequality
    P(R >= 2^62) < 2^(d+1) exp((d - 2^62) / 2t) < 2^(d+1) exp(-2^61 / 2t) <= (2 exp(-2^8))^(d+1) < exp(-2^8).
    """
    _check_rows(epsilons, columns)
    _check_scale(sensitivity, epsilons, columns + 1)


def check_tosses(odds: Odds, epsilons: Epsilons, columns: int) -> None:
    """Refuse a request for tosses that is no such thing."""
    if not isinstance(odds, Odds):
        raise CrowdveilError(f"the odds are {odds!r}, and must be Odds(a, b, c, d).")
    _check_rows(epsilons, columns)


def check_uniform(below: int, rows: int, columns: int) -> None:
    """Refuse a request for uniform integers that no source could serve faithfully."""
    if not (_is_whole(below) and 1 <= below <= GREATEST_BOUND):
        raise CrowdveilError(f"uniform integers were asked for below {below!r}, and the bound must be from 1 to 2^62.")
    if not (_is_whole(rows) and rows >= 0):
        raise CrowdveilError(
            f"uniform integers were asked for in {rows!r} rows, and must be for a whole number of them."
        )
    _check_columns(columns)


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def _check_columns(columns: int) -> None:
    if not (_is_whole(columns) and columns > 0):
        raise CrowdveilError(f"noise was asked for in {columns!r} columns, and must be for a positive whole number.")


def _check_rows(epsilons: Epsilons, columns: int) -> None:
    _check_columns(columns)
    if not isinstance(epsilons, Epsilons):
        raise CrowdveilError(f"the epsilons are {epsilons!r}, and must be Epsilons, one for each row.")


def _check_scale(sensitivity: int, epsilons: Epsilons, terms: int) -> None:
    """Refuse a sensitivity at which a sum of so many variables might not fit into 64 bits."""
    if not (_is_whole(sensitivity) and sensitivity > 0):
        raise CrowdveilError(f"the sensitivity is {sensitivity!r}, and must be a positive whole number of grid steps.")
    if not len(epsilons):
        return
    least = epsilons.smallest
    if not terms * exact_scale(sensitivity, least.micro) <= GREATEST_SCALE:
        raise CrowdveilError(
            f"a sensitivity of {sensitivity} steps at epsilon {least} needs noise of a scale above "
            f"2^52{f' / {terms}' if terms > 1 else ''}, too near the end of 64-bit integers. Use a coarser grid or a "
            "larger epsilon."
        )


def rows_by_epsilon(epsilons: Epsilons, columns: int) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield every distinct epsilon with the rows that carry it, in blocks that keep the memory small."""
    if not len(epsilons):
        return
    at_most = max(1, _VALUES_AT_ONCE // columns)
    order = np.argsort(epsilons.micro, kind="stable")
    values, starts = np.unique(epsilons.micro[order], return_index=True)
    for micro, rows in zip(values, np.split(order, starts[1:]), strict=True):
        for start in range(0, rows.size, at_most):
            yield int(micro), rows[start : start + at_most]
