"""So many requests a minute from one address, counted in memory and nowhere else.

An address is hashed with a key that the process draws at its start and never shows; of an IPv6 address, its network
(/64) counts. Each worker process counts for itself.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import secrets
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from crowdveil.errors import Reason
from crowdveil.service.api.errors import error_response

MOST_ADDRESSES = 100_000


class Buckets:
    """A bucket of tokens for each address: it fills at a steady rate, and a request takes one out."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._size, self._clock = per_minute / 60, float(per_minute), clock
        self._key = secrets.token_bytes(32)
        self._levels: dict[bytes, tuple[float, float]] = {}
        """Hashed address -> (tokens, when that was counted)."""

    def take(self, address: str) -> int:
        """Take a token: 0 if there was one, else the seconds until there is."""
        now = self._clock()
        key = self._hashed(address)
        tokens, then = self._levels.pop(key, (self._size, now))
        tokens = min(self._size, tokens + (now - then) * self._per_second)
        self._levels[key] = (tokens - 1 if tokens >= 1 else tokens, now)
        if len(self._levels) > MOST_ADDRESSES:
            self._levels.pop(next(iter(self._levels)))  # Who was heard of longest ago.
        return 0 if tokens >= 1 else math.ceil((1 - tokens) / self._per_second)

    def _hashed(self, address: str) -> bytes:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return hashlib.blake2b(address.encode(), key=self._key, digest_size=16).digest()
        known = parsed.packed if parsed.version == 4 else parsed.packed[:8]
        return hashlib.blake2b(known, key=self._key, digest_size=16).digest()


def client_address(scope: Scope, trusted_proxies: int) -> str:
    """Return where a request came from: as the outermost trusted proxy saw it, or the connection itself."""
    direct = str((scope.get("client") or ("unknown", 0))[0])
    if not trusted_proxies:
        return direct
    told = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for").decode("latin-1")
    seen = [part.strip() for part in told.split(",") if part.strip()]
    return seen[-trusted_proxies] if len(seen) >= trusted_proxies else direct


class RateLimit:
    """Refuses an address that asks too often."""

    def __init__(self, app: ASGIApp, per_minute: int, trusted_proxies: int) -> None:
        self._app = app
        self._buckets = Buckets(per_minute)
        self._proxies = trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http":
            address = client_address(scope, self._proxies)
            free = not self._proxies and address in ("127.0.0.1", "::1")
            wait = 0 if free else self._buckets.take(address)
            if wait:
                message = f"too many requests from your address: try again in {wait} seconds"
                refusal = error_response(Reason.TOO_MANY_REQUESTS, message, {"Retry-After": str(wait)})
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
