"""Decisions where a study allows a third answer: three shares, and a coin that is a choice."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from crowdveil.decision import decide
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.noise.distribution import Gaussian
from crowdveil.privacy.side_answers import Indifference, even_margin
from crowdveil.protocol.decisions import read_decision, write_decision
from crowdveil.publish.release import release_for_experiments
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study
from crowdveil.study.study import COIN

SAME = {"elderly_dependents": 1, "life_years_gained": 20, "obesity": 0, "weekly_work_hours": 20, "years_waiting": 3}
OTHER = {**SAME, "life_years_gained": 5}


@pytest.fixture(scope="module")
def release():
    study = replace(load_study("kidney"), indifference="Toss a coin")
    (crowd,) = simulated_batches(study, 1000, np.random.default_rng(1), tau=0.4)
    return release_for_experiments(crowd, "rlcp", epsilon=3, seed=2)


@pytest.fixture(scope="module")
def undecided(release):
    """The same crowd with a threshold at which most would toss a coin."""
    return replace(release, indifference=Indifference(1.0, 0.02, 0.96, 1.04, 0.6, 0.01))


def test_three_shares_follow_from_margin_and_threshold(release):
    decision = decide(release, [SAME, OTHER])
    side = release.study.difference(*release.study.dilemma([SAME, OTHER]).alternatives)
    mean, variance = release.unknown.predictive(side)
    third = release.indifference
    scale = np.sqrt(1 + variance + third.deviation**2)
    expected = [norm.cdf((mean - third.tau) / scale), norm.cdf((-mean - third.tau) / scale)]
    assert list(decision.probabilities) == ["A", "B", COIN]
    assert list(decision.probabilities.values()) == pytest.approx([*expected, 1 - sum(expected)])
    assert decision.probability == decision.probabilities["A"]
    assert decision.choice == "A"
    assert not decision.as_dict()["toss_a_coin"]


def test_where_most_would_toss_a_coin_that_is_the_choice(undecided):
    decision = decide(undecided, [SAME, {**SAME, "years_waiting": 5}])
    assert decision.choice == COIN
    said = decision.as_dict()
    assert said["choice"] == "toss a coin"
    assert said["toss_a_coin"]
    assert not said["too_close_to_call"]
    assert "toss a coin" in repr(decision)
    assert decision.certainty > 0.9
    assert "would toss a coin than choose either" in decision.sentences[1]


def test_equal_alternatives_are_for_the_coin_or_too_close_to_call(release, undecided):
    assert decide(undecided, [SAME, SAME]).choice == COIN
    close = decide(release, [SAME, SAME])
    assert close.choice is None
    assert "the same in every feature" in close.reason


def test_an_unknown_threshold_makes_it_too_close_to_call(undecided):
    vague = replace(undecided, indifference=replace(undecided.indifference, deviation=1.0, low=0.0, high=3.0))
    assert decide(vague, [SAME, {**SAME, "years_waiting": 5}]).choice is None


def test_a_decision_travels_with_its_three_shares(undecided):
    for decision in (decide(undecided, [SAME, OTHER]), decide(undecided, [SAME, SAME])):
        read = read_decision(write_decision(decision, "00"))
        assert read.probabilities == pytest.approx(decision.probabilities)
        assert read.choice == decision.choice


def test_of_three_alternatives_no_coin_is_tossed(undecided):
    decision = decide(undecided, [SAME, OTHER, {**OTHER, "years_waiting": 1}])
    assert decision.probabilities is None
    assert decision.choice != COIN


def test_no_alternative_may_be_called_like_the_answer(release):
    with pytest.raises(CrowdveilError, match="that is an answer"):
        decide(release, {COIN: SAME, "other": OTHER})


def test_at_the_even_margin_as_many_choose_as_toss():
    assert even_margin(0.4) == 0
    for tau in (0.5, 1.0, 2.0):
        margin = even_margin(tau)
        assert norm.cdf(margin - tau) == pytest.approx(1 - norm.cdf(margin - tau) - norm.cdf(-margin - tau))
    third = Indifference(1.0, 0.02, 0.96, 1.04, 0.6, 0.01)
    assert third.even_slope == pytest.approx((even_margin(1.001) - even_margin(0.999)) / 0.002, rel=1e-3)


@pytest.mark.parametrize("shown", [(1.0, 1.0), (0.55, 1.45), (0.7, 0.9), (1.2, 1.3)])
@pytest.mark.parametrize(("margin", "answer"), [(0.0, COIN), (0.2, COIN), (1.6, "A"), (2.5, "A")])
def test_the_certainty_of_three_answers_is_that_of_the_worst_that_dilemmas_may_show(undecided, shown, margin, answer):
    """The estimate is f times the margin, plus normal noise: it is compared with f times the even margin, for all f."""
    side = undecided.study.difference(*undecided.study.dilemma([SAME, OTHER]).alternatives)
    x = side @ undecided.unknown.basis
    center = margin * x / (x @ x)
    exact = {name: 0 * getattr(undecided.unknown, name) for name in ("covariance", "sampling", "doubt", "rest")}
    exact |= {"center": center, "mean": center, "turn": 0.0, "size": 0.0, "shown": shown}
    unknown = replace(undecided.unknown, **exact)
    known = replace(undecided.indifference, deviation=0.0)
    made = replace(undecided, unknown=unknown, noise=Gaussian(0.3 / float(np.linalg.norm(side))), indifference=known)
    even = even_margin(1.0) * np.linspace(*shown, 1001)
    if answer == COIN:
        worst = (norm.cdf((even - margin) / 0.3) + norm.cdf((even + margin) / 0.3) - 1).min()
    else:
        worst = norm.cdf((margin - even) / 0.3).min()
    decision = decide(made, [SAME, OTHER], 0.5)
    assert decision.choice == answer
    assert decision.certainty == pytest.approx(worst)


def test_a_wrong_choice_is_rare_at_high_certainty():
    """Whatever is stated with a certainty of 90 % is false at most so often, over noise (seeded)."""
    study = replace(load_study("kidney"), indifference="Toss a coin")
    lean = np.array([feature.lean for feature in study.features])
    pairs = [[SAME, {**SAME, "years_waiting": years}] for years in (1, 5, 7)] + [[SAME, OTHER]]
    wrong = stated = 0
    for seed in range(25):
        (crowd,) = simulated_batches(study, 800, np.random.default_rng(seed), spread=0, tau=0.8)
        made = release_for_experiments(crowd, "alcp", epsilon=1, seed=seed)
        for pair in pairs:
            decision = decide(made, pair)
            margin = float(study.difference(*study.dilemma(pair).alternatives) @ lean)
            truth = COIN if abs(margin) < even_margin(0.8) else "A" if margin > 0 else "B"
            stated += decision.choice is not None
            wrong += decision.choice not in (None, truth)
    assert stated > 30
    assert wrong <= 0.1 * stated
