"""Floating-point noise: fast and repeatable, for experiments on made-up or public data."""

import math
from fractions import Fraction

import numpy as np

from crowdveil.arrays import BoolArray, IntArray
from crowdveil.privacy.amount import MICROS_PER_UNIT
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.gaussian import gaussian_variance
from crowdveil.privacy.noise.source import check_cube, check_laplace, check_tosses, check_uniform


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
