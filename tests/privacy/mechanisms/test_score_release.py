"""Score mechanisms: what one record or one voter can move, what noise is asked for, and what the noise then hides."""

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crowdveil.ballots.ballots import Ballots, resampled
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import GRID
from crowdveil.estimation.record_axes import record_axes
from crowdveil.estimation.tilted_design import moment_count
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms import score_release as score_module
from crowdveil.privacy.mechanisms.integer_scores import (
    DISAGREEMENT,
    RECORD_CLIP,
    RECORD_SENSITIVITY,
    cube_variance,
    record_moments,
    record_scores,
    truncated,
    truncated_variance,
)
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.score_release import ScoreRelease, coordinates_to_report
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.sources.simulated import simulated_batches, synthetic_crowd
from crowdveil.study.bundled import load_study, synthetic_study
from scripted_noise import RecordingNoise

MICRO = 1_000_000
SYNTHETIC, MACHINE, KIDNEY = synthetic_study(3, 8), load_study("moral-machine"), load_study("kidney")


def crowd(voters=6, records=8, seed=1):
    return synthetic_crowd(voters, records, 3, np.random.default_rng(seed)).ballots


def one_voter(study, records):
    return Ballots.from_differences(study, np.array([0, len(records)]), np.array(records))


def all_moments(ballots, voters):
    """All moments of some voters."""
    chosen = np.tile(np.arange(moment_count(record_axes(ballots.study).design.directions)), (len(voters), 1))
    return record_moments(ballots, ballots.study, voters, chosen)


def scores_of_each(study, records):
    """The scores of each record by itself."""
    return np.array([record_scores(one_voter(study, [record]), study)[0] for record in records])


finite = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3)
small = st.lists(st.integers(-127, 127), min_size=MACHINE.dimension, max_size=MACHINE.dimension)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # sums of numbers near 1e308
@given(st.lists(finite, min_size=1, max_size=5), finite, st.data())
def test_no_record_whatever_moves_a_coordinate_further_than_the_sensitivity(records, other, data):
    place = data.draw(st.integers(0, len(records) - 1))
    changed = [*records[:place], other, *records[place + 1 :]]
    scores = [record_scores(one_voter(SYNTHETIC, r), SYNTHETIC) for r in (records, changed)]
    assert np.abs(scores[0] - scores[1]).max() <= RECORD_SENSITIVITY


@given(small, small)
def test_nor_does_a_record_of_small_integers(first, second):
    scores = scores_of_each(MACHINE, np.array([first, second], np.int8))
    assert np.abs(scores[0] - scores[1]).max() <= RECORD_SENSITIVITY


@pytest.mark.parametrize("study", [SYNTHETIC, MACHINE, KIDNEY], ids=lambda s: s.name)
def test_the_sensitivity_is_reached_on_every_axis(study):
    """Among the corners of what the study allows: the record that goes furthest along an axis, and its opposite."""
    axes = record_axes(study).axes
    for axis in range(axes.shape[1]):
        far = np.sign(axes[:, axis]) * study.reach
        scores = scores_of_each(study, [far, -far])
        assert scores[0, axis] - scores[1, axis] == RECORD_SENSITIVITY


def test_everyone_asks_for_noise_of_her_own_epsilon_on_the_coordinates_she_reports():
    ballots, noise = crowd(), RecordingNoise()
    epsilons = Epsilons.of_millionths(np.array([100_000, 100_000, 20_000_000, 20_000_000, 500_000, 500_000]))
    sizes = coordinates_to_report(record_axes(ballots.study), ballots.counts, epsilons)
    assert len(set(sizes.tolist())) > 1
    reports = ScoreRelease().report(ballots, MechanismSettings(ballots.study, 2.0, drawn=True), epsilons, noise)
    assert sorted(noise.asked) == sorted(
        ("cube", RECORD_SENSITIVITY, epsilons.micro[sizes == size].tolist(), int(size)) for size in set(sizes.tolist())
    )
    assert reports.reported.sum(axis=1).tolist() == sizes.tolist()
    exact = record_scores(ballots, ballots.study)
    assert np.array_equal(reports.values, np.where(reports.reported, exact, 0))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_reporting_some_coordinates_is_unbiased(size, monkeypatch):
    """Over all orders, each as likely as any other, a voter's scaled reports average to her exact mean score."""
    orders = list(permutations(range(3)))

    class EveryOrder(RecordingNoise):
        def uniform(self, below, rows, columns):
            return np.array(orders)

    monkeypatch.setattr(
        score_module, "coordinates_to_report", lambda design, counts, epsilons, most=None: np.full(6, size)
    )
    seen = {}
    original = score_module.fit_mean_scores
    monkeypatch.setattr(
        score_module, "fit_mean_scores", lambda *given, **k: seen.update(scores=given[1]) or original(*given, **k)
    )
    voter = resampled(crowd(voters=1), np.zeros(6, np.int64))
    public = MechanismSettings(voter.study, 2.0, drawn=True)
    reports = ScoreRelease().report(voter, public, Epsilons.same(1, 6), EveryOrder())
    ScoreRelease().aggregate([reports], public)
    exact = record_scores(voter, voter.study)[0] / (8 * RECORD_CLIP)
    assert seen["scores"] == pytest.approx(exact, rel=1e-12)


