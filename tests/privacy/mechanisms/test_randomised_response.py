"""Randomised response: exact odds, dilemmas that tell nothing of the choices, and a budget that is never overspent."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from crowdveil.ballots.ballots import Ballots, resampled
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.randomised_response import (
    OneChoice,
    RandomisedResponse,
    _share,
    choices_to_report,
    oriented,
)
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.sources.simulated import synthetic_crowd
from crowdveil.study.bundled import load_study, synthetic_study
from scripted_noise import RecordingNoise

MICRO = 1_000_000
Q = Fraction(1, 3)
"""exp(-epsilon): epsilon = ln 3."""


def crowd(voters=5, records=4, features=3, seed=1):
    return synthetic_crowd(voters, records, features, np.random.default_rng(seed)).ballots


def turned(ballots, which):
    """The same dilemmas, some answered the other way."""
    differences = np.where(np.asarray(which)[:, None], -ballots.differences, ballots.differences)
    return Ballots.from_differences(ballots.study, ballots.offsets, differences.astype(ballots.differences.dtype))


class EveryToss(RecordingNoise):
    """Tosses two coins per voter in all ways, a voter each, with exact probabilities."""

    ways = tuple(product((True, False), repeat=2))

    def tosses(self, odds, epsilons, columns):
        assert (len(epsilons), columns) == (8, 1)
        up = (odds.a + odds.b * Q) / (odds.c + odds.d * Q)
        self.probabilities = [(up if a else 1 - up) * (up if b else 1 - up) for a, b in self.ways]
        return np.array(self.ways).reshape(8, 1)


def law_of_two_choices(differences):
    """The exact law of a voter's report of two choices."""
    noise = EveryToss()
    one = Ballots.from_differences(synthetic_study(2), np.array([0, 2]), differences)
    many = resampled(one, np.zeros(4, np.int64))
    reports = RandomisedResponse().report(many, MechanismSettings(many.study, 2.0), Epsilons.same(1, 4), noise)
    choices = map(tuple, reports.choices.reshape(4, 2).tolist())
    return dict(zip(choices, noise.probabilities, strict=True))


def test_one_choice_changes_a_report_by_exactly_e_to_the_epsilon():
    dilemmas = np.array([[1.0, -2.0], [-0.5, 3.0]])
    laws = {signs: law_of_two_choices(dilemmas * np.array(signs)[:, None]) for signs in product((1.0, -1.0), repeat=2)}
    assert all(sum(law.values()) == 1 for law in laws.values())
    for a, b in product(laws, laws):
        if sum(x != y for x, y in zip(a, b, strict=True)) == 1:
            assert {laws[a][report] / laws[b][report] for report in laws[a]} == {Q, 1 / Q}


def test_every_choice_is_tossed_with_its_voters_epsilon():
    ballots, noise = crowd(voters=3, records=2), RecordingNoise()
    RandomisedResponse().report(ballots, MechanismSettings(ballots.study, 2.0), Epsilons([1, 2, 3]), noise)
    assert noise.asked == [("tosses", Odds(0, 1, 1, 1), [MICRO, MICRO, 2 * MICRO, 2 * MICRO, 3 * MICRO, 3 * MICRO], 1)]


@given(
    arrays.arrays(np.float64, (6, 3), elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, -7.25, 1e-300])),
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_the_dilemmas_in_a_report_are_the_same_to_the_byte_whatever_was_answered(differences, which):
    """A floating-point -0.0 where a turned choice has 0.0 would give the choice away."""
    ballots = Ballots.from_differences(synthetic_study(3), np.array([0, 2, 6]), differences)
    (dilemmas, choices), (others, opposite) = oriented(ballots), oriented(turned(ballots, which))
    assert dilemmas.tobytes() == others.tobytes()
    assert np.array_equal(dilemmas * choices[:, None], differences)
    differs = (differences != 0).any(axis=1)
    assert np.array_equal(opposite[differs], np.where(which, -choices, choices)[differs])


def test_small_integers_stay_small_integers():
    study = load_study("moral-machine")
    ballots = Ballots.from_differences(study, np.array([0, 1]), np.full((1, study.dimension), -3, np.int8))
    dilemmas, choices = oriented(ballots)
    assert dilemmas.dtype == np.int8
    assert dilemmas.tolist() == [[3] * study.dimension]
    assert choices.tolist() == [-1]


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(100, 50 * MICRO)), min_size=1, max_size=20))
def test_the_number_of_choices_to_report_is_the_best_of_all(voters):
    counts, epsilons = (np.array(column) for column in zip(*voters, strict=True))
    sizes = choices_to_report(counts, Epsilons.of_millionths(epsilons))
    for size, n, micro in zip(sizes.tolist(), counts.tolist(), epsilons.tolist(), strict=True):
        told = {k: k * np.tanh(micro / 2e6 / k) ** 2 for k in range(1, n + 1)}
        assert told[size] == pytest.approx(max(told.values()), rel=1e-12)


@given(st.integers(1, 12), st.integers(1000, 50 * MICRO))
def test_all_choices_of_a_voter_together_never_spend_more_than_her_epsilon(records, micro):
    ballots, noise = crowd(voters=3, records=records), RecordingNoise()
    reports = OneChoice().report(
        ballots, MechanismSettings(ballots.study, 2.0), Epsilons.of_millionths(np.full(3, micro)), noise
    )
    ((_, odds, epsilons, columns),) = noise.asked
    assert (odds, columns) == (Odds(0, 1, 1, 1), 1)
    spent = np.add.reduceat(epsilons, reports.offsets[:-1])
    assert spent.max() <= micro
    assert spent.min() > micro - records  # and hardly less
    assert np.repeat(reports.epsilons.micro, np.diff(reports.offsets)).tolist() == epsilons


