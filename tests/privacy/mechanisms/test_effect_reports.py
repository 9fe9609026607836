"""Reports about one factor: what a device may send, and that the effects read from many of them are right."""

import math
from collections import Counter

import numpy as np
import pytest

from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import Categories
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.effect_reports import COUNT_STEPS, FactorAnswer, FactorCounts, FlippedChoiceEffects
from crowdveil.privacy.mechanisms.group_mechanism import Grouping
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments, NoiseLaw, SilentNoise
from crowdveil.study.bundled import synthetic_study

STUDY = synthetic_study(2, 3)
SETTINGS = MechanismSettings(STUDY, 2.0)
GROUPING = Grouping("side", ("a", "b"))


def copies(voters, records, group=0):
    """Return voters who all gave these records (chosen less other) and belong to one group."""
    differences = np.tile(np.array(records, np.float64), (voters, 1))
    made = Ballots.from_differences(STUDY, np.arange(voters + 1) * len(records), differences)
    about = {"side": Categories(GROUPING.labels, np.full(voters, group, np.int16))}
    return Ballots(made.study, made.offsets, made.dilemmas, made.choices, about=about)


def test_the_odds_of_every_report_are_as_the_theorem_says():
    """Two voters: one prefers more of the first feature always, the other less. Every option's odds are e^eps or 1."""
    draws, epsilon = 200_000, Epsilon(1)
    counted = []
    for sign in (1.0, -1.0):
        reports = FactorAnswer().report(
            copies(draws, [[sign, 0.0]]), SETTINGS, Epsilons.same(epsilon, draws), BulkNoise()
        )
        counted.append(Counter(zip(reports.factors.tolist(), reports.values[:, 0].tolist(), strict=True)))
    total = math.e + 2
    for (factor, option), times in counted[0].items():
        truth = 1 if factor == 0 else 0  # of the second feature there is no pair
        chance = (math.e if option == truth else 1) / total / 2
        assert abs(times - draws * chance) < 6 * math.sqrt(draws * chance)
    assert len(counted[0]) == len(counted[1]) == 6


def test_one_of_her_own_pairs_is_drawn_fairly():
    """Of three pairs along the first feature she preferred more in two: the report says so two times in three."""
    draws = 90_000
    records = [[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]]
    reports = FactorAnswer().report(
        copies(draws, records), SETTINGS, Epsilons.same(Epsilon(10), draws), FloatNoiseForExperiments(3)
    )
    said = reports.values[reports.factors == 0, 0]
    assert np.mean(said == 1) == pytest.approx(2 / 3, abs=0.01)


@pytest.mark.parametrize("mechanism", [FactorAnswer(GROUPING), FactorCounts(GROUPING), FlippedChoiceEffects(GROUPING)])
def test_effects_of_groups_are_read_from_reports(mechanism):
    """Group a prefers more of the first feature in two of three pairs, group b in one of three: 1/3 and -1/3."""
    voters, epsilon = 60_000, Epsilon(2)
    tallies = []
    for group, records in enumerate(([[1.0, 1.0], [1.0, 1.0], [-1.0, 1.0]], [[-1.0, 1.0], [-1.0, 1.0], [1.0, -1.0]])):
        reports = mechanism.report(
            copies(voters, records, group), SETTINGS, Epsilons.same(epsilon, voters), FloatNoiseForExperiments(group)
        )
        tallies.append(mechanism.tally(reports, SETTINGS))
    one, other = mechanism.ratios(tallies, SETTINGS, epsilon)
    for ratio, truth in ((one.ratios[0], 1 / 3), (other.ratios[0], -1 / 3), (one.ratios[1], 1.0)):
        assert abs(ratio.estimate - truth) <= 5 * ratio.standard_error + 1e-9
        assert ratio.standard_error < 0.05


def test_a_device_counts_along_one_factor_and_asks_for_noise_that_covers_a_record():
    silent = SilentNoise()
    reports = FactorCounts().report(
        copies(50, [[1.0, -1.0], [1.0, 1.0]]), SETTINGS, Epsilons.same(Epsilon(1), 50), silent
    )
    (request,) = silent.requests
    assert (request.kind, request.sensitivity, request.columns) == (NoiseLaw.CUBE, COUNT_STEPS, 2)
    counts = np.where((reports.factors == 0)[:, None], [2, 0], [1, 1]) * COUNT_STEPS
    assert np.array_equal(reports.values, counts)
    assert set(reports.factors.tolist()) == {0, 1}
