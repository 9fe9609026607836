"""Exact noise for millions of voters."""

import numpy as np

from crowdveil.arrays import BoolArray, IntArray
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise.coins import Coin, LaplaceCoins, Odds
from crowdveil.privacy.noise.cube_noise import cube_noise
from crowdveil.privacy.noise.laplace_draws import draw, wrapped
from crowdveil.privacy.noise.source import (
    check_cube,
    check_laplace,
    check_tosses,
    check_uniform,
    exact_scale,
    rows_by_epsilon,
)
from crowdveil.privacy.noise.uniform import AesStream, ByteSource, invert, uniform_integers


class BulkNoise:
    """Exact integer noise at about the speed of numpy's floating-point noise: some 20 ns a Laplace draw.

    Formal guarantee. Given uniform bytes, every value is X modulo 2^64, read as an int64, where X has exactly the
    distribution of scale sensitivity / epsilon, a rational number: it is put together from coins (`coins`,
    `cube_noise`), each tossed by comparing as many binary digits as it takes, and from uniform integers
    (`uniform`). No two draws share a bit.

    Overflow. Int64 sums wrap around, so a vector v of int64 plus the noise is (v + X) modulo 2^64: post-processing of
    v + X, which costs no privacy, so that the guarantee is pure and has no delta. X itself is outside int64 with a
    probability of exp(-2^63 / scale) for Laplace, which is at most exp(-2^11), as no scale above 2^52 is served, and
    below exp(-2^8) for the cube, as `check_cube` shows.

    An instance holds no state and may be shared by threads; see `AesStream` for forks. The time that a draw takes is
    not constant: do not let those who receive a release time it.
    """

    name = "exact integer noise (independent binary digits)"
    exact = True

    def __init__(self, source: ByteSource | None = None) -> None:
        self._source: ByteSource = AesStream() if source is None else source

    def laplace(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return exact noise, as `Noise.laplace` says."""
        check_laplace(sensitivity, epsilons, columns)
        noise = np.empty((len(epsilons), columns), dtype=np.int64)
        for micro, rows in rows_by_epsilon(epsilons, columns):
            coins = LaplaceCoins.of_scale(exact_scale(sensitivity, micro))
            values, tails = draw(self._source, coins, rows.size * columns)
            for i, successes in tails:
                value = int(values[i])
                beyond = successes << coins.digits
                values[i] = wrapped(value + beyond if value > 0 else value - beyond)
            noise[rows] = values.reshape(rows.size, columns)
        return noise

    def cube(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Return exact noise, as `Noise.cube` says."""
        check_cube(sensitivity, epsilons, columns)
        noise = np.empty((len(epsilons), columns), dtype=np.int64)
        for micro, rows in rows_by_epsilon(epsilons, columns + 1):
            noise[rows] = cube_noise(self._source, exact_scale(sensitivity, micro), rows.size, columns)
        return noise

    def tosses(self, odds: Odds, epsilons: Epsilons, columns: int) -> BoolArray:
        """Return exact tosses, as `Noise.tosses` says."""
        check_tosses(odds, epsilons, columns)
        tosses = np.empty((len(epsilons), columns), dtype=np.bool_)
        for micro, rows in rows_by_epsilon(epsilons, columns):
            up = invert(self._source, Coin(odds, micro), rows.size * columns) == 0
            tosses[rows] = up.reshape(rows.size, columns)
        return tosses

    def uniform(self, below: int, rows: int, columns: int) -> IntArray:
        """Return exact uniform integers, as `Noise.uniform` says."""
        check_uniform(below, rows, columns)
        return uniform_integers(self._source, np.full(rows, below), columns)
