"""Uniform integers: every outcome enumerated for small bounds, and the bounds at the end of 64 bits.

Draws by inversion: all outcomes of a small law enumerated, and ties forced to any depth.
"""

import threading
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats
from scripted_bytes import ONES, Script, word_of

from crowdveil.privacy.noise import uniform
from crowdveil.privacy.noise.uniform import AesStream, invert, uniform_integer, uniform_integers

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


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000])
def test_the_bytes_are_the_keystream_of_a_fresh_key(monkeypatch, count):
    """Block i of the keystream is the encryption of the number i, here by AES without any mode."""
    keys = [bytes(range(32)), bytes(range(1, 33))]
    drawn = iter(keys)
    monkeypatch.setattr(uniform.os, "urandom", lambda size: next(drawn) if size == 32 else None)
    stream = AesStream()
    for key in keys:
        blocks = b"".join(i.to_bytes(16, "big") for i in range(count // 16 + 1))
        expected = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(blocks)[:count]
        assert stream.take(count).tobytes() == expected


def test_nothing_is_handed_out_twice():
    """Among 2^18 words of 64 bits an accidental repetition has a chance below 2^-28."""
    stream, taken = AesStream(), []
    threads = [threading.Thread(target=lambda: taken.append(stream.take(2**18))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = np.concatenate(taken).view(np.uint64)
    assert len(words) == len(np.unique(words)) == 2**18


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
