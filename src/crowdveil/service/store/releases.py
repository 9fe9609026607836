"""Releases and their costs. A charge is durable before its noise is drawn, and the release follows it.

A process that dies in between leaves a charge without a release, never a release without its charge. All releases of a
poll share one account, however many voters arrive in between: each release may cost every voter who was there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import Connection, Table, func, insert, select, update

from crowdveil.effect_release import EffectsRelease, effects_from_dict
from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.epsilon import NOTHING, Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger.entries import Charge
from crowdveil.releases import Release, release_from_dict
from crowdveil.service.store import schema
from crowdveil.service.store.database import Database, insert_into, next_number
from crowdveil.service.store.polls import deleted, lock

LONGEST_NAME, LONGEST_NOTE = 80, 2000
_RELEASES = select(*(schema.release.c[name] for name in ("id", "poll", "made_on", "file", "made_at", "name", "note")))
_EFFECTS = select(*(schema.effects.c[name] for name in ("id", "poll", "made_on", "file")))


@dataclass(frozen=True)
class StoredRelease:
    """A release in the database."""

    id: str
    poll: str
    made_on: date
    file: str
    """The release file, JSON."""
    made_at: int | None = None
    """The time in seconds since 1970, if the host's pages made it."""
    name: str = ""
    note: str = ""

    def read(self) -> Release:
        """Read the release and check it."""
        return release_from_dict(json.loads(self.file))


@dataclass(frozen=True)
class StoredCharge:
    """An amount that was spent, its purpose, and the release that it paid for (None if there is none)."""

    ledger: str
    id: int
    """Its number among the poll's charges."""
    poll: str
    cost: Amount
    unit: Unit
    purpose: str
    charged_on: date
    release: str | None = None


@dataclass(frozen=True)
class PollBudget:
    """A poll's budget of epsilon, and how it was spent."""

    budget: Amount
    spent: Amount
    charges: tuple[StoredCharge, ...]

    @property
    def remaining(self) -> Amount:
        """The amount that may still be spent."""
        return self.budget - self.spent


@dataclass(frozen=True)
class PollLedger:
    """The ledger of one central poll, as ``crowdveil.publish.release`` charges it."""

    database: Database
    poll: str
    today: date
    spent_before: Amount | None = None
    """A charge is refused unless exactly this was spent before it, so of all who saw the same amount, one pays."""
    delta: None = None
    """Always None: all releases of a poll are purely private."""

    def charge(self, charge: Charge) -> StoredCharge:
        """Spend from the poll's budget, durably, or raise ``BudgetExceeded`` and spend nothing.

        The ballots do not matter here: the budget belongs to the poll.
        """
        if charge.rho is not None:
            raise CrowdveilError(f"the budget of poll {self.poll} adds up pure epsilons: use a pure mechanism")
        if not charge.epsilon > NOTHING:
            raise ValueError(f"a release costs something, got {charge.epsilon}")
        cost_micro = charge.epsilon.micro
        account = schema.poll.c
        allowed = account.spent_micro + cost_micro <= account.budget_micro
        if self.spent_before is not None:
            allowed &= account.spent_micro == self.spent_before.micro
        with self.database.writing() as connection:
            paid = connection.execute(
                update(schema.poll)
                .where(account.id == self.poll, allowed)
                .values(spent_micro=account.spent_micro + cost_micro)
            )
            if paid.rowcount != 1:
                raise self._refusal(connection, charge.epsilon)
            # The poll's row is locked now, so nobody else can take the same number.
            before = select(func.coalesce(func.max(schema.charge.c.number), 0)).where(schema.charge.c.poll == self.poll)
            number = connection.execute(before).scalar_one() + 1
            row = {
                "poll": self.poll,
                "number": number,
                "cost_micro": cost_micro,
                "unit": charge.unit.value,
                "purpose": charge.purpose,
                "charged_on": self.today,
            }
            connection.execute(insert(schema.charge).values(row))
            ledger = _ledger_id(connection, self.poll)
        return StoredCharge(ledger, number, self.poll, charge.epsilon, charge.unit, charge.purpose, self.today)

    def _refusal(self, connection: Connection, cost: Amount) -> CrowdveilError:
        row = connection.execute(_balance(self.poll)).one_or_none()
        if row is None or row.budget_micro is None:
            return CrowdveilError(f"there is no central poll {self.poll!r} whose budget could be charged")
        budget, spent = Amount(row.budget_micro), Amount(row.spent_micro)
        if self.spent_before not in (None, spent):
            return outdated(self.poll)
        remaining = budget - spent
        return BudgetExceeded(
            f"the budget of poll {self.poll} does not cover this release: requested epsilon {cost}, "
            f"remaining {remaining} of {budget}, "
            f"difference {cost - remaining}; the voters agreed to this budget, and it stays",
            cost.decimal,
            remaining.decimal,
        )


def outdated(poll: str) -> CrowdveilError:
    """Return the refusal of a request that saw another amount spent than there is."""
    return CrowdveilError(
        f"another release or effects of poll {poll} were made in the meantime, so this was not made: see the list of "
        "releases, and look again at what it would cost"
    )


