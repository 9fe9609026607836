"""An import in pieces, by way of the disk: it must agree with the plain rules however it is cut."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdveil.audit.dirty_csv import COLUMNS, apply_rules, outcome_of, plain_rows
from crowdveil.ballots.ballot_file import open_ballots, read_ballots
from crowdveil.ballots.ballots import census
from crowdveil.errors import CrowdveilError
from crowdveil.sources.import_report import RowDefect
from crowdveil.sources.moral_machine import blocks, importing, shards
from crowdveil.sources.moral_machine.importing import (
    ImportProgress,
    import_moral_machine,
    load_moral_machine,
    read_moral_machine,
)
from crowdveil.sources.simulated_layout import write_public_layout
from crowdveil.study.bundled import load_study

Cells = dict[str, Any]


@pytest.fixture
def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make everything go through several blocks, shards, buckets and batches, small as it is."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(blocks, "ROWS_PER_BLOCK", 5)
    monkeypatch.setattr(importing, "ENTRIES_PER_SHARD", 7)
    monkeypatch.setattr(shards, "BYTES_PER_BUCKET", 2500)
    monkeypatch.setattr(importing, "CLAIMS_PER_BATCH", 3)


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the crowd below."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 20_000)
    monkeypatch.setattr(blocks, "ROWS_PER_BLOCK", 100)
    monkeypatch.setattr(importing, "ENTRIES_PER_SHARD", 100)
    monkeypatch.setattr(shards, "BYTES_PER_BUCKET", 100_000)
    monkeypatch.setattr(importing, "CLAIMS_PER_BATCH", 50)


def as_csv(rows: list[Cells]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def check(path: Path, text: str) -> None:
    """Import a file and compare with the plain rules applied to its text."""
    imported = load_moral_machine(path)
    plain = apply_rules(plain_rows(text, blocks.BLOCK_BYTES))
    assert outcome_of(imported) == plain
    refused = plain.refused
    assert imported.refused_rows["refused row"].is_sorted()
    assert imported.report.refused == {r: list(refused.values()).count(r) for r in RowDefect if r in refused.values()}


def row(dilemma: str, voter: str, saved: int, group: Cells, **more: Any) -> Cells:
    counts = dict.fromkeys(COLUMNS[8:], 0) | group
    size = {"NumberOfCharacters": sum(group.values()), "Weather": "fine"}
    place = {"Intervention": 1 - saved, "Barrier": 0, "CrossingSignal": 0}
    return {"ResponseID": dilemma, "ExtendedSessionID": voter, "Saved": saved} | size | place | counts | more


# Few names, so that dilemmas are claimed by several voters, in all combinations.
ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["d1", "d2", "d3", "d4", "d5", "a dilemma with a long name"]),
        st.sampled_from(["ann", "bob", "cy,d", 'e"f', "gü", "-1000956146_3249823734583890.0"]),
        st.integers(0, 1),
        st.sampled_from([{"Man": 1}, {"Man": 1, "Cat": 4}, {"Dog": 5}, {"Dog": 6}, {"Man": "1.0"}]).map(
            lambda g: {k: float(v) if isinstance(v, str) else v for k, v in g.items()}
        ),
        Intervention=st.sampled_from([0, 1, "0.0", "1.0", " 1", "2", ""]),
    ),
    max_size=40,
)


@pytest.mark.usefixtures("cut_small")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS)
def test_few_names_and_many_rows(tmp_path: Path, rows: list[Cells]) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(text := as_csv(rows), encoding="utf-8", newline="")
    check(path, text)


DIRT = st.sampled_from(
    ["", " ", "1", "1.0", "1.00", "01", "2", "-1", "nan", "inf", "1e400", "x", "é", '"', "a,b", "5 "]
)


@pytest.mark.usefixtures("cut_small")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 59), st.sampled_from(COLUMNS), DIRT), max_size=10),
    st.lists(st.integers(0, 59), max_size=4),
    st.lists(st.tuples(st.integers(0, 59), st.integers(1, 80)), max_size=3),
    st.randoms(use_true_random=False),
    st.booleans(),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
)
def test_dirty_rows_in_any_order(
    tmp_path: Path,
    spoilt: list[tuple[int, str, str]],
    repeated: list[int],
    cut: list[tuple[int, int]],
    random: Any,
    shuffled: bool,
    end: str,
) -> None:
    rows = [row(f"d{k // 2}", f"v{k // 2 % 4}", k % 2, {"Man": 1 + k % 3, "Cat": k % 2}) for k in range(60)]
    for at, name, junk in spoilt:
        rows[at] |= {name: junk}
    header, *lines = as_csv(rows).splitlines()
    for at, length in cut:
        lines[at] = lines[at].replace('"', "")[:length].rstrip(",") or "x"
    lines += [lines[at] for at in repeated]
    if shuffled:
        random.shuffle(lines)
    path = tmp_path / "answers.csv"
    path.write_text(text := end.join([header, *lines]), encoding="utf-8", newline="")
    check(path, text)


QUOTED = st.sampled_from(
    ["fine\nand dry", "\r\n", "a\rb", 'she said "no",\nand left', '"', "\n\n\n", "d1,ann,1\nd2,ann,0", "é\n"]
)
STRAY = st.sampled_from(['"', '""', 'x"y', '"x"y', '"x" ', '"x\ny"z', '"a,b', '"\n"'])


@pytest.mark.usefixtures("cut_small")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(0, 29), st.sampled_from(COLUMNS), QUOTED), max_size=12),
    st.lists(st.tuples(st.integers(0, 29), st.sampled_from(COLUMNS), STRAY), max_size=3),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.booleans(),
)
def test_cells_with_quotes_and_line_breaks(
    tmp_path: Path,
    quoted: list[tuple[int, str, str]],
    stray: list[tuple[int, str, str]],
    end: str,
    quoting: Any,
    marked: bool,
) -> None:
    rows = [row(f"d{k // 2}", f"v{k // 2 % 4}", k % 2, {"Man": 1 + k % 3}) for k in range(30)]
    for at, name, cell in quoted:
        rows[at] |= {name: cell}
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, quoting=quoting, lineterminator=end)
    writer.writeheader()
    for at, cells in enumerate(rows):
        raw = {name: f"<{k}>" for k, (there, name, _) in enumerate(stray) if there == at}
        writer.writerow(cells | raw)
    written = text.getvalue()
    for k, (_, _, cell) in enumerate(stray):
        written = re.sub(f'"?<{k}>"?', lambda _, cell=cell: cell, written)
    path = tmp_path / "answers.csv"
    path.write_bytes((codecs.BOM_UTF8 if marked else b"") + written.encode())
    check(path, written)


def test_a_cell_with_line_breaks_loses_nothing(tmp_path: Path) -> None:
    """As in files with what people wrote: each pair has a cell of several lines."""
    rows = [row(f"d{k // 2}", f"v{k // 20}", k % 2, {"Man": 1 + k % 3}) for k in range(400)]
    for cells in rows[::2]:
        cells["Weather"] = "fine,\nlater rain"
    text = as_csv(rows)
    for name, content in (("a.csv", text.encode()), ("a.csv.gz", gzip.compress(text.encode()))):
        (tmp_path / name).write_bytes(content)
        imported = load_moral_machine(tmp_path / name)
        assert (imported.report.records, imported.report.voters, dict(imported.report.refused)) == (200, 20, {})


def test_a_header_may_be_quoted_and_broken(tmp_path: Path) -> None:
    rows = [row("d", "ann", saved, {"Man": 1}) for saved in (0, 1)]
    header, *lines = as_csv(rows).splitlines()
    names = ",".join(f'"{name}"' for name in header.split(",")).replace("Weather", "Weather,\nas it was")
    (tmp_path / "a.csv").write_bytes(codecs.BOM_UTF8 + "\r\n".join(["", " ", names, *lines]).encode())
    imported = load_moral_machine(tmp_path / "a.csv")
    assert (imported.report.rows, imported.report.records) == (2, 1)
    assert imported.report.notes[0] == "columns not needed (1): Weather,\nas it was"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a dirty crowd of 100 voters."""
    path = tmp_path_factory.mktemp("crowd") / "crowd.csv"
    write_public_layout(path, load_study("moral-machine"), 100, np.random.default_rng(3), dirty=0.2)
    return path


