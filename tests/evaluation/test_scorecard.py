"""A release judged by ballots: scores, limit, error bars, all by factor; against what SciPy and a closed form say."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import crowdveil as cv
from crowdveil.ballots.ballots import Ballots
from crowdveil.decision import decide
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS, Guarantee
from crowdveil.privacy.noise.distribution import Gaussian
from crowdveil.privacy.uncertainty import Uncertainty
from crowdveil.releases import Release
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.features import Factor

TRUTH = np.array([0.9, -0.4, 0.0])


def a_release(parameter, deviation=0.1, study=None):
    study = synthetic_study(len(parameter)) if study is None else study
    guarantee = Guarantee(PARADIGMS["vlcp"], Epsilon(1), Epsilon(1), 2.0, 40)
    noise = Gaussian(deviation)
    return Release(study, np.array(parameter), guarantee, "algorithm-1", noise, "test", True, {}, None, "0")


def a_crowd(study, seed=1, voters=300, preference=TRUTH):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 8, voters)
    dilemmas = rng.normal(size=(counts.sum(), len(preference)))
    choices = np.where(rng.normal(size=len(dilemmas)) < dilemmas @ preference, 1, -1)
    return Ballots(study, np.concatenate([[0], np.cumsum(counts)]), dilemmas, choices.astype(np.int8))


@pytest.fixture(scope="module")
def crowd():
    return a_crowd(synthetic_study(3))


def test_scores_by_hand(crowd):
    release = a_release([0.5, -0.5, 0.2])
    found = cv.evaluate(release, crowd, weighting="choices")
    stated = stats.norm.cdf(crowd.dilemmas @ release.parameter)
    chosen = crowd.choices > 0
    assert found.released.choices == crowd.records
    assert found.released.voters == crowd.voters
    assert found.released.share_predicted.estimate == pytest.approx(np.mean((stated > 0.5) == chosen))
    assert found.released.brier.estimate == pytest.approx(np.mean((stated - chosen) ** 2))
    once = cv.evaluate(release, crowd)
    by_voter = [np.mean(part) for part in np.split((stated - chosen) ** 2, crowd.offsets[1:-1])]
    assert once.released.brier.estimate == pytest.approx(np.mean(by_voter))


def test_the_stated_probability_is_the_one_that_a_decision_states():
    study = load_study("kidney")
    release = a_release([0.4, -0.3, 0.2, 0.5, -0.1], study=study)
    nothing, each = np.zeros(5), np.eye(5)
    unknown = Uncertainty(each, np.zeros((5, 0)), release.parameter, 0.04 * each, release.parameter, 0 * each, nothing)
    release = replace(release, unknown=unknown)
    sides = [{"life_years_gained": 20, "dependents": 1}, {"life_years_gained": 10, "dependents": 0}]
    names = study.feature_names
    sides = [{name: side.get(name, study.features[k].low) for k, name in enumerate(names)} for side in sides]
    left, right = ([[side[name] for name in names]] for side in sides)
    decision = decide(release, {"left": sides[0], "right": sides[1]})
    ballots = Ballots.from_arrays(study, ["ann"], left, right, [1])
    found = cv.evaluate(release, ballots)
    expected = decision.probability if decision.ranking[0].name == "left" else 1 - decision.probability
    assert found.released.log_loss.estimate == pytest.approx(-math.log(expected))


@pytest.mark.parametrize("weighting", ["voters", "choices"])
def test_the_limit_is_honest_about_the_crowd_that_it_was_fitted_to(crowd, weighting):
    """At a maximum of the likelihood, its derivative along the preference is zero: the calibration slope is 1."""
    found = cv.evaluate(a_release([0.0, 0.0, 0.0]), crowd, weighting=weighting)
    assert found.limit.slope.estimate == pytest.approx(1, abs=1e-6)
    logs = stats.norm.logcdf(crowd.differences @ cv.crowd_preference(crowd, weighting=weighting).preference)
    of_voters = np.add.reduceat(logs, crowd.offsets[:-1]) / crowd.counts
    assert found.limit.log_loss.estimate == pytest.approx(-np.mean(of_voters if weighting == "voters" else logs))
    # A release that knows nothing is a coin.
    assert found.released.log_loss.estimate == pytest.approx(math.log(2))
    assert found.released.slope is None


def test_a_release_half_as_long_is_too_timid(crowd):
    exact = cv.crowd_preference(crowd).preference
    found = cv.evaluate(a_release(exact / 2), crowd)
    assert found.released.slope.estimate == pytest.approx(2, abs=1e-6)
    assert found.released.share_predicted == found.limit.share_predicted
    assert found.released.overstatement.estimate < 0


def test_bars_cover_what_lies_inside(crowd):
    exact = cv.crowd_preference(crowd)
    bar = 0.1 * stats.norm.ppf(0.975)
    found = cv.evaluate(a_release(exact.preference + bar * np.array([0.99, -1.01, 0.0])), crowd)
    assert [one.inside for one in found.features] == [True, False, True]
    assert found.feature_coverage == found.factor_coverage == (2, 3)
    assert [one.bar for one in found.features] == pytest.approx([bar] * 3)
    assert [one.exact for one in found.features] == pytest.approx(exact.preference)
    assert [one.sampling_error for one in found.features] == pytest.approx(exact.standard_errors)


def test_factors_have_their_own_pairs_bars_and_values(crowd):
    both = Factor("both", "Both", ("less", "more"), {"x1": 1, "x2": 2})
    third = Factor("third", "Third", ("less", "more"), {"x3": 1})
    study = replace(synthetic_study(3), named_factors=(both, third))
    dilemmas = crowd.dilemmas.copy()
    dilemmas[::2, 2] = 0
    ballots = Ballots(study, crowd.offsets, dilemmas, crowd.choices)
    release = a_release([0.5, -0.5, 0.2], study=study)
    found = cv.evaluate(release, ballots, weighting="choices")
    assert [one.coverage.title for one in found.factors] == ["Both", "Third"]
    assert found.factors[1].released.choices == crowd.records // 2
    stated, chosen = stats.norm.cdf(dilemmas @ release.parameter), crowd.choices > 0
    expected = np.mean(((stated - chosen) ** 2)[1::2])
    assert found.factors[1].released.brier.estimate == pytest.approx(expected)
    # The factor (1, 2) of beta = (.5, -.5) is (.5 - 1) / 5, and independent noise of .1 becomes .1 / sqrt(5) there.
    value = found.factors[0].coverage
    assert value.released == pytest.approx(-0.1)
    assert value.bar == pytest.approx(0.1 / math.sqrt(5) * stats.norm.ppf(0.975), rel=1e-5)
    along = Ballots(synthetic_study(2), crowd.offsets, dilemmas @ [[1, 0], [2, 0], [0, 1]], crowd.choices)
    assert value.exact == pytest.approx(cv.crowd_preference(along, weighting="choices").preference[0])


def test_what_the_choices_do_not_tell_is_not_judged(crowd):
    dilemmas = crowd.dilemmas * [1, 0, 1]
    found = cv.evaluate(a_release([0.5, -0.5, 0.2]), Ballots(crowd.study, crowd.offsets, dilemmas, crowd.choices))
    second = found.factors[1]
    assert (second.coverage.exact, second.coverage.inside, second.released, second.limit) == (None, None, None, None)
    assert found.factor_coverage[1] == 2
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["factors"]["x2"]["value"]["exact"] is None


def test_of_one_voter_intervals_are_all_that_is_possible(crowd):
    found = cv.evaluate(a_release([0.5, -0.5, 0.2]), crowd[:1])
    data = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    told = data["scores"]["release"]
    assert (told["brier"]["low"], told["brier"]["high"]) == (0, 1)
    assert (told["log_loss"]["low"], told["log_loss"]["high"]) == (0, None)


def test_ties_are_left_out(crowd):
    choices = crowd.choices.copy()
    choices[: crowd.offsets[5]] = 0
    release = a_release([0.5, -0.5, 0.2])
    tied = cv.evaluate(release, Ballots(crowd.study, crowd.offsets, crowd.dilemmas, choices))
    assert tied.as_dict() == cv.evaluate(release, crowd[5:]).as_dict()


def test_a_release_of_another_study_is_refused(crowd):
    with pytest.raises(CrowdveilError, match="ballots of its own study"):
        cv.evaluate(a_release([0.5, -0.5]), crowd)


def test_it_shows_itself(crowd, tmp_path):
    found = cv.evaluate(a_release([0.5, -0.5, 0.2]), crowd)
    assert repr(found).startswith(f"<evaluation by {crowd.records:,} choices of 300 voters: 0.")
    shown = found._repr_html_()
    for words in ("choices predicted", "calibration slope", "0.250", "protect nobody"):
        assert words in shown
    found.plot(tmp_path / "found.svg")
    drawn = (tmp_path / "found.svg").read_text()
    for words in ("Calibration, slope", "Error bars cover", "exact", "honest"):
        assert words in drawn
    found.plot(str(tmp_path / "found.png"))
    assert (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(CrowdveilError, match=r"must end in \.png or \.svg"):
        found.plot(tmp_path / "found.pdf")


def test_a_picture_says_which_characters_it_cannot_draw(tmp_path):
    """matplotlib's own font has no Chinese; the text of an SVG is drawn by whoever shows it."""
    study = replace(synthetic_study(1), named_factors=(Factor("x", "经验经", ("less", "more"), {"x1": 1}),))
    found = cv.evaluate(a_release([0.5], study=study), a_crowd(study, voters=30, preference=TRUTH[:1]))
    with pytest.warns(UserWarning, match="no font of matplotlib has 经验: boxes .* write an .svg"):
        found.plot(tmp_path / "found.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.plot(tmp_path / "found.svg")
    assert "经验" in (tmp_path / "found.svg").read_text(encoding="utf-8")


def test_every_factor_has_its_curve(crowd):
    dilemmas = crowd.dilemmas.copy()
    dilemmas[::2, 2] = 0
    found = cv.evaluate(a_release([0.5, -0.5, 0.2]), Ballots(crowd.study, crowd.offsets, dilemmas, crowd.choices))
    assert sum(point.choices for point in found.factors[2].curve) == crowd.records // 2
    assert found.factors[0].curve == found.curve
