"""Files that are served as they are: style sheets, scripts and pictures, and the modules of the voter's page.

The page's own files are compressed once, and kept by browsers for ever, for their address names their content. Without
the digest in the address a file is checked before each use: the host's and the public pages ask for some so.
"""

from __future__ import annotations

import gzip
import mimetypes
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from pathlib import PurePosixPath

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from crowdveil.protocol.voters_page import VotersPage

StaticFile = tuple[str, str, str]
"""The package that it is in, its path there, and what kind of file it is."""
REVALIDATE = {"Cache-Control": "no-cache"}
"""A cache may keep it, and asks by ETag before it uses it."""
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}


def static_route(place: str, files: Mapping[str, StaticFile]) -> Route:
    """Return the route to some files by name. A cache may keep one, and asks before it uses it."""

    async def send(request: Request) -> Response:
        found = files.get(request.path_params["name"])
        if found is None:
            return Response("there is no such file", 404, media_type="text/plain")
        package, path, kind = found
        content = resources.files(package).joinpath(path).read_bytes()
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    return Route(f"{place}/{{name}}", send)


class _Checked(StaticFiles):
    """Static files that a cache checks before it uses them."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file."""
        response = await super().get_response(path, scope)
        response.headers.update(REVALIDATE)
        return response


class Modules:
    """Serves the files of the page, with its digest in the address or without."""

    def __init__(self, page: VotersPage, directory: str) -> None:
        self._page = page
        self._checked: ASGIApp = GZipMiddleware(_Checked(directory=directory), minimum_size=500)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a file."""
        digest, _, path = scope["path"].removeprefix(scope.get("root_path", "")).lstrip("/").partition("/")
        content = self._page.files.get(path) if digest == self._page.digest else None
        if content is None or scope["method"] not in ("GET", "HEAD"):
            await self._checked(scope, receive, send)
            return
        answer = compressible(content, media_type(path), FOR_EVER, Request(scope))
        await answer(scope, receive, send)


def media_type(path: str) -> str:
    """Return what kind of file it is, without asking the machine that it runs on for what is known."""
    suffix = PurePosixPath(path).suffix
    return KINDS.get(suffix) or mimetypes.guess_type(path)[0] or "application/octet-stream"


def compressible(content: bytes, kind: str, headers: dict[str, str], request: Request, status: int = 200) -> Response:
    """Answer with a content that never changes: compressed, if the other side can read that."""
    told = {**headers, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        return Response(_compressed(content), status, {**told, "Content-Encoding": "gzip"}, media_type=kind)
    return Response(content, status, told, media_type=kind)


@lru_cache(maxsize=1024)
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)
