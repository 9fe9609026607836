"""Faults of the service: logged, and answered without a word of what went wrong inside."""

from __future__ import annotations

from sqlalchemy.exc import SQLAlchemyError
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdveil.errors import Reason
from crowdveil.service.api.errors import error_response
from crowdveil.service.middleware.logs import log_failure


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
