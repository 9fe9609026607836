"""What becomes of the reports or ballots that were sent to one poll, inside a transaction that has locked the poll."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from sqlalchemy import Connection, Select, Table, bindparam, insert, select, update

from crowdveil.service.poll import Entry, Poll, State
from crowdveil.service.store import schema
from crowdveil.service.store.sent import Outcome, Sent, SentReport

# The statements are put together once: at thousands of reports a second, doing it each time would show.
_POLL = schema.poll.c.id == bindparam("poll_id")
_LOCK = select(schema.poll.c.closed, schema.poll.c.participants).where(_POLL).with_for_update()
_ADD = update(schema.poll).where(_POLL).values(participants=schema.poll.c.participants + bindparam("more"))


def decide(connection: Connection, poll: Poll, sent: Sequence[Sent], today: date) -> list[Outcome]:
    """Store what may be stored, and say what became of each, in order."""
    row = connection.execute(_LOCK, {"poll_id": poll.name}).one()
    among = {"poll_id": poll.name, "ids": [one.id for one in sent]}
    stored = {kept: (content, about) for kept, content, about in connection.execute(_STORED[poll.distributed], among)}
    barred = frozenset(connection.scalars(_BARRED, among))
    invited = frozenset(connection.scalars(_INVITED, among) if poll.entry is Entry.LINKS else among["ids"])
    outcomes: list[Outcome] = []
    new: list[Sent] = []
    for one in sent:
        state = poll.state(today, row.closed, row.participants + len(new))
        if one.id in stored:
            outcome = Outcome.ALREADY_STORED if stored[one.id] == one.content else Outcome.DIFFERENT
        elif one.id not in invited:
            outcome = Outcome.UNKNOWN_BALLOT
        elif one.id in barred:
            outcome = Outcome.WITHDRAWN
        elif state is State.OPEN:
            outcome = Outcome.STORED
            stored[one.id] = one.content
            new.append(one)
        else:
            outcome = Outcome(state.value)
        outcomes.append(outcome)
    if new:
        connection.execute(_INSERT[poll.distributed], [_row(one, poll, today) for one in new])
        add_participants(connection, poll.name, len(new))
    return outcomes


def lock(connection: Connection, name: str) -> None:
    """Wait until nobody else writes for a poll."""
    connection.execute(_LOCK, {"poll_id": name})


def add_participants(connection: Connection, name: str, more: int) -> None:
    """Count so many participants more, or fewer."""
    connection.execute(_ADD, {"poll_id": name, "more": more})


def _row(one: Sent, poll: Poll, today: date) -> dict[str, object]:
    kept: dict[str, object] = (
        {"epsilon_micro": one.epsilon_micro, "body": one.body}
        if isinstance(one, SentReport)
        else {"answers": one.answers}
    )
    return {
        "poll": poll.name,
        "id": one.id,
        "place": poll.paradigm.place.value,
        "about": one.about,
        "day": today,
        **kept,
    }


def _among(table: Table, *columns: str) -> Select[Any]:
    """Ask for these columns of the rows with given ids."""
    ids = table.c.id.in_(bindparam("ids", expanding=True))
    return select(table.c.id, *(table.c[name] for name in columns)).where(table.c.poll == bindparam("poll_id"), ids)


_INSERT = {True: insert(schema.report), False: insert(schema.ballot)}
_STORED = {
    True: _among(schema.report, "body", "about"),
    False: _among(schema.ballot, "answers", "about"),
}
_BARRED = _among(schema.withdrawal)
_INVITED = _among(schema.link)
