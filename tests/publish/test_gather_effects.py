"""Effects from the reports of a poll: groups that were reported with coin tosses are taken apart, and it shows."""

import numpy as np
import pytest

import crowdveil as cv
from crowdveil.ballots.ballots import Ballots
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.about_you import AboutYou
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.randomised_response import RandomisedResponse
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.protocol.report import Terms, write_reports
from crowdveil.publish.gather import ReportedGroups, effects_from_reports
from crowdveil.study.bundled import synthetic_study

STUDY = synthetic_study(2, 4)
SETTINGS = MechanismSettings(STUDY, 2.0)
TERMS = Terms("randomised-response", SETTINGS, [Epsilon(1)])
GROUPS = ReportedGroups("team", ("a", "b"), Epsilon(1))


def reports(voters, seed):
    """Voters of two teams: a prefers more of the first feature with probability .8, b with .4; of the second, .5."""
    rng, noise = np.random.default_rng(seed), FloatNoiseForExperiments(1000 + seed)
    team = rng.integers(2, size=voters)
    dilemmas = np.ones((voters * 4, 2))
    dilemmas[::2, 0], dilemmas[1::2, 1] = 0.0, 0.0
    chance = np.where(dilemmas[:, 0] != 0, np.repeat(np.where(team == 0, 0.8, 0.4), 4), 0.5)
    choices = np.where(rng.random(len(chance)) < chance, 1, -1).astype(np.int8)
    ballots = Ballots(STUDY, np.arange(voters + 1) * 4, dilemmas, choices)
    epsilons = Epsilons.same(Epsilon(1), voters)
    bodies = write_reports(
        "randomised-response", STUDY, epsilons, RandomisedResponse().report(ballots, SETTINGS, epsilons, noise)
    )
    said = AboutYou().report(team, 2, epsilons, noise)
    return [(body, {"team": "ab"[one]}) for body, one in zip(bodies, said.tolist(), strict=True)]


def test_the_effects_of_the_whole_crowd_are_read_from_choices_alone():
    made = effects_from_reports([reports(2000, 2)], TERMS)
    first, second = made.effects.groups[0].effects
    assert first.low <= 0.2 <= first.high
    assert second.low <= 0.0 <= second.high
    assert first.pairs == 4000
    assert made.ledger is None


def test_groups_are_taken_apart_and_intervals_hold_the_truth():
    """Seeded: 60 polls of 600 voters. The effects are .6, -.2, 0 and 0, the differences .8 and 0."""
    true = {("a", 0): 0.6, ("b", 0): -0.2, ("a", 1): 0.0, ("b", 1): 0.0}
    held, apart, told = [], [], []
    for seed in range(60):
        made = effects_from_reports([reports(600, seed)], TERMS, GROUPS).effects
        for group in made.groups:
            held += [one.low <= true[group.label, k] <= one.high for k, one in enumerate(group.effects)]
        apart += [one.low <= gap <= one.high for one, gap in zip(made.differences, (0.8, 0.0), strict=True)]
        told.append([one.told_apart for one in made.differences])
    assert np.mean(held) >= 0.93
    assert np.mean(apart) >= 0.93
    assert np.mean(told, axis=0)[0] > 0.6
    assert np.mean(told, axis=0)[1] <= 0.05


def test_other_reports_are_refused_in_one_line():
    with pytest.raises(cv.CrowdveilError, match="effects are read from reports of randomised-response"):
        effects_from_reports([], Terms("one-bit", SETTINGS, [Epsilon(1)]))
    with pytest.raises(cv.CrowdveilError, match="at least 2 voters, got 1"):
        effects_from_reports([reports(1, 1)], TERMS)
