"""A request to the host's pages: the visitor, the form and the page that is shown.

Three rules are enforced here for every page, so that no page can forget them. Only a signed-in host whose role allows
it sees a page. A form is accepted only with the token of its page, so that no other website can submit it in the host's
name. The host's actions are written to the audit log.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

import segno
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from crowdveil.errors import CrowdveilError, plural
from crowdveil.pages.feature_estimates import one_line, signed
from crowdveil.service.host.attempts import Attempts
from crowdveil.service.public.pictures import track
from crowdveil.service.server import client_address, only_head
from crowdveil.service.store.hosts import LogEntry, Role
from crowdveil.service.store.polls import PollStatus
from crowdveil.service.store.store import Store

PLACE = "/host"
"""Path of the host's pages on the website."""
SESSION_COOKIE = "crowdveil-host"
BROWSER_COOKIE = "crowdveil-browser"
"""Cookie before anybody is signed in: a random text that ties a form to the browser in which it was shown."""
LARGEST_FORM = 1 << 20
MOST_FIELDS = 1000

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
    plural=plural,
)
TEMPLATES.globals["track"] = track


@dataclass(frozen=True)
class HostPages:
    """Everything that the host's pages need."""

    store: Store
    now: Callable[[], int]
    """The clock, in seconds since 1970."""
    today: Callable[[], date]
    public_url: str = ""
    """The website's address for voters; if empty, the one that the browser used."""
    trusted_proxies: int = 0
    attempts: Attempts = field(default_factory=Attempts)
    one_release: threading.Lock = field(default_factory=threading.Lock)
    """Lock so that this process makes one release at a time: each may hold a whole crowd in memory."""


class NotFound(CrowdveilError):
    """The page, poll or release does not exist."""


class Forbidden(CrowdveilError):
    """The form did not come from the host's own page, or the host's role does not allow the request."""