def pieces(path: Path) -> Iterator[bytes]:
    header, *lines = path.read_bytes().splitlines(keepends=True)
    yield header
    yield b"".join(np.random.default_rng(1).permutation(np.array(lines, object)).tolist())


def variants(crowd: Path, folder: Path) -> Iterator[Path]:
    """Write the same answers in other ways."""
    shuffled = folder / "shuffled.csv"
    shuffled.write_bytes(b"".join(pieces(crowd)))
    yield shuffled
    zipped = folder / "zipped"
    zipped.write_bytes(gzip.compress(crowd.read_bytes()[:20_000]) + gzip.compress(crowd.read_bytes()[20_000:]))
    yield zipped
    quoted = folder / "quoted.csv"
    with crowd.open(newline="") as given, quoted.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(csv.reader(given))
    yield quoted


def test_the_order_of_rows_and_the_dress_do_not_matter(crowd: Path, tmp_path: Path) -> None:
    expected = load_moral_machine(crowd)
    for path in variants(crowd, tmp_path):
        again = load_moral_machine(path)
        assert census(again.ballots) == census(expected.ballots), path.name
        assert again.ballots.voter_names() == expected.ballots.voter_names()
        assert again.report.refused == expected.report.refused
        assert np.array_equal(again.ballots.choices, expected.ballots.choices)
        assert again.ballots.scenarios is not None
        assert expected.ballots.scenarios is not None
        assert np.array_equal(again.ballots.scenarios.codes, expected.ballots.scenarios.codes)


