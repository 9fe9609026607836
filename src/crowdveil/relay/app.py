"""The relay: it accepts sealed reports, and a background task hands them over in batches.

At its start it sets up its database and adopts the host's polls. Then it passes on reports until it is stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, Literal

import httpx
import uvicorn
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.middleware.cors import CORSMiddleware

from crowdveil.client.client import Connection, Unreachable, website
from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.protocol.polls import PollState
from crowdveil.protocol.relay import SEALED_LENGTH, SEALED_TYPE
from crowdveil.protocol.submission import TOKEN_HEADER, Receipt, SubmissionStatus
from crowdveil.relay.forwarder import LOG, Forwarder
from crowdveil.relay.store import RelayedPoll, RelayStore, SealedRow, open_relay_store
from crowdveil.service.api.errors import documented
from crowdveil.service.api.models import Health, Hex64, Model
from crowdveil.service.api.polls import health_of
from crowdveil.service.api.submissions import REFUSED, STORED, Token, id_of_token
from crowdveil.service.server import (
    BodyLimit,
    Failures,
    HeadRequests,
    PlainAddresses,
    RateLimit,
    RequestLog,
    SecurityHeaders,
    log_failure,
    new_application,
    run_server,
    server_config,
)
from crowdveil.service.settings import ServiceSettings, make_directory
from crowdveil.service.store.submissions import GroupCommit, Outcome, Refusals

SECONDS_BETWEEN_ROUNDS = 5.0
PATIENCE_SECONDS = 600
"""Timeout of a request to the host, which opens about a thousand sealed reports per second."""

_FRONT = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<title>A crowdveil relay</title></head><body><main>"
    "<h1>A crowdveil relay</h1><p>Voters' devices send their reports here, sealed to the host of a poll. This relay "
    "knows who sends but cannot read what. It hands the reports over to the host in large batches, shuffled, "
    "without names, addresses or times, and erases them. The host can read the reports but does not know whose they "
    "are.</p></main></body></html>"
)


class RelayIdentity(Model):
    """The key by which hosts recognise this relay's batches."""

    public_key: str


class RelayedPollBody(Model):
    """A poll that this relay carries. Devices compare it with the host's description."""

    configuration: dict[str, Any]
    fingerprint: Hex64
    epsilon: float
    state: str
    never_released: int | None


class RelayParticipation(Model):
    """Whether a ballot token has been used, and whether its report can still be withdrawn."""

    status: Literal["unused", "stored", "handed-over"]


@dataclass(frozen=True)
class Relay:
    """A running relay."""

    store: RelayStore
    forwarder: Forwarder
    settings: ServiceSettings = field(default_factory=ServiceSettings)
    pause: float = SECONDS_BETWEEN_ROUNDS

    @cached_property
    def commits(self) -> GroupCommit[SealedRow]:
        """The queue that stores sealed reports."""
        return GroupCommit(self._put)

    def today(self) -> date:
        """Return today's date in UTC."""
        return datetime.now(UTC).date()

    def _put(self, rows: Sequence[SealedRow], _: Refusals) -> list[Outcome]:
        return self.store.put(rows, self.today)

    async def hand_over_for_ever(self) -> None:
        """Run the forwarder's rounds until cancelled. Log a failed round; the next one continues its work."""
        while True:
            await asyncio.sleep(self.pause)
            try:
                await run_in_threadpool(self.forwarder.round)
            except CrowdveilError as error:
                LOG.warning("a round failed", extra={"told": {"why": str(error)}})
            except Exception as error:
                log_failure(error)


