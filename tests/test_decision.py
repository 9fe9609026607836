"""Decisions: ranking, probability, certainty with its promise, and honest refusals."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from crowdveil.decision import FEWEST_FREEDOM, decide
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS, Guarantee
from crowdveil.privacy.noise.distribution import Gaussian, LaplaceSum
from crowdveil.privacy.uncertainty import Uncertainty
from crowdveil.releases import Release
from crowdveil.study.bundled import load_study, synthetic_study


def release(parameter, scale=0.1, study=None):
    """Return a society as the paper defines it: nothing but the noise is not known."""
    study = synthetic_study(len(parameter)) if study is None else study
    guarantee = Guarantee(
        PARADIGMS["vlcp"], Epsilon.of_millionths(1_000_000), Epsilon.of_millionths(1_000_000), 2.0, 40
    )
    return Release(
        study, np.array(parameter), guarantee, "algorithm-1", LaplaceSum((scale,), (1,)), "test", True, {}, None, "0"
    )


def crowd(center, scale=0.1, *, shrunk=1.0, study=None, **unknown):
    """Return a release of a crowd's preference whose axes are the features, by default all of it known but noise."""
    center = np.array(center, float)
    k = len(center)
    made = release(shrunk * center, scale, study)
    nothing = {"rest": np.zeros((k, 0)), "covariance": np.zeros((k, k)), "sampling": np.zeros((k, k))}
    fields = {"basis": np.eye(k), "mean": made.parameter, "center": center, "doubt": np.zeros(k), **nothing, **unknown}
    return replace(made, mechanism="voter-score", unknown=Uncertainty(**fields))


def dilemma(made, *points):
    return made.study.dilemma([{"features": {f"x{k + 1}": v for k, v in enumerate(p)}} for p in points])


def test_the_larger_score_wins_with_the_probit_probability():
    made = crowd([1.0, -0.5])
    decision = decide(made, dilemma(made, [0.2, 1.0], [1.0, 0.0]))
    assert decision.choice == "B"
    assert [r.name for r in decision.ranking] == ["B", "A"]
    assert decision.probability == pytest.approx(stats.norm.cdf(1.0 - (0.2 - 0.5)))


@pytest.mark.parametrize("away", [[0.3, 0.2], [1.0, 0.0], [4.0, -3.0]])
def test_the_probability_is_the_share_of_voters_who_differ(away):
    """Voters' own weights are normal around common ones, which are larger than in a crowd of one mind by a root."""
    made = crowd([0.8, 0.3], disagreement=0.6, common=1.25)
    common = 1.25 * math.sqrt(1 + 2 * 0.6**2) * np.array([0.8, 0.3])
    law = stats.norm(common @ away, 0.6 * np.linalg.norm(away))
    share, _ = integrate.quad(lambda t: stats.norm.cdf(t) * law.pdf(t), *law.interval(1 - 1e-12), epsabs=1e-9)
    assert decide(made, dilemma(made, away, [0.0, 0.0])).probability == pytest.approx(share, abs=1e-7)


def test_voters_differ_along_the_axes_of_factors():
    made = crowd([0.8, 0.3], disagreement=0.6, left_out=1)
    one, other = (decide(made, dilemma(made, [1.0, y], [0.0, 0.0])).probability for y in (0.0, 5.0))
    assert stats.norm.ppf([one, other]) == pytest.approx([0.8, 0.8 + 5 * 0.3])


def test_what_is_not_known_makes_the_probability_less_sure():
    """The share that prefers A is Phi(t), averaged over what the margin t may be: normal, its variances added up."""
    made = crowd([0.8, 0.3], covariance=np.array([[0.5, 0.1], [0.1, 0.2]]), rest=np.array([[0.3], [-0.2]]))
    variance = 0.5 + 2 * 0.1 + 0.2 + (0.3 - 0.2) ** 2
    law = stats.norm(0.8 + 0.3, math.sqrt(variance))
    share, _ = integrate.quad(lambda t: stats.norm.cdf(t) * law.pdf(t), -10, 12)
    assert decide(made, dilemma(made, [1.0, 1.0], [0.0, 0.0])).probability == pytest.approx(share, abs=1e-6)


