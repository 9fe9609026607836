"""A service that tests share: building the application takes longer than most tests, emptying its database does not."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import Table, delete, insert, select

from crowdveil.service.service import Service
from crowdveil.service.store import schema


def empty(service: Service) -> None:
    """Leave a service as if nobody had done anything yet.

    Refusals are counted by a commit that nobody waits for: one that is on its way would come after the emptying.
    """
    commits, store = service.commits, service.store
    while commits._running is not None and not commits._running.done():
        time.sleep(0.001)
    with store.database.writing() as connection:
        for table in reversed(schema.metadata.sorted_tables):
            if table is not schema.installation:
                connection.execute(delete(table))
    store.polls._known.clear()
    store.steps._waiting.clear()


Rows = dict[Table, list[dict[str, Any]]]
"""All that the tables of a service hold."""


def rows_of(service: Service) -> Rows:
    """Return what has been done in a service, to do it again in no time (``fill``)."""
    tables = [table for table in schema.metadata.sorted_tables if table is not schema.installation]
    with service.store.database.reading() as connection:
        return {table: [dict(row) for row in connection.execute(select(table)).mappings()] for table in tables}


def fill(service: Service, rows: Rows) -> None:
    """Leave an empty service as if all of that had been done in it."""
    with service.store.database.writing() as connection:
        for table, held in rows.items():
            if held:
                connection.execute(insert(table), held)