@dataclass(frozen=True)
class Releases:
    """The releases of all polls."""

    database: Database

    def ledger(self, poll: str, today: date, spent_before: Amount | None = None) -> PollLedger:
        """Return the ledger of a central poll; with ``spent_before``, one that nobody else may charge first."""
        return PollLedger(self.database, poll, today, spent_before)

    def put(self, poll: str, release: Release, today: date) -> StoredRelease:
        """Store a release, and record it with the charge that paid for it."""
        data = release.as_dict()
        stored = StoredRelease(data["checksum"], poll, today, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        row = {"id": stored.id, "poll": poll, "made_on": today, "file": stored.file, "name": "", "note": ""}
        _put(self.database, schema.release, row, release.ledger)
        return stored

    def describe(self, release: str, name: str, note: str, made_at: int | None = None) -> None:
        """Give a release a name and a note, which only hosts see, and the time at which it was made."""
        if len(name) > LONGEST_NAME or len(note) > LONGEST_NOTE:
            raise CrowdveilError(
                f"a release's name has up to {LONGEST_NAME} characters and its note up to {LONGEST_NOTE:,}; "
                f"these have {len(name)} and {len(note):,}"
            )
        values = {"name": name, "note": note, **({} if made_at is None else {"made_at": made_at})}
        with self.database.writing() as connection:
            connection.execute(update(schema.release).where(schema.release.c.id == release).values(values))

    def get(self, release: str) -> StoredRelease | None:
        """Return a release by its id."""
        with self.database.reading() as connection:
            row = connection.execute(_RELEASES.where(schema.release.c.id == release)).one_or_none()
        return None if row is None else StoredRelease(*row)

    def all(self, poll: str | None = None) -> list[StoredRelease]:
        """Return the releases of one poll or of all, newest first."""
        asked = _RELEASES.order_by(schema.release.c.number.desc())
        with self.database.reading() as connection:
            rows = connection.execute(asked if poll is None else asked.where(schema.release.c.poll == poll)).all()
        return [StoredRelease(*row) for row in rows]

    def account(self, poll: str) -> PollBudget | None:
        """Return the account of a central poll; None for a distributed one, where nothing is ever charged."""
        with self.database.reading() as connection:
            row = connection.execute(_balance(poll)).one_or_none()
            if row is None:
                raise deleted(poll)
            if row.budget_micro is None:
                return None
            asked = select(schema.charge).where(schema.charge.c.poll == poll).order_by(schema.charge.c.number)
            ledger = _ledger_id(connection, poll)
            entries = connection.execute(asked).all()
        charges = (
            StoredCharge(
                ledger, e.number, e.poll, Amount(e.cost_micro), Unit(e.unit), e.purpose, e.charged_on, e.release
            )
            for e in entries
        )
        return PollBudget(Amount(row.budget_micro), Amount(row.spent_micro), tuple(charges))


def _put(database: Database, table: Table, row: Mapping[str, Any], ledger: Mapping[str, Any] | None) -> None:
    """Store a file of a poll as its newest, and record it with the charge that paid for it.

    An identical file is stored only once: the row of this poll that has it becomes the newest, and one of another poll
    stays as it is.
    """
    with database.writing() as connection:
        lock(connection, row["poll"])
        newest = {"number": next_number(connection, table), "made_on": row["made_on"]}
        stored = insert_into(connection, table).values({**row, **newest})
        connection.execute(
            stored.on_conflict_do_update(index_elements=["id"], set_=newest, where=table.c.poll == row["poll"])
        )
        if ledger is not None:
            charge = schema.charge
            paid = update(charge).where(charge.c.poll == row["poll"], charge.c.number == ledger["entry"])
            connection.execute(paid.values(release=row["id"]))


def _balance(poll: str) -> Any:
    return select(schema.poll.c.budget_micro, schema.poll.c.spent_micro).where(schema.poll.c.id == poll)


def _ledger_id(connection: Connection, poll: str) -> str:
    """Return the id of a poll's ledger, which together with a number traces a release to its charge."""
    installation = connection.execute(select(schema.installation.c.id)).scalar_one()
    return str(uuid5(UUID(installation), poll))


@dataclass(frozen=True)
class StoredEffects:
    """Effects in the database."""

    id: str
    poll: str
    made_on: date
    file: str
    """The file of effects, JSON."""

    def read(self) -> EffectsRelease:
        """Read the effects and check them."""
        return effects_from_dict(json.loads(self.file))


@dataclass(frozen=True)
class EffectFiles:
    """The effects of all polls. They are separate from releases of preferences, and decisions never use them."""

    database: Database

    def put(self, poll: str, made: EffectsRelease, today: date) -> StoredEffects:
        """Store effects, and record them with the charge that paid for them."""
        data = made.as_dict()
        stored = StoredEffects(data["checksum"], poll, today, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        row = {"id": stored.id, "poll": poll, "made_on": today, "file": stored.file}
        _put(self.database, schema.effects, row, made.ledger)
        return stored

    def get(self, id: str) -> StoredEffects | None:
        """Return effects by their id."""
        with self.database.reading() as connection:
            row = connection.execute(_EFFECTS.where(schema.effects.c.id == id)).one_or_none()
        return None if row is None else StoredEffects(*row)

    def all(self, poll: str) -> list[StoredEffects]:
        """Return the effects of a poll, newest first."""
        asked = _EFFECTS.where(schema.effects.c.poll == poll).order_by(schema.effects.c.number.desc())
        with self.database.reading() as connection:
            return [StoredEffects(*row) for row in connection.execute(asked).all()]
