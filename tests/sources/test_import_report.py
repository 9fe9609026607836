from __future__ import annotations

import json
from pathlib import Path

import pytest

from crowdveil.errors import CrowdveilError
from crowdveil.sources.import_report import write_refused
from crowdveil.sources.table import TableMapping, load_table
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
        "pairs": 2,
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
