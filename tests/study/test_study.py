from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.errors import CrowdveilError
from crowdveil.estimation.design import FINE, GRID, public_design
from crowdveil.study.bundled import BUNDLED, load_study, synthetic_study
from crowdveil.study.features import FINEST, MOST_STEPS, Feature
from crowdveil.study.study import Alternative, Dilemma, Study

PLAIN: dict[str, Any] = {
    "name": "toy",
    "title": "A toy",
    "question": "Which?",
    "norm_bound": 1.5,
    "record_norm": 3.0,
    "parts": ["who", "where"],
    "drawing": {"method": "independent", "dilemmas": 4},
    "features": [
        {
            "name": "people",
            "label": "people",
            "low": 0.0,
            "high": 5.0,
            "unit": 1.0,
            "levels": [0.0, 1.0],
            "part": "who",
            "lean": 0.5,
            "words": {"0": "", "1": "one person", "other": "{n} people"},
        },
        {"name": "age", "label": "age", "low": 20.0, "high": 80.0, "unit": 10.0, "levels": [20.0, 50.0]},
    ],
}
TOY = Study.from_dict(PLAIN)


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    data = copy.deepcopy(PLAIN)
    change(data)
    return data


def test_a_study_is_what_its_file_says() -> None:
    assert TOY.as_dict() == PLAIN
    assert TOY.dimension == 2
    assert TOY.feature_names == ("people", "age")
    assert TOY.units.tolist() == [1, 10]
    assert TOY.reach.tolist() == [5, 6]
    assert TOY.record_bound == 3.0


def test_without_a_record_norm_the_features_ranges_bound_a_record() -> None:
    study = Study.from_dict(changed(lambda d: d.pop("record_norm")))
    assert study.record_bound == pytest.approx(math.hypot(5, 6))
    wide = Study.from_dict(changed(lambda d: d.update(record_norm=100)))
    assert wide.record_bound == pytest.approx(math.hypot(5, 6))


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_studies_survive_a_trip_through_json(name: str) -> None:
    study = load_study(name)
    again = Study.from_dict(json.loads(json.dumps(study.as_dict())))
    assert again == study
    assert again.fingerprint == study.fingerprint


CHANGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda d: d.update(name="toys"),
    lambda d: d.update(title="The toy"),
    lambda d: d.update(question="Who?"),
    lambda d: d.update(norm_bound=1.6),
    lambda d: d.update(record_norm=3.1),
    lambda d: d.pop("record_norm"),
    lambda d: d.update(parts=["where", "who"]),
    lambda d: d["drawing"].update(dilemmas=5),
    lambda d: d["drawing"].update(method="gaussian"),
    lambda d: d["features"].reverse(),
    lambda d: d["features"].pop(),
    lambda d: d["features"][0].update(name="persons"),
    lambda d: d["features"][0].update(label="persons"),
    lambda d: d["features"][0].update(low=-1),
    lambda d: d["features"][0].update(high=6),
    lambda d: d["features"][0].update(unit=2),
    lambda d: d["features"][0].update(levels=[0, 2]),
    lambda d: d["features"][0].update(part="where"),
    lambda d: d["features"][0].update(lean=0.6),
    lambda d: d["features"][0]["words"].update({"1": "somebody"}),
    lambda d: d["features"][0].pop("words"),
]


def test_the_fingerprint_changes_with_every_part_of_the_definition() -> None:
    prints = [TOY.fingerprint, *(Study.from_dict(changed(change)).fingerprint for change in CHANGES)]
    assert len(set(prints)) == len(CHANGES) + 1


