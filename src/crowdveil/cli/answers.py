"""Commands on ballots that take a file of answers too: it is imported first."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from crowdveil.cli.terminal import err, import_progress
from crowdveil.engines.engine import Engine
from crowdveil.engines.local import LocalEngine
from crowdveil.errors import CrowdveilError
from crowdveil.files import remove
from crowdveil.sources.moral_machine.moral_machine import holds_answers, spread_moral_machine, stream_moral_machine


@contextmanager
def imported(given: Path, keep: Path | None, out_path: Path | None, engine: Engine) -> Iterator[Path]:
    """Import answers first, if that is what was given; their ballots are gone afterwards, unless they are to be kept."""
    if not holds_answers(given):
        if keep is not None:
            raise CrowdveilError(f"--keep-ballots is for a file of answers to import: {given} is none")
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
        with import_progress() as tell:
            if isinstance(engine, LocalEngine):
                report = stream_moral_machine(given, ballots, tell=tell)
            else:
                report = spread_moral_machine(given, ballots, engine, tell)
        told = f"Imported {report.pairs} pairs of {report.voters} voters from {report.rows} rows"
        err.print(f"{told}, {sum(report.refused.values())} of them refused.", markup=False)
        yield ballots
