"""Run the service: set up its database, then answer requests until it is told to stop.

When it is stopped (SIGTERM, ctrl-C), requests that have begun are finished and what they sent is committed.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from crowdveil.errors import CrowdveilError
from crowdveil.service.app import create_app
from crowdveil.service.poll import HostedPoll
from crowdveil.service.service import Service
from crowdveil.service.serving import make_directory, run_server, server_config
from crowdveil.service.settings import Settings, read_settings
from crowdveil.service.store.store import Store, open_store


@dataclass(frozen=True)
class Setup:
    """News for whoever starts the service."""

    sign_in_token: str
    """For the host, once."""
    database: str
    """Where it is, without its password."""
    voters_path: str
    """The path of the voter's page; of a poll with a relay, with the fingerprint of its key."""


def set_up(settings: Settings, poll: HostedPoll, now: int) -> Setup:
    """Make the database if there is none, add the poll if it is new, and make a one-time sign-in link for the host."""
    make_directory(settings)
    with open_store(settings.database_address) as store:
        _add_once(store, poll)
        path = store.batches.voters_path(store.polls.known(poll.name))
        return Setup(store.hosts.create_sign_in_link(now), store.database.shown_address, path)


def serve(settings: Settings, tell: Callable[[int], None]) -> None:
    """Answer requests until told to stop; ``tell`` is called with the port when it is known."""
    if settings.workers == 1:
        with open_store(settings.database_address) as store:
            server = uvicorn.Server(uvicorn.Config(create_app(Service(store, settings)), **server_config(settings)))
            run_server(server.config, tell, server.run)
        return
    # The processes read their settings from the environment, which is all that they share with this one.
    os.environ.update(settings.as_environment())
    config = uvicorn.Config(
        "crowdveil.service.run:worker_app", factory=True, workers=settings.workers, **server_config(settings)
    )
    run_server(config, tell, lambda sockets: Multiprocess(config, sockets).run())


def worker_app() -> FastAPI:
    """Build the application of one worker process."""
    settings = read_settings({})
    open_things = ExitStack()
    atexit.register(open_things.close)
    return create_app(Service(open_things.enter_context(open_store(settings.database_address)), settings))


def _add_once(store: Store, poll: HostedPoll) -> None:
    known = store.polls.definition(poll.name)
    if known is None:
        store.polls.add(poll)
    elif known != poll:
        raise CrowdveilError(
            f"the database has a poll {poll.name!r} with other rules, and a poll never changes: "
            "give the new one another name, or another --data directory"
        )
