"""An import that workers share is the import of one machine, however the file is cut and whoever reads what."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from crowdveil.ballots.ballot_file import open_ballots
from crowdveil.ballots.ballots import census
from crowdveil.engines.engine import LocalEngine
from crowdveil.errors import CrowdveilError
from crowdveil.sources.moral_machine import blocks, shards
from crowdveil.sources.moral_machine.blocks import cut_ranges, read_range
from crowdveil.sources.moral_machine.engine_import import import_with_engine
from crowdveil.sources.moral_machine.importing import holds_answers, import_moral_machine
from crowdveil.sources.simulated_layout import write_public_layout
from crowdveil.sources.table_file import TableFile
from crowdveil.study.bundled import load_study


@pytest.fixture(autouse=True)
def _cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "BYTES_PER_BUCKET", 1 << 18)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answers") / "a.csv"
    write_public_layout(path, load_study("moral-machine"), 150, np.random.default_rng(0), dirty=0.05)
    return path


@pytest.mark.parametrize(("size", "threads"), [(1 << 27, 1), (300_001, 1), (20_000, 1), (20_000, 3)])
def test_it_is_the_import_of_one_machine(tmp_path: Path, answers: Path, size: int, threads: int) -> None:
    told: list[Any] = []
    report = import_moral_machine(answers, tmp_path / "one")
    assert import_with_engine(answers, tmp_path / "many", LocalEngine(threads), told.append, size) == report
    one, many = open_ballots(tmp_path / "one"), open_ballots(tmp_path / "many")
    assert len(many.shards) > 1
    assert census(many) == census(one)
    assert many.load().voter_names() == one.load().voter_names()
    assert {p.name for p in tmp_path.iterdir()} == {"one", "many"}
    reading = [progress for progress in told if progress.reading]
    assert (reading[-1].done, reading[-1].rows) == (answers.stat().st_size, report.rows)


def test_parquet_is_read_by_row_groups(tmp_path: Path) -> None:
    write_public_layout(tmp_path / "a.csv", load_study("moral-machine"), 200, np.random.default_rng(0))
    pl.read_csv(tmp_path / "a.csv", infer_schema=False).write_parquet(tmp_path / "a.parquet", row_group_size=700)
    report = import_moral_machine(tmp_path / "a.csv", tmp_path / "one")
    assert import_with_engine(tmp_path / "a.parquet", tmp_path / "many", LocalEngine(2)) == report
    assert census(open_ballots(tmp_path / "many")) == census(open_ballots(tmp_path / "one"))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 10**6])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("closed", [True, False])
def test_every_line_is_in_one_range(
    tmp_path: Path, size: int, ending: str, closed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "_LOOK_AHEAD", 4)
    lines = ["a,b", "1,2", "", "3,4", "a longer line of some words,5", "6,7"]
    path = tmp_path / "t.csv"
    path.write_bytes((ending.join(lines) + (ending if closed else "")).encode())
    table = TableFile(path, ["a", "b"])
    counts = [sum(block.rows for block in read_range(table, *cut)) for cut in cut_ranges(table, size)]
    assert sum(counts) == 4
    assert size > 1 or max(counts) == 1


def test_an_interrupted_import_goes_on(tmp_path: Path, answers: Path) -> None:
    class Interrupted(LocalEngine):
        def each(self, work: Any, count: int) -> Any:
            for number in range(count - 1):
                yield work(number)
            raise KeyboardInterrupt

    class Counting(LocalEngine):
        def each(self, work: Any, count: int) -> Any:
            steps.append(count)
            return super().each(work, count)

    steps: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        import_with_engine(answers, tmp_path / "many", Interrupted(), shard_bytes=100_000)
    (left,) = tmp_path.iterdir()
    before = {shard.name: shard.stat().st_mtime_ns for shard in left.glob("shard-*")}
    assert len(before) > 1

    def tell(progress: Any) -> None:
        if not progress.reading:
            after = {shard.name: shard.stat().st_mtime_ns for shard in left.glob("shard-*")}
            assert {name: after[name] for name in before} == before

    report = import_with_engine(answers, tmp_path / "many", Counting(1), tell, 100_000)
    assert report == import_moral_machine(answers, tmp_path / "one")
    assert len(steps) == 3


def test_what_cannot_be_spread_is_refused(tmp_path: Path, answers: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(answers.read_bytes()[:100_000]))
    with pytest.raises(
        CrowdveilError, match=r"a\.csv\.gz is gzipped, so only one worker could read it: unpack it first"
    ):
        import_with_engine(tmp_path / "a.csv.gz", tmp_path / "many", LocalEngine())
    header = answers.read_bytes().split(b"\n")[0]
    (tmp_path / "b.csv").write_bytes(header + b"\n")
    with pytest.raises(CrowdveilError, match=r"not one usable record.*: no row follows the header"):
        import_with_engine(tmp_path / "b.csv", tmp_path / "many", LocalEngine())
    (tmp_path / "many").mkdir()
    with pytest.raises(CrowdveilError, match="it is a directory"):
        import_with_engine(answers, tmp_path / "many", LocalEngine())
    assert {p.name for p in tmp_path.iterdir()} == {"a.csv.gz", "b.csv", "many"}


def test_rows_of_several_lines_are_shared_or_refused_by_name(tmp_path: Path) -> None:
    """Cut anywhere: a cut between rows shares the file, one within a row is noticed by who reads before it."""
    rows = [f'ann,{k},"fine,\nlater ""rain""\n"\n' if k % 3 == 0 else f"bob,{k},dry\n" for k in range(30)]
    path = tmp_path / "a.csv"
    path.write_text("a,b,c\n" + "".join(rows))
    table = TableFile(path, ["a", "b", "c"])
    ends = {6 + len("".join(rows[:k])) for k in range(31)}
    shared = 0
    for cut in range(1, path.stat().st_size):
        line_end = path.read_text().index("\n", cut - 1) + 1
        if line_end in ends:
            assert sum(block.rows for cut_at in ((0, cut), (cut, 10**6)) for block in read_range(table, *cut_at)) == 30
            shared += 1
        else:
            with pytest.raises(CrowdveilError, match=rf"a quoted cell with a line break at byte {line_end}"):
                list(read_range(table, 0, cut))
    assert 0 < shared < path.stat().st_size - 1


def test_an_import_with_rows_of_several_lines(tmp_path: Path, answers: Path) -> None:
    with answers.open(newline="") as given, (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        for number, cells in enumerate(csv.reader(given)):
            writer.writerow([*cells, "fine,\nlater rain" if number % 50 == 1 else "weather"])
    report = import_moral_machine(tmp_path / "a.csv", tmp_path / "one")
    assert report.records == import_moral_machine(answers, tmp_path / "plain").records
    assert import_with_engine(tmp_path / "a.csv", tmp_path / "many", LocalEngine(1), None, 300_000) == report
    assert census(open_ballots(tmp_path / "many")) == census(open_ballots(tmp_path / "one"))


def test_a_file_of_answers_is_known_by_its_columns(tmp_path: Path, answers: Path) -> None:
    import_moral_machine(answers, tmp_path / "ballots")
    assert holds_answers(answers)
    assert not holds_answers(tmp_path / "ballots")
    assert not holds_answers(tmp_path / "absent")
    assert not holds_answers(tmp_path)
