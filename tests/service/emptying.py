"""A service that tests share: building the application takes longer than most tests, emptying its database does not."""

from __future__ import annotations

import time

from sqlalchemy import delete

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
