"""Polls in the database, whose terms never change and whose status does, and counts of the steps that voters reach."""

from __future__ import annotations

import json
import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.privacy.epsilon import Amount
from crowdveil.protocol.polls import PollState
from crowdveil.protocol.relay import new_private_key
from crowdveil.service.poll import HostedPoll, poll_as_dict, poll_from_dict
from crowdveil.service.store import schema
from crowdveil.service.store.database import Database, insert_into
from crowdveil.study.plain_data import canonical_json

OF_A_POLL = tuple(
    table for table in reversed(schema.metadata.sorted_tables) if "poll" in table.c and table is not schema.audit_log
)
"""The tables with rows of a poll, those that refer to other tables first."""
OPENED, STARTED = "opened", "started"
"""Steps that the server counts: opening the voter's page, and drawing dilemmas. The page reports the later steps."""
MOST_WAITING = 100
# Built once: at thousands of reports per second, building it each time would cost too much.
_LOCK: Select[Any] = (
    select(*(schema.poll.c[name] for name in ("closed", "participants", "pilot", "archived", "destroyed_on")))
    .where(schema.poll.c.id == bindparam("poll_id"))
    .with_for_update()
)


def lock_if_there(connection: Connection, name: str) -> Row[Any] | None:
    """Lock a poll, so that nobody else writes to it or deletes it before the transaction ends; None if there is none.

    Everybody who writes to a poll calls this first, and for several polls in the order of their names, so that no two
    transactions wait for each other.
    """
    return connection.execute(_LOCK, {"poll_id": name}).one_or_none()


def lock(connection: Connection, name: str) -> Row[Any]:
    """Lock a poll; refuse if there is none, for it may have been deleted since it was looked up."""
    locked = lock_if_there(connection, name)
    if locked is None:
        raise deleted(name)
    return locked


def deleted(name: str) -> Refusal:
    """Return the refusal of a request about a poll that was there when it was looked up."""
    return Refusal(Reason.UNKNOWN_POLL, f"there is no poll {name!r} any more: it was deleted, and nothing was stored")


@dataclass(frozen=True)
class PollStatus:
    """The current status of a poll."""

    poll: HostedPoll
    closed_by_host: bool
    participants: int
    spent: Amount
    """Central polls: the epsilon of all releases so far."""
    latest_release: str | None
    """The id of the newest release."""
    marked_release: str | None
    """The id of the release that the host has marked for decisions."""
    pilot: bool = False
    """Whether the poll is being tried out, so that submissions never count."""
    archived: bool = False
    destroyed_on: date | None = None
    """Central polls: the day on which the exact answers were destroyed."""

    @property
    def current_release(self) -> str | None:
        """The id of the release that decisions use."""
        return self.marked_release or self.latest_release

    def state(self, today: date) -> PollState:
        """Return whether submissions are accepted today."""
        return self.poll.state(today, self.closed_by_host, self.participants, self.pilot)

    @property
    def listed(self) -> bool:
        """Whether the website lists the poll publicly: it is neither being tried out nor archived."""
        return not self.pilot and not self.archived


