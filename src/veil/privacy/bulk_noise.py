"""Exact discrete Laplace noise for millions of voters."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veil.privacy import bulk_kernel
from veil.privacy.aes_stream import AesStream, ByteSource
from veil.privacy.bulk_kernel import LANES, NONZERO, TABLE_BITS, TAIL, Integers, Words
from veil.privacy.laplace_coins import LaplaceCoins
from veil.privacy.noise import check_request, exact_scale, rows_by_epsilon

_WORDS_AT_ONCE = 1 << 16
_WORDS_PER_COIN = 9


class BulkNoise:
    """Exact discrete Laplace noise at about the speed of numpy's floating-point noise: some 20 ns a draw.

    Formal guarantee. Given uniform bytes, every value is X modulo 2^64, read as an int64, where X has exactly the
    discrete Laplace distribution of scale sensitivity / epsilon, a rational number: X is put together from the coins
    of `laplace_coins`, each tossed by comparing as many binary digits as it takes, and no two values share a bit.

    Overflow. Int64 sums wrap around, so a vector v of int64 plus the noise is (v + X) modulo 2^64: post-processing of
    v + X, which costs no privacy, so that the guarantee is pure and has no delta. X itself is outside int64 with a
    probability of exp(-2^63 / scale), which is at most exp(-2^11), as no scale above 2^52 is served.

    An instance holds no state and may be shared by threads; see `AesStream` for forks. The time that a draw takes is
    not constant: do not let those who receive a release time it.
    """

    name = "exact discrete Laplace (independent binary digits)"
    exact = True

    def __init__(self, source: ByteSource | None = None) -> None:
        self._source: ByteSource = AesStream() if source is None else source

    def laplace(self, sensitivity: int, epsilons: NDArray[np.int64], columns: int) -> NDArray[np.int64]:
        """Return exact noise, as `LaplaceNoise.laplace` says."""
        check_request(sensitivity, epsilons, columns)
        noise = np.empty((epsilons.size, columns), dtype=np.int64)
        for micro, rows in rows_by_epsilon(epsilons, columns):
            values = np.empty(rows.size * columns, dtype=np.int64)
            self._fill(values, LaplaceCoins.of_scale(exact_scale(sensitivity, micro)))
            noise[rows] = values.reshape(rows.size, columns)
        return noise

    def _fill(self, out: Integers, coins: LaplaceCoins) -> None:
        floors = _table(coins)
        tosses = np.zeros(floors.size + 1, dtype=np.uint64)
        undecided = np.zeros(floors.size, dtype=np.uint64)
        words, position, lane = np.empty(0, dtype=np.uint64), 0, 0
        while lane < out.size:
            enough = bulk_kernel.words_needed(floors.size)
            if position + enough > words.size:
                # What is left of the old words is never used.
                likely = -(-(out.size - lane) // LANES) * floors.size * _WORDS_PER_COIN
                words, position = self._words(enough + min(likely, _WORDS_AT_ONCE)), 0
            lane, position, waits = bulk_kernel.fill(words, position, floors, out, lane, tosses, undecided)
            if waits:
                self._finish(out[lane : lane + LANES], coins, tosses, undecided)
                lane += LANES

    def _finish(self, out: Integers, coins: LaplaceCoins, tosses: Words, undecided: Words) -> None:
        """Decide the coins that the kernel left open, follow the tails that came up, and write the values."""
        for coin in range(undecided.size):
            for i in _lanes(undecided[coin]):
                if self._toss(coins, coin, known=TABLE_BITS):
                    tosses[coin] |= np.uint64(1 << i)
        room = np.zeros(LANES, dtype=np.uint64)
        bulk_kernel.assemble(tosses, undecided.size, room, out, 0)
        signs = int(tosses[undecided.size])
        for i in _lanes(tosses[TAIL] & tosses[NONZERO]):
            if i < out.size:
                successes = 1
                while self._toss(coins, TAIL):
                    successes += 1
                beyond = successes << coins.digits
                out[i] = _wrapped(int(out[i]) + (-beyond if signs >> i & 1 else beyond))

    def _toss(self, coins: LaplaceCoins, coin: int, known: int = 0) -> bool:
        """Toss a coin, of whose probability the first `known` digits were found equal to the random ones."""
        while True:
            known += TABLE_BITS
            p = coins.floors(known)[coin] % (1 << TABLE_BITS)
            u = int(self._words(1)[0])
            if u != p:
                return u < p

    def _words(self, count: int) -> Words:
        return self._source.take(8 * count).view(np.dtype("<u8"))


@lru_cache(maxsize=4096)
def _table(coins: LaplaceCoins) -> Words:
    floors = np.array(coins.floors(TABLE_BITS), dtype=np.uint64)
    floors.flags.writeable = False
    return floors


def _lanes(word: np.uint64) -> list[int]:
    return [i for i in range(LANES) if int(word) >> i & 1]


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63
