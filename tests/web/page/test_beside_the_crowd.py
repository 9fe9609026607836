"""The voter beside the crowd: the page's numbers against scipy's, and counts against what a voter was told to do."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr

from crowdveil.decision import decide
from crowdveil.publish.release import release_for_experiments
from crowdveil.sources.simulated import simulate_crowd
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_session
from crowdveil.study.study import Study
from crowdveil.study.translations import words

THIRD = Path(__file__).parents[3] / "examples/indecision-study.toml"


def test_a_share_is_the_normal_distribution(modules):
    at = [-9.0, -3.3, -1.0, -1e-9, 0.0, 0.4, 2.0, 7.5]
    shares = modules.evaluate(
        "async (at) => { const { normalShare } = await import('/web/comparison.js'); return at.map(normalShare); }", at
    )
    np.testing.assert_allclose(shares, ndtr(at), rtol=1e-12, atol=1e-16)


COMPARE = """async ([poll, words, release]) => {
  const { compare } = await import('/web/comparison.js');
  return compare(poll, words, release, null);
}"""


def test_the_crowds_shares_are_those_of_two_outcomes_that_differ_in_one_factor(modules, address, service):
    (stored,) = service.store.releases.all("released")
    release = service.read(stored)
    study = release.study
    described = modules.request.get(f"{address}/api/polls/released").json()
    rows = modules.evaluate(COMPARE, [described, words(study, "fr"), release.as_dict()])
    said = words(study, "fr")["factors"]
    assert [(row["title"], row["poles"]) for row in rows] == [(f["title"], f["poles"]) for f in said.values()]
    crowd = dict(zip(said, rows, strict=True))

    lengths = {"number": 1, "intervention": 1, "passenger": 1}  # the others have somebody at either pole
    stated = dict(zip(said, ndtr(release.unknown.predictive_margins(study.pole_steps)).tolist(), strict=True))
    for name, (low, high) in zip(said, release.factor_intervals, strict=True):
        found = crowd[name]["crowd"]
        assert found["share"] == pytest.approx(stated[name], abs=1e-6)
        assert found["low"] == pytest.approx(min(ndtr(lengths.get(name, 2) * low), stated[name]), abs=1e-6)
        assert found["high"] == pytest.approx(max(ndtr(lengths.get(name, 2) * high), stated[name]), abs=1e-6)
    law = decide(release, {"obey": {"girl": 1, "legality": 1}, "break": {"girl": 1, "legality": -1}})
    towards = law.ranking[0].name == "obey"
    assert crowd["law"]["crowd"]["stated"][not towards] == pytest.approx(law.probability, abs=1e-6)


@pytest.mark.parametrize("study", [THIRD, "kidney"])
def test_the_crowds_shares_are_those_that_decisions_state(modules, study):
    """Also where people may toss a coin, and where little is known."""
    release = release_for_experiments(simulate_crowd(study, 40, seed=1), "rlcp", epsilon=0.5, seed=1)
    study = release.study
    steps = study.pole_steps
    factors = [{"name": f.name, "step": step} for f, step in zip(study.factors, steps.tolist(), strict=True)]
    file = release.as_dict()
    rows = modules.evaluate(COMPARE, [{"study": study.as_dict(), "factors": factors}, words(study, "en"), file])
    assert len(rows) == len(steps) > 1
    for row, step in zip(rows, steps, strict=True):
        low = np.array([feature.low for feature in study.features])
        more, less = low + np.maximum(step, 0) * study.units, low + np.maximum(-step, 0) * study.units
        named = {
            name: dict(zip(study.feature_names, side.tolist(), strict=True))
            for name, side in (("more", more), ("less", less))
        }
        told = decide(release, named)
        shares = told.probabilities or {
            told.ranking[0].name: told.probability,
            told.ranking[1].name: 1 - told.probability,
        }
        assert row["crowd"]["stated"] == pytest.approx([shares["more"], shares["less"]], abs=1e-9)
        line = modules.evaluate(WORDS, row)
        end = "more" if row["crowd"]["share"] >= 0.5 else "less"
        assert f" in {100 * shares[end]:.0f} of 100 " in line


def test_without_named_factors_the_features_are_compared(modules):
    study = Study.from_dict({key: given for key, given in load_study("kidney").as_dict().items() if key != "factors"})
    steps = [{"name": name, "step": step} for name, step in zip(study.feature_names, np.eye(5).tolist(), strict=True)]
    numbers = dict(zip(study.feature_names, [0.25, -0.5, 0.0, 1.0, -2.0], strict=True))
    factors = [{"name": name, "interval": [value - 0.1, value + 0.2]} for name, value in numbers.items()]
    release = {"parameter": numbers, "factors": factors}
    rows = modules.evaluate(COMPARE, [{"study": study.as_dict(), "factors": steps}, words(study, "en"), release])
    assert [row["title"] for row in rows] == [feature.label for feature in study.features]
    assert [row["poles"] for row in rows] == [None] * 5
    values = np.array(list(numbers.values()))
    for end, off in (("share", 0), ("low", -0.1), ("high", 0.2)):
        assert [row["crowd"][end] for row in rows] == pytest.approx(ndtr(values + off), abs=1e-12)


def test_of_a_factor_in_which_dilemmas_never_differ_nothing_is_said_of_the_crowd(modules):
    study = load_study("kidney")
    steps = [{"name": f.name, "step": step} for f, step in zip(study.factors, np.eye(5).tolist(), strict=True)]
    factors = [{"name": f.name, "interval": [0, 0] if k == 2 else [-0.1, 0.1]} for k, f in enumerate(study.factors)]
    release = {"parameter": dict.fromkeys(study.feature_names, 0.0), "factors": factors}
    rows = modules.evaluate(COMPARE, [{"study": study.as_dict(), "factors": steps}, words(study, "en"), release])
    assert [row["crowd"] is None for row in rows] == [False, False, True, False, False]


WORDS = """async (row) => {
  const { rowWords } = await import('/web/factor-picture.js');
  const { Language } = await import('/web/language.js');
  const words = { row_crowd: '{end} in {crowd} of 100 ({low} to {high})', less: 'less', more: 'more' };
  return rowWords(row, new Language('en', words))[0];
}"""


COUNT = """async ([study, dilemmas, choices]) => {
  const { countChoices } = await import('/web/counting.js');
  return countChoices(study, dilemmas, choices);
}"""


def dilemma(study, left, right):
    """Return two groups, by how many there are of each."""
    return {
        "left": [left.get(name, 0) for name in study.feature_names],
        "right": [right.get(name, 0) for name in study.feature_names],
    }


def counted(modules, study, dilemmas, choices):
    return modules.evaluate(COUNT, [study.as_dict(), dilemmas, choices])


def test_whoever_always_spares_the_larger_group_is_told_so(modules):
    """In whole sessions: as often as the groups differ in number, however they differ beside that."""
    study, rng = load_study("moral-machine"), np.random.default_rng(3)
    characters = [k for k, feature in enumerate(study.features) if feature.part == "characters"]
    for _ in range(20):
        dilemmas = [{a.name: list(a.values) for a in d.alternatives} for d in draw_session(study, rng)]
        sizes = [[sum(d[side][k] for k in characters) for side in ("left", "right")] for d in dilemmas]
        choices = ["left" if left > right else "right" for left, right in sizes]
        unequal = sum(left != right for left, right in sizes)
        number = counted(modules, study, dilemmas, choices)["factors"]["number"]
        assert number == {"times": unequal, "of": unequal}
        assert unequal > 0


@pytest.mark.parametrize(
    ("left", "right", "shown"),
    [
        ({"man": 3}, {"man": 1}, {"number": "left"}),  # more people, and nothing about pets or men
        ({"dog": 2}, {"woman": 2}, {"species": "right"}),
        ({"man": 1}, {"old_man": 1}, {"age": "left"}),  # as many on either side, one of them old
        ({"girl": 2}, {"old_woman": 2}, {"age": "left"}),
        ({"boy": 1, "girl": 1}, {"man": 1, "woman": 1}, {"age": "left"}),
        ({"man": 2}, {"woman": 2}, {"gender": "right"}),
        ({"large_man": 1}, {"male_athlete": 1}, {"fitness": "right"}),
        ({"female_doctor": 1}, {"homeless": 1}, {"status": "left"}),  # and not about women or men
        ({"man": 1}, {"pregnant": 1}, {}),  # status, or gender?
        ({"man": 1, "legality": 1}, {"man": 1, "legality": -1}, {"law": "left"}),
        ({"man": 1, "barrier": 1}, {"man": 1, "intervention": 1}, {"passenger": "left", "intervention": "right"}),
        ({"man": 1, "woman": 1}, {"man": 1, "woman": 1}, {}),
    ],
)
def test_a_dilemma_counts_for_the_factors_that_it_shows(modules, left, right, shown):
    study = load_study("moral-machine")
    for choice in ("left", "right"):
        factors = counted(modules, study, [dilemma(study, left, right)], [choice])["factors"]
        expected = {name: {"times": int(side == choice), "of": 1} for name, side in shown.items()}
        assert {name: count for name, count in factors.items() if count["of"]} == expected


def test_the_most_and_the_least_spared_are_those_who_were(modules):
    study = load_study("moral-machine")
    dilemmas = [
        dilemma(study, {"cat": 2}, {"man": 1, "girl": 1}),
        dilemma(study, {"girl": 1, "man": 1}, {"man": 1, "dog": 1}),
        dilemma(study, {"cat": 1}, {"dog": 1}),
    ]
    found = counted(modules, study, dilemmas, ["right", "left", "right"])["characters"]
    assert found == {"most": {"name": "girl", "times": 2, "of": 2}, "least": {"name": "cat", "times": 0, "of": 3}}


def test_a_study_without_named_factors_is_counted_by_its_features(modules):
    study = load_study("synthetic-4")
    rows = [{"left": [0.5, 0, 0, -1], "right": [0.25, 0, 1, -1]}, {"left": [1, 0, 0, 0], "right": [0, 0, 0, 2]}]
    found = counted(modules, study, rows, ["left", "left"])
    assert found["characters"] is None
    assert [found["factors"][name] for name in study.feature_names] == [
        {"times": 2, "of": 2},
        {"times": 0, "of": 0},
        {"times": 0, "of": 1},
        {"times": 0, "of": 1},
    ]
