"""An import that any number of workers share: each reads spans of the file and makes the ballots of parts of the crowd.

Workers hand rows to each other by way of a folder that all of them see, in the runs that an import on one machine
writes too (``runs``). What comes back from them is counts. The ballots, a file for each part, are the same as those of
an import on one machine, voter by voter in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crowdveil.arrays import ByteArray, IntArray, WordArray
from crowdveil.ballots import write_ballots
from crowdveil.engines.engine import Engine
from crowdveil.errors import CrowdveilError
from crowdveil.sources.import_report import ImportReport
from crowdveil.sources.moral_machine.claims import refuse_crossing
from crowdveil.sources.moral_machine.grouping import group
from crowdveil.sources.moral_machine.public_layout import NEEDED, SIZE
from crowdveil.sources.moral_machine.readers import read_span, spans
from crowdveil.sources.moral_machine.reading import Gathered, Progress, Tell, readable
from crowdveil.sources.moral_machine.runs import CLAIM_ROW, Reached, Run, read_run, write_run
from crowdveil.sources.moral_machine.text_rows import REASONS
from crowdveil.sources.moral_machine.units import ROW
from crowdveil.sources.moral_machine.workplace import Workplace
from crowdveil.sources.table_rows import TableRows
from crowdveil.study.bundled import load_study

_NAMES_REMEMBERED = 1 << 18
_CLAIMS_PER_BATCH = 1 << 21


@dataclass(frozen=True)
class Spread:
    """One import that is spread over workers."""

    source: Path
    work: Workplace
    spans: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, table: TableRows, work: Workplace, span: int) -> Spread:
        """Plan the import of a file, in spans of about so many bytes."""
        if table.is_gzipped:
            raise CrowdveilError(
                f"{table.path} is gzipped, so only one worker could read it: unpack it first, or use the local engine"
            )
        return cls(table.path.resolve(), work, tuple(spans(table, span)))

    @property
    def ballots(self) -> Path:
        """The folder in which the ballots come to be."""
        return self.work.folder / "ballots"

    def run(self, engine: Engine, tell: Tell) -> ImportReport:
        """Do the import, and say what became of all rows."""
        parts, size = 2**self.work.bits, self.spans[-1][1]
        rows: list[int] = []
        refused = np.zeros(len(REASONS) + 1, np.int64)
        for (_, end), counts in zip(self.spans, engine.each(_Read(self), len(self.spans)), strict=True):
            rows.append(int(counts[0]))
            refused += counts[1:]
            tell(Progress(True, end, size, sum(rows)))
        before = tuple(np.cumsum([0, *rows]).tolist())
        crossing = sum(engine.each(_Refuse(self, before), parts), np.zeros_like(refused))
        self.ballots.mkdir(exist_ok=True)
        voters = pairs = equal = 0
        put_together = engine.each(_PutTogether(self, before, bool(crossing.any())), parts)
        for done, (made, counts) in enumerate(put_together, start=1):
            voters, pairs, equal = voters + made[0], pairs + made[1], equal + made[2]
            refused += counts
            tell(Progress(False, done, parts, before[-1]))
        refused += crossing
        if before[-1] != 2 * pairs + refused.sum():
            raise RuntimeError(f"of {before[-1]} rows, {2 * pairs} were used and {refused.sum()} refused")
        if not voters:
            raise CrowdveilError("there is not one usable answer, so no ballot file was written")
        notes = self.table().notes()
        if equal:
            notes.append(f"{equal} of {pairs} answers are between two equal alternatives")
        named = {reason: int(count) for reason, count in zip(REASONS, refused[1:], strict=True) if count}
        return ImportReport(before[-1], pairs, voters, named, notes=tuple(notes))

    def table(self) -> TableRows:
        """Open the file, here or on a worker."""
        return TableRows(self.source, NEEDED, [SIZE])

    def runs(self, before: tuple[int, ...]) -> Iterator[tuple[Run, np.uint64]]:
        """Walk the runs, with what is to be added to the numbers of their rows."""
        for number, start in enumerate(before[:-1]):
            run = read_run(self.work.run_path(number), self.work.bits, known_good=True)
            if run is None:
                raise CrowdveilError(f"{self.work.folder} is not the same folder here as where the program runs")
            yield run, np.uint64(start)

    def crossing(self, part: int) -> Path:
        """Return where the refused claims on a part of the dilemmas are: row and reason."""
        return self.work.folder / f"crossing-{part:06}.npy"


@dataclass(frozen=True)
class _Read:
    """The first step: a span becomes a run. Rows are numbered from 1 in it."""

    spread: Spread

    def __call__(self, number: int) -> IntArray:
        path, bits = self.spread.work.run_path(number), self.spread.work.bits
        run = read_run(path, bits)  # of an import that was interrupted, or a worker that was lost
        if run is None:
            table, seen = self.spread.table(), np.zeros(_NAMES_REMEMBERED, np.uint64)
            gathered, rows = Gathered(), 0
            pieces = read_span(table, *self.spread.spans[number])
            for _, _, scanned in readable(((p.place, p.position, p.scan(seen)) for p in pieces), table):
                gathered.add(scanned, rows + 1)
                rows += scanned.rows
            run = write_run(path, bits, *gathered.joined(), Reached(rows, 0, False))
        return np.concatenate([[run.reached.rows], _counts(run.refused()[:, 1])])


@dataclass(frozen=True)
class _Refuse:
    """The second step: dilemmas of a part that several voters claim are refused."""

    spread: Spread
    before: tuple[int, ...]

    def __call__(self, part: int) -> IntArray:
        reasons = _no_reasons(self.before)
        refuse_crossing(lambda: self._batches(part), reasons)
        rows = np.flatnonzero(reasons)
        refused = np.stack([rows, reasons[rows]], axis=1)
        with self.spread.crossing(part).open("wb") as file:
            np.save(file, refused)
        return _counts(refused[:, 1])

    def _batches(self, part: int) -> Iterator[WordArray]:
        batch: list[WordArray] = [np.empty((0, CLAIM_ROW + 1), np.uint64)]
        for run, start in self.spread.runs(self.before):
            claims = run.claims(part)
            claims[:, CLAIM_ROW] += start
            batch.append(claims)
            if sum(map(len, batch)) >= _CLAIMS_PER_BATCH:
                yield np.concatenate(batch)
                batch = []
        if batch:
            yield np.concatenate(batch)


@dataclass(frozen=True)
class _PutTogether:
    """The third step: the units of a part of the voters become their ballots, a file."""

    spread: Spread
    before: tuple[int, ...]
    crossing: bool

    def __call__(self, part: int) -> tuple[tuple[int, int, int], IntArray]:
        reasons, study = _no_reasons(self.before), load_study("moral-machine")
        if self.crossing:
            for number in range(2**self.spread.work.bits):
                rows, why = np.load(self.spread.crossing(number)).T
                reasons[rows] = why
        known = _counts(reasons)
        voters, texts, units = [], [], []
        for run, start in self.spread.runs(self.before):
            told, written = run.names(part)
            of_run = run.units(part)
            of_run[:, ROW] += start
            voters.append(told)
            texts.append(written)
            units.append(of_run)
        names = np.concatenate(voters), np.concatenate(texts)
        ballots, equal = group(study, np.concatenate(units), names, reasons, self.crossing)
        if ballots.voters:
            origin = {"imported_from": self.spread.source.name, "part": part}
            write_ballots(self.spread.ballots / f"part-{part:06}.parquet", study, [ballots], origin)
        return (ballots.voters, ballots.records, equal), _counts(reasons) - known


def _no_reasons(before: tuple[int, ...]) -> ByteArray:
    """Return a table of reasons by row, of which only what is written to takes memory."""
    return np.zeros(before[-1] + 2, np.uint8)


def _counts(reasons: ByteArray | IntArray) -> IntArray:
    """Count by reason; 0 is none, and not counted."""
    counts = np.bincount(reasons[reasons > 0], minlength=len(REASONS) + 1)
    return counts.astype(np.int64)
