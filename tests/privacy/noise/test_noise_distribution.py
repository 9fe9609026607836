"""Certainty and error bars against closed forms and quadrature."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise import distribution
from crowdveil.privacy.noise.distribution import (
    CoinSum,
    CubeNoise,
    CubeSum,
    EmpiricalNormal,
    Gaussian,
    LaplaceSum,
    noise_from_dict,
)
from crowdveil.privacy.noise.exact_noise import BulkNoise


@pytest.mark.parametrize("margin", [0.0, 0.01, 0.3, 1.0, 5.0, -0.7])
def test_one_laplace_variable_has_a_closed_form(margin):
    noise = LaplaceSum((0.5,), (1,))
    assert noise.below(np.array([1.0]), margin) == pytest.approx(stats.laplace(scale=0.5).cdf(margin), abs=1e-8)
    assert noise.below(np.array([-2.0, 0.0]), margin) == pytest.approx(stats.laplace(scale=1).cdf(margin), abs=1e-8)
    assert noise.below(np.array([1e-17, 1.0]), margin) == pytest.approx(stats.laplace(scale=0.5).cdf(margin), abs=1e-8)


@pytest.mark.parametrize("margin", [0.1, 1.0, 4.0])
def test_a_sum_of_two_scales_against_the_partial_fraction(margin):
    a, b = 0.5, 1.2  # density of the sum: (a^2 Lap_a - b^2 Lap_b) / (a^2 - b^2)
    closed = (a * a * stats.laplace(scale=a).cdf(margin) - b * b * stats.laplace(scale=b).cdf(margin)) / (a * a - b * b)
    assert LaplaceSum((a, b), (1, 1)).below(np.array([1.0]), margin) == pytest.approx(closed, abs=1e-8)
    assert LaplaceSum((1.0,), (1,)).below(np.array([a, -b]), margin) == pytest.approx(closed, abs=1e-8)


def test_equal_scales_against_quadrature():
    def density(x):  # two standard Laplace variables
        return (1 + abs(x)) * math.exp(-abs(x)) / 4

    expected = 0.5 + integrate.quad(density, 0, 1.3)[0]
    assert LaplaceSum((1.0,), (2,)).below(np.array([1.0]), 1.3) == pytest.approx(expected, abs=1e-9)
    assert LaplaceSum((1.0,), (1,)).below(np.array([1.0, 1.0]), 1.3) == pytest.approx(expected, abs=1e-9)


def test_many_voters_approach_the_normal_law():
    noise = LaplaceSum((0.01,), (5000,))
    sigma = math.sqrt(2 * 5000) * 0.01
    assert noise.below(np.array([1.0]), sigma) == pytest.approx(stats.norm.cdf(1), abs=1e-4)
    assert noise.half_widths(0.95) == pytest.approx(stats.norm.ppf(0.975) * sigma, rel=1e-3)


def test_error_bar_of_one_laplace_variable():
    assert LaplaceSum((2.0,), (1,)).half_widths(0.95) == pytest.approx(stats.laplace(scale=2).ppf(0.975))


def test_without_a_difference_nothing_is_certain():
    assert LaplaceSum((1.0,), (1,)).below(np.zeros(3), 0.0) == 0.5


def test_spread_is_the_normal_law():
    noise = EmpiricalNormal(((4.0, 1.0), (1.0, 9.0)))
    u = np.array([1.0, -1.0])
    assert noise.below(u, 2.0) == pytest.approx(stats.norm.cdf(2 / math.sqrt(4 + 9 - 2)))
    assert noise.half_widths(0.95) == pytest.approx(stats.norm.ppf(0.975) * np.array([2.0, 3.0]))


def cube_tail(x, scale, k):
    """P(X > x) of a coordinate X = R U: (E[1 - x/R; R > x]) / 2 with R ~ Gamma(k + 1), whose E[1/R; R > x] is known."""
    t = x / scale
    return (special.gammaincc(k + 1, t) - t / k * special.gammaincc(k, t)) / 2


@pytest.mark.parametrize("k", [1, 2, 10, 23])
def test_a_coordinate_of_cube_noise_has_a_closed_form(k):
    noise = CubeNoise(0.3, tuple(map(tuple, np.eye(k).tolist())))
    for x in np.array([0.0, 0.1, 0.5, 1.0, 2.0]) * 0.3 * (k + 1):
        assert noise.below(np.eye(k)[0], x) == pytest.approx(1 - cube_tail(x, 0.3, k), abs=2e-6)
        assert noise.below(-2 * np.eye(k)[k - 1], -2 * x) == pytest.approx(cube_tail(x, 0.3, k), abs=2e-6)
    edge = optimize.brentq(lambda x: cube_tail(x, 0.3, k) - 0.025, 0, 100 * (k + 1))
    assert noise.half_widths(0.95) == pytest.approx([edge] * k, rel=1e-4)


@pytest.mark.parametrize("x", [0.1, 1.0, 4.0, 20.0])
def test_the_sum_of_two_coordinates_of_cube_noise_is_an_integral(x):
    """Given the radius, the sum of two uniforms has a triangular density."""
    noise = CubeNoise(0.5, ((1.0, 0.0), (0.0, 1.0)))
    share, _ = integrate.quad(lambda y: (1 - y / 2) * special.gammainc(3, x / (0.5 * y)), 0, 2, epsabs=1e-10)
    assert noise.below(np.array([1.0, -1.0]), x) == pytest.approx(0.5 + 0.5 * share, abs=2e-6)


@pytest.mark.parametrize(("k", "m"), [(2, 3), (9, 14), (24, 5)])
def test_the_sum_of_two_cubes_is_a_convolution(k, m):
    """Of one coordinate each: the density of X = R U is E[1 / 2 R; R > |x|], an incomplete gamma function."""
    ones = [np.eye(size)[:1] for size in (k, m)]
    noise = CubeSum((CubeNoise.of(0.3, ones[0]), CubeNoise.of(0.2, ones[1])))
    deviation = math.sqrt(noise.covariance[0, 0])
    assert deviation**2 == pytest.approx(0.09 * (k + 1) * (k + 2) / 3 + 0.04 * (m + 1) * (m + 2) / 3)

    def above(y, x):
        beyond = cube_tail(abs(x - y), 0.2, m)
        return (beyond if x > y else 1 - beyond) * special.gammaincc(k, abs(y) / 0.3) / (2 * k * 0.3)

    for x in np.array([0.3, 1.0, 2.0, 3.5]) * deviation:
        tail, _ = integrate.quad(above, -40 * deviation, 40 * deviation, args=(x,), points=[0.0, x], limit=400)
        assert noise.below(np.ones(1), x) == pytest.approx(1 - tail, abs=5e-5)
        assert noise.stretched(2.0).below(-np.ones(1), 2 * x) == pytest.approx(1 - tail, abs=5e-5)
    one = CubeNoise.of(0.3, ones[0])
    assert CubeSum((one,)).below(np.ones(1), 0.7) == one.below(np.ones(1), 0.7)
    assert noise.below(np.zeros(1), 1.0) == 1.0
    assert noise.below(np.ones(1), 30 * deviation) == 1.0


@pytest.mark.parametrize("shape", [1, 2, 24, 500, 501])
def test_the_law_of_the_radius(shape):
    values = np.array([1e-3, 1.0, shape / 2, shape, 1.2 * shape, 3 * shape + 30.0, 1e5, np.inf])
    assert distribution._erlang_below(shape, values) == pytest.approx(special.gammainc(shape, values), abs=1e-13)


def test_cube_noise_along_any_direction_is_that_of_the_exact_sampler():
    """The gain maps three scores to two features; the sampler's steps are a millionth of the scale."""
    gain = np.array([[1.0, -0.5, 0.2], [0.3, 2.0, -1.0]])
    noise = CubeNoise(0.7, tuple(map(tuple, gain.tolist())))
    drawn = BulkNoise().cube(1_000_000, Epsilons.same(1, 200_000), 3) * 0.7e-6 @ gain.T
    for direction in (np.array([1.0, 0.0]), np.array([0.6, -1.0])):
        for margin in (-2.0, 0.3, 1.5, 5.0):
            share = np.mean(drawn @ direction < margin)
            assert noise.below(direction, margin) == pytest.approx(share, abs=5.5 * math.sqrt(0.25 / 200_000))
    inside = np.abs(drawn) < noise.half_widths(0.9)
    assert inside.mean(axis=0) == pytest.approx(0.9, abs=5.5 * math.sqrt(0.09 / 200_000))


