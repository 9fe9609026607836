"""Effects that a release implies: those of its preference on the study's dilemmas, with what it does not know."""

import numpy as np
import pytest
from scipy.special import ndtr

import crowdveil as cv
from crowdveil.estimation.effects import public_pairs
from crowdveil.publish.implied_effects import preferred
from crowdveil.sources.simulated import simulated_batches

STUDY = cv.load_study("moral-machine")


@pytest.fixture(scope="module")
def crowd():
    (ballots,) = simulated_batches(STUDY, 3000, np.random.default_rng(2), spread=0.0)
    return ballots


def test_they_hold_the_effects_of_the_preference_that_a_crowd_really_has(crowd):
    """Everybody has the study's lean, from which the exact effects follow: all but one of nine intervals hold them."""
    found = cv.implied_effects(cv.release_for_experiments(crowd, "rlcp", epsilon=10, seed=1))
    dilemmas, signs = public_pairs(STUDY, typed=True)
    shares = 2 * ndtr(dilemmas @ np.array([feature.lean for feature in STUDY.features])) - 1
    held = []
    for k, factor in enumerate(STUDY.factors):
        shown = signs[:, k] != 0
        effect, true = found.effect(factor.name), (signs[shown, k] * shares[shown]).mean()
        held.append(effect.low <= true <= effect.high)
        assert abs(effect.estimate - true) <= 4 * effect.standard_error
    assert sum(held) >= 8
    species = found.effect("species")
    assert species.high - species.low < 0.3
    assert species.contrast == "drawn pairs of the scenario Species"


def test_a_share_is_that_of_the_unshrunk_estimate(crowd):
    release = cv.release_for_experiments(crowd, "vlcp", epsilon=1, seed=1)
    dilemma = np.zeros((1, STUDY.dimension))
    assert preferred(release, dilemma)[0] == 0.0
    dilemma[0, STUDY.feature_names.index("girl")] = 1.0
    margin = float(release.unknown.basis[STUDY.feature_names.index("girl")] @ release.unknown.center)
    assert preferred(release, dilemma)[0] == pytest.approx(2 * ndtr(margin) - 1)


def test_the_papers_society_implies_none(crowd):
    release = cv.release_for_experiments(crowd[:50], "vlcp", epsilon=1, seed=1, mechanism="paper")
    with pytest.raises(cv.CrowdveilError, match="states no probabilities"):
        cv.implied_effects(release)
