"""The routes of the host's pages."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from crowdveil.service.host import data, editor, hosts, overview, releases
from crowdveil.service.host.request import PLACE, HostPages, Page, respond_with
from crowdveil.service.service import Service
from crowdveil.service.static_files import static_route
from crowdveil.service.store.hosts import Role

VIEWER, ANALYST, OWNER = Role.VIEWER, Role.ANALYST, Role.OWNER

PAGES = (
    Page("GET", "/sign-in", hosts.sign_in_page, None),
    Page("POST", "/sign-in", hosts.sign_in, None),
    Page("POST", "/sign-out", hosts.sign_out, VIEWER, "signed out"),
    Page("GET", "/password", hosts.password_page, VIEWER),
    Page("POST", "/password", hosts.set_password, VIEWER, "set a password"),
    Page("GET", "/second-factor", hosts.second_factor_page, VIEWER),
    Page("POST", "/second-factor", hosts.set_second_factor, VIEWER, "began to use a second factor"),
    Page("POST", "/second-factor/off", hosts.drop_second_factor, VIEWER, "ended the second factor"),
    Page("GET", "/hosts", hosts.hosts_page, OWNER),
    Page("POST", "/hosts", hosts.invite, OWNER, "invited a host"),
    Page("POST", "/hosts/role", hosts.change_role, OWNER, "changed a role"),
    Page("POST", "/hosts/remove", hosts.remove_host, OWNER, "removed a host"),
    Page("GET", "/log", hosts.log_page, OWNER),
    Page("GET", "/", overview.polls_page, VIEWER),
    Page("GET", "/new", editor.editor_page, OWNER),
    Page("POST", "/new", editor.check_form, OWNER),
    Page("POST", "/new/again", editor.edit_again, OWNER),
    Page("GET", "/new/file", editor.file_page, OWNER),
    Page("POST", "/new/file", editor.check_file, OWNER),
    Page("POST", "/new/create", editor.create_poll, OWNER, "made a poll"),
    Page("GET", "/polls/{poll}", overview.poll_page, VIEWER),
    Page("GET", "/polls/{poll}/live", overview.live_part, VIEWER),
    Page("POST", "/polls/{poll}/close", overview.close_poll, OWNER, "closed the poll"),
    Page("POST", "/polls/{poll}/open", overview.open_poll, OWNER, "opened the poll"),
    Page("POST", "/polls/{poll}/start", overview.end_pilot, OWNER, "ended the trial: votes count"),
    Page("POST", "/polls/{poll}/archive", overview.archive, OWNER, "archived the poll"),
    Page("POST", "/polls/{poll}/unarchive", overview.unarchive, OWNER, "took the poll out of the archive"),
    Page("GET", "/polls/{poll}/delete", overview.delete_page, OWNER),
    Page("POST", "/polls/{poll}/delete", overview.delete, OWNER, "deleted the poll"),
    Page("GET", "/polls/{poll}/recruit", overview.recruit_page, VIEWER),
    Page("GET", "/polls/{poll}/qr.svg", overview.qr_picture, VIEWER),
    Page("POST", "/polls/{poll}/links", overview.make_links, ANALYST, "made links"),
    Page("GET", "/polls/{poll}/data", data.data_page, ANALYST),
    Page("GET", "/polls/{poll}/data/{file}", data.download, ANALYST, "downloaded data"),
    Page("POST", "/polls/{poll}/withdraw", overview.withdraw, OWNER, "deleted a vote on withdrawal"),
    Page("GET", "/polls/{poll}/releases", releases.releases_page, VIEWER),
    Page("POST", "/polls/{poll}/preview", releases.preview, ANALYST),
    Page("POST", "/polls/{poll}/release", releases.release, ANALYST, "made a release"),
    Page("POST", "/polls/{poll}/release/progress", releases.release_with_progress, ANALYST),
    Page("POST", "/releases/{release}/describe", releases.describe_release, ANALYST, "described a release"),
    Page("POST", "/polls/{poll}/mark", releases.mark_release, ANALYST, "chose the release for decisions"),
    Page("GET", "/polls/{poll}/compare", releases.compare_page, VIEWER),
    Page("GET", "/releases/{release}", releases.release_page, VIEWER),
    Page("GET", "/releases/{release}/file", releases.release_file, VIEWER),
    Page("POST", "/polls/{poll}/effects/preview", releases.preview_effects, ANALYST),
    Page("POST", "/polls/{poll}/effects", releases.effects, ANALYST, "made effects"),
    Page("POST", "/polls/{poll}/effects/progress", releases.effects_with_progress, ANALYST),
    Page("GET", "/effects/{effects}", releases.effects_page, VIEWER),
    Page("GET", "/effects/{effects}/{file}", releases.effects_file, VIEWER),
)
"""Every page and every action, with the least role that it needs."""
_STATIC = {
    "release.css": ("crowdveil.pages", "release_page.css", "text/css"),
    "host.css": ("crowdveil.service.host", "static/host.css", "text/css"),
    "leanings.css": ("crowdveil.service.public", "static/leanings.css", "text/css"),
    "live.js": ("crowdveil.service.host", "static/live.js", "text/javascript"),
    "sign-in.js": ("crowdveil.service.host", "static/sign-in.js", "text/javascript"),
    "copy.js": ("crowdveil.service.host", "static/copy.js", "text/javascript"),
    "new-poll.js": ("crowdveil.service.host", "static/new-poll.js", "text/javascript"),
    "progress.js": ("crowdveil.service.host", "static/progress.js", "text/javascript"),
    "preview.js": ("crowdveil.service.host", "static/preview.js", "text/javascript"),
}


def host_routes(service: Service) -> APIRouter:
    """Return the routes of the host's pages, which are not part of the API's description."""
    settings = service.settings
    pages = HostPages(service.store, service.now, service.today, settings.public_url, settings.trusted_proxies)
    routes = [Route(PLACE + page.path, respond_with(pages, page), methods=[page.method]) for page in PAGES]
    return APIRouter(routes=[Route(PLACE, _with_slash), *routes, static_route(f"{PLACE}/static", _STATIC)])


def _with_slash(_: Request) -> Response:
    """Redirect who types the address without its slash to the host's first page."""
    return RedirectResponse(f"{PLACE}/", 307)
