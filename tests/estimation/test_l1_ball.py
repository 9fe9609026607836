""""""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from crowds import awkward, even_offsets, gaussian, moral_machine
from exact_maximiser import exact_maximiser
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq, minimize
from scipy.stats import norm
from tests.estimation.likelihood import gradient, log_likelihood

from crowdveil.errors import CrowdveilError
from crowdveil.estimation.active_set import RIDGE, maximise, new_workspace
from crowdveil.estimation.l1_ball import (
    GAP_LIMIT,
    fill_columns,
    fit_in_ball,
    largest_difference,
    new_sorter,
    project_onto_l1_ball,
)
from crowdveil.estimation.probit import padded

GRID_STEP = 2.0**-30


def fit_one(records: np.ndarray, bound: float) -> np.ndarray:
    return fit_in_ball(records, even_offsets(1, len(records)), bound).values[0]


def gap_of(records: np.ndarray, beta: np.ndarray, bound: float) -> float:
    """B max |g| - g . beta, by SciPy's log_ndtr."""
    g = gradient(records.astype(float), beta)
    return float(bound * np.abs(g).max() - g @ beta)


def assert_sound(differences, offsets, bound):
    """Inside the ball, and within the limit of the best point by a gap that SciPy confirms."""
    fit = fit_in_ball(differences, offsets, bound)
    assert np.abs(fit.values).sum(axis=1).max() <= bound * (1 + 1e-12)
    assert (fit.gaps >= 0).all()
    assert fit.gaps.max() <= GAP_LIMIT
    for i in range(offsets.size - 1):
        records = differences[offsets[i] : offsets[i + 1]]
        size = bound * np.abs(records.astype(float)).max(initial=0.0)
        rounding = 1e-14 * len(records) * (1 + size * max(1.0, size * np.abs(fit.values[i]).max() / bound))
        assert gap_of(records, fit.values[i], bound) == pytest.approx(fit.gaps[i], abs=rounding)


@pytest.mark.parametrize("bound", [0.5, 2.0, 5.0])
@pytest.mark.parametrize("crowd", [moral_machine, gaussian])
def test_values_are_the_exact_maximiser_to_a_step_of_the_grid(crowd, bound):
    differences, offsets = crowd(4)
    fit = fit_in_ball(differences, offsets, bound)
    for i, value in enumerate(fit.values):
        exact = exact_maximiser(differences[offsets[i] : offsets[i + 1]], bound, RIDGE, value)
        assert np.abs(value / bound - exact.astype(float)).max() < GRID_STEP


def test_the_exact_maximiser_is_found_where_the_likelihood_has_many():
    """Three features that always come together, and a fourth that is never seen."""
    rng = np.random.default_rng(3)
    seen = rng.integers(-2, 3, (13, 4)).astype(np.int8)
    records = np.hstack([seen, seen[:, :1], seen[:, :1], np.zeros((13, 1), np.int8)])
    value = fit_one(records, 2.0)
    assert value[0] != 0
    np.testing.assert_allclose(value[[4, 5]], value[0], atol=2 * GRID_STEP)
    assert value[6] == 0
    exact = exact_maximiser(records, 2.0, RIDGE, value)
    assert np.abs(value / 2.0 - exact.astype(float)).max() < GRID_STEP


@pytest.mark.parametrize("crowd", [moral_machine, gaussian])
def test_no_worse_than_slsqp(crowd):
    """On the variables (positive part, negative part), with the constraint that they sum up to at most B."""
    differences, offsets = crowd(5, seed=5)
    bound = 2.0
    fit = fit_in_ball(differences, offsets, bound)
    for i, value in enumerate(fit.values):
        records = differences[offsets[i] : offsets[i + 1]].astype(float)
        both = np.hstack([records, -records])
        theirs = minimize(
            lambda u, both=both: -log_likelihood(both, u),
            np.zeros(both.shape[1]),
            jac=lambda u, both=both: -gradient(both, u),
            method="SLSQP",
            bounds=[(0, None)] * both.shape[1],
            constraints={"type": "ineq", "fun": lambda u: bound - u.sum(), "jac": lambda u: -np.ones_like(u)},
            options={"ftol": 1e-12, "maxiter": 500},
        )
        ours = log_likelihood(records, value)
        assert ours >= -theirs.fun - fit.gaps[i] - 1e-9
        assert ours == pytest.approx(-theirs.fun, abs=1e-4)


