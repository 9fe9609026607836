"""Destroys the exact answers of central polls on their day: in the database, and in the backups that are at hand."""

from __future__ import annotations

import asyncio
from pathlib import Path

from crowdveil.errors import CrowdveilError
from crowdveil.service.middleware.logs import log_failure
from crowdveil.service.service import Service
from crowdveil.service.store.audit_log import LogEntry
from crowdveil.service.store.backup import destroy_in_backup

EVERY_SECONDS = 3600
ENDING = "*.gz"
BY_ITSELF = "the server"
"""Who the audit log says it was."""


def destroy_due(service: Service) -> None:
    """Destroy what is due today, and write it down. A backup that cannot be read is told of, and left."""
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
            entry = f"destroyed {destroyed} ballots in a backup"
            service.store.audit_log.add(LogEntry(service.now(), BY_ITSELF, entry, None, path.name))


async def destroy_on_time(service: Service) -> None:
    """Look every hour, for as long as the service runs."""
    while True:
        try:
            await asyncio.to_thread(destroy_due, service)
        except Exception as error:  # The service goes on; the next hour tries again.
            log_failure(error)
        await asyncio.sleep(EVERY_SECONDS)
