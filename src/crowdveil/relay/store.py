"""The relay's store of sealed reports: one per token, handed over in batches, erased when the host has them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, func, insert, select, update

from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.protocol.description import relayed_promise
from crowdveil.protocol.polls import EntryRule, OpeningRules, Poll, PollState
from crowdveil.protocol.relay import (
    LARGEST_HAND_OVER,
    Acknowledgement,
    Batch,
    KeyConfiguration,
    address_fragment,
    configuration_of,
    new_batch_id,
    shuffled,
    verifying_key_of,
)
from crowdveil.protocol.submission import SubmissionStatus, new_token, report_id
from crowdveil.relay import schema
from crowdveil.service.store.database import Database, open_database, rows_among, rows_at_once
from crowdveil.service.store.submissions import MOST_LINKS, Outcome
from crowdveil.study.plain_data import canonical_json

MIGRATIONS = Path(__file__).parent / "migrations"
"""Directory of the migrations of a relay's tables."""
# The statements are built once: at thousands of reports per second, building them each time would cost too much.
_POLL = schema.poll.c.id == bindparam("poll_id")
_LOCK: Select[Any] = select(schema.poll.c.closed, schema.poll.c.participants).where(_POLL).with_for_update()
_ADD = update(schema.poll).where(_POLL).values(participants=schema.poll.c.participants + bindparam("more"))
_STORED = rows_among(schema.sealed, "body")
_BATCH_OF = rows_among(schema.sealed, "batch")
_SPENT = rows_among(schema.spent, "withdrawn")
_INVITED = rows_among(schema.link)
_INSERT = insert(schema.sealed)


