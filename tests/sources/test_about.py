"""What voters said of themselves: levels come from the mapping, and everybody is counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.program import answer, crowdveil, refused
from tests.real_data import MORAL_MACHINE, MORAL_MACHINE_ABOUT, with_moral_machine

from crowdveil.ballots.ballot_file import read_ballots
from crowdveil.engines.engine import LocalEngine
from crowdveil.errors import CrowdveilError
from crowdveil.sources.about import AboutMapping, AboutQuestion, read_about
from crowdveil.sources.mapping import load_about_mapping, load_mapping
from crowdveil.sources.moral_machine.engine_import import import_with_engine
from crowdveil.sources.moral_machine.importing import import_moral_machine
from crowdveil.sources.simulated_layout import write_public_layout
from crowdveil.sources.table import read_table
from crowdveil.study.bundled import load_study

EXAMPLE = Path(__file__).parents[2] / "examples/moral-machine-about.toml"
MAPPING = """
study = "synthetic-1"
[about]
voter = "who"
[about.pet]
levels = { cats = ["cat", "Kitten"], dogs = "dog", "no pet" = "none" }
[about.age]
column = "years"
ranges = { young = [0, 40], old = [40, 120] }
"""
CHOICES = "voter,chosen,left_x1,right_x1\n" + "".join(f"{who},left,1,0\n" * 2 for who in "abcde")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mapping.toml").write_text(MAPPING)
    (tmp_path / "choices.csv").write_text(CHOICES)
    return tmp_path


def said(folder: Path, rows: str) -> dict[str, list[str | None]]:
    (folder / "about.csv").write_text("who,pet,years\n" + rows)
    ballots = read_table(folder / "choices.csv", mapping=folder / "mapping.toml", about=folder / "about.csv")
    return {question: column.to_list() for question, column in ballots.about.items()}


def test_words_and_ranges_become_the_levels_of_the_mapping(folder: Path) -> None:
    told = said(folder, "b,KITTEN ,39.9\na,cat,0\ne,none,120\nd,dog,40\n")
    assert told == {"pet": ["cats", "cats", None, "dogs", "no pet"], "age": ["young", "young", None, "old", "old"]}


def test_levels_never_come_from_the_rows(folder: Path) -> None:
    (folder / "about.csv").write_text("who,pet,years\na,cat,30\nb,python,130\n")
    about = read_about(folder / "about.csv", load_mapping(folder / "mapping.toml").about, ("voter",))
    assert about.labels == {"pet": ("cats", "dogs", "no pet"), "age": ("young", "old")}
    assert about.people.rows() == [("a", 0, 0), ("b", -1, -1)]
    assert about.notes == (
        "1 of 2 people answered 'pet' with something that is not one of its levels (first 'python'): "
        "their 'pet' counts as unknown",
        "1 of 2 people answered 'age' with something that is not one of its levels (first '130'): "
        "their 'age' counts as unknown",
    )


def test_everybody_is_counted(folder: Path) -> None:
    rows = "a,cat,30\na,dog,30\nb,,\nb,,\nx,cat,3\n,cat,3\nc,cat\n"
    (folder / "about.csv").write_text("who,pet,years\n" + rows)
    arguments = ["--mapping", folder / "mapping.toml", "--about", folder / "about.csv", "--out", folder / "b.parquet"]
    told = answer("import", "table", folder / "choices.csv", *arguments)
    assert told["notes"] == [
        "1 of 7 rows of about.csv name no voter",
        "1 of 7 rows of about.csv are cut short, or too long",
        "1 of 3 people gave different answers to 'pet': their 'pet' counts as unknown",
        "3 of 5 voters have no row about themselves: their answers are unknown",
        "1 of 3 people with a row about themselves are not among the voters",
    ]
    assert read_ballots(folder / "b.parquet").about["age"].to_list() == ["young", None, None, None, None]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("", "give its levels, such as"),
        ("levels = []", "give its levels, such as"),
        ("levels = ['a']\nranges = { b = [0, 1] }", "give its levels, such as"),
        ("levels = ['a', 'A ']", "'a' stands for more than one level"),
        ("levels = { a = 'x', b = ['y', 'x'] }", "'x' stands for more than one level"),
        ("levels = ['']", "a level is a text that is not empty"),
        ("levels = 3", "levels must be a list of words"),
        ("levels = { a = [] }", "the level 'a' must be given as a text"),
        ("levels = [true]", "the level 'True' must be given as a text"),
        ("ranges = [0, 1]", "ranges must look like"),
        ("ranges = { a = 3 }", "the range 'a' must be two numbers"),
        (f"ranges = {{ a = [0, 1{'0' * 400}] }}", "the range 'a' must be two numbers"),
        ("ranges = { a = [1, 1] }", "the smaller first, got"),
        ("ranges = { a = [0, nan] }", "the smaller first, got"),
        ("ranges = { a = [0, 2], b = [1, 3] }", "ranges overlap between 1 and 2"),
        ("level = ['a']", "unknown setting 'level'; known are column, levels, ranges"),
        ("column = 3\nlevels = ['a']", "'column' must be a text"),
    ],
)
def test_a_question_without_public_levels_is_refused(tmp_path: Path, question: str, message: str) -> None:
    (tmp_path / "about.toml").write_text(f"[about.pet]\n{question}\n")
    with pytest.raises(CrowdveilError, match=message):
        load_about_mapping(tmp_path / "about.toml")


def test_a_mistake_is_one_line_and_nothing_is_written(folder: Path) -> None:
    (folder / "about.csv").write_text("who,pet\na,cat\n")
    (folder / "only-about.toml").write_text("[about]\nvoter = 3\n")
    table = ["import", "table", folder / "choices.csv", "--out", folder / "b.parquet"]
    refused(
        crowdveil(*table, "--mapping", folder / "mapping.toml", "--about", folder / "about.csv"),
        "lacks the column years",
    )
    refused(crowdveil(*table, "--study", "synthetic-1", "--about", folder / "about.csv"), "no section [about]")
    moral_machine = ["import", "moral-machine", folder / "choices.csv", "--out", folder / "b.parquet"]
    refused(crowdveil(*moral_machine, "--about", folder / "about.csv"), "give both")
    for name, message in (("mapping.toml", "unknown setting 'study'"), ("only-about.toml", "voter must be a column")):
        refused(
            crowdveil(*moral_machine, "--about", folder / "about.csv", "--mapping", folder / name),
            message,
        )
    assert not (folder / "b.parquet").exists()


def test_a_question_needs_levels_in_python_too() -> None:
    with pytest.raises(CrowdveilError, match="they never come from the rows"):
        AboutQuestion("pet", "pet")
    assert AboutMapping().columns == []


def test_workers_join_as_one_machine_does(tmp_path: Path) -> None:
    write_public_layout(tmp_path / "mm.csv", load_study("moral-machine"), 30, np.random.default_rng(5))
    import_moral_machine(tmp_path / "mm.csv", tmp_path / "plain.parquet")
    names = read_ballots(tmp_path / "plain.parquet").voter_names()
    levels = ["Woman", "Man"]
    rows = [f"{name},{levels[k % 2]},25-34,Postgraduate,{k},0" for k, name in enumerate(sorted(names)[:20])]
    (tmp_path / "about.csv").write_text(
        "ExtendedSessionID,gender,age,education,political,religious\n" + "\n".join(rows)
    )
    given = {"about": tmp_path / "about.csv", "mapping": EXAMPLE}
    one = import_moral_machine(tmp_path / "mm.csv", tmp_path / "one.parquet", **given)
    other = import_with_engine(tmp_path / "mm.csv", tmp_path / "shards", LocalEngine(), **given)
    assert one.notes == other.notes
    assert "10 of 30 voters have no row about themselves: their answers are unknown" in one.notes
    first, second = read_ballots(tmp_path / "one.parquet"), read_ballots(tmp_path / "shards")
    expected = {name: levels[k % 2] for k, name in enumerate(sorted(names)[:20])}
    words = {"Woman": "women", "Man": "men", None: None}
    assert first.about["gender"].to_list() == [words[expected.get(name)] for name in first.voter_names()]
    for question, column in first.about.items():
        assert column.to_list() == second.about[question].to_list()


@with_moral_machine
def test_the_public_answers_about_themselves_join_the_public_choices(tmp_path: Path) -> None:
    report = import_moral_machine(MORAL_MACHINE, tmp_path / "b", about=MORAL_MACHINE_ABOUT, mapping=EXAMPLE)
    assert "288 of 2097 voters have no row about themselves: their answers are unknown" in report.notes
    about = read_ballots(tmp_path / "b").about
    counts = {question: np.bincount(column.codes + 1).tolist() for question, column in about.items()}
    assert counts["gender"] == [288, 862, 947]
    assert counts["age"] == [288, 309, 417, 378, 332, 254, 119]
    assert sum(counts["political"]) == 2097
