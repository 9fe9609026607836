"""Routes for polls, their texts and their dilemmas, which a voter's page requests; and for the service's health."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.protocol.description import describe_poll
from crowdveil.protocol.polls import PollSummary
from crowdveil.protocol.relay import describe_relay
from crowdveil.protocol.submission import write_session
from crowdveil.service.api.errors import documented
from crowdveil.service.api.models import Health, PollDescription, PollList, Session, Words
from crowdveil.service.poll import HostedPoll
from crowdveil.service.server import only_head
from crowdveil.service.service import Service
from crowdveil.service.store.database import Database
from crowdveil.service.store.polls import STARTED, PollStatus
from crowdveil.study.drawing import draw_session
from crowdveil.study.translations import languages, words

Example = Annotated[bool, Query(description="Whether the dilemmas are only an example: then no start is counted.")]


def poll_routes(service: Service) -> APIRouter:
    """Return the routes under /api/polls that only read."""
    routes = APIRouter(prefix="/api/polls", tags=["polls"])

    @routes.get("", response_model=PollList, responses=documented())
    def list_polls() -> dict[str, Any]:
        """List the polls."""
        return {"polls": [_summary(status, service) for status in service.store.polls.listed()]}

    @routes.get("/{poll}", response_model=PollDescription, responses=documented(404))
    def get_poll(poll: str) -> dict[str, Any]:
        """Describe a poll: what is asked, what is promised and what a device needs."""
        status = status_of(service, poll)
        found = status.poll
        spoken = languages(found.study, found.translations)
        state = status.state(service.today())
        return describe_poll(found, spoken, state, status.current_release, _relay(found, service), status.pilot)

    @routes.get("/{poll}/words/{language}", response_model=Words, responses=documented(404))
    def words_of_poll(poll: str, language: str) -> dict[str, Any]:
        """Return the study's texts in a language."""
        found = poll_named(service, poll)
        try:
            return words(found.study, language, found.translations)
        except CrowdveilError as error:
            raise Refusal(Reason.UNKNOWN_LANGUAGE, str(error)) from None

    @routes.get("/{poll}/session", response_model=Session, responses=documented(404))
    def draw(request: Request, poll: str, example: Example = False) -> dict[str, Any]:
        """Draw one voter's dilemmas. Nothing is stored except, in a poll without a relay, that somebody has started."""
        found = poll_named(service, poll)
        if not example and found.relay is None and not only_head(request.scope):
            service.store.steps.count(found.name, STARTED, service.today())
        # Without a seed, the generator takes one from the operating system.
        return write_session(draw_session(found.study, np.random.default_rng()))

    return routes


def poll_named(service: Service, name: str) -> HostedPoll:
    """Return a poll; refuse the request if there is none."""
    poll = service.store.polls.definition(name)
    if poll is None:
        raise _unknown_poll(name)
    return poll


def status_of(service: Service, name: str) -> PollStatus:
    """Return the current status of a poll; refuse the request if there is none."""
    status = service.store.polls.get(name)
    if status is None:
        raise _unknown_poll(name)
    return status


def _unknown_poll(name: str) -> Refusal:
    return Refusal(Reason.UNKNOWN_POLL, f"there is no poll {name!r}: GET /api/polls lists them")


def _relay(poll: HostedPoll, service: Service) -> dict[str, Any] | None:
    if poll.relay is None:
        return None
    opens_on = None if poll.opens_on is None else poll.opens_on.isoformat()
    return describe_relay(service.store.batches.key(poll).configuration, poll.quota, opens_on)


def _summary(status: PollStatus, service: Service) -> PollSummary:
    poll = status.poll
    return PollSummary(
        id=poll.name,
        title=poll.study.title,
        state=status.state(service.today()),
        paradigm=poll.paradigm.name,
        release=status.current_release,
    )


def health_routes(service: Service) -> APIRouter:
    """Return the route /healthz."""
    routes = APIRouter(tags=["operations"])
    unwell: dict[int | str, dict[str, Any]] = {503: {"model": Health, "description": "The database does not answer."}}

    @routes.get("/healthz", response_model=Health, responses={**documented(), **unwell})
    def healthz() -> JSONResponse:
        """Return whether the database answers."""
        return health_of(service.store.database)

    return routes


def health_of(database: Database) -> JSONResponse:
    """Return the response that says whether a database answers."""
    if database.responds():
        return JSONResponse({"status": "ok", "database": "ok"})
    return JSONResponse({"status": "unavailable", "database": "does-not-answer"}, 503)
