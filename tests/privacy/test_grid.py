"""The grid: whatever comes in, the integer norm holds, and nothing moves by more than a step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crowdveil.privacy.grid import STEPS, from_steps, to_steps


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