@dataclass(frozen=True)
class HostRequest:
    """A request to the host's pages, with its visitor identified."""

    pages: HostPages
    http: Request
    host: str | None
    secret: str
    """The content of the session's cookie, or of the browser's cookie before signing in."""
    role: Role | None = None
    form: Mapping[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    """Details for the audit log, in addition to the action and the poll."""

    @property
    def store(self) -> Store:
        """The store of everything."""
        return self.pages.store

    @property
    def address(self) -> str:
        """The visitor's network address."""
        return client_address(self.http.scope, self.pages.trusted_proxies)

    @property
    def origin(self) -> str:
        """The website's own address, without a path."""
        url = self.http.url
        return self.pages.public_url.rstrip("/") or f"{url.scheme}://{url.netloc}"

    def path(self, name: str) -> str:
        """Return a part of the requested address."""
        return str(self.http.path_params[name])

    def poll_status(self) -> PollStatus:
        """Return the status of the poll that the address names."""
        found = self.store.polls.get(self.path("poll"))
        if found is None:
            raise NotFound(f"there is no poll {self.path('poll')!r}: see the list of polls")
        return found

    def show(self, template: str, code: int = 200, **context: Any) -> Response:
        """Return a page, rendered from a template."""
        token = Markup('<input type="hidden" name="form_token" value="{}">').format(form_token(self.secret))
        may = {role.value: self.role is not None and self.role.covers(role) for role in Role}
        shown = {"host": self.host, "may": may, "token": token, "origin": self.origin, **context}
        shown["voters_path"] = self.store.batches.voters_path
        return HTMLResponse(TEMPLATES.get_template(template).render(shown), code, headers={"Cache-Control": "no-store"})

    def go(self, path: str) -> Response:
        """Redirect to another of the host's pages."""
        return RedirectResponse(f"{PLACE}{path}", 303)

    def with_cookie(self, response: Response, name: str, value: str, seconds: int) -> Response:
        """Set a cookie that no script can read and that no other website can make the browser send."""
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
    """Return the token in a page's forms. It is derived from the cookie, which another website cannot read."""
    return hashlib.sha256(f"crowdveil form {secret}".encode()).hexdigest()


@dataclass(frozen=True)
class Page:
    """A page or an action for hosts."""

    method: str
    path: str
    handler: Handler
    needs: Role | None
    """The least role that it needs; None if nobody has to be signed in."""
    action: str | None = None
    """Its name in the audit log; None if it is not logged."""


def respond_with(pages: HostPages, page: Page) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a page: it checks the request, runs off the event loop, and reports mistakes in words."""

    async def respond(http: Request) -> Response:
        cookie = http.cookies.get(SESSION_COOKIE, "")
        host, role = await run_in_threadpool(_who, pages, cookie) if cookie else (None, None)
        browser_secret = http.cookies.get(BROWSER_COOKIE) or secrets.token_urlsafe(32)
        request = HostRequest(pages, http, host, cookie if host else browser_secret, role)
        if page.needs is not None and role is None:
            return request.go("/sign-in")
        try:
            if page.needs is not None and role is not None and not role.covers(page.needs):
                raise Forbidden(f"this needs the role of {page.needs.value}, and you are {role.value}: ask an owner")
            if http.method == "POST":
                request = replace(request, form=await _form(http, request.secret))
            response = await run_in_threadpool(_act, request, page)
        except NotFound as error:
            response = request.show("refused.html", 404, title="Not found", message=sentence(str(error)))
        except Forbidden as error:
            response = request.show("refused.html", 403, title="Not accepted", message=sentence(str(error)))
        except CrowdveilError as error:
            response = request.show("refused.html", 400, title="That did not work", message=sentence(str(error)))
        if host is None and BROWSER_COOKIE not in http.cookies:
            request.with_cookie(response, BROWSER_COOKIE, browser_secret, 3600)
        return response

    return respond


def _who(pages: HostPages, cookie: str) -> tuple[str | None, Role | None]:
    host = pages.store.hosts.session(cookie, pages.now())
    return host, None if host is None else pages.store.hosts.role(host)


def _act(request: HostRequest, page: Page) -> Response:
    """Run the handler of a page, and log its action if it succeeded."""
    response = page.handler(request)
    done = response.status_code < 400 and not only_head(request.http.scope)
    if page.action is not None and request.host is not None and done:
        poll = request.http.path_params.get("poll")
        detail = ", ".join(request.remarks)
        request.store.audit_log.add(LogEntry(request.pages.now(), request.host, page.action, poll, detail))
    return response


def sentence(words: str) -> str:
    """Return an error message as a sentence, with a capital letter and one full stop.

    >>> sentence("there is no poll 'x'"), sentence("Choose one in that range.")
    ("There is no poll 'x'.", 'Choose one in that range.')
    """
    return f"{words[:1].upper()}{words[1:]}" + ("" if words.endswith((".", "!", "?")) else ".")


def minute(at: int) -> str:
    """Format a time (seconds since 1970) to the minute, in UTC.

    >>> minute(1_700_000_000)
    '2023-11-14 22:13'
    """
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


async def _form(http: Request, secret: str) -> dict[str, str]:
    """Read a form; refuse one that did not come from one of the host's pages."""
    if http.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
        raise Forbidden("this form was sent by another website, and nothing was done")
    if int(http.headers.get("Content-Length") or LARGEST_FORM + 1) > LARGEST_FORM:
        raise CrowdveilError(f"the form is too large: files up to {LARGEST_FORM >> 20} MB can be uploaded")
    read: dict[str, str] = {}
    try:
        async with http.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=LARGEST_FORM) as form:
            for name, value in form.multi_items():
                read[name] = await _text(value) if isinstance(value, UploadFile) else value
                read[name].encode()  # Of a form in another encoding, some texts cannot be written in UTF-8.
    except UnicodeError:
        raise CrowdveilError("the form is not in UTF-8, as the page that it was on: load the page again") from None
    if any("\0" in text for text in read.values()):
        raise CrowdveilError("a field of the form has the character NUL, which no text may have: leave it out")
    given = read.pop("form_token", "")
    if not hmac.compare_digest(given.encode(), form_token(secret).encode()):
        raise Forbidden("the page that this form was on is too old, and nothing was done: load it again")
    return read


async def _text(upload: UploadFile) -> str:
    try:
        return (await upload.read()).decode("utf-8")
    except UnicodeDecodeError:
        raise CrowdveilError("the file is not a text file in UTF-8: save it as one") from None


def attachment(content: str | bytes, name: str, kind: str) -> Response:
    """Return a response with a file to save."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(content, media_type=kind, headers=headers)


def qr_code(text: str) -> Markup:
    """Draw a text as a QR code, black on white even in dark mode."""
    return Markup(
        segno.make(text, error="m").svg_inline(border=4, dark="#000", light="#fff", svgclass="qr", omitsize=True)
    )
