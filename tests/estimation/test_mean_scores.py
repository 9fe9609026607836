"""From mean scores to a preference: what went in comes out, and bounds hold what they must."""

import numpy as np
import pytest
from scipy.special import ndtr

from crowdveil.estimation.disagreement import DISAGREEMENT, reach
from crowdveil.estimation.mean_scores import fit_mean_scores
from crowdveil.estimation.record_axes import record_axes
from crowdveil.estimation.tilted_design import moment_count, tilted
from crowdveil.study.bundled import load_study

AXES = record_axes(load_study("kidney"))
ALONG = AXES.design.along
COMMON = np.array([0.4, -0.3, 0.2, 0.0, 0.1])
EXACT = 1e-10 * np.eye(5)
UNTOLD = tilted(AXES.design, np.zeros(moment_count(5)), 1e6 * np.eye(moment_count(5)))


def mean_scores(common, tau):
    """What a crowd of this disagreement shows on average."""
    shares = ndtr(reach(ALONG, tau) * (ALONG @ common))
    return AXES.scores.T @ (2 * shares - 1) / len(ALONG), shares


def pooled(shares):
    """The pooled probit, by Newton's method from the shares that prefer each dilemma."""
    gamma = np.zeros(5)
    for _ in range(50):
        t = ALONG @ gamma
        chance, density = ndtr(t), np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
        weight = density / np.maximum(chance * (1 - chance), 1e-300)
        gamma += np.linalg.solve(
            (ALONG * (weight * density)[:, None]).T @ ALONG, ALONG.T @ (weight * (shares - chance))
        )
    return gamma


def test_without_noise_the_pooled_probit_comes_out():
    scores, shares = mean_scores(COMMON, DISAGREEMENT)
    fit = fit_mean_scores(AXES, scores, EXACT)
    assert fit.center == pytest.approx(pooled(shares), abs=1e-5)


@pytest.mark.parametrize("tau", [0.0, 0.15, 0.45, 0.6])
def test_doubt_covers_crowds_that_differ_less_or_more_than_assumed(tau):
    scores, shares = mean_scores(COMMON, tau)
    fit = fit_mean_scores(AXES, scores, EXACT)
    assert (np.abs(fit.center - pooled(shares)) <= fit.doubt + 1e-5).all()
    assert fit.doubt.max() < 0.1


def test_the_gain_is_the_centers_derivative():
    """By differences; what the pooled probit's weights change by is left out, a part in a hundred here."""
    scores, _ = mean_scores(COMMON, DISAGREEMENT)
    fit = fit_mean_scores(AXES, scores, EXACT)
    for k in range(5):
        step = 1e-3 * np.eye(5)[k]
        ahead, behind = (fit_mean_scores(AXES, scores + s, EXACT).center for s in (step, -step))
        assert fit.gain[:, k] == pytest.approx((ahead - behind) / 2e-3, abs=0.05)


def test_the_center_follows_noise_as_the_gain_says():
    scores, loud = np.array([0.9, -0.9, 0.9, 0.0, 0.0]), 100 * np.eye(5)
    fit = fit_mean_scores(AXES, scores, loud)
    assert fit.center == pytest.approx(fit.gain @ scores, rel=0.1, abs=0.1)


def test_dilemmas_that_were_not_drawn_by_the_generator_are_in_doubt():
    scores, _ = mean_scores(COMMON, DISAGREEMENT)
    known = fit_mean_scores(AXES, scores, EXACT)
    unknown = fit_mean_scores(AXES.over(UNTOLD.differences), scores, EXACT, UNTOLD)
    assert unknown.center == pytest.approx(known.center, abs=0.02)
    assert (unknown.doubt >= known.doubt).all()
    assert unknown.doubt[0] > known.doubt[0] + 0.05


def test_a_crowds_own_probit_is_as_far_from_what_its_scores_tell_as_is_said():
    """Three hundred crowds of 3,000 records: the two are fitted to the same records, without noise."""
    rng, records = np.random.default_rng(8), 3000
    scores, shares = mean_scores(COMMON, DISAGREEMENT)
    fit, start = fit_mean_scores(AXES, scores, EXACT), pooled(shares)
    gaps = []
    for _ in range(300):
        asked = rng.integers(0, len(ALONG), records)
        chosen = np.where(rng.random(records) < shares[asked], 1.0, -1.0)
        x, gamma = ALONG[asked] * chosen[:, None], start
        for _ in range(5):
            t = x @ gamma
            slope = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi) / ndtr(t)
            gamma = gamma + np.linalg.solve((x * (slope * (slope + t))[:, None]).T @ x, x.T @ slope)
        told = (AXES.scores[asked] * chosen[:, None]).mean(axis=0)
        gaps.append(fit.center + fit.gain @ (told - scores) - gamma)
    found = np.cov(np.array(gaps), rowvar=False) * records
    # A variance of 300 draws is known to 8 %, their sum over five axes to 4 %: a factor of two would be noticed.
    assert np.trace(found) == pytest.approx(np.trace(fit.apart), rel=0.2)
    assert np.diag(found) == pytest.approx(np.diag(fit.apart), rel=0.4)
