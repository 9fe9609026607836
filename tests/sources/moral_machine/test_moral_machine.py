from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.real_data import MORAL_MACHINE, with_moral_machine

from crowdveil.errors import CrowdveilError
from crowdveil.sources.import_report import ImportResult, RowDefect
from crowdveil.sources.moral_machine.importing import ImportProgress, load_moral_machine
from crowdveil.study.bundled import load_study

STUDY = load_study("moral-machine")
CHARACTERS = ["".join(word.capitalize() for word in name.split("_")) for name in STUDY.feature_names[3:]]
HEADER = ["ResponseID", "ExtendedSessionID", "Saved", "Intervention", "Barrier", "CrossingSignal", *CHARACTERS]
LEGALITY = {0: 0, 1: 1, 2: -1}

Row = dict[str, Any]


def row(dilemma: str, voter: str, saved: int, **cells: Any) -> Row:
    return (
        dict.fromkeys(HEADER, 0) | {"ResponseID": dilemma, "ExtendedSessionID": voter, "Saved": saved, "Man": 1} | cells
    )


def pair(dilemma: str, voter: str = "ann") -> list[Row]:
    return [row(dilemma, voter, 1), row(dilemma, voter, 0, Man=0, Dog=2, Intervention=1)]


def import_rows(folder: Path, rows: Iterable[Row], header: list[str] = HEADER) -> ImportResult:
    text = io.StringIO()
    writer = csv.DictWriter(text, header)
    writer.writeheader()
    writer.writerows(rows)
    path = folder / "answers.csv"
    path.write_text(text.getvalue(), encoding="utf-8")
    return load_moral_machine(path)


def refused(imported: ImportResult) -> dict[RowDefect, int]:
    report = imported.report
    assert report.rows == 2 * report.records + sum(report.refused.values()), "a row was lost"
    assert len(imported.refused_rows) == sum(report.refused.values())
    return dict(report.refused)


def feature(imported: ImportResult, name: str) -> list[int]:
    return [int(v) for v in imported.ballots.differences[:, STUDY.feature_names.index(name)]]


def test_a_pair_becomes_chosen_minus_other(tmp_path: Path) -> None:
    imported = import_rows(
        tmp_path,
        [
            row("d", "ann", 0, Man=0, OldWoman=3, Barrier=1, Intervention=1),
            row("d", "ann", 1, Man=2, CrossingSignal=2),
        ],
    )
    nonzero = {n: v for n, v in zip(STUDY.feature_names, imported.ballots.differences[0].tolist(), strict=True) if v}
    assert nonzero == {"intervention": -1, "barrier": -1, "legality": -1, "man": 2, "old_woman": -3}
    assert imported.ballots.differences.dtype == np.int8
    assert imported.ballots.voter_names() == ["ann"]
    assert refused(imported) == {}


def test_legality_is_a_category(tmp_path: Path) -> None:
    rows = []
    for signal in (0, 1, 2):
        rows += [row(f"d{signal}", "ann", 1, CrossingSignal=signal), row(f"d{signal}", "ann", 0)]
        assert feature(import_rows(tmp_path, rows[-2:]), "legality") == [LEGALITY[signal]]


