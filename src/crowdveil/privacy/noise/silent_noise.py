"""Stand-ins for a noise source that show what a mechanism adds its noise to, and how much it asks for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from crowdveil.arrays import BoolArray, IntArray
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.float_noise import FloatNoiseForExperiments
from crowdveil.privacy.noise.source import Noise

_SEED = 1


class Kind(StrEnum):
    """The two laws of additive noise, by the norm that their theorem measures neighbours in."""

    LAPLACE = "laplace"
    CUBE = "cube"

    def distance(self, difference: IntArray) -> IntArray:
        """Measure rows: the sum of magnitudes for Laplace noise, the largest one for the cube."""
        size = np.abs(difference)
        return np.asarray(size.sum(axis=-1) if self is Kind.LAPLACE else size.max(axis=-1), np.int64)


@dataclass(frozen=True)
class NoiseRequest:
    """A request for noise: enough to cover neighbours that far apart, at that epsilon."""

    kind: Kind
    sensitivity: int
    epsilon: Epsilon
    columns: int

    def draw(self, noise: Noise, rows: int) -> IntArray:
        """Draw the same noise many times over."""
        make = noise.laplace if self.kind is Kind.LAPLACE else noise.cube
        return make(self.sensitivity, Epsilons.same(self.epsilon, rows), self.columns)


@dataclass(frozen=True)
class GaussianRequest:
    """A request for Gaussian noise."""

    sensitivity: int
    rho: Fraction
    columns: int


class SilentNoise:
    """No additive noise at all, and a note of what was asked for. Choices (tosses, places) are always the same."""

    name = "none: exact values, for tests only"
    exact = False

    def __init__(self) -> None:
        self.requests: list[NoiseRequest] = []
        self.gaussian_requests: list[GaussianRequest] = []
        self._choices = FloatNoiseForExperiments(_SEED)

    def laplace(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return zeros."""
        return self._note(Kind.LAPLACE, sensitivity, epsilons, columns)

    def cube(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return zeros."""
        return self._note(Kind.CUBE, sensitivity, epsilons, columns)

    def gaussian(self, sensitivity: int, rho: Fraction, columns: int) -> IntArray:
        """Return zeros."""
        self.gaussian_requests.append(GaussianRequest(sensitivity, rho, columns))
        return np.asarray(self._given(1, columns)[0])

    def tosses(self, odds: Odds, epsilons: Epsilons, columns: int) -> BoolArray:
        """Toss, always the same."""
        return self._choices.tosses(odds, epsilons, columns)

    def uniform(self, below: int, rows: int, columns: int) -> IntArray:
        """Draw, always the same."""
        return self._choices.uniform(below, rows, columns)

    def _note(self, kind: Kind, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        self.requests += [NoiseRequest(kind, sensitivity, epsilon, columns) for epsilon in epsilons.distinct]
        return self._given(len(epsilons), columns)

    def _given(self, rows: int, columns: int) -> IntArray:
        return np.zeros((rows, columns), np.int64)


class ReplayedNoise(SilentNoise):
    """Additive noise that was drawn before, given out once more."""

    def __init__(self, drawn: IntArray) -> None:
        super().__init__()
        self._drawn = drawn

    def _given(self, rows: int, columns: int) -> IntArray:
        return super()._given(rows, columns) + self._drawn
