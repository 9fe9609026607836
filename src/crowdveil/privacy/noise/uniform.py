"""Exact uniform integers by rejection.

Of a uniform word, the leading bits that it takes to write below - 1 form an integer that is uniform below the next
power of two. If it is not below the bound, the word is thrown away and another one taken. What is kept is therefore
uniform on 0, ..., below - 1: no value has a share of words that another one has not. A word is thrown away with a
probability of less than one half.
"""

import numpy as np
from numba import njit, uint64

from crowdveil.arrays import IntArray, WordArray
from crowdveil.privacy.noise.aes_stream import ByteSource, take_words

_WORDS_AT_ONCE = 1 << 16


def uniform_integers(source: ByteSource, below: IntArray, columns: int) -> IntArray:
    """Return independent integers, those of row i uniform on 0, ..., below[i] - 1."""
    if not (below >= 1).all():
        raise ValueError(f"there is no integer from 0 to below {below.min()}")
    out = np.empty((below.size, columns), dtype=np.int64)
    words, position, filled = np.empty(0, dtype=np.uint64), 0, 0
    while filled < out.size:
        if position == words.size:
            words, position = take_words(source, min(2 * (out.size - filled) + 8, _WORDS_AT_ONCE)), 0
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
