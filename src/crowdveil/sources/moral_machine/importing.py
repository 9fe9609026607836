"""Import files in the public layout of the Moral Machine, in bounded memory.

There are three steps, which ``engine_import`` distributes to workers and which run here one after another. Blocks of
rows are scanned into shards on disk. Dilemmas that several voters claim are refused. Then, bucket by bucket, rows
become pairs and pairs become ballots. The same records give the same ballots, byte for byte and to a ledger, in
whatever order their rows are, in CSV, gzipped or in Parquet.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from crowdveil.arrays import ByteArray, IntArray, WordArray
from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.ballots.ballots import Ballots, concatenate
from crowdveil.engines.engine import in_order, usable_cores
from crowdveil.errors import CrowdveilError, check_whole, path_of, shown
from crowdveil.files import check_writable, put_in_place, replacing
from crowdveil.sources.about import About, read_about
from crowdveil.sources.import_report import (
    MOST_REFUSED,
    REASON,
    ROW,
    TEXT,
    ImportReport,
    ImportResult,
    check_allowed,
    equal_alternatives_note,
)
from crowdveil.sources.mapping import load_about_mapping
from crowdveil.sources.moral_machine.blocks import Block, BlockScan, open_layout, read_blocks
from crowdveil.sources.moral_machine.entries import ROW as ENTRY_ROW
from crowdveil.sources.moral_machine.entries import ScanResult, join_results
from crowdveil.sources.moral_machine.layout import SCENARIO, STRICT_SCENARIO, VOTER
from crowdveil.sources.moral_machine.row_pairs import BucketBallots, contested_rows, group
from crowdveil.sources.moral_machine.rows import REASONS
from crowdveil.sources.moral_machine.shards import (
    CLAIM_ROW,
    CLAIM_WORDS,
    RowShard,
    ShardFolder,
    bits_for,
    folder_beside,
    no_refusals,
)
from crowdveil.sources.table_file import TableFile, one_line
from crowdveil.study.bundled import load_study
from crowdveil.study.study import Study

ENTRIES_PER_SHARD = 1 << 20
CLAIMS_PER_BATCH = 1 << 21
_NAMES_REMEMBERED = 1 << 22
_BYTES_PER_GZIPPED_BYTE = 16
_BYTES_PER_ROW = 160


@dataclass(frozen=True)
class ImportProgress:
    """The progress of an import: in bytes of the file while it is read, then in buckets of voters."""

    reading: bool
    done: int
    total: int
    rows: int
    """Number of rows read so far."""


ProgressCallback = Callable[[ImportProgress], None]


def read_moral_machine(
    path: str | Path,
    *,
    about: str | Path | None = None,
    mapping: str | Path | None = None,
    allow_refused: float = MOST_REFUSED,
    one_record_each: bool = False,
) -> Ballots:
    """Read a file of answers, CSV (also gzipped) or Parquet, into memory.

    ``about`` is a table of voters' answers about themselves; ``mapping`` names its columns and their levels. A file is
    refused if more of its rows are refused than allowed, or if nearly every voter has only one record
    (``ImportReport.check``).
    """
    check_allowed(allow_refused, one_record_each)
    result = load_moral_machine(path, about=read_about_voters(about, mapping))
    result.report.check_any()
    result.report.check(result.ballots.study, allow_refused, one_record_each)
    return result.ballots


def read_about_voters(about: str | Path | None, mapping: str | Path | None) -> About | None:
    """Read voters' answers about themselves, if a table and a mapping of its columns are given."""
    if about is None and mapping is None:
        return None
    if about is None or mapping is None:
        raise CrowdveilError(
            "what voters said of themselves is a table (about) and a mapping with its questions and levels: give both"
        )
    return read_about(about, load_about_mapping(mapping), (VOTER,))


def load_moral_machine(
    path: str | Path, tell: ProgressCallback | None = None, about: About | None = None
) -> ImportResult:
    """Read a file of answers into memory, with a report and the refused rows."""
    table = open_layout(path)
    study = load_study("moral-machine")
    with tempfile.TemporaryDirectory() as folder:
        running = _LocalImport(table, ShardFolder(Path(folder), bucket_bits(table)), usable_cores(), tell, about)
        batches = [ballots for ballots in running.ballots() if ballots.voters]
        nobody = Ballots.from_differences(study, np.zeros(1, np.int64), np.empty((0, study.dimension), np.int8))
        ballots = concatenate(study, batches) if batches else nobody
        return ImportResult(ballots, running.report(), pl.concat(running.refused_rows()))


