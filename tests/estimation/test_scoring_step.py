"""A step of Fisher scoring: closed forms in one dimension, the textbook's update of a normal belief, exact steps."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from crowdveil.estimation.design import AxisSample
from crowdveil.estimation.prior import rest_deviation
from crowdveil.estimation.scoring_step import MODEL_DOUBT, STEP_DOUBT, Belief, Step, doubted, widened

SAMPLE = AxisSample(np.random.default_rng(1).normal(size=(4000, 3)))
ONE = AxisSample(np.array([[1.0], [-1.0]]))
"""One dilemma, seen from both sides: all is known in closed form."""
LEAST = 0.01
"""Added to the information, where there may be none."""


@pytest.mark.parametrize("start", [0.0, 0.8, -1.5])
def test_the_clip_and_the_slope_of_one_dilemma(start):
    information = norm.pdf(start) ** 2 / (norm.cdf(start) * norm.sf(start))
    by_record = Step.at(np.array([start]), ONE, None, 3.0)
    assert by_record.clips == pytest.approx([3 * np.sqrt(information + LEAST)])
    assert by_record.instrument_clips == pytest.approx(by_record.clips)
    # The instrument is one number for this dilemma, which far from zero is clipped.
    instrument = norm.pdf(start) / (norm.cdf(start) * norm.sf(start))
    seen = min(instrument, by_record.clips[0]) * norm.pdf(start)
    assert by_record.slope == pytest.approx((seen + LEAST) / by_record.clips[:, None])
    by_voter = Step.at(np.array([start]), ONE, 0.25, 3.0)
    assert by_voter.clips == pytest.approx(by_record.clips / 2)  # a mean of four scatters half as much
    assert (by_voter.instrument_clips > by_voter.clips).all()
    # Of a normal mean score, the clip at three deviations keeps P(|z| < 3) of a small change.
    kept = norm.cdf(3) - norm.cdf(-3)
    assert by_voter.slope == pytest.approx(kept * (information + LEAST) / by_voter.clips[:, None])


def mean_score(step, share):
    """The mean clipped score of records of a crowd that prefers x with this probability, a row a dilemma."""
    x, stated = SAMPLE.along, norm.cdf(SAMPLE.along @ step.start)
    instruments = x * (norm.pdf(SAMPLE.along @ step.start) / (stated * (1 - stated)))[:, None]
    instruments = np.clip(instruments, -step.instrument_clips, step.instrument_clips)
    return (instruments * (share - stated)[:, None]).mean(axis=0) / step.clips


def test_steps_without_noise_go_to_the_crowds_preference():
    """Newton's steps: the distance is squared again and again, until LEAST in the slope leaves a small part of it."""
    truth = np.array([0.6, -0.4, 0.2])
    share, at, distances = norm.cdf(SAMPLE.along @ truth), np.zeros(3), []
    for _ in range(8):
        step = Step.at(at, SAMPLE, None, 4.0)
        at = step.center(mean_score(step, share))
        distances.append(np.abs(at - truth).max())
    assert distances[0] < 0.2
    assert distances[1] < 0.03
    assert distances[-1] < 1e-8
    at_the_truth = Step.at(truth, SAMPLE, None, 4.0)
    assert mean_score(at_the_truth, share) == pytest.approx(0, abs=1e-12)


def test_the_gain_inverts_the_slope_and_doubt_is_a_part_of_the_way():
    step, score = Step.at(np.array([0.3, 0.0, -0.2]), SAMPLE, 0.1, 2.0), np.array([0.02, -0.05, 0.01])
    assert step.slope @ (step.center(score) - step.start) == pytest.approx(score)
    assert step.doubt(score) == pytest.approx(STEP_DOUBT * np.abs(step.center(score) - step.start))


