"""Pages about a release of a study with a third answer: the share of coins, the threshold, and a coin as a decision."""

from dataclasses import replace

import numpy as np
import pytest

from crowdveil.decision import decide
from crowdveil.pages.feature_estimates import feature_estimates, third_answer_sentences
from crowdveil.pages.release_page import release_page
from crowdveil.pages.sections import decision_section
from crowdveil.privacy.side_answers import Indifference
from crowdveil.publish.release import release_for_experiments
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study


@pytest.fixture(scope="module")
def release():
    study = replace(load_study("kidney"), indifference="Toss a coin")
    (crowd,) = simulated_batches(study, 200, np.random.default_rng(1))
    made = release_for_experiments(crowd, "rlcp", epsilon=3, seed=2)
    return replace(made, indifference=Indifference(1.0, 0.02, 0.96, 1.04, 0.62, 0.01))


def test_the_page_tells_share_and_threshold(release):
    (sentence,) = third_answer_sentences(release)
    assert "about 62% of their choices (60% to 64%, with 95%)" in sentence
    assert "1.00 (0.96 to 1.04)" in sentence
    assert "treated both" in release_page([release])


def test_no_share_is_said_to_be_below_zero(release):
    """The noise may carry it there: 1.96 deviations of 20 points above -5 % are 34 %."""
    (sentence,) = third_answer_sentences(replace(release, indifference=Indifference(0.2, 0.3, 0, 0.8, -0.05, 0.2)))
    assert "about 0% of their choices (0% to 34%, with 95%)" in sentence


def test_shares_of_single_features_are_those_that_decisions_state(release):
    """Of two patients, one has a unit, ten years, more to live; some people would toss a coin."""
    stated = decide(release, {"more": {"life_years_gained": 10}, "less": {}}).probabilities
    label = next(feature.label for feature in release.study.features if feature.name == "life_years_gained")
    shares = {one.label: one.share for one in feature_estimates(release)}
    assert shares[label] == pytest.approx(stated["more"])
    assert stated["more"] + stated["toss a coin"] + stated["less"] == pytest.approx(1)
    assert "The others would pick the other one, or toss a coin." in release_page([release])
    assert "toss a coin" not in release_page([replace(release, indifference=None)])


def test_without_a_third_answer_there_is_nothing_to_tell(release):
    assert third_answer_sentences(replace(release, indifference=None)) == []


def test_a_coin_is_a_decision(release):
    same = {"elderly_dependents": 1, "life_years_gained": 20, "obesity": 0, "weekly_work_hours": 20, "years_waiting": 3}
    assert "The crowd would <strong>toss a coin</strong>." in decision_section(decide(release, [same, same]), 2)
