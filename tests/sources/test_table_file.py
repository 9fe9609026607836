"""Files that are not what they should be: each is read, counted, or refused in one line."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from crowdveil.errors import CrowdveilError
from crowdveil.sources import table_file
from crowdveil.sources.table_file import TableFile

GOOD = b"voter,chosen,extra\nann,left,1\nbob,right,2\n"


def read(path: Path, needed: tuple[str, ...] = ("voter", "chosen")) -> tuple[list[tuple[str, ...]], TableFile]:
    table = TableFile(path, needed)
    rows = [row for batch in table.batches() for row in batch.select(needed).iter_rows()]
    return rows, table


def written(folder: Path, content: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        gzip.compress(GOOD, mtime=0),
        gzip.compress(GOOD[:20], mtime=0) + gzip.compress(GOOD[20:], mtime=0),
        b"\xef\xbb\xbf" + GOOD,
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.replace(b"\n", b"\r"),
        GOOD.rstrip(),
        b"\n\n" + GOOD + b"\n\n",
        GOOD.replace(b"ann", b'"ann"').replace(b"voter", b'"voter"'),
        GOOD.replace(b"ann,", b"  ann ,"),
        GOOD.replace(b"\nbob", b"\n\nbob"),
    ],
    ids=["plain", "gzip", "two gzips", "bom", "crlf", "cr", "no end", "blank lines", "quotes", "spaces", "gap"],
)
def test_a_table_is_read_in_whatever_dress(tmp_path: Path, content: bytes) -> None:
    rows, table = read(written(tmp_path, content))
    assert rows == [("ann", "left"), ("bob", "right")]
    assert table.rows == 2
    assert table.unused == ("extra",)
    assert len(table.ragged()) == 0


def test_quoted_cells_hold_commas_quotes_and_line_ends(tmp_path: Path) -> None:
    rows, table = read(written(tmp_path, b'voter,chosen\n"a,b",left\n"a ""b""",left\n"a\nb",right\n'))
    assert rows == [("a,b", "left"), ('a "b"', "left"), ("a\nb", "right")]
    assert table.rows == 3


def test_rows_of_the_wrong_length_are_set_aside_and_numbered(tmp_path: Path) -> None:
    content = b"voter,chosen,extra\n" + b"a\n" + b"v,left,1\n" * 3 + b"b,left\n" + b"v,left,1\n" + b"c,left,1,2\n"
    table = TableFile(written(tmp_path, content), ["voter"])
    numbers = [n for batch in table.batches() for n in batch["refused row"]]
    assert numbers == [2, 3, 4, 6]
    assert table.ragged().rows() == [
        (1, "cut short, or more cells than columns", "a"),
        (5, "cut short, or more cells than columns", "b,left"),
        (7, "cut short, or more cells than columns", "c,left,1,2"),
    ]
    assert table.rows == 7


def test_rows_are_numbered_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_file, "_BLOCK_BYTES", 64)
    random = np.random.default_rng(1)
    ragged = {int(k) for k in random.choice(np.arange(1, 401), 150, replace=False)}
    lines = ["cut" if k in ragged else f"{k},left" for k in range(1, 401)]
    table = TableFile(written(tmp_path, "\n".join(["voter,chosen", *lines]).encode()), ["voter", "chosen"])
    batches = list(table.batches())
    assert len(batches) > 5
    read_numbers = [
        (int(voter), n) for batch in batches for voter, n in batch.select("voter", "refused row").iter_rows()
    ]
    assert read_numbers == [(k, k) for k in range(1, 401) if k not in ragged]
    assert set(table.ragged()["refused row"]) == ragged


def test_bytes_that_are_no_text_spoil_only_their_cell(tmp_path: Path) -> None:
    rows, table = read(written(tmp_path, b"voter,chosen\ncaf\xe9,left\ncaf\xe8,left\ncaf\xc3\xa9,left\n\xff\n"))
    assert rows == [("caf\\xe9", "left"), ("caf\\xe8", "left"), ("café", "left")]
    assert table.ragged()["refused text"].to_list() == ["\\xff"]
    (note,) = table.notes()
    assert note.startswith("3 bytes are not UTF-8, and kept as text like \\xe9"), (
        "those of caf\\xe9, caf\\xe8 and \\xff"
    )


@pytest.mark.parametrize("block", [33, 1 << 20])
def test_good_text_is_not_said_to_be_escaped(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_file, "_BLOCK_BYTES", block)
    _, table = read(written(tmp_path, ("voter,chosen\n" + "\\xe9 and é€𝄞,left\n" * 50).encode()))
    assert table.notes() == []