@given(st.integers(1, 2000), st.integers(1000, 50_000_000), st.sampled_from([SYNTHETIC, MACHINE, KIDNEY]))
def test_the_number_of_coordinates_is_the_best_of_all(records, micro, study):
    """The variance of a scaled coordinate, k/m times noise and what is not heard, from the laws of both."""
    axes = record_axes(study)
    k, heard = axes.axes.shape[1], records * axes.size + (records * DISAGREEMENT) ** 2
    scale = 2e6 / micro
    variances = {m: k / m * (scale**2 * (m + 1) * (m + 2) / 3 + heard) for m in range(1, k + 1)}
    variances[1] = k * (scale**2 * (2 - math.exp(-records / scale)) + heard)
    chosen = int(coordinates_to_report(axes, np.array([records]), Epsilons.of_millionths([micro]))[0])
    assert variances[chosen] == pytest.approx(min(variances.values()), rel=1e-12)


@pytest.mark.parametrize("columns", [1, 3, 12])
def test_the_variance_of_cube_noise(columns):
    """A radius of Gamma(d + 1), a uniform point of the cube: moments of both laws from scipy."""
    square = stats.gamma(columns + 1, scale=5 / 2.0).moment(2) * stats.uniform(-1, 2).var()
    assert cube_variance(5.0, 2.0, columns) == pytest.approx(square, rel=1e-12)
    drawn = FloatNoiseForExperiments(1).cube(5_000, Epsilons.same(2, 200_000), columns) / 1_000
    assert drawn.var() == pytest.approx(square, rel=0.03)


def truncated_law(ratio, largest, exact):
    """The mean and the variance of a truncated value, added up over the law of discrete Laplace noise."""
    noise = np.arange(-20_000, 20_001)
    law = ratio ** np.abs(noise)
    noisy = truncated(exact + noise, np.array(largest), np.array(1 / math.log(1 / ratio))).astype(np.float64)
    # The value beyond is rounded to an integer; the theorem is about the one that is not.
    noisy += np.sign(noisy) * np.where(np.abs(noisy) > largest, 1 / (1 - ratio) - round(1 / (1 - ratio)), 0.0)
    mean = (law @ noisy) / law.sum()
    return mean, (law @ noisy**2) / law.sum() - mean**2


