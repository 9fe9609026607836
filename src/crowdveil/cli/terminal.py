"""Output shared by all commands: results on stdout, messages and progress on stderr, one object with ``--json``.

Tables and sentences are laid out for 80 columns whatever the width of the terminal, so that they look the same
everywhere. Words are never broken. Words from a file cannot command the terminal: a release may come from anybody.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Annotated, Any

import typer

from crowdveil.errors import CrowdveilError

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout instead of text.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same draws.")]

WIDTH = 80
GAP = 2

# Control characters but line breaks and tabs, and marks that change the direction of all text after them; and, to be
# kept, what makes text bold.
_COMMANDS = re.compile("\x1b\\[[01]m|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Replace the characters by which a text could command a terminal, apart from bold type."""
    return _COMMANDS.sub(lambda found: found[0] if len(found[0]) > 1 else "\ufffd", text)


def say(text: str = "") -> None:
    """Print a line of the result."""
    _put(printable(text))


def say_wrapped(text: str) -> None:
    """Print sentences of the result, as wide as tables are."""
    say("\n".join(_wrap(text, WIDTH)))


def _put(text: str) -> None:
    try:
        typer.echo(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CrowdveilError(
            f"cannot print the result: {error.strerror}; what was written to files is there: look before you try again"
        ) from None


def tell(text: str) -> None:
    """Print a message beside the result, on stderr. If it cannot be printed, the work goes on."""
    with suppress(OSError):
        typer.echo(printable(text), err=True)


def bold(text: str) -> str:
    """Make text bold, on terminals that support it."""
    return typer.style(text, bold=True)


def show(data: Mapping[str, Any], as_json: bool, in_words: Callable[[], None]) -> None:
    """Print a result: as one JSON object, or in words."""
    if as_json:
        everything = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
        _put(json.dumps(data, indent=2, ensure_ascii=not everything, allow_nan=False))
    else:
        in_words()


class Table:
    """Rows under headings; the last ``numbers`` columns are right-aligned and never wrapped."""

    def __init__(self, title: str | None, *columns: str, numbers: int = 0) -> None:
        self._title = title
        self._numbers = numbers
        self._rows: list[tuple[str, ...]] = [columns]
        self._loud: set[int] = {0}

    def add(self, *cells: str, loud: bool = False) -> None:
        """Add a row; a loud row is printed in bold. A line break in a cell becomes a space."""
        if loud:
            self._loud.add(len(self._rows))
        self._rows.append(tuple(" ".join(printable(cell).splitlines()) for cell in cells))

    def print(self) -> None:
        """Print the table, with its title and headings in bold; a table without rows is left out."""
        if len(self._rows) == 1:
            return
        if self._title is not None:
            say(bold(self._title))
        for row, line in self._laid_out():
            say(bold(line) if row in self._loud else line)

    def _laid_out(self) -> Iterator[tuple[int, str]]:
        """Yield the lines, each with its row number."""
        widths = self._widths()
        text = len(widths) - self._numbers
        for number, row in enumerate(self._rows):
            wrapped = [_wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
            for line in range(max(map(len, wrapped))):
                cells = (lines[line] if line < len(lines) else "" for lines in wrapped)
                padded = (
                    _padding(cell, width) + cell if place >= text else cell + _padding(cell, width)
                    for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
                )
                yield number, (" " * GAP).join(padded).rstrip()

    def _widths(self) -> list[int]:
        """Shrink the widest text column until all columns fit, but none below its longest word."""
        columns = list(zip(*self._rows, strict=True))
        widths = [max(map(_columns, cells)) for cells in columns]
        least = [max((_columns(word) for cell in cells for word in cell.split()), default=0) for cells in columns]
        wrappable = range(len(columns) - self._numbers)
        while sum(widths) + GAP * (len(widths) - 1) > WIDTH:
            shrinkable = [place for place in wrappable if widths[place] > least[place]]
            if not shrinkable:
                break
            widths[max(shrinkable, key=lambda place: widths[place])] -= 1
        return widths


def _wrap(cell: str, width: int) -> list[str]:
    if _columns(cell) <= width:
        return [cell]
    return textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) or [""]


def _padding(cell: str, width: int) -> str:
    return " " * (width - _columns(cell))


def _columns(text: str) -> int:
    """Count the columns of a text in a terminal: Chinese characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in ("W", "F") else 1 for c in text
    )


@contextmanager
def progress(task: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on stderr (only on a terminal) and yield a function that advances it."""
    if not sys.stderr.isatty():
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(task), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        handle = bar.add_task(task, total=total)
        yield lambda done: bar.advance(handle, done)
