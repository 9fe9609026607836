"""What every command shares: results on stdout, words and progress on stderr, one object with ``--json``."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from crowdveil.ballots import open_ballots
from crowdveil.engines.crowd import Crowd
from crowdveil.engines.engine import Engine
from crowdveil.engines.local import LocalEngine
from crowdveil.sources.moral_machine.reading import Progress as ImportProgress

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout instead of text.")]
BallotPath = Annotated[
    Path, typer.Argument(metavar="BALLOTS", help="A ballot file or folder (from `crowdveil import` or `simulate`).")
]
EngineName = Annotated[str, typer.Option("--engine", help="Where to work: local (the cores of this machine) or spark.")]
Master = Annotated[
    str | None, typer.Option(help="The Spark cluster's URL, such as spark://host:7077. Default: this machine.")
]

_STEPS = {True: "reading", False: "putting voters together"}

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def show(data: Mapping[str, Any], as_json: bool, in_words: Callable[[], None]) -> None:
    """Print a result: as one JSON object, or in words."""
    if as_json:
        sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        in_words()


def table(title: str | None, *columns: str, numbers: int = 0) -> Table:
    """Start a table whose last ``numbers`` columns are right-aligned."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=None, pad_edge=False)
    for position, name in enumerate(columns):
        made.add_column(name, justify="right" if position >= len(columns) - numbers else "left", overflow="fold")
    return made


@contextmanager
def progress(task: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr (only on a terminal) and yield a function that moves it."""
    columns = (TextColumn(task), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        handle = bar.add_task(task, total=total)
        yield lambda done: bar.advance(handle, done)


@contextmanager
def import_progress() -> Iterator[Callable[[ImportProgress], None]]:
    """Show how far an import has come: bytes, rows a second and the time left, then parts of the crowd."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        tasks = {reading: bar.add_task(name, visible=False, amount="", rate="") for reading, name in _STEPS.items()}
        begun, before = time.monotonic(), -1

        def tell(progress: ImportProgress) -> None:
            nonlocal before
            before = progress.rows if before < 0 else before  # what an interrupted import had read already
            rate = (progress.rows - before) / max(time.monotonic() - begun, 1e-9)
            size = f"{progress.done / 1e9:.2f} of {progress.total / 1e9:.2f} GB"
            amount = size if progress.reading else f"{progress.done} of {progress.total} parts"
            bar.update(
                tasks[progress.reading],
                completed=progress.done,
                total=progress.total,
                visible=True,
                amount=amount,
                rate=f"{rate:,.0f} rows/s" if progress.reading else "",
            )

        yield tell


@contextmanager
def watched_ballots(path: Path, task: str, walks: int = 1, engine: Engine | None = None) -> Iterator[Crowd]:
    """Open a ballot file and show how far a command that walks it ``walks`` times has come; all cores by default."""
    file = open_ballots(path)
    with progress(task, file.voters * walks, "voters") as tell:
        yield Crowd(file, engine or LocalEngine(), tell)
