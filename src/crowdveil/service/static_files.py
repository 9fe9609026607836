"""Files that are served unchanged: style sheets, scripts and pictures, and the modules of the voter's page.

The page's own files are compressed once, and browsers keep them for ever, because their address contains a digest of
them. Without the digest in the address, a browser checks a file before each use: the host's and the public pages
request some files in this way.
"""

from __future__ import annotations

import gzip
import mimetypes
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import PurePosixPath

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from crowdveil.protocol.voters_page import VotersPage

StaticFile = tuple[str, str, str]
"""The package of a file, its path there, and its media type."""
REVALIDATE = {"Cache-Control": "no-cache"}
"""Header with which a cache may keep a file, but asks by ETag before each use."""
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}


def static_route(place: str, files: Mapping[str, StaticFile]) -> Route:
    """Return a route to files by name. A cache may keep them, but asks before each use."""

    async def send(request: Request) -> Response:
        found = files.get(request.path_params["name"])
        if found is None:
            return Response("there is no such file", 404, media_type="text/plain")
        package, path, kind = found
        content = resources.files(package).joinpath(path).read_bytes()
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    return Route(f"{place}/{{name}}", send)


class _RevalidatedFiles(StaticFiles):
    """Static files that a cache checks before each use."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file."""
        response = await super().get_response(path, scope)
        response.headers.update(REVALIDATE)
        return response


class PageModules:
    """An application that serves the files of the page, with or without its digest in the address."""

    def __init__(self, page: VotersPage, directory: str) -> None:
        self._page = page
        self._checked: ASGIApp = Gzip(_RevalidatedFiles(directory=directory), minimum_size=500)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a file."""
        digest, _, path = scope["path"].removeprefix(scope.get("root_path", "")).lstrip("/").partition("/")
        content = self._page.files.get(path) if digest == self._page.digest else None
        if content is None or scope["method"] not in ("GET", "HEAD"):
            await self._checked(scope, receive, send)
            return
        answer = compressible(content, media_type(path), FOR_EVER, Request(scope))
        await answer(scope, receive, send)


class Gzip(GZipMiddleware):
    """Middleware that compresses for clients that accept it; the library's own does not read weights."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, as one that names nothing but gzip, or nothing."""
        if scope["type"] == "http":
            accepted = [(b"accept-encoding", b"gzip")] if accepts_gzip(Headers(scope=scope)) else []
            scope["headers"] = [one for one in scope["headers"] if one[0] != b"accept-encoding"] + accepted
        await super().__call__(scope, receive, send)


_REFUSED = re.compile(r"\s*q\s*=\s*0(\.0*)?\s*")
"""The weight of an encoding that a client does not accept."""


def accepts_gzip(headers: Headers) -> bool:
    """Whether a client accepts gzip: it counts by its name, or else by ``*``, unless its weight is 0.

    >>> [accepts_gzip(Headers({"Accept-Encoding": told})) for told in ("br, gzip;q=0.5", "gzip;q=0, *", "*", "br")]
    [True, False, True, False]
    """
    told = (one.partition(";") for one in ",".join(headers.getlist("Accept-Encoding")).lower().split(","))
    accepted = {name.strip(): _REFUSED.fullmatch(weight) is None for name, _, weight in told}
    return accepted.get("gzip", accepted.get("*", False))


def media_type(path: str) -> str:
    """Return the media type of a file; for known kinds, do not depend on the machine's own table."""
    suffix = PurePosixPath(path).suffix
    return KINDS.get(suffix) or mimetypes.guess_type(path)[0] or "application/octet-stream"


def compressible(content: bytes, kind: str, headers: dict[str, str], request: Request, status: int = 200) -> Response:
    """Return a response with content that never changes, compressed if the client accepts that."""
    told = {**headers, "Vary": "Accept-Encoding"}
    if accepts_gzip(request.headers):
        return Response(_compressed(content), status, {**told, "Content-Encoding": "gzip"}, media_type=kind)
    return Response(content, status, told, media_type=kind)


@lru_cache(maxsize=1024)
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)
