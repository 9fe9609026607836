from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest
from tests.real_data import MORAL_MACHINE

from crowdveil.ballots.ballots import Ballots, concatenate
from crowdveil.errors import CrowdveilError
from crowdveil.sources.import_report import RowDefect
from crowdveil.sources.moral_machine.importing import load_moral_machine
from crowdveil.sources.moral_machine.layout import COLUMNS
from crowdveil.sources.simulated import simulated_batches
from crowdveil.sources.simulated_layout import REFUSED_FOR, LayoutFault, write_public_layout
from crowdveil.study.bundled import load_study

STUDY = load_study("moral-machine")


def sessions(ballots: Ballots) -> list[list[list[int]]]:
    """Return what each voter answered, with neither voters nor answers in any order."""
    return sorted(sorted(v.tolist()) for v in np.split(ballots.differences, ballots.offsets[1:-1]))


@pytest.mark.parametrize("name", ["crowd.csv", "crowd.csv.gz"])
def test_an_import_finds_the_simulated_crowd(tmp_path: Path, name: str) -> None:
    expected = write_public_layout(tmp_path / name, STUDY, 120, np.random.default_rng(5))
    crowd = concatenate(STUDY, list(simulated_batches(STUDY, 120, np.random.default_rng(5))))
    imported = load_moral_machine(tmp_path / name)
    assert sessions(imported.ballots) == sessions(crowd)
    assert expected.as_dict() == {"rows": 120 * 26, "records": 120 * 13, "voters": 120, "refused": {}}


def test_the_layout_is_the_public_one(tmp_path: Path) -> None:
    write_public_layout(tmp_path / "crowd.csv", STUDY, 3, np.random.default_rng(5))
    with (tmp_path / "crowd.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == list(COLUMNS)
    assert {len(row) for row in rows} == {41}
    if MORAL_MACHINE.exists():
        with gzip.open(MORAL_MACHINE, "rt", newline="") as public:
            assert header == next(csv.reader(public))


def test_the_columns_agree_with_each_other(tmp_path: Path) -> None:
    write_public_layout(tmp_path / "crowd.csv", STUDY, 40, np.random.default_rng(5))
    with (tmp_path / "crowd.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        assert one["ResponseID"] == other["ResponseID"]
        assert {one["Saved"], other["Saved"]} == {"0", "1"}
        assert {one["Intervention"], other["Intervention"]} == {"0", "1"}
        assert (one["PedPed"] == "1") == (one["Barrier"] == other["Barrier"] == "0")
        for row in (one, other):
            assert int(row["NumberOfCharacters"]) == sum(int(row[c]) for c in COLUMNS[21:])
            assert row["ExtendedSessionID"].endswith(f"_{row['UserID']}.0")
    assert len({row["ResponseID"] for row in rows}) == 40 * 13
    assert len({row["UserID"] for row in rows}) == 40
    assert sorted(int(row["ScenarioOrder"]) for row in rows) == sorted(list(range(1, 14)) * 80)


@pytest.mark.parametrize("dirty", [0.1, 1.0])
def test_what_is_expected_of_a_dirty_file_is_what_an_import_finds(tmp_path: Path, dirty: float) -> None:
    expected = write_public_layout(tmp_path / "crowd.csv", STUDY, 200, np.random.default_rng(5), dirty)
    found = load_moral_machine(tmp_path / "crowd.csv").report
    assert (found.rows, found.records, found.voters) == (expected.rows, expected.records, expected.voters)
    assert found.refused == expected.refused
    # The layout has numbers only, no levels in words, and asks nothing twice.
    assert set(expected.refused) == set(RowDefect) - {RowDefect.NO_LEVEL, RowDefect.NO_REPEAT}, (
        "some fault is never written"
    )
    assert sum(expected.refused.values()) == expected.rows - 2 * expected.records


def test_dirt_is_as_frequent_as_asked(tmp_path: Path) -> None:
    expected = write_public_layout(tmp_path / "crowd.csv", STUDY, 2000, np.random.default_rng(5), 0.3)
    unusable = sum(1 for fault in LayoutFault if REFUSED_FOR[fault] and fault is not LayoutFault.REPEATED)
    share = 0.3 * unusable / (len(LayoutFault) - 1)
    # Six standard deviations of a binomial count.
    spread = 6 * np.sqrt(26_000 * share * (1 - share))
    assert abs((26_000 - expected.records) - 26_000 * share) < spread


def test_only_this_study_has_the_layout(tmp_path: Path) -> None:
    with pytest.raises(CrowdveilError, match="not to kidney"):
        write_public_layout(tmp_path / "x", load_study("kidney"), 3, np.random.default_rng(0))
    with pytest.raises(CrowdveilError, match="between 0 and 1"):
        write_public_layout(tmp_path / "x", STUDY, 3, np.random.default_rng(0), float("nan"))
