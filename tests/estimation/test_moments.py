"""From mean scores to a preference: exact where the scores are, the true minimum where not, with honest error bars."""

import numpy as np
import pytest
from scipy.optimize import minimize

from crowdveil.estimation.design import Design, public_design
from crowdveil.estimation.moments import PRIOR_DEVIATION, preference_from_scores
from crowdveil.study.bundled import load_study, synthetic_study


def small_design():
    """A design of 2,000 dilemmas: as good as any other where the truth is computed from the same one."""
    design = public_design(synthetic_study(3))
    return Design(design.differences[:2000], design.axes)


DESIGN = small_design()


@pytest.mark.parametrize("study", [synthetic_study(3), load_study("moral-machine")], ids=lambda s: s.name)
def test_exact_scores_give_the_preference_back(study):
    design, rng = public_design(study), np.random.default_rng(1)
    beta = rng.normal(0, 0.4, study.dimension)
    # Directions that the study never varies cannot be learned: leave them out.
    beta = np.linalg.pinv(design.axes.T) @ (design.axes.T @ beta)
    fit = preference_from_scores(design, design.expected_scores(beta)[0], 1e-8 * np.eye(design.directions))
    assert fit.preference == pytest.approx(beta, abs=1e-4)


@pytest.mark.parametrize("deviation", [0.02, 0.5, 3.0])
def test_a_general_solver_finds_no_better_preference(deviation):
    """Also where the noise is far larger than any score."""
    design, rng = DESIGN, np.random.default_rng(7)
    scores = design.expected_scores(np.array([0.5, -0.3, 0.1]))[0] + rng.normal(0, deviation, 3)
    covariance = np.diag([1.0, 2.0, 0.5]) * deviation**2

    def loss(beta):
        miss = scores - design.expected_scores(beta)[0]
        return miss @ np.linalg.solve(covariance, miss) + beta @ beta / PRIOR_DEVIATION**2

    found = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12, "maxiter": 4000})
    fit = preference_from_scores(design, scores, covariance)
    assert fit.preference == pytest.approx(found.x, abs=2e-5)
    assert loss(fit.preference) <= found.fun * (1 + 1e-9)


def test_the_gain_is_how_the_preference_moves_with_the_scores():
    """Of a well-measured preference; far from it the second derivative, which the gain leaves out, has a part."""
    design = DESIGN
    scores, covariance = design.expected_scores(np.array([0.4, -0.2, 0.3]))[0], 1e-6 * np.eye(3)
    fit = preference_from_scores(design, scores, covariance)
    for k in range(3):
        step = 1e-3 * np.eye(3)[k]
        ahead, behind = (preference_from_scores(design, scores + s, covariance).preference for s in (step, -step))
        assert fit.gain[:, k] == pytest.approx((ahead - behind) / 2e-3, abs=2e-3)


def test_error_bars_cover_as_often_as_they_say():
    design, rng = DESIGN, np.random.default_rng(3)
    beta, deviation, runs = np.array([0.5, -0.3, 0.1]), 0.03, 400
    exact = design.expected_scores(beta)[0]
    covered = np.zeros(3)
    for _ in range(runs):
        fit = preference_from_scores(design, exact + rng.normal(0, deviation, 3), deviation**2 * np.eye(3))
        bars = 1.96 * deviation * np.sqrt((fit.gain**2).sum(axis=1))
        covered += np.abs(fit.preference - beta) < bars
    # Five binomial standard deviations around 95 %.
    assert covered / runs == pytest.approx(0.95, abs=5 * np.sqrt(0.95 * 0.05 / runs))
