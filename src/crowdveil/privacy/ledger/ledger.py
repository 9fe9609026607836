"""The privacy budget: what has been released about each dataset, and what may still be.

Theorem (sequential composition). Releases that are eps_1-, ..., eps_k-differentially private for one unit of
protection, each chosen after seeing the earlier ones, are together (eps_1 + ... + eps_k)-differentially
private for that unit: the probability of what was seen is a product of k factors, and the i-th changes by at
most e^eps_i. The ledger therefore adds epsilons up, and refuses the charge that would exceed the budget.

A zCDP ledger, made with a delta, adds up rhos instead (``zcdp``). Its budget (epsilon, delta) becomes a rho once, when
it is set, rounded down; a pure epsilon is charged as epsilon^2 / 2, and a Gaussian release as its rho, rounded up to a
millionth. Whatever was released is then (epsilon, delta)-differentially private in all, also when each charge was
chosen after seeing the earlier releases (Feldman and Zrnic 2021: a Renyi filter). Nobody is moved from one kind of
ledger to the other silently: the kind is chosen at creation, and stays.

The budget caps two lines: what a voter and what a record can lose. A charge is posted to the line of its own
unit and to every weaker one, so every charge is posted to the weakest line. That line is the fullest, and a
charge fits into all of its lines if and only if it fits into the weakest: one comparison decides.

Order of a release: ``charge`` (durable), draw noise, put the release file in place (durable), ``deliver``. A
process killed anywhere in between leaves a charge without a release, never a release without its charge.

The ledger guards against mistakes and races, not against an owner who deletes it or restores an old copy. It
is not for publishing: ``records_per_voter`` may come from private ballots. It belongs on a local disk, since
SQLite relies on file locks that network file systems often get wrong.
"""

from __future__ import annotations

import math
import operator
import re
import sqlite3
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.amount import MICROS_PER_UNIT, NOTHING, Amount, AmountLike
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger import file as ledger_file
from crowdveil.privacy.ledger.charge import Charge
from crowdveil.privacy.ledger.statement import Account, ChargePreview, Entry, Measure, Raise, Statement
from crowdveil.privacy.zcdp import epsilon_of, rho_of

MOST = Amount(10**18)
"""No amount in a ledger is larger, so that every sum that SQLite makes fits into 64 bits."""
MOST_RECORDS = 10**18


