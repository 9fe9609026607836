"""What every source of noise must refuse and keep to, and how OpenDP is asked.

Rare events of the bulk sampler, forced by a script of bytes: ties to any depth, tails, overflow.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_bytes import ONES, Script, word_of

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.noise import exact_noise
from crowdveil.privacy.noise.coins import NONZERO, TAIL, Odds
from crowdveil.privacy.noise.exact_noise import BulkNoise, OpenDPNoise, double_above
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.privacy.noise.source import Noise, rows_by_epsilon

SOURCES: list[Noise] = [OpenDPNoise(), BulkNoise(), FloatNoiseForExperiments(seed=1)]
ONE = Epsilons.same(1, 1)

every_source = pytest.mark.parametrize("source", SOURCES, ids=lambda source: type(source).__name__)


both_kinds = pytest.mark.parametrize("kind", ["laplace", "cube"])
KINDS_BY_EPSILON = {
    "laplace": lambda source, *args: source.laplace(1, *args),
    "cube": lambda source, *args: source.cube(1, *args),
    "tosses": lambda source, *args: source.tosses(Odds(0, 1, 1, 1), *args),
}
KINDS = {**KINDS_BY_EPSILON, "uniform": lambda source, epsilons, columns: source.uniform(9, len(epsilons), columns)}
by_epsilon = pytest.mark.parametrize("ask", KINDS_BY_EPSILON.values(), ids=KINDS_BY_EPSILON.keys())
every_kind = pytest.mark.parametrize("ask", KINDS.values(), ids=KINDS.keys())


@every_source
@both_kinds
@pytest.mark.parametrize("sensitivity", [0, -1, 1.0, 2.5, math.nan, math.inf, None, "1", True])
def test_a_sensitivity_is_a_positive_whole_number(source, kind, sensitivity):
    with pytest.raises(CrowdveilError, match=r"sensitivity is .* positive whole number of grid steps"):
        getattr(source, kind)(sensitivity, ONE, 3)


@every_source
@every_kind
@pytest.mark.parametrize("columns", [0, -1, 2.0, math.nan, None, True])
def test_columns_are_a_positive_whole_number(source, ask, columns):
    with pytest.raises(CrowdveilError, match="columns"):
        ask(source, ONE, columns)


@every_source
@pytest.mark.parametrize("rows", [-1, 2.0, math.nan, None, True])
def test_rows_are_a_whole_number(source, rows):
    with pytest.raises(CrowdveilError, match="rows"):
        source.uniform(2, rows, 3)


@every_source
@pytest.mark.parametrize("below", [0, -1, 2.0, math.nan, None, True, 2**62 + 1])
def test_a_bound_is_a_whole_number_up_to_2_to_the_62(source, below):
    with pytest.raises(CrowdveilError, match=r"bound must be from 1 to 2\^62"):
        source.uniform(below, 2, 3)


@every_source
@pytest.mark.parametrize("odds", [None, 0.5, (0, 1, 1, 1)])
def test_odds_are_odds(source, odds):
    with pytest.raises(CrowdveilError, match=r"must be Odds"):
        source.tosses(odds, ONE, 3)


@every_source
@by_epsilon
@pytest.mark.parametrize(
    "epsilons",
    [
        np.array([1_000_000]),
        [1_000_000],
        1_000_000,
        Epsilon(1),
    ],
)
def test_epsilons_are_epsilons(source, ask, epsilons):
    """Whatever is no Epsilons was not checked to be in their range."""
    with pytest.raises(CrowdveilError, match="must be Epsilons"):
        ask(source, epsilons, 3)


@every_source
def test_the_greatest_scale_is_served_and_a_greater_one_is_not(source):
    assert source.laplace(2**52, ONE, 3).shape == (1, 3)
    with pytest.raises(CrowdveilError, match="coarser grid or a larger epsilon"):
        source.laplace(2**52 + 1, ONE, 3)
    with pytest.raises(CrowdveilError, match="scale above"):
        source.laplace(2**52, Epsilons.of_millionths([1_000_000, 999_999]), 3)


@every_source
def test_the_cube_asks_for_room_for_the_sum_of_its_variables(source):
    """One more than there are columns."""
    assert source.cube(2**50, ONE, 3).shape == (1, 3)
    with pytest.raises(CrowdveilError, match=r"scale above 2\^52 / 4.* coarser grid or a larger epsilon"):
        source.cube(2**50 + 1, ONE, 3)


@every_source
@every_kind
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_shape_and_type(source, ask, rows):
    drawn = ask(source, Epsilons.of_millionths(np.full(rows, 300_000)), 7)
    assert drawn.shape == (rows, 7)
    assert drawn.dtype in (np.int64, np.bool_)
    assert isinstance(drawn, np.ndarray)


@every_source
@pytest.mark.parametrize("below", [1, 3, 2**62])
def test_uniform_integers_stay_below_their_bound_and_use_the_room(source, below):
    drawn = source.uniform(below, 100, 30)
    assert drawn.dtype == np.int64
    assert drawn.min() < below * 0.01 + 1
    assert below * 0.99 - 1 < drawn.max() < below


@every_source
@both_kinds
def test_each_row_has_its_own_epsilon(source, kind):
    """Epsilons 50,000 apart cannot be mistaken: one row's noise is nearly always below the other's."""
    epsilons = Epsilons.of_millionths(np.array([1_000, 50_000_000] * 20))
    columns = 50
    magnitude = np.abs(getattr(source, kind)(2**31, epsilons, columns)).mean(axis=1)
    if kind == "cube":
        # The radius is the sum of columns + 1 variables, and half of it the mean of the coordinates.
        magnitude = magnitude * 2 / (columns + 1)
    scales = 2**31 * 1e6 / epsilons.micro
    # The mean of 50 exponential variables is within a factor 3 of its expectation but for a chance below 1e-9.
    assert (magnitude > scales / 3).all()
    assert (magnitude < scales * 3).all()


@every_source
def test_the_smallest_noise_is_usually_none(source):
    """At sensitivity 1 and epsilon 50, P(X != 0) = 2 / (1 + e^50) < 1e-21; the rounded float has e^-25."""
    assert not source.laplace(1, Epsilons.same(50, 100), 10).any()


@pytest.mark.parametrize("source", [source for source in SOURCES if source.exact], ids=lambda source: source.name)
def test_the_smallest_noise_of_a_cube_is_usually_none(source):
    """P(X != 0) < (3^10 - 1) e^-50 + ... < 1e-16 a row."""
    assert not source.cube(1, Epsilons.same(50, 100), 10).any()


def test_only_the_exact_sources_say_that_they_are():
    assert [source.exact for source in SOURCES] == [True, True, False]
    assert "not private" in SOURCES[2].name
    assert len({source.name for source in SOURCES}) == 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda source: source.laplace(2**31, Epsilons.of_millionths([100_000, 3_000_000]), 9),
        lambda source: source.cube(2**31, Epsilons.of_millionths([100_000, 3_000_000]), 9),
        lambda source: source.tosses(Odds(1, 0, 1, 1), Epsilons.of_millionths([100_000, 3_000_000]), 200),
        lambda source: source.uniform(2**62, 2, 9),
    ],
)
def test_float_noise_repeats_with_its_seed(ask):
    first, again, other = (ask(FloatNoiseForExperiments(seed)) for seed in (5, 5, 6))
    assert (first == again).all()
    assert (first != other).any()


@given(st.lists(st.sampled_from([100, 101, 300_000, 50_000_000]), max_size=30), st.integers(1, 70_000))
def test_every_row_is_in_one_block_with_its_epsilon(epsilons, columns):
    given_epsilons = Epsilons.of_millionths(epsilons)
    seen = []
    for micro, rows in rows_by_epsilon(given_epsilons, columns):
        assert (given_epsilons[rows].micro == micro).all()
        assert len(rows) == 1 or len(rows) * columns <= 2**16
        seen += rows.tolist()
    assert sorted(seen) == list(range(len(epsilons)))


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=2**52))
def test_double_above_is_the_least_one(x):
    double = double_above(x)
    assert Fraction(math.nextafter(double, 0)) < x <= Fraction(double)


@given(st.integers(1, 2**33), st.integers(100, 50_000_000))
def test_opendp_accounts_for_no_more_than_epsilon(sensitivity, micro):
    """The scale handed over is at least the exact one, and so near to it that OpenDP's own bound is epsilon."""
    measurement = exact_noise._laplace_measurement(sensitivity, micro)
    epsilon = Fraction(micro, 10**6)
    claimed = measurement.map(sensitivity)
    assert claimed <= double_above(epsilon)
    assert claimed >= epsilon * (1 - Fraction(1, 2**51))