def test_the_fingerprint_does_not_depend_on_how_the_definition_is_written() -> None:
    shuffled = dict(reversed(PLAIN.items())) | {"features": [dict(reversed(f.items())) for f in PLAIN["features"]]}
    assert Study.from_dict(shuffled).fingerprint == TOY.fingerprint
    whole = changed(lambda d: d["features"][0].update(low=0, high=5, unit=1, levels=[0, 1]))
    assert Study.from_dict(whole).fingerprint == TOY.fingerprint
    first = replace(TOY.features[0], low=0, high=5, unit=1, levels=(0, 1))
    built = replace(TOY, features=(first, TOY.features[1]), record_norm=3)
    assert built == TOY
    assert built.fingerprint == TOY.fingerprint


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("name"), "'name' is missing"),
        (lambda d: d.update(name=5), "'name' must be a str"),
        (lambda d: d.update(colour="red"), "unknown setting 'colour'; known are along, categories, drawing"),
        (lambda d: d.pop("drawing"), "'drawing' is missing"),
        (lambda d: d.update(drawing="independent"), "'drawing' must be a dict"),
        (lambda d: d["drawing"].update(method="dice"), "method 'dice' is unknown: use one of moral-machine"),
        (lambda d: d["drawing"].update(dilemmas=0), "1 to 1,000,000 dilemmas, got 0"),
        (lambda d: d["drawing"].update(dilemmas=2.5), "'dilemmas' must be a int"),
        (lambda d: d["drawing"].update(dilemmas=math.nan), "'dilemmas' must be a int"),
        (lambda d: d["drawing"].update(seed=1), "unknown setting 'seed'"),
        (lambda d: d.update(features=[]), "has no features"),
        (lambda d: d.update(features={}), "'features' must be a list"),
        (lambda d: d.update(features=["people"]), "each feature must be a table"),
        (lambda d: d["features"][1].update(name="people"), "names a feature twice: people"),
        (lambda d: d["features"][0].pop("name"), "'name' is missing"),
        (lambda d: d["features"][0].update(name="a b"), "letters, digits"),
        (lambda d: d["features"][0].update(name=""), "letters, digits"),
        (lambda d: d["features"][0].pop("low"), "'low' is missing"),
        (lambda d: d["features"][0].update(low="0"), "'low' must be a number"),
        (lambda d: d["features"][0].update(low=True), "'low' must be a number"),
        (lambda d: d["features"][0].update(low=10**400), "'low' must be a number of at most 308 digits, got 10+$"),
        (lambda d: d["features"][0].update(low=5), "low < high"),
        (lambda d: d["features"][0].update(low=math.nan), "low < high"),
        (lambda d: d["features"][0].update(high=math.inf), "finite bounds"),
        (lambda d: d["features"][0].update(levels=[0, 10**400]), "'levels' must be a number of at most 308 digits"),
        (lambda d: d["features"][0].update(unit=0), "unit must be a positive number"),
        (lambda d: d["features"][0].update(unit=math.nan), "unit must be a positive number"),
        (lambda d: d["features"][0].update(levels=[9]), "level 9.0 is outside"),
        (lambda d: d["features"][0].update(levels=[math.nan]), "outside"),
        (lambda d: d["features"][0].update(levels=["x"]), "'levels' must be a number"),
        (lambda d: d["features"][0].update(levels=3), "'levels' must be a list"),
        (lambda d: d["features"][0].pop("levels"), "needs levels to be drawn independently"),
        (lambda d: d["features"][0].update(words="one"), "'words' must be a dict"),
        (lambda d: d["features"][0]["words"].update(few="some"), "feature people: words are for a value, .* got 'few'"),
        (
            lambda d: d["features"][0]["words"].update(nan="none"),
            "words are for a value, such as 0 or 2.5, or for other",
        ),
        (lambda d: d["features"][0].update(high=1e308), r"from -2\^43 to 2\^43, .* got 0 to 1e\+308"),
        (lambda d: d["features"][0].update(low=-1e308), r"from -2\^43 to 2\^43, .* got -1e\+308 to 5"),
        (lambda d: d["features"][0].update(high=1e-320, levels=[0]), "in a range of 1/1024 at least, got 0 to"),
        (lambda d: d["features"][0].update(unit=1e-300), r"2\^-20 to 2\^20 units wide, got 0 to 5 with unit=1e-300"),
        (lambda d: d["features"][0].update(unit=1e300), r"2\^-20 to 2\^20 units wide, got 0 to 5 with unit=1e\+300"),
        (lambda d: d["features"][0].update(levels=[0, 1e-320, 1]), r"1/1024 to 1024 apart, got \[0.0, 1e-320, 1.0\]"),
        (lambda d: d["features"][0].update(high=5000, levels=[0, 0.5, 5000]), "levels are whole numbers up to 2"),
        (lambda d: d["features"][0].update(high=2e6, unit=1e3, levels=[0, 2e6]), r"up to 2\^20 apart, or any"),
        (lambda d: d["features"][0].update(part="when"), "has part 'when', which is not among parts"),
        (lambda d: d["features"][0].update(lean=math.inf), "lean must be a finite number"),
        (lambda d: d["features"][0].update(size=1), "feature 'people': unknown setting 'size'"),
        (lambda d: d.update(parts="who"), "'parts' must be a list"),
        (lambda d: d.update(norm_bound=0), "norm_bound must be a positive number"),
        (lambda d: d.update(norm_bound=math.nan), "norm_bound must be a positive number"),
        (lambda d: d.update(record_norm=-1), "record_norm must be a positive number"),
        (lambda d: d.update(record_norm=math.inf), "record_norm must be a positive number"),
        (lambda d: d.update(along="axes"), "along is 'axes': use 'factors' or 'features', or leave it out"),
    ],
)
def test_a_definition_that_does_not_fit_is_refused_by_name(
    change: Callable[[dict[str, Any]], Any], message: str
) -> None:
    with pytest.raises(CrowdveilError, match=message):
        Study.from_dict(changed(change))