def test_answers_are_their_voters(tmp_path: Path) -> None:
    one, two, three = (
        [row(d, v, 1, Man=k), row(d, v, 0, Man=1)] for d, v, k in (("x", "bob", 2), ("y", "ann", 3), ("z", "bob", 4))
    )
    imported = import_rows(tmp_path, [one[0], two[0], three[1], three[0], two[1], one[1]])
    men = dict(
        zip(
            imported.ballots.voter_names(),
            np.split(feature(imported, "man"), imported.ballots.offsets[1:-1]),
            strict=True,
        )
    )
    assert {voter: sorted(answers) for voter, answers in men.items()} == {"bob": [1, 3], "ann": [2]}


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ({"ExtendedSessionID": ""}, RowDefect.VOTER_MISSING),
        ({"ExtendedSessionID": "  "}, RowDefect.VOTER_MISSING),
        ({"ResponseID": ""}, RowDefect.DILEMMA_MISSING),
        ({"Cat": ""}, RowDefect.BLANK),
        ({"Saved": ""}, RowDefect.BLANK),
        ({"Man": "one"}, RowDefect.NOT_A_NUMBER),
        ({"Man": "nan"}, RowDefect.NOT_A_NUMBER),
        ({"Man": "inf"}, RowDefect.NOT_A_NUMBER),
        ({"Man": "-inf"}, RowDefect.NOT_A_NUMBER),
        ({"Man": "1e400"}, RowDefect.NOT_A_NUMBER),
        ({"Saved": "yes"}, RowDefect.NOT_A_NUMBER),
        ({"Man": -1}, RowDefect.OUT_OF_BOUNDS),
        ({"Man": 6}, RowDefect.OUT_OF_BOUNDS),
        ({"Man": 300}, RowDefect.OUT_OF_BOUNDS),
        ({"Man": 0.5}, RowDefect.OUT_OF_BOUNDS),
        ({"Man": 0}, RowDefect.OUT_OF_BOUNDS),
        ({"Man": 3, "Cat": 3}, RowDefect.OUT_OF_BOUNDS),
        ({"CrossingSignal": 3}, RowDefect.OUT_OF_BOUNDS),
        ({"CrossingSignal": -1}, RowDefect.OUT_OF_BOUNDS),
        ({"Barrier": 2}, RowDefect.OUT_OF_BOUNDS),
        ({"Intervention": 0.5}, RowDefect.OUT_OF_BOUNDS),
        ({"NumberOfCharacters": 2}, RowDefect.INCONSISTENT),
        ({"NumberOfCharacters": "many"}, RowDefect.INCONSISTENT),
        ({"Saved": 2}, RowDefect.NO_SINGLE_CHOICE),
        ({"Saved": 0.5}, RowDefect.NO_SINGLE_CHOICE),
    ],
)
def test_a_bad_row_is_refused_with_its_partner(tmp_path: Path, cells: Row, reason: RowDefect) -> None:
    good, other = pair("good"), row("bad", "ann", 0)
    rows = [good[0], row("bad", "ann", 1) | cells, other, good[1]]
    imported = import_rows(tmp_path, rows, [*HEADER, "NumberOfCharacters"])
    assert refused(imported) == {reason: 1, RowDefect.UNPAIRED: 1}
    assert imported.report.records == 1
    assert imported.refused_rows["refused row"].to_list() == [2, 3]
    assert imported.refused_rows["refused because"].to_list() == [reason.value, RowDefect.UNPAIRED.value]


@pytest.mark.parametrize(
    "cells", [{"Man": "1.0"}, {"Man": " 1 "}, {"Man": "01"}, {"NumberOfCharacters": "1.0"}, {"NumberOfCharacters": ""}]
)
def test_numbers_may_be_written_in_any_way(tmp_path: Path, cells: Row) -> None:
    rows = [row("d", "ann", 1) | cells, row("d", "ann", 0)]
    assert refused(import_rows(tmp_path, rows, [*HEADER, "NumberOfCharacters"])) == {}


def test_a_row_without_partner_is_unpaired(tmp_path: Path) -> None:
    assert refused(import_rows(tmp_path, [*pair("a"), row("b", "ann", 1)])) == {RowDefect.UNPAIRED: 1}


def test_a_repeated_row_counts_once(tmp_path: Path) -> None:
    first, second = pair("a")
    imported = import_rows(tmp_path, [first, second, first | {"Man": "1.0"}])
    assert refused(imported) == {RowDefect.DOUBLED: 1}
    assert imported.report.records == 1
    assert imported.refused_rows["refused row"].to_list() == [3]
    assert refused(import_rows(tmp_path, [first, first])) == {RowDefect.DOUBLED: 1, RowDefect.UNPAIRED: 1}
    assert refused(import_rows(tmp_path, [first, second, second, first])) == {RowDefect.DOUBLED: 2}


def test_three_different_rows_of_one_dilemma_are_all_refused(tmp_path: Path) -> None:
    rows = [*pair("a"), row("a", "ann", 0, Cat=2), *pair("b")]
    assert refused(import_rows(tmp_path, rows)) == {RowDefect.DOUBLED: 3}


@pytest.mark.parametrize("saved", [0, 1])
def test_a_dilemma_needs_one_choice(tmp_path: Path, saved: int) -> None:
    rows = [row("a", "ann", saved), row("a", "ann", saved, Cat=1)]
    assert refused(import_rows(tmp_path, rows)) == {RowDefect.NO_SINGLE_CHOICE: 2}