@dataclass(frozen=True)
class Polls:
    """The polls of this installation."""

    database: Database
    _known: dict[str, HostedPoll] = field(default_factory=dict, repr=False)
    """Cache of polls: a poll never changes, so it is read once."""

    def add(self, poll: HostedPoll, *, pilot: bool = False) -> None:
        """Store a new poll, open or in a trial first. A name cannot be used twice."""
        if pilot and poll.relay is not None:
            raise CrowdveilError(
                f"poll {poll.name} has a relay, behind which nobody can tell votes of a trial from others: try out the "
                "same poll without the relay, and open this one at once"
            )
        row = {
            "id": poll.name,
            "place": poll.paradigm.place.value,
            "definition": canonical_json(poll_as_dict(poll)),
            "closed": False,
            "pilot": pilot,
            "archived": False,
            "participants": 0,
            "budget_micro": None if poll.budget is None else poll.budget.micro,
            "spent_micro": 0,
            "marked_release": None,
        }
        try:
            with self.database.writing() as connection:
                if connection.scalar(select(schema.deleted_poll.c.id).where(schema.deleted_poll.c.id == poll.name)):
                    raise CrowdveilError(
                        f"there was a poll {poll.name!r}, which is deleted, and a name counts once: choose another one"
                    )
                connection.execute(insert(schema.poll).values(row))
                if poll.relay is not None:
                    key = f"{new_private_key().private_numbers().private_value:064x}"
                    connection.execute(insert(schema.relay_key).values(poll=poll.name, private_key=key))
        except IntegrityError:
            raise CrowdveilError(f"there is a poll {poll.name!r} already: give the new one another name") from None

    def is_taken(self, name: str) -> bool:
        """Return whether there is, or was, a poll with this name."""
        with self.database.reading() as connection:
            return any(
                connection.scalar(select(table.c.id).where(table.c.id == name)) is not None
                for table in (schema.poll, schema.deleted_poll)
            )

    def definition(self, name: str) -> HostedPoll | None:
        """Return a poll; None if there is no poll with this name."""
        if name not in self._known:
            with self.database.reading() as connection:
                found = connection.scalar(select(schema.poll.c.definition).where(schema.poll.c.id == name))
            if found is None:
                return None
            return self._read(name, found)
        return self._known[name]

    def cached(self, name: str) -> HostedPoll | None:
        """Return a poll that was read before, without asking the database."""
        return self._known.get(name)

    def known(self, name: str) -> HostedPoll:
        """Return a poll; raise an error if there is none."""
        poll = self.definition(name)
        if poll is None:
            raise CrowdveilError(f"there is no poll {name!r}")
        return poll

    def _read(self, name: str, definition: str) -> HostedPoll:
        """Return the poll from a row's definition."""
        if name not in self._known:
            self._known[name] = poll_from_dict(json.loads(definition))
        return self._known[name]

    def get(self, name: str) -> PollStatus | None:
        """Return the current status of a poll; None if there is no poll with this name."""
        with self.database.reading() as connection:
            row = connection.execute(_statuses().where(schema.poll.c.id == name)).one_or_none()
        return None if row is None else self._status(row)

    def all(self) -> list[PollStatus]:
        """Return the current status of all polls, by name."""
        with self.database.reading() as connection:
            rows = connection.execute(_statuses().order_by(schema.poll.c.id)).all()
        return [self._status(row) for row in rows]

    def listed(self) -> list[PollStatus]:
        """Return the polls that the website lists publicly."""
        return [status for status in self.all() if status.listed]

    def close(self, name: str) -> None:
        """Stop accepting submissions."""
        with self.database.writing() as connection:
            connection.execute(update(schema.poll).where(schema.poll.c.id == name).values(closed=True))

    def reopen(self, name: str) -> None:
        """Accept submissions again, as far as the poll's dates and quota allow.

        An archived poll stays closed, and so does one whose exact answers were destroyed: later ones would be kept.
        """
        with self.database.writing() as connection:
            locked = lock(connection, name)
            if locked.archived:
                raise CrowdveilError(f"poll {name!r} is archived: take it out of the archive first")
            if locked.destroyed_on is not None:
                raise CrowdveilError(
                    f"the exact answers of poll {name!r} were destroyed on {locked.destroyed_on}, the end that its "
                    "voters were told, and it stays closed: make it again under another name"
                )
            connection.execute(update(schema.poll).where(schema.poll.c.id == name).values(closed=False))

    def end_pilot(self, name: str) -> None:
        """Let votes count from now on. This cannot be undone: the promise to voters holds from their first vote."""
        with self.database.writing() as connection:
            connection.execute(update(schema.poll).where(schema.poll.c.id == name).values(pilot=False))

    def archive(self, name: str, archived: bool = True) -> None:
        """Archive a poll and close it, or take it out of the archive."""
        with self.database.writing() as connection:
            values = {"archived": True, "closed": True} if archived else {"archived": False}
            connection.execute(update(schema.poll).where(schema.poll.c.id == name).values(values))

    def contents(self, name: str) -> dict[str, int]:
        """Return the number of rows that a deletion would delete from each table."""
        with self.database.reading() as connection:
            return {
                table.name: connection.execute(
                    select(func.count()).select_from(table).where(table.c.poll == name)
                ).scalar_one()
                for table in OF_A_POLL
            }

    def delete(self, name: str) -> None:
        """Delete a poll and everything in it, permanently. Its name stays taken."""
        with self.database.writing() as connection:
            lock(connection, name)
            for table in OF_A_POLL:
                connection.execute(delete(table).where(table.c.poll == name))
            connection.execute(delete(schema.poll).where(schema.poll.c.id == name))
            connection.execute(insert(schema.deleted_poll).values(id=name))
        self._known.pop(name, None)
        self.database.forget_deleted()

    def destroy_answers(self, today: date) -> list[str]:
        """Destroy the exact answers of every central poll whose day has come, permanently; return the polls' names."""
        due = [
            status.poll.name
            for status in self.all()
            if status.destroyed_on is None and status.poll.destroy_on is not None and status.poll.destroy_on <= today
        ]
        for name in due:
            with self.database.writing() as connection:
                lock_if_there(connection, name)
                connection.execute(delete(schema.ballot).where(schema.ballot.c.poll == name))
                destroyed = update(schema.poll).where(schema.poll.c.id == name)
                connection.execute(destroyed.values(destroyed_on=today, closed=True))
        if due:
            self.database.forget_deleted()
        return due

    def mark_release(self, name: str, release: str | None) -> None:
        """Let the poll's decisions use this release from now on; None means always the newest."""
        table = schema.release
        found = select(table.c.id).where(table.c.id == release, table.c.poll == name)
        with self.database.writing() as connection:
            if release is not None and connection.scalar(found) is None:
                raise CrowdveilError(f"poll {name} has no release {release!r}: mark one of its own")
            connection.execute(update(schema.poll).where(schema.poll.c.id == name).values(marked_release=release))

    def _status(self, row: Row[Any]) -> PollStatus:
        return PollStatus(
            poll=self._read(row.id, row.definition),
            closed_by_host=row.closed,
            participants=row.participants,
            spent=Amount(row.spent_micro),
            latest_release=row.latest_release,
            marked_release=row.marked_release,
            pilot=row.pilot,
            archived=row.archived,
            destroyed_on=row.destroyed_on,
        )


