"""Read rows of cells: typed columns, as in Parquet files, and text, however it is written.

Clean rows of typed columns become entries; odd ones are read as text. Text is read more slowly than by ``csv_lines``,
and errors are classified.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv

from crowdveil.arrays import BoolArray, ByteArray, FloatArray, IntArray, WordArray
from crowdveil.sources.import_report import (
    REASON,
    ROW,
    TEXT,
    RowDefect,
    any_blank,
    any_not_finite,
    any_outside,
    first_reason,
    number,
)
from crowdveil.sources.moral_machine.csv_lines import open_rows
from crowdveil.sources.moral_machine.entries import (
    PADDING,
    SHIFTS,
    Hash,
    ScanBuffer,
    ScanResult,
    Word,
    begin_entry,
    compiled,
    complete_entry,
    has_visible_ends,
    hash_text,
    inlined,
)
from crowdveil.sources.moral_machine.layout import (
    DILEMMA,
    GROUP,
    HIGHEST,
    SAVED,
    SCENARIO,
    SCENARIO_CODES,
    SIZE,
    STRICT_SCENARIO,
    VOTER,
)
from crowdveil.sources.table_file import as_text
from crowdveil.study.drawing import LARGEST_GROUP

REASONS = tuple(RowDefect)
CODE = {reason: code for code, reason in enumerate(REASONS, start=1)}
"""A reason as a small number; 0 is none."""

_NUMBERS = (SAVED, *HIGHEST)
_FEATURES = tuple(HIGHEST)
_shifts = np.array(SHIFTS, np.uint64)
_highest = np.array(list(HIGHEST.values()), np.float64)
_FIRST_COUNT = _FEATURES.index("Man")
_NOT_SAID = -1e300
"""Replaces a missing group size. Other missing values are NaN."""


@dataclass(frozen=True)
class TextRows:
    """Rows as text with their numbers, and those among them that have too few or too many cells."""

    cells: pl.DataFrame
    """The needed columns and ROW."""
    ragged: pl.DataFrame
    """ROW and TEXT."""


def read_rows(block: ByteArray, rows: IntArray, columns: Sequence[str], wanted: Sequence[str]) -> TextRows:
    """Read some rows of a block (row, first byte, end) as CSV.

    A row that ends inside quotes is ragged: it would swallow the rows after it.
    """
    # Bytes that are not UTF-8 are escaped, so that one bad name does not make the file unreadable.
    texts = {row: block[a:b].tobytes().decode("utf-8", "backslashreplace") for row, a, b in rows.tolist()}
    ragged = [(row, texts.pop(row)) for row in rows[open_rows(block, rows), 0].tolist()]
    numbers = np.array(list(texts), np.int64)
    content = "".join(f"{text}\n" for text in texts.values()).encode()

    def set_aside(row: arrow_csv.InvalidRow) -> str:
        ragged.append((int(numbers[row.number - 1]), row.text))
        return "skip"

    names = [str(k) for k in range(len(columns))]
    here = {names[columns.index(column)]: column for column in wanted}
    table = arrow_csv.read_csv(
        pa.BufferReader(content or b"\n"),
        # Without threads the reader knows the number of a ragged row.
        read_options=arrow_csv.ReadOptions(use_threads=False, block_size=len(content) + 2, column_names=names),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=set_aside),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=list(here), column_types=dict.fromkeys(here, pa.string()), strings_can_be_null=False
        ),
    )
    aside = pl.DataFrame(sorted(ragged), schema={ROW: pl.Int64, TEXT: pl.String}, orient="row")
    kept = numbers[~np.isin(numbers, aside[ROW].to_numpy())]
    if len(table) != len(kept):
        raise RuntimeError(f"{len(kept)} rows of text were read as {len(table)} rows")
    return TextRows(as_text(table.rename_columns(list(here.values()))).with_columns(pl.Series(ROW, kept)), aside)


def judge(rows: TextRows, seen: WordArray) -> tuple[ScanResult, IntArray]:
    """Return the good rows as entries of one row each, and the others: row and reason."""
    checked = check(rows.cells if SIZE in rows.cells.columns else rows.cells.with_columns(pl.lit("").alias(SIZE)))
    good = checked.filter(pl.col(REASON).is_null())
    refused = checked.filter(pl.col(REASON).is_not_null())
    codes = [(row, CODE[RowDefect(reason)]) for row, reason in refused.select(ROW, REASON).iter_rows()]
    codes += [(row, CODE[RowDefect.RAGGED]) for row in rows.ragged[ROW]]
    return _entries(good, seen), np.array(codes, np.int64).reshape(-1, 2)


def check(rows: pl.DataFrame) -> pl.DataFrame:
    """Turn rows of text into small whole numbers, with the reason if a row is refused."""
    values = rows.with_columns(
        *(number(column) for column in (*_NUMBERS, SIZE)), blank=any_blank(_NUMBERS), sized=pl.col(SIZE) != ""
    )
    group = pl.sum_horizontal(GROUP)
    reason = first_reason(
        [
            (RowDefect.VOTER_MISSING, pl.col(VOTER) == ""),
            (RowDefect.DILEMMA_MISSING, pl.col(DILEMMA) == ""),
            (RowDefect.BLANK, pl.col("blank")),
            (RowDefect.NOT_A_NUMBER, any_not_finite(_NUMBERS)),
            (RowDefect.NO_SINGLE_CHOICE, ~pl.col(SAVED).is_in([0.0, 1.0])),
            (RowDefect.OUT_OF_BOUNDS, any_outside((column, 0, high) for column, high in HIGHEST.items())),
            (RowDefect.OUT_OF_BOUNDS, pl.any_horizontal(pl.col(*HIGHEST) % 1 != 0)),
            (RowDefect.OUT_OF_BOUNDS, ~group.is_between(1, LARGEST_GROUP)),
            (RowDefect.INCONSISTENT, pl.col("sized") & (pl.col(SIZE) != group).fill_null(True)),
        ]
    )
    return values.select(
        ROW, DILEMMA, VOTER, pl.col(_NUMBERS).cast(pl.Int8, strict=False), _scenario(rows.columns), reason.alias(REASON)
    )


def _scenario(columns: Sequence[str]) -> pl.Expr:
    """Return the code of a row's scenario, from the columns that exist."""
    codes = [
        pl.col(column).replace_strict(SCENARIO_CODES, default=0, return_dtype=pl.Int64)
        for column in (SCENARIO, STRICT_SCENARIO)
        if column in columns
    ]
    agreed = pl.when(codes[0] == codes[-1]).then(codes[0]).otherwise(0) if codes else pl.lit(0, pl.Int64)
    return agreed.alias(SCENARIO)


