"""The holes in floating-point noise (Mironov 2012): why everything that leaves here is an integer on a public grid.

A textbook Laplace sample is a function of 53 random bits, so it has at most 2^53 values; added to 0 they land on other
doubles than added to 1. Whoever sees a double that only one of the two could have given knows the data for certain,
whatever epsilon was claimed. The same attacks, on the numbers that Algorithm 1 releases, find nothing: every multiple
of the grid's step can come from everybody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.audit.attack import Rows, Score, frequencies
from crowdveil.audit.trial import Point
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.grid import STEPS, from_steps
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.noise.source import Noise

_NEARBY = 2
_BITS = 2.0**-53
_LEAST_EXPONENT = -20


@dataclass(frozen=True)
class LastBits:
    """0 against 1 by the doubles that come out: from our grid, or (a mistake) from numpy's Laplace sampler."""

    epsilon: Epsilon
    on_the_grid: bool

    name = "last bits of doubles"
    paradigm = ""
    neighbours = "0 and 1"
    reach = 1.0

    @property
    def remark(self) -> str:
        """Where the doubles come from."""
        return "integers on a grid" if self.on_the_grid else "numpy's Laplace"

    @property
    def promised(self) -> Sequence[Point]:
        """The epsilon."""
        return [Point(self.epsilon.value)]

    def sample(self, left: bool, draws: int) -> Rows:
        """Add noise to 0 or to 1."""
        centre = 0.0 if left else 1.0
        if self.on_the_grid:
            return grid_noise(centre, self.epsilon, draws, BulkNoise())
        return textbook_noise(centre, self.epsilon.value, draws)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Look for doubles that one side cannot give, and at the grain of all."""
        return [holes(0.0, self.epsilon.value), holes(1.0, self.epsilon.value), grain_score(train)]

    def noise_p_value(self, rows: Rows) -> None:
        """Return None: the law of the noise is not in question here."""

    def same_release(self) -> bool:
        """Return True: the rows are all that leaves."""
        return True


def textbook_noise(centre: float, epsilon: float, draws: int) -> Rows:
    """Laplace noise as everybody would write it: numpy's, around 0 or 1, of scale 1 / epsilon."""
    return np.random.default_rng().laplace(centre, 1 / epsilon, (draws, 1))


def grid_noise(centre: float, epsilon: Epsilon, draws: int, noise: Noise) -> Rows:
    """The same on the grid, with 1 counted as STEPS steps, and turned into doubles as a release does it."""
    exact = round(centre * STEPS)
    return from_steps(exact + noise.laplace(STEPS, Epsilons.same(epsilon, draws), 1), 1.0)


def holes(centre: float, epsilon: float) -> Score:
    """Score 1 for a double that numpy's sampler cannot give around this centre.

    The sampler returns centre + log(2u) / epsilon or centre - log(2 - 2u) / epsilon, where u is a multiple of 2^-53. So
    the few u that might have given an output are computed back and tried.
    """
    scale = 1 / epsilon

    def score(rows: Rows) -> FloatArray:
        return np.array([0.0 if _reachable(float(y), centre, scale) else 1.0 for y in rows[:, 0]])

    return score


def _reachable(y: float, centre: float, scale: float) -> bool:
    half = math.exp(-abs(y - centre) / scale) / 2
    lower = y < centre
    around = round((half if lower else 1 - half) / _BITS)
    for k in range(around - _NEARBY, around + _NEARBY + 1):
        u = k * _BITS
        if not 0 < u < 1:
            continue
        # As in numpy, operation by operation.
        if (centre + scale * math.log(u + u) if u < 0.5 else centre - scale * math.log(2.0 - u - u)) == y:
            return True
    return False


def grain_score(train: tuple[Rows, Rows]) -> Score:
    """Learn how often each grain is seen on either side."""
    learned = frequencies((grain(train[0]), grain(train[1])))
    return lambda rows: learned(grain(rows))


def grain(rows: Rows) -> Rows:
    """Describe doubles by their grain: sign, exponent, and how many of the last bits are zero.

    This knows nothing of any sampler. Frequencies of it are learned.
    """
    mantissas, exponents = np.frexp(rows[:, 0])
    whole = np.abs(mantissas * 2.0**53).astype(np.int64)
    zeros = np.where(whole == 0, 53, np.log2(np.maximum(whole & -whole, 1)).astype(np.int64))
    exponents = np.maximum(exponents, _LEAST_EXPONENT)
    return np.column_stack([np.sign(rows[:, 0]).astype(np.int64), exponents, np.minimum(zeros, 12)])
