from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.real_data import KIDNEY, with_kidney

from crowdveil.errors import CrowdveilError
from crowdveil.sources import table_file
from crowdveil.sources.about import AboutMapping, AboutQuestion
from crowdveil.sources.import_report import ImportResult, RowDefect, write_refused
from crowdveil.sources.mapping import TableMapping, load_mapping
from crowdveil.sources.table import import_table, load_table, read_table
from crowdveil.study.bundled import load_study
from crowdveil.study.features import Feature
from crowdveil.study.study import Drawing, Study

ROOT = Path(__file__).parents[2]
FEATURES = (Feature("size", "size", 0, 5, levels=(0, 1)), Feature("cost", "cost", -10, 10, unit=10, levels=(0, 1)))
STUDY = Study("toy", "Toy", "Which?", FEATURES, Drawing("independent", 2))
WHOLE = Study("whole", "Whole", "Which?", FEATURES[:1], Drawing("independent", 2))
HEADER = "voter,chosen,left_size,right_size,left_cost,right_cost\n"


def import_text(folder: Path, text: str, mapping: TableMapping | None = None) -> ImportResult:
    path = folder / "answers.csv"
    path.write_text(text, encoding="utf-8")
    imported = load_table(path, mapping or TableMapping(STUDY))
    report = imported.report
    assert report.rows == report.records + report.dropped + sum(report.refused.values()), "a row was lost"
    return imported


def test_an_answer_becomes_chosen_minus_other_in_model_units(tmp_path: Path) -> None:
    imported = import_text(tmp_path, HEADER + "ann,left,5,2,-10,5\nbob,right,5,2,-10,5\n")
    assert imported.ballots.differences.tolist() == [[3, -1.5], [-3, 1.5]]
    assert imported.ballots.voter_names() == ["ann", "bob"]


def test_voters_and_their_answers_keep_the_order_of_the_file(tmp_path: Path) -> None:
    rows = "bob,left,1,0,0,0\nann,left,2,0,0,0\nbob,left,3,0,0,0\n"
    ballots = import_text(tmp_path, HEADER + rows).ballots
    assert ballots.voter_names() == ["bob", "ann"]
    assert ballots.offsets.tolist() == [0, 2, 3]
    assert ballots.differences[:, 0].tolist() == [1, 3, 2]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (",left,1,1,1,1", RowDefect.VOTER_MISSING),
        ("ann,,1,1,1,1", RowDefect.NO_SINGLE_CHOICE),
        ("ann,both,1,1,1,1", RowDefect.NO_SINGLE_CHOICE),
        ("ann,left,,1,1,1", RowDefect.BLANK),
        ("ann,left,1,1,1,", RowDefect.BLANK),
        ("ann,left,x,1,1,1", RowDefect.NOT_A_NUMBER),
        ("ann,left,1,nan,1,1", RowDefect.NOT_A_NUMBER),
        ("ann,left,1,1,inf,1", RowDefect.NOT_A_NUMBER),
        ("ann,left,1,1,1,-1e999", RowDefect.NOT_A_NUMBER),
        ("ann,left,5.01,1,1,1", RowDefect.OUT_OF_BOUNDS),
        ("ann,left,1,-0.5,1,1", RowDefect.OUT_OF_BOUNDS),
        ("ann,left,1,1,1,11", RowDefect.OUT_OF_BOUNDS),
        ("ann,left,1,1,1", RowDefect.RAGGED),
        ("ann,left,1,1,1,1,1", RowDefect.RAGGED),
    ],
)
def test_a_bad_row_is_refused_alone(tmp_path: Path, row: str, reason: RowDefect) -> None:
    imported = import_text(tmp_path, HEADER + f"cy,left,1,1,1,1\n{row}\ndee,right,1,1,1,1\n")
    assert dict(imported.report.refused) == {reason: 1}
    assert imported.ballots.voter_names() == ["cy", "dee"]
    write_refused(tmp_path / "refused.csv", imported)
    (kept,) = csv.DictReader((tmp_path / "refused.csv").open(encoding="utf-8"))
    assert (kept["refused row"], kept["refused because"]) == ("2", reason.value)
    cells = [kept[column] for column in HEADER.strip().split(",")]
    assert kept["refused text"] == row if reason is RowDefect.RAGGED else ",".join(cells) == row


