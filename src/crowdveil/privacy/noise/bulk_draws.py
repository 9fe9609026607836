"""Discrete Laplace and geometric variables by the thousand: the coins of `laplace_coins`, tossed by `bulk_kernel`."""

from functools import lru_cache

import numpy as np

from crowdveil.arrays import IntArray, WordArray
from crowdveil.privacy.noise import bulk_kernel
from crowdveil.privacy.noise.aes_stream import ByteSource, take_words
from crowdveil.privacy.noise.bulk_kernel import LANES, NONZERO, TABLE_BITS, TAIL
from crowdveil.privacy.noise.laplace_coins import LaplaceCoins

Tails = list[tuple[int, int]]

_WORDS_AT_ONCE = 1 << 16
_WORDS_PER_COIN = 9


def draw(source: ByteSource, coins: LaplaceCoins, count: int, *, positive: bool = False) -> tuple[IntArray, Tails]:
    """Draw discrete Laplace variables X; or, with `positive`, variables 1 + G with G geometric: the law of X if X > 0.

    Given uniform bytes, the variables are independent and their law is exact. Returns their values without the tails,
    which are below 2^digits + 1 in magnitude, and then the tails: a pair (i, m) says that variable i, which is not
    zero, lies another m * 2^digits further from zero. Such pairs are rare.
    """
    out, tails = np.empty(count, dtype=np.int64), Tails()
    floors = _table(coins)
    tosses = np.zeros(floors.size + 1, dtype=np.uint64)
    undecided = np.zeros(floors.size, dtype=np.uint64)
    words, position, lane = np.empty(0, dtype=np.uint64), 0, 0
    while lane < out.size:
        enough = bulk_kernel.words_needed(floors.size)
        if position + enough > words.size:
            # What is left of the old words is never used.
            likely = -(-(out.size - lane) // LANES) * floors.size * _WORDS_PER_COIN
            words, position = take_words(source, enough + min(likely, _WORDS_AT_ONCE)), 0
        lane, position, waits = bulk_kernel.fill(words, position, floors, positive, out, lane, tosses, undecided)
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
    bulk_kernel.assemble(tosses, undecided.size, room, out, 0)
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
