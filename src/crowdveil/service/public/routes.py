"""Routes of the public pages: the front page, the voter's page, a poll's result, one release, the API's description."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException

from crowdveil.pages.feature_estimates import one_line
from crowdveil.protocol.polls import EntryRule, PollState
from crowdveil.protocol.voters_page import PREVIEW, SocialPreview, voters_page
from crowdveil.releases import Release
from crowdveil.service.poll import HostedPoll
from crowdveil.service.public.pictures import effects_picture, invitation_picture, png_picture, svg_picture, track
from crowdveil.service.public.result import Result, effects_in_words, newest_of_each, read_effects, read_result
from crowdveil.service.public.words import PageWords, own_name, pick_language, words_of
from crowdveil.service.server import content_security_policy, only_head
from crowdveil.service.service import Service
from crowdveil.service.static_files import REVALIDATE, PageModules, compressible, static_route
from crowdveil.service.store.polls import OPENED, PollStatus
from crowdveil.service.store.releases import StoredEffects, StoredRelease
from crowdveil.study.translations import INTERFACE_LANGUAGES, OWN_LANGUAGE, languages
from crowdveil.study.translations import words as study_words

PLACE = "/r"
"""Path of the results on the website."""
TEMPLATES = Environment(
    loader=PackageLoader("crowdveil.service.public"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters.update(line=one_line, own_name=own_name)
TEMPLATES.globals.update(track=track, preview=PREVIEW)
_STATIC = {
    "release.css": ("crowdveil.pages", "release_page.css", "text/css"),
    "public.css": ("crowdveil.service.public", "static/public.css", "text/css"),
    "leanings.css": ("crowdveil.service.public", "static/leanings.css", "text/css"),
    "decide.js": ("crowdveil.service.public", "static/decide.js", "text/javascript"),
    "builder.js": ("crowdveil.service.public", "static/builder.js", "text/javascript"),
}
_NEVER_CHANGES = {"Cache-Control": "public, max-age=604800, immutable"}
WEB = Path(str(resources.files("crowdveil"))) / "web"


@dataclass(frozen=True)
class PollCard:
    """A poll on the front page."""

    name: str
    title: str
    question: str
    state: PollState
    joinable: bool
    voters_path: str
    result: Result | None


def public_routes(service: Service) -> APIRouter:
    """Return the public pages, which OpenAPI does not describe."""
    routes = APIRouter(include_in_schema=False, routes=[static_route("/public", _STATIC)])

    @routes.get("/", response_model=None)
    def front(request: Request) -> Response:
        """Redirect to the only poll, or show all polls."""
        statuses = service.store.polls.listed()
        if len(statuses) == 1:
            return RedirectResponse(service.store.batches.voters_path(statuses[0].poll), 307)
        words = _words(request, INTERFACE_LANGUAGES)
        cards = [_card(service, status, words) for status in statuses]
        return _show(service, request, words, "front.html", offered=INTERFACE_LANGUAGES, cards=cards)

    @routes.get(PLACE + "/{poll}", response_model=None)
    def without_slash(request: Request, poll: str) -> Response:
        """Redirect to the poll's result."""
        return _with_slash(request, PLACE, poll)

    @routes.get(PLACE + "/{poll}/", response_model=None)
    def poll_result(request: Request, poll: str) -> Response:
        """Show the release that the poll's decisions use."""
        status = service.store.polls.get(poll)
        if status is None:
            return _not_found(service, request)
        current = status.current_release
        stored = None if current is None else service.store.releases.get(current)
        return _result_page(service, request, status, stored)

    @routes.get(PLACE + "/{poll}/{release}", response_model=None)
    def release_without_slash(request: Request, poll: str, release: str) -> Response:
        """Redirect to the release."""
        return _with_slash(request, PLACE, poll, release)

    @routes.get(PLACE + "/{poll}/{release}/", response_model=None)
    def release_result(request: Request, poll: str, release: str) -> Response:
        """Show one release of a poll."""
        found = _find(service, poll, release)
        return _not_found(service, request) if found is None else _result_page(service, request, *found)

    @routes.get(PLACE + "/{poll}/effects/{effects}/{file}", response_model=None)
    def taken_of_effects(request: Request, poll: str, effects: str, file: str) -> Response:
        """Send a picture or a table of effects."""
        stored = service.store.effects.get(effects)
        known = stored is not None and stored.poll == poll and service.store.polls.get(poll) is not None
        made = _effects_file(service, stored, file) if stored is not None and known else None
        return _not_found(service, request) if made is None else made

    @routes.get(PLACE + "/{poll}/{release}/{file}", response_model=None)
    def taken(request: Request, poll: str, release: str, file: str) -> Response:
        """Send a picture or a table of a release."""
        found = _find(service, poll, release)
        made = None if found is None else _file(service, request, *found, file)
        return _not_found(service, request) if made is None else made

    return routes


