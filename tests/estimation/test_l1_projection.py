import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from crowdveil.errors import CrowdveilError
from crowdveil.estimation.l1_ball import project_onto_l1_ball


@given(
    arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 8)), elements=st.floats(-1e3, 1e3)),
    st.floats(1e-3, 1e3),
)
def test_projection_is_characterised_by_its_inequality(vectors, radius):
    """p is the nearest point of a convex set to x if and only if (x - p).(z - p) <= 0 for all its points z.

    The left side is largest at a vertex of the ball: radius max_k |x_k - p_k| - (x - p).p.
    """
    projected = project_onto_l1_ball(vectors, radius)
    assert (np.abs(projected).sum(axis=1) <= radius * (1 + 1e-12)).all()
    left = vectors - projected
    largest = radius * np.abs(left).max(axis=1) - (left * projected).sum(axis=1)
    assert (largest <= 1e-11 * np.abs(vectors).max() * (radius + np.abs(vectors).max())).all()


def test_rows_inside_come_back_unchanged():
    inside = np.array([[0.25, -0.25, 0.5], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    np.testing.assert_array_equal(project_onto_l1_ball(inside, 1.0), inside)


def test_closed_forms():
    outside = np.array([[3.0, 0.0], [2.0, 2.0], [-1.5, 0.5], [1.0, -0.5]])
    expected = np.array([[1.0, 0.0], [0.5, 0.5], [-1.0, 0.0], [0.75, -0.25]])
    np.testing.assert_allclose(project_onto_l1_ball(outside, 1.0), expected, atol=1e-15)


def test_agrees_with_a_general_solver():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(10, 4))
    for x, ours in zip(vectors, project_onto_l1_ball(vectors, 0.8), strict=True):
        theirs = minimize(
            lambda u, x=x: np.sum((u[:4] - u[4:] - x) ** 2),
            np.zeros(8),
            method="SLSQP",
            bounds=[(0, None)] * 8,
            constraints={"type": "ineq", "fun": lambda u: 0.8 - u.sum()},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(ours, theirs.x[:4] - theirs.x[4:], atol=1e-5)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf])
def test_a_radius_that_is_not_positive_is_refused(radius):
    with pytest.raises(CrowdveilError, match="radius"):
        project_onto_l1_ball(np.ones((1, 2)), radius)
