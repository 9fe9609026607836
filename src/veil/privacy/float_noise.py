"""Floating-point noise: fast and repeatable, for experiments on made-up or public data."""

import numpy as np
from numpy.typing import NDArray

from veil.privacy.epsilon import MICROS_PER_UNIT
from veil.privacy.noise import check_request


class FloatNoiseForExperiments:
    """Laplace noise from a seeded generator, rounded to integers. NOT private.

    Two reasons, each enough. The noise follows from the seed, so whoever knows or guesses it takes the noise off again.
    And a floating-point Laplace sample is a function of 53 random bits: some values are never drawn, which ones depends
    on the data that the noise is added to, and the holes tell data apart (Mironov, "On significance of the least
    significant bits for differential privacy", 2012). Rounding to integers thins the holes out, but proves nothing.
    """

    name = "floating-point Laplace, experiments only: not private"
    exact = False

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def laplace(self, sensitivity: int, epsilons: NDArray[np.int64], columns: int) -> NDArray[np.int64]:
        """Return noise that has nearly the distribution of `LaplaceNoise.laplace`; the same seed draws the same."""
        check_request(sensitivity, epsilons, columns)
        scales = sensitivity * (MICROS_PER_UNIT / epsilons.astype(np.float64))
        values = self._generator.laplace(0.0, scales[:, np.newaxis], (epsilons.size, columns))
        return np.rint(values).astype(np.int64)
