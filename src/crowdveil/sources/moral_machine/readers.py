"""Reads a file in the public layout piece by piece: CSV, plain or gzipped, or Parquet."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from crowdveil.arrays import ByteArray, IntArray, WordArray
from crowdveil.errors import CrowdveilError
from crowdveil.sources.import_report import ROW, TEXT
from crowdveil.sources.moral_machine.columns import scan_columns
from crowdveil.sources.moral_machine.found import Found
from crowdveil.sources.moral_machine.lines import Layout, count_lines, find_lines, scan_lines
from crowdveil.sources.moral_machine.text_rows import TextRows, judge, read_lines
from crowdveil.sources.moral_machine.units import PADDING, compiled
from crowdveil.sources.table_rows import TableRows, as_text

BLOCK_BYTES = 1 << 23
ROWS_PER_BATCH = 1 << 16
_LOOK_AHEAD = 1 << 12

_HEADER = re.compile(rb"(?:\xef\xbb\xbf)?\s*[^\r\n]*")
_NEWLINE, _RETURN = 10, 13


@dataclass(frozen=True)
class Scanned:
    """What a piece held. Rows are numbered from 0 in it."""

    rows: int
    found: Sequence[Found]
    refused: IntArray
    """Row and reason."""


class Piece(Protocol):
    """Some consecutive rows of a file."""

    @property
    def place(self) -> int:
        """Where reading goes on after it."""

    @property
    def position(self) -> int:
        """How many bytes of the file have been read with it."""

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def scan(self, seen: WordArray) -> Scanned:
        """Read the rows. Any thread may."""

    def texts(self, rows: IntArray) -> TextRows:
        """Return some rows, which are in order and numbered from 0, as text."""


def read_pieces(table: TableRows, place: int = 0) -> Iterator[Piece]:
    """Walk a file, from its first row or from the place that a piece before has reached."""
    return _batches(table, place) if table.is_parquet else _blocks(table, place)


def read_span(table: TableRows, start: int, stop: int) -> Iterator[Piece]:
    """Walk some rows of a file, which others need not have walked before.

    Of a CSV (plain), these are the lines that begin at the bytes from ``start`` to below ``stop``; of a Parquet file,
    the rows with these numbers.
    """
    if table.is_parquet:
        return takewhile(lambda piece: piece.place <= stop, _batches(table, start))
    begin, end = (_next_line(table, at) for at in (start, stop))
    return _blocks(table, begin, end) if begin < end else iter(())


def spans(table: TableRows, size: int) -> list[tuple[int, int]]:
    """Cut a file (not a gzipped one) into spans of about this many bytes, or of whole row groups."""
    if not table.is_parquet:
        total = table.path.stat().st_size
        return [(start, min(start + size, total)) for start in range(0, total, size)]
    layout = pq.read_metadata(table.path)
    ends = np.cumsum([0] + [layout.row_group(group).num_rows for group in range(layout.num_row_groups)])
    return list(pairwise(ends.tolist()))


@dataclass(frozen=True)
class _Block:
    """Whole lines of CSV."""

    table: TableRows
    layout: Layout
    data: ByteArray
    size: int
    place: int
    position: int

    @property
    def rows(self) -> int:
        return count_lines(self.data, self.size)

    def scan(self, seen: WordArray) -> Scanned:
        rows, found, odd = scan_lines(self.data, self.size, self.layout, seen)
        if not len(odd):
            return Scanned(rows, [found], np.empty((0, 2), np.int64))
        more, refused = judge(self._read(odd), seen)
        return Scanned(rows, [found, more], refused)

    def texts(self, rows: IntArray) -> TextRows:
        return self._read(find_lines(self.data, self.size, rows))

    def _read(self, lines: IntArray) -> TextRows:
        return read_lines(self.data, lines, self.table.columns, self.table.wanted)


def _blocks(table: TableRows, place: int, stop: int | None = None) -> Iterator[Piece]:
    layout = Layout.of(table.columns)
    with pa.OSFile(str(table.path)) as file:
        stream = pa.CompressedInputStream(file, "gzip") if table.is_gzipped else file
        if table.is_gzipped:
            _skip(stream, place)
        else:
            file.seek(place)
        rest, begun, unread = np.empty(0, np.uint8), place > 0, math.inf if stop is None else stop - place
        while True:
            data = np.empty(BLOCK_BYTES + 1 + PADDING, np.uint8)
            data[: len(rest)] = rest
            room = int(min(BLOCK_BYTES, len(rest) + unread))
            filled = _fill(stream, data[:room], len(rest))
            unread -= filled - len(rest)
            ended = filled < BLOCK_BYTES
            data[filled] = _NEWLINE
            size = filled + 1 if ended else last_line_end(data, filled)
            if size == 0:
                raise CrowdveilError(
                    f"{table.path} has a line longer than {BLOCK_BYTES >> 20} MB: it is not in this layout"
                )
            rest = data[size:filled].copy()
            data[size : size + PADDING] = _NEWLINE
            place += min(size, filled)
            if not begun:
                header = _HEADER.match(data[:size].tobytes())
                data[: 0 if header is None else header.end()] = _NEWLINE
                begun = True
            yield _Block(table, layout, data, size, place, file.tell())
            if ended:
                return


def _fill(stream: pa.NativeFile, data: ByteArray, filled: int) -> int:
    """Read until the block is full or the file ends; return how much of the block is filled."""
    while filled < len(data):
        count = stream.readinto(data[filled:].data)
        if count == 0:
            break
        filled += count
    return filled


def _next_line(table: TableRows, at: int) -> int:
    """Return where the first line begins that does not begin before a byte."""
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
class _Batch:
    """Rows of a Parquet file."""

    batch: pa.RecordBatch
    place: int
    position: int

    @property
    def rows(self) -> int:
        return len(self.batch)

    def scan(self, seen: WordArray) -> Scanned:
        found, odd = scan_columns(self.batch, seen)
        if not len(odd):
            return Scanned(len(self.batch), [found], np.empty((0, 2), np.int64))
        more, refused = judge(self.texts(odd), seen)
        return Scanned(len(self.batch), [found, more], refused)

    def texts(self, rows: IntArray) -> TextRows:
        cells = as_text(self.batch.take(pa.array(rows))).with_columns(pl.Series(ROW, rows))
        return TextRows(cells, pl.DataFrame(schema={ROW: pl.Int64, TEXT: pl.String}))


def _batches(table: TableRows, place: int) -> Iterator[Piece]:
    size, before = table.path.stat().st_size, 0
    with pq.ParquetFile(table.path) as file:
        total = max(1, file.metadata.num_rows)
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if before + rows <= place:
                before += rows
                continue
            for batch in file.iter_batches(ROWS_PER_BATCH, row_groups=[group], columns=table.wanted):
                before += len(batch)
                if before > place:
                    yield _Batch(batch, before, size * before // total)
