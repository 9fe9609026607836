"""The threshold beside the probit: completed choices and a share of coins give back what made them."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import norm

from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import ImpossibleEstimate
from crowdveil.estimation.threshold import exact_threshold, fit_threshold, stretch_for, three_shares
from crowdveil.study.bundled import synthetic_study

MARGINS = norm.ppf((np.arange(4000) + 0.5) / 4000) * 0.9
"""Margins as of many dilemmas."""


def completed_slope(tau):
    """The slope that a probit of choices completed by coins finds on these margins, by direct maximisation."""
    chosen = (norm.cdf(MARGINS - tau) + norm.cdf(MARGINS + tau)) / 2

    def loss(slope):
        return -(chosen * norm.logcdf(slope * MARGINS) + (1 - chosen) * norm.logcdf(-slope * MARGINS)).mean()

    return minimize(loss, 1.0, tol=1e-12).x[0]


@pytest.mark.parametrize("tau", [0.0, 0.2, 0.5, 1.0, 1.5])
def test_preference_and_threshold_come_back(tau):
    slope = completed_slope(tau)
    share = (norm.cdf(tau - MARGINS) - norm.cdf(-tau - MARGINS)).mean()
    assert stretch_for(slope * MARGINS, tau) == pytest.approx(1 / slope, abs=2e-4)
    found = fit_threshold(slope * MARGINS, np.zeros(len(MARGINS)), share, 0.001)
    assert found.tau == pytest.approx(tau, abs=0.01)
    assert found.stretch == pytest.approx(1 / slope, abs=0.01)
    assert found.low <= found.tau <= found.high


def test_the_stretch_is_about_the_root_of_one_plus_tau_squared():
    assert stretch_for(0.1 * MARGINS, 0.5) == pytest.approx(
        np.exp(0.125), abs=2e-3
    )  # g'(0) = phi(tau) for small margins
    assert stretch_for(np.zeros(3), 0.5) == np.sqrt(1.25)


@pytest.mark.parametrize("size", [1e-4, 0.03, 0.05, 0.1, 1, 10])
@pytest.mark.parametrize("tau", [0.0, 1.0, 2.0, 2.7, 3.0])
def test_the_stretch_of_equal_margins_is_found_however_many_toss_coins(tau, size):
    """Equal margins u are stretched to the t with (Phi(t - tau) + Phi(t + tau)) / 2 = Phi(u)."""
    end = size * (1.01 * np.exp(tau**2 / 2)) + 1
    stretched = brentq(lambda t: norm.sf(t - tau) + norm.sf(t + tau) - 2 * norm.sf(size), 0, end, xtol=1e-15)
    assert stretch_for(np.full(3, size), tau) == pytest.approx(stretched / size, rel=1e-6)


@pytest.mark.parametrize("tau", [2.0, 2.5, 3.0])
def test_the_preference_of_a_crowd_that_mostly_tosses_coins_comes_back(tau):
    slope = completed_slope(tau)
    assert slope * stretch_for(slope * MARGINS, tau) == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("share", [0.9, 0.99, 1.0, 1.01])
@pytest.mark.parametrize("size", [0.0, 0.02, 0.05, 0.1])
def test_a_crowd_that_mostly_tosses_coins_has_a_large_threshold_in_a_finite_interval(share, size):
    found = fit_threshold(size * MARGINS, np.zeros(len(MARGINS)), share, 0.01)
    assert 1.5 < found.low <= found.tau <= found.high <= 3
    assert 0 < found.deviation < 0.5
    assert 0 < found.stretch_deviation < np.inf


def test_a_share_that_is_not_known_leaves_the_prior_of_one_answer_in_three():
    found = fit_threshold(MARGINS, np.zeros(len(MARGINS)), 0.5, 100.0)
    shares = three_shares(MARGINS * found.stretch, found.tau)[:, 2].mean()
    assert 0.25 < shares < 0.4
    assert found.low < 0.05
    assert found.high > 1.0


@pytest.mark.parametrize("share", [-0.5, 1.7])
def test_a_share_beyond_all_that_is_possible_gives_the_nearest(share):
    found = fit_threshold(MARGINS, np.zeros(len(MARGINS)), share, 0.01)
    assert 0 <= found.tau <= 3
    assert (found.tau < 0.1) == (share < 0)


def test_three_shares_add_up_and_mirror():
    shares = three_shares(np.array([-1.0, 0.0, 2.0]), 0.4, 0.3)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert shares[1, 0] == shares[1, 1] == pytest.approx(norm.cdf(-0.4 / np.sqrt(1.3)))
    assert three_shares(np.array([1.0]), 0.4)[0] == pytest.approx(three_shares(np.array([-1.0]), 0.4)[0, [1, 0, 2]])


def answered(records=2000, tau=0.6, seed=5):
    rng = np.random.default_rng(seed)
    dilemmas = rng.normal(0, 1, (records, 3))
    felt = dilemmas @ [0.8, -0.5, 0.0] + rng.standard_normal(records)
    choices = np.where(np.abs(felt) <= tau, 0, np.sign(felt)).astype(np.int8)
    return Ballots(synthetic_study(3), np.arange(0, records + 1, 10), dilemmas, choices)


def test_the_exact_fit_is_the_maximum_of_the_likelihood():
    ballots = answered()
    found = exact_threshold(ballots, weighting="choices")

    def loss(given):
        margins, tau = ballots.dilemmas @ given[:3], given[3]
        shares = {1: norm.cdf(margins - tau), -1: norm.cdf(-margins - tau)}
        shares[0] = 1 - shares[1] - shares[-1]
        return -np.mean([np.log(shares[choice][i]) for i, choice in enumerate(ballots.choices.tolist())])

    direct = minimize(
        loss, [*found.preference, found.tau], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12}
    )
    assert direct.x == pytest.approx([*found.preference, found.tau], abs=1e-4)
    assert found.log_loss == pytest.approx(direct.fun, abs=1e-9)
    assert found.tau == pytest.approx(0.6, abs=0.06)


def test_a_crowd_that_never_chose_has_no_preference():
    ballots = answered(20)
    with pytest.raises(ImpossibleEstimate, match="no choice was decided"):
        exact_threshold(Ballots(ballots.study, ballots.offsets, ballots.dilemmas, np.zeros(20, np.int8)))