def import_moral_machine(
    path: str | Path,
    out: str | Path,
    refused: str | Path | None = None,
    tell: ProgressCallback | None = None,
    threads: int | None = None,
    *,
    about: str | Path | None = None,
    mapping: str | Path | None = None,
    allow_refused: float = MOST_REFUSED,
    one_record_each: bool = False,
) -> ImportReport:
    """Read a file of answers of any size into a ballot file; optionally write the refused rows and reasons to a CSV.

    This takes memory for some blocks of the file and some buckets of voters, whatever the size of the file, and room
    beside ``out`` for a quarter to a third of its text. An interrupted import leaves ``out`` as it was; the same call
    made again resumes with what was already read, unless the file has changed in the meantime. A whole file is refused
    as in ``read_moral_machine``, and ``about`` and ``mapping`` are the same; the refused rows are written in any case.
    """
    check_allowed(allow_refused, one_record_each)
    if threads is not None:
        check_whole(threads, "the number of threads", 1)
    if tell is not None and not callable(tell):
        raise CrowdveilError(f"tell is {shown(tell)}: give a function that is called with the progress")
    people = read_about_voters(about, mapping)
    table = open_layout(path)
    out = path_of(out, "the ballot file")
    study = load_study("moral-machine")
    if refused is not None:
        check_writable(path_of(refused, "the file of refused rows"))
    with folder_beside(out, source_identity(table), bucket_bits(table)) as folder:
        running = _LocalImport(table, folder, threads or usable_cores(), tell, people)

        def ballots() -> Iterator[Ballots]:
            yield from running.ballots()
            if refused is not None:  # even if not a single row could be used
                _write(running.refused_rows(), Path(refused))
            running.report().check_any()

        def origin() -> dict[str, Any]:
            return {"imported_from": table.path.name, **running.report().as_dict()}

        # Written in the temporary folder, so that a kill leaves nothing else behind.
        write_ballots(folder.path / "ballots", study, ballots(), origin)
        report = running.report()
        report.check(study, allow_refused, one_record_each)
        put_in_place(folder.path / "ballots", out)
        return report


def holds_answers(path: str | Path) -> bool:
    """Whether a file is in the public layout, by its columns."""
    try:
        open_layout(path)
    except CrowdveilError:
        return False
    return True


def source_identity(table: TableFile) -> dict[str, Any]:
    """Return what distinguishes a file from others, and from itself after a change."""
    state = table.path.stat()
    return {"path": str(table.path.resolve()), "bytes": state.st_size, "changed": state.st_mtime_ns}


def bucket_bits(table: TableFile) -> int:
    """Return how many bits of their hashes sort a file's voters into buckets."""
    size = table.path.stat().st_size
    if table.is_parquet:
        size = table.parquet_rows() * _BYTES_PER_ROW
    return bits_for(size * _BYTES_PER_GZIPPED_BYTE if table.is_gzipped else size)


class ShardContent:
    """The content of a shard that is being filled, block by block."""

    def __init__(self) -> None:
        self.rows = 0
        self.entries = 0
        self._results: list[ScanResult] = []
        self._refused = [no_refusals()]

    def add(self, scan: BlockScan) -> None:
        """Add a block."""
        for result in scan.results:
            result.entries[:, ENTRY_ROW] += np.uint64(self.rows)
            self.entries += len(result.entries)
        scan.refused[:, 0] += self.rows
        self._results.extend(scan.results)
        self._refused.append(scan.refused)
        self.rows += scan.rows

    def joined(self) -> tuple[ScanResult, IntArray, int]:
        """Return all entries and names, the refused rows, and the number of rows."""
        return join_results(self._results), np.concatenate(self._refused), self.rows


