"""crowdveil audit: attacks on crowdveil's own promises."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdveil.audit.audit import FEWEST_DRAWS, MOST_FOR_SLOW_TESTS, Audit, Order, pieces
from crowdveil.audit.audit import audit as run_audit
from crowdveil.audit.picture import check_format, save_picture
from crowdveil.cli.terminal import AsJson, out, progress, show, table
from crowdveil.files import check_writable
from crowdveil.privacy.epsilon import Epsilon

NOT_CLEAN = 1


def audit(
    epsilon: Annotated[str, typer.Option(help="The promise to attack.")] = "1",
    draws: Annotated[
        int | None, typer.Option(help=f"Outputs of each side, from {FEWEST_DRAWS}: more prove more. Default: 200000.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Half a minute: fewer draws, a shorter search.")] = False,
    mechanism: Annotated[str | None, typer.Option(help="Audit one mechanism only.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the result here (.svg, .png or .pdf).")] = None,
    as_json: AsJson = False,
) -> None:
    """Attack crowdveil's own promises: how much epsilon can somebody who sees the outputs prove?

    Every mechanism runs on the worst neighbours that a search finds; an event is chosen on one sample of outputs and
    counted on a fresh one. Mistakes made on purpose must be caught, and the noise must follow its law. Exit code 1 if a
    promise is violated, a mistake missed or a law broken (a false alarm: less than once in a million runs).

    Example: `crowdveil audit --quick --plot audit.svg`
    """
    make = Order.quick if quick else Order.thorough
    order = make(Epsilon(epsilon), draws, mechanism)
    if plot is not None:
        check_format(plot)
        check_writable(plot)
    with progress("attacking", len(pieces(order)), "trials") as tell:
        done = run_audit(order, tell)
    if plot is not None:
        save_picture(done, plot)
    show(done.as_dict() | ({"plot": str(plot)} if plot is not None else {}), as_json, lambda: _print(done, plot))
    if not done.clean:
        raise typer.Exit(NOT_CLEAN)


def _print(done: Audit, plot: Path | None) -> None:
    promised = table(
        "Promises under attack",
        "mechanism",
        "",
        "protects",
        "worst neighbours",
        "reach",
        "promised",
        "proved",
        "verdict",
    )
    for trial in done.promises:
        promised.add_row(
            trial.name,
            trial.remark,
            trial.paradigm,
            trial.neighbours,
            "" if trial.reach is None else f"{trial.reach:.3f}",
            trial.promised,
            f"≥ {trial.evidence.shown:.3f}",
            _loud(trial.verdict.value, trial.as_it_should_be),
        )
    caught = table("Mistakes made on purpose", "mechanism", "mistake", "promised", "proved", "found by", "verdict")
    for trial in done.bugs:
        caught.add_row(
            trial.name,
            trial.bug or "",
            trial.promised,
            f"≥ {trial.evidence.shown:.3f}",
            ", ".join(flaw.value for flaw in trial.flaws),
            _loud(trial.verdict.value, trial.as_it_should_be),
        )
    laws = table("The noise against its law", "sampler", "law", "draws", "p-value", "verdict")
    for test in done.laws:
        laws.add_row(
            test.sampler,
            test.law,
            f"{test.draws:,}",
            f"{test.p_value:.3g}",
            _loud("as it should be" if test.passed else "WRONG LAW", test.passed),
        )
    for shown in (promised, caught, laws):
        if shown.row_count:
            out.print(shown)
            out.print()
    out.print(
        f"[bold]{'All promises held, all mistakes were caught.' if done.clean else 'This audit FAILED.'}[/bold] "
        f"{done.order.draws:,} outputs of each side ({MOST_FOR_SLOW_TESTS:,} at most where each is slow to make: last bits, and promises "
        "with a delta); proved: lower bounds of epsilon at 99.9 %; reach: distance of the "
        "neighbours as a share of what the noise covers."
    )
    if plot is not None:
        out.print(f"Drawn in {plot}.", markup=False)


def _loud(word: str, as_it_should_be: bool) -> str:
    return word if as_it_should_be else f"[bold red]{word}[/bold red]"
