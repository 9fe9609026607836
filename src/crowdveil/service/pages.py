"""Pages that are the same for everybody: the voter's page, its modules, the API's description."""

from __future__ import annotations

import hashlib
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from crowdveil.pages.reading import one_line
from crowdveil.protocol.voters_page import SocialPreview, voters_page
from crowdveil.service.middleware.headers import content_security_policy
from crowdveil.service.modules import REVALIDATE, Modules, compressible
from crowdveil.service.poll import HostedPoll
from crowdveil.service.public.pictures import invitation_picture
from crowdveil.service.public.routes import public_origin
from crowdveil.service.service import Service
from crowdveil.service.store.steps import OPENED
from crowdveil.study.translations import languages

WEB = Path(str(resources.files("crowdveil"))) / "web"


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the pages, which OpenAPI does not describe."""
    routes = APIRouter(include_in_schema=False)
    page = voters_page()
    without_poll = page.html()

    @routes.get("/p/{poll}", response_model=None)
    def without_slash(poll: str) -> Response:
        """Go to the page, whose modules are named relative to it."""
        return RedirectResponse(f"/p/{quote(poll, safe='')}/", 307)

    @routes.get("/p/{poll}/", response_model=None)
    def page_of(poll: str, request: Request) -> Response:
        """Give the voter's page; where there is no such poll, it says so in the visitor's language."""
        found = service.store.polls.definition(poll)
        if found is None:
            return compressible(without_poll, "text/html", REVALIDATE, request, 404)
        html = page.html(_preview(found, public_origin(service, request)))
        etag = f'"{hashlib.sha256(html).hexdigest()[:20]}"'
        headers = {**REVALIDATE, "ETag": etag}
        if found.relay is not None:
            headers["Content-Security-Policy"] = content_security_policy(found.relay.url)
        else:
            service.store.steps.count(found.name, OPENED, service.today())
        if request.headers.get("If-None-Match") == etag:
            return Response(None, 304, headers)
        return compressible(html, "text/html", headers, request)

    @routes.get("/p/{poll}/picture.png", response_model=None)
    def picture_of(poll: str) -> Response:
        """Give the picture of a poll that other websites show: what is asked, and nothing of what the crowd thinks."""
        found = service.store.polls.definition(poll)
        if found is None:
            return Response("there is no such poll", 404, media_type="text/plain")
        drawn = invitation_picture(one_line(found.study.title), one_line(found.study.question))
        return Response(drawn, 200, {"Cache-Control": "public, max-age=86400"}, "image/png")

    @routes.get("/api", response_class=HTMLResponse)
    def api_description() -> HTMLResponse:
        """Describe the API to a person."""
        return _page("The API", _operations(app.openapi()))

    app.include_router(routes)
    app.mount("/web", Modules(page, str(WEB)), "web")


def _preview(poll: HostedPoll, origin: str) -> SocialPreview:
    study = poll.study
    return SocialPreview(poll.name, study.title, study.question, origin, languages(study, poll.translations))


def _operations(description: dict[str, Any]) -> str:
    parts = ['<p>For programs: <a href="/api/openapi.json">openapi.json</a>.</p>']
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            told = escape(operation.get("description", ""))
            rows = [
                f"<li><code>{status}</code> {escape(answer['description'])}</li>"
                for status, answer in sorted(operation["responses"].items())
            ]
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{told}</p><ul>{''.join(rows)}</ul>")
    return "".join(parts)


def _page(title: str, content: str) -> HTMLResponse:
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="/web/icon.svg"><title>{title}</title></head>'
        f"<body><main><h1>{title}</h1>{content}</main></body></html>"
    )
