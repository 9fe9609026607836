"""The grid: whatever comes in, the integer norm holds, and nothing moves by more than a step.

Sensitivities: never exceeded by a searched worst case, and reached where the theorem says so.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crowdveil.privacy.grid import STEPS, coefficient_steps, from_steps, papers_delta, tight_delta, to_steps
from crowdveil.privacy.mechanisms.algorithm3 import objective_coefficients


@given(arrays(np.float64, (3, 4), elements=st.floats(-1e6, 1e6)), st.floats(1e-3, 1e3))
def test_the_integer_norm_never_exceeds_the_bound(values, bound):
    assert (np.abs(to_steps(values, bound)).sum(axis=1) <= STEPS).all()


@given(arrays(np.float64, (2, 5), elements=st.floats(-1, 1)), st.floats(0.01, 100))
def test_inside_the_ball_truncation_is_toward_zero_and_less_than_a_step(values, bound):
    inside = 0.999 * bound * values / np.maximum(1.0, np.abs(values).sum(axis=1, keepdims=True))
    back = from_steps(to_steps(inside, bound), bound)
    assert (np.abs(back) <= np.abs(inside) * (1 + 1e-12)).all()
    assert (np.abs(back - inside) <= bound / STEPS * 1.001).all()


def test_an_overshooting_fit_is_cut_back_in_integers():
    steps = to_steps(np.array([[0.75, -0.75, 0.0], [1.0, 0.0, 0.0]]), 1.0)
    assert np.abs(steps[0]).sum() == STEPS
    assert steps[1].tolist() == [STEPS, 0, 0]


def test_a_value_that_is_not_finite_is_a_bug():
    with pytest.raises(ValueError, match="not finite"):
        to_steps(np.array([[np.nan, 0.0]]), 1.0)


def coefficients(v):
    """c(V) written out from Eq. 11: the linear part, then V_k V_l / pi for every ordered pair."""
    return np.concatenate([math.sqrt(2 / math.pi) * v, np.outer(v, v).ravel() / math.pi])


def worst_difference(dimension, rng, starts=30):
    """Climb from random pairs of records to the largest l1 distance of their coefficients."""
    from scipy.optimize import minimize

    def into_ball(v):
        return v / max(1.0, np.linalg.norm(v))

    def negative(x):
        v, w = into_ball(x[:dimension]), into_ball(x[dimension:])
        return -np.abs(coefficients(v) - coefficients(w)).sum()

    return max(
        -minimize(negative, rng.normal(size=2 * dimension), method="Powell", options={"maxiter": 40}).fun
        for _ in range(starts)
    )


def test_the_papers_formula():
    assert papers_delta(10) == pytest.approx(2 * math.sqrt(20 / math.pi) + 20 / math.pi)


@pytest.mark.parametrize(("dimension", "value"), [(10, 8.3646), (23, 16.0777)])
def test_tight_delta_against_a_fine_grid_of_angles(dimension, value):
    t = np.linspace(0, math.pi, 2_000_001)
    grid = 2 * math.sqrt(2 * dimension / math.pi) * np.sin(t / 2) + math.sqrt(2) * dimension / math.pi * np.sin(t)
    assert tight_delta(dimension) == pytest.approx(grid.max(), rel=1e-8)
    assert tight_delta(dimension) == pytest.approx(value, abs=1e-4)
    assert tight_delta(dimension) < papers_delta(dimension)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_no_pair_of_records_exceeds_the_tight_delta(dimension):
    found = worst_difference(dimension, np.random.default_rng(dimension))
    assert found <= tight_delta(dimension)
    assert found >= 0.8 * tight_delta(dimension)  # and the search is not blind


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_integer_coefficients_of_neighbours_stay_within_the_steps(dimension, seed):
    rng = np.random.default_rng(seed)
    length = rng.choice([0.3, 1.0, 5.0])
    common = rng.normal(size=(3, dimension))
    records = [np.vstack([common, length * rng.normal(size=dimension)]) for _ in range(2)]
    offsets = np.array([0, 4])
    a, b = (objective_coefficients(r, offsets, 1.0)[0] for r in records)
    moved = np.abs(a - b).sum()
    assert moved <= coefficient_steps(dimension, tight_delta(dimension))
    assert moved <= coefficient_steps(dimension, papers_delta(dimension))


def test_integer_coefficients_reach_most_of_the_sensitivity():
    d = 4
    t = np.linspace(math.pi / 2, math.pi, 10_001)
    angle = t[np.argmax(2 * math.sqrt(2 * d / math.pi) * np.sin(t / 2) + math.sqrt(2) * d / math.pi * np.sin(t))]
    e1, e2 = np.full(d, 0.5), np.array([0.5, 0.5, -0.5, -0.5])
    v, w = e1, math.cos(angle) * e1 + math.sin(angle) * e2
    a, b = (objective_coefficients(r[None, :], np.array([0, 1]), 1.0)[0] for r in (v, w))
    moved = np.abs(a - b).sum() / STEPS
    assert 0.8 * tight_delta(d) < moved <= tight_delta(d)
