"""The voter beside the crowd: the page's numbers against scipy's, and counts against what a voter was told to do."""

import numpy as np
import pytest
from scipy.special import ndtr

from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_session
from crowdveil.study.study import Study
from crowdveil.study.translations import words


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
    study, beta = release.study, dict(zip(release.study.feature_names, release.parameter, strict=True))
    described = modules.request.get(f"{address}/api/polls/released").json()
    rows = modules.evaluate(COMPARE, [described, words(study, "fr"), release.as_dict()])
    said = words(study, "fr")["factors"]
    assert [(row["title"], row["poles"]) for row in rows] == [(f["title"], f["poles"]) for f in said.values()]
    crowd = dict(zip(said, rows, strict=True))

    theta, *_ = np.linalg.lstsq(study.factor_matrix, release.parameter)
    lengths = {"number": 1, "intervention": 1, "passenger": 1}  # the others have somebody at either pole
    for k, name in enumerate(said):
        assert crowd[name]["crowd"]["share"] == pytest.approx(ndtr(lengths.get(name, 2) * theta[k]), abs=1e-6)
    assert crowd["law"]["crowd"]["share"] == pytest.approx(ndtr(2 * beta["legality"]), abs=1e-6)
    for name, (low, high) in zip(said, release.factor_intervals, strict=True):
        assert crowd[name]["crowd"]["low"] == pytest.approx(ndtr(lengths.get(name, 2) * low), abs=1e-6)
        assert crowd[name]["crowd"]["high"] == pytest.approx(ndtr(lengths.get(name, 2) * high), abs=1e-6)
    pairs = [("woman", "man"), ("old_woman", "old_man"), ("girl", "boy"), ("large_woman", "large_man")]
    pairs += [(f"female_{who}", f"male_{who}") for who in ("executive", "athlete", "doctor")]
    gender = np.mean([beta[woman] - beta[man] for woman, man in pairs])
    assert crowd["gender"]["crowd"]["share"] == pytest.approx(ndtr(gender), abs=1e-6)


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