def test_refused_rows_of_a_clean_file_are_none(tmp_path: Path) -> None:
    imported = import_text(tmp_path, HEADER + "cy,left,1,1,1,1\n")
    write_refused(tmp_path / "refused.csv", imported)
    assert list(csv.DictReader((tmp_path / "refused.csv").open(encoding="utf-8"))) == []


@pytest.mark.parametrize("said", ["left", "LEFT", " Left "])
def test_left_may_be_said_in_capitals(tmp_path: Path, said: str) -> None:
    assert import_text(tmp_path, HEADER + f"ann,{said},1,0,0,0\n").ballots.differences[0, 0] == 1


def test_numbers_may_say_left_and_right(tmp_path: Path) -> None:
    mapping = TableMapping(STUDY, left="0", right="1")
    rows = "a,0,1,0,0,0\na,0.0,1,0,0,0\na,1,1,0,0,0\na,1.0,1,0,0,0\na,2,1,0,0,0\na,left,1,0,0,0\n"
    imported = import_text(tmp_path, HEADER + rows, mapping)
    assert imported.ballots.differences[:, 0].tolist() == [1, 1, -1, -1]
    assert dict(imported.report.refused) == {RowDefect.NO_SINGLE_CHOICE: 2}


def test_small_whole_differences_are_stored_small_and_others_are_not_rounded(tmp_path: Path) -> None:
    header, mapping = "voter,chosen,left_size,right_size\n", TableMapping(WHOLE)
    assert import_text(tmp_path, header + "a,left,3.0,1\n", mapping).ballots.differences.dtype == np.int8
    halves = import_text(tmp_path, header + "a,left,3,1\na,left,0.5,0\n", mapping).ballots.differences
    assert halves.tolist() == [[2], [0.5]]


def test_equal_alternatives_are_kept_and_noted(tmp_path: Path) -> None:
    imported = import_text(tmp_path, HEADER + "a,left,1,1,2,2\na,left,1,1,2,3\n")
    assert imported.report.records == 2
    assert imported.report.notes == ("1 of 2 records are between two equal alternatives",)


def test_dropped_rows_are_counted_and_not_refused(tmp_path: Path) -> None:
    header = HEADER.replace("\n", ",kind,phase\n")
    rows = "a,left,1,0,0,0,test_1,1\na,left,99,x,0,0,test_2,1\na,left,2,0,0,0,main,1\na,left,3,0,0,0,main,0\n"
    imported = import_text(tmp_path, header + rows, TableMapping(STUDY, drop={"kind": "test_?", "phase": "0"}))
    assert imported.report.dropped == 3
    assert dict(imported.report.refused) == {}
    assert imported.ballots.differences[:, 0].tolist() == [2]


def test_columns_with_the_names_of_the_report_are_no_trouble(tmp_path: Path) -> None:
    text = "row,reason,left_size,right_size,text,blank\nann,left,1,0,4,2\n,left,1,0,4,2\n"
    mapping = TableMapping(STUDY, voter="row", chosen="reason", features={"cost": ("text", "blank")})
    imported = import_text(tmp_path, text, mapping)
    assert imported.ballots.differences.tolist() == [[1, 0.2]]
    assert dict(imported.report.refused) == {RowDefect.VOTER_MISSING: 1}


def test_one_column_may_serve_twice(tmp_path: Path) -> None:
    mapping = TableMapping(STUDY, features={"cost": ("left_size", "left_size")})
    imported = import_text(tmp_path, "voter,chosen,left_size,right_size\nann,left,3,1\n", mapping)
    assert imported.ballots.differences.tolist() == [[2, 0]]


