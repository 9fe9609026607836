"""Style sheets and modules of the server's own pages, served as they are."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

StaticFile = tuple[str, str, str]
"""The package that it is in, its path there, and what kind of file it is."""


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