def test_a_society_states_no_probability_and_nothing_of_a_population():
    made = release([1.0, -0.5])
    decision = decide(made, dilemma(made, [1.0, 0.0], [0.0, 0.0]))
    assert decision.choice == "A"
    assert decision.probability is None
    assert decision.population_certainty is None
    assert "robability" not in " ".join(decision.sentences)
    assert "opulation" not in " ".join(decision.sentences)


def test_certainty_is_the_laws_own():
    made = release([1.0], scale=0.4)
    decision = decide(made, dilemma(made, [1.0], [0.5]), certainty=0.5)
    assert decision.certainty == pytest.approx(stats.laplace(scale=0.4 * 0.5).cdf(0.5), abs=1e-8)


def test_too_close_to_call_says_why():
    made = release([0.01, 0.0], scale=1.0)
    decision = decide(made, dilemma(made, [1.0, 0.0], [0.0, 0.0]))
    assert decision.choice is None
    assert decision.as_dict()["too_close_to_call"] is True
    assert "the choice is certain to 50%, and 90% was asked for" in decision.reason


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
    made = crowd([0.0, 1.0, 0.0, 0.0, 0.0], study=study)
    pair = [{"features": {"life_years_gained": 20}}, {"features": {"life_years_gained": 10}}]
    assert decide(made, study.dilemma(pair)).probability == pytest.approx(stats.norm.cdf(1.0))  # per 10 years


def test_the_promise_wrong_calls_are_rarer_than_one_minus_certainty():
    """If the noiseless crowd prefers B by a little, A is called with certainty c at most a share 1 - c of the time."""
    rng, scale, threshold, runs = np.random.default_rng(5), 0.3, 0.8, 1000
    u = np.array([1.0, -2.0, 0.5])
    true = np.array([-0.01, 0.0, 0.0])  # beta . u < 0: B is right
    wrong = 0
    for _ in range(runs):
        made = release(true + rng.laplace(scale=scale, size=3), scale)
        wrong += decide(made, dilemma(made, u, np.zeros(3)), threshold).choice == "A"
    assert wrong / runs <= 0.2 + 5 * math.sqrt(0.2 * 0.8 / runs)
    assert wrong / runs >= 0.15  # and the promise is nearly used up: the certainty is not padded


def test_doubt_and_the_directions_left_out_lessen_the_certainty():
    """The law of the noise at the margin less what may be off; the rest reaches as far as 99.9 % of its prior."""
    x = np.array([1.0, -1.0])
    doubted = crowd([0.9, 0.1], scale=0.2, doubt=np.array([0.1, 0.2]))
    asked = dilemma(doubted, [1.0, 0.0], [0.0, 1.0])
    noise = LaplaceSum((0.2,), (1,))
    assert decide(doubted, asked).certainty == pytest.approx(noise.below(x, 0.8 - 0.3), abs=1e-9)
    left_out = crowd([0.9, 0.1], scale=0.2, rest=np.array([[0.05, 0.0], [0.0, 0.05]]))
    reach = math.sqrt(stats.chi2(2).ppf(0.999)) * 0.05 * math.sqrt(2)
    assert 0.5 < decide(left_out, asked).certainty <= noise.below(x, 0.8 - reach)


def test_no_epsilon_is_asked_for_where_directions_were_not_measured():
    """A rest of deviation 1 along each feature reaches further than the margin of 0.8, with or without noise."""
    left_out = crowd([0.9, 0.1], scale=1e-6, rest=np.eye(2))
    reason = decide(left_out, dilemma(left_out, [1.0, 0.0], [0.0, 1.0])).reason
    assert "ways that this release did not measure" in reason
    assert "epsilon" not in reason