@dataclass(frozen=True)
class Ledger:
    """A durable ledger of epsilons, safe to use from many threads and processes at once."""

    path: Path
    id: str
    """A random UUID, made at creation."""
    delta: float | None = None
    """Of a zCDP ledger; None for a pure one."""

    @classmethod
    def create(cls, path: str | PathLike[str], budget: AmountLike, delta: float | None = None) -> Ledger:
        """Make a new ledger in which every dataset may spend the budget, an epsilon; never overwrites a file.

        With a ``delta`` it is a zCDP ledger: all releases about a dataset are (epsilon, delta)-differentially
        private together, with the budget's epsilon.
        """
        ledger_file.create(Path(path), _budget(budget, delta), delta)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | PathLike[str], budget: AmountLike | None = None, delta: float | None = None) -> Ledger:
        """Open a ledger; with a budget, create it if there is none, and check that it has this budget if there is."""
        path = Path(path)
        if budget is not None and not path.exists():
            return cls.create(path, budget, delta)
        with ledger_file.transaction(path, writes=False) as connection:
            (ledger,) = connection.execute("SELECT id FROM ledger").fetchone()
            opened = cls(path.absolute(), ledger, ledger_file.delta_of(connection))
            found = _default_budget(connection)
        if delta is not None and delta != opened.delta:
            kind = "adds up pure epsilons" if opened.delta is None else f"has delta {opened.delta:g}"
            raise CrowdveilError(f"ledger {path} {kind}, not delta {delta:g}: open it without a delta")
        if budget is not None and (wanted := _budget(budget, opened.delta)) != found:
            rho = "" if opened.delta is None else "rho "
            raise CrowdveilError(
                f"ledger {path} has a budget of {rho}{found}, not {rho}{wanted}: open it without a budget, or raise it "
                f"deliberately: crowdveil ledger raise {path} --budget {budget} --note WHY"
            )
        return opened

    @property
    def measure(self) -> Measure:
        """The unit of the ledger's amounts."""
        return Measure.EPSILON if self.delta is None else Measure.RHO

    def charge(self, charge: Charge) -> Entry:
        """Spend what a release costs, or raise ``BudgetExceeded`` and spend nothing.

        When this returns, the charge is on disk: only then may noise be drawn.
        """
        _check_digest("dataset", charge.dataset)
        cost = self._cost(charge)
        if not 1 <= (records := operator.index(charge.records_per_voter)) <= MOST_RECORDS:
            raise CrowdveilError(f"records per voter must be 1 or more, got {records}")
        with ledger_file.transaction(self.path, self.id, writes=True) as connection:
            budget, spent = _balance(connection, charge.dataset)
            if cost > budget - spent:
                raise self._refusal(charge.dataset, cost, budget, spent)
            _open_account(connection, charge.dataset)
            (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM entry").fetchone()
            unit = Unit(charge.unit).value
            row = (last + 1, charge.dataset, unit, cost.micro, records, charge.purpose, ledger_file.now())
            connection.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return self._entry(*row)

    def preview(self, charge: Charge) -> ChargePreview:
        """Tell whether a charge would fit; changes nothing, and promises nothing about a later charge."""
        _check_digest("dataset", charge.dataset)
        cost = self._cost(charge)
        with ledger_file.transaction(self.path, self.id, writes=False) as connection:
            budget, spent = _balance(connection, charge.dataset)
        return ChargePreview(charge.dataset, charge.unit, cost, budget, budget - spent, self.measure)

    def deliver(self, entry: int, release_digest: str) -> None:
        """Note that the release of ``entry`` is durably in place; saying so again changes nothing."""
        _check_digest("release digest", release_digest)
        with ledger_file.transaction(self.path, self.id, writes=True) as connection:
            found = connection.execute(
                "SELECT release_digest FROM entry LEFT JOIN delivery ON entry = id WHERE id = ?", (entry,)
            ).fetchone()
            if found is None:
                raise CrowdveilError(f"ledger {self.path} has no entry {entry}: look it up with crowdveil ledger show")
            (delivered,) = found
            if delivered is None:
                row = (entry, release_digest, ledger_file.now())
                connection.execute("INSERT INTO delivery VALUES (?, ?, ?)", row)
            elif delivered != release_digest:
                raise CrowdveilError(
                    f"entry {entry} was already delivered as release {delivered[:12]}, "
                    f"not {release_digest[:12]}: every release needs a charge of its own"
                )

    def raise_budget(self, dataset: str | None, budget: AmountLike, note: str) -> None:
        """Raise a dataset's budget for good, or (None) the one that datasets without an account will get.

        A dataset may have its budget raised before its first charge. The budget is an epsilon in a zCDP ledger too.
        """
        wanted = _budget(budget, self.delta)
        if not note.strip():
            raise CrowdveilError("a raise of the budget needs a note that says why")
        if dataset is not None:
            _check_digest("dataset", dataset)
        with ledger_file.transaction(self.path, self.id, writes=True) as connection:
            old = _default_budget(connection) if dataset is None else _balance(connection, dataset)[0]
            if not wanted > old:
                measure = "" if self.delta is None else "rho "
                raise CrowdveilError(
                    f"the budget is {measure}{old} and can only be raised, got {measure}{wanted}: give a larger one"
                )
            if dataset is not None:
                _open_account(connection, dataset)
            connection.execute(
                "INSERT INTO budget_raise (dataset, old_budget, new_budget, note, raised_at) VALUES (?, ?, ?, ?, ?)",
                (dataset, old.micro, wanted.micro, note, ledger_file.now()),
            )

    def statement(self) -> Statement:
        """Read the whole ledger as it is at one moment."""
        with ledger_file.transaction(self.path, self.id, writes=False) as connection:
            (created_at,) = connection.execute("SELECT created_at FROM ledger").fetchone()
            default = _default_budget(connection)
            budgets = connection.execute("SELECT dataset, budget FROM balance ORDER BY id").fetchall()
            raises = connection.execute(
                "SELECT dataset, old_budget, new_budget, note, raised_at FROM budget_raise ORDER BY id"
            ).fetchall()
            entries = connection.execute(
                "SELECT id, dataset, unit, epsilon, records_per_voter, purpose, charged_at,"
                " delivered_at, release_digest FROM entry LEFT JOIN delivery ON entry = id ORDER BY id"
            ).fetchall()
        raises_of: dict[str | None, list[Raise]] = {None: []}
        entries_of: dict[str, list[Entry]] = {}
        for dataset, _ in budgets:
            raises_of[dataset], entries_of[dataset] = [], []
        for row in raises:
            dataset, old, new, *said = row
            raises_of[dataset].append(Raise(dataset, Amount(old), Amount(new), *said))
        for row in entries:
            entries_of[row[1]].append(self._entry(*row))
        accounts = tuple(
            Account(dataset, Amount(budget), tuple(entries_of[dataset]), tuple(raises_of[dataset]))
            for dataset, budget in budgets
        )
        return Statement(self.id, created_at, default, tuple(raises_of[None]), accounts, self.delta)

    def __repr__(self) -> str:
        kind = "of epsilons" if self.delta is None else f"of rhos at delta {self.delta:g}"
        return f"<ledger {kind} in {self.path}>"

    def _cost(self, charge: Charge) -> Amount:
        """Return what a release costs in the ledger's measure: epsilon, or epsilon^2 / 2 rounded up, or its rho."""
        epsilon = _positive("epsilon", charge.epsilon)
        if self.delta is None and charge.rho is not None:
            raise CrowdveilError(
                f"ledger {self.path} adds up pure epsilons, and a release with Gaussian noise has none: use a pure "
                "mechanism, or a zCDP ledger: crowdveil ledger create PATH --budget 1 --delta 1e-6"
            )
        if self.delta is None:
            return epsilon
        if charge.rho is not None:
            return _positive("rho", charge.rho)
        return _positive("the charge in rho", Amount(-(-(epsilon.micro**2) // (2 * MICROS_PER_UNIT))))

    def _entry(self, number: int, dataset: str, unit: str, micro: int, *rest: Any) -> Entry:
        return replace(Entry(self.id, number, dataset, Unit(unit), Amount(micro), *rest), measure=self.measure)

    def _refusal(self, dataset: str, requested: Amount, budget: Amount, spent: Amount) -> BudgetExceeded:
        remaining = budget - spent
        ask = f"ask for at most {remaining}, or " if remaining else ""
        enough = spent + requested
        if self.delta is not None:
            pure = Amount(math.isqrt(2 * MICROS_PER_UNIT * remaining.micro))
            ask = f"ask for at most rho {remaining} (epsilon {pure} of a pure release), or " if ask else ""
            enough = _epsilon_for(enough, self.delta)
        return BudgetExceeded(
            f"the budget of dataset {dataset[:12]} does not cover this release: "
            f"requested {self.measure} {requested}, remaining {remaining} "
            f"of {budget}, difference {requested - remaining}; "
            f"{ask}raise the budget deliberately: crowdveil ledger raise {self.path} "
            f"--budget {enough} --ballots FILE --note WHY",
            requested.decimal,
            remaining.decimal,
        )


def _budget(budget: AmountLike, delta: float | None) -> Amount:
    """Return the budget in the ledger's measure: the epsilon itself, or the rho that it allows, rounded down."""
    epsilon = _positive("the budget", Amount.of(budget, "a budget"))
    if delta is None:
        return epsilon
    return _positive("the budget's rho", Amount(math.floor(rho_of(epsilon.value, delta) * MICROS_PER_UNIT)))


def _epsilon_for(rho: Amount, delta: float) -> Amount:
    """Return the budget, an epsilon, that allows so much rho."""
    micro = math.ceil(epsilon_of(rho.value, delta) * MICROS_PER_UNIT)
    while _budget(Amount(micro), delta) < rho:
        micro += 1
    return Amount(micro)


def _default_budget(connection: sqlite3.Connection) -> Amount:
    (budget,) = connection.execute("SELECT budget FROM default_budget").fetchone()
    return Amount(budget)


def _balance(connection: sqlite3.Connection, dataset: str) -> tuple[Amount, Amount]:
    """Return the budget of a dataset and what is spent on its weakest, fullest line."""
    row = connection.execute("SELECT budget, spent FROM balance WHERE dataset = ?", (dataset,)).fetchone()
    if row is None:
        return _default_budget(connection), NOTHING
    budget, spent = row
    return Amount(budget), Amount(spent)


def _open_account(connection: sqlite3.Connection, dataset: str) -> None:
    """Give a dataset the default budget unless it has an account."""
    connection.execute("INSERT OR IGNORE INTO account SELECT NULL, ?, budget FROM default_budget", (dataset,))


def _positive(what: str, amount: Amount) -> Amount:
    if not NOTHING < amount <= MOST:
        raise CrowdveilError(f"{what} must be {Amount(1)} to {MOST}, got {amount}")
    return amount


def _check_digest(what: str, digest: str) -> None:
    # One spelling only: a second spelling of a fingerprint would be a second budget for the same data.
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise CrowdveilError(f"{what} must be 64 lower-case hexadecimal digits (SHA-256), got {digest!r}")
