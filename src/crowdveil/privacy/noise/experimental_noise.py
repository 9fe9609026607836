"""Noise that protects nobody: floating-point for experiments, and stand-ins that an audit puts in its place.

Floating-point noise is fast and repeatable, for made-up or public data. Stand-ins show what a mechanism adds its noise
to, and how much it asks for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import numpy as np

from crowdveil.arrays import BoolArray, IntArray
from crowdveil.privacy.epsilon import MICROS_PER_UNIT, Epsilon, Epsilons
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.exact_noise import gaussian_variance
from crowdveil.privacy.noise.source import Noise, check_cube, check_laplace, check_tosses, check_uniform


class FloatNoiseForExperiments:
    """Noise from a seeded generator, rounded to integers. NOT private.

    Two reasons, each enough. The noise follows from the seed, so whoever knows or guesses it takes the noise off again.
    And a floating-point Laplace sample is a function of 53 random bits: some values are never drawn, which ones depends
    on the data that the noise is added to, and the holes tell data apart (Mironov, "On significance of the least
    significant bits for differential privacy", 2012). Rounding to integers thins the holes out, but proves nothing.
    """

    name = "floating-point noise, experiments only: not private"
    exact = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def laplace(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return noise that has nearly the distribution of `Noise.laplace`; the same seed draws the same."""
        check_laplace(sensitivity, epsilons, columns)
        scales = sensitivity * (MICROS_PER_UNIT / epsilons.micro.astype(np.float64))
        values = self._generator.laplace(0.0, scales[:, np.newaxis], (len(epsilons), columns))
        return np.rint(values).astype(np.int64)

    def gaussian(self, sensitivity: int, rho: Fraction, columns: int) -> IntArray:
        """Return noise that has nearly the distribution of `GaussianNoise.gaussian`; the same seed draws the same."""
        deviation = math.sqrt(gaussian_variance(sensitivity, rho))
        return np.rint(self._generator.normal(0.0, deviation, columns)).astype(np.int64)

    def cube(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return noise that has nearly the distribution of `Noise.cube`; the same seed draws the same.

        On real vectors, with density proportional to exp(-max_j |x_j| / t), a radius of the law gamma(columns + 1) with
        scale t times a uniform point of the cube [-1, 1]^columns has this law.
        """
        check_cube(sensitivity, epsilons, columns)
        radii = self._generator.gamma(columns + 1, sensitivity * (MICROS_PER_UNIT / epsilons.micro.astype(np.float64)))
        points = self._generator.uniform(-1.0, 1.0, (len(epsilons), columns))
        return np.rint(radii[:, np.newaxis] * points).astype(np.int64)

    def tosses(self, odds: Odds, epsilons: Epsilons, columns: int) -> BoolArray:
        """Return tosses with nearly the probability of `Noise.tosses`; the same seed tosses the same."""
        check_tosses(odds, epsilons, columns)
        q = np.exp(-epsilons.values)
        probabilities = (odds.a + odds.b * q) / (odds.c + odds.d * q)
        up: BoolArray = self._generator.random((len(epsilons), columns)) < probabilities[:, np.newaxis]
        return up

    def uniform(self, below: int, rows: int, columns: int) -> IntArray:
        """Return integers as `Noise.uniform` says; the same seed draws the same."""
        check_uniform(below, rows, columns)
        return self._generator.integers(below, size=(rows, columns), dtype=np.int64)


_SEED = 1


class NoiseLaw(StrEnum):
    """The two laws of additive noise, by the norm that their theorem measures neighbours in."""

    LAPLACE = "laplace"
    CUBE = "cube"

    def distance(self, difference: IntArray) -> IntArray:
        """Measure rows: the sum of magnitudes for Laplace noise, the largest one for the cube."""
        size = np.abs(difference)
        return np.asarray(size.sum(axis=-1) if self is NoiseLaw.LAPLACE else size.max(axis=-1), np.int64)


@dataclass(frozen=True)
class NoiseRequest:
    """A request for noise: enough to cover neighbours that far apart, at that epsilon."""

    kind: NoiseLaw
    sensitivity: int
    epsilon: Epsilon
    columns: int

    def draw(self, noise: Noise, rows: int) -> IntArray:
        """Draw the same noise many times over."""
        make = noise.laplace if self.kind is NoiseLaw.LAPLACE else noise.cube
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
        return self._note(NoiseLaw.LAPLACE, sensitivity, epsilons, columns)

    def cube(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return zeros."""
        return self._note(NoiseLaw.CUBE, sensitivity, epsilons, columns)

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

    def _note(self, kind: NoiseLaw, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
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