@pytest.mark.parametrize("shrunk", [1.0, 0.3])
def test_the_promise_holds_about_the_crowd_itself(shrunk):
    """A crowd that prefers B by a little, and doubt that speaks for A as loudly as it may: A is rarely called."""
    rng, scale, threshold, runs = np.random.default_rng(6), 0.3, 0.8, 1000
    x, doubt = np.array([1.0, -2.0, 0.5]), np.array([0.2, 0.05, 0.1])
    true = np.array([-0.01, 0.0, 0.0])
    wrong = 0
    for _ in range(runs):
        center = true + rng.laplace(scale=scale, size=3) + np.sign(x) * doubt
        made = crowd(center, scale, shrunk=shrunk, doubt=doubt)
        wrong += decide(made, dilemma(made, x, np.zeros(3)), threshold).choice == "A"
    assert wrong / runs <= 0.2 + 5 * math.sqrt(0.2 * 0.8 / runs)
    assert wrong / runs >= 0.15  # and the promise is nearly used up: the certainty is not padded


def test_the_promise_covers_the_choice_among_several():
    """Three alternatives that the crowd likes almost the same, the last the most: every other choice is wrong."""
    rng, scale, threshold, runs = np.random.default_rng(7), 0.3, 0.8, 500
    points = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    true = np.array([0.0, 0.0, 0.01])
    wrong = 0
    for _ in range(runs):
        made = crowd(true + rng.laplace(scale=scale, size=3), scale)
        wrong += decide(made, dilemma(made, *points), threshold).choice in ("A", "B")
    assert wrong / runs <= 0.2 + 5 * math.sqrt(0.2 * 0.8 / runs)


def test_where_the_measured_contradicts_the_shrunk_nothing_is_chosen():
    made = crowd([1.0, 0.2], scale=0.001, mean=np.array([0.1, 0.2]))
    made = replace(made, parameter=np.array([0.1, 0.2]))
    decision = decide(made, dilemma(made, [1.0, 0.0], [0.0, 1.0]), certainty=0.5)
    assert decision.ranking[0].name == "B"
    assert decision.choice is None
    assert decision.certainty == decision.population_certainty == 0
    assert "what was measured points to the other side" in decision.reason


@pytest.mark.parametrize("others", [1, 2])
def test_no_choice_is_certain_between_alternatives_that_differ_as_the_study_s_dilemmas_never_do(others):
    made = crowd([1.0, 0.0], scale=0.01, basis=np.diag([1.0, 0.0]))
    alike = decide(made, dilemma(made, [1.0, 0.5], *[[0.0, 0.5]] * others))
    assert alike.choice == "A"
    other = decide(made, dilemma(made, [1.0, 0.5], *[[0.0, 0.4]] * others), certainty=0.5)
    assert other.choice is None
    assert other.certainty == other.population_certainty == 0
    assert other.reason.startswith(f"the alternatives differ in “{made.study.features[1].label}”, in which the study's")


def test_few_reports_give_no_certainty():
    few, enough = (crowd([1.0], scale=0.01, freedom=freedom) for freedom in (FEWEST_FREEDOM - 1, FEWEST_FREEDOM))
    asked = dilemma(few, [1.0], [0.0])
    assert decide(few, asked, certainty=0.5).choice is None
    assert decide(few, asked).certainty == 0
    assert "at least 11 voters with ballots of about the same length" in decide(few, asked).reason
    assert decide(enough, asked).choice == "A"


@pytest.mark.parametrize(("voters", "stated"), [(10, False), (11, True)])
@pytest.mark.parametrize("group", [False, True])
def test_few_voters_say_nothing_about_their_population(voters, stated, group):
    made = crowd([1.0], scale=0.01)
    few = replace(made, guarantee=replace(made.guarantee, voters=100 if group else voters))
    few = replace(few, facts={"group_voters": voters} if group else {})
    decision = decide(few, dilemma(few, [1.0], [0.0]))
    assert decision.choice == "A"  # The crowd's own preference is certain.
    assert decision.certainty > 0.99
    assert ((decision.population_certainty or 0) > 0.99) is stated
    assert ("fewer than 11 voters say nothing about the people" in decision.reason) is not stated


