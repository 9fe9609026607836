"""Models beside the crowd: agreement, yardstick and people by hand and by the law; coverage; the real models."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from tests.real_data import MODELS, MORAL_MACHINE, with_moral_machine

import crowdveil as cv
from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS, Guarantee
from crowdveil.privacy.noise.distribution import Gaussian
from crowdveil.privacy.uncertainty import Uncertainty
from crowdveil.releases import Release
from crowdveil.study.bundled import load_study, synthetic_study

SOME = 1_500
CROWD = np.array([0.9, -0.4, 0.2])


def a_release(center, deviation=0.01, shrink=1.0):
    """A release whose errors are independent and normal along the features."""
    d = len(center)
    noise, nothing = Gaussian(deviation), np.zeros((d, d))
    guarantee = Guarantee(PARADIGMS["vlcp"], Epsilon(1), Epsilon(1), 2.0, 40)
    covariance = shrink * deviation**2 * np.eye(d)
    unknown = Uncertainty(
        np.eye(d), np.zeros((d, 0)), shrink * np.array(center), covariance, np.array(center), nothing, np.zeros(d)
    )
    return Release(
        synthetic_study(d), shrink * np.array(center), guarantee, "test", noise, "test", True, {}, None, "0", unknown
    )


def some_answers(choose, dilemmas=400, seed=1, models=("m",)):
    rng = np.random.default_rng(seed)
    shown = rng.normal(size=(dilemmas, 3))
    choices = np.concatenate([choose(shown) for _ in models]).astype(np.int8)
    offsets = np.arange(len(models) + 1) * dilemmas
    names = pl.Series(models).to_arrow().cast("string")
    return Ballots(synthetic_study(3), offsets, np.concatenate([shown] * len(models)), choices, names)


def test_a_model_that_chooses_as_the_crowd_agrees_everywhere():
    answers = some_answers(lambda shown: np.sign(shown @ CROWD))
    (found,) = cv.align(a_release(CROWD), answers).models
    margins = np.abs(answers.dilemmas @ CROWD)
    assert found.overall.share.estimate == 1
    # Wilson's interval of 400 of 400, and of the bound on wrong choices.
    assert found.overall.share.low == pytest.approx(400 / (400 + stats.norm.ppf(0.975) ** 2) - found.overall.wrong)
    assert 0 < found.overall.wrong < 0.03
    assert found.overall.one_person == pytest.approx(stats.norm.cdf(margins).mean(), abs=1e-3)
    assert found.people.estimate == pytest.approx(stats.norm.cdf(margins).mean())
    assert found.sure.share.estimate == 1
    assert found.sure.answers + found.unsure.answers == 400
    # The noise along a difference is normal: the crowd is sure where its margin is so many deviations from zero.
    deviations = margins / (0.01 * np.linalg.norm(answers.dilemmas, axis=1))
    assert found.sure.answers == (deviations >= stats.norm.ppf(0.9)).sum()


def test_agreement_and_effects_by_hand():
    """Four dilemmas, one of them asked twice with the sides turned: three draws and one pair that is one draw."""
    shown = np.array([[2.0, 0, 0], [-2.0, 0, 0], [0, 2.0, 0], [0, 0, 2.0], [1.0, 1.0, 0]])
    answers = Ballots(synthetic_study(3), np.array([0, 5]), shown, np.array([1, -1, 1, 1, 0], np.int8))
    (found,) = cv.align(a_release(CROWD), answers).models
    assert (found.answers, found.refused, found.overall.answers) == (5, 1, 4)
    assert found.overall.share.estimate == 3 / 4  # the crowd prefers less of the second feature
    first, second, third = found.factors
    assert (first.answers, second.answers, third.answers) == (2, 1, 1)
    assert first.model_effect.estimate == 1
    assert (first.model_effect.low, first.model_effect.high) == (-1, 1)  # one draw has no spread
    assert second.crowd_effect.estimate == pytest.approx(2 * stats.norm.cdf(-0.8) - 1)
    assert third.crowd_effect.estimate == pytest.approx(2 * stats.norm.cdf(0.4) - 1)
    shares = stats.norm.cdf([1.8, 1.8, -0.8, 0.4])
    assert found.people.estimate == pytest.approx(shares.mean())
    json.dumps(found.as_dict(), allow_nan=False)


def test_the_effect_of_a_model_that_always_answers_alike_has_an_interval():
    """Wilson's interval of a share of 14 of 14, as an effect; of 0 of 14, its mirror image."""
    shown = np.eye(3)[[0] * 14 + [1] * 14] * np.arange(1, 29)[:, None]
    answers = Ballots(synthetic_study(3), np.array([0, 28]), shown, np.repeat([1, -1], 14).astype(np.int8))
    first, second, _ = cv.align(a_release(CROWD), answers).models[0].factors
    low = 2 * 14 / (14 + stats.norm.ppf(0.975) ** 2) - 1
    assert (first.model_effect.estimate, second.model_effect.estimate) == (1, -1)
    assert (first.model_effect.low, first.model_effect.high) == pytest.approx((low, 1))
    assert (second.model_effect.low, second.model_effect.high) == pytest.approx((-1, -low))