def test_a_bound_that_no_double_holds_is_refused() -> None:
    with pytest.raises(CrowdveilError, match=r"high is 10+: give a number of at most 308 digits"):
        replace(TOY.features[0], high=10**400)


@pytest.mark.parametrize("levels", [(0, 2**20), (0, 2**-10), (0, 2**-10, 2**10), (2**43 - 2**20, 2**43)])
def test_the_finest_and_the_widest_levels_are_measured(levels: tuple[float, ...]) -> None:
    feature = Feature("x", "x", levels[0], levels[-1], unit=max(1, levels[-1] / 2**20), levels=levels)
    study = replace(TOY, features=(feature, TOY.features[1]), record_norm=None)
    design = public_design(study)
    assert math.isfinite(study.record_bound)
    assert np.linalg.matrix_rank(design.axes) == 2
    scores = np.floor(design.differences * design.units + 0.5) @ design.axes
    assert (np.abs(scores).max(axis=0) >= GRID / 2).all()


def test_the_limits_of_values_are_those_of_the_integers_that_devices_compute_with() -> None:
    assert (1 / FINEST, MOST_STEPS) == (FINE, GRID)


def test_an_alternative_is_put_in_order_and_unmentioned_features_are_0() -> None:
    assert TOY.alternative({"age": 30}, "A") == Alternative("A", (0.0, 30.0))
    assert TOY.alternative({"age": np.float32(30), "people": np.int8(2)}, "A") == Alternative("A", (2.0, 30.0))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"people": 1}, "feature age is missing"),
        ({"people": 6, "age": 30}, "people must be a number from 0 to 5, got 6"),
        ({"people": math.nan, "age": 30}, "got nan"),
        ({"people": "1", "age": 30}, "got '1'"),
        ({"people": True, "age": 30}, "got True"),
        ({"people": None, "age": 30}, "people must be a number from 0 to 5, got None"),
        ({"people": 10**400, "age": 30}, r"people must be a number from 0 to 5, got 10+\.\.\.0+$"),
        ({"people": -(10**400), "age": 30}, r"people must be a number from 0 to 5, got -10+\.\.\.0+$"),
        ({"poeple": 1, "age": 30}, "has no feature 'poeple'; did you mean people"),
        ({"zzz": 1, "age": 30}, "it has: people, age"),
    ],
)
def test_an_alternative_that_does_not_fit_is_refused(features: dict[str, Any], message: str) -> None:
    with pytest.raises(CrowdveilError, match=message):
        TOY.alternative(features, "A")


def test_a_dilemma_names_its_alternatives() -> None:
    dilemma = TOY.dilemma([{"features": {"age": 20}}, {"name": "me", "features": {"age": 30}}])
    assert [a.name for a in dilemma.alternatives] == ["A", "me"]


def test_a_dilemma_may_be_given_in_several_forms() -> None:
    sides = {"A": {"age": 20}, "B": {"age": 30}}
    forms = [
        [{"age": 20}, {"age": 30}],
        [{"features": {"age": 20}}, {"name": None, "features": {"age": 30}}],
        sides,
        {"alternatives": list(sides.values())},
        {"alternatives": sides},
    ]
    expected = Dilemma((TOY.alternative({"age": 20}, "A"), TOY.alternative({"age": 30}, "B")))
    assert [TOY.dilemma(form) for form in forms] == [expected] * len(forms)


@pytest.mark.parametrize(
    ("alternatives", "message"),
    [
        ([], "two or more alternatives"),
        ([{"features": {"age": 20}}], "two or more alternatives"),
        ([{"features": {"age": 20}}, {"name": "A", "features": {"age": 20}}], "same name"),
        ([{"features": {"age": 20}, "peeple": 3}, {}], "has no feature 'features'"),
        ([{"name": "", "features": {"age": 20}}, {}], "a name is a text of 1 to 200 characters"),
        ([{"name": 5, "features": {"age": 20}}, {}], "a name is a text of 1 to 200 characters"),
        ({"\ud800": {"age": 20}, "b": {"age": 20}}, r"the name '\\ud800'"),
        ({"a" * 201: {"age": 20}, "b": {"age": 20}}, "a name is a text of 1 to 200 characters"),
        ({"age": 20}, r"the dilemma is one alternative, \{'age': 20\}: give a list of two or more"),
        ({"name": "stay", "features": {"age": 20}}, "the dilemma is one alternative"),
        ({"a": {"age": 20}, "b": 6}, r"alternative 2 of the dilemma must look like .*, got 6$"),
        ("stay", "give a list of alternatives"),
        ([5, 6], "alternative 1 of the dilemma must look like"),
    ],
)
def test_a_dilemma_that_is_none_is_refused(alternatives: Any, message: str) -> None:
    with pytest.raises(CrowdveilError, match=message):
        TOY.dilemma(alternatives)


