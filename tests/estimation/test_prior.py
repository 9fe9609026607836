"""The prior: margins of a stated size in all, whatever the number of directions."""

import numpy as np
import pytest
from scipy.stats import halfnorm, norm

from crowdveil.estimation.design import public_design
from crowdveil.estimation.prior import (
    LIKELY_MARGINS,
    MARGIN,
    REST,
    likely_deviations,
    margin_deviations,
    prior_deviation,
    prior_deviations,
    rest_deviation,
)
from crowdveil.study.bundled import load_study, synthetic_study


@pytest.mark.parametrize("study", [synthetic_study(1), load_study("moral-machine"), load_study("kidney")])
def test_the_margins_of_a_studys_dilemmas_have_the_stated_mean_square(study):
    """E (gamma . x)^2 = tau^2 E |x|^2, of dilemmas that have unit size along each axis."""
    design = public_design(study)
    k = design.directions
    squares = prior_deviation(k) ** 2 * np.square(design.differences @ design.basis).sum(axis=1).mean()
    assert squares == pytest.approx(MARGIN**2, rel=0.01)  # axes are rounded to a grid
    left_out = design.rest.shape[1]
    if left_out:
        squares = rest_deviation(left_out) ** 2 * np.square(design.differences @ design.rest_basis).sum(axis=1).mean()
        assert squares == pytest.approx((REST * MARGIN) ** 2, rel=0.01)


def test_four_of_five_people_agree_in_a_choice():
    """E Phi(|m|) = 1/2 + atan(MARGIN) / pi for a margin m ~ N(0, MARGIN^2)."""
    margins = MARGIN * norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    assert norm.cdf(np.abs(margins)).mean() == pytest.approx(0.5 + np.arctan(MARGIN) / np.pi, abs=1e-4)
    assert 0.5 + np.arctan(MARGIN) / np.pi == pytest.approx(0.8, abs=0.02)


def test_where_there_is_no_direction_there_is_no_division_by_zero():
    assert prior_deviation(0) == MARGIN
    assert rest_deviation(0) == pytest.approx(REST * MARGIN)


def test_likely_sizes_of_margins_are_quantiles_of_a_half_normal_law():
    assert halfnorm.ppf((np.arange(16) + 0.5) / 16) == pytest.approx(LIKELY_MARGINS)
    assert np.sqrt(9) * likely_deviations(9, 0.0)[:, 4] == pytest.approx(LIKELY_MARGINS)
    agreeing = 0.5 + np.arctan(LIKELY_MARGINS) / np.pi
    assert (agreeing.min(), agreeing.max()) == pytest.approx((0.51, 0.86), abs=0.005)


def test_sizes_of_margins_are_equally_spaced_in_their_logarithms():
    sizes = np.sqrt(9) * margin_deviations(9, 0.125)[:, 4]
    assert (sizes[0], sizes[-1]) == pytest.approx((0.125, 4.0))
    assert np.diff(np.log(sizes)) == pytest.approx(np.full(len(sizes) - 1, np.log(32) / (len(sizes) - 1)))


def test_sizes_of_margins_are_those_of_voters_and_not_of_the_share_that_agrees():
    """Voters N(m, tau^2) along 9 axes prefer x of length 3 in a share Phi(m . x / sqrt(1 + 9 tau^2)): by simulation."""
    rng = np.random.default_rng(6)
    own = rng.normal(1.0, 0.6 * 3, 400_000)
    share = np.mean(own + rng.standard_normal(len(own)) > 0)
    assert likely_deviations(9, 0.6)[0, 0] / likely_deviations(9, 0.0)[0, 0] == pytest.approx(norm.ppf(share), abs=0.01)


def test_directions_that_factors_leave_out_move_a_margin_by_a_tenth_of_what_the_factors_do():
    for deviations in (prior_deviations(23, 14)[None], likely_deviations(23, 0.3, 14), margin_deviations(23, 0.1, 14)):
        factors, rest = np.square(deviations[:, :9]).sum(axis=1), np.square(deviations[:, 9:]).sum(axis=1)
        assert rest / factors == pytest.approx(0.01)
    assert prior_deviations(9, 0) == pytest.approx(np.full(9, prior_deviation(9)))
    assert prior_deviations(23, 14)[-1] == pytest.approx(rest_deviation(14))