def test_cube_noise_that_is_carried_nowhere():
    noise = CubeNoise(1.0, ((0.0, 0.0), (1.0, 0.0)))
    assert noise.below(np.array([1.0, 0.0]), 0.0) == 0.5
    assert noise.below(np.array([1.0, 0.0]), 1e-9) == 1.0
    assert noise.half_widths(0.95)[0] == 0.0


@pytest.mark.parametrize(
    "noise",
    [
        LaplaceSum((0.5, 0.1), (3, 4)),
        EmpiricalNormal(((1.0, 0.0), (0.0, 2.0))),
        CubeNoise(0.2, ((1.0, 2.0, 0.0), (0.5, -1.0, 3.0))),
        CubeSum((CubeNoise(0.2, ((1.0, 2.0), (0.5, -1.0))), CubeNoise(0.1, ((0.0,), (3.0,))))),
    ],
)
def test_round_trip(noise):
    assert noise_from_dict(noise.as_dict(), 2) == noise


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "gauss"},
        {"kind": "laplace", "scales": [1.0], "counts": []},
        {"kind": "laplace", "scales": [-1.0], "counts": [1]},
        {"kind": "cube", "scale": 0.0, "gain": [[1.0], [1.0]]},
        {"kind": "cube", "scale": float("nan"), "gain": [[1.0], [1.0]]},
        {"kind": "cube", "scale": 1.0, "gain": [[1.0], [1.0, 2.0]]},
        {"kind": "cubes", "parts": []},
        {"kind": "cubes", "parts": [{"scale": 0.0, "gain": [[1.0], [1.0]]}]},
        {"kind": "cube", "scale": 1.0, "gain": [[1.0]]},
        {"kind": "cube", "scale": 1.0, "gain": [[1.0], [float("inf")]]},
        {"kind": "cube", "scale": float("inf"), "gain": [[1.0], [1.0]]},
        {"kind": "cubes", "parts": [{"scale": 1.0, "gain": [[1.0]]}]},
        {"kind": "spread", "covariance": [[1.0]]},
        {"kind": "spread", "covariance": [[1.0, 0.0], [0.0]]},
        {"kind": "coins", "covariance": [[1.0], [1.0]]},
        {"kind": "coins", "covariance": [[1.0, 0.0], [0.0, -1.0]]},
        {"kind": "coins", "covariance": [[1.0, 0.0], [0.0, float("nan")]]},
    ],
)
def test_damaged_noise_is_refused(data):
    """Of two features."""
    with pytest.raises(ValueError, match="noise"):
        noise_from_dict(data, 2)