def test_what_is_believed_is_what_a_normal_law_says():
    """The precision form of the update, where the code has the covariance's: precisions add up."""
    rng = np.random.default_rng(2)
    step = Step.at(np.array([0.3, 0.1, -0.2]), SAMPLE, None, 2.0)
    root = rng.normal(size=(3, 3))
    belief, variances, score = Belief(step.start, root @ root.T / 10), np.array([0.01, 0.02, 0.005]), rng.normal(size=3)
    prior = belief.covariance + MODEL_DOUBT**2 * np.outer(belief.mean, belief.mean)
    assert doubted(belief).covariance == pytest.approx(prior)
    precision = np.linalg.inv(prior) + step.slope.T @ np.diag(1 / variances) @ step.slope
    after = step.updated(belief, score, variances)
    assert after.covariance == pytest.approx(np.linalg.inv(precision), rel=1e-8, abs=1e-12)
    moved = np.linalg.solve(precision, step.slope.T @ (score / variances))
    assert after.mean == pytest.approx(step.start + moved, rel=1e-8)
    assert np.array_equal(after.covariance, after.covariance.T)


def test_noise_without_end_teaches_nothing_and_no_noise_everything():
    step = Step.at(np.array([0.3, 0.1, -0.2]), SAMPLE, None, 2.0)
    belief, score = Belief(step.start, np.eye(3) / 4), np.array([0.1, 0.0, -0.1])
    deaf = step.updated(belief, score, np.full(3, 1e12))
    assert deaf.mean == pytest.approx(step.start, abs=1e-9)
    sure = step.updated(belief, score, np.full(3, 1e-12))
    assert sure.mean == pytest.approx(step.center(score), abs=1e-6)


@pytest.mark.parametrize("times", [0.5, 0.8, 1.3])
def test_a_step_of_size_looks_along_the_preference_and_moves_along_it(times):
    """Of a crowd whose preference is so many times the start, two such steps find how many."""
    truth = np.array([0.6, -0.4, 0.2])
    at = times * truth
    share = norm.cdf(SAMPLE.along @ truth)
    for _ in range(6):
        step = Step.of_size(at, SAMPLE, None, 4.0)
        assert step.directions[:, 0] == pytest.approx(at / np.linalg.norm(at))
        assert step.slope.shape == (1, 3)
        x, stated = SAMPLE.along @ step.directions[:, 0], norm.cdf(SAMPLE.along @ at)
        instruments = x * norm.pdf(SAMPLE.along @ at) / (stated * (1 - stated))
        instruments = np.clip(instruments, -step.instrument_clips[0], step.instrument_clips[0])
        score = np.mean(instruments * (share - stated)) / step.clips
        # A belief that only the size is unknown of, so that nothing else moves.
        belief = Belief(at, np.outer(step.directions[:, 0], step.directions[:, 0]))
        at = step.updated(belief, score, np.array([1e-12])).mean
    assert at == pytest.approx(truth, abs=1e-4)


def test_where_there_is_no_preference_yet_a_step_of_size_looks_along_the_first_axis():
    step = Step.of_size(np.zeros(3), SAMPLE, 0.1, 2.0)
    assert step.directions[:, 0].tolist() == [1.0, 0.0, 0.0]
    assert np.isfinite(step.slope).all()


def test_directions_left_out_keep_their_prior():
    belief = Belief(np.array([0.5, -0.2]), np.array([[0.2, 0.05], [0.05, 0.1]]))
    wide = widened(belief, 3)
    assert wide.mean.tolist() == [0.5, -0.2, 0, 0, 0]
    expected = np.diag([0, 0, *[rest_deviation(3) ** 2] * 3])
    expected[:2, :2] = belief.covariance
    assert np.array_equal(wide.covariance, expected)


def test_the_score_of_one_dilemma_is_zero_where_the_probit_says_so():
    """Of a crowd of which 70 % prefer x, the preference is the probit of 0.7: by a root finder, and by steps."""
    exact = norm.ppf(0.7)
    root = brentq(lambda g: 0.7 * norm.pdf(g) / norm.cdf(g) - 0.3 * norm.pdf(g) / norm.sf(g), -3, 3)
    assert root == pytest.approx(exact, abs=1e-9)
    at = np.array([0.0])
    for _ in range(12):
        step = Step.at(at, ONE, None, 3.0)
        weight = norm.pdf(at[0]) / (norm.cdf(at[0]) * norm.sf(at[0]))
        at = step.center(np.array([weight * (0.7 - norm.cdf(at[0])) / step.clips[0]]))
    assert at[0] == pytest.approx(exact, abs=1e-9)
