"""The inner loop of the bulk sampler: 64 coins of one kind are tossed at once, one in each bit of a word.

A toss compares a uniform number u = 0.u1 u2 u3... with the coin's probability p = 0.p1 p2 p3..., binary digit by
binary digit, and comes up if u is the smaller at the first digit where they differ. The words of random bits hold
u1 of all 64 lanes, then u2 of all lanes, and so on. After eight digits for all, the loop goes on while any lane is
undecided; a lane still undecided after the 64 digits of the table is left to the caller, who knows more digits.
"""

import numpy as np
from numba import njit, uint64

from crowdveil.arrays import IntArray, WordArray

# The order of `LaplaceCoins.floors`.
NONZERO, TAIL, FIRST_DIGIT = 0, 1, 2
LANES = 64
TABLE_BITS = 64
# Digits compared before the first look at whether all lanes are decided: a wrongly predicted branch costs more
# than a word of random bits, and after eight digits four words in five are done.
_EAGER_BITS = 8


def words_needed(coins: int) -> int:
    """Return how many words of random bits `LANES` draws can use at the most."""
    return 1 + coins * TABLE_BITS


@njit(nogil=True, cache=True)
def fill(
    words: WordArray,
    position: int,
    floors: WordArray,
    positive: bool,
    out: IntArray,
    lane: int,
    tosses: WordArray,
    undecided: WordArray,
) -> tuple[int, int, bool]:
    """Draw out[lane:], 64 values at a time, for as long as the words at `position` are sure to suffice.

    `floors` are the first 64 digits of the coins' probabilities. With `positive`, the value is given to be above zero:
    `nonzero` and the sign are known and not tossed. Returns the next lane, the next position and whether the draw at
    that lane waits for the caller, because a coin is undecided or a tail came up: then `tosses` (the signs last) and
    `undecided` say how far it got.
    """
    coins = floors.size
    digits = np.zeros(LANES, dtype=np.uint64)
    first = TAIL if positive else NONZERO
    tosses[NONZERO], tosses[coins], undecided[NONZERO] = ~uint64(0), uint64(0), uint64(0)
    while lane < out.size and position + 1 + coins * TABLE_BITS <= words.size:
        if not positive:
            tosses[coins] = words[position]
            position += 1
        position, ties = _toss(words, position, floors, first, tosses, undecided)
        if ties != uint64(0) or tosses[TAIL] != uint64(0):
            return lane, position, True
        assemble(tosses, coins, digits, out, lane)
        lane += LANES
    return lane, position, False


@njit(nogil=True, cache=True)
def assemble(tosses: WordArray, coins: int, digits: WordArray, out: IntArray, lane: int) -> None:
    """Write the (up to) 64 values that the tosses stand for, without the tail, from out[lane] on.

    `digits` is room for 64 words.
    """
    for k in range(LANES):
        digits[k] = tosses[FIRST_DIGIT + k] if FIRST_DIGIT + k < coins else uint64(0)
    _transpose(digits)
    nonzero, sign = tosses[NONZERO], tosses[coins]
    for i in range(min(LANES, out.size - lane)):
        magnitude = np.int64(digits[i] + uint64(1)) * np.int64((nonzero >> uint64(i)) & uint64(1))
        out[lane + i] = -magnitude if (sign >> uint64(i)) & uint64(1) else magnitude


@njit(nogil=True, cache=True)
def _toss(
    words: WordArray, start: int, floors: WordArray, first: int, tosses: WordArray, undecided: WordArray
) -> tuple[int, np.uint64]:
    one, top = uint64(1), uint64(TABLE_BITS - 1)
    # Unsigned, since numba then leaves out the test for a negative index.
    position = uint64(start)
    ties = uint64(0)
    for coin in range(first, floors.size):
        p = floors[coin]
        open_lanes, up = ~uint64(0), uint64(0)
        for i in range(_EAGER_BITS):
            u, digit = words[position + uint64(i)], uint64(0) - (p >> top)
            up |= open_lanes & ~u & digit
            open_lanes &= ~(u ^ digit)
            p <<= one
        position += uint64(_EAGER_BITS)
        left = TABLE_BITS - _EAGER_BITS
        while open_lanes != uint64(0) and left > 0:
            u, digit = words[position], uint64(0) - (p >> top)
            up |= open_lanes & ~u & digit
            open_lanes &= ~(u ^ digit)
            p <<= one
            position += one
            left -= 1
        tosses[coin] = up
        undecided[coin] = open_lanes
        ties |= open_lanes
    return int(np.int64(position)), ties


@njit(nogil=True, cache=True)
def _transpose(a: WordArray) -> None:
    """Transpose a 64 x 64 matrix of bits in place: bit i of word k becomes bit k of word i."""
    width = 32
    mask = uint64(0xFFFFFFFF)
    while width > 0:
        shift = uint64(width)
        for base in range(0, LANES, 2 * width):
            for k in range(base, base + width):
                swap = ((a[k] >> shift) ^ a[k + width]) & mask
                a[k] ^= swap << shift
                a[k + width] ^= swap
        width >>= 1
        mask ^= mask << uint64(width)