def _entries(good: pl.DataFrame, seen: WordArray) -> ScanResult:
    packed = np.zeros(len(good), np.uint64)
    for column, shift in zip(HIGHEST, SHIFTS, strict=True):
        packed |= good[column].to_numpy().astype(np.uint64) << np.uint64(shift)
    dilemmas, voters = (padded_texts(good[column].to_arrow()) for column in (DILEMMA, VOTER))
    buffer = ScanBuffer(len(good), len(voters[0]), seen)
    kinds = good[SCENARIO].to_numpy()
    _add(*dilemmas, *voters, good[ROW].to_numpy(), good[SAVED].to_numpy() == 1, packed, kinds, *buffer.arrays)
    return buffer.result()


@compiled
def _add(
    dilemmas: ByteArray, dilemma_ends: IntArray, voters: ByteArray, voter_ends: IntArray,
    rows: IntArray, saved: BoolArray, packed: WordArray, kinds: IntArray,
    entries: WordArray, names: WordArray, texts: ByteArray, ends: IntArray, seen: WordArray,
) -> None:  # fmt: skip
    for i in range(len(rows)):
        name = (voter_ends[i], voter_ends[i + 1])
        one, other, _ = hash_text(dilemmas, dilemma_ends[i], dilemma_ends[i + 1])
        voter_one, voter_other, _ = hash_text(voters, *name)
        begin_entry(
            entries, names, texts, ends, seen,
            (voter_one, voter_other), voters, name, (one, other), rows[i], saved[i], packed[i], kinds[i],
        )  # fmt: skip


def scan_columns(batch: pa.RecordBatch, seen: WordArray) -> tuple[ScanResult, IntArray]:
    """Return the entries of the clean rows, numbered from 0, and the numbers of the odd ones."""
    numbers = [*_FEATURES, SAVED]
    sized = SIZE in batch.schema.names
    if not (all(_is_number(batch, c) for c in (*numbers, *([SIZE] if sized else []))) and _are_text(batch)):
        return ScanBuffer(0, 0, seen).result(), np.arange(len(batch))
    values = np.stack([_numbers(batch.column(column), np.nan) for column in numbers], axis=1)
    sizes = _numbers(batch.column(SIZE), _NOT_SAID) if sized else np.full(len(batch), _NOT_SAID)
    dilemmas, voters = (padded_texts(batch.column(column)) for column in (DILEMMA, VOTER))
    buffer = ScanBuffer(len(batch), len(voters[0]), seen)
    odd = np.empty(len(batch), np.int64)
    kinds = _scenarios(batch)
    odd_rows = _scan(values, sizes, kinds, *dilemmas, *voters, odd, *buffer.arrays)
    return buffer.result(), odd[:odd_rows]


