"""Options and inputs that are shared by the commands on ballots."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crowdveil.cli.terminal import progress, tell
from crowdveil.errors import CrowdveilError, plural

if TYPE_CHECKING:
    from crowdveil.engines.batches import BatchedBallots
    from crowdveil.engines.engine import Engine
    from crowdveil.sources.moral_machine.importing import ImportProgress

BallotPath = Annotated[
    Path, typer.Argument(metavar="BALLOTS", help="A ballot file or folder (from `crowdveil import` or `simulate`).")
]
_PARADIGM = typer.Option("--paradigm", help="Who is protected, and where: vlcp, rlcp, vldp, rldp, alcp or aldp.")
ParadigmName = Annotated[str, _PARADIGM]
ParadigmOrNone = Annotated[str | None, _PARADIGM]
EpsilonOrNone = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="NUMBER", help="Privacy parameter for all voters: smaller protects more."),
]
WHERE = "Where to work"
EngineName = Annotated[
    Literal["local", "spark"],
    typer.Option("--engine", help="The cores of this machine, or Spark.", rich_help_panel=WHERE),
]
Master = Annotated[
    str | None,
    typer.Option(
        help="The Spark cluster's URL, such as spark://host:7077. Default: this machine.", rich_help_panel=WHERE
    ),
]
OneRecordEach = Annotated[
    bool, typer.Option("--one-record-each", help="Confirm that voters with one record each are people.")
]
PublicSelection = Annotated[
    str | None,
    typer.Option(metavar="LABEL", help="How these voters were selected, if everybody may know who is among them."),
]
ChargedLedger = Annotated[Path | None, typer.Option(help="The ledger to charge (`crowdveil ledger create`).")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show cost and expected error, spend nothing.")]
ExperimentSeed = Annotated[
    int | None, typer.Option(help="Repeatable floating-point noise instead: protects nobody, charges nothing.")
]

_STEPS = {True: "reading", False: "putting voters together"}


@contextmanager
def watched_ballots(path: Path, task: str, walks: int = 1, engine: Engine | None = None) -> Iterator[BatchedBallots]:
    """Open a ballot file, with a progress bar for a command that reads it ``walks`` times; all cores by default."""
    from crowdveil.ballots.ballot_file import open_ballots
    from crowdveil.engines.batches import BatchedBallots
    from crowdveil.engines.engine import LocalEngine

    file = open_ballots(path)
    with progress(task, file.voters * walks, "voters") as advance:
        yield BatchedBallots(file, engine or LocalEngine(), advance)


@contextmanager
def imported(given: Path, keep: Path | None, out_path: Path | None, engine: Engine) -> Iterator[Path]:
    """Import the file first if it holds answers; delete the ballots afterwards, unless they are to be kept."""
    from crowdveil.engines.engine import LocalEngine
    from crowdveil.files import remove
    from crowdveil.sources.moral_machine.engine_import import import_with_engine
    from crowdveil.sources.moral_machine.importing import holds_answers, import_moral_machine

    if not holds_answers(given):
        if keep is not None:
            raise CrowdveilError(f"--keep-ballots is for a file of choices to import, which {given} is not")
        yield given
        return
    with ExitStack() as rest:
        if keep is not None:
            ballots = keep
        elif out_path is not None:
            ballots = out_path.with_name(f".{out_path.name}.ballots")
            rest.callback(remove, ballots)
        else:
            ballots = Path(rest.enter_context(tempfile.TemporaryDirectory())) / "ballots"
        # Whether voters with one record each are people is asked when the release is made.
        with import_progress() as advance:
            if isinstance(engine, LocalEngine):
                report = import_moral_machine(given, ballots, tell=advance, one_record_each=True)
            else:
                report = import_with_engine(given, ballots, engine, advance, one_record_each=True)
        tell(
            f"Imported {report.records} {plural(report.records, 'record')} of {report.voters} "
            f"{plural(report.voters, 'voter')} from {report.rows} {plural(report.rows, 'row')}, "
            f"{sum(report.refused.values())} of them refused."
        )
        yield ballots


@contextmanager
def import_progress() -> Iterator[Callable[[ImportProgress], None]]:
    """Show the progress of an import: bytes, rows per second and the time left, then buckets of voters."""
    if not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks = {reading: bar.add_task(name, visible=False, amount="", rate="") for reading, name in _STEPS.items()}
        begun = time.monotonic()
        before = -1

        def advance(progress: ImportProgress) -> None:
            nonlocal before
            before = progress.rows if before < 0 else before  # rows that an interrupted import had already read
            rate = (progress.rows - before) / max(time.monotonic() - begun, 1e-9)
            size = f"{progress.done / 1e9:.2f} of {progress.total / 1e9:.2f} GB"
            bar.update(
                tasks[progress.reading],
                completed=progress.done,
                total=progress.total,
                visible=True,
                amount=size if progress.reading else f"{progress.done} of {progress.total} buckets",
                rate=f"{rate:,.0f} rows/s" if progress.reading else "",
            )

        yield advance


def refuse_without(partner: str, given: Mapping[str, bool]) -> None:
    """Refuse options that mean nothing without another one."""
    for name, is_given in given.items():
        if is_given:
            raise CrowdveilError(f"{name} means nothing without {partner}: give both, or leave it out")