def test_a_scale_that_is_too_small_is_noticed(monkeypatch):
    monkeypatch.setattr(exact_noise, "double_above", lambda x: math.nextafter(float(x), 0))
    with pytest.raises(AssertionError, match="accounts more than epsilon"):
        OpenDPNoise().laplace(3, Epsilons.of_millionths([700_001]), 1)


LANE = 5
UP, FAILS, TIES = "up", "fails", "ties"


def probabilities(scale, digits):
    """The coins of `laplace_coins`, from the decimal module: good to 2^-600."""
    with localcontext() as context:
        context.prec = 240
        exp = [(Decimal(2**k) * scale.denominator / scale.numerator).exp() for k in range(digits + 1)]
        return [Fraction(2 / (1 + exp[0])), Fraction(1 / exp[-1]), *(Fraction(1 / (1 + e)) for e in exp[:-1])]


def tape(coins, outcomes, negative=False):
    """Words by which every coin of LANE has the given outcome, and the coins of all other lanes fail."""
    words = [negative << LANE]
    for p, outcome in zip(coins, outcomes, strict=True):
        digits = [word_of(p, 0) >> (63 - i) & 1 for i in range(64)]
        # The number 0.000... is decided at the first digit 1 of p, and 0.111... at the first digit 0.
        own, decided = {
            UP: ([0] * 64, digits.index(1)),
            FAILS: ([1] * 64, digits.index(0)),
            TIES: (digits, 63),
        }[outcome]
        length = 1 + max(7, decided, digits.index(0))
        words += [ONES & ~(1 << LANE) | u << LANE for u in own[:length]]
    return words


