"""Run a relay: set up its database, take up the host's polls, then pass reports on until it is told to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import httpx
import uvicorn

from crowdveil.client.connection import Connection, Unreachable
from crowdveil.errors import CrowdveilError
from crowdveil.relay.app import Relay, create_relay_app
from crowdveil.relay.courier import Courier
from crowdveil.relay.poll import RelayedPoll
from crowdveil.relay.store import RelayStore, open_relay_store
from crowdveil.service.serving import make_directory, run_server, server_config
from crowdveil.service.settings import Settings

PATIENCE_SECONDS = 600
"""A host opens some thousand sealed reports a second."""


@dataclass(frozen=True)
class RelaySetup:
    """News for whoever starts a relay."""

    polls: tuple[RelayedPoll, ...]
    database: str
    """Where it is, without its password."""


def set_up_relay(settings: Settings, host: str) -> RelaySetup:
    """Make the database if there is none, and take up the host's polls that name this relay."""
    make_directory(settings)
    with open_relay_store(settings.database_address) as store, _courier(store, settings, host) as courier:
        try:
            courier.adopt_polls()
        except Unreachable:
            if not store.polls():
                raise
        carried = tuple(store.status(name).poll for name in store.polls())
        if not carried:
            raise CrowdveilError(
                f"{host} has no poll that names this relay: its poll file needs relay = {courier.relay_url!r}, "
                "or give the address that voters use with --public-url"
            )
        return RelaySetup(carried, store.database.shown_address)


def make_links(settings: Settings, host: str, poll: str, number: int) -> list[str]:
    """Make links for voters: addresses of the host's page, with the fingerprint and a token behind the #."""
    with open_relay_store(settings.database_address) as store:
        tokens = store.create_links(poll, number)
        return [store.status(poll).poll.voters_address(host.rstrip("/"), token) for token in tokens]


def serve_relay(settings: Settings, host: str, pause: float, tell: Callable[[int], None]) -> None:
    """Pass reports on until told to stop; ``tell`` is called with the port when it is known."""
    with open_relay_store(settings.database_address) as store, _courier(store, settings, host) as courier:
        app = create_relay_app(Relay(store, courier, settings, pause))
        server = uvicorn.Server(uvicorn.Config(app, **server_config(settings)))
        run_server(server.config, tell, server.run)


@contextmanager
def _courier(store: RelayStore, settings: Settings, host: str) -> Iterator[Courier]:
    if not host.startswith(("http://", "https://")):
        raise CrowdveilError(f"{host!r} is no address of a website: it must begin with http:// or https://")
    with httpx.Client(base_url=host, timeout=PATIENCE_SECONDS) as http:
        yield Courier(store, Connection(http), settings.address(settings.port), lambda: datetime.now(UTC).date())
