"""Draws by inversion: all outcomes of a small law enumerated, and ties forced to any depth."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import pytest
from scripted_bytes import ONES, Script, word_of

from crowdveil.privacy.noise.uniform import invert

REST = 0x2A5A_5A5A_5A5A_5A5A


@dataclass(frozen=True)
class Law:
    """Cumulative probabilities that are fractions."""

    probabilities: tuple[Fraction, ...]

    def floors(self, bits):
        return [min(int(p * 2**bits), 2**bits - 1) for p in self.probabilities]


def law(*numbers):
    return Law(tuple(map(Fraction, numbers)))


def test_all_outcomes_enumerated():
    """With cumulative probabilities in 16ths, every combination of four digits occurs once."""
    script = Script([top << 60 | REST >> 4 for top in range(16)])
    drawn = invert(script, law("3/16", "3/16", "10/16", "15/16"), 16)
    assert Counter(drawn.tolist()) == {0: 3, 2: 7, 3: 5, 4: 1}


THIRDS = law("1/3", "2/3")


@pytest.mark.parametrize("threshold", [0, 1])
@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_tie_is_decided_by_the_first_different_digit_however_late(threshold, depth, step):
    p = THIRDS.probabilities[threshold]
    words = [word_of(p, i) for i in range(depth + 1)]
    words[-1] += step
    script = Script(*([word] for word in words))
    assert invert(script, THIRDS, 1).tolist() == [threshold + (step > 0)]
    assert script.requests == []


def test_ties_in_several_draws_are_decided_in_their_order():
    first, second = (word_of(p, 0) for p in THIRDS.probabilities)
    script = Script([0, first, ONES, second], [word_of(Fraction(1, 3), 1) - 1], [word_of(Fraction(2, 3), 1) + 1])
    assert invert(script, THIRDS, 4).tolist() == [0, 0, 2, 2]
    assert script.requests == []


def test_probabilities_of_zero_and_one_are_kept_in_a_tie_too():
    assert invert(Script([0, 5, ONES], [0], [1]), law(0), 3).tolist() == [1, 1, 1]
    assert invert(Script([0, 5, ONES], [ONES], [ONES - 1]), law(1), 3).tolist() == [0, 0, 0]


def test_a_half_is_a_half():
    """The digits of 1/2 end; a number that begins with them is not below it."""
    half = 1 << 63
    assert invert(Script([half - 1, half, half + 1], [0], [1]), law("1/2"), 3).tolist() == [0, 1, 1]
