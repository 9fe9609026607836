"""The application: its routes, pages and middleware, its setup, and the server that runs it.

When it is stopped (SIGTERM, ctrl-C), it finishes requests that have begun and commits what they sent.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from crowdveil.errors import CrowdveilError
from crowdveil.service.api.polls import health_routes, poll_routes
from crowdveil.service.api.releases import release_routes
from crowdveil.service.api.submissions import batch_routes, submission_routes
from crowdveil.service.host.routes import host_routes
from crowdveil.service.poll import HostedPoll
from crowdveil.service.public.routes import add_pages, public_routes
from crowdveil.service.server import (
    BodyLimit,
    Compression,
    Failures,
    HeadRequests,
    PlainAddresses,
    RateLimit,
    RequestLog,
    SecurityHeaders,
    new_application,
    run_server,
    server_config,
)
from crowdveil.service.service import Service, destroy_on_time
from crowdveil.service.settings import ServiceSettings, make_directory, read_settings
from crowdveil.service.store.store import Store, open_store


def create_app(service: Service) -> FastAPI:
    """Build the application of a service. Its store must stay open as long as the application runs."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        destroying = asyncio.create_task(destroy_on_time(service))
        yield
        destroying.cancel()
        service.store.steps.write(service.today())
        await service.commits.close()

    summary = "A crowd guides an AI's decisions in ethical dilemmas, and no voter is exposed."
    app = new_application("crowdveil", summary, lifespan)
    for routes in (poll_routes, submission_routes, batch_routes, release_routes, health_routes):
        app.include_router(routes(service))
    app.include_router(host_routes(service))
    app.include_router(public_routes(service))
    add_pages(app, service)
    settings = service.settings
    # The middleware added last sees a request first.
    app.add_middleware(Compression)
    app.add_middleware(HeadRequests)
    app.add_middleware(PlainAddresses)
    app.add_middleware(BodyLimit, largest_report=settings.largest_report)
    app.add_middleware(RateLimit, per_minute=settings.requests_per_minute, trusted_proxies=settings.trusted_proxies)
    app.add_middleware(Failures)
    app.add_middleware(RequestLog)
    app.add_middleware(SecurityHeaders, https=settings.behind_https)
    return app


@dataclass(frozen=True)
class ServiceSetup:
    """The result of setting up the service, for the person who starts it."""

    sign_in_token: str
    """A one-time token for the host."""
    database: str
    """The address of the database, without its password."""
    voters_path: str
    """The path of the voter's page, with the fingerprint of the key if the poll has a relay; / if it was deleted."""
    deleted_poll: str | None = None
    """The name of the poll, if it was deleted: only the others are served."""


def set_up(settings: ServiceSettings, poll: HostedPoll, now: int) -> ServiceSetup:
    """Create the database if it does not exist, add the poll if it is new, and create a one-time link for the host.

    A poll that was deleted is not added again: the others are served without it.
    """
    make_directory(settings)
    with open_store(settings.database_address) as store:
        is_there = _add_once(store, poll)
        path = store.batches.voters_path(poll) if is_there else "/"
        token = store.hosts.create_sign_in_link(now)
        return ServiceSetup(token, store.database.shown_address, path, None if is_there else poll.name)


def serve(settings: ServiceSettings, tell: Callable[[int], None]) -> None:
    """Answer requests until stopped; call ``tell`` with the port when it is known."""
    if settings.workers == 1:
        with open_store(settings.database_address) as store:
            server = uvicorn.Server(uvicorn.Config(create_app(Service(store, settings)), **server_config(settings)))
            run_server(server.config, tell, server.run)
        return
    # The worker processes read their settings from the environment: they share nothing else with this process.
    os.environ.update(settings.as_environment())
    config = uvicorn.Config(
        "crowdveil.service.app:worker_app", factory=True, workers=settings.workers, **server_config(settings)
    )
    run_server(config, tell, lambda sockets: Multiprocess(config, sockets).run())


def worker_app() -> FastAPI:
    """Build the application of one worker process."""
    settings = read_settings({})
    open_things = ExitStack()
    atexit.register(open_things.close)
    return create_app(Service(open_things.enter_context(open_store(settings.database_address)), settings))


def _add_once(store: Store, poll: HostedPoll) -> bool:
    """Add a poll if it is new; return whether it is there, and was not deleted."""
    known = store.polls.definition(poll.name)
    if known is None:
        if store.polls.is_taken(poll.name):
            return False
        store.polls.add(poll)
    elif known != poll:
        raise CrowdveilError(
            f"the database has a poll {poll.name!r} with other rules, and a poll never changes: "
            "give the new one another name, or another --data directory"
        )
    return True
