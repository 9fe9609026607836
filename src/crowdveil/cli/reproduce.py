"""crowdveil reproduce: the paper's whole evaluation, claim by claim."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.cli.help import ReadableCommand, command_group
from crowdveil.cli.terminal import AsJson, Table, bold, progress, say, show, tell

if TYPE_CHECKING:
    from crowdveil.evaluation.paper.reproduction import Reproduction, ReproductionRequest

Quick = Annotated[bool, typer.Option("--quick", help="10 crowds instead of 200: takes only minutes.")]
Folder = Annotated[Path, typer.Option("--out", help="Folder for the page, the figures and their numbers.")]
DataPath = Annotated[
    Path | None, typer.Option("--moral-machine", metavar="FILE", help="A file in the Moral Machine's public layout.")
]
Workers = Annotated[int | None, typer.Option(help="Processes. Default: one per core. The results are the same.")]
Crowds = Annotated[int | None, typer.Option(help="Crowds per curve. Default: 200.")]

reproducing = command_group(
    invoke_without_command=True, help="Run the paper's evaluation again: every figure, every claim, with a verdict."
)


@reproducing.callback()
def everything(
    context: typer.Context,
    quick: Quick = False,
    folder: Folder = Path("reproduction"),
    data: DataPath = None,
    workers: Workers = None,
    crowds: Crowds = None,
    docs: Annotated[
        Path | None, typer.Option(help="Also write the page as Markdown, with its pictures, to this folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the paper's evaluation again: every figure, every claim, with a verdict.

    An interrupted run resumes where it stopped; a repeated one computes only what changed.

    Example: `crowdveil reproduce --quick`, or `crowdveil reproduce figure compare-no-privacy`
    """
    if context.invoked_subcommand is not None:
        return
    from crowdveil.evaluation.paper.page import reproduction_page, write_docs
    from crowdveil.evaluation.paper.reproduction import reproduce
    from crowdveil.files import write_text

    words = [*(["--docs", str(docs)] if docs is not None else [])]
    request = _request(quick, folder, data, workers, crowds, words)
    _say_if_left_out(request)
    made = reproduce(request, lambda total: progress("reproducing", total, "jobs"))
    page = folder / "index.html"
    write_text(page, reproduction_page(made))
    if docs is not None:
        write_docs(made, docs)
    show(made.as_dict(), as_json, lambda: _print(made, page))


@reproducing.command("figure", cls=ReadableCommand)
def figure(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The figure's name, as on the page.")],
    quick: Quick = False,
    folder: Folder = Path("reproduction"),
    data: DataPath = None,
    workers: Workers = None,
    crowds: Crowds = None,
    as_json: AsJson = False,
) -> None:
    """Make one figure alone, with its numbers.

    Example: `crowdveil reproduce figure compare-no-privacy --quick`
    """
    from crowdveil.evaluation.paper.figures import check_figure_name
    from crowdveil.evaluation.paper.reproduction import figure_files, reproduce_figure

    check_figure_name(name)
    request = _request(quick, folder, data, workers, crowds, ["figure", name])
    if name == "compare-no-privacy":
        _say_if_left_out(request)
    made = reproduce_figure(request, name, lambda total: progress(name, total, "jobs"))
    files = {kind: str(path) for kind, path in figure_files(folder, name).items()}

    def in_words() -> None:
        say(f"{bold(made.plan.title)} ({made.plan.paper}), {request.crowds} crowds")
        say(made.plan.beside_the_paper)
        for path in files.values():
            say(f"  {path}")

    show({"figure": name, "crowds": request.crowds, "command": request.command, "files": files}, as_json, in_words)


def _request(
    quick: bool, folder: Path, data: Path | None, workers: int | None, crowds: int | None, words: list[str]
) -> ReproductionRequest:
    """Check the options, and record the command that reproduces the same numbers."""
    from crowdveil.evaluation.paper.plan import FULL_CROWDS, QUICK_CROWDS
    from crowdveil.evaluation.paper.reproduction import make_order

    number = crowds if crowds is not None else QUICK_CROWDS if quick else FULL_CROWDS
    said = ["crowdveil", "reproduce", *words, "--crowds", str(number)]
    if data is not None:
        said += ["--moral-machine", data.name]
    return make_order(folder, number, workers if workers is not None else os.cpu_count() or 1, data, shlex.join(said))


def _say_if_left_out(request: ReproductionRequest) -> None:
    if request.data is None:
        tell(f"crowdveil: {request.data_words}")


def _print(made: Reproduction, page: Path) -> None:
    from crowdveil.evaluation.paper.page import summary

    rows = Table(None, "section", "claim", "verdict")
    for claim in made.claims:
        rows.add(claim.section, claim.quote, claim.verdict.value)
    rows.print()
    ours = Table("\nThe same headline, asked of the recommended mechanisms", "paradigm", "verdict")
    for claim in made.recommended:
        ours.add(claim.section, claim.verdict.value)
    ours.print()
    say(f"\n{summary(made)}\nWhy, and every figure: {page}")
