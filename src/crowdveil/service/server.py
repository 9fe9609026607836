"""The server that runs an application, and its middleware: logs, headers and limits.

Logs are lines of JSON without personal data: no address, no token, no requested path, no body. A line names the route
by its pattern, and a failure by its type and the lines of code it passed through. The message of an exception is left
out, because it may quote what was sent. The answer to a failure of the service says nothing about its cause.

Requests and failed attempts to sign in are counted by address, only in memory. An address is hashed with a key that the
process draws at its start and never reveals; for an IPv6 address, its network (/64) counts. Each worker process counts
for itself.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import logging
import math
import re
import secrets
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from socket import socket
from typing import Any

import uvicorn
from fastapi import FastAPI
from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Lifespan, Message, Receive, Scope, Send

from crowdveil.errors import CrowdveilError, Reason, plural
from crowdveil.protocol.relay import LARGEST_HAND_OVER, SEALED_LENGTH
from crowdveil.service.api.errors import add_error_handlers, error_response
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.static_files import Gzip
from crowdveil.version import VERSION

LARGEST_OTHER = 1 << 20
"""Maximum size in bytes of any other body than a report or ballot: dilemmas to decide, a host's files."""
LARGEST_BATCH_BYTES = LARGEST_HAND_OVER * SEALED_LENGTH
"""Maximum size in bytes of what a relay hands over at once."""
MOST_ADDRESSES = 100_000
PUBLIC = ("/api/polls/", "/api/releases/")
SMALLEST_COMPRESSED = 500
REQUESTS = logging.getLogger("crowdveil.service")
_ONLY_HEAD = "crowdveil.only_head"
_BATCH = re.compile(r"/api/polls/[^/]+/batches/[^/]+")