def test_a_dilemma_has_one_voter(tmp_path: Path) -> None:
    rows = [row("a", "ann", 1), row("a", "bob", 0)]
    assert refused(import_rows(tmp_path, rows)) == {RowDefect.INCONSISTENT: 2}


def test_equal_alternatives_are_kept_and_noted(tmp_path: Path) -> None:
    imported = import_rows(tmp_path, [row("a", "ann", 1), row("a", "ann", 0)])
    assert imported.report.records == 1
    assert imported.report.notes == ("1 of 1 records are between two equal alternatives",)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_first_alternative_does_not_depend_on_the_choice(tmp_path: Path, reverse: bool) -> None:
    """It is the group that is hit if the car stays, whichever row comes first and whichever group was spared."""
    stay, swerve = {"Man": 2, "Intervention": 0}, {"Man": 0, "Dog": 3, "Intervention": 1}
    for saved, choice in ((1, 1), (0, -1)):
        rows = [row("d", "ann", saved, **stay), row("d", "ann", 1 - saved, **swerve)]
        ballots = import_rows(tmp_path, rows[::-1] if reverse else rows).ballots
        assert ballots.choices.tolist() == [choice]
        shown = dict(zip(STUDY.feature_names, ballots.dilemmas[0].tolist(), strict=True))
        assert {name: v for name, v in shown.items() if v} == {"intervention": -1, "man": 2, "dog": -3}


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("as_parquet", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "scenario"),
    [
        (("Age", "Age"), ("Age", "Age"), "Age"),
        (("Utilitarian", "Utilitarian"), ("Utilitarian", "Utilitarian"), "Utilitarian"),
        (("Social Status", "Social Value"), ("Social Value", "Social Value"), "Social Status"),
        ((" Species", "Species "), ("Species", "Species"), "Species"),
        (("Age", "Age"), ("Gender", "Gender"), None),
        (("Age", "Random"), ("Age", "Random"), None),
        (("", ""), ("", ""), None),
        (("Utilitaxian", "Utilitaxian"), ("Utilitaxian", "Utilitaxian"), None),
        (("Utilitariax", "Utilitariax"), ("Utilitariax", "Utilitariax"), None),
    ],
)
def test_scenarios_are_known_where_all_agree(
    tmp_path: Path, first: tuple[str, str], second: tuple[str, str], scenario: str | None, as_parquet: bool, apart: bool
) -> None:
    names = ("ScenarioType", "ScenarioTypeStrict")
    rows = [half | dict(zip(names, said, strict=True)) for half, said in zip(pair("d"), (first, second), strict=True)]
    if apart:
        rows.insert(1, row("e", "ann", 1))
    imported = import_rows(tmp_path, rows, [*HEADER, *names])
    if as_parquet:
        pl.read_csv(tmp_path / "answers.csv").write_parquet(tmp_path / "answers")
        imported = load_moral_machine(tmp_path / "answers")
    assert imported.ballots.scenarios is not None
    assert imported.ballots.scenarios.to_list() == [scenario]


def test_a_file_may_say_nothing_of_scenarios(tmp_path: Path) -> None:
    assert import_rows(tmp_path, pair("d")).ballots.scenarios is None
    one = import_rows(tmp_path, [half | {"ScenarioType": "Age"} for half in pair("d")], [*HEADER, "ScenarioType"])
    assert one.ballots.scenarios is not None
    assert one.ballots.scenarios.to_list() == ["Age"]


def test_other_columns_are_noted(tmp_path: Path) -> None:
    imported = import_rows(tmp_path, pair("a"), [*HEADER, "UserCountry3", "Weather"])
    assert imported.report.notes == ("columns not needed (2): UserCountry3, Weather",)


def test_missing_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(CrowdveilError, match=r"lacks the columns Barrier, Cat$"):
        import_rows(tmp_path, [], [name for name in HEADER if name not in ("Barrier", "Cat")])


def test_a_header_alone_is_no_answer(tmp_path: Path) -> None:
    imported = import_rows(tmp_path, [])
    assert (imported.report.rows, imported.report.records, imported.report.voters) == (0, 0, 0)


