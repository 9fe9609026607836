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
This module computes those digits, in integers and with proven bounds; no floating-point exponential is involved.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.amount import MICROS_PER_UNIT

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