@pytest.mark.parametrize(
    ("records", "features"), [(1, 1), (1, 60), (2, 2), (5, 3), (13, 23), (50, 10), (30, 60), (200, 2)]
)
def test_awkward_voters_of_every_size(records, features):
    for differences, offsets in awkward(records, features).values():
        for bound in (0.01, 2.0, 100.0):
            assert_sound(differences, offsets, bound)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 30.0, 1e3])
@pytest.mark.parametrize("bound", [0.01, 1.0, 100.0])
def test_awkward_scales(scale, bound):
    for differences, offsets in awkward(13, 6, seed=1).values():
        assert_sound(differences * (scale / max(1.0, np.abs(differences).max())), offsets, bound)


def loose_fit(records: np.ndarray, bound: float, eagerness: float, most_iterations: int):
    """One run of the solver itself, for better or worse."""
    count, features = records.shape
    columns = np.zeros((features, padded(count)))
    fill_columns(records.reshape(-1), bound, new_sorter(count, features), columns)
    work = new_workspace(count, features)
    _, converged = maximise(work, columns, eagerness, most_iterations)
    return work, converged


def test_long_columns_that_differ_little_are_fitted_all_the_same():
    """Here rounding misleads the eager way, and the careful one has to come in."""
    voters, records, features = 30, 13, 23
    differences = 9e5 * (1 + 1e-3 * np.random.default_rng(12).normal(size=(voters * records, features)))
    by_voter = differences.reshape(voters, records, features)
    assert not all(loose_fit(one, 1.0, 0.4, 100)[1] for one in by_voter)
    assert_sound(differences, even_offsets(voters, records), 1.0)


@pytest.mark.parametrize("most_iterations", [1, 2, 3, 4, 100])
def test_the_gap_is_that_of_the_point_returned_even_if_the_solver_ran_out_of_time(most_iterations):
    differences, _ = moral_machine(1)
    work, converged = loose_fit(differences, 2.0, 0.4, most_iterations)
    assert converged == (most_iterations == 100)
    expected = 2.0 * gradient(differences.astype(float), 2.0 * work.beta) - RIDGE * work.beta
    np.testing.assert_allclose(work.gradient, expected, rtol=1e-12, atol=1e-12)


@given(
    arrays(np.int8, st.tuples(st.integers(0, 8), st.integers(1, 6)), elements=st.integers(-3, 3)),
    st.sampled_from([0.01, 0.5, 2.0, 100.0]),
)
def test_any_small_integers_are_fitted(records, bound):
    assert_sound(records, even_offsets(1, len(records)), bound)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.floats(-1e3, 1e3, width=32)),
    st.floats(0.01, 100.0),
)
def test_any_floats_are_fitted(records, bound):
    assert_sound(records, even_offsets(1, len(records)), bound)


def test_one_feature_has_a_closed_form():
    """Of 10 records +-1, k in favour: Phi(beta) = k/10, if that is inside, up to the ridge."""
    for k in range(11):
        records = np.where(np.arange(10) < k, 1, -1).astype(np.int8)[:, None]
        interior = norm.ppf(k / 10)
        assert fit_one(records, 1.0)[0] == pytest.approx(np.clip(interior, -1, 1), abs=1e-5)

        def slope(b, k=k):
            return (k * norm.pdf(b) / norm.cdf(b) - (10 - k) * norm.pdf(b) / norm.sf(b)) - RIDGE * b

        if abs(interior) < 1:
            assert fit_one(records, 1.0)[0] == pytest.approx(brentq(slope, -2, 2, xtol=1e-14), abs=GRID_STEP)


def test_one_record_goes_to_its_largest_feature():
    np.testing.assert_array_equal(fit_one(np.array([[0.1, -0.4, 0.3]]), 2.0), [0.0, -2.0, 0.0])


def test_where_the_likelihood_is_spent_the_ridge_decides():
    """One record, and a bound so large that Phi is 1 to 1e-15 on the sphere: the shortest way to nearly 1 wins.

    beta is c V with the c that maximises ln Phi(c |V|^2) - (RIDGE/2) c^2 |V|^2 / B^2.
    """
    record, bound = np.array([1.0, -4.0, 3.0]), 2.0
    square = record @ record
    c = brentq(lambda c: norm.pdf(c * square) / norm.cdf(c * square) - RIDGE * c / bound**2, 0, 2 / 8, xtol=1e-15)
    np.testing.assert_allclose(fit_one(record[None], bound), c * record, atol=bound * GRID_STEP)


