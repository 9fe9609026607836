"""Tables that sweeps write into the docs, row by row, so that a sweep that is stopped leaves what it measured.

A page holds a place for each table:

    <!-- table: NAME -->
    <!-- end -->
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def write_table(
    page: str,
    name: str,
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    command: str,
    keys: int = 1,
    docs: Path = DOCS,
) -> None:
    """Put rows into a page's table, each in the place of the row whose first ``keys`` cells are the same.

    Rows that are there and not measured anew stay, unless the header has changed; all are sorted by their keys.
    Processes may write at the same time.
    """
    path = docs / page
    with (docs / "hooks.py").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = path.read_text(encoding="utf-8")
        place = re.search(rf"<!-- table: {re.escape(name)} -->\n(.*?)<!-- end -->", text, re.DOTALL)
        if place is None:
            raise LookupError(f"docs/{page} has no place for a table {name!r}: write <!-- table: {name} --> into it")
        there = [_cells(line) for line in place[1].splitlines() if line.startswith("| ")]
        kept = there[1:] if there and there[0] == list(header) else []
        table = {tuple(row[:keys]): row for row in (*kept, *([str(cell) for cell in row] for row in rows))}
        lines = [_line(header), "|" + "---|" * len(header), *(_line(table[key]) for key in sorted(table, key=_order))]
        written = f"<!-- table: {name} -->\n`{command}` makes this table.\n\n" + "\n".join(lines) + "\n\n<!-- end -->"
        path.write_text(text[: place.start()] + written + text[place.end() :], encoding="utf-8")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _order(key: tuple[str, ...]) -> list[tuple[float, str]]:
    """Numbers by their size, words by their letters."""
    return [(float(cell), "") if re.fullmatch(r"-?[\d.]+", cell) else (float("inf"), cell) for cell in key]
