"""The second and third step of an import: from runs on disk to ballots, and what became of every row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from crowdveil.arrays import ByteArray, WordArray
from crowdveil.ballots import Ballots
from crowdveil.engines.threads import in_order
from crowdveil.sources.import_report import REASON, ROW, TEXT, ImportReport
from crowdveil.sources.moral_machine.claims import refuse_crossing
from crowdveil.sources.moral_machine.grouping import group
from crowdveil.sources.moral_machine.readers import read_pieces
from crowdveil.sources.moral_machine.reading import Progress, Tell, read_into_runs
from crowdveil.sources.moral_machine.runs import Run
from crowdveil.sources.moral_machine.text_rows import REASONS
from crowdveil.sources.moral_machine.workplace import Workplace
from crowdveil.sources.table_rows import TableRows
from crowdveil.study.bundled import load_study

CLAIMS_PER_BATCH = 1 << 21
_ROWS_AT_A_TIME = 1 << 20


class Import:
    """One import on its way, and its counts."""

    def __init__(self, table: TableRows, work: Workplace, threads: int, tell: Tell | None) -> None:
        self._table, self._work, self._threads = table, work, threads
        self._tell: Tell = tell or (lambda progress: None)
        self._rows = self._pairs = self._voters = self._equal = 0
        self._reasons: ByteArray = np.zeros(0, np.uint8)

    def ballots(self) -> Iterator[Ballots]:
        """Do the import and yield the ballots, in order, some voters at a time."""
        runs = read_into_runs(self._table, self._work, self._threads, self._tell)
        parts = range(2**self._work.bits)
        self._rows, self._reasons = runs[-1].reached.rows, self._work.reasons(runs[-1].reached.rows)
        for run in runs:
            refused = run.refused()
            self._reasons[refused[:, 0]] = refused[:, 1]

        def refuse(part: int) -> bool:
            return refuse_crossing(lambda: _batches(runs, part), self._reasons)

        crossing = any(list(in_order(refuse, parts, self._threads)))
        study = load_study("moral-machine")

        def put_together(part: int) -> tuple[Ballots, int]:
            names = [run.names(part) for run in runs]
            told = np.concatenate([voters for voters, _ in names]), np.concatenate([texts for _, texts in names])
            units = np.concatenate([run.units(part) for run in runs])
            return group(study, units, told, self._reasons, crossing)

        for done, (ballots, equal) in enumerate(in_order(put_together, parts, self._threads), start=1):
            self._voters += ballots.voters
            self._pairs += ballots.records
            self._equal += equal
            yield ballots
            self._tell(Progress(False, done, len(parts), self._rows))

    def report(self) -> ImportReport:
        """Say what became of all rows, once the ballots are made."""
        counts = _count(self._reasons)
        if self._rows != 2 * self._pairs + sum(counts):
            raise RuntimeError(f"of {self._rows} rows, {2 * self._pairs} were used and {sum(counts)} refused")
        notes = self._table.notes()
        if self._equal:
            notes.append(f"{self._equal} of {self._pairs} answers are between two equal alternatives")
        refused = {reason: count for reason, count in zip(REASONS, counts, strict=True) if count}
        return ImportReport(self._rows, self._pairs, self._voters, refused, notes=tuple(notes))

    def refused_rows(self) -> Iterator[pl.DataFrame]:
        """Read the file once more for the refused rows, in order, with reasons and as they are written."""
        yield self._no_rows()
        if not self._reasons.any():
            return
        before = 0
        for piece in read_pieces(self._table):
            reasons = self._reasons[before + 1 : before + 1 + piece.rows]
            if reasons.any():
                texts = piece.texts(np.flatnonzero(reasons))
                rows = pl.concat([texts.cells, texts.ragged], how="diagonal").sort(ROW)
                why = [REASONS[code - 1].value for code in reasons[rows[ROW].to_numpy()]]
                rows = rows.with_columns(pl.Series(REASON, why, pl.String), pl.col(ROW) + before + 1)
                yield rows.select(self._no_rows().columns)
            before += piece.rows

    def _no_rows(self) -> pl.DataFrame:
        columns = {ROW: pl.Int64, REASON: pl.String, TEXT: pl.String, **dict.fromkeys(self._table.wanted, pl.String)}
        return pl.DataFrame(schema=columns)


def _batches(runs: Sequence[Run], part: int) -> Iterator[WordArray]:
    """Read the claims on a part of the dilemmas, several runs at a time."""
    batch: list[WordArray] = []
    for run in runs:
        batch.append(run.claims(part))
        if sum(map(len, batch)) >= CLAIMS_PER_BATCH:
            yield np.concatenate(batch)
            batch = []
    if batch:
        yield np.concatenate(batch)


def _count(reasons: ByteArray) -> list[int]:
    """Return how many rows were refused for each reason."""
    counts = np.zeros(len(REASONS) + 1, np.int64)
    for start in range(0, len(reasons), _ROWS_AT_A_TIME):
        counts += np.bincount(reasons[start : start + _ROWS_AT_A_TIME], minlength=len(counts))
    return [int(count) for count in counts[1:]]
