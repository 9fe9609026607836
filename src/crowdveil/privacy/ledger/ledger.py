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
from pathlib import Path
from typing import Any

from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.epsilon import MICROS_PER_UNIT
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger import file as ledger_file
from crowdveil.privacy.ledger.statement import Account, Entry, Measure, Preview, Raise, Statement, decimal_text
from crowdveil.privacy.zcdp import epsilon_of, rho_of

MOST = 10**18
"""No amount or count in a ledger is larger, so that every sum that SQLite makes fits into 64 bits."""


@dataclass(frozen=True)
class Ledger:
    """A durable account book of epsilons, safe to use from many threads and processes at once."""

    path: Path
    id: str
    """A random UUID, made at creation."""
    delta: float | None = None
    """Of a zCDP ledger; None for a pure one."""

    @classmethod
    def create(cls, path: str | Path, budget_micro: int, delta: float | None = None) -> Ledger:
        """Make a new ledger in which every dataset may spend ``budget_micro``; never overwrites a file.

        With a ``delta`` it is a zCDP ledger: all releases about a dataset are (epsilon, delta)-differentially
        private together, with the budget's epsilon.
        """
        ledger_file.create(Path(path), _budget(budget_micro, delta), delta)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | Path) -> Ledger:
        """Open an existing ledger that can be charged."""
        path = Path(path)
        with ledger_file.transaction(path, writes=False) as book:
            (ledger,) = book.execute("SELECT id FROM ledger").fetchone()
            delta = ledger_file.delta_of(book)
        return cls(path.absolute(), ledger, delta)

    @property
    def measure(self) -> Measure:
        """What the ledger adds up."""
        return Measure.EPSILON if self.delta is None else Measure.RHO

    def charge(
        self,
        dataset: str,
        epsilon_micro: int,
        unit: Unit,
        records_per_voter: int,
        purpose: str,
        rho_micro: int | None = None,
    ) -> Entry:
        """Spend what a release of ``epsilon_micro`` costs, or raise ``BudgetExceeded`` and spend nothing.

        When this returns, the charge is on disk: only then may noise be drawn. ``records_per_voter`` is the
        largest number of records of any voter. ``rho_micro`` is given for a zCDP release, and charged as it is.
        """
        _check_digest("dataset", dataset)
        cost = self._cost(epsilon_micro, rho_micro)
        if not 1 <= (records_per_voter := operator.index(records_per_voter)) <= MOST:
            raise CrowdveilError(f"records per voter must be 1 or more, got {records_per_voter}")
        with ledger_file.transaction(self.path, self.id, writes=True) as book:
            budget, spent = _balance(book, dataset)
            if cost > budget - spent:
                raise self._refusal(dataset, cost, budget, spent)
            _open_account(book, dataset)
            (last,) = book.execute("SELECT coalesce(max(id), 0) FROM entry").fetchone()
            row = (last + 1, dataset, unit.value, cost, records_per_voter, purpose, ledger_file.now())
            book.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        return self._entry(*row)

    def preview(self, dataset: str, epsilon_micro: int, unit: Unit, rho_micro: int | None = None) -> Preview:
        """Say whether a charge would fit; changes nothing, and promises nothing about a later charge."""
        _check_digest("dataset", dataset)
        cost = self._cost(epsilon_micro, rho_micro)
        with ledger_file.transaction(self.path, self.id, writes=False) as book:
            budget, spent = _balance(book, dataset)
        return Preview(dataset, unit, cost, budget, budget - spent, self.measure)

    def deliver(self, entry: int, release_digest: str) -> None:
        """Note that the release of ``entry`` is durably in place; saying so again changes nothing."""
        _check_digest("release digest", release_digest)
        with ledger_file.transaction(self.path, self.id, writes=True) as book:
            found = book.execute(
                "SELECT release_digest FROM entry LEFT JOIN delivery ON entry = id WHERE id = ?", (entry,)
            ).fetchone()
            if found is None:
                raise CrowdveilError(f"ledger {self.path} has no entry {entry}: look it up with crowdveil ledger show")
            (delivered,) = found
            if delivered is None:
                row = (entry, release_digest, ledger_file.now())
                book.execute("INSERT INTO delivery VALUES (?, ?, ?)", row)
            elif delivered != release_digest:
                raise CrowdveilError(
                    f"entry {entry} was already delivered as release {delivered[:12]}, "
                    f"not {release_digest[:12]}: every release needs a charge of its own"
                )

    def raise_budget(self, dataset: str | None, budget_micro: int, note: str) -> None:
        """Raise a dataset's budget for good, or (None) the one that datasets without an account will get.

        A dataset may have its budget raised before its first charge. The budget is an epsilon in a zCDP ledger too.
        """
        budget = _budget(budget_micro, self.delta)
        if not note.strip():
            raise CrowdveilError("a raise of the budget needs a note that says why")
        if dataset is not None:
            _check_digest("dataset", dataset)
        with ledger_file.transaction(self.path, self.id, writes=True) as book:
            old = _default_budget(book) if dataset is None else _balance(book, dataset)[0]
            if not budget > old:
                measure = "" if self.delta is None else "rho "
                raise CrowdveilError(
                    f"the budget is {measure}{decimal_text(old)} and can only be raised, "
                    f"got {measure}{decimal_text(budget)}: give a larger one"
                )
            if dataset is not None:
                _open_account(book, dataset)
            book.execute(
                "INSERT INTO budget_raise (dataset, old_budget, new_budget, note, raised_at) VALUES (?, ?, ?, ?, ?)",
                (dataset, old, budget, note, ledger_file.now()),
            )

    def statement(self) -> Statement:
        """Read the whole ledger as it is at one moment."""
        with ledger_file.transaction(self.path, self.id, writes=False) as book:
            (created_at,) = book.execute("SELECT created_at FROM ledger").fetchone()
            default = _default_budget(book)
            budgets = book.execute("SELECT dataset, budget FROM balance ORDER BY id").fetchall()
            raises = book.execute(
                "SELECT dataset, old_budget, new_budget, note, raised_at FROM budget_raise ORDER BY id"
            ).fetchall()
            entries = book.execute(
                "SELECT id, dataset, unit, epsilon, records_per_voter, purpose, charged_at,"
                " delivered_at, release_digest FROM entry LEFT JOIN delivery ON entry = id ORDER BY id"
            ).fetchall()
        raises_of: dict[str | None, list[Raise]] = {None: []}
        entries_of: dict[str, list[Entry]] = {}
        for dataset, _ in budgets:
            raises_of[dataset], entries_of[dataset] = [], []
        for row in raises:
            raises_of[row[0]].append(Raise(*row))
        for row in entries:
            entries_of[row[1]].append(self._entry(*row))
        accounts = tuple(
            Account(dataset, budget, tuple(entries_of[dataset]), tuple(raises_of[dataset]))
            for dataset, budget in budgets
        )
        return Statement(self.id, created_at, default, tuple(raises_of[None]), accounts, self.delta)

    def _cost(self, epsilon_micro: int, rho_micro: int | None) -> int:
        """Return what a release costs in the ledger's measure: epsilon, or epsilon^2 / 2 rounded up, or its rho."""
        epsilon_micro = _positive("epsilon", epsilon_micro)
        if self.delta is None and rho_micro is not None:
            raise CrowdveilError(
                f"ledger {self.path} adds up pure epsilons, and a release with Gaussian noise has none: use a pure "
                "mechanism, or a zCDP ledger: crowdveil ledger create PATH --budget 1 --delta 1e-6"
            )
        if self.delta is None:
            return epsilon_micro
        if rho_micro is not None:
            return _positive("rho", rho_micro)
        return _positive("the charge in rho", -(-(epsilon_micro**2) // (2 * MICROS_PER_UNIT)))

    def _entry(self, number: int, dataset: str, unit: str, *rest: Any) -> Entry:
        return replace(Entry(self.id, number, dataset, Unit(unit), *rest), measure=self.measure)

    def _refusal(self, dataset: str, requested: int, budget: int, spent: int) -> BudgetExceeded:
        remaining = budget - spent
        ask = f"ask for at most {decimal_text(remaining)}, or " if remaining else ""
        enough = spent + requested
        if self.delta is not None:
            pure = decimal_text(math.isqrt(2 * MICROS_PER_UNIT * remaining))
            ask = (
                f"ask for at most rho {decimal_text(remaining)} (epsilon {pure} of a pure release), or " if ask else ""
            )
            enough = _epsilon_for(enough, self.delta)
        return BudgetExceeded(
            f"the budget of dataset {dataset[:12]} does not cover this release: "
            f"requested {self.measure} {decimal_text(requested)}, remaining {decimal_text(remaining)} "
            f"of {decimal_text(budget)}, difference {decimal_text(requested - remaining)}; "
            f"{ask}raise the budget deliberately: crowdveil ledger raise {self.path} "
            f"--budget {decimal_text(enough)} --ballots FILE --note WHY",
            requested,
            remaining,
        )


def _budget(budget_micro: int, delta: float | None) -> int:
    """Return the budget in the ledger's measure: the epsilon itself, or the rho that it allows, rounded down."""
    budget_micro = _positive("the budget", budget_micro)
    if delta is None:
        return budget_micro
    return _positive("the budget's rho", math.floor(rho_of(budget_micro / MICROS_PER_UNIT, delta) * MICROS_PER_UNIT))


def _epsilon_for(rho_micro: int, delta: float) -> int:
    """Return the budget in millionths of epsilon that allows so much rho."""
    epsilon_micro = math.ceil(epsilon_of(rho_micro / MICROS_PER_UNIT, delta) * MICROS_PER_UNIT)
    while _budget(epsilon_micro, delta) < rho_micro:
        epsilon_micro += 1
    return epsilon_micro


def _default_budget(book: sqlite3.Connection) -> int:
    (budget,) = book.execute("SELECT budget FROM default_budget").fetchone()
    return operator.index(budget)


def _balance(book: sqlite3.Connection, dataset: str) -> tuple[int, int]:
    """Return the budget of a dataset and what is spent on its weakest, fullest line."""
    row = book.execute("SELECT budget, spent FROM balance WHERE dataset = ?", (dataset,)).fetchone()
    if row is None:
        return _default_budget(book), 0
    budget, spent = row
    return budget, spent


def _open_account(book: sqlite3.Connection, dataset: str) -> None:
    """Give a dataset the default budget unless it has an account."""
    book.execute("INSERT OR IGNORE INTO account SELECT NULL, ?, budget FROM default_budget", (dataset,))


def _positive(what: str, micro: int) -> int:
    """Check an amount; ``operator.index`` also takes NumPy's integers, and no float however whole."""
    if not 1 <= (amount := operator.index(micro)) <= MOST:
        allowed = f"{decimal_text(1)} to {decimal_text(MOST)}"
        raise CrowdveilError(f"{what} must be {allowed}, got {decimal_text(amount)}")
    return amount


def _check_digest(what: str, digest: str) -> None:
    # One spelling only: a second spelling of a fingerprint would be a second budget for the same data.
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise CrowdveilError(f"{what} must be 64 lower-case hexadecimal digits (SHA-256), got {digest!r}")