@dataclass(frozen=True)
class RelayedPoll:
    """The public terms of a poll, as they were when the relay adopted it."""

    configuration: KeyConfiguration
    entry: EntryRule
    opening: OpeningRules
    epsilon: float
    """The promised epsilon towards anybody who sees the batches, computed by the relay itself."""

    @property
    def name(self) -> str:
        """The poll's name."""
        return self.configuration.poll

    @classmethod
    def of(cls, poll: Poll, described: Mapping[str, Any]) -> RelayedPoll:
        """Return the terms that a relay needs, from a poll and its host's description."""
        opens_on = described["relay"]["opens_on"]
        quota = described["relay"]["quota"]
        opening = OpeningRules(None if opens_on is None else date.fromisoformat(opens_on), poll.closes_on, quota)
        return cls(configuration_of(poll), poll.entry, opening, relayed_promise(poll).epsilon)

    def as_dict(self) -> dict[str, Any]:
        """Return the terms as plain data."""
        opens_on, closes_on = self.opening.opens_on, self.opening.closes_on
        return {
            "configuration": self.configuration.as_dict(),
            "entry": self.entry.value,
            "opens_on": None if opens_on is None else opens_on.isoformat(),
            "closes_on": None if closes_on is None else closes_on.isoformat(),
            "quota": self.opening.quota,
            "epsilon": self.epsilon,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RelayedPoll:
        """Read what ``as_dict`` wrote."""
        opens_on, closes_on = (
            None if data[key] is None else date.fromisoformat(data[key]) for key in ("opens_on", "closes_on")
        )
        opening = OpeningRules(opens_on, closes_on, data["quota"])
        return cls(
            KeyConfiguration.from_dict(data["configuration"]), EntryRule(data["entry"]), opening, data["epsilon"]
        )

    def voters_address(self, host: str, token: str | None = None) -> str:
        """Return the address of the voter's page, with the fingerprint and, in a link, the token after the #."""
        return f"{host}/p/{self.name}/#{address_fragment(self.configuration.fingerprint, token)}"


def check_unchanged(known: RelayedPoll, told: RelayedPoll) -> None:
    """Refuse a host that describes a poll differently than before."""
    if known != told:
        raise CrowdveilError(
            f"the host states a different key or different terms for poll {known.name!r} than when the poll began, but "
            "a poll never changes: nothing is handed over to it"
        )


@dataclass(frozen=True)
class SealedRow:
    """A sealed report for the database."""

    poll: str
    id: str
    """The report id derived from its token."""
    body: bytes


@dataclass(frozen=True)
class RelayStatus:
    """The current status of a poll at its relay."""

    poll: RelayedPoll
    closed_by_host: bool
    participants: int

    def state(self, today: date) -> PollState:
        """Return whether sealed reports are accepted today."""
        return self.poll.opening.state(today, self.closed_by_host, self.participants)


@dataclass(frozen=True)
class RelayStore:
    """Everything that a relay stores."""

    database: Database
    _known: dict[str, RelayedPoll] = field(default_factory=dict, repr=False)
    """Cache of polls: a poll never changes, so it is read once."""

    def signing_key(self) -> bytes:
        """Return the relay's own key, which was drawn when its database was created."""
        with self.database.reading() as connection:
            return bytes.fromhex(connection.execute(select(schema.relay.c.signing_key)).scalar_one())

    def verifying_key(self) -> str:
        """Return the public half of the key, by which hosts recognise this relay."""
        return verifying_key_of(self.signing_key())

    # --- Polls

    def adopt(self, poll: RelayedPoll) -> None:
        """Store a poll as its host describes it; refuse one that is described differently than before."""
        with self.database.writing() as connection:
            found = connection.scalar(select(schema.poll.c.definition).where(schema.poll.c.id == poll.name))
            if found is None:
                row = {"id": poll.name, "definition": canonical_json(poll.as_dict()), "closed": False}
                connection.execute(insert(schema.poll).values(participants=0, **row))
                return
        check_unchanged(RelayedPoll.from_dict(json.loads(found)), poll)

    def poll(self, name: str) -> RelayedPoll | None:
        """Return a poll, or None if this relay does not carry it."""
        if name not in self._known:
            with self.database.reading() as connection:
                found = connection.scalar(select(schema.poll.c.definition).where(schema.poll.c.id == name))
            if found is None:
                return None
            self._known[name] = RelayedPoll.from_dict(json.loads(found))
        return self._known[name]

    def cached(self, name: str) -> RelayedPoll | None:
        """Return a poll that was read before, without asking the database."""
        return self._known.get(name)

    def known(self, name: str) -> RelayedPoll:
        """Return a poll; refuse the request if this relay does not carry it."""
        poll = self.poll(name)
        if poll is None:
            raise Refusal(Reason.UNKNOWN_POLL, f"this relay carries no poll {name!r}")
        return poll

    def polls(self) -> list[str]:
        """Return the names of the polls that this relay carries."""
        with self.database.reading() as connection:
            return list(connection.scalars(select(schema.poll.c.id).order_by(schema.poll.c.id)))

    def status(self, name: str) -> RelayStatus:
        """Return the current status of a poll."""
        poll = self.known(name)
        with self.database.reading() as connection:
            row = connection.execute(select(schema.poll).where(schema.poll.c.id == name)).one()
        return RelayStatus(poll, row.closed, row.participants)

    def set_closed(self, name: str, closed: bool) -> None:
        """Record whether the host has closed a poll."""
        with self.database.writing() as connection:
            connection.execute(update(schema.poll).where(schema.poll.c.id == name).values(closed=closed))

    def create_links(self, name: str, number: int) -> list[str]:
        """Create tokens for a poll with links, and return them only here: only their ids are stored."""
        if self.known(name).entry is not EntryRule.LINKS:
            raise CrowdveilError(f"poll {name!r} takes no links: its host makes one with entry = 'links'")
        if not 1 <= number <= MOST_LINKS:
            raise CrowdveilError(f"make 1 to {MOST_LINKS:,} links at a time, got {number}")
        tokens = [new_token() for _ in range(number)]
        rows = [{"poll": name, "id": report_id(token)} for token in tokens]
        with self.database.writing() as connection:
            for some in rows_at_once(rows):
                connection.execute(insert(schema.link), some)
        return tokens

    # --- Voters

    def put(self, rows: Sequence[SealedRow], today: Callable[[], date]) -> list[Outcome]:
        """Store many voters' sealed reports in one transaction; return the outcome of each, in order.

        When this returns, the outcomes are durable. The same bytes sent twice are stored once. Of two different reports
        for the same token, the first is stored and the other refused. ``today`` is called while nobody else can write,
        so a report of the last day is stored before the last batch is drawn.
        """
        outcomes: dict[int, Outcome] = {}
        with self.database.writing() as connection:
            for name in sorted({row.poll for row in rows}):  # The same order everywhere avoids deadlocks.
                among = [position for position, row in enumerate(rows) if row.poll == name]
                decided = _put(connection, self.known(name), [rows[position] for position in among], today)
                outcomes.update(zip(among, decided, strict=True))
        return [outcomes[position] for position in range(len(rows))]

    def check(self, name: str, id: str) -> SubmissionStatus | Reason | None:
        """Return the outcome that a sealed report with this report id would have; None if it could be stored."""
        poll = self.known(name)
        with self.database.reading() as connection:
            among = {"poll_id": name, "ids": [id]}
            waiting = connection.execute(_BATCH_OF, among).one_or_none()
            if waiting is not None:
                return SubmissionStatus.ALREADY_STORED if waiting.batch is None else Reason.HANDED_OVER
            spent = connection.execute(_SPENT, among).one_or_none()
            if spent is not None:
                return Reason.WITHDRAWN if spent.withdrawn else Reason.HANDED_OVER
            invited = poll.entry is EntryRule.OPEN or connection.scalar(_INVITED, among) is not None
            return None if invited else Reason.UNKNOWN_BALLOT

    def withdraw(self, name: str, id: str) -> bool:
        """Erase a report that is not in a batch yet; return False if there is none. Refuse if it was handed over."""
        sealed = schema.sealed
        with self.database.writing() as connection:
            _lock(connection, name)
            there = sealed.c.poll == name, sealed.c.id == id, sealed.c.batch.is_(None)
            if deleted := connection.execute(delete(sealed).where(*there)).rowcount:
                connection.execute(insert(schema.spent).values(poll=name, id=id, withdrawn=True))
                _add(connection, name, -1)
        if deleted:
            self.database.forget_deleted(sealed.name)
        elif self.check(name, id) is Reason.HANDED_OVER:
            raise Refusal(
                Reason.HANDED_OVER,
                "your report has been handed over in a batch: nobody can find it any more, and it cannot be withdrawn",
            )
        return bool(deleted)

    # --- Batches

    def next_batch(self, name: str, today: date) -> Batch | None:
        """Return the next batch to hand over, in a new random order; None if there is none.

        A batch that was formed but not acknowledged comes first, with the same reports under the same id.
        """
        poll = self.known(name)
        table = schema.batch
        with self.database.writing() as connection:
            closed = _lock(connection, name).closed
            open_batch = select(table.c.id).where(table.c.poll == name, table.c.acknowledged.is_(False))
            id = connection.scalar(open_batch)
            if id is None:
                over = poll.opening.state(today, closed, 0) is PollState.CLOSED
                id = _draw_batch(connection, name, poll.configuration.batch, over)
            if id is None:
                return None
            bodies = select(schema.sealed.c.body).where(schema.sealed.c.poll == name, schema.sealed.c.batch == id)
            sealed = [bytes(body) for body in connection.scalars(bodies)]
        return Batch(name, id, shuffled(sealed))

    def erase(self, name: str, acknowledged: Acknowledgement) -> None:
        """Erase an acknowledged batch, including journals. Only the use of its tokens in some batch stays on record."""
        sealed = schema.sealed
        table = schema.batch
        of_batch = sealed.c.poll == name, sealed.c.batch == acknowledged.batch
        with self.database.writing() as connection:
            _lock(connection, name)
            ids = sorted(connection.scalars(select(sealed.c.id).where(*of_batch)))
            for some in rows_at_once(ids):
                connection.execute(insert(schema.spent), [{"poll": name, "id": id, "withdrawn": False} for id in some])
            connection.execute(delete(sealed).where(*of_batch))
            done = update(table).where(table.c.poll == name, table.c.id == acknowledged.batch)
            connection.execute(done.values(acknowledged=True))
        self.database.forget_deleted(sealed.name)

    def waiting(self, name: str) -> int:
        """Return how many sealed reports are not in a batch yet."""
        sealed = schema.sealed
        with self.database.reading() as connection:
            counted = select(func.count()).where(sealed.c.poll == name, sealed.c.batch.is_(None))
            return connection.execute(counted.select_from(sealed)).scalar_one()


@contextmanager
def open_relay_store(address: str) -> Iterator[RelayStore]:
    """Open a relay's database, bring its tables up to date, and close it afterwards."""
    with open_database(address, MIGRATIONS) as database:
        yield RelayStore(database)


def _put(
    connection: Connection, poll: RelayedPoll, rows: Sequence[SealedRow], today: Callable[[], date]
) -> list[Outcome]:
    """Store the acceptable reports of one poll, inside a transaction that locks it."""
    locked = _lock(connection, poll.name)
    day = today()
    among = {"poll_id": poll.name, "ids": [row.id for row in rows]}
    stored = {row.id: bytes(row.body) for row in connection.execute(_STORED, among)}
    spent = {row.id: row.withdrawn for row in connection.execute(_SPENT, among)}
    invited = frozenset(connection.scalars(_INVITED, among) if poll.entry is EntryRule.LINKS else among["ids"])
    outcomes: list[Outcome] = []
    new: list[SealedRow] = []
    for row in rows:
        state = poll.opening.state(day, locked.closed, locked.participants + len(new))
        if row.id in stored:
            outcomes.append(SubmissionStatus.ALREADY_STORED if stored[row.id] == row.body else Reason.DIFFERENT_REPORT)
        elif row.id in spent:
            # A report that was handed over is erased here. A device that missed the answer and sends again was counted.
            outcomes.append(Reason.WITHDRAWN if spent[row.id] else SubmissionStatus.ALREADY_STORED)
        elif row.id not in invited:
            outcomes.append(Reason.UNKNOWN_BALLOT)
        elif state is not PollState.OPEN:
            outcomes.append(Reason(state.value))
        else:
            outcomes.append(SubmissionStatus.STORED)
            stored[row.id] = row.body
            new.append(row)
    if new:
        connection.execute(_INSERT, [{"poll": r.poll, "id": r.id, "body": r.body} for r in new])
        _add(connection, poll.name, len(new))
    return outcomes


def due(waiting: int, batch: int, over: bool, most: int = LARGEST_HAND_OVER) -> int:
    """Return how many of the waiting reports to hand over now as one batch: 0, or at least ``batch``.

    Until the poll is over, ``batch`` reports stay back and all others go, because a larger batch hides better. So the
    last reports of a poll join its last batch, and are never handed over if they are fewer than ``batch``. If more than
    ``most`` (which is at least twice ``batch``) are waiting, enough stay back for another batch.
    """
    going = waiting if over and waiting <= most else min(waiting - batch, most)
    return going if going >= batch else 0


def _draw_batch(connection: Connection, name: str, size: int, over: bool) -> str | None:
    """Form a batch, inside a transaction that locks the poll; return None if too few reports are waiting."""
    sealed = schema.sealed
    waiting = sorted(connection.scalars(select(sealed.c.id).where(sealed.c.poll == name, sealed.c.batch.is_(None))))
    number = due(len(waiting), size, over)
    if number == 0:
        return None
    chosen = random.SystemRandom().sample(waiting, number)
    id = new_batch_id()
    connection.execute(insert(schema.batch).values(poll=name, id=id, size=len(chosen), acknowledged=False))
    for some in rows_at_once(chosen):
        connection.execute(update(sealed).where(sealed.c.poll == name, sealed.c.id.in_(some)).values(batch=id))
    return id


def _lock(connection: Connection, name: str) -> Row[Any]:
    """Lock a poll: wait until nobody else writes to it."""
    return connection.execute(_LOCK, {"poll_id": name}).one()


def _add(connection: Connection, name: str, more: int) -> None:
    connection.execute(_ADD, {"poll_id": name, "more": more})
