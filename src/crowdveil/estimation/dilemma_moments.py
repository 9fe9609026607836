"""The mean squares and products of the dilemmas that a file's voters were asked, and what is not known of them.

Along the axes of a public design, the dilemmas of its generator have a mean square of 1 in any direction. A file's may
have another one, and a preference that is estimated as if they had not comes out too long or too short by as much. What
was not measured is expected to differ by DESIGN_DEVIATION: the mean square along each axis, and all products together
(``product_deviation``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag

from crowdveil.arrays import FloatArray

DESIGN_DEVIATION = 0.3
"""Prior relative standard deviation of the mean square along an axis from that of the public design."""
DESIGN_BOUND = 0.5
"""Error bars allow for this many of these deviations. Larger deviations are measured by the mean squares, if N epsilon
is large enough to pay for them, or specified by someone who knows which dilemmas were asked."""
SHOWN_REACH = 1.5
"""Standard deviations within which the mean square in the direction of a preference is supposed to be."""


def product_deviation(directions: int) -> float:
    """Return the standard deviation to expect of the mean product along two axes, if nothing was measured.

    All products together are as unsure as a mean square: what they add to a step is DESIGN_DEVIATION times as long as
    the step, however many axes there are. Of three axes that is 0.21, of nine 0.11. (In the public files of four
    studies it is 0.20 of three axes, 0.07 of five, and 0.01 and 0.03 of nine.)
    """
    return DESIGN_DEVIATION / math.sqrt(max(directions - 1, 1))


def shown_range(directions: int) -> tuple[float, float]:
    """Return bounds on the mean square of a file's dilemmas in the direction of a preference, if nothing was measured.

    If the mean squares along k axes have the standard deviation s and the products p, that of the mean square in a
    direction u has the variance s^2 q + 2 p^2 (1 - q), where q is the sum of u_i^4: 3 / (k + 2) on average over all
    directions. In a direction of trade-offs, where a side that is better in one respect is worse in another, it is less
    than 1. (In the direction of the crowd's own preference it is 0.59 and 0.68 over three axes, 1.27 over five,
    1.09 and 0.99 over nine in the public files of four studies, by tests/statistics/shown.py: at most 1.4 deviations
    from 1.)
    """
    alone = 3 / (directions + 2)
    products = product_deviation(directions)
    reach = SHOWN_REACH * math.sqrt(alone * DESIGN_DEVIATION**2 + 2 * (1 - alone) * products**2)
    return 1 - reach, 1 + reach


def shown_size(directions: int) -> float:
    """Return half of the range of sizes that ``shown_range`` leaves open, relative to the size of the estimate."""
    least, most = shown_range(directions)
    return (1 / least - 1 / most) / 2


@dataclass(frozen=True)
class DilemmaMoments:
    """The mean products, along the axes of a design, of the dilemmas that a crowd was asked; 1 and 0 for a study's own.

    A step's length depends on them: where a score is divided by too large a mean square, the step is too short.
    """

    moments: FloatArray
    squares: FloatArray
    """Standard deviation of what is not known of each mean square, relative to it."""
    products: float
    """Standard deviation of what is not known of each other mean product, relative to the roots of the squares."""
    bound: FloatArray
    """The number of these deviations that error bars allow for along each axis."""

    @classmethod
    def of(cls, directions: int, *, known: bool) -> DilemmaMoments:
        """Return those of a study's own dilemmas; if they are not known to be asked, with the doubts of a file."""
        squares = np.full(directions, 0.0 if known else DESIGN_DEVIATION)
        products = 0.0 if known else product_deviation(directions)
        return cls(np.eye(directions), squares, products, np.full(directions, DESIGN_BOUND))

    def deviations(self, moved: FloatArray, distance: float) -> FloatArray:
        """Return the standard deviation along each axis of a step that moves so far along each, and so far in all.

        A step is the inverse of the information times a mean score. If the moments, and so the information, are off by
        D, it is off by the inverse of the moments times D times the step. The more the dilemmas' features go together,
        the larger is that inverse.
        """
        others = np.maximum(distance**2 - np.square(moved), 0.0)
        missed = np.square(self.squares * np.diag(self.moments) * moved) + self.products**2 * others
        return np.asarray(np.sqrt(np.square(np.linalg.inv(self.moments)) @ missed), np.float64)

    def stretched(self, direction: FloatArray, ratio: float) -> DilemmaMoments:
        """Return moments of which the mean square along a direction of length 1 is multiplied by this ratio."""
        longer = np.eye(len(direction)) + (math.sqrt(ratio) - 1) * np.outer(direction, direction)
        return replace(self, moments=longer @ self.moments @ longer)

    def widened(self, left_out: int) -> DilemmaMoments:
        """Return the moments along axes of which the last, for directions that factors leave out, are not measured."""
        unmeasured = self.of(left_out, known=not self.squares.any())
        squares = np.concatenate([self.squares, unmeasured.squares])
        products = max(self.products, product_deviation(len(squares))) if self.products else 0.0
        bound = np.concatenate([self.bound, unmeasured.bound])
        return DilemmaMoments(block_diag(self.moments, unmeasured.moments), squares, products, bound)