def test_neither_is_a_choice_where_the_mapping_says_so(tmp_path: Path) -> None:
    text = HEADER + "a,left,1,0,0,0\na,coin,1,0,0,0\nb,RIGHT,1,0,0,0\nb,none,1,0,0,0\n"
    imported = import_text(tmp_path, text, TableMapping(STUDY, neither="coin"))
    assert imported.ballots.choices.tolist() == [1, 0, -1]
    assert imported.ballots.dilemmas[:, 0].tolist() == [1, 1, 1]
    assert dict(imported.report.refused) == {RowDefect.NO_SINGLE_CHOICE: 1}
    assert dict(import_text(tmp_path, text).report.refused) == {RowDefect.NO_SINGLE_CHOICE: 2}


def test_the_dilemma_is_as_it_was_shown(tmp_path: Path) -> None:
    imported = import_text(tmp_path, HEADER + "a,left,3,1,0,0\na,right,3,1,0,0\n")
    assert imported.ballots.dilemmas[:, 0].tolist() == [2, 2]
    assert imported.ballots.choices.tolist() == [1, -1]
    assert imported.ballots.differences[:, 0].tolist() == [2, -2]


def test_scenarios_and_what_voters_said_come_along(tmp_path: Path) -> None:
    rows = ["b,left,1,0,0,0,old,x,", "a,left,1,0,0,0,young,y,fit", "b,left,1,0,0,0,old,,", "a,left,2,0,0,0,young,z,fat"]
    age = AboutQuestion("age", "years", {"young": ("young",), "old": ("old",)})
    health = AboutQuestion("health", "form", {"fit": ("fit",), "fat": ("fat",)})
    mapping = TableMapping(STUDY, scenario="kind", about=AboutMapping((age, health)))
    imported = import_text(tmp_path, HEADER.replace("\n", ",years,kind,form\n") + "\n".join(rows), mapping)
    ballots = imported.ballots
    assert ballots.scenarios is not None
    assert ballots.scenarios.to_list() == ["x", None, "y", "z"]
    assert ballots.about["age"].to_list() == ["old", "young"]
    assert ballots.about["health"].to_list() == [None, None]
    assert imported.report.notes == (
        "1 of 2 people gave different answers to 'health': their 'health' counts as unknown",
    )


def test_a_type_of_scenario_that_an_effect_is_read_from_and_no_record_has_is_told(tmp_path: Path) -> None:
    named = [replace(f, scenario=kind) for f, kind in zip(STUDY.factors, ("People", "Ages"), strict=False)]
    mapping = TableMapping(replace(STUDY, named_factors=tuple(named)), scenario="kind")
    rows = "a,left,1,0,0,0,People\na,left,1,0,0,0,ages\n"
    imported = import_text(tmp_path, HEADER.replace("\n", ",kind\n") + rows, mapping)
    assert imported.report.notes == (
        "no record is of the scenario Ages, which the effect of a factor of study toy is read from: column kind has "
        "People, ages",
    )


def test_several_columns_name_a_voter_and_are_not_mixed_up(tmp_path: Path) -> None:
    names = [("a", "b/c"), ("a/b", "c"), ("a\\", "/b"), ("a\\/", "b"), ("a", "b")]
    rows = [f"{site},{name},left,1,0,0,0" for site, name in [*names, *names]]
    rows += [",x,left,1,0,0,0", "x,,left,1,0,0,0"]
    mapping = TableMapping(STUDY, voter=("site", "name"))
    imported = import_text(tmp_path, HEADER.replace("voter", "site,name") + "\n".join(rows), mapping)
    assert imported.ballots.counts.tolist() == [2] * 5
    assert len(set(imported.ballots.voter_names())) == 5
    assert imported.ballots.voter_names()[-1] == "a/b"
    assert dict(imported.report.refused) == {RowDefect.VOTER_MISSING: 2}


