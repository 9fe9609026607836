"""Choices turned over: the equation's mean and variance over all flips, its root, and honest error bars."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student

from crowdveil.estimation.flipped_choices import FEW, FlippedChoices, _Equation, effective_number, fit_flipped_choices
from crowdveil.estimation.prior import prior_deviation


def answers(voters, records, gamma, flip, rng, spread=0.3):
    """Let voters with preferences around gamma answer Gaussian dilemmas, and turn some answers over."""
    features, total = len(gamma), voters * records
    dilemmas = rng.normal(0, 1, (total, features))
    own = np.repeat(rng.normal(gamma, spread, (voters, features)), records, axis=0)
    chose = (own * dilemmas).sum(axis=1) + rng.standard_normal(total) > 0
    kept = rng.random(total) >= flip
    chosen = np.where((chose == kept)[:, None], dilemmas, -dilemmas)
    return FlippedChoices(chosen, np.arange(voters + 1) * records, np.full(total, flip), np.ones(total))


def turned_over(made, flips, flip):
    """The same choices as reported, where these were turned over and each might have been."""
    return FlippedChoices(made.chosen * np.where(flips, -1, 1)[:, None], made.offsets, flip, made.weight)


@pytest.mark.parametrize("gamma", [np.zeros(2), np.array([0.7, -1.1])])
def test_mean_and_variance_of_the_sum_over_all_flips(gamma):
    """Weighed by their probabilities, the sums of all 64 patterns have the true choices' mean and the coins' spread."""
    made = answers(3, 2, np.array([0.5, -0.4]), 0.0, np.random.default_rng(1))
    made = FlippedChoices(made.chosen, made.offsets, made.flip, np.array([1.0, 1.0, 0.4, 0.4, 2.0, 2.0]))
    flip = np.array([0.1, 0.1, 0.35, 0.35, 0.45, 0.45])
    patterns = np.array(list(product((False, True), repeat=6)))
    chances = np.prod(np.where(patterns, flip, 1 - flip), axis=1)
    sums = [_Equation([turned_over(made, pattern, flip)], 0.0, len(gamma)).evaluate(gamma) for pattern in patterns]
    totals = np.array([each.total for each in sums])
    margins = made.chosen @ gamma
    heeded = flip / (1 + ((1 - 2 * flip) ** 2).sum() / (2 * FEW))
    seen = heeded + (1 - 2 * heeded) * norm.cdf(margins)
    weights = made.weight * norm.pdf(margins) / (seen * (1 - seen))
    mean = chances @ totals
    assert mean == pytest.approx(made.chosen.T @ (weights * (2 - 2 * norm.cdf(margins))), rel=1e-12)
    spread = (totals - mean).T @ ((totals - mean) * chances[:, None])
    for each in sums:  # it is known, so it is the same whatever was turned over
        assert each.coins == pytest.approx(spread, rel=1e-10)


def test_the_crowd_behind_a_preference_has_it_as_its_pooled_probit():
    """Found by a general solver from the shares that prefer each dilemma."""
    made, gamma = answers(200, 2, np.array([0.5, -0.4]), 0.0, np.random.default_rng(2)), np.array([0.9, -0.3])
    r = np.sqrt((1 + 2 * 0.6**2) / (1 + 0.6**2 * (made.chosen**2).sum(axis=1)))
    shares = norm.cdf(r * (made.chosen @ _Equation([made], 0.6, len(gamma))._behind(gamma)))

    def loss(b):
        t = made.chosen @ b
        return -(shares @ norm.logcdf(t) + (1 - shares) @ norm.logcdf(-t))

    assert minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-7}).x == pytest.approx(gamma, abs=1e-5)


def test_without_flips_the_root_is_the_pooled_probit():
    """Found by a general solver; whatever is assumed of how voters differ does not matter."""
    made = answers(4_000, 5, np.array([0.6, -0.2]), 0.0, np.random.default_rng(5), spread=0.5)
    found = minimize(lambda b: -norm.logcdf(made.chosen @ b).sum(), np.zeros(2), method="BFGS", options={"gtol": 1e-6})
    fit = fit_flipped_choices([made])
    assert fit.center == pytest.approx(found.x, abs=1e-5)
    assert fit.noise == pytest.approx(0, abs=1e-20)
    # Two directions and 20,000 choices: by so much of its size a root is too large.
    assert fit.doubt == pytest.approx(np.abs(fit.center) * 1e-4, abs=1e-7)


@pytest.mark.parametrize("size", [1.0, 0.2])
def test_the_posterior_is_that_of_a_normal_center(size):
    """Precisions add up: of the center's error, and of the prior, whose size counts by how likely it makes the center.

    They are taken a hundredth of a unit apart.
    """
    made = answers(400, 5, size * np.array([0.6, -0.2]), 0.2, np.random.default_rng(6))
    fit = fit_flipped_choices([made])
    error = fit.noise + fit.sampling
    priors = [np.eye(2) * margin**2 / 2 for margin in (0.5, 1.0, 2.0)]
    weights = np.array([multivariate_normal(np.zeros(2), prior + error).pdf(fit.center) for prior in priors])
    weights /= weights.sum()
    kept = [prior @ np.linalg.inv(prior + error) for prior in priors]
    means = np.array([part @ fit.center for part in kept])
    within = np.tensordot(weights, [part @ error for part in kept], 1)
    among = np.cov(means.T, aweights=weights, ddof=0)
    assert fit.mean == pytest.approx(weights @ means, abs=0.01)
    assert fit.covariance == pytest.approx(within + among + np.diag(fit.doubt**2) / 4, rel=0.05, abs=1e-4)


def test_groups_are_one_crowd():
    made = answers(60, 4, np.array([0.5, 0.1, -0.3]), 0.3, np.random.default_rng(7))
    parts = [
        FlippedChoices(made.chosen[a:b], made.offsets[a // 4 : b // 4 + 1] - a, made.flip[a:b], made.weight[a:b])
        for a, b in ((0, 80), (80, 240))
    ]
    together, apart = fit_flipped_choices([made]), fit_flipped_choices(parts)
    assert apart.mean == pytest.approx(together.mean, abs=1e-8)
    assert apart.sampling == pytest.approx(together.sampling, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("flip", [0.0, 0.27, 0.45])
def test_a_known_preference_is_recovered_through_the_flips(flip):
    """All of one mind: within five standard errors."""
    gamma = np.array([0.8, -0.5, 0.0, 0.3])
    made = answers(40_000 if flip > 0.4 else 6_000, 5, gamma, flip, np.random.default_rng(4), spread=0.0)
    fit = fit_flipped_choices([made])
    errors = np.sqrt(np.diag(fit.noise + fit.sampling))
    assert (np.abs(fit.center - gamma) < 5 * errors + fit.doubt).all()
    assert errors.max() < 0.055


def test_an_equation_that_forgets_the_flips_shrinks_the_preference():
    made = answers(4_000, 5, np.array([0.8, -0.5]), 0.3, np.random.default_rng(4))
    forgetful = FlippedChoices(made.chosen, made.offsets, np.zeros(len(made.flip)), made.weight)
    right, wrong = (np.linalg.norm(fit_flipped_choices([g]).center) for g in (made, forgetful))
    assert wrong < 0.6 * right


def test_error_bars_cover_although_a_voters_answers_are_alike():
    """Clustered by voter: 30 answers of one voter are not 30 voters'. Bars that forget that miss far too often."""
    rng, runs, gamma = np.random.default_rng(8), 300, np.array([0.3, -0.2])
    truth = fit_flipped_choices([answers(40_000, 5, gamma, 0.0, rng, spread=0.5)]).center
    covered, naive = np.zeros(2), np.zeros(2)
    for _ in range(runs):
        made = answers(60, 30, gamma, 0.1, rng, spread=0.5)
        fit = fit_flipped_choices([made])
        alone = np.linalg.inv((made.chosen.T @ made.chosen) * 2 / np.pi) + fit.noise
        miss = np.abs(fit.center - truth)
        covered += miss < 1.96 * np.sqrt(np.diag(fit.noise + fit.sampling))
        naive += miss < 1.96 * np.sqrt(np.diag(alone))
    # Five binomial standard deviations, and two points for a covariance estimated from 60 voters.
    assert (np.abs(covered / runs - 0.94) < 5 * np.sqrt(0.95 * 0.05 / runs) + 0.01).all()
    assert (naive / runs < 0.85).all()


