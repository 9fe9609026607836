"""Models' answers in three layouts are the same ballots; what is none of them is refused in one line."""

import csv
import json

import numpy as np
import pytest

import crowdveil as cv
from crowdveil.errors import CrowdveilError
from crowdveil.sources.moral_machine.layout import COLUMNS, HIGHEST
from crowdveil.study.bundled import load_study

KIDNEY = load_study("kidney")
PAIRS = [([1, 10, 0, 40, 3], [0, 5, 1, 0, 5]), ([0, 20, 2, 0, 1], [1, 5, 0, 20, 7]), ([0, 5, 0, 0, 1], [0, 9, 0, 0, 1])]
CHOSEN = {"one": ("left", "right", "refused"), "two": ("right", "left", "left")}
SIGN = {"left": 1, "right": -1, "refused": 0}


def as_table(path):
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        sides = [f"{side}_{name}" for side in ("left", "right") for name in KIDNEY.feature_names]
        rows.writerow(["model", "chosen", *sides])
        for model, choices in CHOSEN.items():
            for chosen, (left, right) in zip(choices, PAIRS, strict=True):
                rows.writerow([model, chosen, *left, *right])


def as_lines(path):
    with path.open("w") as file:
        for model, choices in CHOSEN.items():
            for chosen, sides in zip(choices, PAIRS, strict=True):
                named = zip(("left", "right"), sides, strict=True)
                dilemma = {name: dict(zip(KIDNEY.feature_names, side, strict=True)) for name, side in named}
                choice = None if chosen == "refused" else chosen
                file.write(json.dumps({"model": model, "dilemma": dilemma, "choice": choice}) + "\n")


@pytest.mark.parametrize("write", [as_table, as_lines])
def test_a_table_and_lines_of_json_are_the_same_ballots(tmp_path, write):
    write(tmp_path / "answers")
    answers = cv.read_answers(tmp_path / "answers", KIDNEY)
    assert answers.voter_names() == ["one", "two"]
    assert answers.choices.tolist() == [SIGN[chosen] for choices in CHOSEN.values() for chosen in choices]
    expected = [np.subtract(left, right) / KIDNEY.units for left, right in PAIRS * 2]
    np.testing.assert_allclose(answers.dilemmas, expected)


def test_one_model_in_two_files_is_refused(tmp_path):
    as_table(tmp_path / "a.csv")
    as_lines(tmp_path / "b.jsonl")
    with pytest.raises(CrowdveilError, match=r"twice|more than once"):
        cv.read_answers([tmp_path / "a.csv", tmp_path / "b.jsonl"], KIDNEY)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1 is not JSON"),
        ("{}", "an answer looks like"),
        ('{"model": "", "dilemma": [], "choice": null}', "give its name"),
        ('{"model": "m", "dilemma": 7, "choice": null}', "give a list of alternatives"),
        ('{"model": "m", "dilemma": [{"wings": 2}, {}], "choice": null}', "no feature 'wings'"),
        ('{"model": "m", "dilemma": [{"girl": 1}, {}, {}], "choice": null}', "has 3 alternatives"),
        ('{"model": "m", "dilemma": [{"girl": 1}, {}], "choice": "C"}', "give 'A', 'B', or null"),
        ('{"format": "crowdveil answers 1", "study": "x", "study_fingerprint": "y"}', "answers to the study 'x'"),
    ],
)
def test_a_line_that_is_no_answer_is_told_by_its_number(tmp_path, line, said):
    (tmp_path / "answers.jsonl").write_text(f"{line}\n")
    with pytest.raises(CrowdveilError) as refused:
        cv.read_answers(tmp_path / "answers.jsonl", load_study("moral-machine"))
    assert said in str(refused.value)
    assert "line 1" in str(refused.value)


def dilemmas_file(path, named=("a", "b", "c", "d")):
    """One man who is hit if the car stays, with the light red, against as many dogs as the dilemma's place."""
    with path.open("w", newline="") as file:
        rows = csv.DictWriter(file, COLUMNS, restval="")
        rows.writeheader()
        for place, name in enumerate(named, start=1):
            shared = {"ResponseID": name, "ExtendedSessionID": "v", **dict.fromkeys(HIGHEST, 0)}
            rows.writerow(shared | {"Intervention": 0, "CrossingSignal": 2, "Man": 1, "Saved": 1})
            rows.writerow(shared | {"Intervention": 1, "CrossingSignal": 1, "Dog": place, "Saved": 0})


def columns_file(path, cells):
    lines = [f"{name},{action},{value}" for name, values in cells.items() for action, value in enumerate(values)]
    path.write_text("\n".join(["ResponseID,Intervention,bot", *lines]))


def test_columns_of_models_name_outcomes_of_a_file_of_dilemmas(tmp_path):
    dilemmas_file(tmp_path / "dilemmas.csv")
    columns_file(tmp_path / "models.csv", {"b": ("1.0", "0"), "a": (0, 1), "c": (1, 1), "d": ("", "")})
    study = load_study("moral-machine")
    with pytest.raises(CrowdveilError, match="--dilemmas"):
        cv.read_answers(tmp_path / "models.csv", study)
    answers = cv.read_answers(tmp_path / "models.csv", study, dilemmas=tmp_path / "dilemmas.csv")
    assert answers.voter_names() == ["bot"]
    assert answers.choices.tolist() == [1, -1, 0]  # both the same: refused; both blank: not asked
    expected = {"intervention": -1, "legality": -2, "man": 1, "dog": -2}
    assert answers.dilemmas[0].tolist() == [expected.get(name, 0) for name in study.feature_names]


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"x": (1, 0), "y": (0, 1)}, "2 of 2 dilemmas"),
        ({"a": ("", "")}, "blank"),
        ({"a": (1,)}, "both of its outcomes"),
    ],
)
def test_columns_that_name_nothing_are_refused(tmp_path, cells, said):
    dilemmas_file(tmp_path / "dilemmas.csv")
    columns_file(tmp_path / "models.csv", cells)
    with pytest.raises(CrowdveilError, match=said):
        cv.read_answers(tmp_path / "models.csv", load_study("moral-machine"), dilemmas=tmp_path / "dilemmas.csv")
    with pytest.raises(CrowdveilError, match="the release is of kidney"):
        cv.read_answers(tmp_path / "models.csv", KIDNEY, dilemmas=tmp_path / "dilemmas.csv")


def test_what_is_not_there_is_told(tmp_path):
    with pytest.raises(CrowdveilError, match="cannot read the answers"):
        cv.read_answers(tmp_path / "none.csv", KIDNEY)
    with pytest.raises(CrowdveilError, match="no file of answers"):
        cv.read_answers([], KIDNEY)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(CrowdveilError, match="lacks the columns model"):
        cv.read_answers(tmp_path / "other.csv", KIDNEY)
