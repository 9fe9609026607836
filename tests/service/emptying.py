"""A service that tests share: building the application takes longer than most tests, emptying its database does not."""

from __future__ import annotations

from sqlalchemy import delete

from crowdveil.service.store import schema
from crowdveil.service.store.store import Store


def empty(store: Store) -> None:
    """Leave a store as if nobody had done anything yet."""
    with store.database.writing() as connection:
        for table in reversed(schema.metadata.sorted_tables):
            if table is not schema.installation:
                connection.execute(delete(table))
    store.polls._known.clear()
