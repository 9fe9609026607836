"""Coins with probabilities to any number of digits: of a discrete Laplace variable, and of randomised response.

Theorem. Let t > 0, q = exp(-1/t) and Q_k = q^(2^k) = exp(-2^k / t). Toss independent coins
    nonzero    with probability 2q / (1 + q),
    digit k    with probability Q_k / (1 + Q_k) = 1 / (1 + exp(2^k / t)),    for k = 0, ..., K - 1,
    tail       with probability Q_K, again and again until it fails; M counts the successes,
    sign       fair,
and let G = sum_k 2^k digit_k + 2^K M. Then X = (nonzero ? 1 + G : 0), negated if sign says so, has
P(X = x) = (1 - q) / (1 + q) * exp(-|x| / t): the discrete Laplace distribution of scale t.

Proof. Every g >= 0 is r + 2^K m in one way, with 0 <= r < 2^K. With b_k the binary digits of r,
    P(G = g) = prod_k Q_k^(b_k) / (1 + Q_k) * (1 - Q_K) Q_K^m = q^r q^(2^K m) * (1 - Q_K) / prod_k (1 + Q_k).
Since Q_(k+1) = Q_k^2, the product telescopes: (1 - Q_k)(1 + Q_k) = 1 - Q_(k+1) gives
prod_(k<K) (1 + Q_k) = (1 - Q_K) / (1 - q), hence P(G = g) = (1 - q) q^g: G is geometric, for any K.
So P(X = 0) = 1 - 2q / (1 + q) = (1 - q) / (1 + q), and for x != 0
P(X = x) = 1/2 * 2q / (1 + q) * (1 - q) q^(|x| - 1) = (1 - q) / (1 + q) * q^|x|.

The probabilities are irrational (e^y is for rational y != 0, Hermite and Lindemann), so a coin is tossed by
comparing the binary digits of a uniform number with those of its probability, as many as it takes to differ.
Those digits are computed in integers and with proven bounds; no floating-point exponential is involved.

By the thousand, 64 coins of a kind are tossed at once, one in each bit. A toss compares a uniform number u = 0.u1 u2
u3... with the coin's probability p = 0.p1 p2 p3..., binary digit by binary digit, and comes up if u is the smaller at
the first digit where they differ. The words of random bits hold u1 of all 64 lanes, then u2 of all lanes, and so on.
After eight digits for all, the loop goes on while any lane is undecided; a lane still undecided after the 64 digits of
the table is left to `draw`, which knows more digits.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
from numba import njit, uint64

from crowdveil.arrays import IntArray, WordArray
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import MICROS_PER_UNIT
from crowdveil.privacy.noise.uniform import ByteSource, take_words

# K is the least number of digits with 2^K >= 16 t: the tail is then tossed successfully at most once in 8.8
# million draws. More digits would cost time on every draw, fewer would leave the bulk path too often.
DIGITS_SPAN = Fraction(16)


@dataclass(frozen=True)
class LaplaceCoins:
    """The coins of one scale: nonzero, tail, digit 0, ..., digit K - 1, in this order (the fair sign aside)."""

    scale: Fraction
    digits: int

    @classmethod
    def of_scale(cls, scale: Fraction) -> Self:
        """Choose the number of digits that is fast at this scale; any number would be right."""
        return cls(scale, (math.ceil(DIGITS_SPAN * scale) - 1).bit_length())

    def floors(self, bits: int) -> list[int]:
        """Return floor(2^bits p) of every coin's probability p.

        All floors are certain. Each probability is an increasing function of exp(-1/scale); where the floors at a
        lower and at an upper bound of it agree, they are the floor itself. Where they differ, the bounds are drawn
        closer, and as no probability is a dyadic rational, they agree in the end.
        """
        precision = bits + 128
        while True:
            low, high = exp_bounds(1 / self.scale, precision)
            below = _floors(low, precision, bits, self.digits, round_up=False)
            if below == _floors(high, precision, bits, self.digits, round_up=True):
                return below
            precision *= 2


def exp_bounds(x: Fraction, precision: int) -> tuple[int, int]:
    """Return integers with low <= 2^precision exp(-x) <= high, for x > 0.

    With y = x / 2^h <= 1/2, exp(-y) = 1 - y/1 (1 - y/2 (1 - y/3 ...)). Every bracket, an alternating series of
    decreasing terms from 1, lies in [0, 1]; so the innermost one kept starts as that interval and each step
    outwards, rounded outwards, shortens it by y/n. Squaring h times gives exp(-x).
    """
    halvings = max(0, math.ceil(2 * x) - 1).bit_length()
    y = x / 2**halvings
    # How many terms is a matter of speed alone: too few would leave the bounds apart, never wrong.
    terms = 0
    gained = 0.0
    gain = -math.log2(y)
    while gained < precision:
        terms += 1
        gained += gain + math.log2(terms)
    one = 1 << precision
    low = 0
    high = one
    for n in range(terms, 0, -1):
        divisor = y.denominator * n
        low, high = one + (-high * y.numerator) // divisor, one - (low * y.numerator) // divisor
    for _ in range(halvings):
        low, high = _square(low, precision, round_up=False), _square(high, precision, round_up=True)
    return low, high


def _square(value: int, precision: int, *, round_up: bool) -> int:
    return -((-value * value) >> precision) if round_up else (value * value) >> precision


def _floors(q: int, precision: int, bits: int, digits: int, *, round_up: bool) -> list[int]:
    """Return the coins' floors as if exp(-1/t) were q / 2^precision, with every power of it rounded one way."""
    one = 1 << precision
    nonzero = (q << (bits + 1)) // (one + q)
    power = q
    digit_floors = []
    for _ in range(digits):
        digit_floors.append((power << bits) // (one + power))
        power = _square(power, precision, round_up=round_up)
    tail = power >> (precision - bits)
    return [nonzero, tail, *digit_floors]


@dataclass(frozen=True)
class Odds:
    """The probability (a + b q) / (c + d q), where q = exp(-epsilon), as a function of epsilon.

    Randomised response lies with probability q / (1 + q) = 1 / (1 + e^epsilon): these are Odds(0, 1, 1, 1).

    Being a probability for every epsilon: with no number negative and c + d > 0, the fraction is non-negative for q in
    (0, 1]; and as (c - a) + (d - b) q is a straight line in q, it is non-negative on (0, 1], so that the fraction is at
    most one, if and only if it is so at both ends: a <= c and a + b <= c + d.
    """

    a: int
    b: int
    c: int
    d: int

    def __post_init__(self) -> None:
        for number in (self.a, self.b, self.c, self.d):
            if isinstance(number, bool) or not isinstance(number, int) or not number >= 0:
                raise CrowdveilError(f"{self} are no odds: use whole numbers that are not negative.")
        if not (self.c + self.d > 0 and self.a <= self.c and self.a + self.b <= self.c + self.d):
            raise CrowdveilError(
                f"{self} are no odds: (a + b q) / (c + d q) must stay between 0 and 1 for all q from 0 to 1, which "
                "asks for c + d > 0, a <= c and a + b <= c + d."
            )


@dataclass(frozen=True)
class Coin:
    """Odds at an epsilon, given in millionths: a law with one threshold, in the words of `uniform`."""

    odds: Odds
    micro: int

    def floors(self, bits: int) -> list[int]:
        """Return floor(2^bits p) of the probability p, or 2^bits - 1 if p is one.

        The floor is certain. The derivative of p by q has the sign of bc - ad, so p is monotone in q; where the
        floors at a lower and at an upper bound of q agree, they are the floor of p. If bc = ad, p does not depend on
        q and they agree at once. Otherwise p is irrational, since q is transcendental (Hermite and Lindemann): no
        multiple of 2^-bits, so that they agree as soon as the bounds are close enough.
        """
        precision = bits + 128
        while True:
            low, high = exp_bounds(Fraction(self.micro, MICROS_PER_UNIT), precision)
            floor = self._floor(low, precision, bits)
            if floor == self._floor(high, precision, bits):
                return [min(floor, (1 << bits) - 1)]
            precision *= 2

    def _floor(self, q: int, precision: int, bits: int) -> int:
        """Return the floor as if exp(-epsilon) were q / 2^precision."""
        odds = self.odds
        above, below = (odds.a << precision) + odds.b * q, (odds.c << precision) + odds.d * q
        return (above << bits) // below


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