def create_relay_app(relay: Relay) -> FastAPI:
    """Build the application of a relay. Its store must stay open as long as the application runs."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        rounds = asyncio.get_running_loop().create_task(relay.hand_over_for_ever())
        yield
        rounds.cancel()
        with suppress(asyncio.CancelledError):
            await rounds
        await relay.commits.close()

    summary = "Passes on sealed reports to a poll's host: shuffled, in batches, without their senders."
    app = new_application("crowdveil relay", summary, lifespan)
    app.include_router(_routes(relay))
    settings = relay.settings
    # The middleware added last sees a request first.
    app.add_middleware(HeadRequests)
    app.add_middleware(PlainAddresses)
    app.add_middleware(BodyLimit, largest_report=max(SEALED_LENGTH, 1024))
    app.add_middleware(RateLimit, per_minute=settings.requests_per_minute, trusted_proxies=settings.trusted_proxies)
    app.add_middleware(Failures)
    app.add_middleware(
        CORSMiddleware,  # The voter's page comes from another origin, the host.
        allow_origins=["*"],
        allow_methods=["GET", "PUT", "DELETE"],
        allow_headers=[TOKEN_HEADER, "Content-Type"],
        expose_headers=["Retry-After"],
    )
    app.add_middleware(RequestLog)
    app.add_middleware(SecurityHeaders, https=settings.behind_https)
    return app


def _routes(relay: Relay) -> APIRouter:
    routes = APIRouter()
    store = relay.store
    body = {"requestBody": {"required": True, "content": {SEALED_TYPE: {"schema": {"type": "string"}}}}}

    @routes.get("/api/relay", response_model=RelayIdentity, responses=documented())
    def identity() -> dict[str, str]:
        """Return the public key that verifies this relay's batches."""
        return {"public_key": store.verifying_key()}

    @routes.get("/api/polls/{poll}", response_model=RelayedPollBody, responses=documented(404))
    def get_poll(poll: str) -> dict[str, Any]:
        """Return the key configuration of a poll, for devices to compare with the host's."""
        status = store.status(poll)
        configuration = status.poll.configuration
        state = status.state(relay.today())
        rest = store.waiting(poll) if state is PollState.CLOSED else 0
        return {
            "configuration": configuration.as_dict(),
            "fingerprint": configuration.fingerprint,
            "epsilon": status.poll.epsilon,
            "state": state.value,
            "never_released": rest if 0 < rest < configuration.batch else None,
        }

    @routes.put("/api/polls/{poll}/report", status_code=201, responses=STORED, openapi_extra=body)
    async def put_report(poll: str, request: Request, token: Token = None) -> Response:
        """Send a sealed report."""
        id = id_of_token(token)
        sealed = await request.body()
        if len(sealed) != SEALED_LENGTH:
            raise Refusal(Reason.WRONG_SIZE, f"a sealed report has {SEALED_LENGTH} bytes, got {len(sealed)}")
        if store.cached(poll) is None:
            await run_in_threadpool(store.known, poll)
        outcome = await relay.commits.put(SealedRow(poll, id, sealed))
        if isinstance(outcome, Reason):
            raise Refusal(outcome, REFUSED[outcome])
        return JSONResponse(
            asdict(Receipt(id, outcome, None, None)), 201 if outcome is SubmissionStatus.STORED else 200
        )

    @routes.get(
        "/api/polls/{poll}/participation",
        response_model=RelayParticipation,
        responses=documented(400, 403, 404, 410),
    )
    def check(poll: str, token: Token = None) -> dict[str, str]:
        """Return whether a ballot token can still be used, and whether its report is still here."""
        found = store.check(poll, id_of_token(token))
        if isinstance(found, Reason) and found is not Reason.HANDED_OVER:
            raise Refusal(found, REFUSED[found])
        return {"status": "unused" if found is None else "handed-over" if isinstance(found, Reason) else "stored"}

    @routes.delete("/api/polls/{poll}/participation", status_code=204, responses=documented(400, 404, 410))
    def withdraw(poll: str, token: Token = None) -> Response:
        """Erase the report of a ballot token before it is handed over, and never accept the token again."""
        if not store.withdraw(poll, id_of_token(token)):
            raise Refusal(Reason.NOTHING_STORED, f"nothing is stored for this ballot token in poll {poll}")
        return Response(status_code=204)

    @routes.get("/healthz", response_model=Health)
    def healthz() -> JSONResponse:
        """Return whether the database answers."""
        return health_of(store.database)

    @routes.get("/", include_in_schema=False)
    def front() -> HTMLResponse:
        """Return a page that explains the relay."""
        return HTMLResponse(_FRONT)

    return routes


@dataclass(frozen=True)
class RelaySetup:
    """The result of setting up a relay, for the person who starts it."""

    polls: tuple[RelayedPoll, ...]
    database: str
    """The address of the database, without its password."""


def set_up_relay(settings: ServiceSettings, host: str) -> RelaySetup:
    """Create the database if it does not exist, and adopt the host's polls that name this relay."""
    make_directory(settings)
    with open_relay_store(settings.database_address) as store, _forwarder(store, settings, host) as forwarder:
        try:
            forwarder.adopt_polls()
        except Unreachable:
            if not store.polls():
                raise
        carried = tuple(store.status(name).poll for name in store.polls())
        if not carried:
            raise CrowdveilError(
                f"{host} has no poll that names this relay: its poll file needs relay = {forwarder.relay_url!r}, "
                "or give the address that voters use with --public-url"
            )
        return RelaySetup(carried, store.database.shown_address)


def make_links(settings: ServiceSettings, host: str, poll: str, number: int) -> list[str]:
    """Create links for voters: addresses of the host's page, with the fingerprint and a token after the #."""
    with open_relay_store(settings.database_address) as store:
        tokens = store.create_links(poll, number)
        return [store.status(poll).poll.voters_address(host.rstrip("/"), token) for token in tokens]


def serve_relay(settings: ServiceSettings, host: str, pause: float, tell: Callable[[int], None]) -> None:
    """Pass on reports until stopped; call ``tell`` with the port when it is known."""
    with open_relay_store(settings.database_address) as store, _forwarder(store, settings, host) as forwarder:
        app = create_relay_app(Relay(store, forwarder, settings, pause))
        server = uvicorn.Server(uvicorn.Config(app, **server_config(settings)))
        run_server(server.config, tell, server.run)


@contextmanager
def _forwarder(store: RelayStore, settings: ServiceSettings, host: str) -> Iterator[Forwarder]:
    with httpx.Client(base_url=website(host), timeout=PATIENCE_SECONDS) as http:
        yield Forwarder(store, Connection(http), settings.address(settings.port), lambda: datetime.now(UTC).date())