def new_application(title: str, summary: str, lifespan: Lifespan[FastAPI]) -> FastAPI:
    """Return an application without routes, which answers all errors in one shape."""
    app = FastAPI(
        title=title,
        version=VERSION,
        summary=summary,
        openapi_url="/api/openapi.json",
        docs_url=None,  # The framework's pages load scripts from other websites.
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    add_error_handlers(app)
    return app


def server_config(settings: ServiceSettings) -> dict[str, Any]:
    """Return the configuration of the server library."""
    return {
        "host": settings.listen,
        "port": settings.port,
        "log_config": logging_config(settings.log_level),
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": settings.stop_seconds,
        "proxy_headers": False,
    }


def run_server(config: uvicorn.Config, tell: Callable[[int], None], run: Callable[[list[socket]], object]) -> None:
    """Listen, call ``tell`` with the port, and run until a signal stops the server."""
    try:
        listening = config.bind_socket()
    except SystemExit:  # The server library's way to say that it cannot listen.
        raise CrowdveilError(
            f"cannot listen at {config.host}:{config.port}: it is in use, or not on this machine; choose another "
            "--port or --listen"
        ) from None
    tell(listening.getsockname()[1])
    # After an orderly stop, the server raises the signal that stopped it again. The database must still be closed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with suppress(KeyboardInterrupt):
        run([listening])


@contextmanager
def served_here(app: ASGIApp, port: int = 0) -> Iterator[str]:
    """Serve an application in a thread of this process, at this port or a free one; yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", proxy_headers=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=60)


class JsonLines(logging.Formatter):
    """A formatter that writes a record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
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
    """Return the configuration of ``logging`` for the service and the server library."""
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
    """Log a failure without its message."""
    REQUESTS.error("failure", extra={"told": _told_of(error)})


class RequestLog:
    """Middleware that logs one line for each request: method, route, status and duration."""

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
    """Middleware that answers 503 if the database fails, and 500 if anything else fails."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and answer it if that fails."""
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
    return error_response(Reason.INTERNAL, "an error in the service: it has been logged")


def content_security_policy(*relays: str, inside: Sequence[str] = ()) -> str:
    """Return the policy of a page that may connect only to its own server and to the given relays.

    Scripts and styles come from files of the server; an inlined one needs its hash in ``inside``.
    """
    files, sources = (" ".join(("'self'", *more)) for more in (inside, relays))
    return (
        f"default-src 'none'; script-src {files}; style-src {files}; img-src 'self' data:; connect-src {sources}; "
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
    """Middleware that adds security headers. No part of a page may come from another website, and none may frame it.

    A cache never keeps a response that is not static.
    """

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


class PlainAddresses:
    """Middleware that refuses an address with the character NUL, which PostgreSQL cannot look up."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and ("\0" in scope["path"] or b"%00" in scope["query_string"]):
            await error_response(Reason.NOT_FOUND, "no address has the character NUL (%00)")(scope, receive, send)
            return
        await self._app(scope, receive, send)


class BodyLimit:
    """Middleware that refuses a body above its limit, by its announced size and by the bytes that arrive."""

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
        told = f"the body is too large: at most {largest} bytes are accepted"
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
    """Discard a body. A proxy that is still sending when the connection ends would never read the reason."""
    while (message := await receive())["type"] == "http.request" and message.get("more_body", False):
        pass


class Buckets:
    """A token bucket for each address: it fills at a steady rate, and each request takes one token."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_minute / 60
        self._size = float(per_minute)
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._levels: dict[bytes, tuple[float, float]] = {}
        """Hashed address -> (tokens, time of that count)."""

    def take(self, address: str) -> int:
        """Take a token; return 0 if there was one, else the seconds until there is one."""
        now = self._clock()
        key = hashed(address, self._key)
        tokens, then = self._levels.pop(key, (self._size, now))
        tokens = min(self._size, tokens + (now - then) * self._per_second)
        self._levels[key] = (tokens - 1 if tokens >= 1 else tokens, now)
        if len(self._levels) > MOST_ADDRESSES:
            self._levels.pop(next(iter(self._levels)))  # The address whose last request is the oldest.
        return 0 if tokens >= 1 else math.ceil((1 - tokens) / self._per_second)


def hashed(address: str, key: bytes) -> bytes:
    """Hash the part of an address that a visitor cannot change at will: IPv4, or the network (/64) of IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
        known = parsed.packed if parsed.version == 4 else parsed.packed[:8]
    except ValueError:
        known = address.encode()
    return hashlib.blake2b(known, key=key, digest_size=16).digest()


def client_address(scope: Scope, trusted_proxies: int) -> str:
    """Return the address that a request came from, as seen by the outermost trusted proxy, or else by this server."""
    direct = str((scope.get("client") or ("unknown", 0))[0])
    if not trusted_proxies:
        return _unmapped(direct)
    told = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for").decode("latin-1")
    seen = [part.strip() for part in told.split(",") if part.strip()]
    return _unmapped(seen[-trusted_proxies] if len(seen) >= trusted_proxies else direct)


def _unmapped(address: str) -> str:
    """Return the IPv4 address in an IPv6 one: a server that listens at ``::`` is given ``::ffff:192.0.2.1``."""
    with suppress(ValueError):
        parsed = ipaddress.ip_address(address)
        if parsed.version == 6 and parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
    return address


class RateLimit:
    """Middleware that refuses an address with too many requests."""

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
                message = f"too many requests from your address: try again in {wait} {plural(wait, 'second')}"
                refusal = error_response(Reason.TOO_MANY_REQUESTS, message, {"Retry-After": str(wait)})
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


class HeadRequests:
    """Middleware that answers HEAD wherever there is an answer to GET, with the same headers and no body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, as one for the whole answer, of which the headers are sent."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        whole = {**scope, "method": "GET", _ONLY_HEAD: True}
        ended = False

        async def without_body(message: Message) -> None:
            nonlocal ended
            if message["type"] != "http.response.body":
                await send(message)
            elif not ended:
                ended = True
                await send({"type": "http.response.body", "body": b""})

        try:
            await self._app(whole, receive, without_body)
        finally:
            scope["route"] = whole.get("route")  # For the log.


def only_head(scope: Scope) -> bool:
    """Whether only the headers are asked for: then nobody has seen anything, and nothing is counted or logged."""
    return bool(scope.get(_ONLY_HEAD))


class Compression:
    """Middleware that compresses a poll's public data, which is large for a slow connection.

    Nothing else is compressed: if a compressed answer contains a secret and text that somebody else can choose, its
    length reveals the secret.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._compressed = Gzip(app, minimum_size=SMALLEST_COMPRESSED)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        public = scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith(PUBLIC)
        await (self._compressed if public else self._app)(scope, receive, send)