def _find(service: Service, poll: str, release: str) -> tuple[PollStatus, StoredRelease] | None:
    status = service.store.polls.get(poll)
    stored = service.store.releases.get(release)
    return None if status is None or stored is None or stored.poll != poll else (status, stored)


def _with_slash(request: Request, place: str, *names: str) -> Response:
    """Redirect to an address that ends in a slash, with what was asked for after the ?, such as a language."""
    query = request.url.query
    return RedirectResponse(
        "/".join([place, *(quote(name, safe="") for name in names), f"?{query}" if query else ""]), 307
    )


def _words(request: Request, offered: tuple[str, ...]) -> PageWords:
    return words_of(
        pick_language(offered, request.query_params.get("lang"), request.headers.get("accept-language", ""))
    )


def _joinable(status: PollStatus, service: Service) -> bool:
    return status.state(service.today()) is PollState.OPEN and status.poll.entry is EntryRule.OPEN


def _card(service: Service, status: PollStatus, words: PageWords) -> PollCard:
    poll = status.poll
    spoken = words_of(pick_language(languages(poll.study, poll.translations), words.language, ""))
    said = study_words(poll.study, spoken.language, poll.translations)
    stored = None if status.current_release is None else service.store.releases.get(status.current_release)
    return PollCard(
        name=poll.name,
        title=one_line(said["title"]),
        question=one_line(said["question"]),
        state=status.state(service.today()),
        joinable=_joinable(status, service),
        voters_path=service.store.batches.voters_path(status.poll),
        result=None if stored is None else read_result(service.read(stored), spoken, poll.translations),
    )


def _result_page(service: Service, request: Request, status: PollStatus, stored: StoredRelease | None) -> Response:
    poll = status.poll
    offered = languages(poll.study, poll.translations)
    words = _words(request, offered)
    said = study_words(poll.study, words.language, poll.translations)
    release = None if stored is None else service.read(stored)
    return _show(
        service,
        request,
        words,
        "result.html",
        offered=offered,
        poll=poll,
        said=said,
        state=status.state(service.today()),
        joinable=_joinable(status, service),
        voters_path=service.store.batches.voters_path(status.poll),
        stored=stored,
        release=release,
        result=None if release is None else read_result(release, words, poll.translations),
        others=[one for one in service.store.releases.all(poll.name) if stored is not None and one.id != stored.id],
        decider=None if release is None else _decider(poll.name, release, words, said),
        effects=[read_effects(one, poll, words) for one in newest_of_each(service.store.effects.all(poll.name))],
    )


def _decider(poll: str, release: Release, words: PageWords, said: dict[str, object]) -> dict[str, object]:
    """Return the data with which the page's module builds a dilemma and asks the release."""
    needed = (*(key for key in words.said if key.startswith("decide_")), "add", "remove")
    return {
        "poll": poll,
        "release": release.digest,
        "study": release.study.as_dict(),
        "words": said,
        "said": {key: words.said[key] for key in needed},
    }


def _file(service: Service, request: Request, status: PollStatus, stored: StoredRelease, file: str) -> Response | None:
    release = service.read(stored)
    name = f"{status.poll.name}-{stored.id[:8]}"
    match file:
        case "factors.csv":
            return _attached(release.factors_to_polars().write_csv(), f"{name}-{file}", "text/csv")
        case "features.csv":
            return _attached(release.to_polars().write_csv(), f"{name}-{file}", "text/csv")
        case "picture.svg":
            words = _words(request, languages(status.poll.study, status.poll.translations))
            result = read_result(release, words, status.poll.translations)
            return Response(
                svg_picture(result, words.direction, _foot(service, request, stored)), 200, None, "image/svg+xml"
            )
        case "picture.png":
            words = words_of("en")
            voters = f"{words.whole(release.guarantee.voters)} {words('voters')}"
            drawn = png_picture(read_result(release, words), voters, _foot(service, request, stored))
            return Response(drawn, 200, _NEVER_CHANGES, "image/png")
        case _:
            return None


def _effects_file(service: Service, stored: StoredEffects, file: str) -> Response | None:
    effects = effects_in_words(stored.read().effects, service.store.polls.known(stored.poll), words_of(OWN_LANGUAGE))
    match file:
        case "table.csv":
            return _attached(effects.to_polars().write_csv(), f"{stored.poll}-effects-{stored.id[:8]}.csv", "text/csv")
        case "picture.png":
            return Response(effects_picture(effects, ".png"), 200, _NEVER_CHANGES, "image/png")
        case "picture.svg":
            return Response(effects_picture(effects, ".svg"), 200, _NEVER_CHANGES, "image/svg+xml")
        case _:
            return None


