"""Distribute the three steps of an import to an engine's workers.

Each worker scans ranges of the file and groups buckets of voters. Workers exchange rows through a folder that all of
them can access, in the same shards that an import on one machine writes. They return only counts. The ballots, one file
per bucket, are the same as those of an import on one machine, voter by voter in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.engines.engine import Engine
from crowdveil.errors import CrowdveilError
from crowdveil.files import put_in_place
from crowdveil.sources.about import About
from crowdveil.sources.import_report import MOST_REFUSED, ImportReport
from crowdveil.sources.moral_machine.blocks import cut_ranges, open_layout, read_range
from crowdveil.sources.moral_machine.importing import (
    ImportCounts,
    ImportProgress,
    ProgressCallback,
    ScannedRows,
    ShardContent,
    bucket_bits,
    count_reasons,
    read_about_voters,
    readable,
    says_scenarios,
    source_identity,
)
from crowdveil.sources.moral_machine.shards import ShardFolder, folder_beside, no_refusals
from crowdveil.study.bundled import load_study

BYTES_PER_SHARD = 1 << 27
_NAMES_REMEMBERED = 1 << 18


def import_with_engine(
    path: str | Path,
    out: str | Path,
    engine: Engine,
    tell: ProgressCallback | None = None,
    shard_bytes: int = BYTES_PER_SHARD,
    *,
    about: str | Path | None = None,
    mapping: str | Path | None = None,
    allow_refused: float = MOST_REFUSED,
    one_record_each: bool = False,
) -> ImportReport:
    """Read a file of answers into a folder of ballot files, with an engine's workers; all must see file and folder.

    The ballots are those of ``import_moral_machine``, in the same order, whoever the workers are. Interruptions are
    handled the same way: an interrupted import leaves nothing at ``out``, and the same call made again resumes.
    """
    people = read_about_voters(about, mapping)
    table = open_layout(path)
    out = Path(out)
    tell = tell or (lambda progress: None)
    if table.is_gzipped:
        raise CrowdveilError(
            f"{table.path} is gzipped, so only one worker could read it: unpack it first, or use the local engine"
        )
    with folder_beside(out, {**source_identity(table), "shards": shard_bytes}, bucket_bits(table)) as folder:
        source = table.path.resolve()
        ranges = cut_ranges(table, shard_bytes)
        counts = ImportCounts()
        rows: list[int] = []
        scans = engine.each(_ScanStep(source, folder, tuple(ranges)), len(ranges))
        for (_, end), (scanned_rows, refused) in zip(ranges, scans, strict=True):
            rows.append(scanned_rows)
            counts.refused += refused
            tell(ImportProgress(True, end, ranges[-1][1], sum(rows)))
        scanned = ScannedRows(folder, tuple(np.cumsum([0, *rows]).tolist()), says_scenarios(table))
        counts.refused += sum(engine.each(_RefusalStep(scanned), folder.buckets), np.zeros_like(counts.refused))
        ballots = folder.path / "ballots"
        ballots.mkdir(exist_ok=True)
        groups = engine.each(_GroupStep(source, scanned, ballots, people), folder.buckets)
        for done, (voters, records, equal, without_about, refused) in enumerate(groups, start=1):
            counts.voters += voters
            counts.records += records
            counts.equal += equal
            counts.without_about += without_about
            counts.refused += refused
            tell(ImportProgress(False, done, folder.buckets, scanned.rows))
        report = counts.report(table, scanned.rows, people)
        report.check_any()
        report.check(load_study("moral-machine"), allow_refused, one_record_each)
        put_in_place(ballots, out)
        return report


@dataclass(frozen=True)
class _ScanStep:
    """The first step: a range of the file becomes a shard."""

    source: Path
    folder: ShardFolder
    ranges: tuple[tuple[int, int], ...]

    def __call__(self, number: int) -> tuple[int, IntArray]:
        shard = self.folder.read(number)  # left by an interrupted import or a lost worker
        if shard is None:
            table = open_layout(self.source)
            seen = np.zeros(_NAMES_REMEMBERED, np.uint64)
            content = ShardContent()
            blocks = read_range(table, *self.ranges[number])
            for _, _, scan in readable(((b.resume_at, b.bytes_read, b.scan(seen)) for b in blocks), table):
                content.add(scan)
            shard = self.folder.write(number, *content.joined())
        return shard.rows, count_reasons(shard.refused())


@dataclass(frozen=True)
class _RefusalStep:
    """The second step: contested dilemmas of a bucket are refused, and their rows saved where all workers find them."""

    scanned: ScannedRows

    def __call__(self, bucket: int) -> IntArray:
        refused = self.scanned.contested(bucket)
        if len(refused):
            with _contested_path(self.scanned, bucket).open("wb") as file:
                np.save(file, refused[:, 0])
        return count_reasons(refused)


@dataclass(frozen=True)
class _GroupStep:
    """The third step: the rows of a bucket of voters become a file of ballots."""

    source: Path
    scanned: ScannedRows
    ballots: Path
    about: About | None

    def __call__(self, bucket: int) -> tuple[int, int, int, int, IntArray]:
        paths = (_contested_path(self.scanned, number) for number in range(self.scanned.folder.buckets))
        contested = [np.load(path) for path in paths if path.exists()]
        result = self.scanned.group(bucket, np.sort(np.concatenate([no_refusals()[:, 0], *contested])))
        ballots = result.ballots if self.about is None else self.about.join(result.ballots)
        without_about = 0 if self.about is None else self.about.missing(ballots)
        if ballots.voters:
            origin = {"imported_from": self.source.name, "bucket": bucket}
            path = self.ballots / f"shard-{bucket:06}.parquet"
            write_ballots(path, load_study("moral-machine"), [ballots], origin)
        return ballots.voters, ballots.records, result.equal, without_about, count_reasons(result.refused)


def _contested_path(scanned: ScannedRows, bucket: int) -> Path:
    return scanned.folder.path / f"contested-{bucket:06}.npy"
