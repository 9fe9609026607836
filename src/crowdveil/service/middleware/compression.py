"""What a poll says of itself to everybody is compressed: it is public, and large on a slow connection.

Nothing else is: a compressed answer that holds a secret beside what somebody else may choose tells the secret by its
length.
"""

from __future__ import annotations

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

PUBLIC = ("/api/polls/", "/api/releases/")
SMALLEST = 500


class Compression:
    """Compresses the answers to what anybody may read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._compressed = GZipMiddleware(app, minimum_size=SMALLEST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        public = scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith(PUBLIC)
        await (self._compressed if public else self._app)(scope, receive, send)
