"""Reads rows as text, in whatever way they are written: slower than ``lines``, and with an opinion on what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv

from crowdveil.arrays import BoolArray, ByteArray, IntArray, WordArray
from crowdveil.sources.cells import any_blank, any_not_finite, any_outside, first_reason, number
from crowdveil.sources.import_report import REASON, ROW, TEXT, Refusal
from crowdveil.sources.moral_machine.columns import padded_texts
from crowdveil.sources.moral_machine.found import Found, Gathering, begin, tell
from crowdveil.sources.moral_machine.lines import inside_quotes
from crowdveil.sources.moral_machine.public_layout import DILEMMA, GROUP, HIGHEST, SAVED, SIZE, VOTER
from crowdveil.sources.moral_machine.units import SHIFTS, compiled, hash_text
from crowdveil.sources.table_rows import as_text
from crowdveil.study.moral_machine_sessions import LARGEST_GROUP

REASONS = tuple(Refusal)
CODE = {reason: code for code, reason in enumerate(REASONS, start=1)}
"""A reason as a small number; 0 is none."""

_NUMBERS = (SAVED, *HIGHEST)


@dataclass(frozen=True)
class TextRows:
    """Rows as text with their numbers, and those among them that have too few or too many cells."""

    cells: pl.DataFrame
    """The needed columns and ROW."""
    ragged: pl.DataFrame
    """ROW and TEXT."""


def read_lines(block: ByteArray, lines: IntArray, columns: Sequence[str], wanted: Sequence[str]) -> TextRows:
    """Read some lines of a block (row, from which byte, to which) as CSV; each is one row.

    A line that ends inside quotes is ragged. It would swallow the lines after it, which are rows of their own.
    """
    # ByteArray that are not UTF-8 are spelt out, so that one bad name does not lose the file.
    texts = {row: block[a:b].tobytes().decode("utf-8", "backslashreplace") for row, a, b in lines.tolist()}
    unclosed = lines[inside_quotes(block, lines), 0].tolist()
    ragged = [(row, texts.pop(row)) for row in unclosed]
    rows, content = np.array(list(texts), np.int64), "".join(f"{text}\n" for text in texts.values()).encode()

    def set_aside(row: arrow_csv.InvalidRow) -> str:
        ragged.append((int(rows[row.number - 1]), row.text))
        return "skip"

    names = [str(k) for k in range(len(columns))]
    here = {names[columns.index(column)]: column for column in wanted}
    table = arrow_csv.read_csv(
        pa.BufferReader(content or b"\n"),
        # Without threads the reader knows the number of a ragged row.
        read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(content) + 2, column_names=names),
        parse_options=arrow_csv.ParseOptions(invalid_row_handler=set_aside),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=list(here), column_types=dict.fromkeys(here, pa.string()), strings_can_be_null=False
        ),
    )
    aside = pl.DataFrame(sorted(ragged), schema={ROW: pl.Int64, TEXT: pl.String}, orient="row")
    kept = rows[~np.isin(rows, aside[ROW].to_numpy())]
    if len(table) != len(kept):
        raise RuntimeError(f"{len(kept)} lines were read as {len(table)} rows")
    return TextRows(as_text(table.rename_columns(list(here.values()))).with_columns(pl.Series(ROW, kept)), aside)


def judge(rows: TextRows, seen: WordArray) -> tuple[Found, IntArray]:
    """Return the good rows as units of one row each, and the others: row and reason."""
    checked = check(rows.cells if SIZE in rows.cells.columns else rows.cells.with_columns(pl.lit("").alias(SIZE)))
    good = checked.filter(pl.col(REASON).is_null())
    refused = checked.filter(pl.col(REASON).is_not_null())
    codes = [(row, CODE[Refusal(reason)]) for row, reason in refused.select(ROW, REASON).iter_rows()]
    codes += [(row, CODE[Refusal.RAGGED]) for row in rows.ragged[ROW]]
    return _units(good, seen), np.array(codes, np.int64).reshape(-1, 2)


def check(rows: pl.DataFrame) -> pl.DataFrame:
    """Turn rows of text into small whole numbers, with the reason why a row is refused, if it is."""
    values = rows.with_columns(
        *(number(column) for column in (*_NUMBERS, SIZE)), blank=any_blank(_NUMBERS), sized=pl.col(SIZE) != ""
    )
    group = pl.sum_horizontal(GROUP)
    reason = first_reason(
        [
            (Refusal.VOTER_MISSING, pl.col(VOTER) == ""),
            (Refusal.DILEMMA_MISSING, pl.col(DILEMMA) == ""),
            (Refusal.BLANK, pl.col("blank")),
            (Refusal.NOT_A_NUMBER, any_not_finite(_NUMBERS)),
            (Refusal.NO_SINGLE_CHOICE, ~pl.col(SAVED).is_in([0.0, 1.0])),
            (Refusal.OUT_OF_BOUNDS, any_outside((column, 0, high) for column, high in HIGHEST.items())),
            (Refusal.OUT_OF_BOUNDS, pl.any_horizontal(pl.col(*HIGHEST) % 1 != 0)),
            (Refusal.OUT_OF_BOUNDS, ~group.is_between(1, LARGEST_GROUP)),
            (Refusal.INCONSISTENT, pl.col("sized") & (pl.col(SIZE) != group).fill_null(True)),
        ]
    )
    return values.select(ROW, DILEMMA, VOTER, pl.col(_NUMBERS).cast(pl.Int8, strict=False), reason.alias(REASON))


def _units(good: pl.DataFrame, seen: WordArray) -> Found:
    packed = np.zeros(len(good), np.uint64)
    for column, shift in zip(HIGHEST, SHIFTS, strict=True):
        packed |= good[column].to_numpy().astype(np.uint64) << np.uint64(shift)
    dilemmas, voters = (padded_texts(good[column].to_arrow()) for column in (DILEMMA, VOTER))
    gathering = Gathering(len(good), len(voters[0]), seen)
    _add(*dilemmas, *voters, good[ROW].to_numpy(), good[SAVED].to_numpy() == 1, packed, *gathering.arrays)
    return gathering.found()


@compiled
def _add(
    dilemmas: ByteArray, dilemma_ends: IntArray, voters: ByteArray, voter_ends: IntArray,
    rows: IntArray, saved: BoolArray, packed: WordArray,
    units: WordArray, names: WordArray, texts: ByteArray, ends: IntArray, seen: WordArray,
) -> None:  # fmt: skip
    for i in range(len(rows)):
        name = (voter_ends[i], voter_ends[i + 1])
        one, other, _ = hash_text(dilemmas, dilemma_ends[i], dilemma_ends[i + 1])
        voter_one, voter_other, _ = hash_text(voters, *name)
        begin(units, ends, (voter_one, voter_other), (one, other), rows[i], saved[i], packed[i])
        tell(names, texts, ends, seen, (voter_one, voter_other), voters, name)
