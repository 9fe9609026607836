"""Odds against Python's decimal exponential; tosses against their probability and by forced ties."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scripted_bytes import ONES, Script, word_of

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise import coins as odds_module
from crowdveil.privacy.noise.bulk_noise import BulkNoise
from crowdveil.privacy.noise.coins import Coin, Odds
from crowdveil.privacy.noise.float_noise import FloatNoiseForExperiments
from crowdveil.privacy.noise.opendp_noise import OpenDPNoise

FALSE_ALARM = 1e-8
LIE = Odds(0, 1, 1, 1)
SUBSET = Odds(3, 0, 3, 17)
EXAMPLES = [LIE, SUBSET, Odds(1, 0, 1, 1), Odds(2, 5, 11, 7), Odds(0, 1, 10**30, 0), Odds(0, 1, 0, 1), Odds(0, 3, 0, 7)]


def probability(odds, micro):
    """The probability to about 2^-600."""
    with localcontext() as context:
        context.prec = 240
        q = Fraction((-Decimal(micro) / 10**6).exp())
    return (odds.a + odds.b * q) / (odds.c + odds.d * q)


@pytest.mark.parametrize("bits", [64, 128, 300])
@pytest.mark.parametrize("micro", [100, 300_000, 1_000_000, 1_234_567, 50_000_000])
@pytest.mark.parametrize("odds", EXAMPLES, ids=str)
def test_the_floor_is_that_of_the_probability(odds, micro, bits):
    p = probability(odds, micro)
    expected = 2**bits - 1 if p == 1 else int(p * 2**bits)
    assert Coin(odds, micro).floors(bits) == [expected]


@given(st.tuples(*[st.integers(0, 40)] * 4), st.integers(100, 50_000_000))
def test_any_odds_are_floored_rightly_or_refused(numbers, micro):
    a, b, c, d = numbers
    # Refused exactly if the fraction is undefined or above one near q = 0 or at q = 1.
    if c + d == 0 or a > c or a + b > c + d:
        with pytest.raises(CrowdveilError, match="are no odds"):
            Odds(*numbers)
    else:
        p = probability(Odds(*numbers), micro)
        assert 0 <= p <= 1
        assert Coin(Odds(*numbers), micro).floors(64) == [min(int(p * 2**64), ONES)]


@pytest.mark.parametrize(
    "numbers", [(-1, 1, 1, 1), (0, 1.0, 1, 1), (0, math.nan, 1, 1), (True, 0, 1, 1), (0, "1", 1, 1)]
)
def test_odds_are_whole_numbers(numbers):
    with pytest.raises(CrowdveilError, match="whole numbers that are not negative"):
        Odds(*numbers)


def test_bounds_too_far_apart_to_be_certain_are_drawn_closer(coarse_at_first):
    precisions = coarse_at_first(odds_module)
    assert Coin(SUBSET, 700_001).floors(64) == [int(probability(SUBSET, 700_001) * 2**64)]
    assert len(precisions) == 2
    assert precisions[0] < precisions[1]


def test_randomised_response_is_epsilon_private_to_the_last_digit_of_the_table():
    """P(truth) / P(lie) = e^eps: the table's lie is within 2^-64 of the probability for which this holds."""
    for micro in (100, 300_000, 1_000_000, 5_000_000):
        lie = Fraction(Coin(LIE, micro).floors(64)[0], 2**64)
        exact = probability(LIE, micro)
        assert 0 <= exact - lie < Fraction(1, 2**64)
        assert math.log((1 - exact) / exact) == pytest.approx(micro / 1e6, rel=1e-12)


@pytest.mark.parametrize("below", [True, False])
def test_a_tied_toss_is_decided_by_later_digits(below):
    p = probability(LIE, 1_000_000)
    script = Script([0, word_of(p, 0), ONES], [word_of(p, 1)], [word_of(p, 2) + (-1 if below else 1)])
    assert BulkNoise(script).tosses(LIE, Epsilons.same(1, 1), 3).tolist() == [[True, below, False]]
    assert script.requests == []


sources = pytest.mark.parametrize(
    "source", [BulkNoise(), OpenDPNoise(), FloatNoiseForExperiments(3)], ids=lambda source: type(source).__name__
)


def deviation(up, p):
    """How many standard deviations the share of tosses that came up is away from p."""
    return abs(up.mean() - p) * math.sqrt(up.size / (p * (1 - p)))


@sources
@pytest.mark.parametrize("odds", [LIE, SUBSET, Odds(2, 5, 11, 7)], ids=str)
def test_tosses_come_up_as_often_as_they_should(source, odds):
    """Every row at its own epsilon. P(|normal| > 6) < 2e-9."""
    epsilons = Epsilons.of_millionths(np.array([300_000, 1_000_000, 3_000_000] * 300))
    up = source.tosses(odds, epsilons, 1000)
    assert up.shape == (900, 1000)
    assert up.dtype == np.bool_
    for micro in (300_000, 1_000_000, 3_000_000):
        p = float(probability(odds, micro))
        assert deviation(up[epsilons.micro == micro], p) < 6
        for wrong in (micro // 2, micro * 2):
            assert deviation(up[epsilons.micro == micro], float(probability(odds, wrong))) > 6


@sources
def test_certain_tosses(source):
    epsilons = Epsilons.same(1, 100)
    assert source.tosses(Odds(2, 3, 2, 3), epsilons, 100).all()
    assert not source.tosses(Odds(0, 0, 1, 1), epsilons, 100).any()


@pytest.mark.parametrize("lag", [1, 2, 64, 150])
def test_tosses_are_independent_along_rows_and_columns(lag):
    """The share of equal neighbours is p^2 + (1-p)^2."""
    up = BulkNoise().tosses(LIE, Epsilons.same(1, 1000), 300)
    p = float(probability(LIE, 1_000_000))
    same = p**2 + (1 - p) ** 2
    # Disjoint pairs, so that the shares are binomial.
    assert deviation(up[:, :lag] == up[:, lag : 2 * lag], same) < 6
    assert deviation(up[:500] == up[500:], same) < 6


def test_a_chi_square_of_whole_rows():
    """Rows of four tosses fall into their 16 patterns as independent coins do."""
    rows = BulkNoise().tosses(LIE, Epsilons.of_millionths(np.full(200_000, 500_000)), 4)
    p = float(probability(LIE, 500_000))
    ones = np.array([bin(pattern).count("1") for pattern in range(16)])
    expected = 200_000 * p**ones * (1 - p) ** (4 - ones)
    observed = np.bincount(rows @ np.array([1, 2, 4, 8]), minlength=16)
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM
