"""Certainty and error bars against closed forms and quadrature."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from veil.privacy.noise_distribution import LaplaceSum, Spread, noise_from_dict


@pytest.mark.parametrize("margin", [0.0, 0.01, 0.3, 1.0, 5.0, -0.7])
def test_one_laplace_variable_has_a_closed_form(margin):
    noise = LaplaceSum((0.5,), (1,))
    assert noise.below(np.array([1.0]), margin) == pytest.approx(stats.laplace(scale=0.5).cdf(margin), abs=1e-8)
    assert noise.below(np.array([-2.0, 0.0]), margin) == pytest.approx(stats.laplace(scale=1).cdf(margin), abs=1e-8)


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
    noise = Spread(((4.0, 1.0), (1.0, 9.0)))
    u = np.array([1.0, -1.0])
    assert noise.below(u, 2.0) == pytest.approx(stats.norm.cdf(2 / math.sqrt(4 + 9 - 2)))
    assert noise.half_widths(0.95) == pytest.approx(stats.norm.ppf(0.975) * np.array([2.0, 3.0]))


@pytest.mark.parametrize("noise", [LaplaceSum((0.5, 0.1), (3, 4)), Spread(((1.0, 0.0), (0.0, 2.0)))])
def test_round_trip(noise):
    assert noise_from_dict(noise.as_dict()) == noise


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "gauss"},
        {"kind": "laplace", "scales": [1.0], "counts": []},
        {"kind": "laplace", "scales": [-1.0], "counts": [1]},
    ],
)
def test_damaged_noise_is_refused(data):
    with pytest.raises(ValueError, match="noise"):
        noise_from_dict(data)
