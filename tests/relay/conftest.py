"""A host and a relay, each with its own database and a real server in a thread."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from tests.databases import address, new_address, postgres
from tests.service.voters import reports

from crowdveil.client.client import Connection
from crowdveil.protocol.relay import configuration_of
from crowdveil.protocol.submission import SubmissionStatus, new_token, report_id
from crowdveil.relay.app import Relay, create_relay_app
from crowdveil.relay.forwarder import Forwarder
from crowdveil.relay.store import RelayStore, SealedRow, open_relay_store
from crowdveil.service.app import create_app
from crowdveil.service.poll import HostedPoll, poll_from_dict
from crowdveil.service.server import served_here
from crowdveil.service.service import Service
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.store import Store, open_store

__all__ = ["address", "new_address", "postgres"]


@pytest.fixture(scope="module", autouse=True)
def _few_crowds(few_crowds: None) -> None:
    """No test here asks how good a release's probabilities are."""


@dataclass(frozen=True)
class Pair:
    """A host and a relay that know each other. The test sends the forwarder."""

    host: Store
    host_url: str
    relay: RelayStore
    relay_url: str
    forwarder: Forwarder
    poll: HostedPoll
    http: httpx.Client

    @property
    def name(self) -> str:
        return self.poll.name

    def sealed(self, number: int) -> list[bytes]:
        """Sealed reports of honest devices."""
        key = self.host.batches.key(self.poll)
        honest = reports(self.poll, 64)
        return [key.configuration.seal(honest[place % len(honest)]) for place in range(number)]

    def send(self, sealed: bytes, token: str) -> httpx.Response:
        url = f"{self.relay_url}/api/polls/{self.name}/report"
        return self.http.put(url, content=sealed, headers={"Crowdveil-Ballot": token})

    def vote(self, number: int) -> list[str]:
        """So many voters send their reports to the relay; return their tokens."""
        tokens = [new_token() for _ in range(number)]
        rows = [SealedRow(self.name, report_id(t), s) for t, s in zip(tokens, self.sealed(number), strict=True)]
        assert self.relay.put(rows, self.forwarder.today) == [SubmissionStatus.STORED] * number
        return tokens

    def stored(self) -> list[dict[str, Any]]:
        """The reports that the host has."""
        return [dict(one.body) for batch in self.host.submissions.reports(self.name) for one in batch]


def relay_poll(relay_url: str, batch: int = 10, **rules: Any) -> HostedPoll:
    asked = {"name": "shuffled", "study": "kidney", "paradigm": "vldp", "levels": {"one": 3}}
    return poll_from_dict({**asked, "relay": relay_url, "batch": batch, **rules})


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def running_pair(
    host_address: str, relay_address: str, relay_settings: ServiceSettings | None = None, **rules: Any
) -> Iterator[Pair]:
    port = free_port()
    poll = relay_poll(f"http://127.0.0.1:{port}", **rules)
    with open_store(host_address) as host, open_relay_store(relay_address) as relay:
        host.polls.add(poll)
        with (
            served_here(create_app(Service(host, ServiceSettings()))) as host_url,
            httpx.Client(base_url=host_url, timeout=60) as http,
        ):
            relay_url = f"http://127.0.0.1:{port}"
            forwarder = Forwarder(relay, Connection(http, 0.01), relay_url, lambda: datetime.now(UTC).date())
            forwarder.adopt_polls()
            app = create_relay_app(Relay(relay, forwarder, relay_settings or ServiceSettings(), pause=1e6))
            with served_here(app, port):
                yield Pair(host, host_url, relay, relay_url, forwarder, poll, http)


Start = Callable[..., Pair]
SQLITE = pytest.mark.parametrize("new_address", ["sqlite"], indirect=True)
"""For tests in which the database plays no part."""


@pytest.fixture
def start(new_address: Callable[[str], str]) -> Iterator[Start]:
    """Starts a host and a relay with some rules of the poll."""
    opened = []

    def begin(**rules: Any) -> Pair:
        opened.append(running_pair(new_address("host"), new_address("relay"), **rules))
        return opened[-1].__enter__()

    yield begin
    for one in opened:
        one.__exit__(None, None, None)


def with_key(pair: Pair) -> HostedPoll:
    """The poll as a device gets it, with its host's key."""
    assert pair.poll.relay is not None
    key = pair.host.batches.key(pair.poll).configuration.public_key
    found = replace(pair.poll, relay=replace(pair.poll.relay, public_key=key))
    assert configuration_of(found).public_key == key
    return found
