"""What voters send, kept once: one report or ballot for each token, decided by the database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy import Connection, delete, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from crowdveil.errors import CrowdveilError
from crowdveil.protocol.tokens import new_token, report_id
from crowdveil.service.poll import Entry
from crowdveil.service.store import schema
from crowdveil.service.store.database import Database
from crowdveil.service.store.deciding import add_participants, decide, lock
from crowdveil.service.store.polls import Polls
from crowdveil.service.store.sent import Outcome, Refusals, Sent

IDS_AT_ONCE = 5_000
"""How many rows one statement names or inserts: below every database's limit on parameters."""


@dataclass(frozen=True)
class DayCount:
    """How many took part on a day, by level of privacy (None in a central poll)."""

    day: date
    epsilon_micro: int | None
    participants: int


@dataclass(frozen=True)
class RefusalCount:
    """How often something was refused on a day, and why."""

    day: date
    reason: str
    times: int


@dataclass(frozen=True)
class Participation:
    """Who has taken part in which poll, by report id and nothing else."""

    database: Database
    polls: Polls

    def put(self, sent: Sequence[Sent], today: date, refusals: Refusals | None = None) -> list[Outcome]:
        """Store many voters' reports or ballots in one transaction; say what became of each, in order.

        When this returns, what is said is durable. The same content twice is stored once; of two different ones for
        the same token, the first is stored and the other refused.
        """
        outcomes = [Outcome.STORED] * len(sent)
        positions: dict[str, list[int]] = {}
        for position, one in enumerate(sent):
            positions.setdefault(one.poll, []).append(position)
        polls = [self.polls.known(name) for name in sorted(positions)]
        with self.database.writing() as connection:
            for poll in polls:  # By name, in one order everywhere: two processes cannot wait for each other.
                name = poll.name
                decided = decide(connection, poll, [sent[i] for i in positions[name]], today)
                for position, outcome in zip(positions[name], decided, strict=True):
                    outcomes[position] = outcome
            _count_refusals(connection, refusals or {}, today)
        return outcomes

    def withdraw(self, name: str, report: str) -> bool:
        """Delete what is stored under a report id, for good, and never accept the id again; False if nothing is."""
        with self.database.writing() as connection:
            lock(connection, name)
            deleted = sum(
                connection.execute(delete(table).where(table.c.poll == name, table.c.id == report)).rowcount
                for table in (schema.report, schema.ballot)
            )
            if deleted:
                connection.execute(insert(schema.withdrawal).values(poll=name, id=report))
                add_participants(connection, name, -deleted)
        if deleted:
            self.database.forget_deleted()
        return bool(deleted)

    def create_links(self, name: str, number: int) -> list[str]:
        """Make tokens for a poll with links. They are returned here and nowhere else: only their ids are stored."""
        if self.polls.known(name).entry is not Entry.LINKS:
            raise CrowdveilError(f"poll {name!r} takes no links: make one with entry = 'links'")
        if not 1 <= number <= 100_000:
            raise CrowdveilError(f"make 1 to 100,000 links at a time, got {number}")
        tokens = [new_token() for _ in range(number)]
        with self.database.writing() as connection:
            for some in _in_pieces([{"poll": name, "id": report_id(token)} for token in tokens]):
                connection.execute(insert(schema.link), some)
        return tokens

    def links(self, name: str) -> int:
        """Return how many links were made for a poll."""
        with self.database.reading() as connection:
            counted = select(func.count()).select_from(schema.link).where(schema.link.c.poll == name)
            return connection.execute(counted).scalar_one()

    def by_day(self, name: str) -> list[DayCount]:
        """Count who took part, by day and level."""
        poll = self.polls.known(name)
        table = schema.report if poll.distributed else schema.ballot
        kinds = [table.c.day, table.c.epsilon_micro] if poll.distributed else [table.c.day]
        counted = select(*kinds, func.count()).where(table.c.poll == name).group_by(*kinds).order_by(*kinds)
        with self.database.reading() as connection:
            rows = connection.execute(counted).all()
        return [DayCount(row[0], row[1] if poll.distributed else None, row[-1]) for row in rows]

    def refusals(self, name: str) -> list[RefusalCount]:
        """Count what was refused, by day and reason."""
        refusal = schema.refusal
        asked = select(refusal.c.day, refusal.c.reason, refusal.c.times).where(refusal.c.poll == name)
        with self.database.reading() as connection:
            rows = connection.execute(asked.order_by(refusal.c.day, refusal.c.reason)).all()
        return [RefusalCount(row.day, row.reason, row.times) for row in rows]


def _count_refusals(connection: Connection, refusals: Refusals, today: date) -> None:
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    for (name, reason), times in sorted(refusals.items()):
        added = dialect.insert(schema.refusal).values(poll=name, day=today, reason=reason, times=times)
        keys = ["poll", "day", "reason"]
        connection.execute(
            added.on_conflict_do_update(index_elements=keys, set_={"times": schema.refusal.c.times + times})
        )


def _in_pieces(rows: list[dict[str, str]]) -> Iterable[list[dict[str, str]]]:
    return (rows[start : start + IDS_AT_ONCE] for start in range(0, len(rows), IDS_AT_ONCE))
