"""The coins' probabilities against Python's decimal exponential, and the law they make up against the closed form."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.privacy.noise import coins as laplace_coins
from crowdveil.privacy.noise.coins import LaplaceCoins, exp_bounds

SCALES = [
    *(Fraction(1, 50), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(15, 2), Fraction(355, 113)),
    *(Fraction(2**31), Fraction(2**31 * 10**6, 100_003), Fraction(2**52)),
]


def exp(x: Fraction) -> Fraction:
    """exp(x) to about 2^-600 for |x| below 100, from the decimal module."""
    with localcontext() as context:
        context.prec = 240
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())


@pytest.mark.parametrize("bits", [64, 128, 300])
@pytest.mark.parametrize("scale", SCALES)
def test_the_floors_are_those_of_the_probabilities(scale, bits):
    coins = LaplaceCoins.of_scale(scale)
    nonzero = 2 / (1 + exp(1 / scale))
    tail = exp(-(2**coins.digits) / scale)
    digits = [1 / (1 + exp(2**k / scale)) for k in range(coins.digits)]
    assert coins.floors(bits) == [int(p * 2**bits) for p in (nonzero, tail, *digits)]


@pytest.mark.parametrize("scale", SCALES)
def test_the_digits_leave_a_tail_of_one_in_millions(scale):
    digits = LaplaceCoins.of_scale(scale).digits
    assert 2**digits >= 16 * scale
    assert digits == 0 or 2 ** (digits - 1) < 16 * scale


@given(
    st.fractions(min_value=Fraction(1, 2**52), max_value=50, max_denominator=2**60).filter(lambda x: x > 0),
    st.integers(min_value=1, max_value=400),
)
def test_the_bounds_enclose_the_exponential(x, precision):
    low, high = exp_bounds(x, precision)
    assert low <= exp(-x) * 2**precision <= high
    assert high - low < 2**14


def test_bounds_too_far_apart_to_be_certain_are_drawn_closer(coarse_at_first):
    certain = LaplaceCoins.of_scale(Fraction(3)).floors(64)
    precisions = coarse_at_first(laplace_coins)
    assert LaplaceCoins.of_scale(Fraction(3)).floors(64) == certain
    assert len(precisions) == 2
    assert precisions[0] < precisions[1]


@pytest.mark.parametrize("digits", [None, 0, 2])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(3), Fraction(15, 2)])
def test_the_coins_make_up_the_discrete_laplace_law(scale, digits):
    """Every probability that the 64-digit table gives is within 2^-60 of the closed form, tails included."""
    coins = LaplaceCoins.of_scale(scale) if digits is None else LaplaceCoins(scale, digits)
    nonzero, tail, *bits = (Fraction(floor, 2**64) for floor in coins.floors(64))
    q = exp(-1 / scale)
    for x in range(80):
        if x == 0:
            table = 1 - nonzero
        else:
            m, r = divmod(x - 1, 2**coins.digits)
            ones = prod((p if r >> k & 1 else 1 - p) for k, p in enumerate(bits))
            table = nonzero * Fraction(1, 2) * ones * tail**m * (1 - tail)
        assert abs(table - (1 - q) / (1 + q) * q**x) < Fraction(1, 2**60)
