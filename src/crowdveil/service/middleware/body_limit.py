"""No body is taken in beyond its limit, whatever its header says."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdveil.errors import Reason
from crowdveil.protocol.relay import LARGEST_HAND_OVER, SEALED_LENGTH
from crowdveil.service.api.errors import error_response

LARGEST_OTHER = 1 << 20
"""Of what is neither a report nor a ballot: dilemmas to decide, a host's files."""
LARGEST_BATCH_BYTES = LARGEST_HAND_OVER * SEALED_LENGTH
"""Of what a relay hands over at once."""
_BATCH = re.compile(r"/api/polls/[^/]+/batches/[^/]+")


class BodyLimit:
    """Refuses larger bodies, by what they announce and by what arrives."""

    def __init__(self, app: ASGIApp, largest_report: int) -> None:
        self._app = app
        self._largest_report = largest_report

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a body of bounded size."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, send)
            return
        largest = self._largest_report if scope["method"] == "PUT" else LARGEST_OTHER
        if _BATCH.fullmatch(scope["path"]):
            largest = LARGEST_BATCH_BYTES
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        told = f"the body is too large: at most {largest} bytes are read"
        if not announced.isdigit() or int(announced) > largest:
            if announced.isdigit() and int(announced) <= LARGEST_OTHER:
                await _let_pass(receive)
            await error_response(Reason.TOO_LARGE, told)(scope, receive, send)
            return
        read = 0

        async def count() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > largest:
                raise HTTPException(413, told)
            return message

        await self._app(scope, count, send)


async def _let_pass(receive: Receive) -> None:
    """Let a body go by. A proxy that is still sending when the connection ends would never read why."""
    while (message := await receive())["type"] == "http.request" and message.get("more_body", False):
        pass
