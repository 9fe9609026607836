"""The cube's law: its pieces against closed forms and published numbers, rare events forced by a script of bytes."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate, product

import numpy as np
import pytest
from scripted_bytes import ONES, Script, word_of

from crowdveil.privacy.noise import cube_noise as cube_module
from crowdveil.privacy.noise.coins import LaplaceCoins
from crowdveil.privacy.noise.cube_noise import Shift, cube_noise, eulerian_numbers

SCALES = [Fraction(1, 50), Fraction(1, 2), Fraction(1), Fraction(15, 2), Fraction(2**31 * 10**6, 100_003)]


def exp(x: Fraction) -> Fraction:
    """exp(x) to about 2^-600 for |x| below 100, from the decimal module."""
    with localcontext() as context:
        context.prec = 240
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())


def test_eulerian_numbers_are_the_published_ones():
    """OEIS A060187."""
    published = ["1", "1 1", "1 6 1", "1 23 23 1", "1 76 230 76 1", "1 237 1682 1682 237 1"]
    assert [" ".join(map(str, eulerian_numbers(d))) for d in range(6)] == published


@pytest.mark.parametrize("d", [1, 2, 3, 10, 23, 60])
def test_they_turn_powers_of_odd_numbers_into_sums_of_geometric_variables(d):
    """(2r + 1)^d q^r is the coefficient of sum_k b_k q^k / (1 - q)^(d+1), where 1 / (1 - q)^(d+1) has C(r + d, d)."""
    numbers = eulerian_numbers(d)
    assert sum(numbers) == 2**d * math.factorial(d)
    for r in range(2 * d + 5):
        assert (2 * r + 1) ** d == sum(numbers[k] * math.comb(r - k + d, d) for k in range(min(r, d) + 1))


def shift_law(d, scale):
    weights = [number * exp(-k / scale) for k, number in enumerate(eulerian_numbers(d))]
    return [total / sum(weights) for total in accumulate(weights)][:-1]


@pytest.mark.parametrize("bits", [64, 128, 300])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("d", [1, 2, 3, 23, 60])
def test_the_floors_are_those_of_the_probabilities(d, scale, bits):
    assert Shift(d, scale).floors(bits) == [int(p * 2**bits) for p in shift_law(d, scale)]


def test_bounds_too_far_apart_to_be_certain_are_drawn_closer(coarse_at_first):
    certain = Shift(5, Fraction(3)).floors(64)
    precisions = coarse_at_first(cube_module)
    assert Shift(5, Fraction(3)).floors(64) == certain
    assert len(precisions) == 2
    assert precisions[0] < precisions[1]


def table_radii(d, scale, reach):
    """P(R = 0), ..., P(R = reach), as the 64-digit tables have it: K by its thresholds, G_0 to G_d by their coins."""
    coins = LaplaceCoins.of_scale(scale)
    _, tail, *digits = (floor / 2**64 for floor in coins.floors(64))
    law = [1.0]
    for p in digits:
        # A digit of weight len(law) doubles the range.
        law = [probability * factor for factor in (1 - p, p) for probability in law]
    law = [(1 - tail) * tail**m * probability for m in range(reach // len(law) + 1) for probability in law]
    thresholds = [0.0, *(floor / 2**64 for floor in Shift(d, scale).floors(64)), 1.0]
    total = np.diff(thresholds)
    for _ in range(d + 1):
        total = np.convolve(total, law)[: reach + 1]
    return total


def table_law(d, scale, reach):
    """P(X = x) by |x|, up to what radii above `reach` add."""
    radii = table_radii(d, scale, reach)
    return np.cumsum((radii / (2.0 * np.arange(radii.size) + 1) ** d)[::-1])[::-1]


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_the_tables_make_up_the_law(d, scale):
    q = math.exp(-1 / scale)
    points = np.array([1, *((2 * m + 1) ** d - (2 * m - 1) ** d for m in range(1, 400))])
    closed = q ** np.arange(400) / (q ** np.arange(400) * points).sum()
    assert table_law(d, scale, 400)[:60] == pytest.approx(closed[:60], rel=1e-11)


def test_in_one_dimension_it_is_the_discrete_laplace_law():
    q = math.exp(-1 / 3)
    assert table_law(1, Fraction(3), 400)[:60] == pytest.approx((1 - q) / (1 + q) * q ** np.arange(60), rel=1e-12)


def largest_loss(d, scale, sensitivity):
    """The largest log-ratio of an output's probabilities under two answers that are `sensitivity` apart or nearer."""
    log_law = np.log(table_law(d, scale, 400))
    outputs = np.array(list(product(range(-12, 13), repeat=d)))
    shifts = np.array(list(product(range(-sensitivity, sensitivity + 1), repeat=d)))
    return max(np.max(log_law[_norm(outputs)] - log_law[_norm(outputs - shift)]) for shift in shifts)


def _norm(vectors):
    return np.abs(vectors).max(axis=1)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, 1), (2, 1), (3, 2), (4, Fraction(1, 2))])
def test_the_privacy_loss_is_epsilon_no_more_and_no_less(d, sensitivity, epsilon):
    assert largest_loss(d, sensitivity / Fraction(epsilon), sensitivity) == pytest.approx(float(epsilon), rel=1e-9)


