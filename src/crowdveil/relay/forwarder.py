"""The forwarder: it asks the host for the state of its polls, and hands over the batches that are due.

It sends a batch, the same reports under the same id, until the host has acknowledged it, and then erases it. If either
side interrupts this, the next round repeats it: the host accepts a batch only once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from urllib.parse import quote

from crowdveil.client.client import Connection, Unreachable
from crowdveil.errors import CrowdveilError
from crowdveil.protocol.description import read_poll
from crowdveil.protocol.polls import PollState
from crowdveil.protocol.relay import SEALED_TYPE, Acknowledgement, Batch
from crowdveil.relay.store import RelayedPoll, RelayStore

LOG = logging.getLogger("crowdveil.relay")


@dataclass(frozen=True)
class Forwarder:
    """The forwarder between one relay and one host."""

    store: RelayStore
    host: Connection
    relay_url: str
    """The address of this relay in the polls that name it."""
    today: Callable[[], date]

    def adopt_polls(self) -> list[str]:
        """Adopt the host's polls that name this relay; return the names of all polls that it carries."""
        for name in self._listed():
            self._visit(name)
        return self.store.polls()

    def round(self) -> int:
        """Update the state of the polls, hand over all batches that are due, and return how many were acknowledged.

        If the host describes a poll differently than before, or refuses a batch of it, log this, leave the poll as it
        is, and go on with the others. A host that does not answer ends the round.
        """
        delivered = 0
        for name in sorted({*self._listed(), *self.store.polls()}):
            try:
                delivered += self._hand_over(name) if self._visit(name) else 0
            except Unreachable:
                raise
            except CrowdveilError as error:
                LOG.warning("nothing is handed over", extra={"told": {"poll": name, "why": str(error)}})
        return delivered

    def _listed(self) -> list[str]:
        return [str(listed["id"]) for listed in self.host.ask("GET", "/api/polls")["polls"]]

    def _visit(self, name: str) -> bool:
        """Update the state of a poll; return whether this relay carries it."""
        described = self.host.ask("GET", f"/api/polls/{quote(name, safe='')}")
        if described["relay"] is None or described["relay"]["configuration"]["relay"] != self.relay_url:
            return False
        poll = read_poll(described)
        self.store.adopt(RelayedPoll.of(poll, described))
        closed = described["state"] == PollState.CLOSED.value
        if self.store.status(poll.name).closed_by_host is not closed:
            self.store.set_closed(poll.name, closed)
            if closed:
                self._tell_rest(poll.name)
        return True

    def _tell_rest(self, name: str) -> None:
        waiting = self.store.waiting(name)
        size = self.store.status(name).poll.configuration.batch
        if 0 < waiting < size:
            told = {"poll": name, "reports": waiting, "batch": size}
            LOG.warning("too few reports for a batch: they are never handed over", extra={"told": told})

    def _hand_over(self, name: str) -> int:
        delivered = 0
        while (batch := self.store.next_batch(name, self.today())) is not None:
            self.store.erase(name, self._send(batch))
            told = {"poll": name, "reports": len(batch.sealed)}
            LOG.info("a batch was handed over", extra={"told": told})
            delivered += 1
        return delivered

    def _send(self, batch: Batch) -> Acknowledgement:
        headers = batch.headers(self.store.signing_key())
        path = f"/api/polls/{quote(batch.poll, safe='')}/batches/{batch.id}"
        told = self.host.ask("PUT", path, body=batch.body, kind=SEALED_TYPE, more_headers=headers)
        acknowledged = Acknowledgement.from_dict(told)
        if acknowledged.batch != batch.id:
            raise CrowdveilError("the host acknowledged a different batch from the one sent: nothing is erased")
        return acknowledged
