"""Read a file in the public layout block by block: CSV, plain or gzipped, or Parquet."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.arrays import ByteArray, IntArray, WordArray
from crowdveil.errors import CrowdveilError, path_of
from crowdveil.sources.import_report import ROW, TEXT
from crowdveil.sources.moral_machine.csv_lines import (
    ColumnRoles,
    count_rows,
    ends_open,
    find_rows,
    has_quote,
    row_end,
    scan_rows,
    whole_rows,
)
from crowdveil.sources.moral_machine.entries import PADDING, ScanResult, compiled
from crowdveil.sources.moral_machine.layout import NEEDED, OPTIONAL
from crowdveil.sources.moral_machine.rows import TextRows, judge, read_rows, scan_columns
from crowdveil.sources.moral_machine.shards import no_refusals
from crowdveil.sources.table_file import TableFile, as_text

BLOCK_BYTES = 1 << 23
ROWS_PER_BLOCK = 1 << 16
_LOOK_AHEAD = 1 << 12

_BEFORE_HEADER = re.compile(rb"(?:\xef\xbb\xbf)?\s*")
_NEWLINE, _RETURN = 10, 13


def open_layout(path: str | Path) -> TableFile:
    """Open a file in the public layout, and check its columns."""
    return TableFile(str(path_of(path, "the file of answers")), NEEDED, OPTIONAL)


@dataclass(frozen=True)
class BlockScan:
    """The content of a block. Its rows are numbered from 0."""

    rows: int
    results: Sequence[ScanResult]
    refused: IntArray
    """Row and reason."""


class Block(Protocol):
    """Some consecutive rows of a file."""

    @property
    def resume_at(self) -> int:
        """The position after the block, at which reading resumes."""

    @property
    def bytes_read(self) -> int:
        """The number of bytes of the file read so far, including this block."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    def scan(self, seen: WordArray) -> BlockScan:
        """Read the rows. This is thread-safe."""

    def texts(self, rows: IntArray) -> TextRows:
        """Return some rows, given in order and numbered from 0, as text."""


def read_blocks(table: TableFile, resume_at: int = 0) -> Iterator[Block]:
    """Read a file, from its first row or from the end of an earlier block."""
    return _parquet_blocks(table, resume_at) if table.is_parquet else _csv_blocks(table, resume_at)


def read_range(table: TableFile, start: int, stop: int) -> Iterator[Block]:
    """Read some rows of a file, independently of the rows before them.

    In a plain CSV, these are the lines that begin at the bytes from ``start`` to below ``stop``; in a Parquet file, the
    rows with these numbers.
    """
    if table.is_parquet:
        return takewhile(lambda block: block.resume_at <= stop, _parquet_blocks(table, start))
    begin, end = (_next_line(table, at) for at in (start, stop))
    return _csv_blocks(table, begin, end) if begin < end else iter(())


def cut_ranges(table: TableFile, size: int) -> list[tuple[int, int]]:
    """Cut a file (not a gzipped one) into ranges of about this many bytes, or of whole row groups."""
    if not table.is_parquet:
        total = table.path.stat().st_size
        return [(start, min(start + size, total)) for start in range(0, total, size)]
    layout = pq.read_metadata(table.path)
    ends = np.cumsum([0] + [layout.row_group(group).num_rows for group in range(layout.num_row_groups)])
    return list(pairwise(ends.tolist()))


@dataclass(frozen=True)
class _CsvBlock:
    """Whole rows of CSV."""

    table: TableFile
    roles: ColumnRoles
    data: ByteArray
    size: int
    resume_at: int
    bytes_read: int

    @property
    def rows(self) -> int:
        return count_rows(self.data, self.size, len(self.table.columns))

    def scan(self, seen: WordArray) -> BlockScan:
        rows, result, odd = scan_rows(self.data, self.size, self.roles, seen)
        if not len(odd):
            return BlockScan(rows, [result], no_refusals())
        more, refused = judge(self._read(odd), seen)
        return BlockScan(rows, [result, more], refused)

    def texts(self, rows: IntArray) -> TextRows:
        return self._read(find_rows(self.data, self.size, len(self.table.columns), rows))

    def _read(self, rows: IntArray) -> TextRows:
        return read_rows(self.data, rows, self.table.columns, self.table.wanted)


