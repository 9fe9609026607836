"""The coins' probabilities against Python's decimal exponential, and the law they make up against the closed form.

The kernel against a plain reading of its promise, one lane and one whole number at a time. Odds against Python's
decimal exponential; tosses against their probability and by forced ties.
"""

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scripted_bytes import ONES, Script, word_of

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise import coins as coins_module
from crowdveil.privacy.noise.coins import NONZERO, TAIL, Coin, LaplaceCoins, Odds, exp_bounds, fill, words_needed
from crowdveil.privacy.noise.exact_noise import BulkNoise, OpenDPNoise
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments

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
    precisions = coarse_at_first(coins_module)
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


def run(words, floors, count, positive=False):
    """Call the kernel on these words, with ones behind them."""
    out = np.full(count, 77, dtype=np.int64)
    tosses = np.zeros(len(floors) + 1, dtype=np.uint64)
    undecided = np.zeros(len(floors), dtype=np.uint64)
    padded = np.array([*words, *[ONES] * words_needed(len(floors))], dtype=np.uint64)
    lane, position, waits = fill(padded, 0, np.array(floors, dtype=np.uint64), positive, out, 0, tosses, undecided)
    return out, lane, position, waits, tosses, undecided


def numbers(words):
    """The 64 lanes' integers whose binary digits the words hold, the first word's being the highest."""
    return [sum((word >> lane & 1) << i for i, word in enumerate(reversed(words))) for lane in range(64)]


def read_plainly(words, floors, positive=False):
    """Draw 64 values as promised, comparing whole numbers; return them and the words not used."""
    sign, used, up = (0, 0, [[True] * 64]) if positive else (words[0], 1, [])
    for floor in floors[len(up) :]:
        length = next(n for n in range(8, 65) if all(u != floor >> (64 - n) for u in numbers(words[used : used + n])))
        up.append([u < floor >> (64 - length) for u in numbers(words[used : used + length])])
        used += length
    values = []
    for lane in range(64):
        magnitude = 1 + sum(row[lane] << k for k, row in enumerate(up[2:])) if up[NONZERO][lane] else 0
        values.append(-magnitude if sign >> lane & 1 else magnitude)
    return values, words[used:]


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 192])
@pytest.mark.parametrize("coins", [2, 3, 9, 58])
def test_values_follow_from_the_words_as_promised(coins, count, positive):
    rng = np.random.default_rng([coins, count])
    floors = [int(f) for f in rng.integers(0, 2**64, size=coins, dtype=np.uint64)]
    floors[TAIL] = 1  # A tail has no chance with these words, so that the kernel never stops.
    words = [int(w) for w in rng.integers(0, 2**64, size=3 * 12 * coins, dtype=np.uint64)]
    expected, rest = [], [*words, *[ONES] * words_needed(coins)]
    while len(expected) < count:
        values, rest = read_plainly(rest, floors, positive)
        expected += values
    out, lane, position, waits, _, _ = run(words, floors, count, positive)
    assert not waits
    assert lane >= count
    assert position == len(words) + words_needed(coins) - len(rest)
    assert out.tolist() == expected[:count]


def test_all_outcomes_enumerated():
    """With probabilities in eighths, every combination of digits occurs once: the counts are the probabilities."""
    eighths = {"nonzero": 6, "tail": 0, "digit": 3}
    floors = [p << 61 for p in eighths.values()]
    combinations = list(product([0, 1], repeat=10))
    words = []
    for block in range(0, len(combinations), 64):
        lanes = combinations[block : block + 64]
        column = [sum(bits[i] << lane for lane, bits in enumerate(lanes)) for i in range(10)]
        words += [column[0], *column[1:4], *[ONES] * 5, *column[4:7], *[ONES] * 5, *column[7:10], *[ONES] * 5]
    out, _, position, waits, _, _ = run(words, floors, len(combinations))
    assert not waits
    assert position == len(words)
    nonzero, digit = Fraction(6, 8), Fraction(3, 8)
    law = {0: 1 - nonzero, 1: nonzero / 2 * (1 - digit), 2: nonzero / 2 * digit}
    assert Counter(out.tolist()) == {x: 1024 * law[abs(x)] for x in range(-2, 3)}


@pytest.mark.parametrize("digits_equal", [7, 8, 9, 30, 63])
@pytest.mark.parametrize("floor", [0x8000_0000_0000_0001, 0x5555_5555_5555_5555, 0xFFFF_FFFF_FFFF_FFFE, 3])
@pytest.mark.parametrize("lane", [0, 31, 63])
def test_a_late_difference_decides(lane, floor, digits_equal):
    """One lane's number equals the probability for a while; the first different digit decides, and only that."""
    digits = [floor >> (63 - i) & 1 for i in range(64)]
    length = max(8, digits_equal + 1)
    words = [0]
    for i, digit in enumerate(digits[:length]):
        # The other lanes differ in the first digit.
        others = 0 if digit else ONES & ~(1 << lane)
        own = digit if i < digits_equal else 1 - digit
        words.append(others | own << lane)
    out, _, position, waits, _, _ = run(words, [floor, 0], 64)
    assert not waits
    assert position == 1 + length + 8
    expected = [digits[0]] * 64
    expected[lane] = digits[digits_equal]
    assert out.tolist() == expected


def test_a_tie_is_left_to_the_caller():
    signs, equal, above = [0], [0] * 64, [ONES] * 8
    out, lane, position, waits, _, undecided = run([*signs, *equal, *above], [0, 0], 64)
    assert (lane, position, waits) == (0, 1 + 64 + 8, True)
    assert undecided.tolist() == [ONES, 0]
    assert set(out.tolist()) == {77}


def test_a_tail_is_left_to_the_caller():
    signs, below, one_lane = [5], [0] * 8, 1 << 17
    words = [*signs, *below, *[ONES & ~one_lane] * 8]
    out, lane, _, waits, tosses, undecided = run(words, [2**63, 2**56], 64)
    assert (lane, waits) == (0, True)
    assert tosses.tolist() == [ONES, one_lane, 5]
    assert undecided.tolist() == [0, 0]
    assert set(out.tolist()) == {77}


def test_a_tail_of_a_positive_value_is_left_to_the_caller_with_the_known_coins():
    one_lane = 1 << 17
    _, lane, position, waits, tosses, undecided = run([ONES & ~one_lane] * 8, [2**63, 2**56], 64, positive=True)
    assert (lane, position, waits) == (0, 8, True)
    assert tosses.tolist() == [ONES, one_lane, 0]
    assert undecided.tolist() == [0, 0]


def test_the_kernel_stops_where_words_might_run_out():
    floors = np.array([2**63, 1, 2**63], dtype=np.uint64)
    out = np.zeros(1000, dtype=np.int64)
    scratch = np.zeros(4, dtype=np.uint64), np.zeros(3, dtype=np.uint64)
    words = np.random.default_rng(3).integers(0, 2**64, size=400, dtype=np.uint64)
    lane, position, waits = fill(words, 0, floors, False, out, 0, *scratch)
    assert not waits
    assert 0 < lane < 1000
    assert lane % 64 == 0
    assert position + words_needed(3) > 400 >= position
    short = fill(words[: words_needed(3) - 1], 0, floors, False, out, 0, *scratch)
    assert short == (0, 0, False)


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


def test_bounds_of_odds_too_far_apart_to_be_certain_are_drawn_closer(coarse_at_first):
    precisions = coarse_at_first(coins_module)
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
