"""Logs as lines of JSON, without personal data: no address, no token, no path as it was asked for, no body.

Faults of the service are logged, and answered without a word of what went wrong inside.

A line names the route by its pattern, and a failure by its type and the lines of code it came through. The words of an
exception are left out: they may quote what was sent.
"""

from __future__ import annotations

import json
import logging
import time
import traceback
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdveil.errors import Reason
from crowdveil.service.api.errors import error_response

REQUESTS = logging.getLogger("crowdveil.service")


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": record.getMessage() if record.exc_info is None else "failure",
            **getattr(record, "told", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line |= _told_of(record.exc_info[1])
        return json.dumps(line)


def logging_config(level: str) -> dict[str, Any]:
    """Return the configuration of ``logging`` for the service and the server below it."""
    loggers = {
        name: {"handlers": ["stderr"], "level": level.upper(), "propagate": False} for name in ("crowdveil", "uvicorn")
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": JsonLines}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "loggers": loggers,
    }


def log_failure(error: Exception) -> None:
    """Log a failure without its words."""
    REQUESTS.error("failure", extra={"told": _told_of(error)})


class RequestLog:
    """Logs one line for each request: method, route, status and how long it took."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and log it."""
        if scope["type"] != "http" or not REQUESTS.isEnabledFor(logging.INFO):
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status = 500

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note)
        finally:
            told = {
                "method": scope["method"],
                "route": getattr(scope.get("route"), "path", None),
                "status": status,
                "milliseconds": round(1000 * (time.perf_counter() - begun), 1),
            }
            REQUESTS.info("request", extra={"told": told})


def _told_of(error: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(error.__traceback__)
    return {"error": type(error).__name__, "where": [f"{frame.filename}:{frame.lineno}" for frame in frames]}


class Failures:
    """Answers 503 where the database fails, and 500 where anything else does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and answer it if nobody else does."""
        begun = False

        async def note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, note)
        except Exception as error:
            if scope["type"] != "http":
                raise
            log_failure(error)
            if not begun:
                await _answer(error)(scope, receive, send)


def _answer(error: Exception) -> ASGIApp:
    if isinstance(error, SQLAlchemyError):
        return error_response(Reason.UNAVAILABLE, "the database does not answer: try again", {"Retry-After": "5"})
    return error_response(Reason.INTERNAL, "a fault of the service: it has been logged")