def test_progress_is_told_the_rows(tmp_path: Path) -> None:
    import_rows(tmp_path, pair("a"))
    told: list[ImportProgress] = []
    load_moral_machine(tmp_path / "answers.csv", told.append)
    size = (tmp_path / "answers.csv").stat().st_size
    assert told == [ImportProgress(True, size, size, 2), ImportProgress(False, 1, 1, 2)]


GROUP = st.dictionaries(st.sampled_from(CHARACTERS), st.just(1), min_size=1, max_size=5)
OUTCOME = st.builds(
    lambda group, barrier, signal: {"Man": 0} | group | {"Barrier": barrier, "CrossingSignal": signal},
    GROUP,
    st.integers(0, 1),
    st.integers(0, 2),
)
DILEMMAS = st.lists(st.tuples(st.sampled_from(["ann", "bob", "cy,d", 'e"f', "gü"]), OUTCOME, OUTCOME), max_size=12)


def value(outcome: Row, name: str) -> int:
    column = "CrossingSignal" if name == "legality" else "".join(w.capitalize() for w in name.split("_"))
    given = outcome.get(column, 0)
    return LEGALITY[given] if name == "legality" else given


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DILEMMAS, st.randoms(use_true_random=False))
def test_what_is_written_is_what_is_read(tmp_path: Path, dilemmas: list[tuple[str, Row, Row]], random: Any) -> None:
    rows: list[Row] = []
    expected: dict[str, list[list[int]]] = {}
    for k, (voter, chosen, other) in enumerate(dilemmas):
        rows += [row(f"d{k}", voter, 1, **chosen), row(f"d{k}", voter, 0, **other)]
        expected.setdefault(voter, []).append([value(chosen, n) - value(other, n) for n in STUDY.feature_names])
    random.shuffle(rows)
    imported = import_rows(tmp_path, rows)
    assert refused(imported) == {}
    ballots = imported.ballots
    read = {
        name: ballots.differences[ballots.offsets[i] : ballots.offsets[i + 1]].tolist()
        for i, name in enumerate(ballots.voter_names())
    }
    assert {k: sorted(v) for k, v in read.items()} == {k: sorted(v) for k, v in expected.items()}


