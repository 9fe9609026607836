"""A step of Fisher scoring: closed forms in one dimension, clips that no choice moves, steps to the preference."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from crowdveil.estimation.design import AxisSample
from crowdveil.estimation.moments import Belief, ScoreFit, fit_scores
from crowdveil.estimation.prior import prior_deviation, rest_deviation
from crowdveil.estimation.scoring_step import (
    CLIP_SIZE,
    CLIP_TURN,
    LEAST_DEVIATIONS,
    LEAST_SIZE,
    LEAST_TURN,
    MOST_DEVIATIONS,
    STEP_DOUBT,
    ScoringStep,
    clip_doubts,
    clip_in_deviations,
    doubted,
    widened,
)

SAMPLE = AxisSample(np.random.default_rng(1).normal(size=(4000, 3)))
ONE = AxisSample(np.array([[1.0], [-1.0]]))
"""One dilemma, seen from both sides: all is known in closed form."""
LEAST = 0.01
"""Added to the information, where there may be none."""
INFLATION = 0.06
"""What a clip at one deviation is corrected by."""


def score_of(step, chosen):
    """The clipped score of a record along the mixed axes, by the formulas of the probit, in units of the clips."""
    margins, mixed = chosen @ step.start, chosen @ step.sample.mixing
    ours, theirs = norm.pdf(margins) / norm.cdf(margins), norm.pdf(margins) / norm.sf(margins)
    larger = np.maximum(ours, theirs)[:, None]
    return np.clip(mixed * larger, -step.instrument_clips, step.instrument_clips) * ours[:, None] / larger / step.clips


def mean_score(step, share, x=SAMPLE.along):
    """The mean clipped score of records of a crowd that prefers x with this probability, a row a dilemma."""
    return (share[:, None] * score_of(step, x) + (1 - share)[:, None] * score_of(step, -x)).mean(axis=0)


@pytest.mark.parametrize("start", [0.0, 0.8, -1.5])
def test_the_clips_of_one_dilemma(start):
    information = norm.pdf(start) ** 2 / (norm.cdf(start) * norm.sf(start))
    by_record = ScoringStep.at(np.array([start]), ONE, None, 3.0)
    assert by_record.clips == pytest.approx([3 * np.sqrt(information + LEAST)])
    assert by_record.instrument_clips == pytest.approx(by_record.clips)
    by_voter = ScoringStep.at(np.array([start]), ONE, 0.25, 3.0)
    assert by_voter.clips == pytest.approx(by_record.clips / 2)  # a mean of four scatters half as much
    assert by_voter.instrument_clips == pytest.approx(by_record.clips * np.sqrt(2))
    # Ballots of one record: the voter's clip binds nobody whom the dilemma's does not.
    assert ScoringStep.at(np.array([start]), ONE, 1.02, 3.0).clips == pytest.approx(by_record.clips)


@pytest.mark.parametrize("scatter", [None, 0.1, 1.0])
@pytest.mark.parametrize("deviations", [0.5, 1.7, 4.0])
def test_what_is_expected_of_a_crowd_is_what_its_records_show(scatter, deviations):
    step = ScoringStep.at(np.array([0.3, 0.0, -0.9]), SAMPLE, scatter, deviations)
    kept = 1.0 if scatter in (None, 1.0) else norm.cdf(deviations) - norm.cdf(-deviations)
    truth = np.array([0.5, -0.4, -0.6])
    inflated = norm.cdf(SAMPLE.along @ truth * (1 + INFLATION / deviations))
    mean, derivative = step.expected(truth)
    assert mean == pytest.approx(kept * mean_score(step, inflated), abs=1e-12)
    for axis in np.eye(3):
        ahead, behind = (step.expected(truth + move)[0] for move in (1e-5 * axis, -1e-5 * axis))
        ridge = LEAST / step.clips * (SAMPLE.mixing.T @ axis)
        assert derivative @ axis == pytest.approx((ahead - behind) / 2e-5 + ridge, abs=1e-6)


def test_the_variance_of_a_record_is_that_of_its_scores():
    step = ScoringStep.at(np.array([0.3, 0.1, -0.9]), SAMPLE, None, 1.5)
    stated = norm.cdf(SAMPLE.along @ step.start)[:, None]
    squares = stated * score_of(step, SAMPLE.along) ** 2 + (1 - stated) * score_of(step, -SAMPLE.along) ** 2
    assert step.variances == pytest.approx(squares.mean(axis=0))
    assert np.abs(score_of(step, 2 * SAMPLE.along)).max() <= 1 + 1e-9


def test_clipped_scores_are_zero_where_the_model_holds_whatever_the_clip():
    truth = np.array([0.6, -0.4, 0.2])
    for deviations in (0.3, 1.0, 8.0):
        step = ScoringStep.at(truth, SAMPLE, None, deviations)
        assert mean_score(step, norm.cdf(SAMPLE.along @ truth)) == pytest.approx(0, abs=1e-12)


def test_a_step_without_noise_goes_to_the_crowds_preference_however_far():
    truth = np.array([1.6, -0.4, 0.2])
    share = norm.cdf(SAMPLE.along @ truth * (1 + INFLATION / MOST_DEVIATIONS))
    for start in (np.zeros(3), 2 * truth, np.array([0.0, 1.0, -1.0])):
        step = ScoringStep.at(start, SAMPLE, None, MOST_DEVIATIONS)
        fit = fit_scores(step.expected, mean_score(step, share), 1e-10 * np.eye(3), Belief(start, np.eye(3)))
        assert fit.center == pytest.approx(truth, abs=1e-3)


def test_doubt_is_a_part_of_the_preference_and_of_the_way_that_is_not_noise():
    start, center, mean = np.array([0.3, 0.0, -0.2]), np.array([0.8, -0.1, -0.2]), np.array([0.4, -0.1, -0.1])
    step = ScoringStep.at(start, SAMPLE, 0.1, 2.0)
    fit = ScoreFit(mean, np.eye(3), center, np.diag([3.0, 1.0, 1.0]))
    # Along the first axis, noise of deviation 0.3 explains a part of the way of 0.5: sqrt(0.5^2 - 0.3^2) is left.
    moved = step.moved(fit, np.full(3, 0.01))
    assert moved == pytest.approx([0.4, 0.1, 0.1])
    turn, size = clip_doubts(2.0)
    long, way = np.sqrt(0.8**2 + 0.1**2 + 0.2**2), np.sqrt(0.4**2 + 2 * 0.1**2)
    assert step.doubt(fit, moved) == pytest.approx((turn * long + STEP_DOUBT * way, size))
    assert clip_doubts(LEAST_DEVIATIONS) == clip_doubts(0.1) == (LEAST_TURN + CLIP_TURN, LEAST_SIZE + CLIP_SIZE)
    assert clip_doubts(2 * LEAST_DEVIATIONS) == (LEAST_TURN + CLIP_TURN / 2, LEAST_SIZE + CLIP_SIZE / 2)


def test_the_clip_balances_its_bias_and_the_noise():
    """The minimum over d of (d v noise)^2 + (CLIP_SIZE LEAST / d prior)^2, found on a grid."""
    for noise, scatter in ((0.004, None), (0.004, 0.1), (0.02, 0.25)):
        unit = 1.0 if scatter is None else np.sqrt(scatter)
        grid = np.linspace(0.2, 40, 40_000)
        off = (grid * unit * noise) ** 2 + (CLIP_SIZE * LEAST_DEVIATIONS * prior_deviation(9) / grid) ** 2
        best = np.clip(grid[off.argmin()], LEAST_DEVIATIONS, MOST_DEVIATIONS)
        assert clip_in_deviations(noise, scatter, prior_deviation(9)) == pytest.approx(best, abs=2e-3)


def test_a_belief_that_is_doubted_is_wider_along_itself_and_along_the_axes():
    belief, along = Belief(np.array([0.5, -0.2]), np.eye(2) / 100), np.array([0.1, 0.3])
    wide = doubted(belief, 0.2, 0.4, along)
    size = np.outer([0.1, -0.04], [0.1, -0.04])
    assert wide.covariance == pytest.approx(np.eye(2) / 100 + size + np.diag(along**2 + 0.4**2 / 2))


def test_directions_left_out_keep_their_prior():
    belief = Belief(np.array([0.5, -0.2]), np.array([[0.2, 0.05], [0.05, 0.1]]))
    wide = widened(belief, 3)
    assert wide.mean.tolist() == [0.5, -0.2, 0, 0, 0]
    expected = np.diag([0, 0, *[rest_deviation(3) ** 2] * 3])
    expected[:2, :2] = belief.covariance
    assert np.array_equal(wide.covariance, expected)


def test_the_score_of_one_dilemma_is_zero_where_the_probit_says_so():
    """Of a crowd of which 70 % prefer x, the preference is the probit of 0.7: by a root finder, and by a step."""
    exact = norm.ppf(0.7)
    root = brentq(lambda g: 0.7 * norm.pdf(g) / norm.cdf(g) - 0.3 * norm.pdf(g) / norm.sf(g), -3, 3)
    assert root == pytest.approx(exact, abs=1e-9)
    step = ScoringStep.at(np.array([0.1]), ONE, None, MOST_DEVIATIONS)
    seen = mean_score(step, np.array([0.7, 0.3]), ONE.along)
    fit = fit_scores(step.expected, seen, np.eye(1) * 1e-12, Belief(step.start, np.eye(1)))
    assert fit.center[0] * (1 + INFLATION / MOST_DEVIATIONS) == pytest.approx(exact, abs=1e-3)
