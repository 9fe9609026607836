"""Every error of the API has one shape: a reason from a fixed list, and a message for the person who must fix it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from crowdveil.errors import CrowdveilError


class Reason(StrEnum):
    """Why a request was not answered as asked."""

    MISSING_BALLOT = "missing-ballot"
    BAD_BALLOT = "bad-ballot"
    UNKNOWN_BALLOT = "unknown-ballot"
    UNKNOWN_POLL = "unknown-poll"
    UNKNOWN_LANGUAGE = "unknown-language"
    UNKNOWN_RELEASE = "unknown-release"
    NOTHING_STORED = "nothing-stored"
    NOT_FOUND = "not-found"
    METHOD_NOT_ALLOWED = "method-not-allowed"
    WRONG_PLACE = "wrong-place"
    DIFFERENT_REPORT = "different-report"
    CLOSED = "closed"
    NOT_OPEN_YET = "not-open-yet"
    FULL = "full"
    WITHDRAWN = "withdrawn"
    TOO_LARGE = "too-large"
    MALFORMED = "malformed"
    WRONG_STUDY = "wrong-study"
    WRONG_MECHANISM = "wrong-mechanism"
    WRONG_EPSILON = "wrong-epsilon"
    WRONG_SIZE = "wrong-size"
    OUT_OF_RANGE = "out-of-range"
    WRONG_ABOUT = "wrong-about"
    WRONG_DILEMMA = "wrong-dilemma"
    TOO_MANY_REQUESTS = "too-many-requests"
    BAD_REQUEST = "bad-request"
    INTERNAL = "internal"
    UNAVAILABLE = "unavailable"


class Problem(BaseModel):
    """What went wrong."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason
    message: str


class ErrorBody(BaseModel):
    """The body of every answer that is not a success."""

    model_config = ConfigDict(extra="forbid")

    error: Problem


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


_OF_STATUS = {
    404: (Reason.NOT_FOUND, ": see /api/openapi.json for what there is"),
    405: (Reason.METHOD_NOT_ALLOWED, ": see /api/openapi.json for what there is"),
    413: (Reason.TOO_LARGE, ""),
}
_ALWAYS = (413, 422, 429, 500, 503)
_TOLD = {
    400: "The ballot token is missing or is none.",
    403: "The poll takes links made by its host, and this token is none of them.",
    404: "There is no such thing.",
    409: "Something else is stored, or would have to be sent, for this token.",
    410: "The poll takes no answers (any more).",
    413: "The body is too large.",
    422: "The request is not as described here.",
    429: "Too many requests from one address; Retry-After says when to come back.",
    500: "A fault of the service.",
    503: "The database does not answer.",
}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the errors that an operation can answer with, beside those that any can."""
    return {status: {"model": ErrorBody, "description": _TOLD[status]} for status in sorted({*statuses, *_ALWAYS})}


def error_response(status: int, reason: Reason, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return an error in the one shape."""
    return JSONResponse({"error": {"reason": reason.value, "message": message}}, status, headers)


def add_error_handlers(app: FastAPI) -> None:
    """Answer every request that is at fault in the one shape. (``edge.failures`` does so where the service is.)"""

    @app.exception_handler(Refused)
    def refused(_: Request, error: Refused) -> Response:
        return error_response(error.status, error.reason, error.message)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return error_response(422, Reason.MALFORMED, f"{place}: {first['msg']} (see /api/openapi.json)")

    @app.exception_handler(CrowdveilError)
    def mistaken(_: Request, error: CrowdveilError) -> Response:
        return error_response(422, Reason.MALFORMED, str(error))

    @app.exception_handler(HTTPException)
    def other(_: Request, error: HTTPException) -> Response:
        if error.status_code == 400:  # How the framework answers a body that is no text.
            return error_response(422, Reason.MALFORMED, "the body must be JSON (see /api/openapi.json)")
        reason, hint = _OF_STATUS.get(error.status_code, (Reason.BAD_REQUEST, ""))
        return error_response(error.status_code, reason, f"{error.detail}{hint}", dict(error.headers or {}))
