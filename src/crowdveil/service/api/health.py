"""Whether the service can do its work, for whoever watches over it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from crowdveil.service.api.errors import documented
from crowdveil.service.api.models import Health
from crowdveil.service.service import Service
from crowdveil.service.store.database import Database


def health_routes(service: Service) -> APIRouter:
    """Return /healthz."""
    routes = APIRouter(tags=["operations"])
    unwell: dict[int | str, dict[str, Any]] = {503: {"model": Health, "description": "The database does not answer."}}

    @routes.get("/healthz", response_model=Health, responses={**documented(), **unwell})
    def healthz() -> JSONResponse:
        """Tell whether the database answers."""
        return health_of(service.store.database)

    return routes


def health_of(database: Database) -> JSONResponse:
    """Return the answer for a database that answers, or does not."""
    if database.responds():
        return JSONResponse({"status": "ok", "database": "ok"})
    return JSONResponse({"status": "unavailable", "database": "does-not-answer"}, 503)