def draw(script, scale, count=64):
    micro = 10**6 * scale.denominator
    values = BulkNoise(script).laplace(scale.numerator, Epsilons.of_millionths([micro]), count)[0].tolist()
    assert script.requests == []
    assert not any(values[:LANE] + values[LANE + 1 :])
    return values[LANE]


SCALE, DIGITS = Fraction(15, 2), 7
COINS = probabilities(SCALE, DIGITS)
PLAIN = [UP, FAILS, UP, FAILS, UP, FAILS, FAILS, FAILS, FAILS]  # 1 + 0b101


@pytest.mark.parametrize("count", [6, 64, 130])
@pytest.mark.parametrize("negative", [False, True])
def test_a_plain_draw(negative, count):
    assert draw(Script(tape(COINS, PLAIN, negative)), SCALE, count) == (-6 if negative else 6)


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("below", [True, False])
@pytest.mark.parametrize("coin", [NONZERO, 2, 3, 8])
def test_a_tie_is_decided_by_the_first_different_digit_however_late(coin, below, depth):
    outcomes = PLAIN.copy()
    outcomes[coin] = TIES
    further = [word_of(COINS[coin], 1 + i) for i in range(depth + 1)]
    further[-1] += -1 if below else 1
    value = draw(Script(tape(COINS, outcomes), *([word] for word in further)), SCALE)
    if coin == NONZERO:
        assert value == (6 if below else 0)
    else:
        bit = 2 ** (coin - 2)
        assert value == 1 + ((0b101 & ~bit) | (bit if below else 0))


def test_ties_in_several_coins_are_decided_one_by_one():
    outcomes = [TIES, FAILS, TIES, TIES, *PLAIN[4:]]
    words = [[word_of(COINS[coin], 1) + step] for coin, step in ((NONZERO, -1), (2, 1), (3, -1))]
    assert draw(Script(tape(COINS, outcomes), *words), SCALE) == 1 + 0b110


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("more", [0, 1, 4])
def test_a_tail_is_tossed_until_it_fails(more, negative):
    outcomes = [UP, UP, *PLAIN[2:]]
    value = draw(Script(tape(COINS, outcomes, negative), *[[0]] * more, [ONES]), SCALE)
    assert value == (-1 if negative else 1) * (6 + (1 + more) * 2**DIGITS)


@pytest.mark.parametrize("below", [True, False])
def test_a_tail_may_be_tied_too(below):
    outcomes = [UP, TIES, *PLAIN[2:]]
    decision = word_of(COINS[TAIL], 1) + (-1 if below else 1)
    again_tied, then_above = word_of(COINS[TAIL], 0), word_of(COINS[TAIL], 1) + 1
    further = [[decision], [again_tied], [then_above]] if below else [[decision]]
    assert draw(Script(tape(COINS, outcomes), *further), SCALE) == (6 + 2**DIGITS if below else 6)


def test_a_tail_of_a_zero_is_not_followed():
    outcomes = [FAILS, UP, *PLAIN[2:]]
    assert draw(Script(tape(COINS, outcomes)), SCALE) == 0


def test_a_tail_beyond_the_values_asked_for_is_not_followed():
    outcomes = [UP, UP, *PLAIN[2:]]
    drawn = BulkNoise(Script(tape(COINS, outcomes))).laplace(15, Epsilons.same(2, 1), LANE)
    assert not drawn.any()


@pytest.mark.parametrize("negative", [False, True])
def test_what_passes_the_end_of_int64_wraps_around(negative):
    """So that adding it to an int64, which wraps around too, is the exact sum modulo 2^64."""
    scale, digits, tails = Fraction(2**52), 56, 200
    coins = probabilities(scale, digits)
    outcomes = [UP, UP, *[FAILS] * digits]
    exact = (-1 if negative else 1) * (1 + tails * 2**digits)
    assert abs(exact) > 2**63
    value = draw(Script(tape(coins, outcomes, negative), *[[0]] * (tails - 1), [ONES]), scale)
    assert (value - exact) % 2**64 == 0
    data = np.array([0, 1, -1, 2**62, -(2**62)])
    assert [(int(total) - exact - int(v)) % 2**64 for total, v in zip(data + value, data, strict=True)] == [0] * 5