def test_a_sensitivity_halved_would_show_as_twice_the_loss():
    assert largest_loss(2, Fraction(1), 2) == pytest.approx(2.0, rel=1e-9)


# A script for one row: the request for the geometric variables (ones: all are zero), the one for K, the coordinates'.
ZEROS: list[int] = []
D, SCALE = 3, Fraction(15, 2)
K_LAW = shift_law(D, SCALE)


def leading(value, bits):
    return value << (64 - bits)


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize("step", [-1, 1])
def test_a_plain_draw(k, step):
    """No geometric variable, K on either side of a threshold: the coordinates are words' leading bits, minus K."""
    radius = k + (step > 0)
    bits = (2 * radius).bit_length()
    words = [leading(value, bits) for value in (0, 2 * radius, radius)]
    script = Script(ZEROS, [word_of(K_LAW[k], 0) + step], words)
    assert cube_noise(script, SCALE, 1, D).tolist() == [[-radius, radius, 0]]
    assert script.requests == []


@pytest.mark.parametrize("below", [True, False])
def test_a_tie_of_the_shift_is_decided_by_later_digits(below):
    script = Script(
        *(ZEROS, [word_of(K_LAW[0], 0)], [word_of(K_LAW[0], 1)], [word_of(K_LAW[0], 2) + (-1 if below else 1)]),
        [0, 0, 0],
    )
    assert cube_noise(script, SCALE, 1, D).tolist() == [[0, 0, 0] if below else [-1, -1, -1]]
    assert script.requests == []


def test_a_point_outside_of_the_cube_is_thrown_away():
    script = Script(ZEROS, [word_of(K_LAW[0], 0) + 1], [leading(3, 2), leading(2, 2), leading(3, 2), 0, leading(1, 2)])
    assert cube_noise(script, SCALE, 1, D).tolist() == [[1, -1, 0]]


def geometric_tape(scale, up):
    """Words by which the coins (tail first) come up in the lanes that `up` gives for them, and fail in all others."""
    with localcontext() as context:
        context.prec = 60
        digits = LaplaceCoins.of_scale(scale).digits
        exps = [(Decimal(2**k) * scale.denominator / scale.numerator).exp() for k in range(digits + 1)]
        coins = [Fraction(1 / exps[-1]), *(Fraction(1 / (1 + e)) for e in exps[:-1])]
    words = []
    for coin, p in enumerate(coins):
        lanes = sum(1 << lane for lane in up.get(coin, []))
        bits = [word_of(p, 0) >> (63 - i) & 1 for i in range(64)]
        length = 1 + max(7, bits.index(0), bits.index(1) if lanes else 0)
        words += [ONES & ~lanes] * length
    return words


def test_the_geometric_variables_of_a_row_are_added_up():
    """Rows of d + 1 = 4 lanes. Row 0: G = 1 + 4, row 1: 2 + 2 + 2 + 2, row 2 none."""
    tape = geometric_tape(SCALE, {1: [0], 2: [4, 5, 6, 7], 3: [3]})
    script = Script(tape, [0, 0, ONES], [0] * 9)
    assert cube_noise(script, SCALE, 3, D).tolist() == [[-5] * 3, [-8] * 3, [-D] * 3]
    assert script.requests == []


def test_tails_add_to_the_radius_of_their_row():
    """The tails of lanes 1 and 2 (row 0) come up once and three times, that of lane 9 (row 2) once: 2^7 each time."""
    tape = geometric_tape(SCALE, {0: [1, 2, 9], 1: [0, 9]})
    script = Script(tape, [ONES], [0], [0], [ONES], [ONES], [0] * 3, [0] * 9)
    radii = [1 + 4 * 2**7, 0, 1 + 2**7]
    assert cube_noise(script, SCALE, 3, D).tolist() == [[-radius] * 3 for radius in radii]
    assert script.requests == []


@pytest.mark.parametrize("tails", [127, 128, 600])
def test_a_radius_beyond_62_bits_is_exact_and_its_noise_wraps_around(tails):
    """At scale 2^52 / 3 in two dimensions, each success of a tail adds 2^55 to the radius."""
    scale = Fraction(2**52, 3)
    tape = geometric_tape(scale, {0: [1], 1: [1], 3: [1]})
    radius = 1 + 4 + tails * 2**55
    words = -(-(2 * radius).bit_length() // 64)
    unused = 64 * words - (2 * radius).bit_length()
    coordinates = [[(value << unused) >> 64 * i & ONES for i in range(words)] for value in (0, 2 * radius)]
    # A large radius leaves a row of zeros in its place at first, which any words will do for.
    requests = [[0, 0], *coordinates] if radius >= 2**62 else [[*coordinates[0], *coordinates[1]]]
    script = Script(tape, *[[0]] * (tails - 1), [ONES], [0], *requests)
    noise = cube_noise(script, scale, 1, 2)[0].tolist()
    assert script.requests == []
    assert [(value - exact) % 2**64 for value, exact in zip(noise, (-radius, radius), strict=True)] == [0, 0]
    if radius < 2**63:
        assert noise == [-radius, radius]
