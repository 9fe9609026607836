"""Uniform bytes and integers in bulk, and draws from finite laws by inversion of a uniform number.

Bytes. The operating system's randomness, stretched by AES-256 in counter mode.

Integers, by rejection. Of a uniform word, the leading bits that it takes to write below - 1 form an integer that is
uniform below the next power of two. If it is not below the bound, the word is thrown away and another one taken. What
is kept is therefore uniform on 0, ..., below - 1: no value has a share of words that another one has not. A word is
thrown away with a probability of less than one half.

Inversion. Let 0 <= F_0 <= ... <= F_(n-1) <= 1 and U uniform on [0, 1). The count K of thresholds at or below U has
P(K <= k) = P(U < F_k) = F_k for k < n, so that it is drawn from the law with these cumulative probabilities. One
threshold makes a coin: K = 0, with probability F_0.

Of U only the first 64 binary digits are drawn, an integer u. If floor(2^64 F_k) < u, then F_k < u / 2^64 <= U; if it is
above u, then F_k >= (u + 1) / 2^64 > U. If it is u itself, which happens once in 2^64 draws and threshold, nothing is
known yet, and 64 more digits of both are compared, until they differ.
"""

import os
from bisect import bisect_right
from functools import lru_cache
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numba import njit, uint64

from crowdveil.arrays import ByteArray, IntArray, WordArray

KEY_BYTES = 32


class ByteSource(Protocol):
    """Where a sampler's random bytes come from."""

    def take(self, count: int) -> ByteArray:
        """Return `count` bytes, uniform, independent of each other and of all bytes taken before."""
        ...


def take_words(source: ByteSource, count: int) -> WordArray:
    """Return `count` uniform words of 64 bits, eight bytes of the source for each."""
    return source.take(8 * count).view(np.dtype("<u8"))


class AesStream:
    """Bytes that nobody can tell from uniform ones, at several gigabytes a second.

    Each `take` asks the operating system for a fresh 256-bit key, expands it into the bytes that were asked
    for and forgets it. Nothing is kept from one call to the next. So there is no keystream to be used twice,
    not by a forked process, not by another thread and not by a restored snapshot of the machine, and nobody
    who reads the memory later finds a key that would give away the noise of earlier releases.

    The promise rests on AES-256 being a pseudorandom permutation: to tell n blocks of 16 bytes from uniform
    ones succeeds with an advantage of at most n^2 / 2^129 beyond an attack on AES, which for the few
    megabytes of one call is below 2^-90.
    """

    def take(self, count: int) -> ByteArray:
        """Return `count` fresh random bytes."""
        stream = np.empty(count, dtype=np.uint8)
        # The key serves this one call, so the counter may start at zero.
        cipher = Cipher(algorithms.AES(os.urandom(KEY_BYTES)), modes.CTR(bytes(16)))
        cipher.encryptor().update_into(bytes(count), stream.data)
        return stream


_WORDS_AT_ONCE = 1 << 16


def uniform_integers(source: ByteSource, below: IntArray, columns: int) -> IntArray:
    """Return independent integers, those of row i uniform on 0, ..., below[i] - 1."""
    if not (below >= 1).all():
        raise ValueError(f"there is no integer from 0 to below {below.min()}")
    out = np.empty((below.size, columns), dtype=np.int64)
    words = np.empty(0, dtype=np.uint64)
    position = 0
    filled = 0
    while filled < out.size:
        if position == words.size:
            words = take_words(source, min(2 * (out.size - filled) + 8, _WORDS_AT_ONCE))
            position = 0
        filled, position = _fill(words, position, below, out, filled)
    return out


def uniform_integer(source: ByteSource, below: int) -> int:
    """Return one integer uniform on 0, ..., below - 1, however large the bound."""
    bits = (below - 1).bit_length()
    words = -(-bits // 64)
    while True:
        value = int.from_bytes(take_words(source, words).tobytes(), "little") >> (64 * words - bits)
        if value < below:
            return value


@njit(nogil=True, cache=True)
def _fill(words: WordArray, position: int, below: IntArray, out: IntArray, filled: int) -> tuple[int, int]:
    """Go on filling `out` in the order of its rows, until it is full or the words at `position` have run out."""
    columns = out.shape[1]
    row, column = filled // columns, filled % columns
    while row < out.shape[0]:
        bound = uint64(below[row])
        bits = uint64(0)
        while (bound - uint64(1)) >> bits != uint64(0):
            bits += uint64(1)
        # In two steps: no bits are left for a bound of one, and a shift by all 64 is not defined.
        shift = uint64(63) - bits
        while column < columns:
            if position == words.size:
                return row * columns + column, position
            value = (words[position] >> uint64(1)) >> shift
            position += 1
            if value < bound:
                out[row, column] = np.int64(value)
                column += 1
        row, column = row + 1, 0
    return row * columns, position


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
