"""Releases and decisions: what an AI asks the crowd. A decision reads a release and nothing else."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import Response

from crowdveil.decision import decide
from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.service.api.errors import documented
from crowdveil.service.api.models import (
    BatchAnswer,
    BatchRequest,
    DecisionBody,
    DecisionRequest,
    DilemmaBody,
    ReleaseList,
)
from crowdveil.service.service import Service
from crowdveil.service.store.releases import StoredRelease

ReleaseId = Annotated[str, Path(description="A release's id (64 hexadecimal digits), or `latest`.")]

_FILE = {"content": {"application/json": {"schema": {"type": "object"}}}, "description": "The release file."}


def release_routes(service: Service) -> APIRouter:
    """Return the routes under /api/releases."""
    routes = APIRouter(prefix="/api/releases", tags=["releases and decisions"])

    @routes.get("", response_model=ReleaseList, responses=documented())
    def list_releases(
        poll: Annotated[str | None, Query(description="Only this poll's.")] = None,
    ) -> dict[str, Any]:
        """List the releases, newest first."""
        return {"releases": [_summary(stored, service) for stored in service.store.releases.all(poll)]}

    @routes.get("/{release}", response_class=Response, responses={200: _FILE, **documented(404)})
    def get_release(release: ReleaseId) -> Response:
        """Give a release file: the crowd's parameter with its guarantee and the law of its noise."""
        return Response(_find(service, release).file, media_type="application/json")

    @routes.post("/{release}/decisions", response_model=DecisionBody, responses=documented(404), **_SPARSE)
    def decide_one(release: ReleaseId, asked: DecisionRequest) -> dict[str, Any]:
        """Decide a dilemma."""
        return _decide(service, _find(service, release), asked, asked.certainty)

    @routes.post("/{release}/decisions/batch", response_model=BatchAnswer, responses=documented(404), **_SPARSE)
    def decide_many(release: ReleaseId, asked: BatchRequest) -> dict[str, Any]:
        """Decide many dilemmas."""
        stored = _find(service, release)
        return {"decisions": [_decide(service, stored, dilemma, asked.certainty) for dilemma in asked.dilemmas]}

    return routes


_SPARSE: dict[str, Any] = {"response_model_exclude_unset": True}
"""A delta is named only where there is one."""


def _find(service: Service, release: str) -> StoredRelease:
    stored = service.store.releases.get(release)
    if stored is None:
        raise Refusal(Reason.UNKNOWN_RELEASE, f"there is no release {release!r}: GET /api/releases lists them")
    return stored


def _decide(service: Service, stored: StoredRelease, asked: DilemmaBody, certainty: float) -> dict[str, Any]:
    release = service.read(stored)
    alternatives = [alternative.model_dump(exclude_none=True) for alternative in asked.alternatives]
    try:
        dilemma = release.study.dilemma(alternatives)
    except CrowdveilError as error:
        raise Refusal(Reason.WRONG_DILEMMA, str(error)) from None
    return {**decide(release, dilemma, certainty).as_dict(), "release": stored.id}


def _summary(stored: StoredRelease, service: Service) -> dict[str, Any]:
    release = service.read(stored)
    return {
        "id": stored.id,
        "poll": stored.poll,
        "study": release.study.name,
        "title": release.study.title,
        "paradigm": release.guarantee.paradigm.name,
        "mechanism": release.mechanism,
        "epsilon": release.guarantee.epsilon.value,
        "voters": release.guarantee.voters,
        "made_on": stored.made_on.isoformat(),
    }