@dataclass(frozen=True)
class ScannedRows:
    """All rows of a file, in the shards of a folder: the result of the first step, which the other two use."""

    folder: ShardFolder
    before: tuple[int, ...]
    """Number of rows before each shard; the last is the number of all rows."""
    with_scenarios: bool
    """Whether the file says what the dilemmas are about."""

    @property
    def rows(self) -> int:
        """The number of all rows."""
        return self.before[-1]

    @cached_property
    def shards(self) -> list[tuple[RowShard, np.uint64]]:
        """The shards, with the offsets of their row numbers."""
        found = []
        for number, start in enumerate(self.before[:-1]):
            shard = self.folder.read(number, known_good=True)
            if shard is None:
                raise CrowdveilError(f"{self.folder.path} is not the same folder here as where the program runs")
            found.append((shard, np.uint64(start)))
        return found

    def refused(self) -> IntArray:
        """Return the rows that the first step refused: row and reason."""
        return np.concatenate([shard.refused() + np.array([start, 0], np.int64) for shard, start in self.shards])

    def contested(self, bucket: int) -> IntArray:
        """Perform the second step: return the refused rows of a bucket of dilemmas, row and reason."""
        return contested_rows(lambda: self._claims(bucket))

    def group(self, bucket: int, contested: IntArray) -> BucketBallots:
        """Perform the third step: make the ballots of a bucket of voters, without the contested rows (in order)."""
        names: list[WordArray] = []
        texts: list[ByteArray] = []
        entries: list[WordArray] = []
        for shard, start in self.shards:
            some_names, some_texts = shard.names(bucket)
            some_entries = shard.entries(bucket)
            some_entries[:, ENTRY_ROW] += start
            names.append(some_names)
            texts.append(some_texts)
            entries.append(some_entries)
        told = np.concatenate(names), np.concatenate(texts)
        return group(self._study, np.concatenate(entries), told, contested, self.with_scenarios)

    @cached_property
    def _study(self) -> Study:
        return load_study("moral-machine")

    def _claims(self, bucket: int) -> Iterator[WordArray]:
        """Read the claims on a bucket of dilemmas, from several shards at a time."""
        batch = [np.empty((0, CLAIM_WORDS), np.uint64)]
        for shard, start in self.shards:
            claims = shard.claims(bucket)
            claims[:, CLAIM_ROW] += start
            batch.append(claims)
            if sum(map(len, batch)) >= CLAIMS_PER_BATCH:
                yield np.concatenate(batch)
                batch = []
        if batch:
            yield np.concatenate(batch)


class ImportCounts:
    """Counts of what became of the rows of an import so far."""

    def __init__(self) -> None:
        self.voters = 0
        self.records = 0
        self.equal = 0
        self.without_about = 0
        self.refused = np.zeros(len(REASONS) + 1, np.int64)

    def report(self, table: TableFile, rows: int, about: About | None) -> ImportReport:
        """Report on all rows of a file, once they are processed."""
        counts = self.refused[1:].tolist()
        if rows != 2 * self.records + sum(counts):
            raise RuntimeError(f"of {rows} rows, {2 * self.records} were used and {sum(counts)} refused")
        refused = {reason: count for reason, count in zip(REASONS, counts, strict=True) if count}
        notes = [*table.notes(), *equal_alternatives_note(self.equal, self.records)]
        if about is not None:
            notes += about.account(self.voters, self.without_about)
        return ImportReport(rows, self.records, self.voters, refused, notes=tuple(notes))


def says_scenarios(table: TableFile) -> bool:
    """Whether a file says what the dilemmas are about."""
    return SCENARIO in table.columns or STRICT_SCENARIO in table.columns


def count_reasons(refused: IntArray) -> IntArray:
    """Count refused rows (row and reason) by reason."""
    return np.bincount(refused[:, 1], minlength=len(REASONS) + 1).astype(np.int64)


