"""From mean scores to a preference: exact where the scores are, the true minimum where not, with an honest spread."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize

from crowdveil.estimation.design import public_design
from crowdveil.estimation.moments import Belief, fit_scores
from crowdveil.study.bundled import load_study, synthetic_study

CLIP = 0.7
SAMPLE = public_design(synthetic_study(3)).sample.head(2000)
"""As good as any other where the truth is computed from the same dilemmas."""
PRIOR = 1.5 / np.sqrt(3)
"""Margins have a mean square of 1.5^2 a priori, in three directions of unit size."""


def fitted(scores, covariance, prior=None):
    return fit_scores(partial(SAMPLE.expected_scores, clip=CLIP), scores, covariance, prior or Belief.before(3))


@pytest.mark.parametrize("study", [synthetic_study(3), load_study("moral-machine")], ids=lambda s: s.name)
def test_exact_scores_give_the_preference_back(study):
    """Errors of 1e-4 leave the prior a pull of about (1e-4 / PRIOR)^2."""
    sample, rng = public_design(study).sample.head(5000), np.random.default_rng(1)
    k = sample.along.shape[1]
    gamma = rng.normal(0, 0.4, k)
    expected = partial(sample.expected_scores, clip=CLIP)
    fit = fit_scores(expected, expected(gamma)[0], 1e-8 * np.eye(k), Belief.before(k))
    assert fit.mean == pytest.approx(gamma, abs=1e-4)
    assert fit.center == pytest.approx(gamma, abs=1e-5)


@pytest.mark.parametrize("deviation", [0.02, 0.5, 3.0])
def test_a_general_solver_finds_no_better_preference(deviation):
    """Also where the noise is far larger than any score."""
    rng = np.random.default_rng(7)
    scores = SAMPLE.expected_scores(np.array([0.5, -0.3, 0.1]), CLIP)[0] + rng.normal(0, deviation, 3)
    covariance = np.diag([1.0, 2.0, 0.5]) * deviation**2

    def loss(gamma):
        miss = scores - SAMPLE.expected_scores(gamma, CLIP)[0]
        return miss @ np.linalg.solve(covariance, miss) + gamma @ gamma / PRIOR**2

    found = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12, "maxiter": 4000})
    fit = fitted(scores, covariance)
    # Gauss-Newton ends where the loss, a square of deviations, can fall by less than 1e-5.
    assert fit.mean == pytest.approx(found.x, abs=0.01 * PRIOR)
    assert loss(fit.mean) <= found.fun + 2e-5


def test_a_belief_is_what_a_normal_law_says_where_scores_are_a_straight_line():
    """The textbook's update: precisions add up. And noise without end teaches nothing."""
    slope, prior = np.array([[0.8, 0.1, 0.0], [0.2, 0.5, 0.1], [0.0, 0.1, 0.4]]), np.diag([0.04, 0.09, 0.01])
    belief, errors = Belief(np.array([0.3, -0.1, 0.2]), prior), np.diag([0.01, 0.02, 0.005])
    scores = np.array([0.4, 0.1, -0.2])

    def line(gamma):
        return slope @ gamma, slope

    fit = fit_scores(line, scores, errors, belief)
    precision = np.linalg.inv(prior) + slope.T @ np.linalg.inv(errors) @ slope
    assert fit.covariance == pytest.approx(np.linalg.inv(precision))
    pulled = np.linalg.inv(prior) @ belief.mean + slope.T @ np.linalg.solve(errors, scores)
    assert fit.mean == pytest.approx(np.linalg.solve(precision, pulled))
    assert slope @ fit.center == pytest.approx(scores)
    assert fit_scores(line, scores, 1e12 * errors, belief).mean == pytest.approx(belief.mean, abs=1e-9)


def test_noise_does_not_bend_the_unshrunk_estimate():
    """Noise of a third of what scores can be: on average the center is still the truth, within its own error."""
    rng, deviation, trials, gamma = np.random.default_rng(4), 0.25, 400, np.array([0.5, -0.3, 0.1])
    exact = SAMPLE.expected_scores(gamma, CLIP)[0]
    centers = [fitted(exact + rng.normal(0, deviation, 3), deviation**2 * np.eye(3)).center for _ in range(trials)]
    error = np.std(centers, axis=0) / np.sqrt(trials)
    assert (np.abs(np.mean(centers, axis=0) - gamma) < 5 * error + 0.1 * np.abs(gamma)).all()


def test_the_gain_is_how_the_center_moves_with_the_scores():
    """Where the scores fit: elsewhere the second derivative, which the gain leaves out, has a part."""
    scores, covariance = SAMPLE.expected_scores(np.array([0.4, -0.2, 0.3]), CLIP)[0], 1e-6 * np.eye(3)
    fit = fitted(scores, covariance)
    for k in range(3):
        step = 1e-3 * np.eye(3)[k]
        ahead, behind = (fitted(scores + s, covariance).center for s in (step, -step))
        assert fit.gain[:, k] == pytest.approx((ahead - behind) / 2e-3, abs=2e-3)


def test_error_bars_cover_as_often_as_they_say():
    """The unshrunk estimate's by the gain, the posterior's where truths are drawn from the prior."""
    rng, deviation, trials = np.random.default_rng(3), 0.03, 400
    errors, covered = deviation**2 * np.eye(3), np.zeros(2)
    for _ in range(trials):
        gamma = rng.normal(0, 0.3, 3)
        seen = SAMPLE.expected_scores(gamma, CLIP)[0] + rng.normal(0, deviation, 3)
        fit = fitted(seen, errors)
        bars = 1.96 * deviation * np.linalg.norm(fit.gain, axis=1), 1.96 * np.sqrt(np.diag(fit.covariance))
        apart = np.abs(fit.center - gamma), np.abs(fit.mean - gamma)
        covered += [np.mean(miss < bar) for miss, bar in zip(apart, bars, strict=True)]
    # Five binomial standard deviations around 95 %, of 400 draws at least (the three axes are nearly independent).
    assert covered / trials == pytest.approx(0.95, abs=5 * np.sqrt(0.95 * 0.05 / trials))