@pytest.mark.parametrize(
    "law",
    [
        LaplaceSum((0.3,), (1,)),
        Gaussian(0.2),
        EmpiricalNormal(((0.04, 0.01), (0.01, 0.09))),
        CubeNoise(0.2, ((1.0, 2.0, 0.0), (0.5, -1.0, 3.0))),
        CubeSum((CubeNoise(0.2, ((1.0, 2.0), (0.5, -1.0))), CubeNoise(0.1, ((0.0,), (3.0,))))),
    ],
)
def test_a_half_width_along_a_direction_is_the_laws_quantile(law):
    axis, combined = np.array([1.0, 0.0]), np.array([3.0, -1.0])
    assert law.half_width(axis, 0.95) == pytest.approx(np.broadcast_to(law.half_widths(0.95), 2)[0], rel=1e-5)
    assert law.below(combined, law.half_width(combined, 0.9)) == pytest.approx(0.95, abs=1e-5)
    assert law.half_width(np.zeros(2), 0.95) == 0


@pytest.mark.parametrize("coins", [1, 2, 10, 1000])
@pytest.mark.parametrize("chance", [0.03, 0.5, 0.9])
def test_no_coins_exceed_a_margin_more_often_than_is_said(coins, chance):
    """Against the binomial law: the mean of coins that show +2 or -2, less its own mean, along a direction of 3."""
    noise, direction = CoinSum(((4 / coins,),)), np.array([3.0])
    law = stats.binom(coins, chance)
    for heads in range(coins + 1):
        margin = 3 * 2 * (2 * heads / coins - 1 - (2 * chance - 1))
        exceeded = law.sf(heads - 1) if margin > 0 else law.cdf(heads)
        if exceeded < 0.5:
            assert noise.below(direction, abs(margin)) <= 1 - exceeded + 1e-12


def test_coins_are_symmetric_have_normal_bars_and_travel():
    noise = CoinSum(((4.0, 1.0), (1.0, 9.0)))
    assert noise_from_dict(noise.as_dict(), 2) == noise
    assert noise.half_widths(0.95) == pytest.approx(stats.norm.ppf(0.975) * np.array([2, 3]))
    along = np.array([1.0, -1.0])  # of variance 4 - 2 + 9
    assert noise.half_width(along, 0.95) == pytest.approx(stats.norm.ppf(0.975) * math.sqrt(11))
    assert noise.below(along, 8.0) == pytest.approx(1 - math.exp(-64 / 22))
    assert noise.below(along, -8.0) == pytest.approx(math.exp(-64 / 22))
    assert [noise.below(along, margin) for margin in (0.0, 0.1, -0.1)] == [0.5, 0.5, 0.5]
    assert noise.below(np.zeros(2), 1.0) == 1.0