def _statuses() -> Select[Any]:
    release = schema.release
    newest = select(release.c.id).where(release.c.poll == schema.poll.c.id).order_by(release.c.number.desc()).limit(1)
    return select(schema.poll, newest.scalar_subquery().label("latest_release"))


@dataclass(frozen=True)
class Steps:
    """Daily counts of the people who reached each step of each poll, except during a trial. They identify nobody.

    The first two steps are counted from requests that are made anyway; a voter's page reports the others by name.
    Counts collect in memory before they are written, so that a step needs no commit of its own. A process that dies
    loses the last few.
    """

    database: Database
    _waiting: Counter[tuple[str, str]] = field(default_factory=Counter, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, poll: str, step: str, today: date) -> None:
        """Count somebody who reached a step."""
        with self._lock:
            self._waiting[poll, step] += 1
            enough = self._waiting.total() >= MOST_WAITING
        if enough:
            self.write(today)

    def write(self, today: date) -> None:
        """Write the counts to the database. Drop those of a poll in a trial, or of no poll."""
        with self._lock:
            counted = dict(self._waiting)
            self._waiting.clear()
        if not counted:
            return
        with self.database.writing() as connection:
            locked = {poll: lock_if_there(connection, poll) for poll in sorted({poll for poll, _ in counted})}
            for (poll, step), times in sorted(counted.items()):
                if (found := locked[poll]) is not None and not found.pilot:
                    added = insert_into(connection, schema.step).values(poll=poll, day=today, step=step, times=times)
                    keys = ["poll", "day", "step"]
                    connection.execute(
                        added.on_conflict_do_update(index_elements=keys, set_={"times": schema.step.c.times + times})
                    )

    def reached(self, poll: str, today: date) -> Counter[str]:
        """Return how many people reached each step."""
        self.write(today)
        table = schema.step
        asked = select(table.c.step, func.sum(table.c.times)).where(table.c.poll == poll).group_by(table.c.step)
        with self.database.reading() as connection:
            return Counter({step: int(times) for step, times in connection.execute(asked)})
