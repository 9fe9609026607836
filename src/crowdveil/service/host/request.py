"""One request to the host's pages: who comes, with what form, and the page that is shown.

Two things are settled here for every page, so that no page can forget them: only a signed-in host sees it, and a form
is accepted only with the token that its page carried (so that no other website can submit it in the host's name).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from crowdveil.errors import CrowdveilError
from crowdveil.pages.reading import one_line, signed
from crowdveil.service.middleware.attempts import Attempts
from crowdveil.service.middleware.rate_limit import client_address
from crowdveil.service.store.polls import PollStatus
from crowdveil.service.store.store import Store

PLACE = "/host"
"""Where on the website the host's pages are."""
SESSION_COOKIE = "crowdveil-host"
BROWSER_COOKIE = "crowdveil-browser"
"""Before anybody is signed in: a random word that ties a form to the browser it was shown in."""
LARGEST_FORM = 1 << 20

TEMPLATES = Environment(
    loader=PackageLoader("crowdveil.service.host"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.filters.update(
    line=one_line,
    signed=signed,
    fixed=lambda value, places: f"{value:.{places}f}",
    thousands=lambda number: f"{number:,}",
)


@dataclass(frozen=True)
class HostPages:
    """Everything that the host's pages work with."""

    store: Store
    now: Callable[[], int]
    """Seconds since 1970."""
    today: Callable[[], date]
    public_url: str = ""
    """The website's address as voters see it; empty: as the browser asked for it."""
    trusted_proxies: int = 0
    attempts: Attempts = field(default_factory=Attempts)
    one_release: threading.Lock = field(default_factory=threading.Lock)
    """One release is made at a time."""


class Missing(CrowdveilError):
    """There is no such page, poll or release."""


class Forbidden(CrowdveilError):
    """A form that did not come from the host's own page."""


@dataclass(frozen=True)
class HostRequest:
    """A request to the host's pages that has been let in."""

    pages: HostPages
    http: Request
    host: str | None
    secret: str
    """The content of the cookie: of the session, or of the browser before signing in."""
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        """Where everything is."""
        return self.pages.store

    @property
    def address(self) -> str:
        """Where the visitor comes from."""
        return client_address(self.http.scope, self.pages.trusted_proxies)

    @property
    def origin(self) -> str:
        """The website's own address, without a path."""
        url = self.http.url
        return self.pages.public_url.rstrip("/") or f"{url.scheme}://{url.netloc}"

    def path(self, name: str) -> str:
        """Return a part of the address that was asked for."""
        return str(self.http.path_params[name])

    def poll_status(self) -> PollStatus:
        """Return the poll that the address names."""
        found = self.store.polls.get(self.path("poll"))
        if found is None:
            raise Missing(f"there is no poll {self.path('poll')!r}: see the list of polls")
        return found

    def show(self, template: str, code: int = 200, **context: Any) -> Response:
        """Return a page."""
        token = Markup('<input type="hidden" name="form_token" value="{}">').format(form_token(self.secret))
        shown = {"host": self.host, "token": token, "origin": self.origin, **context}
        return HTMLResponse(TEMPLATES.get_template(template).render(shown), code, headers={"Cache-Control": "no-store"})

    def go(self, path: str) -> Response:
        """Send the browser to another of the host's pages."""
        return RedirectResponse(f"{PLACE}{path}", 303)

    def with_cookie(self, response: Response, name: str, value: str, seconds: int) -> Response:
        """Set a cookie that no script reads and no other website can make the browser send."""
        response.set_cookie(
            name,
            value,
            max_age=seconds,
            path=PLACE,
            secure=self.origin.startswith("https://"),
            httponly=True,
            samesite="strict",
        )
        return response


Handler = Callable[[HostRequest], Response]


def form_token(secret: str) -> str:
    """Return what a page's forms carry: it follows from the cookie, which another website cannot read."""
    return hashlib.sha256(f"crowdveil form {secret}".encode()).hexdigest()


def page(pages: HostPages, handler: Handler, *, signed_in: bool = True) -> Callable[[Request], Awaitable[Response]]:
    """Turn a handler into a page: checked before, off the event loop, and with mistakes told in words."""

    async def respond(http: Request) -> Response:
        cookie = http.cookies.get(SESSION_COOKIE, "")
        host = await run_in_threadpool(pages.store.hosts.session, cookie, pages.now()) if cookie else None
        browser_secret = http.cookies.get(BROWSER_COOKIE) or secrets.token_urlsafe(32)
        request = HostRequest(pages, http, host, cookie if host else browser_secret)
        if signed_in and host is None:
            return request.go("/sign-in")
        try:
            if http.method == "POST":
                request = replace(request, form=await _form(http, request.secret))
            response = await run_in_threadpool(handler, request)
        except Missing as error:
            response = request.show("refused.html", 404, title="Not found", message=sentence(str(error)))
        except Forbidden as error:
            response = request.show("refused.html", 403, title="Not accepted", message=sentence(str(error)))
        except CrowdveilError as error:
            response = request.show("refused.html", 400, title="That did not work", message=sentence(str(error)))
        if host is None and BROWSER_COOKIE not in http.cookies:
            request.with_cookie(response, BROWSER_COOKIE, browser_secret, 3600)
        return response

    return respond


def sentence(words: str) -> str:
    """Return an error's words as a sentence: a capital letter, and one full stop.

    >>> sentence("there is no poll 'x'"), sentence("Choose one in that range.")
    ("There is no poll 'x'.", 'Choose one in that range.')
    """
    return f"{words[:1].upper()}{words[1:]}" + ("" if words.endswith((".", "!", "?")) else ".")


async def _form(http: Request, secret: str) -> dict[str, str]:
    """Read a form, and refuse one that did not come from a page of ours."""
    if http.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden("this form was sent by another website, and nothing was done")
    if int(http.headers.get("Content-Length") or LARGEST_FORM + 1) > LARGEST_FORM:
        raise CrowdveilError(f"the form is too large: files up to {LARGEST_FORM >> 20} MB can be uploaded")
    read: dict[str, str] = {}
    async with http.form(max_files=1, max_fields=20, max_part_size=LARGEST_FORM) as form:
        for name, value in form.multi_items():
            read[name] = await _text(value) if isinstance(value, UploadFile) else value
    given = read.pop("form_token", "")
    if not hmac.compare_digest(given.encode(), form_token(secret).encode()):
        raise Forbidden("the page that this form was on is too old, and nothing was done: load it again")
    return read


async def _text(upload: UploadFile) -> str:
    try:
        return (await upload.read()).decode("utf-8")
    except UnicodeDecodeError:
        raise CrowdveilError(f"{upload.filename} is not a text file in UTF-8") from None