def test_nothing_known_is_zero():
    differences = np.zeros((5, 3))
    fit = fit_in_ball(differences, np.array([0, 0, 2, 5, 5]), 2.0)
    assert not fit.values.any()
    assert not fit.gaps.any()
    assert fit_in_ball(np.zeros((0, 3)), np.array([0]), 2.0).values.shape == (0, 3)


def test_fits_do_not_depend_on_the_order_of_records_voters_or_threads():
    rng = np.random.default_rng(9)
    differences, offsets = moral_machine(300)
    whole = fit_in_ball(differences, offsets, 2.0, threads=1)
    for threads in (2, 3, 8):
        again = fit_in_ball(differences, offsets, 2.0, threads=threads)
        np.testing.assert_array_equal(whole.values, again.values)
        np.testing.assert_array_equal(whole.gaps, again.gaps)
    by_voter = differences.reshape(300, 13, 23)
    records_shuffled = rng.permuted(np.broadcast_to(np.arange(13), (300, 13)), axis=1)
    order = rng.permutation(300)
    shuffled = np.take_along_axis(by_voter, records_shuffled[:, :, None], axis=1)[order].reshape(-1, 23)
    np.testing.assert_array_equal(fit_in_ball(shuffled, offsets, 2.0).values, whole.values[order])
    for i in (0, 17, 299):
        np.testing.assert_array_equal(fit_one(by_voter[i], 2.0), whole.values[i])


def test_fits_do_not_depend_on_neighbours_of_other_sizes():
    """Voters share a workspace: what a long one leaves behind must not reach a short one."""
    rng = np.random.default_rng(4)
    sizes = rng.integers(0, 40, 60)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    differences = rng.normal(size=(offsets[-1], 7))
    together = fit_in_ball(differences, offsets, 1.5, threads=1)
    for i in range(60):
        np.testing.assert_array_equal(fit_one(differences[offsets[i] : offsets[i + 1]], 1.5), together.values[i])


def test_fits_do_not_depend_on_the_order_or_the_signs_of_features():
    rng = np.random.default_rng(6)
    for differences, offsets in (moral_machine(200), gaussian(50)):
        order = rng.permutation(differences.shape[1])
        signs = rng.choice([-1, 1], differences.shape[1]).astype(differences.dtype)
        for bound in (0.5, 2.0, 5.0):
            straight = fit_in_ball(differences, offsets, bound).values
            turned = fit_in_ball((differences * signs)[:, order], offsets, bound).values
            assert np.abs(turned - (straight * signs)[:, order]).max() < bound * GRID_STEP


def test_the_type_and_the_layout_of_the_differences_do_not_matter():
    differences, offsets = moral_machine(50)
    expected = fit_in_ball(differences, offsets, 2.0).values
    for same in (differences.astype(np.float64), np.asfortranarray(differences)):
        np.testing.assert_array_equal(fit_in_ball(same, offsets, 2.0).values, expected)
    np.testing.assert_array_equal(fit_in_ball(differences.astype(np.float64) / 4, offsets, 8.0).values, 4 * expected)


@pytest.mark.parametrize("bound", [0.0, -1.0, np.nan, np.inf])
def test_a_norm_bound_that_is_not_positive_is_refused(bound):
    with pytest.raises(CrowdveilError, match="norm bound"):
        fit_in_ball(np.zeros((1, 1)), np.array([0, 1]), bound)


def test_too_large_products_and_no_threads_are_refused():
    with pytest.raises(CrowdveilError, match="larger units"):
        fit_in_ball(np.array([[2e4]]), np.array([0, 1]), 100.0)
    with pytest.raises(CrowdveilError, match="threads"):
        fit_in_ball(np.zeros((1, 1)), np.array([0, 1]), 1.0, threads=0)