def test_text_split_between_blocks_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_file, "_BLOCK_BYTES", 33)
    rows, _ = read(written(tmp_path, ("voter,chosen\n" + "éü€𝄞,left\n" * 50).encode()))
    assert rows == [("éü€𝄞", "left")] * 50


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n\r\n", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (gzip.compress(GOOD * 2_000, mtime=0)[:-30], "Truncated"),
        (gzip.compress(GOOD * 50_000, mtime=0)[:-30], "cut off after row 0: Truncated"),
        (b"\x1f\x8b" + bytes(range(256)), "cannot be read as a table"),
        (b"PAR1" + bytes(100), "cannot be read as a table"),
        (bytes(range(256)), "not a text file|lacks the columns"),
        (gzip.compress(b"answers.csv" + bytes(512), mtime=0), "not a text file.*unpack archives"),
        (GOOD.decode().encode("utf-16"), "text in UTF-16: save it as CSV in UTF-8"),
        (GOOD.replace(b",", b";"), "lacks the columns voter, chosen; its cells are separated by semicolons"),
        (GOOD.replace(b",", b"\t"), "separated by tabs"),
        (GOOD.replace(b"chosen", b"picked"), "lacks the column chosen$"),
        (GOOD.replace(b"extra", b"voter"), "more than one column voter"),
        (GOOD + b'"cy,left,1\n' + GOOD, "row 3 opens a quote"),
        (GOOD + b'"cy,left,1\n' + b"dee,left,1\n" * 50 + b'"eve,left,1\n', "line 4 opens a quote that line 55 closes"),
        (b"x" * 200_000 + b"\n1\n", "no readable header"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(CrowdveilError, match=message) as caught:
        read(written(tmp_path, content))
    assert len(str(caught.value).splitlines()) == 1
    assert str(tmp_path) in str(caught.value)


def test_a_quote_that_is_never_closed_is_refused_in_a_long_file_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_file, "_BLOCK_BYTES", 64)
    with pytest.raises(CrowdveilError, match="opens a quote and does not close it"):
        read(written(tmp_path, GOOD + b'"cy,left,1\n' + b"dee,left,1\n" * 50))


@pytest.mark.parametrize("size", range(64, 80))
def test_a_block_may_end_inside_a_quoted_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(table_file, "_BLOCK_BYTES", size)
    rows = "".join(f'"v{k}\nof two",left,"so\nit, went"\n' for k in range(40))
    found, table = read(written(tmp_path, b"voter,chosen,extra\n" + rows.encode()))
    assert found == [(f"v{k}\nof two", "left") for k in range(40)]
    assert table.rows == 40


def test_a_program_that_meets_an_unreadable_file_ends_in_order(tmp_path: Path) -> None:
    """Three times: the reader's thread, which it may outrun, is slow."""
    path = written(tmp_path, GOOD + b'"cy,left,1\n' + GOOD)
    program = f"""
import time
import pyarrow as pa
from crowdveil.errors import CrowdveilError
from crowdveil.sources import table_file

lend = pa.TransformInputStream
pa.TransformInputStream = lambda stream, read: lend(stream, lambda block: (time.sleep(0.05), read(block))[1])
try:
    list(table_file.TableFile({str(path)!r}, ["voter", "chosen"]).batches())
except CrowdveilError as error:
    raise SystemExit(str(error))
"""
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        assert ended.returncode == 1
        assert ended.stderr.endswith("row 3 opens a quote and does not close it; repair or delete that row\n")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_quotes_are_understood_wherever_a_block_ends(size: int, end: str) -> None:
    good = '"x\ny",1\n"p""q",2\n"a,""b""",3\n"a" b,4\nc "d,5\n"""",6\n"",7\n"\n""\n""",8\n'.replace("\n", end)
    quotes = table_file._Quotes(Path("file"))
    for start in range(0, len(good), size):
        quotes.check(good[start : start + size])
    for letter in f'"cy,1{end}dee,2{end}"':
        quotes.check(letter)
    with pytest.raises(CrowdveilError, match="line 12 opens a quote that line 14 closes inside a cell"):
        quotes.check("eve,3")


def test_a_directory_or_nothing_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(CrowdveilError, match="is a directory"):
        TableFile(tmp_path, [])
    with pytest.raises(CrowdveilError, match="No such file"):
        TableFile(tmp_path / "absent", [])


def test_parquet_cells_become_text(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"  # The content decides, not the name.
    pl.DataFrame(
        {"voter": [1, None, 3], "chosen": [0.1, float("nan"), 2.0], "flag": [True, False, None]}
    ).write_parquet(path)
    rows, table = read(path, ("voter", "chosen", "flag"))
    assert rows == [("1", "0.1", "true"), ("", "NaN", "false"), ("3", "2.0", "")]
    assert table.rows == 3


def test_parquet_of_lists_is_refused(tmp_path: Path) -> None:
    pl.DataFrame({"voter": [[1], [2]]}).write_parquet(tmp_path / "file")
    with pytest.raises(CrowdveilError, match="neither numbers nor text"):
        read(tmp_path / "file", ("voter",))


def test_a_header_alone_makes_one_empty_batch(tmp_path: Path) -> None:
    table = TableFile(written(tmp_path, b"voter,chosen\n"), ["voter", "chosen"])
    (batch,) = table.batches()
    assert batch.columns == ["voter", "chosen", "refused row"]
    assert (len(batch), table.rows) == (0, 0)
