"""Noise from bytes that are written down: what a device must draw from the same bytes, coin by coin.

The bytes are SHA-256 of "<seed> 0", "<seed> 1", ... one after the other. This is the plain way to toss the coins of
``laplace_coins``, ``cube_noise`` and ``odds``, one voter at a time, in the order in which a device tosses them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from crowdveil.arrays import BoolArray, ByteArray, IntArray
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise.coins import Coin, LaplaceCoins, Odds
from crowdveil.privacy.noise.cube_noise import Shift
from crowdveil.privacy.noise.source import exact_scale
from crowdveil.privacy.noise.uniform import uniform_integer


class ScriptedBytes:
    """A source of bytes that everybody can compute."""

    def __init__(self, seed: str) -> None:
        self._seed, self._block, self._left = seed, 0, b""

    def take(self, count: int) -> ByteArray:
        """Return the next bytes."""
        while len(self._left) < count:
            self._left += hashlib.sha256(f"{self._seed} {self._block}".encode()).digest()
            self._block += 1
        taken, self._left = self._left[:count], self._left[count:]
        return np.frombuffer(taken, np.uint8)


class ScriptedNoise:
    """Draws for one voter."""

    name = "scripted bytes"
    exact = False

    def __init__(self, seed: str) -> None:
        self._source = ScriptedBytes(seed)

    def laplace(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Toss nonzero, the digits, the tail and the sign of every column."""
        coins = LaplaceCoins.of_scale(exact_scale(sensitivity, epsilons.largest.micro))
        return np.array([[self._laplace(coins) for _ in range(columns)]])

    def cube(self, sensitivity: int, epsilons: Epsilons, columns: int) -> IntArray:
        """Draw the parts of the radius, then the columns within it."""
        scale = exact_scale(sensitivity, epsilons.largest.micro)
        coins = LaplaceCoins.of_scale(scale)
        radius = sum(self._geometric(coins) for _ in range(columns + 1)) + self._invert(Shift(columns, scale).floors)
        return np.array([[self._below(2 * radius + 1) - radius for _ in range(columns)]])

    def tosses(self, odds: Odds, epsilons: Epsilons, columns: int) -> BoolArray:
        """Toss one coin a row and column."""
        return np.array([[self._invert(Coin(odds, e.micro).floors) == 0 for _ in range(columns)] for e in epsilons])

    def uniform(self, below: int, rows: int, columns: int) -> IntArray:
        """Draw integers."""
        return np.array([[self._below(below) for _ in range(columns)] for _ in range(rows)])

    def _laplace(self, coins: LaplaceCoins) -> int:
        nonzero, size = self._coin(coins, 0), 1 + self._geometric(coins)
        negative = self._invert(lambda bits: [1 << (bits - 1)]) == 0
        return (-size if negative else size) if nonzero else 0

    def _geometric(self, coins: LaplaceCoins) -> int:
        value = sum(self._coin(coins, 2 + k) << k for k in range(coins.digits))
        while self._coin(coins, 1):
            value += 1 << coins.digits
        return value

    def _coin(self, coins: LaplaceCoins, index: int) -> bool:
        return self._invert(lambda bits: [coins.floors(bits)[index]]) == 0

    def _invert(self, floors: Callable[[int], list[int]]) -> int:
        """Count the thresholds at or below a uniform number, of which 64 digits are drawn at a time."""
        digits, bits = 0, 0
        while True:
            digits, bits = digits << 64 | self._below(2**64), bits + 64
            known = floors(bits)
            if digits not in known:
                return sum(floor < digits for floor in known)

    def _below(self, bound: int) -> int:
        return uniform_integer(self._source, bound)
