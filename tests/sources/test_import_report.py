from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from crowdveil.errors import CrowdveilError
from crowdveil.sources.import_report import ImportReport, RowDefect, write_refused
from crowdveil.sources.mapping import TableMapping
from crowdveil.sources.table import load_table
from crowdveil.study.bundled import load_study


def test_the_report_is_plain_data(tmp_path: Path) -> None:
    header = "voter,chosen,left_x1,right_x1,color\n"
    rows = "a,left,1,0,red\na,none,1,0,red\n,left,1,0,red\nb,left,99,0,red\nb,left,-1,0,red\nb,left,x\n"
    (tmp_path / "answers.csv").write_text(header + rows)
    imported = load_table(tmp_path / "answers.csv", TableMapping(load_study("synthetic-1")))
    data = imported.report.as_dict()
    assert json.loads(json.dumps(data)) == data
    assert data == {
        "rows": 6,
        "records": 2,
        "voters": 2,
        "refused": {
            "cut short, or more cells than columns": 1,
            "voter missing": 1,
            "out of bounds": 1,
            "no single choice": 1,
        },
        "dropped": 0,
        "notes": ["columns not needed (1): color"],
    }
    assert imported.refused_rows["refused row"].to_list() == [2, 3, 4, 6]


def test_refused_rows_cannot_be_written_where_nothing_can(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("voter,chosen,left_x1,right_x1\n")
    imported = load_table(tmp_path / "answers.csv", TableMapping(load_study("synthetic-1")))
    with pytest.raises(CrowdveilError, match="cannot write"):
        write_refused(tmp_path, imported)


STUDY = load_study("kidney")


def report(rows: int = 1000, voters: int = 100, refused: int = 0, dropped: int = 0) -> ImportReport:
    reasons = {RowDefect.BLANK: refused // 3, RowDefect.UNPAIRED: refused - refused // 3} if refused else {}
    return ImportReport(rows, rows - refused - dropped, voters, reasons, dropped)


def test_a_file_that_loses_too_many_rows_is_refused() -> None:
    report(refused=50).check(STUDY, 0.05, False)
    with pytest.raises(
        CrowdveilError,
        match=r"^51 of 1000 rows \(5\.1%\) are refused, more than 5% \(34 of them: unpaired\).*allow_refused=0\.06 ",
    ):
        report(refused=51).check(STUDY, 0.05, False)
    report(refused=51).check(STUDY, 0.06, False)
    with pytest.raises(CrowdveilError, match=r"^50 of 800 rows"):
        report(refused=50, dropped=200).check(STUDY, 0.05, False)
    with pytest.raises(CrowdveilError, match=r"^56 of 1000 rows \(5\.6%\) are refused, more than 5\.5% "):
        report(refused=56).check(STUDY, 0.055, False)
    report(rows=0, voters=0).check(STUDY, 0, False)
    for share in (-0.1, 1.1, float("nan")):
        with pytest.raises(CrowdveilError, match="a number from 0 to 1, got"):
            report().check(STUDY, share, False)


@pytest.mark.parametrize("rows", [7, 100, 1000, 9973])
def test_the_share_that_a_refusal_recommends_is_enough(rows: int) -> None:
    for refused in range(1, rows, max(1, rows // 500)):
        lost = report(rows, 1, refused)
        with pytest.raises(CrowdveilError) as refusal:
            lost.check(STUDY, 0, False)
        recommended = str(refusal.value).rpartition("--allow-refused ")[2].rstrip(")")
        assert 0 <= Fraction(recommended) - Fraction(refused, rows) < Fraction(1, 100)
        lost.check(STUDY, float(recommended), False)


def test_voters_with_one_record_each_are_confirmed_by_name() -> None:
    for voters, records in ((100, 111), (19, 19), (1, 1)):
        report(records, voters).check(STUDY, 0.05, False)
    for voters, records in ((100, 110), (20, 20), (12_984, 12_984)):
        with pytest.raises(CrowdveilError, match=rf"^{voters} voters have {records} records, .*one_record_each=True"):
            report(records, voters).check(STUDY, 0.05, False)
        report(records, voters).check(STUDY, 0.05, True)
    one_dilemma = replace(STUDY, drawing=replace(STUDY.drawing, dilemmas=1))
    report(100, 100).check(one_dilemma, 0.05, False)
