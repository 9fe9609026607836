"""Routes for releases and decisions, by which an AI asks the crowd. A decision reads a release and nothing else."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from crowdveil.decision import decide
from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.protocol.decisions import CURRENT, LATEST, read_dilemma, summarise_release, write_decision
from crowdveil.service.api.errors import documented
from crowdveil.service.api.models import (
    BatchAnswer,
    BatchRequest,
    DecisionBody,
    DecisionRequest,
    DilemmaBody,
    EffectsList,
    ReleaseList,
)
from crowdveil.service.api.polls import status_of
from crowdveil.service.service import Service
from crowdveil.service.store.polls import PollStatus
from crowdveil.service.store.releases import StoredEffects, StoredRelease

_IDS = "A release's id (64 hexadecimal digits), `current` (the one that the poll's decisions use) or `latest`."
ReleaseId = Annotated[str, Path(description=_IDS)]
AnyReleaseId = Annotated[str, Path(description=f"{_IDS} The two words work only on a server with one poll.")]

_FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "The release file."}
}
_SPARSE: dict[str, Any] = {"response_model_exclude_unset": True}
"""Leaves out unset fields: a delta appears only if there is one."""


def release_routes(service: Service) -> APIRouter:
    """Return the routes for releases: of a named poll, and of a server with only one poll."""
    routes = APIRouter(prefix="/api", tags=["releases and decisions"])
    read: dict[str, Any] = {"response_class": Response, "responses": {**_FILE, **documented(404)}}
    one: dict[str, Any] = {"response_model": DecisionBody, "responses": documented(404), **_SPARSE}
    many: dict[str, Any] = {"response_model": BatchAnswer, "responses": documented(404), **_SPARSE}

    @routes.get("/releases", response_model=ReleaseList, responses=documented())
    def list_releases(poll: Annotated[str | None, Query(description="Only of this poll.")] = None) -> dict[str, Any]:
        """List the releases of the polls that are listed, or of one poll, newest first."""
        return _list(service, poll)

    @routes.get("/polls/{poll}/releases", response_model=ReleaseList, responses=documented(404))
    def list_poll_releases(poll: str) -> dict[str, Any]:
        """List the releases of a poll, newest first."""
        status_of(service, poll)
        return _list(service, poll)

    @routes.get("/releases/{release}", **read)
    def get_release(release: AnyReleaseId) -> Response:
        """Return a release file: the crowd's parameter with its guarantee and the distribution of its noise."""
        return Response(_find(service, None, release).file, media_type="application/json")

    @routes.get("/polls/{poll}/releases/{release}", **read)
    def get_poll_release(poll: str, release: ReleaseId) -> Response:
        """Return a release file of a poll."""
        return Response(_find(service, poll, release).file, media_type="application/json")

    @routes.get("/polls/{poll}/effects", response_model=EffectsList, responses=documented(404))
    def list_effects(poll: str) -> dict[str, Any]:
        """List the effects of a poll, newest first: how often each side was preferred, perhaps by group."""
        status_of(service, poll)
        return {"effects": [_summarise_effects(stored) for stored in service.store.effects.all(poll)]}

    @routes.get("/effects/{effects}", **read)
    def get_effects(effects: Annotated[str, Path(description="Their id (64 hexadecimal digits).")]) -> Response:
        """Return a file of effects. It cannot be used for decisions."""
        stored = service.store.effects.get(effects)
        if stored is None:
            message = f"there are no effects {effects!r}: GET /api/polls/POLL/effects lists them"
            raise Refusal(Reason.UNKNOWN_RELEASE, message)
        return Response(stored.file, media_type="application/json")

    @routes.post("/releases/{release}/decisions", **one)
    def decide_one(release: AnyReleaseId, asked: DecisionRequest) -> dict[str, Any]:
        """Decide a dilemma."""
        return _decide(service, _find(service, None, release), asked, asked.certainty)

    @routes.post("/polls/{poll}/releases/{release}/decisions", **one)
    def decide_one_by_poll(poll: str, release: ReleaseId, asked: DecisionRequest) -> dict[str, Any]:
        """Decide a dilemma as the voters of a poll would."""
        return _decide(service, _find(service, poll, release), asked, asked.certainty)

    @routes.post("/releases/{release}/decisions/batch", **many)
    def decide_many(release: AnyReleaseId, asked: BatchRequest) -> dict[str, Any]:
        """Decide many dilemmas."""
        return _decide_all(service, _find(service, None, release), asked)

    @routes.post("/polls/{poll}/releases/{release}/decisions/batch", **many)
    def decide_many_by_poll(poll: str, release: ReleaseId, asked: BatchRequest) -> dict[str, Any]:
        """Decide many dilemmas as the voters of a poll would."""
        return _decide_all(service, _find(service, poll, release), asked)

    return routes