def _scenarios(batch: pa.RecordBatch) -> IntArray:
    """Return the codes of the rows' scenarios."""
    cells = as_text(batch.select([c for c in (SCENARIO, STRICT_SCENARIO) if c in batch.schema.names]))
    if not cells.width:
        return np.zeros(len(batch), np.int64)
    return cells.select(_scenario(cells.columns))[SCENARIO].to_numpy()


def padded_texts(column: pa.Array) -> tuple[ByteArray, IntArray]:
    """Return a column of text as padded bytes, and where each text begins (and where the last one ends)."""
    large = column.cast(pa.large_string()).fill_null("")
    ends = np.zeros(1, np.int64)
    if len(large):
        ends = np.frombuffer(large.buffers()[1], np.int64)[large.offset :][: len(large) + 1]
    data = np.zeros(int(ends[-1] - ends[0]) + PADDING, np.uint8)
    if len(data) > PADDING:
        data[:-PADDING] = np.frombuffer(large.buffers()[2], np.uint8)[ends[0] : ends[-1]]
    return data, ends - ends[0]


def _is_number(batch: pa.RecordBatch, column: str) -> bool:
    kind = batch.schema.field(column).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _are_text(batch: pa.RecordBatch) -> bool:
    return all(
        pa.types.is_string(kind) or pa.types.is_large_string(kind)
        for kind in (batch.schema.field(column).type for column in (DILEMMA, VOTER))
    )


def _numbers(column: pa.Array, missing: float) -> FloatArray:
    return np.asarray(column.cast(pa.float64(), safe=False).fill_null(missing).to_numpy(zero_copy_only=False))


@compiled
def _scan(
    values: FloatArray, sizes: FloatArray, kinds: IntArray,
    dilemmas: ByteArray, dilemma_ends: IntArray, voters: ByteArray, voter_ends: IntArray, odd: IntArray,
    entries: WordArray, names: WordArray, texts: ByteArray, ends: IntArray, seen: WordArray,
) -> int:  # fmt: skip
    odd_rows = 0
    waiting = False
    last: Hash = (np.uint64(0), np.uint64(0))
    last_voter: Hash = (np.uint64(0), np.uint64(0))
    for row in range(len(values)):
        dilemma, name = (dilemma_ends[row], dilemma_ends[row + 1]), (voter_ends[row], voter_ends[row + 1])
        clean, packed, saved = _read(values[row], sizes[row])
        if not (clean and has_visible_ends(dilemmas, *dilemma) and has_visible_ends(voters, *name)):
            odd[odd_rows] = row
            odd_rows += 1
            waiting = False
            continue
        one, other, _ = hash_text(dilemmas, dilemma[0], dilemma[1])
        voter_one, voter_other, _ = hash_text(voters, name[0], name[1])
        if waiting and last == (one, other) and last_voter == (voter_one, voter_other):
            waiting = not complete_entry(entries, ends, packed, saved, kinds[row])
            if not waiting:
                continue
        begin_entry(
            entries, names, texts, ends, seen,
            (voter_one, voter_other), voters, name, (one, other), row, saved, packed, kinds[row],
        )  # fmt: skip
        waiting = True
        last = (one, other)
        last_voter = (voter_one, voter_other)
    return odd_rows


@inlined
def _read(values: FloatArray, size: float) -> tuple[bool, Word, bool]:
    packed = np.uint64(0)
    group = 0.0
    saved = values[-1]
    for k in range(len(_highest)):
        value = values[k]
        if not (0 <= value <= _highest[k]) or value != np.floor(value):
            return False, packed, False
        packed |= np.uint64(value) << _shifts[k]
        if k >= _FIRST_COUNT:
            group += value
    clean = saved in (0, 1) and 1 <= group <= LARGEST_GROUP and size in (group, _NOT_SAID)
    return bool(clean), packed, bool(saved == 1)
