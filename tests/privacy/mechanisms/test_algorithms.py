"""Algorithms 1, 2 and 3 on integers: right noise in the right place, audited, and a wrong factor is caught."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crowdveil.ballots.ballots import Ballots, resampled
from crowdveil.estimation.society import fit_voters
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.grid import STEPS, coefficient_steps, papers_delta, tight_delta, to_steps
from crowdveil.privacy.mechanisms.algorithm1 import Algorithm1
from crowdveil.privacy.mechanisms.algorithm2 import Algorithm2
from crowdveil.privacy.mechanisms.algorithm3 import (
    Algorithm3,
    Algorithm3Choices,
    clipped_records,
    linear_sensitivity,
    objective_coefficients,
    solve,
)
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.reports import Reports
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.sources.simulated import synthetic_crowd
from crowdveil.study.bundled import synthetic_study
from scripted_noise import RecordingNoise

MICRO = 1_000_000


def crowd(voters=6, records=8, features=3, seed=1):
    return synthetic_crowd(voters, records, features, np.random.default_rng(seed)).ballots


def opposite_voters(features=3):
    """Two data sets of one voter whose preferences are as far apart as the ball allows: +B e_1 and -B e_1."""
    study = synthetic_study(features)
    row = np.zeros((1, features))
    row[0, 0] = 1.0
    return [Ballots.from_differences(study, np.array([0, 1]), sign * row) for sign in (1.0, -1.0)]


def test_algorithm_1_adds_the_papers_noise_to_the_mean():
    ballots, noise = crowd(), RecordingNoise()
    settings = MechanismSettings(ballots.study, 2.0)
    estimate = Algorithm1().release(
        Algorithm1().measure(ballots, settings, Epsilon.of_millionths(MICRO)),
        settings,
        Epsilon.of_millionths(MICRO),
        noise,
    )
    mean = to_steps(fit_voters(ballots, 2.0).values, 2.0).mean(axis=0) * 2.0 / STEPS
    assert estimate.parameter == pytest.approx(mean, abs=1e-12)
    assert noise.asked == [("laplace", 2 * STEPS, [MICRO], 3)]
    assert estimate.noise.scales == pytest.approx([2 * 2.0 / (6 * 1.0)])  # 2B / (N epsilon)
    assert estimate.noise.counts == (1,)


def test_algorithm_2_adds_every_voters_own_noise():
    ballots, noise = crowd(), RecordingNoise()
    settings, epsilons = MechanismSettings(ballots.study, 2.0, equal_votes=True), Epsilons([1, 1, 2, 2, 2, 5])
    reports = Algorithm2().report(ballots, settings, epsilons, noise)
    estimate = Algorithm2().aggregate([reports], settings)
    assert noise.asked == [("laplace", 2 * STEPS, epsilons.micro.tolist(), 3)]
    assert estimate.parameter == pytest.approx(fit_voters(ballots, 2.0).values.mean(axis=0), abs=1e-8)
    assert estimate.noise.scales == pytest.approx([4 / 6, 4 / 12, 4 / 30])
    assert estimate.noise.counts == (2, 3, 1)


def test_reports_may_come_in_any_batches():
    ballots = crowd(voters=10)
    settings = MechanismSettings(ballots.study, 2.0)
    for mechanism in (Algorithm2(), Algorithm3()):
        whole = mechanism.report(ballots, settings, Epsilons.same(1, 10), RecordingNoise())
        parts = [Reports(whole.epsilons[s], whole.values[s]) for s in (slice(0, 3), slice(3, 10))]
        together, apart = mechanism.aggregate([whole], settings), mechanism.aggregate(parts, settings)
        assert apart.parameter == pytest.approx(together.parameter, rel=1e-12)


def test_algorithm_3_coefficients_are_those_of_the_expansion():
    ballots = crowd()
    bound = ballots.study.record_bound
    exact = objective_coefficients(ballots.differences, ballots.offsets, bound) / STEPS
    for i in range(ballots.voters):
        v = ballots[i : i + 1].differences / bound
        assert exact[i, :3] == pytest.approx(math.sqrt(2 / math.pi) * v.sum(axis=0), abs=3e-4)
        square = -(v.T @ v) / math.pi
        rows, columns = np.triu_indices(3)
        assert exact[i, 3:] == pytest.approx(square[rows, columns] * np.where(rows == columns, 1, 2), abs=3e-4)


@pytest.mark.parametrize(("sensitivity", "delta"), [("tight", tight_delta), ("paper", papers_delta)])
def test_algorithm_3_asks_for_noise_of_the_chosen_sensitivity(sensitivity, delta):
    ballots, noise = crowd(), RecordingNoise()
    Algorithm3().report(
        ballots, MechanismSettings(ballots.study, 2.0, sensitivity=sensitivity), Epsilons.same(1, 6), noise
    )
    assert noise.asked == [("laplace", coefficient_steps(3, delta(3)), [MICRO] * 6, 3 + 6)]


def test_algorithm_3_without_noise_finds_the_maximum_of_the_quadratic():
    ballots = crowd(records=40)
    settings = MechanismSettings(ballots.study, 2.0, repair=False)
    reports = Algorithm3().report(ballots, settings, Epsilons.same(1, 6), RecordingNoise())
    solved, exists = solve(reports, settings)
    assert exists.all()
    for i in range(6):
        v = ballots[i : i + 1].differences
        # gradient of sum sqrt(2/pi) b.v - (b.v)^2 / pi is 0 at the maximum
        closed = np.linalg.solve(2 / math.pi * v.T @ v, math.sqrt(2 / math.pi) * v.sum(axis=0))
        assert solved[i] == pytest.approx(closed, rel=2e-3, abs=2e-3)


def test_algorithm_3_as_printed_has_no_maximum_under_its_own_noise():
    ballots = crowd(voters=300, records=50, features=10)
    settings = MechanismSettings(ballots.study, 2.0, repair=False)
    reports = Algorithm3().report(ballots, settings, Epsilons.same(1, 300), FloatNoiseForExperiments(3))
    estimate = Algorithm3().aggregate([reports], settings)
    assert estimate.facts["voters_without_a_maximum"] >= 0.9 * 300


def test_the_repair_keeps_everyone_in_the_ball():
    ballots = crowd(voters=50, features=5)
    settings = MechanismSettings(ballots.study, 2.0)
    reports = Algorithm3().report(ballots, settings, Epsilons.same(1, 50), FloatNoiseForExperiments(3))
    solved, _ = solve(reports, settings)
    assert (np.abs(solved).sum(axis=1) <= 2.0 * (1 + 1e-9)).all()


def test_clipped_records_are_counted():
    study = synthetic_study(2)
    long, short = [study.record_bound, 1.0], [1.0, 0.0]
    ballots = Ballots.from_differences(study, np.array([0, 2, 3]), np.array([long, short, long]))
    assert clipped_records(ballots, study) == 2


def audited_epsilon(first, second, confidence=1 - 1e-7):
    """A lower bound on epsilon from two samples of one number: threshold on one half, Clopper-Pearson on the other."""

    def bounds(sample, threshold):
        hits, n = int((sample > threshold).sum()), len(sample)
        low = stats.beta.ppf((1 - confidence) / 2, hits, n - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - (1 - confidence) / 2, hits + 1, n - hits) if hits < n else 1.0
        return low, high

    half = len(first) // 2
    thresholds = np.quantile(np.concatenate([first[:half], second[:half]]), np.linspace(0.05, 0.95, 37))
    threshold = max(thresholds, key=lambda t: bounds(first[:half], t)[0] / bounds(second[:half], t)[1])
    return math.log(bounds(first[half:], threshold)[0] / bounds(second[half:], threshold)[1])


def algorithm_1_output(ballots, others, epsilon, draws):
    """The first coordinate of many releases of ``ballots`` together with ``others`` (in steps, not divided by N)."""
    settings = MechanismSettings(ballots.study, 2.0)
    total = sum(Algorithm1().measure(b, settings, Epsilon.of_millionths(MICRO)).total[0] for b in (ballots, others))
    return total + BulkNoise().laplace(2 * STEPS, Epsilons.of_millionths(np.full(draws, int(epsilon * MICRO))), 1)[:, 0]


def test_audit_of_algorithm_1_and_a_missing_factor_2():
    worst, others = opposite_voters(), crowd(voters=4)
    right = [algorithm_1_output(b, others, 1.0, 200_000) for b in worst]
    wrong = [algorithm_1_output(b, others, 2.0, 200_000) for b in worst]  # noise of Delta = B instead of 2B
    assert 0.7 < audited_epsilon(*right) <= 1.0
    assert audited_epsilon(*wrong) > 1.5


def test_audit_of_algorithm_2_and_a_scale_too_small_by_root_2():
    settings = MechanismSettings(synthetic_study(3), 2.0)

    def reports(ballots, epsilon):
        many = resampled(ballots, np.zeros(100_000, np.int64))
        return (
            Algorithm2()
            .report(
                many,
                settings,
                Epsilons.of_millionths(np.full(100_000, int(epsilon * MICRO))),
                BulkNoise(),
            )
            .values[:, 0]
        )

    worst = opposite_voters()
    assert 0.7 < audited_epsilon(*(reports(b, 1.0) for b in worst)) <= 1.0
    assert audited_epsilon(*(reports(b, math.sqrt(2)) for b in worst)) > 1.2


@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (0.5, False)])
def test_the_noise_of_algorithm_3_has_the_scale_of_the_theorem(factor, passes):
    """One coefficient tells little of the whole l1 sensitivity, so its noise is tested by its distribution."""
    ballots = resampled(crowd(voters=1, features=4), np.zeros(20_000, np.int64))
    settings = MechanismSettings(ballots.study, 2.0)
    micro = int(MICRO / factor)
    reports = Algorithm3().report(ballots, settings, Epsilons.of_millionths(np.full(20_000, micro)), BulkNoise())
    exact = objective_coefficients(
        ballots[:1].differences, np.array([0, ballots.counts[0]]), settings.study.record_bound
    )
    claimed = stats.laplace(scale=coefficient_steps(4, tight_delta(4)))  # at epsilon = 1
    fits = stats.kstest((reports.values - exact).ravel()[:100_000], claimed.cdf).pvalue > 1e-7
    assert bool(fits) is passes


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_turning_a_choice_over_leaves_the_quadratic_and_moves_the_slope_within_its_sensitivity(features, seed):
    rng = np.random.default_rng(seed)
    records = rng.normal(size=(4, features)) * rng.choice([0.1, 1.0, 9.0])
    turned = records.copy()
    turned[2] *= -1
    a, b = (objective_coefficients(r, np.array([0, 4]), 2.0)[0] for r in (records, turned))
    assert (a[features:] == b[features:]).all()
    assert np.abs(a[:features] - b[:features]).sum() <= linear_sensitivity(features)


def test_the_slopes_sensitivity_is_nearly_reached():
    v = np.full((1, 4), 0.5)
    a, b = (objective_coefficients(r, np.array([0, 1]), 1.0)[0] for r in (v, -v))
    assert np.abs(a - b).sum() > 0.9999 * linear_sensitivity(4)


def test_choice_level_algorithm_3_noises_the_slope_only():
    ballots, noise = crowd(), RecordingNoise()
    settings = MechanismSettings(ballots.study, 2.0)
    reports = Algorithm3Choices().report(ballots, settings, Epsilons.same(1, 6), noise)
    assert noise.asked == [("laplace", linear_sensitivity(3), [MICRO] * 6, 3)]
    exact = objective_coefficients(ballots.differences, ballots.offsets, ballots.study.record_bound)
    assert (reports.values == exact).all()


def test_choice_level_algorithm_3_finds_the_crowds_direction():
    many = synthetic_crowd(400, 50, 5, np.random.default_rng(8))
    settings = MechanismSettings(many.ballots.study, 2.0)
    reports = Algorithm3Choices().report(many.ballots, settings, Epsilons.same(1, 400), FloatNoiseForExperiments(1))
    found = Algorithm3Choices().aggregate([reports], settings).parameter
    assert found @ many.social > 0.9 * np.linalg.norm(found) * np.linalg.norm(many.social)
