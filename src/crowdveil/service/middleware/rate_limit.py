"""So many requests a minute from one address, and so many attempts to sign in, counted in memory and nowhere else.

An address is hashed with a key that the process draws at its start and never shows; of an IPv6 address, its network
(/64) counts. Each worker process counts for itself.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Receive, Scope, Send

from crowdveil.errors import Reason
from crowdveil.service.api.errors import error_response

MOST_ADDRESSES = 100_000
MOST_ATTEMPTS = 5
"""To sign in, that failed, within WINDOW_SECONDS."""
WINDOW_SECONDS = 15 * 60
MOST_VISITORS = 10_000


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
        key = hashed(address, self._key)
        tokens, then = self._levels.pop(key, (self._size, now))
        tokens = min(self._size, tokens + (now - then) * self._per_second)
        self._levels[key] = (tokens - 1 if tokens >= 1 else tokens, now)
        if len(self._levels) > MOST_ADDRESSES:
            self._levels.pop(next(iter(self._levels)))  # Who was heard of longest ago.
        return 0 if tokens >= 1 else math.ceil((1 - tokens) / self._per_second)


@dataclass(frozen=True)
class Attempts:
    """Failed attempts to sign in, by a keyed hash of the visitor's address."""

    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _failed: dict[bytes, deque[float]] = field(default_factory=lambda: defaultdict(deque), repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def wait(self, address: str, now: float) -> int:
        """Return how many seconds the visitor has to wait before the next attempt; mostly 0."""
        with self._lock:
            failed = self._recent(hashed(address, self._key), now)
            return 0 if len(failed) < MOST_ATTEMPTS else max(1, int(failed[0] + WINDOW_SECONDS - now) + 1)

    def failed(self, address: str, now: float) -> None:
        """Note a failed attempt."""
        with self._lock:
            if len(self._failed) >= MOST_VISITORS:
                self._forget(now)
            self._recent(hashed(address, self._key), now).append(now)

    def _recent(self, name: bytes, now: float) -> deque[float]:
        failed = self._failed[name]
        while failed and failed[0] <= now - WINDOW_SECONDS:
            failed.popleft()
        return failed

    def _forget(self, now: float) -> None:
        for name in list(self._failed):
            if not self._recent(name, now):
                del self._failed[name]


def hashed(address: str, key: bytes) -> bytes:
    """Hash what a visitor cannot change at will: an IPv4 address, or the network (/64) of an IPv6 one."""
    try:
        parsed = ipaddress.ip_address(address)
        known = parsed.packed if parsed.version == 4 else parsed.packed[:8]
    except ValueError:
        known = address.encode()
    return hashlib.blake2b(known, key=key, digest_size=16).digest()


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
