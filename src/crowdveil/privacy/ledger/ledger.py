"""The privacy budget: what has been released about each person, and what may still be.

Theorem (sequential composition). Releases that are eps_1-, ..., eps_k-differentially private for one unit of
protection, each chosen after seeing the earlier ones, are together (eps_1 + ... + eps_k)-differentially private for
that unit: the probability of what was seen is a product of k factors, and the i-th changes by at most e^eps_i. So the
ledger adds up epsilons for each person (``people``), and refuses a charge if anybody would then exceed the budget. Only
the people in a crowd count: if the voters are reordered, the display texts change, or the crowd is a subset, a superset
or a later wave, the same people still have what they lost before.

A zCDP ledger, created with a delta, adds up rhos instead (``zcdp``). Its budget (epsilon, delta) is converted to a rho
once, when it is set, and rounded down. A pure epsilon is charged as epsilon^2 / 2, and a Gaussian release as its rho,
rounded up to a millionth. Then all releases together are (epsilon, delta)-differentially private, even if each charge
was chosen after seeing the earlier releases (Feldman and Zrnic 2021: a Renyi filter). A ledger never changes silently
from one kind to the other: the kind is chosen at creation and stays.

The budget caps three lines: what a voter, a record and a choice can lose. A charge is posted to the line of its own
unit and to every weaker one, so every charge is posted to the weakest line, that of choices. That line is the fullest,
and a charge fits into all of its lines if and only if it fits into the weakest. So one comparison is enough.

A release proceeds in this order: ``charge`` (durable), draw the noise, put the release file in place (durable),
``deliver``. A process killed anywhere in between leaves a charge without a release, never a release without its charge.

The ledger guards against mistakes and races, not against an owner who deletes it or restores an old copy. Do not
publish it: ``records_per_voter`` may come from private ballots. Keep it on a local disk, because SQLite relies on file
locks that network file systems often get wrong.
"""

from __future__ import annotations

import hashlib
import math
import operator
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil.errors import BudgetExceeded, CrowdveilError, check_text, is_number, path_of, shown
from crowdveil.privacy.epsilon import MICROS_PER_UNIT, NOTHING, Amount, AmountLike, PrivacyMeasure
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger import ledger_file as ledger_file
from crowdveil.privacy.ledger.entries import (
    LINES,
    Account,
    BudgetRaise,
    Charge,
    ChargePreview,
    Crowd,
    LedgerEntry,
    Overlap,
    Statement,
)
from crowdveil.privacy.ledger.people import KnownCrowd, PersonArray, key_path, most_spent, people_of, read_key
from crowdveil.privacy.zcdp import epsilon_of, rho_of

MOST = Amount(10**18)
"""The largest amount in a ledger, so that every sum that SQLite computes fits into 64 bits."""
MOST_RECORDS = 10**18


