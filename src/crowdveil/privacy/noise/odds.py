"""Coins whose probability depends on epsilon, such as those of randomised response."""

from dataclasses import dataclass
from fractions import Fraction

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.amount import MICROS_PER_UNIT
from crowdveil.privacy.noise.laplace_coins import exp_bounds


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
    """Odds at an epsilon, given in millionths: a law with one threshold, in the words of `inversion`."""

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
