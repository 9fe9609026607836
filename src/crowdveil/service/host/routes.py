"""Where the host's pages are."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.routing import Route

from crowdveil.service.host import data, editor, overview, releases, sign_in, voters
from crowdveil.service.host.request import PLACE, Handler, HostPages, page
from crowdveil.service.service import Service
from crowdveil.service.static_files import static_route

_PAGES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/", overview.polls_page),
    ("GET", "/password", sign_in.password_page),
    ("POST", "/password", sign_in.set_password),
    ("POST", "/sign-out", sign_in.sign_out),
    ("GET", "/new", editor.editor_page),
    ("POST", "/new", editor.check_file),
    ("POST", "/new/create", editor.create_poll),
    ("GET", "/polls/{poll}", overview.poll_page),
    ("GET", "/polls/{poll}/live", overview.live_part),
    ("POST", "/polls/{poll}/close", overview.close_poll),
    ("POST", "/polls/{poll}/open", overview.open_poll),
    ("GET", "/polls/{poll}/recruit", voters.recruit_page),
    ("POST", "/polls/{poll}/links", voters.make_links),
    ("GET", "/polls/{poll}/data", data.data_page),
    ("GET", "/polls/{poll}/data/{file}", data.download),
    ("POST", "/polls/{poll}/withdraw", voters.withdraw),
    ("GET", "/polls/{poll}/releases", releases.releases_page),
    ("POST", "/polls/{poll}/preview", releases.preview),
    ("POST", "/polls/{poll}/release", releases.release),
    ("POST", "/polls/{poll}/mark", releases.mark_release),
    ("GET", "/polls/{poll}/compare", releases.compare_page),
    ("GET", "/releases/{release}", releases.release_page),
    ("GET", "/releases/{release}/file", releases.release_file),
)
_BEFORE_SIGNING_IN: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/sign-in", sign_in.sign_in_page),
    ("POST", "/sign-in", sign_in.sign_in),
)
_STATIC = {
    "release.css": ("crowdveil.pages", "release_page.css", "text/css"),
    "host.css": ("crowdveil.service.host", "static/host.css", "text/css"),
    "live.js": ("crowdveil.service.host", "static/live.js", "text/javascript"),
    "sign-in.js": ("crowdveil.service.host", "static/sign-in.js", "text/javascript"),
    "preview.js": ("crowdveil.service.host", "static/preview.js", "text/javascript"),
}


def host_routes(service: Service) -> APIRouter:
    """Return the host's pages, which are no part of the API's description."""
    settings = service.settings
    pages = HostPages(service.store, service.now, service.today, settings.public_url, settings.trusted_proxies)
    routes = [Route(PLACE + path, page(pages, handler), methods=[method]) for method, path, handler in _PAGES]
    routes += [
        Route(PLACE + path, page(pages, handler, signed_in=False), methods=[method])
        for method, path, handler in _BEFORE_SIGNING_IN
    ]
    return APIRouter(routes=[*routes, static_route(f"{PLACE}/static", _STATIC)])
