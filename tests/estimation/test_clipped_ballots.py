"""Clipped ballots: against crowds that answer by chance, the slopes by differences, and crowds whose lengths differ."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr

from crowdveil.estimation import clipped_ballots, likely_crowds
from crowdveil.estimation.ballot_fit import _probable, fit_ballots, gain_of_whole
from crowdveil.estimation.clipped_ballots import ClippedBallots, told_length
from crowdveil.estimation.design import public_design
from crowdveil.estimation.disagreement import reach
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.drawing import draw_dilemmas

STUDY = load_study("moral-machine")
CLIP = 0.16
COMMON = np.array([0.4, 0.3, -0.1, 0.4, 0.0, 0.1, 0.2, 0.3, -0.2])


@pytest.fixture(scope="module")
def ballots():
    return ClippedBallots(STUDY, CLIP)


def told(records):
    above, below = told_length(np.array(records))
    return float(above / below)


@cache
def sessions(voters):
    """What voters are asked, in an order of their own."""
    rng = np.random.default_rng(1)
    left, right = draw_dilemmas(STUDY, voters, rng)
    x = ((left - right) / STUDY.units @ public_design(STUDY).rotated.basis).reshape(voters, 13, 9)
    return np.take_along_axis(x, rng.permuted(np.tile(np.arange(13), (voters, 1)), axis=1)[:, :, None], axis=1)


def clipped_means(records, tau, voters=40_000, common=COMMON):
    """Voters with preferences of their own, who answer so many dilemmas of a session."""
    rng = np.random.default_rng(records)
    x = sessions(voters)[:, :records]
    own = np.sqrt(1 + 9 * tau**2) * common + tau * rng.standard_normal((voters, 9))
    margins = np.einsum("vnk,vk->vn", x, own) + rng.standard_normal((voters, records))
    means = np.einsum("vnk,vn->vk", x, np.sign(margins)) / records
    return np.clip(means / CLIP, -1, 1)


def test_the_told_length_is_a_fraction_from_0_to_1():
    given = [Fraction(int(a), int(b)) for a, b in zip(*told_length(np.array([1, 2, 4, 9, 16, 17, 400])), strict=True)]
    assert given == [0, Fraction(22, 120), Fraction(66, 150), Fraction(176, 225), 1, 1, 1]


def test_what_shows_is_about_linear_in_the_told_length(ballots):
    """Of a small preference, along all axes together."""
    lengths = np.array([told(n) for n in range(1, 17)])
    shows = np.array([np.trace(ballots.shown(np.zeros(9), length, 0.3)[1]) for length in lengths])
    assert np.polyval(np.polyfit(lengths, shows, 1), lengths) == pytest.approx(shows, rel=0.08)


@pytest.mark.parametrize(("records", "tau"), [(1, 0.0), (1, 0.3), (2, 0.3), (4, 0.0), (4, 0.3), (13, 0.0), (13, 0.3)])
def test_crowds_show_what_is_expected_of_them(ballots, records, tau):
    expected, _ = ballots.shown(COMMON, told(records), tau)
    seen = clipped_means(records, tau)
    # The sample of ballots is good for a few per cent, and the draw of the crowd for its deviation.
    assert np.abs(seen.mean(axis=0) - expected).max() < 0.025 + 5 * seen.std() / np.sqrt(len(seen))


def test_a_correction_brings_the_model_nearer_to_voters_who_answer_five_dilemmas(ballots):
    """Mean scores of so few are not normal. Simulated voters who answer other dilemmas show what is missing."""
    at = (2 * COMMON, told(5), 0.6)
    seen = clipped_means(5, 0.6, common=2 * COMMON).mean(axis=0)
    corrected, _ = ballots.near(2 * COMMON, told(5), [0.6]).shown(*at)
    missed, left = np.linalg.norm(seen - ballots.shown(*at)[0]), np.linalg.norm(seen - corrected)
    assert left < 0.7 * missed


def test_an_axis_that_no_ballot_of_a_small_sample_differs_along_leaves_finite_means(monkeypatch):
    monkeypatch.setattr(clipped_ballots, "_LONG_BALLOTS", 1)
    ballots = ClippedBallots(STUDY, CLIP)
    assert np.linalg.matrix_rank(ballots._by(5, 1e-3 * np.eye(9), 0.3), tol=1e-4) < 9
    assert np.abs(ballots.shown_by(4 * np.eye(9), told(5), 0.3)).max() <= 1


def test_an_indifferent_crowd_needs_no_correction(ballots):
    assert ballots.near(np.zeros(9), told(13), [0.3]).missed[0.3] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("records", [1, 3, 4, 5, 13, 16])
def test_slopes_are_those_of_differences(ballots, records):
    _, slope = ballots.shown(COMMON, told(records), 0.0)
    step = 1e-5 * np.eye(9)
    ahead, behind = (
        np.array([ballots.shown(COMMON + sign * s, told(records), 0.0)[0] for s in step]).T for sign in (1, -1)
    )
    assert slope == pytest.approx((ahead - behind) / 2e-5, abs=1e-7)


@pytest.mark.parametrize("records", [1, 4, 13])
def test_the_pooled_probit_of_a_crowd_is_found(ballots, records, monkeypatch):
    """From exact means: the probit whose likelihood over the design is largest, within what is told as doubt.

    Means so exact leave no drawn crowd likely but one or two, however many are drawn: the fit does without them.
    """
    monkeypatch.setattr(likely_crowds, "_CROWDS", 120)
    seen, _ = ballots.near(COMMON, told(records), [0.3]).shown(COMMON, told(records), 0.3)
    fit = fit_ballots(ballots, seen, np.eye(9) * 1e-6, told(records), 1e-7)
    x = public_design(STUDY).rotated.along[:20_000]
    shares = ndtr(x @ COMMON * reach(x, 0.3))
    margins = x @ fit.unshrunk.center
    gap = shares - ndtr(margins)
    weights = np.exp(-0.5 * margins**2) / (ndtr(margins) * ndtr(-margins))
    assert np.abs(x.T @ (weights * gap)).max() / len(x) < 0.02  # the likelihood's slope; its curvature is about 1.6
    assert fit.mean == pytest.approx(fit.unshrunk.center, abs=0.01)


def test_lengths_that_were_hardly_told_are_doubted(ballots):
    seen, _ = ballots.shown(COMMON, told(4), 0.3)
    sure, unsure = (fit_ballots(ballots, seen, np.eye(9) * 1e-2, told(4), variance) for variance in (1e-5, 0.02))
    assert np.trace(unsure.unshrunk.stretch) > 10 * np.trace(sure.unshrunk.stretch)
    assert np.trace(unsure.covariance) > 1.1 * np.trace(sure.covariance)


@pytest.mark.usefixtures("few_crowds_here")
def test_a_poll_of_single_records_is_taken_for_one(ballots):
    """Lengths are told to three hundredths: if they were spread over those, a fifth of the preference would be lost."""
    seen, _ = ballots.shown(COMMON, 0.0, 0.3)
    whole = fit_ballots(ballots, seen, np.eye(9) * 1e-6, 0.0, 1e-9)
    unsure = fit_ballots(ballots, seen, np.eye(9) * 1e-4, 0.0, 0.03**2)
    assert np.linalg.norm(unsure.unshrunk.center) == pytest.approx(np.linalg.norm(whole.unshrunk.center), rel=0.07)


@pytest.mark.usefixtures("few_crowds_here")
@pytest.mark.parametrize("far", [-40.0, 0.0, 40.0])
def test_means_and_lengths_that_cannot_be_leave_finite_numbers(ballots, far):
    fit = fit_ballots(ballots, np.full(9, far), np.eye(9) * 900, 0.5 + far, 100.0)
    assert np.isfinite(fit.covariance).all()
    assert np.abs(fit.mean).max() < 2


@pytest.mark.usefixtures("few_crowds_here")
def test_of_means_of_zero_nothing_follows_whatever_the_length(ballots):
    assert fit_ballots(ballots, np.zeros(9), np.eye(9), 3.0, 1e-9).mean == pytest.approx(np.zeros(9), abs=1e-4)


def test_the_gain_of_whole_ballots_is_that_of_a_fit_to_an_indifferent_crowd(ballots):
    fit = fit_ballots(ballots, np.zeros(9), np.eye(9) * 0.1, ballots.whole_told, 1e-9)
    assert gain_of_whole(ballots) == pytest.approx(fit.unshrunk.gain, rel=1e-3, abs=1e-3)


def test_of_ballots_that_are_not_scored_whole_only_scored_records_have_a_length():
    """Four of thirteen: as if the generator drew sessions of four, to within the sample of ballots."""
    few, short = ClippedBallots(synthetic_study(2, 13), 0.2, 4), ClippedBallots(synthetic_study(2, 4), 0.2)
    assert few.whole_told == few.longest_told == few.told(13) == told(4)
    assert ClippedBallots(synthetic_study(2, 13), 0.2).longest_told == 1
    common = np.array([0.5, -0.2])
    assert few.shown(common, told(4), 0.3)[0] == pytest.approx(short.shown(common, told(4), 0.3)[0], abs=0.02)
    nodes, weights = _probable(few, told(3), 0.05)
    assert nodes.max() <= told(4)
    assert weights.sum() == pytest.approx(1)


@pytest.mark.usefixtures("few_crowds_here")
def test_studies_of_one_dilemma_and_of_many_have_ballots():
    for dilemmas in (1, 100):
        whole = ClippedBallots(synthetic_study(3, dilemmas), 0.1)
        fit = fit_ballots(whole, np.array([0.3, 0.0, 0.0]), np.eye(3) * 1e-4, whole.whole_told, 1e-9)
        assert fit.unshrunk.center[0] > 5 * np.abs(fit.unshrunk.center[1:]).max()
