"""How far voters come: a count for each step and day, from which nobody can be told.

Nothing is asked of a voter's device for it: the server counts requests that are made anyway. Counts wait in memory
until there are some, so that opening a page costs no commit; a process that dies loses the last few.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import date

from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite

from crowdveil.service.store import schema
from crowdveil.service.store.database import Database

OPENED, STARTED = "opened", "started"
"""Somebody has opened the voter's page; somebody has been drawn dilemmas. Who finished is among the submissions."""
MOST_WAITING = 100


@dataclass(frozen=True)
class Steps:
    """How many came to each step of each poll, while it was not on trial."""

    database: Database
    _waiting: Counter[tuple[str, str]] = field(default_factory=Counter, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, poll: str, step: str, today: date) -> None:
        """Count somebody who came to a step."""
        with self._lock:
            self._waiting[poll, step] += 1
            enough = self._waiting.total() >= MOST_WAITING
        if enough:
            self.write(today)

    def write(self, today: date) -> None:
        """Write what was counted. What belongs to a poll on trial, or to none, is forgotten."""
        with self._lock:
            counted = dict(self._waiting)
            self._waiting.clear()
        if not counted:
            return
        dialect = sqlite if self.database.is_sqlite else postgresql
        with self.database.writing() as connection:
            counting = frozenset(connection.scalars(select(schema.poll.c.id).where(schema.poll.c.pilot.is_(False))))
            for (poll, step), times in sorted(counted.items()):
                if poll in counting:
                    added = dialect.insert(schema.step).values(poll=poll, day=today, step=step, times=times)
                    keys = ["poll", "day", "step"]
                    connection.execute(
                        added.on_conflict_do_update(index_elements=keys, set_={"times": schema.step.c.times + times})
                    )

    def reached(self, poll: str, today: date) -> Counter[str]:
        """Return how many came to each step."""
        self.write(today)
        table = schema.step
        asked = select(table.c.step, func.sum(table.c.times)).where(table.c.poll == poll).group_by(table.c.step)
        with self.database.reading() as connection:
            return Counter({step: int(times) for step, times in connection.execute(asked)})
