"""The store: one object for all that the service keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crowdveil.service.store.audit_log import AuditLog
from crowdveil.service.store.batches import Batches
from crowdveil.service.store.database import Database, alone, connect, migrate
from crowdveil.service.store.effects import EffectFiles
from crowdveil.service.store.hosts import Hosts
from crowdveil.service.store.polls import Polls
from crowdveil.service.store.releases import Releases
from crowdveil.service.store.steps import Steps
from crowdveil.service.store.submissions import Submissions


@dataclass(frozen=True)
class Store:
    """Everything that is kept. Safe to use from many threads; nothing here waits for the network."""

    database: Database
    polls: Polls
    submissions: Submissions
    releases: Releases
    effects: EffectFiles
    hosts: Hosts
    audit_log: AuditLog
    steps: Steps
    batches: Batches


@contextmanager
def open_store(address: str) -> Iterator[Store]:
    """Open a store by its database's address, bring its tables up to date, and close it afterwards.

    ``sqlite:///PATH`` is for one process at a time; ``postgresql://USER:PASSWORD@HOST/NAME`` for many.
    """
    database = connect(address)
    try:
        with alone(database):
            migrate(database)
            polls = Polls(database)
            yield Store(
                database,
                polls,
                Submissions(database, polls),
                Releases(database),
                EffectFiles(database),
                Hosts(database),
                AuditLog(database),
                Steps(database),
                Batches(database, polls),
            )
    finally:
        database.close()
