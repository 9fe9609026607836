"""The courier: asks the host how its polls stand, and hands over the batches that are due.

A batch is sent until the host has acknowledged it, the same reports under the same id, and erased after that. Whatever
is interrupted in between, by whichever side, is done again at the next round: the host takes a batch once.
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
from crowdveil.protocol.polls import State
from crowdveil.protocol.relay import SEALED_TYPE, Acknowledgement, Batch
from crowdveil.relay.store import RelayedPoll, RelayStore

LOG = logging.getLogger("crowdveil.relay")


@dataclass(frozen=True)
class Courier:
    """Between one relay and one host."""

    store: RelayStore
    host: Connection
    relay_url: str
    """The address of this relay, as polls name it."""
    today: Callable[[], date]

    def adopt_polls(self) -> list[str]:
        """Take up the host's polls that name this relay; return the names of those that it carries."""
        for name in self._listed():
            self._visit(name)
        return self.store.polls()

    def round(self) -> int:
        """Hear how the polls stand, and hand over all that is due; return how many batches were acknowledged.

        A poll that its host describes differently than before, or refuses a batch of, is logged and left as it is; the
        others go on. A host that does not answer ends the round.
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
        """Hear how a poll stands; return whether this relay carries it."""
        described = self.host.ask("GET", f"/api/polls/{quote(name, safe='')}")
        if described["relay"] is None or described["relay"]["configuration"]["relay"] != self.relay_url:
            return False
        poll = read_poll(described)
        self.store.adopt(RelayedPoll.of(poll, described))
        closed = described["state"] == State.CLOSED.value
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
            raise CrowdveilError("the host acknowledged another batch than it was sent: nothing is erased")
        return acknowledged
