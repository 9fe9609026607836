"""A design that is tilted toward told moments: against a file whose tilt is known, and where little is told."""

import numpy as np
import pytest

from crowdveil.estimation.design import public_design
from crowdveil.estimation.dilemma_moments import product_deviation, shown_range
from crowdveil.estimation.tilted_design import TILT, moment_count, moments, tilted
from crowdveil.study.bundled import load_study, synthetic_study

DESIGN = public_design(load_study("kidney"))
COUNT = moment_count(5)


def test_moments_are_squares_and_products_within_one():
    x = np.array([[1.0, -0.5, 4.0]])
    assert moments(x).tolist() == [[2 * 0.25 - 1, 2 * 0.0625 - 1, 1.0, -0.25, 1.0, -1.0]]
    assert moment_count(3) == 6


def test_a_file_whose_dilemmas_were_left_out_is_found():
    """Of the generator's own dilemmas, e^(lambda h) as many were kept as of the loudest: told exactly."""
    along = DESIGN.along
    every = moments(along)
    lean = np.zeros(COUNT)
    lean[1], lean[7] = -0.8, 0.5
    weights = np.exp(every @ lean)
    told = weights @ every / weights.sum()
    found = tilted(DESIGN, told, 1e-7 * np.eye(COUNT))
    assert found.moments.mean(axis=0) == pytest.approx(told, abs=0.02)
    assert moments(found.differences @ DESIGN.basis) == pytest.approx(found.moments, abs=1e-12)
    # Other moments of the same dilemmas follow: the fourth power along the tilted axis.
    fourth = weights @ along[:, 1] ** 4 / weights.sum()
    assert np.mean((found.differences @ DESIGN.basis)[:, 1] ** 4) == pytest.approx(fourth, rel=0.1)
    assert np.trace(found.untold) < 0.1 * COUNT * TILT**2


def test_where_nothing_is_told_the_generator_and_the_prior_remain():
    found = tilted(DESIGN, np.full(COUNT, 0.9), 1e6 * np.eye(COUNT))
    assert np.array_equal(found.differences, DESIGN.differences[: len(found.differences)])
    # The variance of Student's law with three degrees of freedom is three times the square of its scale.
    assert np.diag(found.untold) == pytest.approx(np.full(COUNT, 3 * TILT**2), rel=0.01)
    assert np.trace(found.noise) < 1e-4


def test_moments_that_no_file_has_leave_finite_numbers():
    found = tilted(DESIGN, np.full(COUNT, 5.0), 1e-3 * np.eye(COUNT))
    assert np.isfinite(found.noise).all()
    assert np.isfinite(found.differences).all()


def test_a_sample_that_shows_nothing_in_a_direction_leaves_finite_bounds():
    found = tilted(DESIGN, np.full(COUNT, -5.0), 1e-3 * np.eye(COUNT))
    low, high = found.shown(np.zeros((10, 5)), np.eye(5)[0])
    assert 0 < low <= high < np.inf


def file_of_trade_offs(design):
    """The public design's dilemmas, of which those are rare whose first two axes speak for the same side."""
    along = design.along
    weights = np.where(along[:, 0] * along[:, 1] > 0, 0.5, 1.0)
    weights /= weights.sum()
    direction = np.zeros(along.shape[1])
    direction[:2] = np.sqrt(0.5)
    return weights @ moments(along), direction, float(weights @ np.square(along @ direction))


def test_reports_of_how_features_go_together_tell_how_much_the_dilemmas_show_of_a_preference():
    told, direction, exact = file_of_trade_offs(DESIGN)
    found = tilted(DESIGN, told, 1e-6 * np.eye(COUNT))
    along = found.differences @ DESIGN.basis
    sampled = float(np.square(along @ direction).mean())
    low, high = found.shown(along, 3 * direction)
    # Moments are cut off at 2 (products) and 4 (squares), which these dilemmas seldom reach.
    assert (low * sampled, high * sampled) == pytest.approx((exact, exact), rel=0.05)
    assert exact < 0.85


def test_where_nothing_is_told_dilemmas_show_what_is_usual_of_files():
    found = tilted(DESIGN, np.zeros(COUNT), 1e6 * np.eye(COUNT))
    along = found.differences @ DESIGN.basis
    _, direction, _ = file_of_trade_offs(DESIGN)
    sampled = float(np.square(along @ direction).mean())
    assert np.array(found.shown(along, direction)) * sampled == pytest.approx(shown_range(5))


def test_products_that_are_not_reported_stay_as_unsure_as_they_are_expected_to_be():
    """Thirteen axes: squares alone are reported, here of a file whose squares are the generator's, without an error."""
    design = public_design(synthetic_study(13, 4))
    every = moments(design.along)
    found = tilted(design, every.mean(axis=0), 1e-9 * np.eye(13))
    along = found.differences @ design.basis
    single, mixed = np.eye(13)[0], np.full(13, np.sqrt(1 / 13))
    assert found.shown(along, single) == pytest.approx((1, 1), abs=0.03)
    reach = 2 * np.sqrt(2 * (1 - 1 / 13)) * product_deviation(13)
    sampled = float(np.square(along @ mixed).mean())
    usual = shown_range(13)
    low, high = found.shown(along, mixed)
    assert low * sampled == pytest.approx(max(usual[0], 1 - reach), abs=0.03)
    assert high * sampled == pytest.approx(min(usual[1], 1 + reach), abs=0.03)