def _csv_blocks(table: TableFile, start: int, stop: int | None = None) -> Iterator[Block]:
    roles = ColumnRoles.of(table.columns)
    columns = len(table.columns)
    with pa.OSFile(str(table.path)) as file:
        stream = pa.CompressedInputStream(file, "gzip") if table.is_gzipped else file
        if table.is_gzipped:
            _skip(stream, start)
        else:
            file.seek(start)
        resume_at = start
        rest = np.empty(0, np.uint8)
        unread = math.inf if stop is None else stop - start
        while True:
            data = np.empty(BLOCK_BYTES + 1 + PADDING, np.uint8)
            data[: len(rest)] = rest
            room = int(min(BLOCK_BYTES, len(rest) + unread))
            filled = _fill(stream, data[:room], len(rest))
            unread -= filled - len(rest)
            ended = filled < BLOCK_BYTES
            data[filled : filled + PADDING] = _NEWLINE
            if resume_at == 0:
                _blank_header(data, filled, columns)
            quoted = has_quote(data, filled)
            size = whole_rows(data, filled, columns) if quoted else last_line_end(data, filled)
            if ended:
                size = filled + 1
            if size == 0:
                raise CrowdveilError(
                    f"{table.path} has a line longer than {BLOCK_BYTES >> 20} MB: it is not in this layout"
                )
            if ended and quoted and stop is not None and stop < table.path.stat().st_size:
                _check_cut(table, data[:size], stop)
            rest = data[size:filled].copy()
            data[size : size + PADDING] = _NEWLINE
            resume_at += min(size, filled)
            yield _CsvBlock(table, roles, data, size, resume_at, file.tell())
            if ended:
                return


def _blank_header(data: ByteArray, filled: int, columns: int) -> None:
    """Replace the header, and anything before it, by blank lines."""
    before = _BEFORE_HEADER.match(data[:filled].data)
    end, _ = row_end(data, before.end() if before else 0, filled, columns)
    data[:end] = _NEWLINE


def _check_cut(table: TableFile, data: ByteArray, stop: int) -> None:
    """Refuse a file if the cut between two workers is in the middle of a row."""
    if ends_open(data, len(data), len(table.columns)):
        raise CrowdveilError(
            f"{table.path} has a quoted cell with a line break at byte {stop}, where it would be cut for workers: "
            "import it by the local engine into one file"
        )


def _fill(stream: pa.NativeFile, data: ByteArray, filled: int) -> int:
    """Read until the block is full or the file ends; return how much of the block is filled."""
    while filled < len(data):
        count = stream.readinto(data[filled:].data)
        if count == 0:
            break
        filled += count
    return filled


def _next_line(table: TableFile, at: int) -> int:
    """Return where the first line begins that does not begin before this byte."""
    if at == 0:
        return 0
    with table.path.open("rb") as file:
        file.seek(at - 1)
        while block := file.read(_LOOK_AHEAD):
            ends = np.flatnonzero(np.isin(np.frombuffer(block, np.uint8), (_NEWLINE, _RETURN)))
            if len(ends):
                return file.tell() - len(block) + int(ends[0]) + 1
        return file.tell()


def _skip(stream: pa.NativeFile, size: int) -> None:
    while size:
        size -= len(stream.read(min(size, BLOCK_BYTES))) or size


@compiled
def last_line_end(data: ByteArray, filled: int) -> int:
    """Return where the last whole line of a block ends; 0 if there is none."""
    while filled > 0 and data[filled - 1] != _NEWLINE and data[filled - 1] != _RETURN:
        filled -= 1
    return filled


@dataclass(frozen=True)
class _ParquetBlock:
    """Rows of a Parquet file."""

    batch: pa.RecordBatch
    resume_at: int
    bytes_read: int

    @property
    def rows(self) -> int:
        return len(self.batch)

    def scan(self, seen: WordArray) -> BlockScan:
        result, odd = scan_columns(self.batch, seen)
        if not len(odd):
            return BlockScan(len(self.batch), [result], no_refusals())
        more, refused = judge(self.texts(odd), seen)
        return BlockScan(len(self.batch), [result, more], refused)

    def texts(self, rows: IntArray) -> TextRows:
        cells = as_text(self.batch.take(pa.array(rows))).with_columns(pl.Series(ROW, rows))
        return TextRows(cells, pl.DataFrame(schema={ROW: pl.Int64, TEXT: pl.String}))


def _parquet_blocks(table: TableFile, start: int) -> Iterator[Block]:
    size = table.path.stat().st_size
    before = 0
    with pq.ParquetFile(table.path) as file:
        total = max(1, file.metadata.num_rows)
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if before + rows <= start:
                before += rows
                continue
            for batch in file.iter_batches(ROWS_PER_BLOCK, row_groups=[group], columns=table.wanted):
                before += len(batch)
                if before > start:
                    yield _ParquetBlock(batch, before, size * before // total)
