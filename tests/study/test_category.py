"""Categories: words without an order, of which an alternative has one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crowdveil.ballots.ballots import Ballots, concatenate
from crowdveil.decision import decide
from crowdveil.errors import CrowdveilError
from crowdveil.protocol.submission import check_ballot, read_session, write_ballot, write_session
from crowdveil.publish.release import release_for_experiments
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_dilemmas, draw_session, has_plenty
from crowdveil.study.study import Study

pytestmark = pytest.mark.usefixtures("few_crowds")

PLAIN: dict[str, Any] = {
    "name": "lunch",
    "drawing": {"method": "independent", "dilemmas": 4},
    "features": [{"name": "price", "low": 0, "high": 9, "levels": [1, 2]}],
    "categories": [
        {"name": "soup", "levels": ["leek", "pea", "fish"], "words": {"pea": "pea soup"}, "leans": {"pea": 0.3}},
        {"name": "bread", "label": "kind of bread", "levels": ["rye", "wheat"]},
    ],
}
LUNCH = Study.from_dict(PLAIN)


def test_a_category_may_have_a_picture_and_each_level_its_own() -> None:
    soup = {**PLAIN["categories"][0], "icon": "food", "icons": {"fish": "🐟"}}
    study = Study.from_dict({**PLAIN, "categories": [soup, PLAIN["categories"][1]]})
    assert [feature.icon for feature in study.features] == ["", "food", "food", "🐟", "", ""]


def test_each_level_is_a_feature_from_0_to_1() -> None:
    assert LUNCH.feature_names == ("price", "soup-leek", "soup-pea", "soup-fish", "bread-rye", "bread-wheat")
    assert [feature.label for feature in LUNCH.features[1:3]] == ["soup: leek", "soup: pea soup"]
    assert [feature.lean for feature in LUNCH.features[1:4]] == [-0.1, 0.2, -0.1]
    assert [attribute.name for attribute in LUNCH.attributes] == ["price", "soup", "bread"]
    assert LUNCH.factors[2].poles == ("other soup", "pea soup")
    assert pytest.approx(np.sqrt(81 + 2 + 2)) == LUNCH.record_bound


def test_a_study_reads_back_what_it_wrote() -> None:
    again = Study.from_dict(LUNCH.as_dict())
    assert again == LUNCH
    assert again.fingerprint == LUNCH.fingerprint
    assert Study.from_dict({**LUNCH.as_dict(), "categories": []}).fingerprint != LUNCH.fingerprint


def test_an_alternative_names_its_levels_in_words() -> None:
    one = LUNCH.alternative({"price": 2, "soup": " PEA", "bread": "rye"}, "A")
    assert one.values == (2, 0, 1, 0, 1, 0)
    assert LUNCH.describe(one) == "price: 2, pea soup, rye"
    assert LUNCH.plain_values(one.values) == {"price": 2, "soup": "pea", "bread": "rye"}
    assert LUNCH.alternative({"price": 1}, "B").values == (1, 0, 0, 0, 0, 0)
    assert LUNCH.alternative(dict(zip(LUNCH.feature_names, one.values, strict=True)), "A") == one


@pytest.mark.parametrize(
    ("dilemma", "message"),
    [
        ([{"soup": "beet"}, {"soup": "pea"}], "'A': soup must be one of leek, pea, fish, got 'beet'"),
        ([{"soup": 3}, {"soup": "pea"}], "soup must be one of leek, pea, fish, got 3"),
        ([{"soup": "pea"}, {"price": 1}], "'B': soup is missing, and others have it: give one of leek, pea, fish"),
        ([{"soup-pea": 1, "soup-leek": 1}, {"soup": "pea"}], "'A': soup must be one of its levels"),
        ([{"soup-pea": 0.5}, {"soup": "pea"}], "'A': soup must be one of its levels"),
        ([{"sopu": "pea"}, {"soup": "pea"}], "has no feature 'sopu'; did you mean soup?"),
        ([{"x": "pea"}, {"soup": "pea"}], "it has: price, soup, bread"),
    ],
)
def test_a_wrong_level_is_one_clear_line(dilemma: Any, message: str) -> None:
    with pytest.raises(CrowdveilError) as error:
        LUNCH.dilemma([{"price": 1, **alternative} for alternative in dilemma])
    assert message in str(error.value)


def with_category(**change: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["categories"][0].update(change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_category(levels=["pea"]), "needs two or more different levels"),
        (with_category(levels=["pea", "PEA"]), "needs two or more different levels"),
        (with_category(levels=["pea", "a b"]), "words of letters, digits, _ and - only, got 'a b'"),
        (with_category(levels=["pea", 3]), r"levels is \('pea', 3\): give a tuple with a text in each place"),
        (with_category(levels="pea"), "'levels' must be a list"),
        (with_category(words={"beet": "x"}), "'beet' is not one of its levels leek, pea, fish"),
        (with_category(words={"pea": ""}), "'pea' must be a text that is not empty"),
        (with_category(leans={"pea": "x"}), "'pea' must be a number"),
        (with_category(colour=1), "unknown setting 'colour'; known are icon, icons, label, leans, levels"),
        (with_category(part="meal"), "has part 'meal'"),
        (with_category(name="price"), "uses the name 'price' for a category and for something else"),
        (
            with_category(name="bread", words={}, leans={}),
            "uses the name 'bread' for a category and for something else",
        ),
        (lambda d: d.update(categories=["soup"]), r"each category must be a table \(\[\[categories\]\]\)"),
        (lambda d: d["drawing"].update(method="gaussian"), "drawn by the method 'independent' only"),
        (
            lambda d: d["features"].extend(
                {"name": f"soup-{level}", "low": 0, "high": 2, "levels": [0]} for level in ("leek", "pea", "fish")
            ),
            "leave out words",
        ),
    ],
)
def test_a_category_that_does_not_fit_is_refused_by_name(change: Callable[[dict[str, Any]], Any], message: str) -> None:
    data = copy.deepcopy(PLAIN)
    change(data)
    with pytest.raises(CrowdveilError, match=message):
        Study.from_dict(data)


def test_levels_must_be_features_from_0_to_1() -> None:
    data = LUNCH.as_dict()
    data["features"][1]["high"] = 2
    with pytest.raises(CrowdveilError, match="the level soup-leek of a category must be a feature from 0 to 1"):
        Study.from_dict(data)


def test_a_drawn_alternative_has_one_level_of_each_category_and_all_levels_come_up() -> None:
    left, right = draw_dilemmas(LUNCH, 1000, np.random.default_rng(0))
    for columns in LUNCH.level_columns:
        for side in (left, right):
            assert (side[:, columns].sum(axis=1) == 1).all()
            # 4,000 draws: a share is off by more than 0.05 with a probability below 1e-8 (six standard deviations).
            assert side[:, columns].mean(axis=0) == pytest.approx([1 / len(columns)] * len(columns), abs=0.05)
    assert (left != right).any(axis=1).all()


def test_plenty_counts_levels_and_not_features() -> None:
    few = {**PLAIN, "features": [], "categories": PLAIN["categories"][:1], "drawing": {"method": "independent"}}
    # Three soups make three pairs.
    for dilemmas, plenty in ((1, True), (2, False)):
        study = Study.from_dict({**few, "drawing": {"method": "independent", "dilemmas": dilemmas}})
        assert has_plenty(study) is plenty


def test_a_session_travels_and_a_server_cannot_show_half_a_level() -> None:
    drawn = draw_session(LUNCH, np.random.default_rng(1))
    sent = write_session(drawn)
    assert read_session(LUNCH, sent) == drawn
    check_ballot({k: v for k, v in write_ballot(LUNCH, drawn, ["left"] * 4, {}).items() if k != "about"}, LUNCH)
    sent["dilemmas"][0]["left"][1:4] = [0, 0, 0]
    with pytest.raises(CrowdveilError, match="the server shows no single level for soup, which study lunch never"):
        read_session(LUNCH, sent)
    ballot = write_ballot(LUNCH, drawn, ["left"] * 4, {})
    ballot["records"][0]["left"][1:4] = [1, 1, 0]
    del ballot["about"]
    with pytest.raises(CrowdveilError, match="soup must be exactly one of its levels"):
        check_ballot(ballot, LUNCH)


def test_arrays_need_one_level_too() -> None:
    good = [[1, 1, 0, 0, 1, 0]]
    with pytest.raises(CrowdveilError, match=r"right, row 1: bread needs a 1 for exactly one of its levels"):
        Ballots.from_arrays(LUNCH, ["ann"], good, [[1, 1, 0, 0, 0, 0]], [1])


@pytest.mark.parametrize("paradigm", ["vlcp", "rlcp", "alcp", "vldp", "rldp", "aldp"])
def test_effects_of_levels_sum_to_zero_and_decide(paradigm: str) -> None:
    crowd = concatenate(LUNCH, list(simulated_batches(LUNCH, 2000, np.random.default_rng(3))))
    release = release_for_experiments(crowd, paradigm, epsilon=10, seed=4)
    for columns in LUNCH.level_columns:
        # Axes are integers with 20 binary digits.
        assert abs(release.parameter[columns].sum()) < 1e-4
    pea, leek = ({"price": 1, "soup": soup} for soup in ("pea", "leek"))
    assert decide(release, [pea, leek], certainty=0.5).ranking[0].name == "A"


def test_fairness_is_eight_categories_whose_factors_are_contrasts() -> None:
    study = load_study("fairness")
    assert [len(category.levels) for category in study.categories] == [3, 3, 3, 9, 2, 4, 4, 3]
    assert len(study.attributes) == 8
    for columns in study.level_columns:
        assert (study.factor_matrix[columns].sum(axis=0) == 0).all()
        assert abs(sum(study.features[k].lean for k in columns)) < 1e-5
    steps = dict(zip((factor.name for factor in study.factors), study.pole_steps, strict=True))
    # One of the three against one of the other five, on average.
    rescuers = dict(zip(study.feature_names, steps["rescuers"].round(9).tolist(), strict=True))
    assert rescuers["occupation-nurse"] == pytest.approx(1 / 3)
    assert rescuers["occupation-artist"] == pytest.approx(-1 / 5)
    assert rescuers["occupation-unemployed"] == 0
