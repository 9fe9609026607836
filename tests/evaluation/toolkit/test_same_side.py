"""Accuracy, against its closed form and by hand."""

import numpy as np
import pytest

from crowdveil.evaluation.toolkit.scores import on_all_gaussian_pairs, same_side, share, sides


def test_a_count_by_hand():
    pairs = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 2.0]])
    truth = np.array([1.0, 2.0])  # +, +, +, +
    learned = np.array([[1.0, 2.0], [-1.0, -2.0], [1.0, -2.0], [0.0, 0.0]])  # all, none, one of four, a coin
    assert same_side(pairs, truth, learned).tolist() == [1.0, 0.0, 0.25, 0.5]


def test_an_indifferent_parameter_is_half_right():
    chosen = sides(np.array([[1.0, -1.0], [2.0, 0.0]]), np.array([[1.0, 1.0]]))
    assert chosen.tolist() == [[0.0], [1.0]]
    assert share(chosen, 1.0).tolist() == [0.75]


@pytest.mark.parametrize("degrees", [0, 10, 45, 90, 135, 180])
def test_gaussian_pairs_tend_to_one_minus_the_angle(degrees):
    rng = np.random.default_rng(degrees)
    angle = np.radians(degrees)
    truth = np.array([1.0, 0.0, 0.0])
    learned = 3.7 * np.array([[np.cos(angle), np.sin(angle), 0.0]])
    expected = 1 - degrees / 180
    assert on_all_gaussian_pairs(truth, learned) == pytest.approx([expected], abs=1e-7)
    n = 100_000
    # Five standard deviations of a binomial share: false alarm below 1e-6.
    allowed = 5 * np.sqrt(max(expected * (1 - expected), 1e-12) / n) + 1e-9
    assert abs(same_side(rng.standard_normal((n, 3)), truth, learned)[0] - expected) <= allowed


def test_a_parameter_of_length_zero_decides_nothing():
    assert on_all_gaussian_pairs(np.ones(3), np.zeros((1, 3))).tolist() == [0.5]