def _foot(service: Service, request: Request, stored: StoredRelease) -> str:
    return f"{public_origin(service, request)}{PLACE}/{stored.poll}/"


def _attached(content: str, name: str, kind: str) -> Response:
    return Response(content, 200, {"Content-Disposition": f'attachment; filename="{name}"', **_NEVER_CHANGES}, kind)


def _not_found(service: Service, request: Request) -> Response:
    words = _words(request, INTERFACE_LANGUAGES)
    return _show(service, request, words, "not_found.html", 404, offered=INTERFACE_LANGUAGES)


def public_origin(service: Service, request: Request) -> str:
    """Return the public address of this website."""
    return service.settings.public_url.rstrip("/") or f"{request.url.scheme}://{request.url.netloc}"


def _show(
    service: Service, request: Request, words: PageWords, template: str, code: int = 200, **context: object
) -> Response:
    shown = {
        "words": words,
        "origin": public_origin(service, request),
        "path": request.url.path,
        "place": PLACE,
        **context,
    }
    headers = {"Cache-Control": "no-cache", "Vary": "Accept-Language", "Content-Language": words.language}
    return HTMLResponse(TEMPLATES.get_template(template).render(shown), code, headers)


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the pages, which OpenAPI does not describe."""
    routes = APIRouter(include_in_schema=False)
    page = voters_page()
    without_poll = page.html()

    @routes.get("/p/{poll}", response_model=None)
    def without_slash(request: Request, poll: str) -> Response:
        """Redirect to the page's own address, because it refers to its modules by relative paths."""
        return _with_slash(request, "/p", poll)

    @routes.get("/p/{poll}/", response_model=None)
    def page_of(poll: str, request: Request) -> Response:
        """Return the voter's page; if there is no such poll, it says so in the visitor's language."""
        found = service.store.polls.definition(poll)
        if found is None:
            headers = {**REVALIDATE, "Content-Security-Policy": content_security_policy(inside=page.inside())}
            return compressible(without_poll, "text/html", headers, request, 404)
        html = page.html(_preview(found, public_origin(service, request)))
        etag = f'"{hashlib.sha256(html).hexdigest()[:20]}"'
        relays = () if found.relay is None else (found.relay.url,)
        policy = content_security_policy(*relays, inside=page.inside())
        headers = {**REVALIDATE, "ETag": etag, "Content-Security-Policy": policy}
        if found.relay is None and not only_head(request.scope):
            service.store.steps.count(found.name, OPENED, service.today())
        if request.headers.get("If-None-Match") == etag:
            return Response(None, 304, headers)
        return compressible(html, "text/html", headers, request)

    @routes.get("/p/{poll}/picture.png", response_model=None)
    def picture_of(poll: str) -> Response:
        """Return the picture of a poll for other websites. It shows what is asked, not what the crowd thinks."""
        found = service.store.polls.definition(poll)
        if found is None:
            return Response("there is no such poll", 404, media_type="text/plain")
        drawn = invitation_picture(one_line(found.study.title), one_line(found.study.question))
        return Response(drawn, 200, {"Cache-Control": "public, max-age=86400"}, "image/png")

    @routes.get("/api", response_class=HTMLResponse)
    def api_description() -> HTMLResponse:
        """Describe the API to a person."""
        return _plain_page("The API", _operations(app.openapi()))

    app.include_router(routes)
    app.mount("/web", PageModules(page, str(WEB)), "web")
    _answer_people(app, service)


def _answer_people(app: FastAPI, service: Service) -> None:
    """Show a page to a person who comes to an address that does not exist; a program gets the reason, as always."""
    to_program = app.exception_handlers[HTTPException]

    @app.exception_handler(HTTPException)
    def answer(request: Request, error: HTTPException) -> Any:
        asks_for_page = request.method == "GET" and "text/html" in request.headers.get("accept", "")
        if error.status_code == 404 and asks_for_page and not request.url.path.startswith("/api/"):
            return _not_found(service, request)
        return to_program(request, error)


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


def _plain_page(title: str, content: str) -> HTMLResponse:
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="stylesheet" href="/public/release.css">'
        f'<link rel="icon" href="/web/icon.svg"><title>{title}</title></head>'
        f'<body><main class="page"><h1>{title}</h1>{content}</main></body></html>'
    )
