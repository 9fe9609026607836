"""crowdveil ledger: what has been spent, on which data, for what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crowdveil.cli.help import ReadableCommand, command_group
from crowdveil.cli.terminal import AsJson, Table, bold, say, show
from crowdveil.errors import plural
from crowdveil.privacy.epsilon import PrivacyMeasure
from crowdveil.privacy.ledger.entries import Account, Statement

ledger = command_group(help="The privacy budget: create it, look at it, raise it.")

LedgerPath = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger file (SQLite).")]
Budget = Annotated[
    str, typer.Option("--budget", metavar="NUMBER", help="Epsilon that anybody may lose in all, for example 3.")
]


@ledger.command(cls=ReadableCommand)
def create(
    path: LedgerPath,
    budget: Budget,
    delta: Annotated[
        float | None,
        typer.Option(help="Make it a zCDP ledger, for many releases: the promise may fail with this probability."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a ledger.

    The key by which it recognises people is written beside it: keep both, and publish neither.

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
        show(data, as_json, lambda: say(f"{path}: nobody may lose more than epsilon {budget} in all."))
        return
    rho = made.statement().budget
    show(
        {**data, "delta": delta, "rho": rho.value},
        as_json,
        lambda: say(
            f"{path}: all releases about anybody together are ({budget}, {delta:g})-differentially private. "
            f"They may spend rho {rho}; a pure release costs epsilon^2 / 2 of it."
        ),
    )


@ledger.command("raise", cls=ReadableCommand)
def raise_budget(
    path: LedgerPath,
    budget: Budget,
    note: Annotated[str, typer.Option(help="Why: it stays in the ledger.")],
    as_json: AsJson = False,
) -> None:
    """Raise the budget for good.

    A larger budget is a weaker promise to everybody in the ledger.

    Example: `crowdveil ledger raise study.ledger --budget 4 --note "second wave of the study"`
    """
    from crowdveil.privacy.ledger.ledger import Ledger

    Ledger.open(path).raise_budget(budget, note)
    show(
        {"ledger": str(path), "budget": budget, "note": note},
        as_json,
        lambda: say(f"{path}: the budget is now {budget}."),
    )


@ledger.command("show", cls=ReadableCommand)
def show_ledger(path: LedgerPath, as_json: AsJson = False) -> None:
    """Show what was spent on whom, what remains, and why.

    Example: `crowdveil ledger show study.ledger`
    """
    from crowdveil.privacy.ledger.ledger import Ledger

    statement = Ledger.open(path).statement()
    show(statement.as_dict(), as_json, lambda: _print(path, statement))


def _print(path: Path, statement: Statement) -> None:
    from crowdveil.privacy.zcdp import epsilon_of

    of_rho = "" if statement.delta is None else f"rho (zCDP, delta {statement.delta:g}) "
    say(f"{bold(str(path))}: nobody may lose more than {of_rho}{statement.budget}.")
    for raised in statement.raises:
        say(f"Budget raised from {raised.old} to {raised.new} on {raised.raised_at[:10]}: {raised.note}")
    if not statement.accounts:
        say("Nothing has been spent yet.")
    for account in statement.accounts:
        _print_account(account, statement.measure)
        if statement.delta is not None:
            spent = account.spent
            together = epsilon_of(spent.value, statement.delta) if spent else 0
            say(f"All releases about them are together ({together:.4g}, {statement.delta:g})-differentially private.")


def _print_account(account: Account, measure: PrivacyMeasure) -> None:
    named = f"{account.voters:,} {plural(account.voters, 'voter')}"
    who = named if account.named else "voters without names (anybody of their study)"
    say(
        f"\nCrowd {account.crowd}, {who}: {account.remaining} of {account.budget} remain. "
        f"A whole voter lost at most {account.whole_voter}."
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
    for overlap in account.overlaps:
        say(f"Also counted: {overlap}.")