class _LocalImport:
    """One import in progress, in this process."""

    def __init__(
        self, table: TableFile, folder: ShardFolder, threads: int, tell: ProgressCallback | None, about: About | None
    ) -> None:
        self._table = table
        self._folder = folder
        self._threads = threads
        self._about = about
        self._tell: ProgressCallback = tell or (lambda progress: None)
        self._counts = ImportCounts()
        self._reasons: ByteArray = np.zeros(0, np.uint8)
        self._rows = 0

    def ballots(self) -> Iterator[Ballots]:
        """Run the import and yield the ballots, in order, one bucket of voters at a time."""
        shards = scan_into_shards(self._table, self._folder, self._threads, self._tell)
        before = tuple(np.cumsum([0] + [shard.rows for shard in shards]).tolist())
        scanned = ScannedRows(self._folder, before, says_scenarios(self._table))
        buckets = range(self._folder.buckets)
        self._rows = scanned.rows
        self._reasons = self._folder.reasons(scanned.rows)
        self._refuse(scanned.refused())
        refused = np.concatenate(list(in_order(scanned.contested, buckets, self._threads)))
        self._refuse(refused)
        contested = np.sort(refused[:, 0])
        groups = in_order(lambda bucket: scanned.group(bucket, contested), buckets, self._threads)
        for done, result in enumerate(groups, start=1):
            self._refuse(result.refused)
            self._counts.voters += result.ballots.voters
            self._counts.records += result.ballots.records
            self._counts.equal += result.equal
            if self._about is None:
                yield result.ballots
            else:
                self._counts.without_about += self._about.missing(result.ballots)
                yield self._about.join(result.ballots)
            self._tell(ImportProgress(False, done, len(buckets), scanned.rows))

    def report(self) -> ImportReport:
        """Report on all rows, once the ballots are made."""
        return self._counts.report(self._table, self._rows, self._about)

    def refused_rows(self) -> Iterator[pl.DataFrame]:
        """Read the file again for the refused rows, in order, with reasons and as they are written."""
        columns = {ROW: pl.Int64, REASON: pl.String, TEXT: pl.String, **dict.fromkeys(self._table.wanted, pl.String)}
        yield pl.DataFrame(schema=columns)
        if not self._reasons.any():
            return
        before = 0
        for block in read_blocks(self._table):
            reasons = self._reasons[before : before + block.rows]
            if reasons.any():
                texts = block.texts(np.flatnonzero(reasons))
                rows = pl.concat([texts.cells, texts.ragged], how="diagonal").sort(ROW)
                why = [REASONS[code - 1].value for code in reasons[rows[ROW].to_numpy()]]
                rows = rows.with_columns(pl.Series(REASON, why, pl.String), pl.col(ROW) + before + 1)
                yield rows.select(list(columns))
            before += block.rows

    def _refuse(self, rows: IntArray) -> None:
        self._reasons[rows[:, 0]] = rows[:, 1]
        self._counts.refused += count_reasons(rows)


def scan_into_shards(table: TableFile, folder: ShardFolder, threads: int, tell: ProgressCallback) -> list[RowShard]:
    """Perform the first step on all cores, from where an earlier import was interrupted; return its shards too."""
    shards = folder.good_shards()
    size = table.path.stat().st_size
    if shards and shards[-1].last:
        return shards
    begin_at = resume_at = shards[-1].resume_at if shards else 0
    rows = sum(shard.rows for shard in shards)
    seen = np.zeros(_NAMES_REMEMBERED, np.uint64)

    def scan(block: Block) -> tuple[int, int, BlockScan]:
        return block.resume_at, block.bytes_read, block.scan(seen)

    content = ShardContent()
    # The next rows are read while a shard is being written; at most one shard waits.
    with ThreadPoolExecutor(1) as pool:
        writing: list[Future[RowShard]] = []
        for resume_at, bytes_read, scanned in readable(in_order(scan, read_blocks(table, begin_at), threads), table):
            content.add(scanned)
            rows += scanned.rows
            tell(ImportProgress(True, bytes_read, size, rows))
            if content.entries >= ENTRIES_PER_SHARD:
                shards += [done.result() for done in writing]
                writing = [pool.submit(folder.write, len(shards), *content.joined(), resume_at)]
                content = ShardContent()
        shards += [done.result() for done in writing]
    return [*shards, folder.write(len(shards), *content.joined(), resume_at, last=True)]


def readable(scans: Iterable[tuple[int, int, BlockScan]], table: TableFile) -> Iterator[tuple[int, int, BlockScan]]:
    """Yield scans; report an unreadable file to the user in one line."""
    rows = 0
    try:
        for scan in scans:
            yield scan
            rows += scan[2].rows
    except pl.exceptions.PolarsError as error:
        raise CrowdveilError(f"{table.path} has a column of neither numbers nor text: {one_line(error)}") from None
    except (OSError, pa.ArrowException) as error:
        raise CrowdveilError(f"{table.path} is damaged or cut off after row {rows}: {one_line(error)}") from None


def _write(frames: Iterator[pl.DataFrame], path: Path) -> None:
    with replacing(path, private=True) as unfinished, unfinished.open("wb") as file:
        for number, rows in enumerate(frames):
            rows.write_csv(file, include_header=number == 0)