def test_intervals_of_single_weights_may_include_zero_where_a_dilemma_that_weighs_them_together_is_decided():
    """Two weights of 0.18 with deviations of 0.1, and their sum with one of 0.141."""
    made = replace(crowd([0.18, 0.18], doubt=np.zeros(2)), noise=Gaussian(0.1))
    assert made.no_leaning_sentence is not None
    assert "no weight by itself can be told from zero" in made.no_leaning_sentence
    decision = decide(made, dilemma(made, [1.0, 1.0], [0.0, 0.0]))
    assert decision.choice == "A"
    assert decision.certainty == pytest.approx(stats.norm.cdf(0.36 / math.hypot(0.1, 0.1)))


def test_the_population_is_less_certain_by_the_draw_of_its_voters():
    """Normal noise and normal sampling are one normal error, its variances added up."""
    made = replace(crowd([0.5, 0.2], sampling=np.diag([0.04, 0.01]), doubt=np.array([0.1, 0.0])), noise=Gaussian(0.3))
    decision = decide(made, dilemma(made, [1.0, 1.0], [0.0, 0.0]))
    margin = 0.5 + 0.2 - 0.1
    assert decision.certainty == pytest.approx(stats.norm.cdf(margin / math.hypot(0.3, 0.3)))
    assert decision.population_certainty == pytest.approx(stats.norm.cdf(margin / math.sqrt(0.18 + 0.05)))


def test_a_population_that_may_be_divided_along_one_direction_is_less_certain():
    """The larger of the two variances counts, along each dilemma."""
    made = crowd([0.5, 0.2], sampling=np.diag([0.04, 0.01]), divided=np.diag([0.02, 0.09]))
    made = replace(made, noise=Gaussian(0.3))
    for away, variance in (([1.0, 0.0], 0.04), ([0.0, 1.0], 0.09), ([1.0, 1.0], 0.11)):
        decision = decide(made, dilemma(made, away, [0.0, 0.0]))
        margin = np.array([0.5, 0.2]) @ away
        noise = 0.09 * float(np.square(away).sum())
        assert decision.certainty == pytest.approx(stats.norm.cdf(margin / math.sqrt(noise)))
        assert decision.population_certainty == pytest.approx(stats.norm.cdf(margin / math.sqrt(noise + variance)))


def test_each_number_is_told_with_what_it_is():
    made = crowd([1.0, -0.5], covariance=np.eye(2) / 10)
    two = decide(made, {"stay": {"x1": 1.0}, "swerve": {"x2": 1.0}}).sentences
    assert [sentence.split(":")[0] for sentence in two] == ["Probability", "Certainty", "Population certainty"]
    assert "share of voters who would choose “stay” over “swerve”" in two[0]
    three = decide(made, [{"x1": 1.0}, {"x2": 1.0}, {}]).sentences
    assert [sentence.split(":")[0] for sentence in three] == ["Certainty", "Population certainty"]


@pytest.mark.parametrize("certainty", [0.3, 1.0, math.nan])
def test_an_impossible_certainty_is_refused(certainty):
    made = release([1.0])
    with pytest.raises(CrowdveilError, match=r"at least 0\.5"):
        decide(made, dilemma(made, [1.0], [0.0]), certainty)


def test_a_dilemma_is_a_list_or_names_with_features():
    made = release([1.0, -0.5])
    asked = dilemma(made, [0.2, 1.0], [1.0, 0.0])
    plain = [{"x1": 0.2, "x2": 1.0}, {"x1": 1.0, "x2": 0}]
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
    assert repr(made).startswith(
        "<decision: the crowd chooses stay & wait; so clear a choice would be wrong in at most"
    )
    assert "<td>stay &amp; wait</td>" in made._repr_html_()
    unsure = decide(release([0.01, 0.0], scale=1.0), [{"x1": 1}, {}])
    assert "too close to call" in repr(unsure)
