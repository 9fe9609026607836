"""The first step of an import: all rows of a file, read on all cores, become runs on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from crowdveil.arrays import IntArray
from crowdveil.engines.threads import in_order
from crowdveil.errors import CrowdveilError
from crowdveil.sources.moral_machine.found import Found, Gathering
from crowdveil.sources.moral_machine.readers import Piece, Scanned, read_pieces
from crowdveil.sources.moral_machine.runs import Reached, Run
from crowdveil.sources.moral_machine.units import ROW
from crowdveil.sources.moral_machine.workplace import Workplace
from crowdveil.sources.table_rows import TableRows, one_line

UNITS_PER_RUN = 1 << 20
_NAMES_REMEMBERED = 1 << 22


@dataclass(frozen=True)
class Progress:
    """How far an import has come: in bytes of the file while it is read, then in parts of the crowd."""

    reading: bool
    done: int
    total: int
    rows: int
    """How many rows have been read."""


Tell = Callable[[Progress], None]
Scan = tuple[int, int, Scanned]
"""The place and the position that a piece has reached, and what it held."""


def read_into_runs(table: TableRows, work: Workplace, threads: int, tell: Tell) -> list[Run]:
    """Read the file from where an earlier import was interrupted, and return all runs, the earlier ones too."""
    runs, size = work.runs(), table.path.stat().st_size
    if runs and runs[-1].reached.last:
        return runs
    reached = runs[-1].reached if runs else Reached(0, 0, False)
    seen = np.zeros(_NAMES_REMEMBERED, np.uint64)

    def scan(piece: Piece) -> Scan:
        return piece.place, piece.position, piece.scan(seen)

    gathered = Gathered()
    # The next rows are read while a run is written; no more than one run waits.
    with ThreadPoolExecutor(1) as pool:
        writing: list[Future[Run]] = []
        for place, position, scanned in readable(in_order(scan, read_pieces(table, reached.place), threads), table):
            gathered.add(scanned, reached.rows + 1)
            reached = Reached(reached.rows + scanned.rows, place, False)
            tell(Progress(True, position, size, reached.rows))
            if gathered.units >= UNITS_PER_RUN:
                runs += [done.result() for done in writing]
                writing = [pool.submit(work.write, len(runs), *gathered.joined(), reached)]
                gathered = Gathered()
        runs += [done.result() for done in writing]
    return [*runs, work.write(len(runs), *gathered.joined(), Reached(reached.rows, reached.place, True))]


class Gathered:
    """What has been found since the last run."""

    def __init__(self) -> None:
        self.found = [Gathering(0, 0, np.zeros(1, np.uint64)).found()]
        self.refused = [np.empty((0, 2), np.int64)]

    @property
    def units(self) -> int:
        """How many units there are."""
        return sum(len(found.units) for found in self.found)

    def add(self, scanned: Scanned, first_row: int) -> None:
        """Add what a piece held, whose first row has this number."""
        for found in scanned.found:
            found.units[:, ROW] += np.uint64(first_row)
        scanned.refused[:, 0] += first_row
        self.found.extend(scanned.found)
        self.refused.append(scanned.refused)

    def joined(self) -> tuple[Found, IntArray]:
        """Return all that was found, and the refused rows with their reasons."""
        joined = Found(
            np.concatenate([found.units for found in self.found]),
            np.concatenate([found.voters for found in self.found]),
            np.concatenate([found.texts for found in self.found]),
        )
        return joined, np.concatenate(self.refused)


def readable(scanned: Iterator[Scan], table: TableRows) -> Iterator[Scan]:
    """Walk what was scanned; what makes the file unreadable becomes one line for the user."""
    rows = 0
    try:
        for each in scanned:
            yield each
            rows += each[2].rows
    except pl.exceptions.PolarsError as error:
        raise CrowdveilError(f"{table.path} has a column of neither numbers nor text: {one_line(error)}") from None
    except (OSError, pa.ArrowException) as error:
        raise CrowdveilError(f"{table.path} is damaged or cut off after row {rows}: {one_line(error)}") from None
