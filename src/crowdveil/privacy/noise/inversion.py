"""Exact draws from a finite law by inversion: a uniform number against the law's thresholds, digit by digit.

Let 0 <= F_0 <= ... <= F_(n-1) <= 1 and U uniform on [0, 1). The count K of thresholds at or below U has
P(K <= k) = P(U < F_k) = F_k for k < n, so that it is drawn from the law with these cumulative probabilities. One
threshold makes a coin: K = 0, with probability F_0.

Of U only the first 64 binary digits are drawn, an integer u. If floor(2^64 F_k) < u, then F_k < u / 2^64 <= U; if it is
above u, then F_k >= (u + 1) / 2^64 > U. If it is u itself, which happens once in 2^64 draws and threshold, nothing is
known yet, and 64 more digits of both are compared, until they differ.
"""

from bisect import bisect_right
from functools import lru_cache
from typing import Protocol

import numpy as np

from crowdveil.arrays import IntArray, WordArray
from crowdveil.privacy.noise.aes_stream import ByteSource, take_words

WORD_BITS = 64


class Thresholds(Protocol):
    """The cumulative probabilities of a finite law, known to any number of binary digits."""

    def floors(self, bits: int) -> list[int]:
        """Return floor(2^bits F_k) for all thresholds F_k in ascending order, each below 2^bits.

        A threshold of one is written 0.111...: the floors are then 2^bits - 1, which changes no draw.
        """
        ...

    def __hash__(self) -> int:
        """Equal thresholds share a table."""
        ...


def invert(source: ByteSource, thresholds: Thresholds, count: int) -> IntArray:
    """Return `count` independent draws of how many thresholds are at or below a uniform number."""
    floors = _table(thresholds)
    words = take_words(source, count)
    drawn, tied = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
    for floor in floors:
        drawn += words > floor
        tied |= words == floor
    for i in np.flatnonzero(tied):
        drawn[i] = _decide(source, thresholds, int(words[i]))
    return drawn


def _decide(source: ByteSource, thresholds: Thresholds, digits: int) -> int:
    bits = WORD_BITS
    while True:
        bits += WORD_BITS
        digits = digits << WORD_BITS | int(take_words(source, 1)[0])
        floors = thresholds.floors(bits)
        if digits not in floors:
            return bisect_right(floors, digits)


@lru_cache(maxsize=4096)
def _table(thresholds: Thresholds) -> WordArray:
    floors = np.array(thresholds.floors(WORD_BITS), dtype=np.uint64)
    floors.flags.writeable = False
    return floors