@pytest.mark.usefixtures("cut")
def test_nor_does_the_way_it_is_cut(crowd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    report = import_moral_machine(crowd, out, allow_refused=1, threads=3)
    monkeypatch.undo()
    whole = load_moral_machine(crowd)
    assert census(open_ballots(out)) == census(whole.ballots)
    assert read_ballots(out).voter_names() == whole.ballots.voter_names()
    assert report == whole.report
    assert dict(open_ballots(out).origin) == {"imported_from": "crowd.csv", **report.as_dict()}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("numbers", [pl.Int64, pl.Float32, pl.Float64, pl.String])
@pytest.mark.usefixtures("cut")
def test_parquet_with_numbers_of_any_kind(crowd: Path, tmp_path: Path, numbers: Any) -> None:
    columns = [c for c in pl.read_csv(crowd, n_rows=1, infer_schema=False).columns if c in {*COLUMNS, "Saved"}]
    rows = pl.read_csv(crowd, infer_schema=False, truncate_ragged_lines=True, columns=columns)
    texts = ["ResponseID", "ExtendedSessionID"]
    rows = rows.with_columns(pl.exclude(texts).cast(pl.Float64, strict=False).cast(numbers, strict=False))
    rows.write_parquet(tmp_path / "answers", row_group_size=400)
    rows.with_columns(pl.exclude(texts).cast(pl.String)).write_csv(tmp_path / "answers.csv")
    imported, plain = (load_moral_machine(tmp_path / name) for name in ("answers", "answers.csv"))
    assert imported.report == plain.report
    assert imported.report.refused
    assert census(imported.ballots) == census(plain.ballots)
    assert imported.refused_rows.equals(plain.refused_rows)


def test_a_group_size_that_is_no_number_is_inconsistent_in_parquet_too(tmp_path: Path) -> None:
    halves = [row("d", "ann", saved, {"Man": 1}) for saved in (0, 1)]
    for size, pairs in ((1.0, 1), (None, 1), (2.0, 0), (float("nan"), 0), (float("inf"), 0)):
        pl.DataFrame([half | {"NumberOfCharacters": size} for half in halves], strict=False).write_parquet(
            tmp_path / "answers"
        )
        assert load_moral_machine(tmp_path / "answers").report.records == pairs


def test_a_quote_that_is_not_closed_costs_its_line_only(tmp_path: Path) -> None:
    header, *lines = as_csv([row(f"d{k // 2}", "ann", k % 2, {"Man": 1}) for k in range(6)]).splitlines()
    lines[2] = '"' + lines[2]
    (tmp_path / "answers.csv").write_text("\n".join([header, *lines]))
    imported = load_moral_machine(tmp_path / "answers.csv")
    assert imported.report.refused == {RowDefect.RAGGED: 1, RowDefect.UNPAIRED: 1}
    assert imported.refused_rows.filter(pl.col("refused row") == 3)["refused text"].item() == lines[2]


def test_two_quotes_that_are_no_pair_cost_their_lines_only(tmp_path: Path) -> None:
    header, *lines = as_csv([row(f"d{k // 2}", "ann", k % 2, {"Man": 1}) for k in range(12)]).splitlines()
    lines[2], lines[8] = '"' + lines[2], '"' + lines[8]
    (tmp_path / "answers.csv").write_text("\n".join([header, *lines]))
    report = load_moral_machine(tmp_path / "answers.csv").report
    assert report.refused == {RowDefect.RAGGED: 2, RowDefect.UNPAIRED: 2}
    assert (report.rows, report.records) == (12, 4)


@pytest.mark.usefixtures("cut_small")
def test_a_line_without_end_is_no_row(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text(as_csv([]) + "x" * 2000)
    with pytest.raises(CrowdveilError, match="a line longer than"):
        load_moral_machine(tmp_path / "answers.csv")


def test_a_damaged_file_leaves_nothing(crowd: Path, tmp_path: Path) -> None:
    # Long enough for the header to be read before the end is missed.
    (tmp_path / "crowd.gz").write_bytes(gzip.compress(3 * crowd.read_bytes())[:-500])
    with pytest.raises(CrowdveilError, match=r"damaged or cut off after row \d+: Truncated"):
        import_moral_machine(tmp_path / "crowd.gz", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["crowd.gz"]


def test_refused_rows_are_listed_even_if_all_are(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text(as_csv([row("d", "ann", 1, {"Man": 1}), row("e", "", 1, {"Man": 9})]))
    with pytest.raises(
        CrowdveilError, match=r"usable record.* of 2 rows, 1 voter missing, 1 unpaired; check .*--refused"
    ):
        import_moral_machine(tmp_path / "answers.csv", tmp_path / "out", tmp_path / "refused.csv", allow_refused=1)
    listed = pl.read_csv(tmp_path / "refused.csv")
    assert listed["refused because"].to_list() == ["unpaired", "voter missing"]
    assert listed["Man"].to_list() == [1, 9]
    assert not (tmp_path / "out").exists()


def test_a_file_without_a_usable_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    for rows, why in (([], "no row follows the header"), ([row("d", "ann", 1, {"Man": 1})], "of 1 row, 1 unpaired")):
        path.write_text(as_csv(rows))
        for attempt in (
            read_moral_machine,
            lambda given, **kept: import_moral_machine(given, tmp_path / "out", **kept),
        ):
            with pytest.raises(CrowdveilError, match=f"not one usable record, so there are no ballots: {why}; check"):
                attempt(path, allow_refused=1)
    assert [path.name for path in tmp_path.iterdir()] == ["answers.csv"]


def test_what_is_doubtful_is_imported_by_name_only(crowd: Path, tmp_path: Path) -> None:
    with pytest.raises(CrowdveilError, match=r"rows \(\d+\.\d%\) are refused, more than 5% .*allow_refused=0\.\d+ "):
        import_moral_machine(crowd, tmp_path / "out", tmp_path / "refused.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["refused.csv"]
    with pytest.raises(CrowdveilError, match="are refused, more than 5%"):
        read_moral_machine(crowd)
    assert read_moral_machine(crowd, allow_refused=0.2).voters == 100
    path = tmp_path / "rows.csv"
    path.write_text(as_csv([row(f"d{k // 2}", str(k // 2), k % 2, {"Man": 1}) for k in range(60)]))
    for attempt in (read_moral_machine, lambda given: import_moral_machine(given, tmp_path / "out")):
        with pytest.raises(CrowdveilError, match="30 voters have 30 records, nearly all of them one each"):
            attempt(path)
    assert not (tmp_path / "out").exists()
    assert read_moral_machine(path, one_record_each=True).voters == 30
    assert import_moral_machine(path, tmp_path / "out", one_record_each=True).voters == 30


def test_progress_is_exact(crowd: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 100_000)
    told: list[ImportProgress] = []
    report = import_moral_machine(crowd, tmp_path / "out", allow_refused=1, tell=told.append)
    reads = [progress for progress in told if progress.reading]
    size = crowd.stat().st_size
    assert len(reads) == size // 100_000 + 1
    assert [p.done for p in reads] == sorted(p.done for p in reads)
    assert reads[-1] == ImportProgress(True, size, size, report.rows)
    # The first block holds as many rows as lines end in its bytes, without the header.
    assert reads[0].rows == crowd.read_bytes()[:100_000].count(b"\n") - 1


class Stop(BaseException):
    """As the user or the system would stop the program."""


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("dress", ["plain", "gzip", "parquet"])
def test_an_interrupted_import_goes_on(crowd: Path, tmp_path: Path, dress: str) -> None:
    path, out = tmp_path / "answers", tmp_path / "out"
    if dress == "parquet":
        columns = [c for c in pl.read_csv(crowd, n_rows=1, infer_schema=False).columns if c in COLUMNS]
        rows = pl.read_csv(crowd, infer_schema=False, truncate_ragged_lines=True, columns=columns)
        rows.write_parquet(path, row_group_size=600)
    else:
        path.write_bytes(crowd.read_bytes() if dress == "plain" else gzip.compress(crowd.read_bytes()))
    expected = load_moral_machine(path)
    read: list[int] = []

    def stop_after(rows: int, progress: ImportProgress) -> None:
        if progress.reading:
            read.append(progress.rows)
        if progress.rows >= rows:
            raise Stop

    for rows in (700, 1400):
        with pytest.raises(Stop):
            import_moral_machine(
                path, out, allow_refused=1, tell=lambda progress, rows=rows: stop_after(rows, progress)
            )
        assert not out.exists()
    begun = len(read)
    report = import_moral_machine(
        path, out, tmp_path / "refused.csv", allow_refused=1, tell=lambda p: stop_after(10**9, p)
    )
    assert read[begun] > 700, "it began from the beginning"
    assert report == expected.report
    assert census(open_ballots(out)) == census(expected.ballots)
    assert pl.read_csv(tmp_path / "refused.csv", infer_schema=False)["refused row"].cast(pl.Int64).to_list() == (
        expected.refused_rows["refused row"].to_list()
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers", "out", "refused.csv"]


@pytest.mark.usefixtures("cut")
def test_what_was_read_of_another_file_is_not_used(crowd: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "answers", tmp_path / "out"
    shutil.copy(crowd, path)

    def stop(progress: ImportProgress) -> None:
        if progress.rows > 1000:
            raise Stop

    with pytest.raises(Stop):
        import_moral_machine(path, out, allow_refused=1, tell=stop)
    # Of the same size, but of another time.
    header, *lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + b"".join(reversed(lines)))
    os.utime(path, ns=(1, 1))
    assert import_moral_machine(path, out, allow_refused=1).records == load_moral_machine(crowd).report.records


@pytest.mark.usefixtures("cut")
def test_a_damaged_shard_is_read_again(crowd: Path, tmp_path: Path) -> None:
    """As after a power cut, when some pages of a file never reached the disk."""
    out = tmp_path / "out"

    def stop(progress: ImportProgress) -> None:
        if progress.rows > 1700:
            raise Stop

    with pytest.raises(Stop):
        import_moral_machine(crowd, out, allow_refused=1, tell=stop)
    written = sorted((tmp_path / ".out.importing").glob("shard-*"))
    assert len(written) > 4
    with written[2].open("r+b") as file:
        file.seek(-4096, os.SEEK_END)
        file.write(bytes(4096))
    with written[3].open("r+b") as file:
        file.truncate(written[3].stat().st_size // 2)
    import_moral_machine(crowd, out, allow_refused=1)
    assert census(open_ballots(out)) == census(load_moral_machine(crowd).ballots)


IMPORT = """
import sys, time
from crowdveil.sources.moral_machine.importing import import_moral_machine
from crowdveil.sources.moral_machine import blocks, importing
blocks.BLOCK_BYTES, importing.ENTRIES_PER_SHARD = 7_000, 100
def tell(progress):
    print(progress.rows, flush=True)
    time.sleep(0.02)
import_moral_machine(sys.argv[1], sys.argv[2], allow_refused=1, tell=tell)
"""


def test_a_killed_import_leaves_nothing_half_done_and_goes_on(crowd: Path, tmp_path: Path) -> None:
    out, first = tmp_path / "out", []
    for _ in range(2):
        process = subprocess.Popen(
            [sys.executable, "-c", IMPORT, str(crowd), str(out)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        lines = [int(process.stdout.readline()) for _ in range(15)]
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        first.append(lines[0])
        assert not out.exists()
    assert first[1] > first[0], "the second began where the first did"
    told: list[ImportProgress] = []
    import_moral_machine(crowd, out, allow_refused=1, tell=told.append)
    assert told[0].rows > first[0]
    assert census(open_ballots(out)) == census(load_moral_machine(crowd).ballots)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
