"""Stated probabilities come true on voters who were held out; and what is certain is seldom wrong."""

import numpy as np
import pytest
from calibration import calibration
from certainty import CERTAINTIES, worst_dilemmas
from populations import usual_population
from tests.real_data import MORAL_MACHINE, with_moral_machine

from crowdveil.privacy.epsilon import Epsilon
from crowdveil.sources.moral_machine.importing import read_moral_machine
from crowdveil.study.bundled import load_study

MACHINE = load_study("moral-machine")
MECHANISMS = ("voter-score", "pooled-score", "pooled-choices", "one-bit", "score", "randomised-response")


def test_a_sample_of_the_certainties():
    draws, promised = 6, 1 - np.array(CERTAINTIES)
    crowd = usual_population(MACHINE, 0.5).crowd(300, 4, np.random.default_rng(5))
    _, judged = worst_dilemmas("pooled-score", crowd, Epsilon(1), draws, seed=2, candidates=60)
    assert (judged.mean(axis=1) <= promised + 5 * np.sqrt(promised * (1 - promised) / draws)).all()


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("voters", [2, 5, 50, 500, 5000])
@pytest.mark.parametrize("epsilon", [1, 10])
def test_what_is_certain_is_seldom_wrong(mechanism, voters, epsilon):
    draws, promised = 200, 1 - np.array(CERTAINTIES)
    crowd = usual_population(MACHINE, 0.5).crowd(voters, 4, np.random.default_rng(voters))
    _, judged = worst_dilemmas(mechanism, crowd, Epsilon(epsilon), draws, seed=3)
    # Of five dilemmas the worst: five deviations leave 1e-5 to chance.
    assert (judged.max(axis=1) <= promised + 5 * np.sqrt(promised * (1 - promised) / draws)).all()


@pytest.mark.slow
@with_moral_machine
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("most", [None, 4])
def test_probabilities_come_true_on_real_voters(mechanism, most):
    ballots = read_moral_machine(MORAL_MACHINE).decided()
    private, limit = calibration(mechanism, ballots, Epsilon(1), 100, 1, most)
    assert private.slope is not None
    assert 0.85 <= private.slope.estimate <= 1.15
    assert abs(private.overstatement.estimate) <= 0.03
    if abs(private.share_predicted.estimate - limit.share_predicted.estimate) <= 0.005:
        assert private.brier.estimate <= limit.brier.estimate + 0.003