def of_lengths(lengths, gamma, rng):
    """Voters with so many choices each, all alike, on a dilemma of length 1."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    own = np.repeat(rng.random(len(lengths)) < norm.cdf(gamma), lengths)
    return FlippedChoices(np.where(own, 1.0, -1.0)[:, None], offsets, np.zeros(len(own)), np.ones(len(own)))


@pytest.mark.parametrize(
    ("lengths", "freedom"),
    [(np.full(49, 7), 48), (np.array([30, 10, 10]), 1), (np.array([200] * 5 + [1] * 45), 4), (np.array([9]), 1)],
)
def test_degrees_of_freedom_are_those_of_a_sum_of_unequal_squares(lengths, freedom):
    made = of_lengths(lengths, 0.2, np.random.default_rng(1))
    fit = fit_flipped_choices([made])
    assert fit.freedom == freedom == max(int(lengths.sum() ** 2 / (lengths**2).sum()) - 1, 1)
    parts = lengths / lengths.sum()
    assert effective_number(parts) == pytest.approx(lengths.sum() ** 2 / (lengths**2).sum())


def sampling_at_zero(made):
    return _Equation([made], 0.0, 1).evaluate(np.zeros(1)).voters[0, 0]


def test_equal_voters_have_one_degree_of_freedom_less_than_there_are():
    """At zero a choice adds 4 phi = sqrt(8 / pi) times its side, and a voter of one mind five times that."""
    made = of_lengths(np.full(12, 5), 0.2, np.random.default_rng(2))
    assert sampling_at_zero(made) == pytest.approx(12 * 25 * 8 / np.pi * 12 / 11, rel=1e-12)


def test_a_voter_who_draws_the_root_to_herself_counts_for_more():
    """Voters with 3, 1, 1 and 1 choices: 9 / (1 - 1/2) and three times 1 / (1 - 1/6)."""
    lengths = np.array([3, 1, 1, 1])
    made = of_lengths(lengths, 0.2, np.random.default_rng(3))
    assert sampling_at_zero(made) == pytest.approx((9 * 2 + 3 * 6 / 5) * 8 / np.pi, rel=1e-12)


def test_error_bars_cover_although_a_few_voters_give_most_choices():
    """Five voters of 200 and 45 of one: with Student's quantile for all 50, bars miss far too often."""
    rng, runs, gamma = np.random.default_rng(11), 200, np.array([0.3, -0.2])
    lengths = np.array([200] * 5 + [1] * 45)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    truth = fit_flipped_choices([answers(40_000, 5, gamma, 0.0, rng, spread=0.5)]).center
    covered, naive = np.zeros(2), np.zeros(2)
    for _ in range(runs):
        dilemmas = rng.normal(0, 1, (offsets[-1], 2))
        own = np.repeat(rng.normal(gamma, 0.5, (50, 2)), lengths, axis=0)
        chose = (own * dilemmas).sum(axis=1) + rng.standard_normal(offsets[-1]) > 0
        chosen = np.where(chose[:, None], dilemmas, -dilemmas)
        fit = fit_flipped_choices([FlippedChoices(chosen, offsets, np.zeros(offsets[-1]), np.ones(offsets[-1]))])
        miss, error = np.abs(fit.center - truth), np.sqrt(np.diag(fit.noise + fit.sampling))
        covered += miss < student.ppf(0.975, fit.freedom) * error
        naive += miss < student.ppf(0.975, 49) * error
    assert (covered / runs > 0.95 - 4 * np.sqrt(0.95 * 0.05 / runs)).all()
    assert (naive / runs < 0.9).any()


def test_nothing_but_noise_is_not_followed():
    """Two voters at an epsilon of 0.01: the prior holds the estimate, and the center says how little is known."""
    made = answers(2, 3, np.zeros(4), 1 / (1 + np.exp(0.01)), np.random.default_rng(9))
    fit = fit_flipped_choices([made])
    assert np.abs(fit.mean).max() < prior_deviation(4)
    assert np.sqrt(np.diag(fit.noise)).min() > 10


def test_a_priori_there_is_less_along_the_rest():
    """Of few choices, what is told of the rest is drawn to zero; of many, it is believed."""
    rng, gamma = np.random.default_rng(8), np.array([0.4, -0.3, 0.3, 0.3])
    few, many = (fit_flipped_choices([answers(n, 10, gamma, 0.2, rng, spread=0.01)], 2).mean for n in (40, 20_000))
    assert np.abs(few[:2]).min() > 0.1
    assert np.abs(few[2:]).max() < 0.15
    assert many == pytest.approx(gamma, abs=0.05)
