"""Imports answers in the public layout of the Moral Machine (``public_layout``), in bounded memory.

Three steps: rows are read and become units in runs on disk; dilemmas that several voters claim are refused; and part
by part, units become pairs and pairs become ballots. Voters come in the order of their names' hashes, and a voter's
answers in the order of their dilemmas', so the same answers give the same ballots, byte for byte and to a ledger, in
whatever order their rows are, in CSV, gzipped or in Parquet.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdveil.ballots import Ballots, concatenate, write_ballots
from crowdveil.engines.engine import Engine
from crowdveil.engines.threads import usable_cores
from crowdveil.errors import CrowdveilError
from crowdveil.files import check_writable, put_in_place, replacing
from crowdveil.sources.import_report import Imported, ImportReport
from crowdveil.sources.moral_machine.importing import Import
from crowdveil.sources.moral_machine.public_layout import NEEDED, SIZE
from crowdveil.sources.moral_machine.reading import Tell
from crowdveil.sources.moral_machine.spread import Spread
from crowdveil.sources.moral_machine.workplace import Workplace, bits_for, workplace_beside
from crowdveil.sources.table_rows import TableRows
from crowdveil.study.bundled import load_study

BYTES_PER_SPAN = 1 << 27
_BYTES_PER_GZIPPED_BYTE = 16
_BYTES_PER_ROW = 160


def import_moral_machine(path: str | Path, tell: Tell | None = None) -> Imported:
    """Read a file of answers into memory; rows that are not half of a good pair are refused, and counted by reason."""
    table = TableRows(path, NEEDED, [SIZE])
    with tempfile.TemporaryDirectory() as folder:
        going = Import(table, Workplace(Path(folder), _bits(table)), usable_cores(), tell)
        pieces = [ballots for ballots in going.ballots() if ballots.voters]
        study = load_study("moral-machine")
        nobody = Ballots(study, np.zeros(1, np.int64), np.empty((0, study.dimension), np.int8))
        ballots = concatenate(study, pieces) if pieces else nobody
        return Imported(ballots, going.report(), pl.concat(going.refused_rows()))


def stream_moral_machine(
    path: str | Path,
    out: str | Path,
    refused: str | Path | None = None,
    tell: Tell | None = None,
    threads: int | None = None,
) -> ImportReport:
    """Read a file of answers of any size into a ballot file; optionally write the refused rows and why to a CSV.

    Takes memory for some blocks of the file and some parts of the crowd, whatever the file's size, and room beside
    ``out`` for a quarter to a third of its text. An import that is interrupted leaves ``out`` as it was; the same call
    made again goes on with what was read already, unless the file has changed in the meantime.
    """
    table, out = TableRows(path, NEEDED, [SIZE]), Path(out)
    if refused is not None:
        check_writable(Path(refused))
    with workplace_beside(out, _identity(table), _bits(table)) as work:
        going = Import(table, work, threads or usable_cores(), tell)

        def ballots() -> Iterator[Ballots]:
            yield from going.ballots()
            if refused is not None:  # also where not one row could be used
                _write(going.refused_rows(), Path(refused))

        def origin() -> dict[str, Any]:
            return {"imported_from": table.path.name, **going.report().as_dict()}

        # In the workplace, so that a kill leaves nothing else behind.
        write_ballots(work.folder / "ballots", load_study("moral-machine"), ballots(), origin)
        put_in_place(work.folder / "ballots", out)
        return going.report()


def spread_moral_machine(
    path: str | Path, out: str | Path, engine: Engine, tell: Tell | None = None, span: int = BYTES_PER_SPAN
) -> ImportReport:
    """Read a file of answers into a folder of ballot files, by an engine's workers; all must see file and folder.

    The ballots are those of ``stream_moral_machine``, in the same order, whoever the workers are. So is the rest: an
    import that is interrupted leaves nothing at ``out``, and the same call made again goes on.
    """
    table, out = TableRows(path, NEEDED, [SIZE]), Path(out)
    with workplace_beside(out, {**_identity(table), "span": span}, _bits(table)) as work:
        spread = Spread.of(table, work, span)
        report = spread.run(engine, tell or (lambda progress: None))
        put_in_place(spread.ballots, out)
        return report


def holds_answers(path: str | Path) -> bool:
    """Say whether a file is in the public layout: whether it has the columns."""
    try:
        TableRows(path, NEEDED, [SIZE])
    except CrowdveilError:
        return False
    return True


def _identity(table: TableRows) -> dict[str, Any]:
    """Tell a file from others, and from itself after a change."""
    state = table.path.stat()
    return {"path": str(table.path.resolve()), "bytes": state.st_size, "changed": state.st_mtime_ns}


def _write(frames: Iterator[pl.DataFrame], path: Path) -> None:
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        for number, rows in enumerate(frames):
            rows.write_csv(file, include_header=number == 0)


def _bits(table: TableRows) -> int:
    size = table.path.stat().st_size
    if table.is_parquet:
        size = table.parquet_rows() * _BYTES_PER_ROW
    return bits_for(size * _BYTES_PER_GZIPPED_BYTE if table.is_gzipped else size)
