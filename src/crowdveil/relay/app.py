"""The relay's application: sealed reports come in, and leave in batches that a task in the background hands over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Header, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.middleware.cors import CORSMiddleware

from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.protocol.polls import State
from crowdveil.protocol.relay import SEALED_LENGTH, SEALED_TYPE
from crowdveil.protocol.submission import TOKEN_HEADER, Receipt, Status
from crowdveil.relay.courier import LOG, Courier
from crowdveil.relay.store import RelayStore, SealedRow
from crowdveil.service.api.errors import add_error_handlers, documented
from crowdveil.service.api.health import health_of
from crowdveil.service.api.models import Health, Hex64, Model
from crowdveil.service.api.submissions import REFUSED, id_of_token
from crowdveil.service.middleware.body_limit import BodyLimit
from crowdveil.service.middleware.headers import SecurityHeaders
from crowdveil.service.middleware.logs import Failures, RequestLog, log_failure
from crowdveil.service.middleware.rate_limit import RateLimit
from crowdveil.service.settings import Settings
from crowdveil.service.store.group_commit import GroupCommit
from crowdveil.service.store.submissions import Outcome, Refusals
from crowdveil.version import VERSION

SECONDS_BETWEEN_ROUNDS = 5.0

Token = Annotated[str | None, Header(alias=TOKEN_HEADER, description="The ballot token: 16 random bytes as base64url.")]


class RelayIdentity(Model):
    """The key by which hosts know this relay's batches."""

    public_key: str


class RelayedPollBody(Model):
    """A poll as this relay carries it: devices compare it with what the host says."""

    configuration: dict[str, Any]
    fingerprint: Hex64
    epsilon: float
    state: str
    never_released: int | None


class RelayParticipation(Model):
    """Whether a ballot token has been used, and whether what was sent can still be withdrawn."""

    status: Literal["unused", "stored", "handed-over"]


@dataclass(frozen=True)
class Relay:
    """A running relay."""

    store: RelayStore
    courier: Courier
    settings: Settings = field(default_factory=Settings)
    pause: float = SECONDS_BETWEEN_ROUNDS

    @cached_property
    def commits(self) -> GroupCommit[SealedRow]:
        """Where sealed reports go."""
        return GroupCommit(self._put)

    def today(self) -> date:
        """Return the day, which is the same everywhere (UTC)."""
        return datetime.now(UTC).date()

    def _put(self, rows: Sequence[SealedRow], _: Refusals) -> list[Outcome]:
        return self.store.put(rows, self.today())

    async def hand_over_for_ever(self) -> None:
        """Send the courier round after round. A round that fails is logged, and the next one takes it up."""
        while True:
            await asyncio.sleep(self.pause)
            try:
                await run_in_threadpool(self.courier.round)
            except CrowdveilError as error:
                LOG.warning("a round failed", extra={"told": {"why": str(error)}})
            except Exception as error:
                log_failure(error)


def create_relay_app(relay: Relay) -> FastAPI:
    """Build the application of a relay. Its store stays open as long as the application runs."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        rounds = asyncio.get_running_loop().create_task(relay.hand_over_for_ever())
        yield
        rounds.cancel()
        with suppress(asyncio.CancelledError):
            await rounds
        await relay.commits.close()

    app = FastAPI(
        title="crowdveil relay",
        version=VERSION,
        summary="Passes sealed reports on to a poll's host: shuffled, in batches, without their senders.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # The ready-made pages load scripts from elsewhere.
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    add_error_handlers(app)
    app.include_router(_routes(relay))
    settings = relay.settings
    # The one added last sees a request first.
    app.add_middleware(BodyLimit, largest_report=max(SEALED_LENGTH, 1024))
    app.add_middleware(RateLimit, per_minute=settings.requests_per_minute, trusted_proxies=settings.trusted_proxies)
    app.add_middleware(Failures)
    app.add_middleware(
        CORSMiddleware,  # The voter's page comes from the host.
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
    stored: dict[int | str, dict[str, Any]] = {
        200: {"model": Receipt, "description": "The same was stored before."},
        201: {"model": Receipt, "description": "Stored, durably."},
        **documented(400, 403, 404, 409, 410),
    }
    body = {"requestBody": {"required": True, "content": {SEALED_TYPE: {"schema": {"type": "string"}}}}}

    @routes.get("/api/relay", response_model=RelayIdentity, responses=documented())
    def identity() -> dict[str, str]:
        """Tell by which key this relay signs its batches."""
        return {"public_key": store.verifying_key()}

    @routes.get("/api/polls/{poll}", response_model=RelayedPollBody, responses=documented(404))
    def get_poll(poll: str) -> dict[str, Any]:
        """Tell the key configuration of a poll, for devices to compare with the host's."""
        status = store.status(poll)
        configuration = status.poll.configuration
        state = status.state(relay.today())
        rest = store.waiting(poll) if state is State.CLOSED else 0
        return {
            "configuration": configuration.as_dict(),
            "fingerprint": configuration.fingerprint,
            "epsilon": status.poll.epsilon,
            "state": state.value,
            "never_released": rest if 0 < rest < configuration.batch else None,
        }

    @routes.put("/api/polls/{poll}/report", status_code=201, responses=stored, openapi_extra=body)
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
        return JSONResponse(asdict(Receipt(id, outcome, None, None)), 201 if outcome is Status.STORED else 200)

    @routes.get(
        "/api/polls/{poll}/participation",
        response_model=RelayParticipation,
        responses=documented(400, 403, 404, 410),
    )
    def check(poll: str, token: Token = None) -> dict[str, str]:
        """Tell whether a ballot token can still be used, and whether what was sent with it is still here."""
        found = store.check(poll, id_of_token(token))
        if isinstance(found, Reason) and found is not Reason.HANDED_OVER:
            raise Refusal(found, REFUSED[found])
        return {"status": "unused" if found is None else "handed-over" if isinstance(found, Reason) else "stored"}

    @routes.delete("/api/polls/{poll}/participation", status_code=204, responses=documented(400, 404, 410))
    def withdraw(poll: str, token: Token = None) -> Response:
        """Erase what was sent with a ballot token, before it is handed over, and never accept the token again."""
        if not store.withdraw(poll, id_of_token(token)):
            raise Refusal(Reason.NOTHING_STORED, f"nothing is stored for this ballot token in poll {poll}")
        return Response(status_code=204)

    @routes.get("/healthz", response_model=Health)
    def healthz() -> JSONResponse:
        """Tell whether the database answers."""
        return health_of(store.database)

    @routes.get("/", include_in_schema=False)
    def front() -> HTMLResponse:
        """Say what this is."""
        return HTMLResponse(_FRONT)

    return routes


_FRONT = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A relay of crowdveil</title></head><body><main>'
    "<h1>A relay of crowdveil</h1><p>Voters' devices send their reports here, sealed to the host of a poll. This "
    "relay knows who sends and cannot read what. It hands the reports over to the host in large batches, shuffled, "
    "without names, addresses or times, and erases them. The host can read the reports and does not know whose they "
    "are.</p></main></body></html>"
)