@given(st.floats(0, 5), st.floats(0, 5), st.floats(20, 80), st.floats(20, 80))
def test_a_difference_is_in_model_units_and_within_reach(p: float, q: float, a: float, b: float) -> None:
    v = TOY.difference(Alternative("x", (p, a)), Alternative("y", (q, b)))
    assert v.tolist() == [p - q, (a - b) / 10]
    assert (abs(v) <= TOY.reach).all()


def test_an_alternative_is_said_in_the_studys_words() -> None:
    assert TOY.describe(Alternative("x", (1, 30))) == "one person, age: 30"
    assert TOY.describe(Alternative("x", (3, 30))) == "3 people, age: 30"
    assert TOY.describe(Alternative("x", (0, 25.5))) == "age: 25.5"


def test_only_features_that_were_given_are_described() -> None:
    assert TOY.describe(TOY.alternative({"age": 30}, "A")) == "age: 30"
    study = load_study("moral-machine")
    assert study.describe(study.alternative({"girl": 1}, "A")) == "a girl"
    standing = study.alternative({"girl": 1, "barrier": 0, "intervention": 0}, "A")
    assert study.describe(standing) == "a girl, on the road, in the path of the car if it stays on course"


def test_a_group_is_said_in_the_order_of_the_parts() -> None:
    study = load_study("moral-machine")
    features = {"man": 1, "girl": 2, "cat": 1, "legality": -1, "intervention": 1}
    assert study.describe(study.alternative(features, "A")) == (
        "a man, 2 girls and a cat, crossing on red, in the path of the car if it swerves"
    )


def test_the_synthetic_study_is_bounded_and_cuts_almost_nothing() -> None:
    study = synthetic_study(10)
    assert load_study("synthetic-10") == load_study("synthetic") == study
    assert study.record_norm == pytest.approx(math.sqrt(2) * (math.sqrt(10) + 2.5), abs=1e-3)


@pytest.mark.parametrize("reference", ["synthetic-0", "synthetic-1001", "nothing", "/no/such/study.toml", "."])
def test_an_unknown_study_is_refused(reference: str) -> None:
    with pytest.raises(CrowdveilError):
        load_study(reference)


def test_the_nearest_study_is_suggested() -> None:
    with pytest.raises(CrowdveilError, match="there is no study 'kidny': did you mean kidney"):
        load_study("kidny")


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe", b"", b"name = 'x'"])
def test_a_broken_study_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "study.toml").write_bytes(content)
    with pytest.raises(CrowdveilError):
        load_study(str(tmp_path / "study.toml"))


def test_equal_dilemmas_are_equal() -> None:
    both = (Alternative("a", (1.0,)), Alternative("b", (2.0,)))
    assert Dilemma(both) == Dilemma(both)


def test_a_dilemma_of_another_study_is_refused() -> None:
    own = Dilemma((Alternative("a", (1.0, 30.0)), Alternative("b", (2.0, 30.0))))
    assert TOY.dilemma(own) is own
    with pytest.raises(CrowdveilError, match=r"alternative 'a' has 1 values: study .* has 2 features"):
        TOY.dilemma(Dilemma((Alternative("a", (1.0,)), Alternative("b", (2.0,)))))


def with_icon(icon: Any) -> dict[str, Any]:
    return changed(lambda data: data["features"][0].update(icon=icon))


def test_a_feature_may_have_a_picture() -> None:
    for icon in ("people", "🐟", "👩‍⚕️"):
        study = Study.from_dict(with_icon(icon))
        assert study.features[0].icon == icon
        assert Study.from_dict(study.as_dict()) == study
    for icon in ("fish", "two words", "<b>", "é", "🐟" * 20, " 🐟"):
        with pytest.raises(CrowdveilError, match="is neither an emoji nor one of person, people"):
            Study.from_dict(with_icon(icon))


def test_a_study_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    plain = files("crowdveil.study.bundled").joinpath("kidney.toml").read_text(encoding="utf-8")
    (tmp_path / "kidney.toml").write_text(plain, encoding="utf-8-sig")
    assert load_study(str(tmp_path / "kidney.toml")) == load_study("kidney")
