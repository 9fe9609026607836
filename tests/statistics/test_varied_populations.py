"""Releases of crowds of all kinds: other dilemmas than the generator's, ballots of any length, answers at random."""

import numpy as np
import pytest
from constants import losses
from populations import release
from varied import varied_population

from crowdveil.estimation.design import public_design
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.study.bundled import load_study

MACHINE = load_study("moral-machine")


def coverage(mechanism, voters, epsilon, populations, seed):
    """The share of factors' intervals that hold the population's value, a row a population."""
    rng, covered = np.random.default_rng(seed), []
    for number in range(populations):
        population = varied_population(MACHINE, rng, (1, 1, 2, 2, 3, 4))
        made = release(mechanism, population.crowd(voters, rng), Epsilon(epsilon), 100 * seed + number, drawn=False)
        truth = MACHINE.factor_map @ public_design(MACHINE).basis @ population.value
        low, high = made.factor_intervals.T
        covered.append((low <= truth) & (truth <= high))
    return np.array(covered)


def test_a_sample_of_short_ballots_of_other_dilemmas():
    """Seeded: chance has no part in it."""
    assert coverage("voter-score", 4000, 1, 3, 1).mean() >= 0.85
    assert losses("pooled-score", 5000, 2).mean() < 30


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", ["voter-score", "pooled-score", "pooled-choices", "one-bit", "score", "randomised-response"]
)
@pytest.mark.parametrize(("voters", "epsilon"), [(2000, 1), (18_000, 1), (18_000, "0.1")])
def test_short_ballots_of_other_dilemmas_are_covered(mechanism, voters, epsilon):
    assert coverage(mechanism, voters, epsilon, 60, 2).mean() >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["voter-score", "pooled-score"])
@pytest.mark.parametrize("loud", [500, 1600, 5000])
def test_no_other_plan_states_much_better_probabilities(mechanism, loud):
    usual = losses(mechanism, loud, 16)
    louder = {"_VOTERS_LOUD": 400, "_RECORDS_LOUD": 400}
    for other in ({"_VOTERS_NOISE": 0.44}, {"_RECORDS_NOISE": 0.1}, louder, {"_SQUARES": 400}, {"_FIRST_SHARE": 0.5}):
        more = losses(mechanism, loud, 16, **other) - usual
        assert more.mean() > -0.25 * usual.mean() - 5 * more.std() / 4
