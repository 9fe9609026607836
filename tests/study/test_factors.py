"""A study's factors: read, checked, and what they say of a preference."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crowdveil.errors import CrowdveilError
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.features import Factor
from crowdveil.study.study import Study

PLAIN: dict[str, Any] = {
    "name": "toy",
    "drawing": {"method": "independent", "dilemmas": 4},
    "features": [
        {"name": "child", "low": 0, "high": 4, "levels": [0, 1]},
        {"name": "adult", "low": 0, "high": 4, "levels": [0, 1]},
        {"name": "light", "low": -1, "high": 1, "levels": [-1, 1]},
    ],
    "factors": [
        {"name": "number", "title": "Number", "poles": ["fewer", "more"], "weights": {"child": 1, "adult": 1}},
        {"name": "age", "title": "Age", "poles": ["adults", "children"], "weights": {"child": 1, "adult": -1}},
    ],
}
TOY = Study.from_dict(PLAIN)


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    data = copy.deepcopy(PLAIN)
    change(data)
    return data


def test_a_study_names_its_factors() -> None:
    assert TOY.factors == (
        Factor("number", "Number", ("fewer", "more"), {"child": 1, "adult": 1}),
        Factor("age", "Age", ("adults", "children"), {"child": 1, "adult": -1}),
    )
    assert TOY.factor_matrix.dtype == np.int64
    assert TOY.factor_matrix.tolist() == [[1, 1], [1, -1], [0, 0]]
    assert TOY.as_dict()["factors"] == PLAIN["factors"]
    assert Study.from_dict(TOY.as_dict()) == TOY
    untitled = Study.from_dict(changed(lambda d: d["factors"][0].pop("title")))
    assert untitled.factors[0].title == "number"


def test_without_named_factors_the_features_are_the_factors() -> None:
    study = Study.from_dict(changed(lambda d: d.pop("factors")))
    assert study.factors[0] == Factor("child", "child", ("less child", "more child"), {"child": 1})
    assert study.factor_matrix.tolist() == np.eye(3).tolist()
    assert "factors" not in study.as_dict()
    assert len(synthetic_study(7).factors) == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(factors={}), "'factors' must be a list"),
        (lambda d: d.update(factors=["age"]), r"each factor must be a table \(\[\[factors\]\]\)"),
        (lambda d: d["factors"][0].update(size=1), "factor 'number': unknown setting 'size'"),
        (lambda d: d["factors"][0].pop("name"), "'name' is missing"),
        (lambda d: d["factors"][0].update(name="a b"), "letters, digits"),
        (lambda d: d["factors"][0].update(title=" "), "'title' must be a text"),
        (lambda d: d["factors"][0].pop("poles"), "'poles' must be two different texts"),
        (lambda d: d["factors"][0].update(poles="more"), "'poles' must be two different texts"),
        (lambda d: d["factors"][0].update(poles=["more", "more"]), "'poles' must be two different texts"),
        (lambda d: d["factors"][0].update(poles=["fewer", ""]), "'poles' must be two different texts"),
        (lambda d: d["factors"][0].pop("weights"), "'weights' is missing"),
        (lambda d: d["factors"][0].update(weights=[1, 1]), "'weights' must be a dict"),
        (lambda d: d["factors"][0].update(weights={}), "factor number: has no weights"),
        (lambda d: d["factors"][0].update(weights={"child": 0}), "weight of child must be a whole number .* got 0"),
        (lambda d: d["factors"][0].update(weights={"child": 1.0}), "weights is .*1.0}: .* to a whole number"),
        (lambda d: d["factors"][0].update(weights={"child": True}), "weights is .*True}: .* to a whole number"),
        (lambda d: d["factors"][0].update(weights={"child": 1001}), "must be a whole number .* got 1001"),
        (
            lambda d: d["factors"][0].update(weights={"dog": 1}),
            "factor number weighs 'dog', but the study has no such feature",
        ),
        (lambda d: d["factors"][1].update(name="number"), "names a factor twice: number"),
        (
            lambda d: d["factors"].append({"name": "child", "poles": ["0", "1"], "weights": {"child": 7}}),
            "factor child is a combination of the factors before it",
        ),
        (
            lambda d: d["factors"].extend(
                {"name": name, "poles": ["0", "1"], "weights": {"light": 1}} for name in ("on", "off")
            ),
            "has 4 factors, and only 3 features",
        ),
    ],
)
def test_factors_that_do_not_fit_are_refused_in_one_line(change: Callable[[dict[str, Any]], Any], message: str) -> None:
    with pytest.raises(CrowdveilError, match=message) as refusal:
        Study.from_dict(changed(change))
    assert "\n" not in str(refusal.value)


def test_the_fingerprint_knows_the_weights_and_not_the_words() -> None:
    def fingerprint(change: Callable[[dict[str, Any]], Any]) -> str:
        return Study.from_dict(changed(change)).fingerprint

    assert fingerprint(lambda d: d["factors"][0].update(title="Lives", poles=["-", "+"])) == TOY.fingerprint
    others = [
        fingerprint(lambda d: d.pop("factors")),
        fingerprint(lambda d: d["factors"].pop()),
        fingerprint(lambda d: d["factors"].reverse()),
        fingerprint(lambda d: d["factors"][0].update(name="size")),
        fingerprint(lambda d: d["factors"][0]["weights"].update(child=2)),
        fingerprint(lambda d: d["factors"][0]["weights"].pop("adult")),
    ]
    assert len({TOY.fingerprint, *others}) == 7


def test_features_with_words_for_their_poles_estimate_what_the_features_do() -> None:
    words = [{"name": f["name"], "poles": ["no", "yes"], "weights": {f["name"]: 1}} for f in PLAIN["features"]]
    named = Study.from_dict(changed(lambda d: d.update(factors=words)))
    unnamed = Study.from_dict(changed(lambda d: d.pop("factors")))
    assert named != unnamed
    assert named.fingerprint == unnamed.fingerprint


def test_a_preference_is_a_part_along_the_factors_and_a_rest() -> None:
    theta, rest = TOY.split(np.array([0.5, 0.1, 0.7]))
    assert theta == pytest.approx([0.3, 0.2])
    assert rest == pytest.approx([0, 0, 0.7])


def test_least_squares_along_factors_that_are_not_orthogonal() -> None:
    """The same numbers as from numpy's own least squares."""
    study = load_study("moral-machine")
    beta = np.random.default_rng(5).standard_normal(study.dimension)
    theta, rest = study.split(beta)
    wanted, *_ = np.linalg.lstsq(study.factor_matrix, beta)
    assert theta == pytest.approx(wanted, abs=1e-9)
    assert study.factor_matrix.T @ rest == pytest.approx(np.zeros(9), abs=1e-9)
    exact, nothing = study.split(study.factor_matrix @ wanted)
    assert exact == pytest.approx(wanted, abs=1e-9)
    assert nothing == pytest.approx(np.zeros(23), abs=1e-9)