@pytest.mark.parametrize("ratio", [0.3, 0.8, 0.97])
@pytest.mark.parametrize("largest", [0, 1, 7, 40])
def test_truncated_values_are_unbiased_within_their_range(ratio, largest):
    for exact in {0, largest // 2, largest, -largest}:
        mean, variance = truncated_law(ratio, largest, exact)
        assert mean == pytest.approx(exact, abs=1e-9)
        saved = ratio ** (largest + 2) * (ratio**exact + ratio**-exact) / (1 + ratio)
        assert variance == pytest.approx((2 * ratio - saved) / (1 - ratio) ** 2, rel=1e-9)


@pytest.mark.parametrize(("largest", "exact"), [(500, 0), (500, 500), (2000, 1500)])
def test_the_variance_of_truncated_values_in_fine_steps(largest, exact):
    """b^2 (2 - e^(-L/b) cosh(s/b)), added up over the law of the noise, and the bound on it."""
    scale = 1000.0
    _, variance = truncated_law(math.exp(-1 / scale), largest, exact)
    assert variance == pytest.approx(scale**2 * (2 - math.exp(-largest / scale) * math.cosh(exact / scale)), rel=1e-3)
    assert variance <= truncated_variance(np.array([float(largest)]), np.array([scale]))[0] * 1.001


@pytest.mark.usefixtures("few_crowds_here")
def test_reports_are_about_dilemmas_only_if_they_tell_more_than_the_prior():
    """One record each says nothing of dilemmas at epsilon 1 in a small file; in a huge one, or at 10, it does."""
    single = resampled(one_voter(MACHINE, [np.eye(MACHINE.dimension, dtype=np.int8)[0]]), np.zeros(400, np.int64))
    k = record_axes(MACHINE).design.directions

    def about_dilemmas(voters, epsilon):
        public = MechanismSettings(MACHINE, 2.0, voters=voters)
        reports = ScoreRelease().report(single, public, Epsilons.same(epsilon, 400), FloatNoiseForExperiments(7))
        assert ScoreRelease().acceptable(reports, public).all()
        facts = ScoreRelease().aggregate([reports], public).facts
        assert facts["reports_about_dilemmas"] == reports.reported[:, k:].any(axis=1).sum()
        squares, products = reports.reported[:, k : 2 * k], reports.reported[:, 2 * k :]
        return squares.any(axis=1).mean(), products.any(axis=1).mean()

    assert about_dilemmas(1_500, 1) == (0, 0)
    squares, products = about_dilemmas(200_000, 1)
    assert 0.05 < squares < 0.16
    assert products == 0
    assert about_dilemmas(1_500, 30)[0] > 0.05
    squares, products = about_dilemmas(None, 1)
    assert 0.05 < squares < 0.16
    assert 0.02 < products < 0.1


def audited_epsilon(first, second, scale, confidence=1 - 1e-7):
    """A lower bound on epsilon: the event that the likelihood ratio is at its largest, with Clopper-Pearson bounds.

    ``first`` and ``second`` are reports (rows) under neighbours with exact values + scale and - scale.
    """

    def hits(reports):
        ratio = np.abs(reports + scale).max(axis=1) - np.abs(reports - scale).max(axis=1)
        return int((ratio >= 1.9 * scale).sum())

    tail, n = (1 - confidence) / 2, len(first)
    low = stats.beta.ppf(tail, hits(first), n - hits(first) + 1)
    high = stats.beta.ppf(1 - tail, hits(second) + 1, n - hits(second))
    return math.log(low / high)


@pytest.mark.parametrize(
    ("factor", "least", "most"), [(1.0, 0.85, 1.0), (2.0, 1.7, 2.0), (math.sqrt(2), 1.2, math.sqrt(2))]
)
def test_audit_of_the_score_release_and_of_too_little_noise(factor, least, most):
    """The worst neighbours: one record, as far as it goes along every axis at once, and its opposite."""
    study, copies = SYNTHETIC, 60_000
    far = 100 * np.linalg.solve(record_axes(study).axes.T / GRID, np.ones(3))
    epsilons = Epsilons.of_millionths(
        np.full(copies, round(factor * MICRO))
    )  # noise as for factor times the promised epsilon of 1

    def reports(record):
        many = resampled(one_voter(study, [record]), np.zeros(copies, np.int64))
        made = ScoreRelease().report(many, MechanismSettings(study, 2.0, drawn=True), epsilons, BulkNoise())
        return np.take_along_axis(made.values, np.argsort(~made.reported, axis=1, kind="stable"), axis=1)[
            :, : int(made.reported.sum(axis=1)[0])
        ]

    found = audited_epsilon(reports(far), reports(-far), RECORD_CLIP)
    assert least < found <= most


def test_scores_do_not_depend_on_how_the_crowd_is_cut():
    whole = next(simulated_batches(MACHINE, 20, np.random.default_rng(3)))
    parts = [record_scores(whole[s], whole.study) for s in (slice(0, 7), slice(7, 20))]
    assert np.array_equal(np.concatenate(parts), record_scores(whole, whole.study))


@pytest.mark.parametrize("study", [MACHINE, synthetic_study(3, 100)], ids=lambda s: s.name)
def test_scores_of_some_voters_on_some_axes_are_sums_of_clipped_products(study):
    """Added up in Python's integers, record by record."""
    ballots = next(simulated_batches(study, 4, np.random.default_rng(9)))
    axes, voters, chosen = record_axes(study), np.array([3, 0]), np.array([[2, 0], [1, 2]])
    scores = record_scores(ballots, study, voters, chosen)
    for row, i in enumerate(voters):
        records = ballots.differences[ballots.offsets[i] : ballots.offsets[i + 1]]
        values = [[math.floor(v * unit + 0.5) for v, unit in zip(r, axes.design.units, strict=True)] for r in records]
        for place, axis in enumerate(chosen[row]):
            along = [sum(v * int(w) for v, w in zip(record, axes.axes[:, axis], strict=True)) for record in values]
            assert scores[row, place] == sum(max(-RECORD_CLIP, min(score, RECORD_CLIP)) for score in along)


def test_a_record_without_a_choice_is_refused():
    ballots = crowd()
    undecided = replace(ballots, choices=np.where(np.arange(ballots.records) == 5, np.int8(0), ballots.choices))
    with pytest.raises(CrowdveilError, match="neither side was chosen"):
        record_scores(undecided, ballots.study)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # products of numbers near 1e308
@given(st.lists(finite, min_size=1, max_size=5), finite, st.data())
def test_no_record_whatever_moves_a_moment_further_than_the_sensitivity(records, other, data):
    place = data.draw(st.integers(0, len(records) - 1))
    changed = [*records[:place], other, *records[place + 1 :]]
    moments = [all_moments(one_voter(SYNTHETIC, r), np.array([0])) for r in (records, changed)]
    assert np.abs(moments[0] - moments[1]).max() <= RECORD_SENSITIVITY


def test_moments_tell_of_dilemmas_and_nothing_of_choices():
    ballots = next(simulated_batches(MACHINE, 5, np.random.default_rng(4)))
    rng = np.random.default_rng(5)
    turned = ballots.differences * rng.choice(np.array([-1, 1], np.int8), (ballots.records, 1))
    other = Ballots.from_differences(MACHINE, ballots.offsets, turned)
    voters = np.array([0, 3])
    moments = all_moments(ballots, voters)
    assert np.array_equal(moments, all_moments(other, voters))
    along = ballots.differences[ballots.offsets[3] : ballots.offsets[4]] @ record_axes(MACHINE).design.basis
    square = (2 * np.minimum(along[:, 2] ** 2 / 4, 1) - 1).sum() * RECORD_CLIP
    assert moments[1, 2] == pytest.approx(square, abs=13)


def of_a_file(voters=4000, epsilon=1):
    ballots = crowd(voters)
    settings = MechanismSettings(ballots.study, 2.0)
    reports = ScoreRelease().report(ballots, settings, Epsilons.same(epsilon, voters), BulkNoise())
    return ballots, settings, reports


def test_of_a_file_three_reports_in_twenty_are_about_its_dilemmas():
    ballots, settings, reports = of_a_file()
    assert reports.values.shape[1] == 3 + moment_count(3)
    blocks = [reports.reported[:, columns].any(axis=1) for columns in (slice(0, 3), slice(3, 6), slice(6, 9))]
    assert (np.sum(blocks, axis=0) == 1).all()
    for block, share in zip(blocks, (0.85, 0.1, 0.05), strict=True):
        assert stats.binomtest(int(block.sum()), ballots.voters, share).pvalue > 1e-8
    assert ScoreRelease().acceptable(reports, settings).all()


@pytest.mark.parametrize(("axes", "told"), [(12, 12 + 66), (13, 13)])
def test_of_very_many_axes_only_the_squares_are_told(axes, told):
    ballots = synthetic_crowd(400, 2, axes, np.random.default_rng(2)).ballots
    settings = MechanismSettings(ballots.study, 2.0)
    epsilons = Epsilons.of_millionths(np.full(400, MICRO))
    reports = ScoreRelease().report(ballots, settings, epsilons, FloatNoiseForExperiments(3))
    assert reports.reported.shape == (400, axes + told)
    assert ScoreRelease().acceptable(reports, settings).all()
    of_dilemmas = reports.reported[:, axes:].any(axis=1)
    assert of_dilemmas.mean() == pytest.approx(0.15, abs=0.06)  # more than three deviations
    assert np.isfinite(ScoreRelease().aggregate([reports], settings).parameter).all()


def test_reports_that_mix_what_they_are_about_are_refused():
    _, settings, reports = of_a_file(50)
    mixed = reports.reported.copy()
    mixed[:, [0, 4]] = True
    assert not ScoreRelease().acceptable(replace(reports, reported=mixed), settings).any()


def test_wherever_a_file_differs_from_the_generator_its_preference_is_found():
    """Of the Moral Machine's dilemmas, most of those in which a factor differs were left out."""
    whole = next(simulated_batches(MACHINE, 8000, np.random.default_rng(6)))
    design = record_axes(MACHINE).design
    status = np.abs(whole.differences @ design.basis)[:, 5] > 0.4
    kept = ~status | (np.random.default_rng(7).random(whole.records) < 0.15)
    counts = np.add.reduceat(kept, whole.offsets[:-1])
    file = Ballots.from_differences(MACHINE, np.concatenate([[0], np.cumsum(counts)]), whole.differences[kept])
    truth = crowd_preference(file, weighting="choices", directions=design.basis).coordinates
    errors = {}
    for drawn in (False, True):
        settings = MechanismSettings(MACHINE, MACHINE.norm_bound, drawn=drawn)
        reports = ScoreRelease().report(file, settings, Epsilons.same(10, file.voters), FloatNoiseForExperiments(8))
        estimate = ScoreRelease().aggregate([reports], settings)
        errors[drawn] = np.linalg.norm(estimate.unknown.center - truth)
    assert errors[False] < 0.6 * errors[True]
    assert errors[False] < 0.2 * np.linalg.norm(truth)