def test_a_voter_on_both_sides_of_a_batch_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"v{k % 7},left,{k % 5},0,0,0" for k in range(400)]
    whole = import_text(tmp_path, HEADER + "\n".join(rows)).ballots
    monkeypatch.setattr(table_file, "_BLOCK_BYTES", 256)
    batches = list(table_file.TableFile(tmp_path / "answers.csv", ["voter"]).batches())
    assert len(batches) > 10
    cut = import_text(tmp_path, HEADER + "\n".join(rows)).ballots
    assert cut.voters == 7
    assert cut.counts.tolist() == whole.counts.tolist() == [58] + [57] * 6
    assert np.array_equal(cut.differences, whole.differences)


def test_a_table_without_a_usable_record_is_refused(tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "b"
    for rows, why in (("", "no row follows the header"), ("ann,none,1,0,0,0\n", "of 1 row, 1 no single choice")):
        path.write_text(HEADER + rows)
        for attempt in (
            lambda: read_table(path, STUDY, allow_refused=1),
            lambda: import_table(path, out, TableMapping(STUDY), allow_refused=1),
        ):
            with pytest.raises(CrowdveilError, match=f"not one usable record, so there are no ballots: {why}; check"):
                attempt()
    assert not out.exists()


def test_a_table_is_imported_by_name_if_it_is_doubtful(tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "b"
    path.write_text(HEADER + "".join(f"{k},left,1,0,0,0\n" for k in range(30)))
    for attempt in (
        lambda: read_table(path, mapping=TableMapping(STUDY)),
        lambda: import_table(path, out, TableMapping(STUDY)),
    ):
        with pytest.raises(CrowdveilError, match="30 voters have 30 records, nearly all of them one each"):
            attempt()
    assert not out.exists()
    assert read_table(path, STUDY, one_record_each=True).voters == 30
    assert import_table(path, out, TableMapping(STUDY), one_record_each=True).voters == 30
    path.write_text(HEADER + "ann,left,1,0,0,0\nann,none,1,0,0,0\n")
    with pytest.raises(CrowdveilError, match=r"1 of 2 rows \(50\.0%\) are refused"):
        import_table(path, tmp_path / "c", TableMapping(STUDY), tmp_path / "refused.csv")
    assert not (tmp_path / "c").exists()
    assert "no single choice" in (tmp_path / "refused.csv").read_text()
    assert read_table(path, STUDY, allow_refused=0.5).records == 1
    with pytest.raises(CrowdveilError, match="give either a mapping"):
        read_table(path)


NAMES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=5)
ANSWER = st.tuples(NAMES, st.booleans(), *(st.floats(f.low, f.high) for f in FEATURES for _ in range(2)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ANSWER, min_size=1, max_size=20), st.booleans())
def test_what_is_written_is_what_is_read(tmp_path: Path, answers: list[tuple[Any, ...]], as_parquet: bool) -> None:
    frame = pl.DataFrame(answers, schema=["voter", "chosen", *HEADER.strip().split(",")[2:]], orient="row")
    frame = frame.with_columns(pl.when("chosen").then(pl.lit("left")).otherwise(pl.lit("right")).alias("chosen"))
    path = tmp_path / "table"
    if as_parquet:
        frame.write_parquet(path)
    else:
        frame.write_csv(path)
    imported = load_table(path, TableMapping(STUDY))
    expected: dict[str, list[list[float]]] = {}
    for voter, left, size, size_r, cost, cost_r in answers:
        sign = 1 if left else -1
        expected.setdefault(voter, []).append([sign * (size - size_r), sign * (cost - cost_r) / 10])
    ballots = imported.ballots
    assert ballots.voter_names() == list(expected)
    for i, answers_of_one in enumerate(expected.values()):
        assert ballots[i : i + 1].differences.tolist() == answers_of_one


def mapping_file(folder: Path, text: str) -> Path:
    path = folder / "mapping.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_mapping_needs_only_its_study(tmp_path: Path) -> None:
    assert load_mapping(mapping_file(tmp_path, 'study = "kidney"')) == TableMapping(load_study("kidney"))


def test_a_study_file_is_found_beside_its_mapping(tmp_path: Path) -> None:
    (tmp_path / "toy.toml").write_text(
        'name = "toy"\n[drawing]\nmethod = "gaussian"\ndilemmas = 1\n[[features]]\nname = "a"\nlow = 0\nhigh = 1\n'
    )
    mapping = load_mapping(mapping_file(tmp_path, 'study = "toy.toml"\nleft = 0\nright = 1'))
    assert mapping.study.feature_names == ("a",)
    assert (mapping.left, mapping.right) == ("0", "1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("study = ", "not a readable TOML"),
        ("voter = 'id'", "say which study"),
        ("study = 5", "say which study"),
        ("study = 'no-such-study'", "there is no study 'no-such-study'"),
        ("study = 'kidney'\nvotre = 'id'", "unknown setting 'votre'; known are about, chosen"),
        ("study = 'kidney'\nvoter = []", "voter must be a column or several"),
        ("study = 'kidney'\nvoter = [1, 2]", "voter must be a column or several"),
        ("study = 'kidney'\nright = 1\nneither = '1 '", "says '1' for right and for neither"),
        ("study = 'kidney'\n[about]\nage = ['a']", "about.age must be a section with levels"),
        ("study = 'kidney'\nleft = true", "left must be a text"),
        ("study = 'kidney'\nleft = 'A'\nright = 'a '", "for left and for right"),
        ("study = 'kidney'\nfeatures = 3", r"features must be a section \(\[features\]\)"),
        ("study = 'kidney'\n[features]\nobesity = 'l_obesity'", r'obesity must be \["left column", "right column"\]'),
        ("study = 'kidney'\n[features]\nobesity = ['a', 'b', 'c']", "obesity must be"),
        ("study = 'kidney'\n[features]\nage = ['a', 'b']", "names the feature 'age', but study kidney has"),
        ("study = 'kidney'\n[drop]\npairid = ['a']", "drop.pairid must be a text"),
    ],
)
def test_a_bad_mapping_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CrowdveilError, match=message):
        load_mapping(mapping_file(tmp_path, text))


