"""Tables with a row for each alternative, and categories in words."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from tests.program import answer, crowdveil, refused
from tests.real_data import FAIRNESS, FAIRNESS_ABOUT, with_fairness

from crowdveil.ballots.ballot_file import read_ballots
from crowdveil.errors import CrowdveilError
from crowdveil.sources.import_report import RowDefect
from crowdveil.sources.mapping import load_mapping
from crowdveil.sources.table import load_table

EXAMPLE = Path(__file__).parents[2] / "examples/fairness-mapping.toml"
STUDY = """
name = "lunch"
[drawing]
method = "independent"
dilemmas = 4
[[features]]
name = "price"
low = 0
high = 9
levels = [1, 2]
[[categories]]
name = "soup"
levels = ["leek", "pea", "fish"]
words = { pea = "pea soup" }
"""
MAPPING = """
study = "lunch.toml"
voter = "who"
pair = ["who", "question"]
chosen = "took"
yes = "1"
no = "0"
[features]
price = "cost"
[levels.soup]
fish = ["Fish soup", "9"]
"""
HEADER = "who,question,took,cost,soup\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lunch.toml").write_text(STUDY)
    (tmp_path / "mapping.toml").write_text(MAPPING)
    return tmp_path


def test_two_rows_become_one_record_wherever_they_stand(folder: Path) -> None:
    rows = ["a,1,1,2,pea", "b,1,0,2,9.0", "a,2,0,1,LEEK", "a,1,0,1,fish soup", "b,1,1.0,2,Pea soup", "a,2,1,1,pea"]
    (folder / "t.csv").write_text(HEADER + "\n".join(rows))
    result = load_table(folder / "t.csv", load_mapping(folder / "mapping.toml"))
    assert result.ballots.voter_names() == ["a", "b"]
    assert result.ballots.dilemmas.tolist() == [[1, 0, 1, -1], [0, 1, -1, 0], [0, 0, -1, 1]]
    assert result.ballots.choices.tolist() == [1, -1, -1]
    assert (result.report.rows, result.report.records, dict(result.report.refused)) == (6, 3, {})


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (["c,1,0,1,pea", "c,1,0,2,pea"], RowDefect.NO_SINGLE_CHOICE),
        (["c,1,1,1,pea", "c,1,1,2,pea"], RowDefect.NO_SINGLE_CHOICE),
        (["c,1,1,1,pea", "c,1,,2,pea"], RowDefect.NO_SINGLE_CHOICE),
        (["c,1,1,1,pea", "c,1,0,2,"], RowDefect.BLANK),
        (["c,1,1,x,pea", "c,1,0,2,pea"], RowDefect.NOT_A_NUMBER),
        (["c,1,1,10,pea", "c,1,0,2,pea"], RowDefect.OUT_OF_BOUNDS),
        (["c,1,1,1,pea", "c,1,0,2,beet"], RowDefect.NO_LEVEL),
        (["c,,1,1,pea", "c,,0,2,pea"], RowDefect.DILEMMA_MISSING),
        (["c,1,1,1,pea"], RowDefect.UNPAIRED),
        (["c,1,1,1,pea", "c,1,0,2,pea", "c,1,0,2,pea"], RowDefect.DOUBLED),
    ],
)
def test_a_bad_pair_is_refused_with_both_rows(folder: Path, pair: list[str], reason: RowDefect) -> None:
    rows = ["a,1,1,2,pea", *pair, "a,1,0,1,leek"]
    (folder / "t.csv").write_text(HEADER + "\n".join(rows))
    arguments = ["--mapping", folder / "mapping.toml", "--out", folder / "b", "--refused", folder / "refused.csv"]
    told = answer("import", "table", folder / "t.csv", *arguments, "--allow-refused", "1")
    assert told["refused"] == {reason.value: len(pair)}
    assert (told["records"], told["dropped"]) == (1, 0)
    assert "1 of 2 people have no record that could be used: they are left out" in told["notes"]
    kept = list(csv.DictReader((folder / "refused.csv").open(encoding="utf-8")))
    assert [",".join(row[column] for column in HEADER.strip().split(",")) for row in kept] == pair
    assert [int(row["refused row"]) for row in kept] == list(range(2, 2 + len(pair)))


def test_rows_of_two_voters_are_no_pair(folder: Path) -> None:
    (folder / "mapping.toml").write_text(MAPPING.replace('["who", "question"]', '"question"'))
    (folder / "t.csv").write_text(HEADER + "a,1,1,2,pea\nb,1,0,1,leek\na,2,1,2,pea\na,2,0,1,leek\n")
    report = load_table(folder / "t.csv", load_mapping(folder / "mapping.toml")).report
    assert dict(report.refused) == {RowDefect.INCONSISTENT: 2}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('no = "0"', 'left = "0"', "'left' is for a table with one row a dilemma, this mapping has a 'pair'"),
        ('pair = ["who", "question"]', "", "'yes' is for a table with two rows a dilemma, this mapping has no 'pair'"),
        ('no = "0"', 'no = "1"', "says '1' for yes and for no"),
        ('pair = ["who", "question"]', "pair = 3", "pair must be a column or several"),
        ('price = "cost"', 'price = ["cost", "cost"]', 'price must be "column"'),
        ("[levels.soup]", "[levels.price]", "gives levels of 'price', but lunch has no such category"),
        ("fish =", "beet =", "gives the level 'beet', but soup has leek, pea, fish"),
        ('["Fish soup", "9"]', '"PEA"', "says 'pea' for more than one level of soup"),
        ('["Fish soup", "9"]', "true", "the level 'fish' must be given as a text"),
        ('price = "cost"', 'soup-pea = "cost"', "names the feature 'soup-pea', but study lunch has price, soup"),
    ],
)
def test_a_wrong_mapping_says_what_is_wrong(folder: Path, old: str, new: str, message: str) -> None:
    assert old in MAPPING
    (folder / "mapping.toml").write_text(MAPPING.replace(old, new))
    with pytest.raises(CrowdveilError) as error:
        load_mapping(folder / "mapping.toml")
    assert message in str(error.value)


def test_the_usual_columns_of_a_category_hold_words(folder: Path) -> None:
    (folder / "t.csv").write_text(
        "voter,chosen,left_price,right_price,left_soup,right_soup\n"
        "a,left,1,2,pea,leek\na,right,1,2,pea soup,Fish\na,right,1,2,pea,beet\n"
    )
    told = answer(
        "import", "table", folder / "t.csv", "--study", folder / "lunch.toml", "--out", folder / "b",
        "--allow-refused", "1",
    )  # fmt: skip
    assert told["refused"] == {"not one of the levels": 1}
    assert read_ballots(folder / "b").dilemmas.tolist() == [[-1, -1, 1, 0], [-1, 0, 1, -1]]
    (folder / "t.csv").write_text("voter,chosen,left_price,right_price\na,left,1,2\n")
    refused(
        crowdveil("import", "table", folder / "t.csv", "--study", folder / "lunch.toml", "--out", folder / "c"),
        "lacks the columns left_soup, right_soup",
    )


@with_fairness
def test_the_public_answers_about_fairness_import_by_a_mapping_alone(tmp_path: Path) -> None:
    told = answer("import", "table", FAIRNESS, "--mapping", EXAMPLE, "--about", FAIRNESS_ABOUT, "--out", tmp_path / "b")
    # Ten pairs without a choice, all of one person, and six blank ones: two rows each.
    assert told["refused"] == {"a value is blank": 12, "no single choice": 20}
    assert (told["rows"], told["records"], told["voters"]) == (14_760, 7_364, 737)
    assert "1 of 738 people have no record that could be used: they are left out" in told["notes"]
    ballots = read_ballots(tmp_path / "b")
    assert set(ballots.about) == {"party", "age", "education"}
    with_crime = {"none": 0, "violent": 0}
    columns = {name: ballots.study.feature_names.index(f"crime-{name}") for name in with_crime}
    for name, column in columns.items():
        with_crime[name] = int((ballots.differences[:, column] == 1).sum())
    # Counted by a script of its own from the public file: how often the chosen one had it, and the other had not.
    assert with_crime == {"none": 1775, "violent": 1426}
