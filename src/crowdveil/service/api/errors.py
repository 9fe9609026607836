"""Errors of the API, all in one shape: a reason from a fixed list, and a message for the person who must fix it."""

from __future__ import annotations

from json import JSONDecodeError
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from crowdveil.errors import CrowdveilError, Reason, Refusal


class Problem(BaseModel):
    """An error: its reason, and a message in words."""

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
"""Status code for each reason. Every other reason is about the content that was sent, which is 422."""
_OF_STATUS = {
    404: (Reason.NOT_FOUND, ": see /api/openapi.json for what exists"),
    405: (Reason.METHOD_NOT_ALLOWED, ": see /api/openapi.json for what exists"),
    413: (Reason.TOO_LARGE, ""),
}
_ALWAYS = (404, 413, 422, 429, 500, 503)
"""Any address may be one with a NUL, which does not exist."""
_TOLD = {
    400: "The ballot token is missing or invalid.",
    403: "The poll accepts only its own links, and this token is not from one; or the batch is not from its relay.",
    404: "What was asked for does not exist.",
    409: "Something else is stored for this token, or something else must be sent.",
    410: "The poll accepts no answers (any more).",
    413: "The body is too large.",
    422: "The request does not match this description.",
    429: "Too many requests from one address; Retry-After says when to come back.",
    500: "An error in the service.",
    503: "The database does not answer.",
}


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe the errors of an operation, in addition to those that every operation can return.

    The framework builds a model for each answer of each operation. So only one answer of an operation has the model
    itself, and the others refer to it.
    """
    reference = {"application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorBody.__name__}"}}}
    described = {status: {"description": _TOLD[status]} for status in sorted({*statuses, *_ALWAYS})}
    shape: dict[int, dict[str, Any]] = {500: {"model": ErrorBody}}
    return {status: {**told, **shape.get(status, {"content": reference})} for status, told in described.items()}


def error_response(
    reason: Reason, message: str, headers: dict[str, str] | None = None, status: int | None = None
) -> JSONResponse:
    """Return an error response; its status is that of the reason unless the framework has chosen one."""
    body = {"error": {"reason": reason.value, "message": message}}
    return JSONResponse(body, status or _STATUS.get(reason, 422), headers)


def add_error_handlers(app: FastAPI) -> None:
    """Answer every faulty request in the one shape; ``server.Failures`` does so if the service is at fault."""

    @app.exception_handler(Refusal)
    def refused(_: Request, error: Refusal) -> Response:
        return error_response(error.reason, error.message)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        if first["type"] == "json_invalid":  # The place is a character, and the reason stands apart.
            why = JSONDecodeError(first["ctx"]["error"], str(error.body), first["loc"][-1])
            return error_response(Reason.MALFORMED, f"the body is not JSON: {why} (see /api/openapi.json)")
        place = ".".join(str(part) for part in first["loc"])
        return error_response(Reason.MALFORMED, f"{place}: {first['msg']} (see /api/openapi.json)")

    @app.exception_handler(CrowdveilError)
    def mistaken(_: Request, error: CrowdveilError) -> Response:
        return error_response(Reason.MALFORMED, str(error))

    @app.exception_handler(HTTPException)
    def other(_: Request, error: HTTPException) -> Response:
        if error.status_code == 400:  # The framework's answer to a body that is not text.
            return error_response(Reason.MALFORMED, "the body must be JSON (see /api/openapi.json)")
        reason, hint = _OF_STATUS.get(error.status_code, (Reason.BAD_REQUEST, ""))
        return error_response(reason, f"{error.detail}{hint}", dict(error.headers or {}), error.status_code)
