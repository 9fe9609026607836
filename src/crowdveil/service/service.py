"""The service that every request uses: the store, the settings, the clock, and a cache of releases.

It destroys the exact answers of central polls automatically on their day, in the database and in the backups it can
reach.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path

from crowdveil.errors import CrowdveilError, plural
from crowdveil.releases import Release
from crowdveil.service.server import log_failure
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.backup import destroy_in_backup
from crowdveil.service.store.hosts import LogEntry
from crowdveil.service.store.releases import StoredRelease
from crowdveil.service.store.store import Store
from crowdveil.service.store.submissions import GroupCommit, Outcome, Refusals, SubmissionRow

RELEASES_KEPT = 100
EVERY_SECONDS = 3600
ENDING = "*.gz"
BY_ITSELF = "the server"
"""Name of the service in the audit log."""


@dataclass(frozen=True)
class Service:
    """A running service."""

    store: Store
    settings: ServiceSettings = field(default_factory=ServiceSettings)
    _releases: dict[str, Release] = field(default_factory=dict, repr=False)

    @cached_property
    def commits(self) -> GroupCommit[SubmissionRow]:
        """The queue that stores submissions."""
        return GroupCommit(self._put)

    def today(self) -> date:
        """Return today's date in UTC."""
        return datetime.now(UTC).date()

    def now(self) -> int:
        """Return the time for hosts' sessions, in seconds since 1970."""
        return int(time.time())

    def read(self, stored: StoredRelease) -> Release:
        """Return a release, which is checked only the first time."""
        if stored.id not in self._releases:
            while len(self._releases) >= RELEASES_KEPT:
                self._releases.pop(next(iter(self._releases)), None)
            self._releases[stored.id] = stored.read()
        return self._releases[stored.id]

    def _put(self, rows: Sequence[SubmissionRow], refusals: Refusals) -> list[Outcome]:
        return self.store.submissions.put(rows, self.today(), refusals)


def destroy_due(service: Service) -> None:
    """Destroy the answers that are due today, and record it. Log a backup that cannot be read, and leave it."""
    for name in service.store.polls.destroy_answers(service.today()):
        service.store.audit_log.add(LogEntry(service.now(), BY_ITSELF, "destroyed the exact answers", name, ""))
    if not service.settings.backups:
        return
    for path in sorted(Path(service.settings.backups).glob(ENDING)):
        try:
            destroyed = destroy_in_backup(path, service.today())
        except CrowdveilError as error:
            log_failure(error)
            continue
        if destroyed:
            entry = f"destroyed {destroyed} {plural(destroyed, 'ballot')} in a backup"
            service.store.audit_log.add(LogEntry(service.now(), BY_ITSELF, entry, None, path.name))


async def destroy_on_time(service: Service) -> None:
    """Destroy due answers every hour, as long as the service runs."""
    while True:
        try:
            await asyncio.to_thread(destroy_due, service)
        except Exception as error:  # The service goes on, and tries again in an hour.
            log_failure(error)
        await asyncio.sleep(EVERY_SECONDS)
