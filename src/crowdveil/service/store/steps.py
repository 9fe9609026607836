"""How far voters come: a count for each step and day, from which nobody can be told."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date

from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite

from crowdveil.service.store import schema
from crowdveil.service.store.database import Database

STEPS = ("welcome", "consent", "level", "half", "answered", "sent")
"""The places that are counted, in the order in which a voter comes to them."""


@dataclass(frozen=True)
class Steps:
    """How many came to each step. Who they were is not asked: a page tells each step once, without a token."""

    database: Database

    def count(self, poll: str, step: str, today: date) -> None:
        """Count somebody who came to a step."""
        dialect = sqlite if self.database.is_sqlite else postgresql
        added = dialect.insert(schema.step).values(poll=poll, day=today, step=step, times=1)
        with self.database.writing() as connection:
            connection.execute(
                added.on_conflict_do_update(
                    index_elements=["poll", "day", "step"], set_={"times": schema.step.c.times + 1}
                )
            )

    def reached(self, poll: str) -> Counter[str]:
        """Return how many came to each step."""
        table = schema.step
        asked = select(table.c.step, func.sum(table.c.times)).where(table.c.poll == poll).group_by(table.c.step)
        with self.database.reading() as connection:
            return Counter({step: int(times) for step, times in connection.execute(asked)})