@dataclass(frozen=True)
class Ledger:
    """A durable privacy ledger, safe to use from many threads and processes at once."""

    path: Path
    id: str
    """A random UUID, drawn at creation."""
    delta: float | None = None
    """The delta of a zCDP ledger; None for a pure one."""
    key_recognised_by: str = field(default="", repr=False)

    @classmethod
    def create(cls, path: str | PathLike[str], budget: AmountLike, delta: float | None = None) -> Ledger:
        """Create a ledger in which nobody may lose more than the budget, an epsilon; never overwrite a file.

        With a ``delta`` it is a zCDP ledger: all releases about a person are together (epsilon, delta)-differentially
        private, with the budget's epsilon. A key file is created beside the ledger. The ledger recognises people by it,
        and nobody else should have it.
        """
        path, delta = path_of(path, "the ledger"), _delta(delta)
        with ledger_file.creating(path):
            ledger_file.create(path, _budget(budget, delta), delta)
        return cls.open(path)

    @classmethod
    def open(cls, path: str | PathLike[str], budget: AmountLike | None = None, delta: float | None = None) -> Ledger:
        """Open a ledger. With a budget, create it if it does not exist, or check that it has this budget if it does."""
        path = path_of(path, "the ledger")
        delta = _delta(delta)
        if budget is not None:
            # Under the lock, a ledger that another process is creating is never seen half-made.
            with ledger_file.creating(path):
                if not path.exists():
                    ledger_file.create(path, _budget(budget, delta), delta)
        with ledger_file.transaction(path, writes=False) as connection:
            ledger, recognised_by = connection.execute("SELECT id, key_recognised_by FROM ledger").fetchone()
            opened = cls(path.absolute(), ledger, ledger_file.delta_of(connection), recognised_by)
            found = _budget_of(connection)
        if delta is not None and delta != opened.delta:
            kind = "adds up pure epsilons" if opened.delta is None else f"has delta {opened.delta:g}"
            raise CrowdveilError(f"ledger {path} {kind}, not delta {delta:g}: open it without a delta")
        if budget is not None and (wanted := _budget(budget, opened.delta)) != found:
            rho = "" if opened.delta is None else "rho "
            way = "; it is never lowered, and need not be spent"
            if wanted > found:
                way = f", or raise it deliberately: crowdveil ledger raise {path} --budget {budget} --note WHY"
            raise CrowdveilError(
                f"ledger {path} has a budget of {rho}{found}, not {rho}{wanted}: open it without a budget{way}"
            )
        return opened

    @property
    def measure(self) -> PrivacyMeasure:
        """The unit of the ledger's amounts."""
        return PrivacyMeasure.EPSILON if self.delta is None else PrivacyMeasure.RHO

    def charge(self, charge: Charge) -> LedgerEntry:
        """Spend the cost of a release, or raise ``BudgetExceeded`` and spend nothing.

        When this returns, the charge is on disk. Only then may noise be drawn.
        """
        _check_digest("dataset", charge.dataset)
        cost = self._cost(charge)
        if not 1 <= (records := operator.index(charge.records_per_voter)) <= MOST_RECORDS:
            raise CrowdveilError(f"records per voter must be 1 or more, got {records}")
        people, _ = self._people(charge.crowd)
        with ledger_file.transaction(self.path, self.id, writes=True) as connection:
            balance = _balance(connection, charge.crowd, people)
            if cost > balance.remaining:
                raise self._refusal(cost, balance)
            crowd = _number_of(connection, balance.crowd)
            (last,) = connection.execute("SELECT coalesce(max(id), 0) FROM entry").fetchone()
            unit = Unit(charge.unit).value
            now = ledger_file.now()
            connection.execute(
                "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    last + 1,
                    crowd,
                    charge.dataset,
                    unit,
                    cost.micro,
                    balance.spent.micro,
                    records,
                    charge.purpose,
                    now,
                ),
            )
        return self._entry(last + 1, crowd, charge.dataset, unit, cost.micro, records, charge.purpose, now)

    def preview(
        self, charge: Charge, earlier: Sequence[Charge] = (), *, with_others: Sequence[Charge] = ()
    ) -> ChargePreview:
        """Return whether a charge would fit, after the ``earlier`` ones, which must be about other people.

        Where people have no names, they count as the same. ``with_others`` are charges to the same crowd that are made
        with this one: all of them together are what is requested. This changes nothing, and promises nothing about a
        later charge.
        """
        together = (charge, *with_others)
        for one in together:
            _check_digest("dataset", one.dataset)
        if any(one.crowd != charge.crowd for one in with_others):
            raise CrowdveilError(
                "charges that are previewed together must be about one crowd: preview the others alone"
            )
        cost = sum(map(self._cost, together), NOTHING)
        people, caution = self._people(charge.crowd)
        with ledger_file.transaction(self.path, self.id, writes=False) as connection:
            balance = _balance(connection, charge.crowd, people)
        remaining = balance.remaining
        if people is None:
            remaining -= sum(map(self._cost, earlier), NOTHING)
        return ChargePreview(charge.unit, cost, balance.budget, remaining, balance.overlaps, caution, self.measure)

    def deliver(self, entry: int, release_digest: str) -> None:
        """Record that the release of ``entry`` is durably in place. Repeating it changes nothing."""
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

    def raise_budget(self, budget: AmountLike, note: str) -> None:
        """Raise the budget of everybody in the ledger, permanently. It is an epsilon in a zCDP ledger too."""
        wanted = _budget(budget, self.delta)
        check_text(note, "the note")
        if not note.strip():
            raise CrowdveilError("a raise of the budget needs a note that says why")
        with ledger_file.transaction(self.path, self.id, writes=True) as connection:
            old = _budget_of(connection)
            if not wanted > old:
                measure = "" if self.delta is None else "rho "
                raise CrowdveilError(
                    f"the budget is {measure}{old} and can only be raised, got {measure}{wanted}: give a larger one"
                )
            connection.execute(
                "INSERT INTO budget_raise (old_budget, new_budget, note, raised_at) VALUES (?, ?, ?, ?)",
                (old.micro, wanted.micro, note, ledger_file.now()),
            )

    def statement(self) -> Statement:
        """Read the whole ledger at one moment."""
        with ledger_file.transaction(self.path, self.id, writes=False) as connection:
            (created_at,) = connection.execute("SELECT created_at FROM ledger").fetchone()
            budget = _budget_of(connection)
            raises = connection.execute("SELECT old_budget, new_budget, note, raised_at FROM budget_raise ORDER BY id")
            raised = tuple(BudgetRaise(Amount(old), Amount(new), *said) for old, new, *said in raises)
            rows = connection.execute(
                "SELECT id, crowd, dataset, unit, epsilon, records_per_voter, purpose, charged_at,"
                " delivered_at, release_digest FROM entry LEFT JOIN delivery ON entry = id ORDER BY id"
            )
            entries = [self._entry(*row) for row in rows]
            crowds = _crowds(connection)
        accounts = tuple(_account(crowd, crowds, entries, budget) for crowd in crowds)
        return Statement(self.id, created_at, budget, raised, accounts, self.delta)

    def __repr__(self) -> str:
        try:
            statement = self.statement()
        except CrowdveilError:  # the file is gone or damaged
            return f"<ledger {self.path.name}: it cannot be read>"
        spent = max((account.spent for account in statement.accounts), default=Amount(0))
        rho, delta = ("", "") if self.delta is None else ("rho ", f", delta {self.delta:g}")
        return f"<ledger {self.path.name}: budget {rho}{statement.budget}, spent {rho}{spent}{delta}>"

    def _cost(self, charge: Charge) -> Amount:
        """Return the cost of a release in the ledger's measure: epsilon, or epsilon^2 / 2 rounded up, or its rho."""
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

    def _people(self, crowd: Crowd) -> tuple[PersonArray | None, str | None]:
        """Return the numbers of a crowd's people, or None and the reason why they cannot be known."""
        if crowd.digests is None:
            return None, "the ballots do not name their voters: import them with names or digests"
        key = read_key(self.path, self.key_recognised_by)
        if key is None:
            return None, f"the ledger's key {key_path(self.path)} is missing: restore it"
        return people_of(crowd, key), None

    def _entry(self, number: int, crowd: int, dataset: str, unit: str, micro: int, *rest: Any) -> LedgerEntry:
        return replace(
            LedgerEntry(self.id, number, crowd, dataset, Unit(unit), Amount(micro), *rest), measure=self.measure
        )

    def _refusal(self, requested: Amount, balance: _Balance) -> BudgetExceeded:
        budget, spent, remaining = balance.budget, balance.spent, balance.remaining
        ask = f"ask for at most {remaining}, or " if remaining else ""
        enough = spent + requested
        if self.delta is not None:
            pure = Amount(math.isqrt(2 * MICROS_PER_UNIT * remaining.micro))
            ask = f"ask for at most rho {remaining} (epsilon {pure} of a pure release), or " if ask else ""
            enough = _epsilon_for(enough, self.delta)
        return BudgetExceeded(
            f"the budget does not cover this release: requested {self.measure} {requested}, remaining {remaining} "
            f"of {budget}, difference {requested - remaining}{balance.reason}; "
            f"{ask}raise the budget deliberately: crowdveil ledger raise {self.path} --budget {enough} --note WHY",
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
    """Return the budget, an epsilon, that allows this rho."""
    micro = math.ceil(epsilon_of(rho.value, delta) * MICROS_PER_UNIT)
    while _budget(Amount(micro), delta) < rho:
        micro += 1
    return Amount(micro)


def _budget_of(connection: sqlite3.Connection) -> Amount:
    (budget,) = connection.execute("SELECT budget FROM budget").fetchone()
    return Amount(budget)


@dataclass(frozen=True)
class _Balance:
    """The loss that a crowd's people may still incur."""

    crowd: KnownCrowd
    """The crowd; its id is 0 if it was never charged."""
    budget: Amount
    spent: Amount
    """The loss of the person who has lost the most."""
    overlaps: tuple[Overlap, ...]

    @property
    def remaining(self) -> Amount:
        return self.budget - self.spent

    @property
    def reason(self) -> str:
        return f" (spent before: {'; '.join(map(str, self.overlaps))})" if self.overlaps else ""


def _balance(connection: sqlite3.Connection, crowd: Crowd, people: PersonArray | None) -> _Balance:
    crowds = _crowds(connection)
    same = (known for known in crowds if known.study == crowd.study and _same_people(known.people, people))
    known = next(same, KnownCrowd(0, crowd.study, crowd.voters, people))
    spent_on = {
        number: int(amount)
        for number, amount in connection.execute("SELECT crowd, sum(epsilon) FROM entry GROUP BY crowd")
    }
    spent = Amount(most_spent(known, spent_on, crowds))
    return _Balance(known, _budget_of(connection), spent, _overlaps(known, crowds, spent_on))


def _same_people(known: PersonArray | None, given: PersonArray | None) -> bool:
    if known is None or given is None:
        return known is given
    return np.array_equal(known, given)


def _overlaps(crowd: KnownCrowd, crowds: Sequence[KnownCrowd], spent_on: Mapping[int, int]) -> tuple[Overlap, ...]:
    return tuple(
        Overlap(other.id, crowd.shared_with(other), Amount(spent_on[other.id]))
        for other in crowds
        if other.id in spent_on and crowd.meets(other, crowds)
    )


def _crowds(connection: sqlite3.Connection) -> list[KnownCrowd]:
    return [
        KnownCrowd(number, study, voters, None if people is None else np.frombuffer(people, "<u8"))
        for number, study, voters, people in connection.execute(
            "SELECT id, study, voters, people FROM crowd ORDER BY id"
        )
    ]


def _number_of(connection: sqlite3.Connection, crowd: KnownCrowd) -> int:
    """Return the number of a crowd; assign one if it has none."""
    if crowd.id:
        return crowd.id
    people = None if crowd.people is None else crowd.people.astype("<u8").tobytes()
    digest = hashlib.sha256(crowd.study.encode() + (b"" if people is None else people)).hexdigest()
    row = (digest, crowd.study, crowd.voters, people)
    number = connection.execute("INSERT INTO crowd (digest, study, voters, people) VALUES (?, ?, ?, ?)", row).lastrowid
    assert number is not None  # a row was inserted
    return number


def _account(
    crowd: KnownCrowd, crowds: Sequence[KnownCrowd], entries: Sequence[LedgerEntry], budget: Amount
) -> Account:
    def spent(amount: Callable[[LedgerEntry], int]) -> dict[int, int]:
        totals = dict.fromkeys((known.id for known in crowds), 0)
        for entry in entries:
            totals[entry.crowd] += amount(entry)
        return totals

    def on_line(line: Unit) -> Amount:
        posted = LINES[: LINES.index(line) + 1]
        return Amount(most_spent(crowd, spent(lambda e: e.charged.micro if e.unit in posted else 0), crowds))

    others = [known for known in crowds if known.id != crowd.id]
    return Account(
        crowd=crowd.id,
        voters=crowd.voters,
        named=crowd.people is not None,
        budget=budget,
        entries=tuple(entry for entry in entries if entry.crowd == crowd.id),
        spent_by_line={line: on_line(line) for line in LINES},
        whole_voter=Amount(most_spent(crowd, spent(lambda e: e.whole_voter.micro), crowds)),
        overlaps=_overlaps(crowd, others, spent(lambda e: e.charged.micro)),
    )


def _positive(what: str, amount: Amount) -> Amount:
    if not NOTHING < amount <= MOST:
        raise CrowdveilError(f"{what} must be {Amount(1)} to {MOST}, got {amount}")
    return amount


def _delta(given: float | None) -> float | None:
    """Return a delta, however it is written, as the double that the ledger file holds."""
    if given is None:
        return None
    if not (is_number(given) and 0 < float(given) < 1):
        raise CrowdveilError(f"delta must be between 0 and 1, got {shown(given)}")
    return float(given)


def _check_digest(what: str, digest: str) -> None:
    # Only one spelling is allowed: a second spelling of a fingerprint would be a second budget for the same data.
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise CrowdveilError(f"{what} must be 64 lower-case hexadecimal digits (SHA-256), got {digest!r}")