@given(st.lists(st.booleans(), min_size=20, max_size=20), st.integers(0, 1000))
def test_which_choices_are_reported_does_not_depend_on_them(which, seed):
    ballots = crowd()
    epsilons = Epsilons.of_millionths(np.array([1, 1, 9, 9, 30]) * MICRO)
    first, second = (
        OneChoice().report(b, MechanismSettings(b.study, 2.0), epsilons, FloatNoiseForExperiments(seed))
        for b in (ballots, turned(ballots, which))
    )
    assert first.dilemmas.tobytes() == second.dilemmas.tobytes()
    assert first.offsets.tolist() == second.offsets.tolist()
    assert len(first.choices) == choices_to_report(ballots.counts, epsilons).sum()


def test_every_choice_is_chosen_equally_often():
    ballots = resampled(crowd(voters=1, records=4), np.zeros(8_000, np.int64))
    reports = OneChoice().report(ballots, MechanismSettings(ballots.study, 2.0), Epsilons.same(1, 8_000), BulkNoise())
    _, counts = np.unique(reports.dilemmas[:, 0], return_counts=True)
    assert len(counts) == 4
    assert np.abs(counts - 2_000).max() < 5.5 * np.sqrt(8_000 * 3 / 16)


def test_voters_with_unequal_numbers_of_choices_keep_their_own():
    ballots = Ballots.from_differences(synthetic_study(1), np.array([0, 1, 4, 6]), np.arange(1.0, 7.0)[:, None])
    reports = OneChoice().report(ballots, MechanismSettings(ballots.study, 2.0), Epsilons.same(30, 3), BulkNoise())
    assert np.diff(reports.offsets).tolist() == [1, 3, 2]  # a huge epsilon reports all
    assert reports.dilemmas[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_reports_may_come_in_any_batches():
    ballots = crowd(voters=12, records=6)
    public, epsilons = MechanismSettings(ballots.study, 2.0), Epsilons.same(1, 12)
    noise = FloatNoiseForExperiments(3)
    whole = RandomisedResponse().report(ballots, public, epsilons, noise)
    noise = FloatNoiseForExperiments(3)
    parts = [RandomisedResponse().report(ballots[s], public, epsilons[s], noise) for s in (slice(0, 5), slice(5, 12))]
    together, apart = (RandomisedResponse().aggregate(batches, public) for batches in ([whole], parts))
    assert apart.parameter == pytest.approx(together.parameter, abs=1e-7)


@pytest.mark.parametrize(("counts", "freedom"), [([4] * 30, 29), ([60] + [1] * 60, 2), ([1] * 40 + [20] * 8, 11)])
def test_long_ballots_leave_few_degrees_of_freedom(counts, freedom):
    """One less than (sum n)^2 / sum n^2: 120^2 / 3660 and 200^2 / 3240 for the unequal ones."""
    offsets = np.concatenate([[0], np.cumsum(counts)])
    rng = np.random.default_rng(4)
    ballots = Ballots.from_differences(synthetic_study(3), offsets, rng.normal(0, 1, (offsets[-1], 3)))
    settings, epsilons = MechanismSettings(ballots.study, 2.0), Epsilons.same(3, len(counts))
    reports = RandomisedResponse().report(ballots, settings, epsilons, FloatNoiseForExperiments(1))
    assert RandomisedResponse().aggregate([reports], settings).unknown.freedom == freedom


def test_the_error_of_a_share_is_that_of_unequal_voters():
    """Voters with 3, 1, 1 and 1 answers of weight 1, of whom the first said "neither": h is 1/2 and 1/6 thrice."""
    share = _share(np.array([[3.0, 3.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]))
    assert share.value == 0.5
    assert share.deviation**2 == pytest.approx((2 * 2.25 + 3 * 1.2 * 0.25) / 36 + (12 / 36) ** 2 / 4)


def test_the_error_of_a_share_of_equal_voters_is_that_of_a_mean():
    said = np.array([0.0, 1.0, 0.0, 2.0, 4.0, 1.0])
    share = _share(np.stack([said, np.full(6, 4.0)], axis=1))
    assert share.value == pytest.approx(said.mean() / 4)
    assert share.deviation**2 == pytest.approx(said.var(ddof=1) / 6 / 16 + 1 / (4 * 36))


def test_weights_by_information_beat_equal_votes():
    """Equal votes weigh the noisiest choices up."""
    errors = {True: [], False: []}
    for seed in range(12):
        drawn = synthetic_crowd(60, 20, 3, np.random.default_rng(seed))
        epsilons = Epsilons(np.where(np.arange(60) % 3 == 0, 2, 0.05))
        for equal in errors:
            public = MechanismSettings(drawn.ballots.study, 2.0, equal_votes=equal)
            reports = RandomisedResponse().report(drawn.ballots, public, epsilons, FloatNoiseForExperiments(seed))
            learned = RandomisedResponse().aggregate([reports], public).parameter
            cosine = learned @ drawn.social / np.linalg.norm(learned) / np.linalg.norm(drawn.social)
            errors[equal].append(1 - cosine)
    assert np.mean(errors[False]) < 0.7 * np.mean(errors[True])
