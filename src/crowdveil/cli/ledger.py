"""crowdveil ledger: what has been spent, on which data, for what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdveil.cli.terminal import AsJson, Table, bold, say, show
from crowdveil.privacy.ledger.statement import Account, Measure, Statement

ledger = typer.Typer(
    add_completion=False, rich_markup_mode=None, help="The privacy budget: create it, look at it, raise it."
)

LedgerPath = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file (SQLite).")]
Budget = Annotated[str, typer.Option("--budget", help="Epsilon that one dataset may spend in all, for example 3.")]


@ledger.command()
def create(
    path: LedgerPath,
    budget: Budget,
    delta: Annotated[
        float | None,
        typer.Option(help="Make it a zCDP ledger, for many releases: the promise may fail with this probability."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a ledger. Every dataset gets an account in it at its first release.

    A plain ledger adds up epsilons: a pure promise. With `--delta`, the budget (epsilon, delta) becomes a rho, and each
    release is charged epsilon^2 / 2: more and better releases, for a promise that may fail with probability delta.
    `crowdveil plan repeat` compares the two.

    Examples: `crowdveil ledger create study.ledger --budget 3`;
    `crowdveil ledger create weekly.ledger --budget 1 --delta 1e-6`
    """
    from crowdveil.privacy.ledger.ledger import Ledger

    made = Ledger.create(path, budget, delta)
    data = {"ledger": str(path), "id": made.id, "budget": budget}
    if delta is None:
        show(data, as_json, lambda: say(f"{path}: each dataset may spend epsilon {budget} in all."))
        return
    rho = made.statement().default_budget
    show(
        {**data, "delta": delta, "rho": rho.value},
        as_json,
        lambda: say(
            f"{path}: all releases of a dataset together are ({budget}, {delta:g})-differentially private. "
            f"They may spend rho {rho}; a pure release costs epsilon^2 / 2 of it."
        ),
    )


@ledger.command("raise")
def raise_budget(
    path: LedgerPath,
    budget: Budget,
    note: Annotated[str, typer.Option(help="Why: it stays in the ledger.")],
    ballots: Annotated[
        Path | None, typer.Option(help="Only for this ballot file's data; default: for new data.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Raise a budget for good: a larger budget is a weaker promise.

    Example: `crowdveil ledger raise study.ledger --budget 4 --ballots mm.parquet --note "second wave of the study"`
    """
    from crowdveil.ballot_file import open_ballots
    from crowdveil.ballots import census
    from crowdveil.privacy.ledger.ledger import Ledger

    dataset = None if ballots is None else census(open_ballots(ballots)).fingerprint
    Ledger.open(path).raise_budget(dataset, budget, note)
    whom = "data without an account yet" if dataset is None else f"dataset {dataset[:12]}"
    show(
        {"ledger": str(path), "dataset": dataset, "budget": budget, "note": note},
        as_json,
        lambda: say(f"{path}: the budget of {whom} is now {budget}."),
    )


@ledger.command("show")
def show_ledger(path: LedgerPath, as_json: AsJson = False) -> None:
    """Show every account: what was spent on what, and what remains.

    Example: `crowdveil ledger show study.ledger`
    """
    from crowdveil.privacy.ledger.ledger import Ledger

    statement = Ledger.open(path).statement()
    show(statement.as_dict(), as_json, lambda: _print(path, statement))


def _print(path: Path, statement: Statement) -> None:
    from crowdveil.privacy.zcdp import epsilon_of

    of_rho = "" if statement.delta is None else f"rho (zCDP, delta {statement.delta:g}) "
    say(f"{bold(str(path))}: budget for new data {of_rho}{statement.default_budget}")
    if not statement.accounts:
        say("No dataset has spent anything yet.")
    for account in statement.accounts:
        _print_account(account, statement.measure)
        if statement.delta is not None:
            spent = account.spent
            together = epsilon_of(spent.value, statement.delta) if spent else 0
            say(f"Its releases so far are together ({together:.4g}, {statement.delta:g})-differentially private.")


def _print_account(account: Account, measure: Measure) -> None:
    say(
        f"\nDataset {account.dataset[:12]}: {account.remaining} "
        f"of {account.budget} remain. A whole voter lost at most "
        f"{account.whole_voter}."
    )
    entries = Table(None, "entry", "when (UTC)", "what", "unit", "state", measure.value, numbers=1)
    for entry in account.entries:
        entries.add(
            str(entry.id),
            entry.charged_at[:19],
            entry.purpose,
            entry.unit,
            entry.state,
            str(entry.charged),
        )
    entries.print()
    for raised in account.raises:
        say(f"Budget raised from {raised.old} to {raised.new} on {raised.raised_at[:10]}: {raised.note}")
