""""""

import math
from itertools import combinations, pairwise

import numpy as np
import pytest
from crowds import even_offsets, gaussian, moral_machine
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from scipy.stats import norm
from tests.estimation.likelihood import gradient, log_likelihood

from crowdveil.ballots.ballot_file import open_ballots
from crowdveil.errors import CrowdveilError
from crowdveil.estimation import society
from crowdveil.estimation.l1_ball import fit_in_ball
from crowdveil.estimation.society import fit_unbounded, fit_voters, separable_by_program
from crowdveil.sources.simulated import synthetic_crowd


def separable_by_enumeration(records: np.ndarray) -> bool:
    """Whether V u >= 0 and V u != 0 for some u in R^3, in exact integers.

    Up to directions that no record sees, {u : V u >= 0} is a pointed cone in the span of the records; if it is not
    {0}, it has an extreme ray. In a span of dimension 3 that is orthogonal to two independent records; in dimension 2,
    to one record, within the plane; in dimension 1 it is a record or its opposite.
    """
    rows = [np.array(row, dtype=object) for row in records.tolist()]
    normals = [np.cross(a, b) for a, b in combinations(rows, 2)]
    rays = [*rows, *normals, *(np.cross(normal, row) for normal in normals for row in rows)]
    for ray in [*rays, *(-ray for ray in rays)]:
        products = [int(row @ ray) for row in rows]
        if min(products, default=0) >= 0 and max(products, default=0) > 0:
            return True
    return False


def fit_one(records: np.ndarray):
    fit = fit_unbounded(records, even_offsets(1, len(records)))
    return fit.values[0], bool(fit.exists[0]), bool(fit.unique[0])


@given(arrays(np.int8, st.tuples(st.integers(0, 6), st.just(3)), elements=st.integers(-2, 2)))
@example(np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0]], dtype=np.int8))
@example(np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [1, 1, 1]], dtype=np.int8))
@example(np.array([[2, 1, 0], [-2, -1, 0]], dtype=np.int8))
def test_a_maximum_exists_exactly_where_enumeration_finds_no_separation(records):
    value, exists, unique = fit_one(records)
    assert exists == (not separable_by_enumeration(records))
    assert np.isfinite(value).all() == exists
    rank = np.linalg.matrix_rank(records.astype(float)) if len(records) else 0
    assert unique == (exists and rank == 3)
    if exists:
        np.testing.assert_allclose(gradient(records.astype(float), value), 0.0, atol=1e-9)
        outside_the_span = value - np.linalg.pinv(records.astype(float)) @ (records @ value)
        np.testing.assert_allclose(outside_the_span, 0.0, atol=1e-9)


@given(arrays(np.int8, st.tuples(st.integers(1, 6), st.just(3)), elements=st.integers(-2, 2)))
def test_the_program_agrees_with_enumeration(records):
    records = records[records.any(axis=1)]
    if len(records):
        assert separable_by_program(records.astype(float)) == separable_by_enumeration(records)


def test_separation_on_the_boundary_is_left_to_the_program(monkeypatch):
    asked = []
    monkeypatch.setattr(society, "separable_by_program", lambda records: asked.append(records) or True)
    quasi = np.array([[1.0, 0.0], [-1.0, 0.0], [0.5, 1.0]])
    assert not fit_one(quasi)[1]
    assert len(asked) == 1
    assert not fit_one(np.array([[1.0, 0.0], [1.0, 1.0]]))[1]  # clearly separated
    assert fit_one(np.array([[1.0], [-1.0]]))[1]  # clearly not
    assert len(asked) == 1


def test_one_feature_has_a_closed_form():
    """k of 10 records in favour: Phi(beta) = k/10."""
    for k in range(1, 10):
        value, exists, unique = fit_one(np.where(np.arange(10) < k, 1, -1).astype(np.int8)[:, None])
        assert exists
        assert unique
        assert value[0] == pytest.approx(norm.ppf(k / 10), abs=1e-12)
    for k in (0, 10):
        value, exists, unique = fit_one(np.where(np.arange(10) < k, 1, -1).astype(np.int8)[:, None])
        assert (exists, unique) == (False, False)
        assert np.isnan(value).all()


def test_agrees_with_bfgs_and_with_a_ball_that_does_not_bind():
    differences, offsets = gaussian(20, records=200, features=4)
    fit = fit_unbounded(differences, offsets)
    assert fit.exists.sum() > 10
    widest = np.abs(fit.values[fit.exists]).sum(axis=1).max()
    bounded = fit_in_ball(differences, offsets, 2 * widest)
    for i in np.flatnonzero(fit.exists):
        records = differences[offsets[i] : offsets[i + 1]]
        theirs = minimize(
            lambda b, v=records: -log_likelihood(v, b), np.zeros(4), jac=lambda b, v=records: -gradient(v, b)
        )
        np.testing.assert_allclose(fit.values[i], theirs.x, atol=1e-4)
        np.testing.assert_allclose(fit.values[i], bounded.values[i], atol=1e-4)


def test_an_outlier_far_inside_does_not_hide_the_maximum():
    """Its slope is below 1e-40 at the maximum, but the other records decide."""
    value, exists, _ = fit_one(np.array([[1.0], [1.0], [-1.0], [30.0]]))
    assert exists
    assert value[0] == pytest.approx(norm.ppf(2 / 3), abs=1e-9)


def test_few_answers_about_many_features_can_always_be_separated():
    """13 linearly independent records in 23 dimensions: V u = 1 has a solution."""
    differences, offsets = moral_machine(50)
    ranks = [np.linalg.matrix_rank(differences[a:b]) for a, b in pairwise(offsets)]
    fit = fit_unbounded(differences, offsets)
    assert not fit.exists[np.array(ranks) == 13].any()


def test_no_records_or_only_zeros_leave_everything_possible():
    fit = fit_unbounded(np.zeros((2, 3)), np.array([0, 0, 2]))
    assert not fit.values.any()
    assert fit.exists.all()
    assert not fit.unique.any()


def test_nonsense_is_refused(tmp_path):
    with pytest.raises(CrowdveilError, match="finite"):
        fit_unbounded(np.array([[np.inf]]), np.array([0, 1]))
    crowd = synthetic_crowd(4, 3, 2, np.random.default_rng(1)).ballots
    for bound in (10**400, math.inf, math.nan, 0, True, "2", np.array(2.0)):
        for fit in (fit_voters, society.society):
            with pytest.raises(CrowdveilError, match="the norm bound B must be a positive number"):
                fit(crowd, bound)
    crowd.save(tmp_path / "crowd")
    for ballots in (open_ballots(tmp_path / "crowd"), tmp_path / "crowd"):
        with pytest.raises(CrowdveilError, match=r"the ballots are .*: read them into memory first, with read_ballots"):
            fit_voters(ballots, 2.0)
    with pytest.raises(CrowdveilError, match="there are no voters in these ballots"):
        society.society(crowd[:0], 2.0)


def test_a_norm_bound_may_be_a_number_of_numpy():
    crowd = synthetic_crowd(4, 3, 2, np.random.default_rng(1)).ballots
    assert np.array_equal(fit_voters(crowd, np.int64(2)).values, fit_voters(crowd, 2.0).values)
