"""Weights by known variances: a vote cannot be bought, and under that cap no other weights have less variance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from crowdveil.privacy.mechanisms.influence import MOST_INFLUENCE, influence

variances = st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=60).map(np.array)


@given(variances, st.booleans())
def test_weights_share_out_one_and_nobody_has_more_than_the_cap(variance, equal):
    weights = influence(variance, equal)
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    assert (weights > 0).all()
    assert weights.max() <= min(1, MOST_INFLUENCE / len(variance)) * (1 + 1e-9)


@given(variances)
def test_a_less_noisy_report_never_counts_less(variance):
    weights = influence(variance, equal_votes=False)
    order = np.argsort(variance)
    assert (np.diff(weights[order]) <= 1e-12).all()


@given(variances)
def test_weights_are_inverse_to_the_variances_but_for_the_cap(variance):
    """The conditions of Karush, Kuhn and Tucker: w = min(cap, c / variance) for one c. The problem is convex."""
    weights = influence(variance, equal_votes=False)
    cap = min(1, MOST_INFLUENCE / len(variance))
    free = weights < cap * (1 - 1e-9)
    marginal = weights * variance
    if free.any():
        assert marginal[free] == pytest.approx(marginal[free][0], rel=1e-6)
        assert (marginal[~free] <= marginal[free][0] * (1 + 1e-6)).all()


@pytest.mark.parametrize("seed", range(6))
def test_a_general_solver_finds_nothing_better(seed):
    rng = np.random.default_rng(seed)
    variance = rng.lognormal(0, 2, 14)
    variance[: seed % 3] = 1e-3  # some who would dominate
    cap = MOST_INFLUENCE / 14
    found = minimize(
        lambda w: w @ (variance * w),
        np.full(14, 1 / 14),
        jac=lambda w: 2 * variance * w,
        bounds=[(0, cap)] * 14,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(14)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    weights = influence(variance, equal_votes=False)
    assert weights @ (variance * weights) == pytest.approx(found.fun, rel=1e-4)
    assert weights @ (variance * weights) <= found.fun * (1 + 1e-9)


def test_equal_votes_are_equal_whatever_the_variances():
    assert influence(np.array([1.0, 1e9, 3.0]), equal_votes=True).tolist() == [1 / 3] * 3


def test_two_who_would_dominate_both_meet_the_cap():
    variance = np.array([1e-9, 1e-9] + [1.0] * 48)
    weights = influence(variance, equal_votes=False)
    assert weights[:2] == pytest.approx([MOST_INFLUENCE / 50] * 2)
    assert weights[2:] == pytest.approx((1 - 2 * MOST_INFLUENCE / 50) / 48)
