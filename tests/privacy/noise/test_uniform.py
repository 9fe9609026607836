"""Uniform integers: every outcome enumerated for small bounds, and the bounds at the end of 64 bits."""

import numpy as np
import pytest
from scipy import stats
from scripted_bytes import Script

from crowdveil.privacy.noise.uniform import AesStream, uniform_integer, uniform_integers

REST = 0x5A5A_5A5A_5A5A_5A5A


def all_leading_bits(bits):
    """Every word there is, as far as its leading bits go, with arbitrary bits behind; the greatest first."""
    return [top << (64 - bits) | REST >> bits for top in reversed(range(2**bits))]


@pytest.mark.parametrize("below", [1, 2, 3, 4, 5, 23, 31, 32, 33, 100])
def test_every_value_has_one_word_and_the_others_are_thrown_away(below):
    words = all_leading_bits((below - 1).bit_length())
    drawn = uniform_integers(Script(words), np.array([below]), below)
    assert drawn[0].tolist() == list(reversed(range(below)))


@pytest.mark.parametrize("below", [1, 2, 3, 23, 32, 33])
def test_one_at_a_time_every_value_has_one_word_too(below):
    words = all_leading_bits((below - 1).bit_length())
    script = Script(*([word] if below > 1 else [] for word in words))
    assert [uniform_integer(script, below) for _ in range(below)] == list(reversed(range(below)))
    assert script.requests == []


@pytest.mark.parametrize("below", [2**62, 2**62 - 1, 2**62 + 1, 2**63 - 1])
def test_the_greatest_bounds(below):
    bits = (below - 1).bit_length()
    beyond = [below << (64 - bits)] if below < 2**bits else []
    words = [0, *beyond, (below - 1) << (64 - bits), *beyond, ((below - 1) << (64 - bits)) + 2 ** (64 - bits) - 1]
    assert uniform_integers(Script(words), np.array([below]), 3).tolist() == [[0, below - 1, below - 1]]


@pytest.mark.parametrize("below", [2**64 + 1, 2**64, 3 * 2**100])
def test_bounds_beyond_a_word(below):
    """The first word is the lowest one, of which the lowest bits are not used."""
    bits = (below - 1).bit_length()

    def as_words(value):
        return [(value << (128 - bits)) % 2**64, value << (128 - bits) >> 64]

    if below == 2**64:
        assert uniform_integer(Script([below - 1]), below) == below - 1
        return
    assert uniform_integer(Script(as_words(0)), below) == 0
    assert uniform_integer(Script(as_words(below), as_words(below - 1)), below) == below - 1


def test_each_row_has_its_own_bound():
    words = [1 << 63, 3 << 62, 3 << 62, 0, 1 << 63, 1 << 62]
    # Below 2: 1, 1. Below 3: the word of 3 is thrown away, then 0, 2. Below 1: always 0.
    assert uniform_integers(Script([*words, 0]), np.array([2, 3, 1]), 2).tolist() == [[1, 1], [0, 2], [0, 0]]


def test_a_bound_that_nothing_is_below_is_a_bug():
    with pytest.raises(ValueError, match="no integer"):
        uniform_integers(AesStream(), np.array([5, 0]), 2)


def test_when_the_words_run_out_more_are_taken():
    """A row of 3 asks for 14 words; all but the last of them are thrown away, and then more are needed."""
    script = Script([3 << 62] * 13 + [1 << 62], [3 << 62, 1 << 63, 0])
    assert uniform_integers(script, np.array([3]), 3).tolist() == [[1, 2, 0]]


@pytest.mark.parametrize("below", [3, 23, 1000])
def test_drawn_values_are_uniform(below):
    drawn = uniform_integers(AesStream(), np.full(1000, below), 500)
    assert stats.chisquare(np.bincount(drawn.ravel(), minlength=below)).pvalue > 1e-8


def test_large_values_are_uniform():
    below = 2**61 + 2**60
    drawn = uniform_integers(AesStream(), np.full(200, below), 1000).ravel()
    assert stats.kstest(drawn / below, "uniform").pvalue > 1e-8
    assert stats.chisquare(np.bincount(drawn & 63, minlength=64)).pvalue > 1e-8
