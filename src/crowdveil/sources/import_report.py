"""An import's account of every row: whatever is left out is counted, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import polars as pl

from crowdveil.ballots.ballots import Ballots, check_one_record_each
from crowdveil.errors import CrowdveilError, check_flag, is_number, plural, shown
from crowdveil.files import replacing
from crowdveil.study.study import Study

ROW, REASON, TEXT = "refused row", "refused because", "refused text"
"""Columns of the refused rows besides the table's own, with names that no table uses."""


MOST_REFUSED = 0.05
"""Largest share of rows that may be refused, unless another is allowed explicitly."""
ALLOWED_BY_IMPORT = "allow_refused={share} (import --allow-refused {share})"
"""How to allow a larger share, in Python and on the command line."""


class RowDefect(Enum):
    """Defects for which a row is refused."""

    RAGGED = "cut short, or more cells than columns"
    VOTER_MISSING = "voter missing"
    DILEMMA_MISSING = "dilemma missing"
    BLANK = "a value is blank"
    NOT_A_NUMBER = "not a number"
    OUT_OF_BOUNDS = "out of bounds"
    NO_LEVEL = "not one of the levels"
    INCONSISTENT = "inconsistent"
    NO_SINGLE_CHOICE = "no single choice"
    DOUBLED = "doubled"
    UNPAIRED = "unpaired"
    NO_REPEAT = "a voter without one second answer to one of the dilemmas"


@dataclass(frozen=True)
class ImportReport:
    """The number of rows read, and what became of them."""

    rows: int
    records: int
    """Records that were kept: dilemmas of a voter, each with her choice."""
    voters: int
    refused: Mapping[RowDefect, int]
    dropped: int = 0
    """Rows left out because the mapping says so."""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"<import of {self.rows:,} {plural(self.rows, 'row')}: {self.records:,} {plural(self.records, 'record')} "
            f"of {self.voters:,} {plural(self.voters, 'voter')}, {sum(self.refused.values()):,} of the rows refused, "
            f"{self.dropped:,} left out>"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "rows": self.rows,
            "records": self.records,
            "voters": self.voters,
            "refused": {reason.value: count for reason, count in self.refused.items()},
            "dropped": self.dropped,
            "notes": list(self.notes),
        }

    def check_any(self) -> None:
        """Refuse an import in which no row became a record, and say what became of them."""
        if self.records:
            return
        became = [f"{count:,} {reason.value}" for reason, count in self.refused.items()]
        became += [f"{self.dropped:,} left out by the mapping"] if self.dropped else []
        why = (
            f"of {self.rows:,} {plural(self.rows, 'row')}, {', '.join(became)}"
            if became
            else "no row follows the header"
        )
        raise CrowdveilError(
            f"there is not one usable record, so there are no ballots: {why}; check that these are the right "
            "table and mapping (import --refused FILE lists what is refused, and why)"
        )

    def check(
        self, study: Study, allow_refused: float, one_record_each: bool, allowed_by: str = ALLOWED_BY_IMPORT
    ) -> None:
        """Refuse an import that lost too many rows, or in which nearly every voter has one record.

        ``allowed_by`` tells how to allow a share of refused rows there.
        """
        check_allowed(allow_refused, one_record_each)
        wrong = sum(self.refused.values())
        rows = self.rows - self.dropped
        if rows and wrong / rows > allow_refused:
            reason, count = max(self.refused.items(), key=lambda item: item[1])
            raise CrowdveilError(
                f"{wrong} of {rows} rows ({wrong / rows:.1%}) are refused, more than {float(100 * allow_refused):g}% "
                f"({count} of them: {reason.value}): repair the file, "
                f"or allow it with {allowed_by.format(share=_above(wrong, rows))}"
            )
        check_one_record_each(study, self.voters, self.records, one_record_each)


@dataclass(frozen=True)
class ImportResult:
    """Imported ballots, the report, and the refused rows: their number, the reason and their cells as text."""

    ballots: Ballots
    report: ImportReport
    refused_rows: pl.DataFrame


def check_allowed(allow_refused: float, one_record_each: bool) -> None:
    """Refuse permissions that are none, before a row is read."""
    if not (is_number(allow_refused) and 0 <= allow_refused <= 1):
        raise CrowdveilError(
            f"the share of rows that may be refused is a number from 0 to 1, got {shown(allow_refused)}"
        )
    check_flag(one_record_each, "one_record_each")


def write_refused(path: str | Path, imported: ImportResult) -> None:
    """Write the refused rows with their reasons as CSV. Row 1 is the first after the header."""
    with replacing(Path(path), private=True) as unfinished:
        imported.refused_rows.write_csv(unfinished)


def _above(wrong: int, rows: int) -> float:
    """Return the share of refused rows, rounded up to a whole per cent."""
    return -(-100 * wrong // rows) / 100


def equal_alternatives_note(equal: int, records: int) -> list[str]:
    """Return a note about records with two identical alternatives, if there are any."""
    return [f"{equal} of {records} records are between two equal alternatives"] if equal else []


def number(column: str) -> pl.Expr:
    """Return a cell of text as a number, or null if it is not a number."""
    return pl.col(column).cast(pl.Float64, strict=False)


def says(cell: pl.Expr, word: str) -> pl.Expr:
    """Whether a cell contains the word, ignoring case; if the word is a number, 1.0 equals 1."""
    same = cell.str.to_lowercase() == word.strip().lower()
    try:
        return same | (cell.cast(pl.Float64, strict=False) == float(word)).fill_null(False)
    except ValueError:
        return same


def any_blank(columns: Iterable[str]) -> pl.Expr:
    """Whether one of these cells of text is blank."""
    return pl.any_horizontal(pl.col(column) == "" for column in columns)


def any_not_finite(columns: Iterable[str]) -> pl.Expr:
    """Whether one of these numbers is missing, NaN or infinite."""
    wrong = [~pl.col(column).is_finite().fill_null(False) for column in columns]
    return pl.any_horizontal(wrong) if wrong else pl.lit(False)


def any_outside(bounds: Iterable[tuple[str, float, float]]) -> pl.Expr:
    """Whether one of these numbers is outside its bounds."""
    return pl.any_horizontal(~pl.col(column).is_between(low, high) for column, low, high in bounds)


def first_reason(checks: Iterable[tuple[RowDefect, pl.Expr]]) -> pl.Expr:
    """Return the first reason whose condition holds for the row, or null if none does."""
    return pl.coalesce(pl.when(wrong).then(pl.lit(reason.value)) for reason, wrong in checks)