def test_a_mapping_must_exist(tmp_path: Path) -> None:
    with pytest.raises(CrowdveilError, match=r"there is no mapping file .*absent\.toml: check its name"):
        load_mapping(tmp_path / "absent.toml")


def test_columns_that_the_mapping_names_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(CrowdveilError, match="lacks the column kind"):
        import_text(tmp_path, HEADER, TableMapping(STUDY, drop={"kind": "*"}))


@with_kidney
def test_the_example_mapping_reads_the_public_kidney_answers() -> None:
    imported = load_table(KIDNEY, load_mapping(ROOT / "examples/kidney-mapping.toml"))
    with gzip.open(KIDNEY, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    kept = [row for row in rows if not row["pairid"].startswith("att_")]
    report = imported.report
    assert (report.rows, report.dropped, report.records, report.voters) == (33_024, 33_024 - len(kept), len(kept), 82)
    assert dict(report.refused) == {}
    of_voter: dict[str, list[list[float]]] = {}
    for row in kept:
        sign = -1 if row["chosen"] == "1" else 1
        columns = {"elderlyDep": 1, "lifeYearsGained": 10, "obesity": 1, "weeklyWorkhours": 10, "yearsWaiting": 1}
        v = [sign * (int(row[f"l_{c}"]) - int(row[f"r_{c}"])) / unit for c, unit in columns.items()]
        of_voter.setdefault(row["id"], []).append(v)
    assert imported.ballots.voter_names() == list(of_voter)
    assert np.array_equal(imported.ballots.differences, [v for answers in of_voter.values() for v in answers])
    assert imported.ballots.counts.tolist() == [len(answers) for answers in of_voter.values()]
