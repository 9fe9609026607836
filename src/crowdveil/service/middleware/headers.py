"""Security headers on every answer. Nothing of a page may come from elsewhere, and nobody may frame it."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send


def content_security_policy(*relays: str) -> str:
    """Return the policy of a page: it speaks with its own server only, and with the relays that are named."""
    sources = " ".join(("'self'", *relays))
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        f"connect-src {sources}; "
        "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


CONTENT_SECURITY_POLICY = content_security_policy()
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_BY_HTTPS = {"Strict-Transport-Security": "max-age=31536000"}


class SecurityHeaders:
    """Adds the headers. What is not static is never kept by a cache."""

    def __init__(self, app: ASGIApp, https: bool) -> None:
        self._app = app
        added = {**_HEADERS, **(_BY_HTTPS if https else {})}
        self._added = [(name.lower().encode(), value.encode()) for name, value in added.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and add the headers to its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(one for one in self._added if one[0] not in said)]
                headers = MutableHeaders(raw=message["headers"])
                if "cache-control" not in headers:
                    headers["Cache-Control"] = "no-store"
            await send(message)

        await self._app(scope, receive, add)