def _summarise_effects(stored: StoredEffects) -> dict[str, Any]:
    made = stored.read()
    return {
        "id": stored.id,
        "poll": stored.poll,
        "made_on": stored.made_on.isoformat(),
        "question": made.effects.question,
        "groups": [group.label for group in made.effects.groups if group.label],
        "voters": made.guarantee.voters,
        "paradigm": made.guarantee.paradigm.name,
        "epsilon": made.guarantee.epsilon.value,
    }


def _only_poll(service: Service) -> PollStatus:
    """Return the server's only poll. Refuse if there are more: one poll's release must not decide for another poll."""
    statuses = service.store.polls.listed()
    if len(statuses) != 1:
        names = ", ".join(status.poll.name for status in statuses) or "none"
        raise Refusal(
            Reason.UNKNOWN_POLL,
            f"name the poll whose voters should decide, as in /api/polls/POLL/releases/{CURRENT}; there are: {names}",
        )
    return statuses[0]


def _find(service: Service, poll: str | None, release: str) -> StoredRelease:
    """Return a release of a poll; without a poll, find it by its id, or in the server's only poll."""
    wanted: str | None = release
    if poll is not None or release in (CURRENT, LATEST):
        status = _only_poll(service) if poll is None else status_of(service, poll)
        poll = status.poll.name
        wanted = {CURRENT: status.current_release, LATEST: status.latest_release}.get(release, release)
    if wanted is None:
        raise Refusal(Reason.UNKNOWN_RELEASE, f"poll {poll!r} has no release yet: ask again when its host has made one")
    stored = service.store.releases.get(wanted)
    if stored is None or (poll is not None and stored.poll != poll):
        where = "/api/releases" if poll is None else f"/api/polls/{poll}/releases"
        raise Refusal(Reason.UNKNOWN_RELEASE, f"there is no release {release!r}: GET {where} lists them")
    return stored


def _decide(service: Service, stored: StoredRelease, asked: DilemmaBody, certainty: float) -> dict[str, Any]:
    release = service.read(stored)
    try:
        dilemma = read_dilemma(release.study, asked.alternatives)
    except CrowdveilError as error:
        raise Refusal(Reason.WRONG_DILEMMA, str(error)) from None
    return write_decision(decide(release, dilemma, certainty), stored.id)


def _decide_all(service: Service, stored: StoredRelease, asked: BatchRequest) -> dict[str, Any]:
    return {"decisions": [_decide(service, stored, dilemma, asked.certainty) for dilemma in asked.dilemmas]}


def _list(service: Service, poll: str | None) -> dict[str, Any]:
    statuses = [status for status in service.store.polls.all() if poll is not None or status.listed]
    current = {status.poll.name: status.current_release for status in statuses}
    return {
        "releases": [
            {
                **summarise_release(service.read(stored)),
                "poll": stored.poll,
                "made_on": stored.made_on.isoformat(),
                "current": stored.id == current[stored.poll],
            }
            for stored in service.store.releases.all(poll)
            if stored.poll in current
        ]
    }
