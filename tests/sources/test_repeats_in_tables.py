"""Second answers in tables and arrays: they are compared with the first ones, and are no records."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import CrowdveilError
from crowdveil.sources.import_report import RowDefect
from crowdveil.sources.mapping import TableMapping, load_mapping
from crowdveil.sources.table import load_table, read_table
from crowdveil.study.bundled import load_study

STUDY = replace(load_study("synthetic-2"), repeat=True)
A, B, C = [1.0, 0.0], [0.0, 1.0], [2.0, 2.0]
ROWS = [
    # voter, left, right, chosen, repeat
    ("ann", A, B, "left", 0),
    ("ann", B, C, "right", 0),
    ("ann", B, A, "right", 1),  # mirrored: alike
    ("bob", A, B, "left", 0),
    ("bob", C, B, "left", 0),
    ("bob", B, A, "left", 1),  # mirrored: not alike
    ("cyd", A, C, "right", 0),
    ("cyd", A, B, "left", 0),
    ("cyd", A, C, "right", 1),  # not mirrored: alike
]


def table(rows, path, study=STUDY):
    sides = [("left", 1), ("right", 2)]
    columns = {
        f"{side}_{name}": [row[k][j] for row in rows] for side, k in sides for j, name in enumerate(study.feature_names)
    }
    pl.DataFrame(
        {
            "voter": [row[0] for row in rows],
            "chosen": [row[3] for row in rows],
            "repeat": [row[4] for row in rows],
            **columns,
        }
    ).write_csv(path)
    return path


def arrays(rows):
    voters, left, right, chosen, again = zip(*rows, strict=True)
    return list(voters), list(left), list(right), [1 if one == "left" else -1 for one in chosen], np.array(again) == 1


def from_arrays(rows, study=STUDY):
    *given, again = arrays(rows)
    return Ballots.from_arrays(study, *given, repeat=again)


def test_second_answers_are_compared_and_are_no_records(tmp_path):
    for ballots in (from_arrays(ROWS), read_table(table(ROWS, tmp_path / "t.csv"), mapping=TableMapping(STUDY))):
        assert ballots.alike.tolist() == [1, -1, 1]
        assert ballots.counts.tolist() == [2, 2, 2]
        assert ballots.differences.tolist() == [[1, -1], [2, 1], [1, -1], [2, 1], [1, 2], [1, -1]]


def test_rows_of_a_voter_need_not_stand_together(tmp_path):
    mixed = [ROWS[i] for i in (3, 0, 5, 1, 6, 2, 4, 8, 7)]
    for ballots in (from_arrays(mixed), read_table(table(mixed, tmp_path / "t.csv"), mapping=TableMapping(STUDY))):
        alike = dict(zip(ballots.voter_names(), ballots.alike.tolist(), strict=True))
        assert alike == {"ann": 1, "bob": -1, "cyd": 1}


def test_neither_twice_is_alike(tmp_path):
    study = replace(STUDY, indifference="Toss a coin")
    rows = [
        ("ann", A, B, "neither", 0),
        ("ann", B, A, "neither", 1),
        ("bob", A, B, "neither", 0),
        ("bob", B, A, "left", 1),
    ]
    ballots = read_table(table(rows, tmp_path / "t.csv"), mapping=TableMapping(study))
    assert ballots.alike.tolist() == [1, -1]


NONE, TWO = ROWS[:2], [*ROWS[:2], ROWS[2], ("ann", B, A, "left", 1)]
STRANGE = [*ROWS[:2], ("ann", A, C, "left", 1)]


@pytest.mark.parametrize("wrong", [NONE, TWO, STRANGE])
def test_voters_without_one_repeat_are_refused_by_reason(tmp_path, wrong):
    rows = [*wrong, *ROWS[3:]]
    result = load_table(table(rows, tmp_path / "t.csv"), TableMapping(STUDY))
    assert result.report.refused == {RowDefect.NO_REPEAT: len(wrong)}
    assert result.refused_rows["refused row"].to_list() == list(range(1, len(wrong) + 1))
    cells = result.refused_rows.select("voter", "chosen", "repeat").rows()
    assert cells == [(voter, chosen, str(again)) for voter, _, _, chosen, again in wrong], "what they say is kept"
    assert "1 of 3 people have no record that could be used: they are left out" in result.report.notes
    assert result.ballots.voter_names() == ["bob", "cyd"]
    assert (result.report.rows, result.report.records, result.report.dropped) == (len(rows), 4, 0)
    with pytest.raises(CrowdveilError, match="voter 'ann' must have one second answer"):
        from_arrays(rows)


def test_two_rows_a_pair_carry_second_answers_too(tmp_path):
    rows = [
        {
            "voter": voter,
            "pair": pair,
            "chosen": int((chosen == "left") == first),
            "repeat": again,
            "x1": values[0],
            "x2": values[1],
        }
        for pair, (voter, left, right, chosen, again) in enumerate(ROWS)
        for values, first in ((left, True), (right, False))
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "t.csv")
    names = STUDY.feature_names
    mapping = TableMapping(STUDY, pair=("pair",), features={names[0]: ("x1", "x1"), names[1]: ("x2", "x2")})
    result = load_table(tmp_path / "t.csv", mapping)
    assert result.ballots.alike.tolist() == [1, -1, 1]
    assert result.report.dropped == 0
    pl.DataFrame(rows[6:]).vstack(pl.DataFrame(rows[:4])).write_csv(tmp_path / "t.csv")  # ann lacks hers, and is last
    lost = load_table(tmp_path / "t.csv", mapping)
    assert lost.refused_rows.select("refused row", "voter", "pair").rows() == [
        (13, "ann", "0"),
        (14, "ann", "0"),
        (15, "ann", "1"),
        (16, "ann", "1"),
    ]
    assert lost.report.notes[-1] == "1 of 3 people have no record that could be used: they are left out"


def test_a_mapping_names_the_column(tmp_path):
    text = 'study = "study.toml"\nrepeat = "again"\n'
    (tmp_path / "map.toml").write_text(text)
    (tmp_path / "study.toml").write_text(
        'name = "s"\nrepeat = true\ndrawing = {method = "independent", dilemmas = 3}\n'
        '[[features]]\nname = "a"\nlabel = "a"\nlow = 0\nhigh = 2\nlevels = [0, 1, 2]\n'
    )
    assert "again" in load_mapping(tmp_path / "map.toml").needed
    (tmp_path / "map.toml").write_text('study = "kidney"\nrepeat = "again"\n')
    with pytest.raises(CrowdveilError, match="asks no dilemma twice"):
        load_mapping(tmp_path / "map.toml")


def test_arrays_say_which_rows_are_second_answers_and_nothing_else():
    *given, again = arrays(ROWS)
    with pytest.raises(CrowdveilError, match="say which rows are second answers"):
        Ballots.from_arrays(STUDY, *given)
    with pytest.raises(CrowdveilError, match="asks no dilemma twice"):
        Ballots.from_arrays(load_study("synthetic-2"), *given, repeat=again)
    with pytest.raises(CrowdveilError, match="True or False for each of 9 rows"):
        Ballots.from_arrays(STUDY, *given, repeat=again[:3])
