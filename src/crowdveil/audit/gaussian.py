"""The Gaussian mean on trial: rho-zCDP, attacked through the (epsilon, delta) that follow from its rho."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.approximate import Point
from crowdveil.audit.attack import Rows, Score
from crowdveil.audit.neighbours import Neighbours, worst_neighbours
from crowdveil.audit.noise_laws import gaussian_fit
from crowdveil.audit.subjects import Central
from crowdveil.privacy.mechanisms.mechanism import Estimate
from crowdveil.privacy.mechanisms.registry import GAUSSIAN_MEAN
from crowdveil.privacy.zcdp import GaussianNoise, OpenDPGaussian, epsilon_of, gaussian_variance

DELTAS = (0.001, 0.01, 0.05)
"""Where on the curve: large deltas, since an event that is rarer than delta proves nothing."""


@dataclass
class _Noted:
    """Gives out what it was told to, and notes what was asked for."""

    drawn: IntArray | None = None
    asked: list[tuple[int, Fraction, int]] = field(default_factory=list)
    name = "none: exact values, for the audit only"
    exact = False

    def gaussian(self, sensitivity: int, rho: Fraction, columns: int) -> IntArray:
        self.asked.append((sensitivity, rho, columns))
        return np.zeros(columns, np.int64) if self.drawn is None else self.drawn


@dataclass(frozen=True)
class GaussianTrial:
    """The mechanism on a crowd of three, of whom one is in question.

    It adds its noise to the same sum as Algorithm 1, so the worst neighbours are those that are found for that one.
    """

    crowd: Central
    """Algorithm 1 on that crowd."""
    rho: Fraction
    noise: GaussianNoise
    search: tuple[int, int]
    """How hard to look for neighbours: restarts and rounds."""

    name = GAUSSIAN_MEAN.name
    how = "as for algorithm-1, whose sum it is"

    @property
    def remark(self) -> str:
        """The promise that the curve follows from."""
        return f"rho = {float(self.rho):.3g}"

    @property
    def paradigm(self) -> str:
        """Who is promised what."""
        return self.crowd.paradigm.name

    @property
    def pair(self) -> Neighbours:
        """The neighbours, found once."""
        return worst_neighbours(self.crowd, *self.search)

    @property
    def promised(self) -> Sequence[Point]:
        """What rho-zCDP implies."""
        return [Point(epsilon_of(float(self.rho), delta), delta) for delta in DELTAS]

    @property
    def reach(self) -> float:
        """The l2 distance of the sums as a share of the sensitivity that the noise was asked to cover."""
        sensitivity, _, _ = self._asked()
        return math.hypot(*(self._sum(True) - self._sum(False)).tolist()) / sensitivity

    def sample(self, left: bool, draws: int) -> Rows:
        """Draw noisy sums, with the noise that the release asks for."""
        sensitivity, rho, columns = self._asked()
        return self._sum(left) + self.noise.gaussian(sensitivity, rho, draws * columns).reshape(draws, columns)

    def scores(self) -> Sequence[Score]:
        """The likelihood ratio of two Gaussian laws of one shape: how far along the line from one to the other."""
        along = (self._sum(True) - self._sum(False)).astype(np.float64)
        return [lambda rows: np.asarray(rows @ along, np.float64)]

    def noise_p_value(self, rows: Rows) -> float:
        """Compare the noise with the law that was asked for."""
        sensitivity, rho, _ = self._asked()
        return gaussian_fit(rows - self._sum(True), math.sqrt(gaussian_variance(sensitivity, rho)))

    def same_release(self) -> bool:
        """Release both sides with noise that makes the noisy sums equal."""
        drawn = self.noise.gaussian(*self._asked())
        one = self._release(self.pair.left, _Noted(drawn))
        other = self._release(self.pair.right, _Noted(drawn + self._sum(True) - self._sum(False)))
        return one.parameter.tobytes() == other.parameter.tobytes() and one.facts == other.facts

    def _asked(self) -> tuple[int, Fraction, int]:
        noted = _Noted()
        self._release(self.pair.left, noted)
        (asked,) = noted.asked
        return asked

    def _sum(self, left: bool) -> IntArray:
        return self.crowd.exact(self.pair.left if left else self.pair.right)

    def _release(self, records: FloatArray, noise: GaussianNoise) -> Estimate:
        measured = GAUSSIAN_MEAN.measure(self.crowd.with_voter(records), self.crowd.settings, self.crowd.epsilon)
        return GAUSSIAN_MEAN.release(measured, self.crowd.settings, self.rho, noise)


class TooNarrow(OpenDPGaussian):
    """A mistake made on purpose: half of the standard deviation that was asked for."""

    def gaussian(self, sensitivity: int, rho: Fraction, columns: int) -> IntArray:
        """Draw for four times the rho."""
        return super().gaussian(sensitivity, 4 * rho, columns)
