"""Discrete Laplace and geometric variables by the thousand: 64 coins of a kind are tossed at once, one in each bit.

A toss compares a uniform number u = 0.u1 u2 u3... with the coin's probability p = 0.p1 p2 p3..., binary digit by
binary digit, and comes up if u is the smaller at the first digit where they differ. The words of random bits hold
u1 of all 64 lanes, then u2 of all lanes, and so on. After eight digits for all, the loop goes on while any lane is
undecided; a lane still undecided after the 64 digits of the table is left to `draw`, which knows more digits.
"""

from functools import lru_cache

import numpy as np
from numba import njit, uint64

from crowdveil.arrays import IntArray, WordArray
from crowdveil.privacy.noise.coins import LaplaceCoins
from crowdveil.privacy.noise.uniform import ByteSource, take_words

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
        position, ties = _toss_lanes(words, position, floors, first, tosses, undecided)
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
def _toss_lanes(
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
            u = words[position + uint64(i)]
            digit = uint64(0) - (p >> top)
            up |= open_lanes & ~u & digit
            open_lanes &= ~(u ^ digit)
            p <<= one
        position += uint64(_EAGER_BITS)
        left = TABLE_BITS - _EAGER_BITS
        while open_lanes != uint64(0) and left > 0:
            u = words[position]
            digit = uint64(0) - (p >> top)
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


Tails = list[tuple[int, int]]

_WORDS_AT_ONCE = 1 << 16
_WORDS_PER_COIN = 9


def draw(source: ByteSource, coins: LaplaceCoins, count: int, *, positive: bool = False) -> tuple[IntArray, Tails]:
    """Draw discrete Laplace variables X; or, with `positive`, variables 1 + G with G geometric: the law of X if X > 0.

    Given uniform bytes, the variables are independent and their law is exact. Returns their values without the tails,
    which are below 2^digits + 1 in magnitude, and then the tails: a pair (i, m) says that variable i, which is not
    zero, lies another m * 2^digits further from zero. Such pairs are rare.
    """
    out = np.empty(count, dtype=np.int64)
    tails = Tails()
    floors = _table(coins)
    tosses = np.zeros(floors.size + 1, dtype=np.uint64)
    undecided = np.zeros(floors.size, dtype=np.uint64)
    words = np.empty(0, dtype=np.uint64)
    position = 0
    lane = 0
    while lane < out.size:
        enough = words_needed(floors.size)
        if position + enough > words.size:
            # What is left of the old words is never used.
            likely = -(-(out.size - lane) // LANES) * floors.size * _WORDS_PER_COIN
            words = take_words(source, enough + min(likely, _WORDS_AT_ONCE))
            position = 0
        lane, position, waits = fill(words, position, floors, positive, out, lane, tosses, undecided)
        if waits:
            found = _finish(source, coins, out[lane : lane + LANES], tosses, undecided)
            tails += [(lane + i, successes) for i, successes in found]
            lane += LANES
    return out, tails


def wrapped(value: int) -> int:
    """Return the int64 that is equal to the value modulo 2^64."""
    return (value + 2**63) % 2**64 - 2**63


def _finish(source: ByteSource, coins: LaplaceCoins, out: IntArray, tosses: WordArray, undecided: WordArray) -> Tails:
    """Decide the coins that the kernel left open, write the values and follow the tails that came up."""
    for coin in range(undecided.size):
        for i in _lanes(undecided[coin]):
            if _toss(source, coins, coin, known=TABLE_BITS):
                tosses[coin] |= np.uint64(1 << i)
    room = np.zeros(LANES, dtype=np.uint64)
    assemble(tosses, undecided.size, room, out, 0)
    tails = Tails()
    for i in _lanes(tosses[TAIL] & tosses[NONZERO]):
        if i < out.size:
            successes = 1
            while _toss(source, coins, TAIL):
                successes += 1
            tails.append((i, successes))
    return tails


def _toss(source: ByteSource, coins: LaplaceCoins, coin: int, known: int = 0) -> bool:
    """Toss a coin, of whose probability the first `known` digits were found equal to the random ones."""
    while True:
        known += TABLE_BITS
        p = coins.floors(known)[coin] % (1 << TABLE_BITS)
        u = int(take_words(source, 1)[0])
        if u != p:
            return u < p


@lru_cache(maxsize=4096)
def _table(coins: LaplaceCoins) -> WordArray:
    floors = np.array(coins.floors(TABLE_BITS), dtype=np.uint64)
    floors.flags.writeable = False
    return floors


def _lanes(word: np.uint64) -> list[int]:
    return [i for i in range(LANES) if int(word) >> i & 1]