@pytest.mark.slow
def test_a_hundred_thousand_random_voters_are_all_within_the_limit():
    rng = np.random.default_rng(2024)
    for _ in range(1000):
        records, features = int(rng.choice([1, 2, 3, 5, 8, 13, 20, 40])), int(rng.choice([1, 2, 3, 5, 8, 12, 23, 40]))
        crowds = list(awkward(records, features, seed=int(rng.integers(2**31))).values())
        differences = crowds[rng.integers(len(crowds))][0]
        largest = max(float(np.abs(differences).max()), 1e-9)
        scaled = np.tile(differences * (10 ** rng.uniform(-6, 6) / largest), (5, 1))
        assert fit_in_ball(scaled, even_offsets(100, records), 1.0).gaps.max() <= GAP_LIMIT


PRINT_BITS = """
from crowds import gaussian, moral_machine
from crowdveil.estimation.l1_ball import fit_in_ball
for differences, offsets in (moral_machine(300), gaussian(30)):
    print(fit_in_ball(differences, offsets, 2.0).values.tobytes().hex())
"""


@pytest.mark.slow
def test_the_same_bits_on_a_processor_without_wide_vectors(tmp_path):
    def bits(**machine: str) -> bytes:
        paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), **machine}
        return subprocess.run(
            [sys.executable, "-c", PRINT_BITS], env=environment, capture_output=True, check=True
        ).stdout

    assert bits() == bits(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")


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


def columns_of(records: np.ndarray, bound: float = 1.0) -> np.ndarray:
    count, features = records.shape
    columns = np.full((features, padded(count)), np.nan)
    fill_columns(np.ascontiguousarray(records).reshape(-1), bound, new_sorter(count, features), columns)
    return columns


def sorted_rows(rows: np.ndarray) -> list[tuple[float, ...]]:
    return sorted(map(tuple, rows.tolist()))


@pytest.mark.parametrize("count", [1, 2, 3, 13, 100, 512, 513, 1500])
@pytest.mark.parametrize("kind", ["distinct", "repeated"])
def test_columns_hold_the_records_in_an_order_of_their_own(count, kind):
    rng = np.random.default_rng(count)
    records = rng.normal(size=(count, 5)) if kind == "distinct" else rng.integers(-1, 2, (count, 5)).astype(np.int8)
    columns = columns_of(records, bound=2.0)
    assert sorted_rows(columns[:, :count].T) == sorted_rows(2.0 * records)
    assert not columns[:, count:].any()
    for _ in range(3):
        np.testing.assert_array_equal(columns_of(rng.permutation(records), bound=2.0), columns)


def test_records_with_equal_keys_are_still_put_in_order():
    weights = new_sorter(2, 2).weights
    records = np.array([[weights[1], 0.0], [0.0, weights[0]], [weights[1], 0.0], [0.0, weights[0]]])
    assert len(set((records @ weights[:2]).tolist())) == 1
    forward, backward = columns_of(records), columns_of(records[[1, 3, 0, 2]])
    np.testing.assert_array_equal(forward, backward)
    assert sorted_rows(forward.T) == sorted_rows(records)


def test_largest_difference():
    assert largest_difference(np.array([[-128, 3]], dtype=np.int8), np.array([0, 1])) == 128.0
    assert largest_difference(np.zeros((0, 3)), np.array([0, 0])) == 0.0


@pytest.mark.parametrize(
    ("differences", "offsets", "message"),
    [
        (np.zeros(3), np.array([0, 3]), "records x features"),
        (np.zeros((3, 0)), np.array([0, 3]), "records x features"),
        (np.zeros((3, 2), dtype=np.int32), np.array([0, 3]), "int8 or float64"),
        (np.zeros((3, 2)), np.array([0, 2]), "number of records, 3"),
        (np.zeros((3, 2)), np.array([1, 3]), "number of records, 3"),
        (np.zeros((3, 2)), np.array([0, 2, 1, 3]), "number of records, 3"),
        (np.zeros((3, 2)), np.array([0.0, 3.0]), "int64"),
        (np.zeros((3, 2)), np.array([], dtype=np.int64), "int64"),
        (np.array([[1.0, np.nan]]), np.array([0, 1]), "finite"),
        (np.array([[1.0, -np.inf]]), np.array([0, 1]), "finite"),
    ],
)
def test_nonsense_is_refused(differences, offsets, message):
    with pytest.raises(CrowdveilError, match=message):
        largest_difference(differences, offsets)
