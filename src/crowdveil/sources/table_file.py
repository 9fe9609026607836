"""Files of rows: CSV, gzipped CSV or Parquet, distinguished by content, read in batches of cells as text.

A row with too few or too many cells is set aside and counted; a file that is not a table is refused.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from crowdveil.ballots.ballot_file import is_ballot_file
from crowdveil.errors import CrowdveilError, path_of, plural
from crowdveil.sources.import_report import REASON, ROW, TEXT, RowDefect

_MOST_NAMED = 6
"""Most missing columns that are named: an unrelated file lacks nearly all."""
_BLOCK_BYTES = 1 << 24
_ROWS_PER_BATCH = 1 << 18
_LONGEST_HEADER = 1 << 20
_LONGEST_RETURN = 0.5
"""Seconds to wait for the reader's thread; an error of our own keeps what was lent, and then there is no need."""


class TableFile:
    """One pass over the rows of a table."""

    def __init__(self, path: str | Path, needed: Sequence[str], optional: Sequence[str] = ()) -> None:
        self.path = path_of(path, "the table")
        self.rows = 0
        """Number of rows read so far, including ragged ones."""
        self._ragged: list[tuple[int, str]] = []
        self._unclosed: int | None = None
        self._escaped = 0
        """Number of bytes read so far that are not UTF-8."""
        self._magic = _first_bytes(self.path)
        self.columns = self._columns()
        """All columns, in order."""
        self._check(self.columns, needed, optional)
        self.wanted = [c for c in self.columns if c in {*needed, *optional}]
        self.unused = tuple(c for c in self.columns if c not in self.wanted)

    def batches(self, progress: Callable[[int], None] | None = None) -> Iterator[pl.DataFrame]:
        """Read the table: the wanted columns, and the row's number (1 is the first after the header).

        A cell is text without surrounding spaces, empty if it is missing. There is at least one batch, though it may be
        empty. ``progress`` is called with the number of rows read so far.
        """
        following = 1
        try:
            for batch in self._parquet() if self.is_parquet else self._csv():
                frame = as_text(batch)
                ragged = [number for number, _ in self._ragged]
                candidates = np.arange(following, following + len(frame) + len(ragged))
                numbers = np.setdiff1d(candidates, ragged)[: len(frame)]
                following = int(numbers[-1]) + 1 if len(numbers) else following
                self.rows += len(frame)
                if progress is not None:
                    progress(self.rows + len(ragged))
                yield frame.with_columns(pl.Series(ROW, numbers))
        except pl.exceptions.PolarsError as error:
            raise CrowdveilError(f"{self.path} has a column of neither numbers nor text: {one_line(error)}") from None
        except pa.ArrowInvalid as error:
            raise CrowdveilError(f"{self.path} cannot be read: {self._explain(error)}") from None
        except (OSError, pa.ArrowException) as error:
            raise CrowdveilError(
                f"{self.path} is damaged or cut off after row {self.rows}: {one_line(error)}"
            ) from None
        if self.rows == 0:
            yield pl.DataFrame(schema={**dict.fromkeys(self.wanted, pl.String), ROW: pl.Int64})
        self.rows += len(self._ragged)

    def ragged(self) -> pl.DataFrame:
        """Return the rows set aside so far."""
        return pl.DataFrame(
            {
                ROW: [number for number, _ in self._ragged],
                REASON: [RowDefect.RAGGED.value] * len(self._ragged),
                TEXT: [text for _, text in self._ragged],
            },
            schema={ROW: pl.Int64, REASON: pl.String, TEXT: pl.String},
        )

    def notes(self) -> list[str]:
        """Return what a reader of the report should know about the file itself."""
        unused = [f"columns not needed ({len(self.unused)}): {', '.join(self.unused)}"] if self.unused else []
        if not self._escaped:
            return unused
        return [
            *unused,
            f"{self._escaped} {plural(self._escaped, 'byte is', 'bytes are')} not UTF-8, and kept as text like \\xe9: "
            "the ledger takes such a name for somebody else than the same name in UTF-8; save the file as UTF-8 first",
        ]

    @property
    def is_parquet(self) -> bool:
        """Whether the file is Parquet; otherwise it is CSV."""
        return self._magic.startswith(b"PAR1")

    @property
    def is_gzipped(self) -> bool:
        """Whether the CSV is gzipped."""
        return self._magic.startswith(b"\x1f\x8b")

    def parquet_rows(self) -> int:
        """Return the number of rows that a Parquet file states."""
        return int(pq.read_metadata(self.path).num_rows)

    def _columns(self) -> list[str]:
        try:
            if self.is_parquet:
                with pq.ParquetFile(self.path) as file:
                    return [str(name) for name in file.schema_arrow.names]
            with self._stream() as stream:
                start = stream.read(_LONGEST_HEADER).decode("utf-8-sig", "backslashreplace")
        except (OSError, pa.ArrowException) as error:
            raise CrowdveilError(f"{self.path} cannot be read as a table: {one_line(error)}") from None
        header = next((line for line in re.split("[\r\n]", start) if line.strip()), "")
        if self._magic.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise CrowdveilError(f"{self.path} is text in UTF-16: save it as CSV in UTF-8")
        if "\0" in header or not header:
            what = "is not a text file" if header else "is empty"
            raise CrowdveilError(
                f"{self.path} {what}: give a CSV file (also gzipped) or a Parquet file, and unpack archives first"
            )
        try:
            return next(csv.reader(io.StringIO(start[start.index(header) :], newline="")))
        except csv.Error as error:
            raise CrowdveilError(f"{self.path} has no readable header: {error}") from None

    def _check(self, columns: list[str], needed: Sequence[str], optional: Sequence[str]) -> None:
        missing = [c for c in needed if c not in columns]
        if missing:
            marks = {";": "semicolons", "\t": "tabs", "|": "bars"}
            other = [name for mark, name in marks.items() if "".join(columns).count(mark) >= max(1, len(columns) - 1)]
            hint = f"; its cells are separated by {other[0]}: save it with commas" if other else ""
            if self.is_parquet and is_ballot_file(self.path):
                hint = ": it is a ballot file already, which needs no import"
            named = ", ".join(missing[:_MOST_NAMED])
            more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
            raise CrowdveilError(f"{self.path} lacks the {plural(len(missing), 'column')} {named}{more}{hint}")
        doubled = [c for c in (*needed, *optional) if columns.count(c) > 1]
        if doubled:
            raise CrowdveilError(f"{self.path} has more than one column {doubled[0]}: keep one of them")

    def _stream(self) -> pa.NativeFile:
        return pa.input_stream(self.path, compression="gzip" if self.is_gzipped else None)

    def _parquet(self) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(self.path) as file:
            yield from file.iter_batches(_ROWS_PER_BATCH, columns=self.wanted)

    def _csv(self) -> Iterator[pa.RecordBatch]:
        # Bytes that are not UTF-8 are escaped, so that one bad name does not make the file unreadable.
        decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        quotes = _Quotes(self.path)

        def read(block: pa.Buffer) -> bytes:
            raw = bytes(block)
            text = decoder.decode(raw)
            self._escaped += text.count("\\x") - raw.count(b"\\x")
            quotes.check(text)
            return text.encode()

        set_aside = partial(self._set_aside)
        lent: tuple[weakref.ref[Any], ...] = (weakref.ref(read), weakref.ref(set_aside))
        try:
            with self._stream() as stream:
                yield from arrow_csv.open_csv(
                    pa.TransformInputStream(stream, read),
                    # Without threads the reader knows the number of a ragged row. Conversion is no faster with them.
                    read_options=arrow_csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
                    parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=set_aside),
                    convert_options=arrow_csv.ConvertOptions(
                        include_columns=self.wanted,
                        column_types={column: pa.string() for column in self.wanted},
                        strings_can_be_null=False,
                    ),
                )
        finally:
            # After an error, the reader's own thread returns what it was lent a little later, and a program that ends
            # before that is aborted.
            del read, set_aside
            end = time.monotonic() + _LONGEST_RETURN
            while any(one() is not None for one in lent) and time.monotonic() < end:
                time.sleep(0.001)

    def _set_aside(self, row: arrow_csv.InvalidRow) -> str:
        # An unclosed quote swallows the rows after it, which must not be lost as if they were one row.
        if "\n" in row.text or "\r" in row.text:
            self._unclosed = row.number - 1
            return "error"
        self._ragged.append((row.number - 1, row.text))
        return "skip"

    def _explain(self, error: Exception) -> str:
        if self._unclosed is not None:
            return f"row {self._unclosed} opens a quote and does not close it; repair or delete that row"
        message = one_line(error)
        if "out of sync" in message or "straddl" in message:
            return f"a row after row {self.rows} opens a quote and does not close it, or is longer than 16 MB"
        return message


