"""An import's account of every row: nothing is left out without being counted, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from crowdveil.arrays import ValueArray
from crowdveil.ballots import Ballots
from crowdveil.files import replacing
from crowdveil.study.study import Study

ROW, REASON, TEXT = "refused row", "refused because", "refused text"
"""Columns of the refused rows beside the table's own, with names that no table has."""


class Refusal(Enum):
    """Why a row was refused."""

    RAGGED = "cut short, or more cells than columns"
    VOTER_MISSING = "voter missing"
    DILEMMA_MISSING = "dilemma missing"
    BLANK = "a value is blank"
    NOT_A_NUMBER = "not a number"
    OUT_OF_BOUNDS = "out of bounds"
    INCONSISTENT = "inconsistent"
    NO_SINGLE_CHOICE = "no single choice"
    DOUBLED = "doubled"
    UNPAIRED = "unpaired"


@dataclass(frozen=True)
class ImportReport:
    """How many rows were read, and what they became."""

    rows: int
    pairs: int
    """Answers that were kept: pairs of a chosen and an unchosen alternative."""
    voters: int
    refused: Mapping[Refusal, int]
    dropped: int = 0
    """Rows left out because the mapping says so."""
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "rows": self.rows,
            "pairs": self.pairs,
            "voters": self.voters,
            "refused": {reason.value: count for reason, count in self.refused.items()},
            "dropped": self.dropped,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class ImportResult:
    """Imported ballots, the report, and the refused rows: their number, the reason and their cells as text."""

    ballots: Ballots
    report: ImportReport
    refused_rows: pl.DataFrame


def write_refused(path: str | Path, imported: ImportResult) -> None:
    """Write the refused rows with their reasons as CSV. Row 1 is the first after the header."""
    with replacing(Path(path)) as unfinished:
        imported.refused_rows.write_csv(unfinished)


def gather(
    study: Study,
    voters: pl.Series,
    differences: ValueArray,
    *,
    rows: int,
    refused: list[pl.DataFrame],
    notes: list[str],
    dropped: int = 0,
) -> ImportResult:
    """Put the outcome of an import together: voter i of ``voters`` gave the answer in row i of ``differences``.

    Voters come in the order of their first answers, and a voter's answers in theirs. Each frame of ``refused``
    has the columns ``ROW`` and ``REASON`` and the row's cells.
    """
    grouped = voters.to_frame("voter").with_row_index("at").group_by("voter", maintain_order=True).agg(pl.col("at"))
    order = grouped["at"].explode(empty_as_null=False).to_numpy()
    ballots = Ballots.from_differences(
        study,
        np.concatenate([[0], np.cumsum(grouped["at"].list.len().to_numpy())]).astype(np.int64),
        np.ascontiguousarray(differences[order]),
        pa.array(grouped["voter"].to_list(), pa.string()),
    )
    notes = [*notes, *equal_alternatives_note(int((differences == 0).all(axis=1).sum()), len(differences))]
    refused_rows = pl.concat(refused, how="diagonal").sort(ROW)
    counts = dict(refused_rows[REASON].value_counts().iter_rows())
    report = ImportReport(
        rows=rows,
        pairs=ballots.records,
        voters=ballots.voters,
        refused={reason: counts[reason.value] for reason in Refusal if reason.value in counts},
        dropped=dropped,
        notes=tuple(notes),
    )
    return ImportResult(ballots, report, refused_rows)


def equal_alternatives_note(equal: int, records: int) -> list[str]:
    """Return a note about records with two alternatives that are the same, if there are any."""
    return [f"{equal} of {records} answers are between two equal alternatives"] if equal else []


def number(column: str) -> pl.Expr:
    """Return a cell of text as a number, null where it is none."""
    return pl.col(column).cast(pl.Float64, strict=False)


def any_blank(columns: Iterable[str]) -> pl.Expr:
    """Tell whether one of these cells of text is blank."""
    return pl.any_horizontal(pl.col(column) == "" for column in columns)


def any_not_finite(columns: Iterable[str]) -> pl.Expr:
    """Tell whether one of these numbers is missing, NaN or infinite."""
    return pl.any_horizontal(~pl.col(column).is_finite().fill_null(False) for column in columns)


def any_outside(bounds: Iterable[tuple[str, float, float]]) -> pl.Expr:
    """Tell whether one of these numbers lies outside its bounds."""
    return pl.any_horizontal(~pl.col(column).is_between(low, high) for column, low, high in bounds)


def first_reason(checks: Iterable[tuple[Refusal, pl.Expr]]) -> pl.Expr:
    """Return the first reason whose condition holds for the row, null where none does."""
    return pl.coalesce(pl.when(wrong).then(pl.lit(reason.value)) for reason, wrong in checks)
