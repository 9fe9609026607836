"""The likelihood that knows of flips: its slope by differences, a known preference recovered, honest error bars."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from crowdveil.estimation import flipped_choices
from crowdveil.estimation.flipped_choices import (
    DISAGREEMENT,
    FlippedChoices,
    _evaluate,
    _information,
    _reaches,
    fit_flipped_choices,
)


def answers(voters, records, beta, flip, rng, spread=DISAGREEMENT):
    """Let voters with preferences around beta answer Gaussian dilemmas, and turn some answers over."""
    features, total = len(beta), voters * records
    dilemmas = rng.normal(0, np.sqrt(2), (total, features))
    own = np.repeat(rng.normal(beta, spread, (voters, features)), records, axis=0)
    chose = (own * dilemmas).sum(axis=1) + rng.standard_normal(total) > 0
    kept = rng.random(total) >= flip
    chosen = np.where((chose == kept)[:, None], dilemmas, -dilemmas)
    offsets = np.arange(voters + 1) * records
    return FlippedChoices(chosen, offsets, np.full(total, flip), np.ones(total))


def groups(seed=1):
    """Two groups with different chances of a flip, and unequal weights."""
    rng, beta = np.random.default_rng(seed), np.array([0.5, -0.4, 0.1])
    first, second = (answers(8, 5, beta, flip, rng) for flip in (0.1, 0.35))
    return [first, FlippedChoices(second.chosen, second.offsets, second.flip, np.full(40, 0.4))]


def objective(preference):
    """The log-likelihood and the prior, written down anew."""
    both = groups()
    typical = np.mean(np.concatenate([(g.chosen**2).sum(axis=1) for g in both]))
    value = -0.5 * preference @ preference
    for g in both:
        reach = np.sqrt((1 + DISAGREEMENT**2 * typical) / (1 + DISAGREEMENT**2 * (g.chosen**2).sum(axis=1)))
        chance = g.flip + (1 - 2 * g.flip) * norm.cdf(reach * (g.chosen @ preference))
        value += g.weight @ np.log(chance)
    return value


@pytest.mark.parametrize("preference", [np.zeros(3), np.array([0.7, -1.1, 0.2])])
def test_objective_and_slope_against_differences(preference):
    value, slope, curvature = _evaluate(groups(), _reaches(groups()), preference)
    assert value == pytest.approx(objective(preference), rel=1e-12)
    for k in range(3):
        step = 1e-5 * np.eye(3)[k]
        ahead, behind = (_evaluate(groups(), _reaches(groups()), preference + s)[1] for s in (step, -step))
        assert curvature[k] == pytest.approx((behind - ahead) / 2e-5, rel=1e-6, abs=1e-6)
        assert slope[k] == pytest.approx((objective(preference + step) - objective(preference - step)) / 2e-5, rel=1e-6)


def test_a_general_solver_finds_nothing_better():
    found = minimize(lambda b: -objective(b), np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    fit = fit_flipped_choices(groups())
    assert fit.preference == pytest.approx(found.x, abs=1e-5)
    assert objective(fit.preference) >= -found.fun - 1e-9


def test_fisher_scoring_arrives_where_newton_does(monkeypatch):
    """Both stop within 1e-10 of a step; Fisher's steps shrink by a factor, so that it may be a few of them away."""
    newton = fit_flipped_choices(groups())
    monkeypatch.setattr(flipped_choices, "_CONCAVE", np.inf)
    fisher = fit_flipped_choices(groups())
    assert fisher.preference == pytest.approx(newton.preference, abs=1e-8)
    assert fisher.covariance == pytest.approx(newton.covariance, abs=1e-7)


@pytest.mark.parametrize("flip", [0.0, 0.27, 0.45])
def test_a_known_preference_is_recovered_through_the_flips(flip):
    """Stated for the dilemma of mean square length: b / sqrt(1 + tau^2 l^2), here l^2 = 2 d."""
    b = np.array([0.8, -0.5, 0.0, 0.3])
    made = answers(40_000 if flip > 0.4 else 6_000, 5, b, flip, np.random.default_rng(4))
    fit = fit_flipped_choices([made])
    beta = b / np.sqrt(1 + DISAGREEMENT**2 * (made.chosen**2).sum(axis=1).mean())
    assert np.abs(fit.preference - beta) == pytest.approx(0, abs=5 * np.sqrt(np.diag(fit.covariance)).max())
    assert np.sqrt(np.diag(fit.covariance)).max() < 0.04


def test_a_likelihood_that_forgets_the_flips_shrinks_the_preference():
    made = answers(4_000, 5, np.array([0.8, -0.5]), 0.3, np.random.default_rng(4))
    forgetful = FlippedChoices(made.chosen, made.offsets, np.zeros(len(made.flip)), made.weight)
    right, wrong = (np.linalg.norm(fit_flipped_choices([g]).preference) for g in (made, forgetful))
    assert wrong < 0.6 * right


def test_error_bars_cover_although_a_voters_answers_are_alike():
    """Clustered by voter: 30 answers of one voter are not 30 voters'. Bars that forget that miss far too often."""
    rng, runs, b = np.random.default_rng(8), 300, np.array([0.3, -0.2])
    beta = b / np.sqrt(1 + DISAGREEMENT**2 * 4)  # l^2 = 2 d = 4
    covered, naive = np.zeros(2), np.zeros(2)
    for _ in range(runs):
        made = answers(60, 30, b, 0.1, rng)
        fit = fit_flipped_choices([made])
        information, _ = _information([made], _reaches([made]), fit.preference)
        miss = np.abs(fit.preference - beta)
        covered += miss < 1.96 * np.sqrt(np.diag(fit.covariance))
        naive += miss < 1.96 * np.sqrt(np.diag(np.linalg.inv(information)))
    # Five binomial standard deviations, and two points for a covariance estimated from 60 voters.
    assert (np.abs(covered / runs - 0.94) < 5 * np.sqrt(0.95 * 0.05 / runs) + 0.01).all()
    assert (naive / runs < 0.85).all()


def test_without_disagreement_it_is_the_plain_probit(monkeypatch):
    monkeypatch.setattr(flipped_choices, "DISAGREEMENT", 0.0)
    made = answers(400, 5, np.array([0.6, -0.2]), 0.0, np.random.default_rng(5), spread=0.0)
    found = minimize(
        lambda b: -norm.logcdf(made.chosen @ b).sum() + 0.5 * b @ b, np.zeros(2), method="BFGS", options={"gtol": 1e-8}
    )
    assert fit_flipped_choices([made]).preference == pytest.approx(found.x, abs=1e-5)