JUNK = st.sampled_from(
    ["", " ", "0", "1", "1.0", "2", "7", "-1", "nan", "inf", "1e400", "x", "é", "0x1", "1,5", '"', "\0"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(HEADER), JUNK), max_size=8),
    st.lists(st.integers(0, 30), max_size=4),
    st.lists(st.integers(0, 30), max_size=4),
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 40)), max_size=3),
)
def test_no_row_of_a_dirty_file_is_lost(
    tmp_path: Path,
    spoilt: list[tuple[int, str, str]],
    repeated: list[int],
    removed: list[int],
    cut: list[tuple[int, int]],
) -> None:
    rows = [half for k in range(16) for half in pair(f"d{k}", f"v{k % 3}")]
    touched = {at // 2 for at, *_ in spoilt} | {at // 2 for at in removed + repeated} | {at // 2 for at, _ in cut}
    for at, column, junk in spoilt:
        rows[at] = rows[at] | {column: junk}
    text = io.StringIO()
    csv.DictWriter(text, HEADER).writeheader()
    lines = []
    for at, cells in enumerate(rows):
        line = io.StringIO()
        csv.DictWriter(line, HEADER).writerow(cells)
        written = line.getvalue().rstrip("\r\n")
        for where, length in cut:
            if where == at:
                written = ",".join(written.replace('"', "").split(",")[: max(2, length)])
        lines += [] if at in removed else [written] * (1 + repeated.count(at))
    path = tmp_path / "dirty.csv"
    path.write_text(text.getvalue() + "\r\n".join(lines) + "\r\n", encoding="utf-8")
    imported = load_moral_machine(path)
    assert imported.report.rows == len(lines)
    refused(imported)
    # A spoilt dilemma name may hit another dilemma only by being equal to it, and no junk is.
    assert imported.report.records >= 16 - len(touched)


@pytest.fixture(scope="module")
def public() -> ImportResult:
    return load_moral_machine(MORAL_MACHINE)


@pytest.fixture(scope="module")
def dilemmas() -> dict[str, list[dict[str, str]]]:
    """Read the file another way."""
    with gzip.open(MORAL_MACHINE, "rt", encoding="utf-8", newline="") as file:
        read: dict[str, list[dict[str, str]]] = {}
        for cells in csv.DictReader(file):
            read.setdefault(cells["ResponseID"], []).append(cells)
    return read


@pytest.fixture(scope="module")
def answers(dilemmas: dict[str, list[dict[str, str]]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Import the file with every dilemma as a voter of its own, so that each answer can be found by its dilemma."""
    path = tmp_path_factory.mktemp("public") / "answers.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, next(iter(dilemmas.values()))[0])
        writer.writeheader()
        for name, halves in dilemmas.items():
            writer.writerows(half | {"ExtendedSessionID": name} for half in halves)
    imported = load_moral_machine(path)
    assert imported.report.records == imported.report.voters == len(dilemmas)
    return dict(zip(imported.ballots.voter_names(), imported.ballots.differences, strict=True))


@with_moral_machine
def test_it_has_the_known_size(public: ImportResult) -> None:
    assert refused(public) == {}
    assert public.report.records == 22_315
    assert public.report.voters == 2_097
    assert (public.ballots.counts == 11).sum() == 1_042
    assert (public.ballots.counts == 13).sum() == 20


@with_moral_machine
def test_another_reader_finds_the_same(
    public: ImportResult, answers: dict[str, Any], dilemmas: dict[str, list[dict[str, str]]]
) -> None:
    expected: dict[str, list[list[int]]] = {}
    for name, halves in dilemmas.items():
        chosen, other = sorted(halves, key=lambda cells: cells["Saved"], reverse=True)
        signal = LEGALITY[int(chosen["CrossingSignal"])] - LEGALITY[int(other["CrossingSignal"])]
        numbers = [int(float(chosen[c])) - int(float(other[c])) for c in ("Intervention", "Barrier", *CHARACTERS)]
        expected.setdefault(chosen["ExtendedSessionID"], []).append([*numbers[:2], signal, *numbers[2:]])
        assert answers[name].tolist() == expected[chosen["ExtendedSessionID"]][-1]
    ballots = public.ballots
    assert ballots.scenarios is not None
    kinds = Counter(halves[0]["ScenarioType"] for halves in dilemmas.values())
    assert Counter(ballots.scenarios.to_list()) == kinds
    assert (ballots.dilemmas[:, 0] == -1).all(), "the first is not the group that is hit if the car stays"
    read = zip(ballots.voter_names(), np.split(ballots.differences, ballots.offsets[1:-1]), strict=True)
    assert {name: sorted(v.tolist()) for name, v in read} == {name: sorted(v) for name, v in expected.items()}


@with_moral_machine
@pytest.mark.parametrize(
    ("kind", "preferred", "share"),
    [
        ("Species", "Hoomans", 0.83),
        ("Utilitarian", "More", 0.80),
        ("Age", "Young", 0.75),
        ("Gender", "Female", 0.60),
        ("Fitness", "Fit", 0.57),
    ],
)
def test_the_known_side_is_spared(
    answers: dict[str, Any],
    dilemmas: dict[str, list[dict[str, str]]],
    kind: str,
    preferred: str,
    share: float,
) -> None:
    """The imported V agrees with the raw group of the named level: V . (that group - the other) > 0."""
    spared = []
    for dilemma, halves in dilemmas.items():
        v = answers[dilemma][3:]
        if halves[0]["ScenarioType"] == kind:
            named, other = sorted(halves, key=lambda cells: cells["AttributeLevel"] != preferred)
            spared.append(sum(int(x) * (int(named[c]) - int(other[c])) for x, c in zip(v, CHARACTERS, strict=True)) > 0)
    assert np.mean(spared) == pytest.approx(share, abs=0.005)


@with_moral_machine
def test_the_lawful_are_spared(public: ImportResult) -> None:
    """Two lights are opposite only where both groups cross: V is then +2 or -2."""
    legality = np.array(feature(public, "legality"))
    assert np.mean(legality[np.abs(legality) == 2] > 0) == pytest.approx(0.68, abs=0.005)


@with_moral_machine
def test_parquet_is_read_alike(public: ImportResult, tmp_path: Path) -> None:
    pl.read_csv(MORAL_MACHINE, infer_schema_length=None).write_parquet(tmp_path / "answers")
    again = load_moral_machine(tmp_path / "answers")
    assert np.array_equal(again.ballots.differences, public.ballots.differences)
    assert again.ballots.voter_names() == public.ballots.voter_names()
