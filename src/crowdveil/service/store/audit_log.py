"""The audit log: which host did what, and when. Nothing of voters is in it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import insert, select

from crowdveil.service.store import schema
from crowdveil.service.store.database import Database

MOST_SHOWN = 1000


@dataclass(frozen=True)
class LogEntry:
    """Something that a host did."""

    at: int
    """Seconds since 1970."""
    host: str
    action: str
    poll: str | None
    detail: str


@dataclass(frozen=True)
class AuditLog:
    """What hosts did, in order. Nothing is ever changed in it or taken out."""

    database: Database

    def add(self, entry: LogEntry) -> None:
        """Write an entry."""
        row = {"at": entry.at, "host": entry.host, "action": entry.action, "poll": entry.poll, "detail": entry.detail}
        with self.database.writing() as connection:
            connection.execute(insert(schema.audit_log).values(row))

    def latest(self, poll: str | None = None) -> list[LogEntry]:
        """Return the latest entries, of a poll or of all, newest first."""
        table = schema.audit_log
        asked = select(table.c.at, table.c.host, table.c.action, table.c.poll, table.c.detail)
        chosen = asked if poll is None else asked.where(table.c.poll == poll)
        with self.database.reading() as connection:
            rows = connection.execute(chosen.order_by(table.c.number.desc()).limit(MOST_SHOWN)).all()
        return [LogEntry(*row) for row in rows]
