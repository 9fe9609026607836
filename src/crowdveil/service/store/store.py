"""The store: one object for everything that the service stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crowdveil.service.store.batches import Batches
from crowdveil.service.store.database import MIGRATIONS, Database, open_database
from crowdveil.service.store.hosts import AuditLog, Hosts
from crowdveil.service.store.polls import Polls, Steps
from crowdveil.service.store.releases import EffectFiles, Releases
from crowdveil.service.store.submissions import Submissions


@dataclass(frozen=True)
class Store:
    """Everything that is stored. It is safe to use from many threads, and nothing here waits for the network."""

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
    """Open a store by the address of its database, bring its tables up to date, and close it afterwards.

    ``sqlite:///PATH`` is for one process at a time; ``postgresql://USER:PASSWORD@HOST/NAME`` for many.
    """
    with open_database(address, MIGRATIONS) as database:
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
