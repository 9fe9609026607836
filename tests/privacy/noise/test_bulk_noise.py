"""Rare events of the bulk sampler, forced by a script of bytes: ties to any depth, tails, overflow."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scripted_bytes import ONES, Script, word_of

from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise.bulk_noise import BulkNoise
from crowdveil.privacy.noise.laplace_draws import NONZERO, TAIL

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
