"""The kernel against a plain reading of its promise, one lane and one whole number at a time."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from crowdveil.privacy.noise.laplace_draws import NONZERO, TAIL, fill, words_needed

ONES = 2**64 - 1


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
