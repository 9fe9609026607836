"""Rows are the same wherever a block ends: Python's csv module, which reads the whole text, says what they are."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from crowdveil.sources.moral_machine import blocks
from crowdveil.sources.moral_machine.blocks import read_blocks
from crowdveil.sources.table_file import TableFile

HEADER = '"who,\nif they said",what,when'
ROWS = [f'ann,"fine,\nlater ""rain""\n",{k}' if k % 3 else f"bob,dry,{k}" for k in range(5)]


def rows_by_blocks(path: Path, columns: list[str]) -> tuple[int, list[list[str]]]:
    """Return the number of blocks and the rows of a file."""
    read = list(read_blocks(TableFile(path, columns)))
    texts = [block.texts(np.arange(block.rows)) for block in read]
    assert not any(len(found.ragged) for found in texts)
    return len(read), [list(cells) for found in texts for cells in found.cells.select(columns).iter_rows()]


@pytest.mark.parametrize(
    ("end", "mark", "dress"),
    [("\n", b"", bytes), ("\r\n", codecs.BOM_UTF8, bytes), ("\r", codecs.BOM_UTF8, gzip.compress)],
    ids=["plain", "marked", "zipped"],
)
def test_a_block_may_end_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, mark: bytes, dress: Callable[[bytes], bytes]
) -> None:
    """In the middle of a quoted cell, of its line breaks, of two quotes, of a line's end."""
    text = end.join([HEADER, *ROWS, ""])
    # White space around a cell is no part of it.
    header, *expected = ([cell.strip() for cell in row] for row in csv.reader(io.StringIO(text, newline="")))
    assert len(expected) == len(ROWS)
    path = tmp_path / "answers"
    path.write_bytes(dress(mark + text.encode()))
    # A row and its end must fit into a block, and so must the header and what is before it.
    shortest = len(mark) + max(len(row) for row in (HEADER, *ROWS)) + 3
    counts = set()
    for size in range(shortest, len(mark) + len(text) + 3):
        monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
        count, rows = rows_by_blocks(path, header)
        assert rows == expected, f"blocks of {size} bytes"
        counts.add(count)
    assert counts >= {1, 2, 3}