def test_a_step_leads_from_pole_to_pole_of_one_factor() -> None:
    assert TOY.pole_steps == pytest.approx(np.array([[0.5, 0.5, 0], [1, -1, 0]]))
    lit = Study.from_dict(changed(lambda d: d["factors"][1].update(weights={"light": 1})))
    assert lit.pole_steps[1] == pytest.approx([0, 0, 2])
    study = load_study("moral-machine")
    assert study.pole_steps @ study.factor_matrix == pytest.approx(np.diag([2, 1, 2, 2, 2, 2, 2, 1, 1]), abs=1e-9)
    assert load_study("kidney").pole_steps == pytest.approx(np.eye(5))


def test_the_moral_machine_has_nine_factors() -> None:
    study = load_study("moral-machine")
    names = [factor.name for factor in study.factors]
    assert names == ["species", "number", "age", "fitness", "gender", "status", "law", "intervention", "passenger"]

    def contrast(**spared: int) -> dict[str, int]:
        shown = study.factor_matrix.T @ np.array([spared.get(name, 0) for name in study.feature_names])
        return {name: value for name, value in zip(names, shown.tolist(), strict=True) if value}

    assert contrast(man=1, dog=-1) == {"species": 2, "gender": -1}
    assert contrast(girl=2) == {"species": 2, "number": 2, "age": 2, "gender": 2}
    assert contrast(stroller=1, old_woman=-1) == {"age": 2, "gender": -1}
    assert contrast(female_athlete=1, large_woman=-1) == {"fitness": 2}
    assert contrast(pregnant=1, criminal=-1) == {"status": 2}
    assert contrast(male_doctor=1, homeless=-1) == {"gender": -1, "status": 2}
    assert contrast(male_executive=1, female_executive=-1) == {"gender": -2}
    assert contrast(cat=3) == {"species": -3, "number": 3}
    assert contrast(legality=2, intervention=1, barrier=-1) == {"law": 2, "intervention": 1, "passenger": -1}
    every = {weight for factor in study.factors for weight in factor.weights.values()}
    assert every == {1, -1}
