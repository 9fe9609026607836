"""Clipped means of voters' mean scores: closed forms against quadrature, and crowds whose preference is known."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from crowdveil.estimation.clipped_means import SIZES, ClippedNormal, fit_clipped_means, loudness, voter_clip
from crowdveil.estimation.prior import prior_deviation

PREFERENCE = np.array([0.7, -0.3, 0.1])
WHOLE_BALLOT = 13


class NormalMeans:
    """Mean scores over independent standard normal dilemmas, taken as normal: all is known in closed form."""

    def __init__(self, clip):
        self.clip = clip

    def expected(self, inverse_length, preference):
        """Stein: 2 gamma E phi(gamma . x), and phi of a normal of variance q has mean 1 / sqrt(2 pi (1 + q))."""
        inflated = 1 + preference @ preference
        slope = math.sqrt(2 / math.pi / inflated)
        derivative = slope * (np.eye(len(preference)) - np.outer(preference, preference) / inflated)
        centre, loud = slope * preference, loudness(inverse_length)
        law = ClippedNormal(centre, loud * (1 - centre**2), self.clip)
        return law.mean, (law.slope - 2 * loud * centre * law.bend)[:, None] * derivative

    def shown(self, inverse_length, preferences):
        """The same, of each."""
        centre = math.sqrt(2 / math.pi) * preferences / np.sqrt(1 + np.square(preferences).sum(axis=1, keepdims=True))
        return ClippedNormal(centre, loudness(inverse_length) * (1 - centre**2), self.clip).mean


def drawn_scores(voters, records, disagreement, seed):
    """Draw voters who answer by the probit model, each with a preference of her own."""
    rng = np.random.default_rng(seed)
    own = PREFERENCE + rng.normal(0, disagreement, (voters, len(PREFERENCE)))
    x = rng.normal(size=(voters, records, len(PREFERENCE)))
    margins = np.einsum("vrk,vk->vr", x, own) + rng.normal(size=(voters, records))
    return (x * np.where(margins < 0, -1, 1)[:, :, None]).mean(axis=1)


def seen(scores, clip):
    return np.clip(scores / clip, -1, 1).mean(axis=0)


@pytest.mark.parametrize("variance", [0.003, 0.1, 1.0, 2.0])
@pytest.mark.parametrize("centre", [-1.3, -0.2, 0.0, 0.31, 0.9])
def test_the_clipped_mean_and_the_share_kept_against_quadrature(centre, variance):
    clip, deviation = 0.315, math.sqrt(variance)
    law = stats.norm(centre, deviation)

    def integral(function, low, high):
        return integrate.quad(lambda s: function(s) * law.pdf(s), low, high, points=[centre], limit=200)[0]

    ends = law.sf(clip) - law.cdf(-clip)
    clipped = ClippedNormal(np.array([centre]), np.array([variance]), clip)
    assert clipped.mean[0] == pytest.approx(integral(lambda s: s / clip, -clip, clip) + ends, abs=1e-9)
    assert clipped.kept[0] == pytest.approx(integral(lambda s: 1.0, -clip, clip), abs=1e-9)


def test_the_derivatives_of_the_clipped_mean_against_differences():
    centres, variances, step = np.linspace(-1, 1, 9), np.full(9, 0.1), 1e-5
    clipped = ClippedNormal(centres, variances, 0.3)
    ahead, behind = (ClippedNormal(centres + s, variances, 0.3).mean for s in (step, -step))
    assert clipped.slope == pytest.approx((ahead - behind) / (2 * step), abs=1e-7)
    ahead, behind = (ClippedNormal(centres, variances + s, 0.3).mean for s in (step, -step))
    assert clipped.bend == pytest.approx((ahead - behind) / (2 * step), abs=1e-6)


@pytest.mark.parametrize("records", [4, 13])
def test_a_crowd_that_is_heard_well_is_understood_whatever_the_length_of_its_ballots(records):
    """The prior knows whole ballots of 13 only: what is told of lengths makes up for it."""
    voters, clip = 40_000, voter_clip(WHOLE_BALLOT)
    observed = seen(drawn_scores(voters, records, 0.2, seed=records), clip)
    fit = fit_clipped_means(NormalMeans(clip), observed, np.eye(3) / voters, (1 / records, 1e-6), WHOLE_BALLOT)
    # Averaged over voters who differ, the probit is flatter: by sqrt(1 + deviation^2 |x|^2), with |x|^2 = 3 on average.
    truth = PREFERENCE / math.sqrt(1 + 3 * 0.2**2)
    # Sampling moves a coordinate by about 0.007; the rest is how much voters really differ, and that scores agree.
    assert fit.mean == pytest.approx(truth, abs=0.05)
    assert fit.center == pytest.approx(fit.mean, abs=0.005)
    assert fit.inverse_length == pytest.approx(1 / records, rel=0.02)


def exact_means(preference, records, clip):
    return NormalMeans(clip).expected(1 / records, preference)[0]


@pytest.mark.parametrize("records", [4, 13])
def test_the_posterior_is_as_wide_as_its_errors(records):
    rng, clip, runs, deviation = np.random.default_rng(5), voter_clip(WHOLE_BALLOT), 40, 0.08
    exact, misses = exact_means(PREFERENCE, records, clip), []
    for _ in range(runs):
        told = 1 / records + rng.normal(0, deviation / 2), deviation**2 / 4
        observed = exact + rng.normal(0, deviation, 3)
        fit = fit_clipped_means(NormalMeans(clip), observed, np.eye(3) * deviation**2, told, WHOLE_BALLOT)
        misses.append((fit.mean - PREFERENCE) / np.sqrt(np.diag(fit.covariance)))
    # Three coordinates share the error in the lengths: 40 independent squares at least, of deviation sqrt(2).
    assert np.mean(np.square(misses)) == pytest.approx(1.0, abs=5 * math.sqrt(2 / runs))


@pytest.mark.parametrize("truth", [0.3, 1.0, 2.5])
def test_means_that_are_clipped_nearly_all_tell_a_preference_as_integration_does(truth):
    """Along one axis, with lengths that are known: the posterior by sums over a line, of sizes that are alike."""
    clip, deviation, length = 0.4, 0.15, 50
    model = NormalMeans(clip)
    observed = model.expected(1 / length, np.array([truth]))[0]
    line = np.linspace(-10, 10, 4001)
    shown = model.shown(1 / length, line[:, None])[:, 0]
    prior = np.mean([stats.norm(0, size).pdf(line) for size in SIZES], axis=0)
    posterior = prior * stats.norm(shown, deviation).pdf(observed[0])
    posterior /= posterior.sum()
    mean = posterior @ line
    fit = fit_clipped_means(model, observed, np.eye(1) * deviation**2, (1 / length, 1e-10), length)
    assert fit.mean[0] == pytest.approx(mean, rel=0.1)
    assert math.sqrt(fit.covariance[0, 0]) == pytest.approx(math.sqrt(posterior @ (line - mean) ** 2), rel=0.15)


def test_a_step_that_is_corrected_later_begins_at_the_most_probable_preference():
    """Where ballots have a known length that is the top of prior times likelihood, found by another optimiser."""
    means, observed, variance, told = NormalMeans(voter_clip(WHOLE_BALLOT)), np.array([0.9, -0.85, 0.3]), 0.02, 1 / 4

    def misfit(preference):
        miss = observed - means.expected(told, preference)[0]
        return miss @ miss / variance + np.square(preference / prior_deviation(3)).sum()

    top = optimize.minimize(misfit, np.zeros(3), tol=1e-10).x
    first, alone = (
        fit_clipped_means(means, observed, variance * np.eye(3), (told, 1e-9), WHOLE_BALLOT, last=last)
        for last in (False, True)
    )
    assert first.mean == pytest.approx(top, abs=1e-3)
    assert np.linalg.norm(alone.mean) > 1.05 * np.linalg.norm(top)


def test_the_center_knows_no_prior():
    """Exact means that are called noisy: the posterior shrinks them, the center undoes it."""
    clip, preference = voter_clip(WHOLE_BALLOT), PREFERENCE / 3
    observed = exact_means(preference, WHOLE_BALLOT, clip)
    fit = fit_clipped_means(NormalMeans(clip), observed, np.eye(3) * 0.5, (1 / WHOLE_BALLOT, 1e-6), WHOLE_BALLOT)
    assert np.linalg.norm(fit.mean) < 0.9 * np.linalg.norm(preference)
    assert fit.center == pytest.approx(preference, rel=0.05)


def test_noise_that_drowns_everything_leaves_a_preference_of_nothing():
    clip, wild = voter_clip(WHOLE_BALLOT), np.array([40.0, -25.0, 3.0])
    fit = fit_clipped_means(NormalMeans(clip), wild, np.eye(3) * 900, (7.0, 200.0), WHOLE_BALLOT)
    assert np.linalg.norm(fit.mean) < 0.5
    usual = np.mean(np.square(SIZES)) / 3
    assert np.trace(fit.covariance) / 3 == pytest.approx(usual, rel=0.1)
    assert np.linalg.norm(fit.center) > 3


def test_lengths_that_nothing_is_heard_of_stay_as_they_are_expected():
    """Voters of whole ballots: the prior's centre is right, and what is not known makes the size uncertain."""
    clip = voter_clip(WHOLE_BALLOT)
    observed = exact_means(PREFERENCE, WHOLE_BALLOT, clip)
    heard, unheard = (
        fit_clipped_means(NormalMeans(clip), observed, np.eye(3) * 1e-3, told, WHOLE_BALLOT)
        for told in ((1 / WHOLE_BALLOT, 1e-6), (0.0, 1e9))
    )
    assert np.trace(unheard.stretch) > 10 * np.trace(heard.stretch)
    assert np.trace(unheard.covariance) > np.trace(heard.covariance)
    assert abs(math.log(loudness(unheard.inverse_length) / clip**2)) < 0.8  # the prior's deviation
