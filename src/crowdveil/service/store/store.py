"""The store: one object for all that the service keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crowdveil.ballots import Ballots
from crowdveil.service.store import stored
from crowdveil.service.store.database import Database, alone, connect
from crowdveil.service.store.hosts import Hosts
from crowdveil.service.store.migrate import migrate
from crowdveil.service.store.participation import Participation
from crowdveil.service.store.polls import Polls
from crowdveil.service.store.releases import Releases
from crowdveil.service.store.stored import StoredBallot, StoredReport


@dataclass(frozen=True)
class Store:
    """Polls, what voters sent, releases and hosts. Safe to use from many threads; nothing here waits for the network."""

    database: Database
    polls: Polls
    participation: Participation
    releases: Releases
    hosts: Hosts

    def reports(self, name: str) -> Iterator[list[StoredReport]]:
        """Walk the reports of a distributed poll in chunks, by report id."""
        return stored.reports(self.database, self.polls.known(name))

    def ballots(self, name: str) -> Iterator[list[StoredBallot]]:
        """Walk the ballots of a central poll in chunks, by report id."""
        return stored.ballots(self.database, self.polls.known(name))

    def crowd(self, name: str) -> Ballots:
        """Return the answers of a central poll as columns."""
        return stored.crowd(self.database, self.polls.known(name))


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
            yield Store(database, polls, Participation(database, polls), Releases(database), Hosts(database))
    finally:
        database.close()
