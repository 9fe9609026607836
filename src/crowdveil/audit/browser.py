"""A real browser, and a voter who uses the page in it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

from playwright.sync_api import Browser, Page, Playwright, Request, sync_playwright

from crowdveil.errors import CrowdveilError
from crowdveil.protocol.submission import TOKEN_HEADER, VoterStep

NAMES = (
    "chromium-headless-shell",  # draws no windows, which halves the work
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
INSTRUCTION = (
    "this needs a browser, and there is none: install Chromium or Chrome "
    "(Debian: apt-get install chromium-headless-shell), or run `playwright install chromium`"
)
STILL = '<!doctype html><link rel="icon" href="data:,">'
"""A page that runs no code."""
TELLING = {f'{{"step":"{step}"}}': step for step in VoterStep}
"""The only request bodies with which a page may report a step."""
PATIENCE = 60_000
"""Milliseconds after which something on a page counts as missing."""


def find_browser(playwright: Playwright) -> str | None:
    """Return the path of an installed Chromium or Chrome, or of Playwright's own; None if there is none."""
    installed = next((path for name in NAMES if (path := shutil.which(name))), None)
    own = playwright.chromium.executable_path
    return installed or (own if Path(own).exists() else None)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Run a headless browser for the duration of the block."""
    with sync_playwright() as playwright:
        found = find_browser(playwright)
        if found is None:
            raise CrowdveilError(INSTRUCTION)
        launched = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        try:
            yield launched
        finally:
            launched.close()


class Visitor:
    """A browser page, used as a voter uses it, with a record of everything that it sends and of its errors."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[Request] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        page.set_default_timeout(PATIENCE)

    def open(self, address: str) -> None:
        """Open a poll."""
        self.page.goto(address)
        self._wait_until_shown()

    def reload(self) -> None:
        """Open the same page again."""
        self.page.reload()
        self._wait_until_shown()

    def leave(self) -> None:
        """Leave for a page of the site that runs no code, and clear everything that the browser stored."""
        for page in self.page.context.pages:
            if page is not self.page:
                page.close()
        self.page.unroute_all()
        self.page.context.set_offline(False)
        self.page.route("**/still", lambda route: route.fulfill(body=STILL, content_type="text/html"), times=1)
        self.page.goto(urljoin(self.page.url, "/still"))
        self.page.evaluate("localStorage.clear(); sessionStorage.clear();")
        self.requests = []
        self.complaints = []

    def _wait_until_shown(self) -> None:
        self.page.locator("main:not([aria-busy])").wait_for()

    @property
    def words(self) -> str:
        """The text that the page shows now."""
        return self.page.locator("main").inner_text()

    @property
    def asks_for_consent(self) -> bool:
        """Whether the page offers to take part."""
        return self.page.locator("#agree").count() > 0

    def memory(self) -> dict[str, Any]:
        """Return what the browser stores about the ballot."""
        memory = self.memory_or_none()
        assert memory is not None, "the browser remembers no ballot"
        return memory

    def memory_or_none(self) -> dict[str, Any] | None:
        """Return what the browser stores about the ballot, if it has one."""
        stored = self.page.evaluate(
            "Object.keys(localStorage).filter(k => k.startsWith('crowdveil:ballot:')).map(k => localStorage.getItem(k))"
        )
        assert len(stored) <= 1, "the browser remembers several ballots"
        return dict(json.loads(stored[0])["value"]) if stored else None

    def agree(self) -> None:
        """Unfold the host's text, give consent and start; pass the practice dilemma if it comes next."""
        host = self.page.locator(".from-host:not([open]) > summary")
        if host.count():
            host.click()
        self.page.locator("#agree").check()
        self.press_primary()
        self.practise()

    def practise(self) -> None:
        """Pass the dilemma that does not count, unless something else comes first."""
        self.page.locator(".practice, .levels, .dilemma").first.wait_for()
        if self.page.locator(".practice").count():
            self.press_primary()

    def press_primary(self) -> None:
        """Press the primary button."""
        self.page.locator("main button.primary").click()

    def answer_all(self) -> tuple[list[Any], list[Literal["left", "right"]]]:
        """Answer all remaining dilemmas with the arrow keys; return the dilemmas shown and the sides chosen."""
        memory = self.memory()
        sides: Sequence[Literal["left", "right"]] = ("right", "left", "left")
        chosen = [sides[place % 3] for place in range(len(memory["dilemmas"]))]
        for place, side in list(enumerate(chosen))[memory["place"] :]:
            self.page.locator(f".progress progress[value='{place + 1}']").wait_for()
            self.page.keyboard.press("ArrowLeft" if side == "left" else "ArrowRight")
            self.page.keyboard.press("Enter")
        return memory["dilemmas"], chosen

    def shown_body(self) -> str:
        """Return the text that the page says it will send."""
        return self.page.locator(".sent pre").text_content() or ""

    def done(self) -> str:
        """Wait for the receipt and return the report's number."""
        receipt = self.page.locator(".facts code")
        receipt.wait_for()
        number = receipt.inner_text()
        assert re.fullmatch("[0-9a-f]{32}", number), f"the receipt says {number!r}"
        return number

    def sent(self, method: str = "PUT") -> list[Request]:
        """Return the requests with this method, in order."""
        return [request for request in self.requests if request.method == method]

    def told(self) -> list[VoterStep | None]:
        """Return the steps that the page reported to the server, in order; None for any other report."""
        return [_told(request) for request in self.sent("POST")]


def _told(request: Request) -> VoterStep | None:
    address = urlsplit(request.url)
    bare = address.path.endswith("/steps") and not address.query and TOKEN_HEADER.lower() not in request.headers
    return TELLING.get(request.post_data or "") if bare else None
