"""Every error of the API has one shape: a reason from a fixed list, and a message for the person who must fix it."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from crowdveil.errors import CrowdveilError, Reason, Refusal


class Problem(BaseModel):
    """A fault, by its reason and in words."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason
    message: str


class ErrorBody(BaseModel):
    """The body of every answer that is not a success."""

    model_config = ConfigDict(extra="forbid")

    error: Problem


_STATUS = {
    Reason.MISSING_BALLOT: 400,
    Reason.BAD_BALLOT: 400,
    Reason.BAD_REQUEST: 400,
    Reason.UNKNOWN_BALLOT: 403,
    Reason.BAD_SIGNATURE: 403,
    Reason.UNKNOWN_POLL: 404,
    Reason.UNKNOWN_LANGUAGE: 404,
    Reason.UNKNOWN_RELEASE: 404,
    Reason.NOTHING_STORED: 404,
    Reason.NOT_FOUND: 404,
    Reason.METHOD_NOT_ALLOWED: 405,
    Reason.WRONG_PLACE: 409,
    Reason.DIFFERENT_REPORT: 409,
    Reason.CLOSED: 410,
    Reason.NOT_OPEN_YET: 410,
    Reason.FULL: 410,
    Reason.WITHDRAWN: 410,
    Reason.HANDED_OVER: 410,
    Reason.TOO_LARGE: 413,
    Reason.TOO_MANY_REQUESTS: 429,
    Reason.INTERNAL: 500,
    Reason.UNAVAILABLE: 503,
}
"""How the API answers a refusal; every other reason is about what was sent, which is 422."""
_OF_STATUS = {
    404: (Reason.NOT_FOUND, ": see /api/openapi.json for what there is"),
    405: (Reason.METHOD_NOT_ALLOWED, ": see /api/openapi.json for what there is"),
    413: (Reason.TOO_LARGE, ""),
}
_ALWAYS = (413, 422, 429, 500, 503)
_TOLD = {
    400: "The ballot token is missing or is none.",
    403: "The poll takes links that were made for it, and this token is none; or the batch is not its relay's.",
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
    """Describe the errors that an operation can answer with, beside those that any can.

    The framework works out the model of each answer of each operation: here once an operation, and by reference else.
    """
    reference = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorBody.__name__}"}}}
    described = {status: {"description": _TOLD[status]} for status in sorted({*statuses, *_ALWAYS})}
    shape: dict[int, dict[str, Any]] = {500: {"model": ErrorBody}}
    return {status: {**told, **shape.get(status, {"content": reference})} for status, told in described.items()}


def error_response(
    reason: Reason, message: str, headers: dict[str, str] | None = None, status: int | None = None
) -> JSONResponse:
    """Return an error in the one shape; the status is the reason's unless the framework has chosen one."""
    body = {"error": {"reason": reason.value, "message": message}}
    return JSONResponse(body, status or _STATUS.get(reason, 422), headers)


def add_error_handlers(app: FastAPI) -> None:
    """Answer every request that is at fault in the one shape; ``middleware.logs`` does so where the service is."""

    @app.exception_handler(Refusal)
    def refused(_: Request, error: Refusal) -> Response:
        return error_response(error.reason, error.message)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return error_response(Reason.MALFORMED, f"{place}: {first['msg']} (see /api/openapi.json)")

    @app.exception_handler(CrowdveilError)
    def mistaken(_: Request, error: CrowdveilError) -> Response:
        return error_response(Reason.MALFORMED, str(error))

    @app.exception_handler(HTTPException)
    def other(_: Request, error: HTTPException) -> Response:
        if error.status_code == 400:  # How the framework answers a body that is no text.
            return error_response(Reason.MALFORMED, "the body must be JSON (see /api/openapi.json)")
        reason, hint = _OF_STATUS.get(error.status_code, (Reason.BAD_REQUEST, ""))
        return error_response(reason, f"{error.detail}{hint}", dict(error.headers or {}), error.status_code)
