"""Decisions: ranking, probability, certainty with its promise, and honest refusals."""

import math

import numpy as np
import pytest
from scipy import stats

from crowdveil.decision import decide
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS, Guarantee
from crowdveil.privacy.noise.distribution import LaplaceSum
from crowdveil.releases import Release
from crowdveil.study.bundled import load_study, synthetic_study


def release(parameter, scale=0.1, study=None):
    study = synthetic_study(len(parameter)) if study is None else study
    guarantee = Guarantee(
        PARADIGMS["vlcp"], Epsilon.of_millionths(1_000_000), Epsilon.of_millionths(1_000_000), 2.0, 40
    )
    return Release(
        study, np.array(parameter), guarantee, "algorithm-1", LaplaceSum((scale,), (1,)), "test", True, {}, None, "0"
    )


def dilemma(made, *points):
    return made.study.dilemma([{"features": {f"x{k + 1}": v for k, v in enumerate(p)}} for p in points])


def test_the_larger_score_wins_with_the_probit_probability():
    made = release([1.0, -0.5])
    decision = decide(made, dilemma(made, [0.2, 1.0], [1.0, 0.0]))
    assert decision.choice == "B"
    assert [r.name for r in decision.ranking] == ["B", "A"]
    assert decision.probability == pytest.approx(stats.norm.cdf(1.0 - (0.2 - 0.5)))


def test_certainty_is_the_laws_own():
    made = release([1.0], scale=0.4)
    decision = decide(made, dilemma(made, [1.0], [0.5]), certainty=0.5)
    assert decision.certainty == pytest.approx(stats.laplace(scale=0.4 * 0.5).cdf(0.5), abs=1e-8)


def test_too_close_to_call_says_why():
    made = release([0.01, 0.0], scale=1.0)
    decision = decide(made, dilemma(made, [1.0, 0.0], [0.0, 0.0]))
    assert decision.choice is None
    assert decision.as_dict()["too_close_to_call"] is True
    assert "noise is too large" in decision.reason


def test_equal_alternatives_are_never_decided():
    made = release([1.0])
    decision = decide(made, dilemma(made, [1.0], [1.0]), certainty=0.5)
    assert decision.choice is None
    assert "same in every feature" in decision.reason


def test_more_than_two_alternatives_add_up_their_doubts():
    made = release([1.0, 0.0], scale=0.2)
    decision = decide(made, dilemma(made, [0.0, 0.0], [1.0, 0.0], [0.4, 0.0]))
    doubts = [stats.laplace(scale=0.2 * gap).sf(gap) for gap in (1.0, 0.6)]
    assert decision.choice == "B"
    assert decision.probability is None
    assert decision.certainty == pytest.approx(1 - sum(doubts), abs=1e-8)


def test_units_of_the_study_count():
    study = load_study("kidney")
    made = release([0.0, 1.0, 0.0, 0.0, 0.0], study=study)
    pair = [{"features": {"life_years_gained": 20}}, {"features": {"life_years_gained": 10}}]
    assert decide(made, study.dilemma(pair)).probability == pytest.approx(stats.norm.cdf(1.0))  # per 10 years


def test_the_promise_wrong_calls_are_rarer_than_one_minus_certainty():
    """If the noiseless crowd prefers B by a little, A is called with certainty c at most a share 1 - c of the time."""
    rng, scale, threshold, runs = np.random.default_rng(5), 0.3, 0.8, 4000
    u = np.array([1.0, -2.0, 0.5])
    true = np.array([-0.01, 0.0, 0.0])  # beta . u < 0: B is right
    wrong = 0
    for _ in range(runs):
        made = release(true + rng.laplace(scale=scale, size=3), scale)
        wrong += decide(made, dilemma(made, u, np.zeros(3)), threshold).choice == "A"
    assert wrong / runs <= 0.2 + 5 * math.sqrt(0.2 * 0.8 / runs)
    assert wrong / runs >= 0.15  # and the promise is nearly used up: the certainty is not padded


@pytest.mark.parametrize("certainty", [0.3, 1.0, math.nan])
def test_an_impossible_certainty_is_refused(certainty):
    made = release([1.0])
    with pytest.raises(CrowdveilError, match=r"at least 0\.5"):
        decide(made, dilemma(made, [1.0], [0.0]), certainty)


def test_a_dilemma_is_a_list_or_names_with_features():
    made = release([1.0, -0.5])
    asked = dilemma(made, [0.2, 1.0], [1.0, 0.0])
    plain = [{"x1": 0.2, "x2": 1.0}, {"x1": 1.0}]
    assert decide(made, plain) == decide(made, tuple(plain)) == decide(made, asked)
    named = decide(made, {"stay": plain[0], "swerve": plain[1]})
    assert named.choice == "swerve"
    assert decide(made, [{"name": "stay", "features": plain[0]}, {"name": "swerve", "features": plain[1]}]) == named


@pytest.mark.parametrize("wrong", ["stay", 3, None, [1, 2], [{"x1": 1}], {"stay": 1, "swerve": 2}, [{"x9": 1}, {}]])
def test_what_is_no_dilemma_is_refused_in_one_line(wrong):
    with pytest.raises(CrowdveilError) as refusal:
        decide(release([1.0, -0.5]), wrong)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("wrong", "certainty"), [("release.json", 0.9), (None, 0.9), (release([1.0]), "sure")])
def test_what_is_no_release_or_certainty_is_refused(wrong, certainty):
    with pytest.raises(CrowdveilError, match=r"read it first|certainty asked for"):
        decide(wrong, [{"x1": 1}, {}], certainty)


def test_a_decision_shows_itself():
    made = decide(release([1.0, -0.5]), {"stay & wait": {"x1": 1.0}, "swerve": {"x2": 1.0}})
    assert repr(made).startswith("<decision: the crowd chooses stay & wait; privacy noise ")
    assert "<td>stay &amp; wait</td>" in made._repr_html_()
    unsure = decide(release([0.01, 0.0], scale=1.0), [{"x1": 1}, {}])
    assert "too close to call" in repr(unsure)
