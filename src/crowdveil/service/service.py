"""The service that every request works with: store, settings, clock, and the releases that were read already."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property

from crowdveil.releases import Release
from crowdveil.service.settings import Settings
from crowdveil.service.store.group_commit import GroupCommit
from crowdveil.service.store.releases import StoredRelease
from crowdveil.service.store.store import Store
from crowdveil.service.store.submissions import Outcome, Refusals, SubmissionRow

RELEASES_KEPT = 100


@dataclass(frozen=True)
class Service:
    """A running service."""

    store: Store
    settings: Settings = field(default_factory=Settings)
    _releases: dict[str, Release] = field(default_factory=dict, repr=False)

    @cached_property
    def commits(self) -> GroupCommit[SubmissionRow]:
        """Where submissions go."""
        return GroupCommit(self._put)

    def today(self) -> date:
        """Return the day, which is the same everywhere (UTC)."""
        return datetime.now(UTC).date()

    def now(self) -> int:
        """Return the time of hosts' sessions: seconds since 1970."""
        return int(time.time())

    def read(self, stored: StoredRelease) -> Release:
        """Return a release, checked once."""
        if stored.id not in self._releases:
            while len(self._releases) >= RELEASES_KEPT:
                self._releases.pop(next(iter(self._releases)), None)
            self._releases[stored.id] = stored.read()
        return self._releases[stored.id]

    def _put(self, rows: Sequence[SubmissionRow], refusals: Refusals) -> list[Outcome]:
        return self.store.submissions.put(rows, self.today(), refusals)