class _Quotes:
    """A look at the quotes of a text that comes in blocks.

    Two quotes that were never meant as a pair swallow the rows between them into one cell. Unless the second happens to
    end a cell, other text follows it there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = ","
        """The end of the text so far: a quoted cell that is not complete, and the character before it."""
        self._passed = {"\n": 0, "\r": 0}
        """Line ends before that."""

    def check(self, block: str) -> None:
        """Look at the next block, and refuse a quoted cell of several lines that other text follows."""
        text = self._before + block
        end = len(text) - 1
        for cell in _QUOTED.finditer(text) if '"' in text else ():
            if cell.end() == len(text):
                end = cell.start() - 1
                break
            if text[cell.end()] not in ",\r\n" and ("\n" in cell[0] or "\r" in cell[0]):
                first, last = self._line(text[: cell.start()]), self._line(text[: cell.end()])
                raise CrowdveilError(
                    f"{self._path} cannot be read: line {first} opens a quote that line {last} closes inside a cell, "
                    "which makes one row of all between them; repair or delete these lines"
                )
        if len(text) - end > _BLOCK_BYTES:
            end = len(text) - 1  # the reader refuses so long a cell
        self._passed = {mark: count + text[:end].count(mark) for mark, count in self._passed.items()}
        self._before = text[end:]

    def _line(self, text: str) -> int:
        """Return the number of the line in which this text after what has passed ends."""
        ends = {mark: count + text.count(mark) for mark, count in self._passed.items()}
        return 1 + (ends["\n"] or ends["\r"])


_QUOTED = re.compile(r'(?<=[,\r\n])"[^"]*+(?:""[^"]*+)*+(?:"|\Z)')


def as_text(batch: pa.RecordBatch | pa.Table) -> pl.DataFrame:
    """Return cells as text without surrounding spaces, empty if they are missing."""
    return pl.DataFrame(batch).select(pl.all().cast(pl.String).str.strip_chars().fill_null(""))


def _first_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise CrowdveilError(f"{path} is a directory: give a CSV or Parquet file")
    try:
        with path.open("rb") as file:
            return file.read(4)
    except OSError as error:
        raise CrowdveilError(f"cannot read {path}: {error.strerror}") from None


def one_line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