def test_answers_to_one_dilemma_are_one_draw():
    """Every dilemma asked four times has the same interval as asked once."""
    rng = np.random.default_rng(5)
    coin = rng.choice([-1, 1], 300)
    once = some_answers(lambda shown: coin, dilemmas=300)
    turned = np.concatenate([once.dilemmas, -once.dilemmas] * 2)
    again = Ballots(once.study, np.array([0, 1200]), turned, np.concatenate([coin, -coin] * 2).astype(np.int8))
    release = a_release(CROWD)
    (single,), (repeated,) = (cv.align(release, answers).models for answers in (once, again))
    assert repeated.overall.share.low == pytest.approx(single.overall.share.low, abs=1e-3)
    assert repeated.people.high == pytest.approx(single.people.high, abs=1e-9)


def test_models_are_ranked_and_those_without_a_choice_are_named():
    shown = some_answers(lambda shown: np.sign(shown @ CROWD)).dilemmas
    choices = np.concatenate([np.sign(shown @ -CROWD), np.sign(shown @ CROWD), np.zeros(len(shown))]).astype(np.int8)
    names = pl.Series(["against", "with", "silent"]).to_arrow().cast("string")
    answers = Ballots(synthetic_study(3), np.arange(4) * len(shown), np.concatenate([shown] * 3), choices, names)
    found = cv.align(a_release(CROWD), answers)
    assert [one.model for one in found.models] == ["with", "against"]
    assert found.without_choice == ("silent",)
    assert found.models[1].overall.share.estimate == 0
    assert found.models[0].people.estimate == pytest.approx(1 - found.models[1].people.estimate)
    assert repr(found).startswith("<alignment with ")
    assert "with" in found._repr_html_()


@pytest.mark.slow
@pytest.mark.parametrize("relation", [0.0, 0.5, 1.0])
def test_intervals_cover_whatever_the_model_has_to_do_with_the_crowd(relation):
    """Over crowds, errors of the release and dilemmas, agreement and people are both covered. The seed is fixed."""
    rng = np.random.default_rng(11)
    covered = np.zeros(2)
    everything = rng.normal(size=(20_000, 3))
    for _ in range(200):
        truth, own = rng.normal(0, 0.6, 3), rng.normal(0, 0.6, 3)
        model = relation * truth + (1 - relation) * own
        error, prior = 0.15, 0.6**2
        shrink = prior / (prior + error**2)
        release = a_release(truth + rng.normal(0, error, 3), error, shrink)
        answers = some_answers(lambda shown, model=model: np.sign(shown @ model), 300, int(rng.integers(1 << 30)))
        (found,) = cv.align(release, answers).models
        chosen = np.sign(everything @ model)
        agreement = np.mean(chosen == np.sign(everything @ truth))
        people = stats.norm.cdf(chosen * (everything @ truth)).mean()
        covered += [
            found.overall.share.low <= agreement <= found.overall.share.high,
            found.people.low <= people <= found.people.high,
        ]
    assert (covered / 200 >= 0.93).all(), covered / 200


def test_a_picture_shows_models_and_crowd(tmp_path):
    found = cv.align(a_release(CROWD), some_answers(lambda shown: np.sign(shown[:, 0]), models=("one", "two")))
    found.plot(tmp_path / "align.svg")
    drawn = (tmp_path / "align.svg").read_text()
    for words in ("the crowd", "one", "two", "a coin", "Effects", "Preferences"):
        assert words in drawn
    with pytest.raises(CrowdveilError, match=r"must end in \.png or \.svg"):
        found.plot(tmp_path / "align.pdf")


def test_what_cannot_be_compared_is_refused():
    answers = some_answers(lambda shown: np.sign(shown @ CROWD))
    with pytest.raises(CrowdveilError, match="read answers to its dilemmas"):
        cv.align(replace(a_release(CROWD), study=load_study("kidney")), answers)
    with pytest.raises(CrowdveilError, match="paper's society"):
        cv.align(replace(a_release(CROWD), unknown=None), answers)
    with pytest.raises(CrowdveilError, match="certainty asked for"):
        cv.align(a_release(CROWD), answers, certainty=2)
    with pytest.raises(CrowdveilError, match="every answer is a refusal"):
        cv.align(a_release(CROWD), some_answers(lambda shown: np.zeros(len(shown))))


@with_moral_machine
@pytest.mark.skipif(not MODELS.exists(), reason="the models' answers are not here")
def test_the_share_of_people_is_true_of_the_people_who_were_asked_the_same():
    """Each dilemma of the models was answered by a person: how often the two chose alike needs no release."""
    people = pl.read_csv(MORAL_MACHINE, columns=["ResponseID", "Intervention", "Saved"])
    both = pl.read_csv(MODELS).join(people, on=("ResponseID", "Intervention"))
    ballots = cv.read_moral_machine(MORAL_MACHINE)
    release = cv.release_for_experiments(ballots, "rlcp", epsilon=1, seed=3)
    answers = cv.read_answers(MODELS, release.study, dilemmas=MORAL_MACHINE)
    assert dict(zip(answers.voter_names(), answers.counts.tolist(), strict=True)) == {
        model: both[model].count() // 2 for model in both.columns[2:-1]
    }
    first = Ballots(
        release.study,
        np.arange(4) * SOME,
        np.concatenate([answers[k : k + 1].dilemmas[:SOME] for k in range(3)]),
        np.concatenate([answers[k : k + 1].choices[:SOME] for k in range(3)]),
        answers.names[:3],
    )
    found = cv.align(release, first)
    assert [one.model for one in found.models] == ["gpt4turbo", "gpt4o", "gpt35turbo"]
    for one in found.models:
        alike = pl.col(one.model) == pl.col("Saved")
        share = (
            both.filter(pl.col("Intervention") == 0, pl.col(one.model).is_not_null()).head(SOME).select(alike.mean())
        )
        assert one.people.low <= share.item() <= one.people.high
