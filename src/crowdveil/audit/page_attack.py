"""A lying server against the voter's page in a real browser: no lie may get a choice, or a second report, out of it.

Single lies test the page's own checks: its modules ask the server over the network and must refuse its answers. Whole
visits show that refused polls and dilemmas are not displayed either, and that a changed promise gets nothing. Pages
that lack one of their checks must be caught accepting a lie.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, ViewportSize

from crowdveil.audit.attacks import PAGE, Attack, attacks
from crowdveil.audit.browser import Visitor, open_browser
from crowdveil.audit.lying_server import (
    CHANGED_PROMISES,
    LIES,
    POLLS,
    UNTRUE_POLLS,
    UNTRUE_SESSIONS,
    LyingServer,
    lying_server,
    try_case,
)
from crowdveil.study.study import Study

BORDER = """async (name) => {
  const { getPoll, getSession } = await import("/web/api.js");
  const { checkedPoll, checkedSession } = await import("/web/poll.js");
  try {
    const { study } = checkedPoll(await getPoll(name));
    checkedSession(study, (await getSession(name)).dilemmas);
    return null;
  } catch (error) {
    return error.message;
  }
}"""
"""Script that returns the objection of the page's own modules to a poll and its dilemmas; null if there is none."""
FORGET = (
    "Object.keys(localStorage).filter(key => key.startsWith('crowdveil:ballot:'))"
    ".forEach(key => localStorage.removeItem(key))"
)
STILL = "/web/icon.svg"
"""A file of the site that runs no code."""
PHONE: ViewportSize = {"width": 360, "height": 640}
POLL = "algorithm-2"
"""The poll whose promise is changed during a visit."""
NOT_TAKEN = "does not hold together"
CHANGED = "This poll has changed since you began."
CHANGED_SINCE = "the poll has changed since"


@dataclass
class PageHarness:
    """A lying server, and browsers for the visitors to whom it lies."""

    server: LyingServer
    browser: Browser
    _visitors: dict[str, Visitor] = field(default_factory=dict)
    """By language: it is faster to clear a browser than to start a new one."""
    _border: Page | None = None

    def visit(self, poll: str, locale: str = "en-GB") -> Visitor:
        """Open a poll as a voter who has never been here."""
        if locale in self._visitors:
            self._visitors[locale].leave()
        else:
            device = self.browser.new_context(viewport=PHONE, locale=locale, reduced_motion="reduce")
            self._visitors[locale] = Visitor(device.new_page())
        visitor = self._visitors[locale]
        visitor.open(self.address_of(poll))
        return visitor

    def address_of(self, poll: str) -> str:
        """Return the address of a poll's page."""
        return f"{self.server.address}/p/{poll}/"

    def refusal_of(self, poll: str) -> str | None:
        """Return the objection of the page's own modules to a poll as the server describes it now."""
        if self._border is None:
            self._border = self.browser.new_page()
            self.load_modules()
        refusal = self._border.evaluate(BORDER, poll)
        return None if refusal is None else str(refusal)

    def refuses(self, poll: str) -> bool:
        """Whether the page's own modules refuse a poll as the server describes it now."""
        return self.refusal_of(poll) is not None

    def load_modules(self) -> None:
        """Reload the page's modules."""
        if self._border is not None:
            self._border.goto(f"{self.server.address}{STILL}")

    def close(self) -> None:
        """Close all browser pages."""
        for visitor in self._visitors.values():
            visitor.page.context.close()
        if self._border is not None:
            self._border.context.close()


PageCase = Callable[[PageHarness], str | None]
"""Returns a finding, or None."""


def honest(harness: PageHarness) -> str | None:
    """Accept an honest server: otherwise the refusals of lies would prove nothing."""
    refusals = {poll: harness.refusal_of(poll) for poll in POLLS}
    return next((f"the honest poll {poll} is refused: {told}" for poll, told in refusals.items() if told), None)


def untrue_poll_shown(lie: str, harness: PageHarness) -> str | None:
    """Open an inconsistent poll: the page must say so, ask for nothing and send nothing."""
    poll, change = UNTRUE_POLLS[lie]
    harness.server.describe(poll, change)
    visitor = harness.visit(poll)
    if visitor.asks_for_consent or NOT_TAKEN not in visitor.words:
        return "the poll is shown"
    return _sent_or_complained(visitor, 0)


def untrue_session_shown(lie: str, harness: PageHarness) -> str | None:
    """Begin a session with dilemmas that are not the study's: the page must neither show nor store any of them."""
    poll, change = UNTRUE_SESSIONS[lie]
    harness.server.draw(poll, change)
    visitor = harness.visit(poll)
    visitor.agree()
    visitor.page.locator(".dilemma, [role=alert]:not(:empty)").first.wait_for()
    if (
        visitor.page.locator(".dilemma").count()
        or (visitor.memory_or_none() or {}).get("dilemmas")
        or NOT_TAKEN not in visitor.words
    ):
        return "the dilemmas are shown"
    return _sent_or_complained(visitor, 0)


def changed_on_the_way(harness: PageHarness) -> str | None:
    """Change the promise when everything is ready to be sent: no earlier choice may be kept or sent."""
    visitor = to_review(harness.visit(POLL))
    for what, change in CHANGED_PROMISES.items():
        harness.server.describe(POLL, change)
        visitor.reload()
        if not visitor.asks_for_consent or visitor.page.locator("#agree").is_checked() or CHANGED not in visitor.words:
            return f"another {what} does not lead back to consent"
        harness.server.tell_the_truth()
    visitor.agree()
    visitor.page.locator(".dilemma").wait_for()
    memory = visitor.memory()
    kept = [memory["body"], memory["about"], memory["place"], *memory["choices"]]
    if any(kept):
        return f"the page still knows {kept}"
    return _sent_or_complained(visitor, 0)


def changed_after_sending(harness: PageHarness) -> str | None:
    """Change the promise after a report has arrived: the page must stop, and still be able to withdraw it."""
    visitor = to_review(harness.visit(POLL))
    visitor.press_primary()
    report = visitor.done()
    for what, change in CHANGED_PROMISES.items():
        harness.server.describe(POLL, change)
        visitor.reload()
        if visitor.asks_for_consent or CHANGED_SINCE not in visitor.words or report not in visitor.words:
            return f"another {what} does not stop the page"
        if not visitor.page.get_by_role("button", name="Withdraw").is_visible():
            return f"after another {what} the report cannot be withdrawn"
        harness.server.tell_the_truth()
    return _sent_or_complained(visitor, 1)


def changed_while_sending(harness: PageHarness) -> str | None:
    """Lose the connection, then change the promise: the report may have arrived, and must not be remade or resent."""
    visitor = to_review(harness.visit(POLL))
    body = visitor.shown_body()
    visitor.page.route("**/report", lambda route: route.abort())
    visitor.press_primary()
    visitor.page.get_by_text("Nothing is lost").wait_for()
    harness.server.describe(POLL, CHANGED_PROMISES["place"])
    tried = len(visitor.sent())
    visitor.page.unroute("**/report")
    visitor.complaints.clear()  # The browser itself reports the lost connection.
    visitor.reload()
    if CHANGED_SINCE not in visitor.words:
        return "the page does not stop"
    if visitor.memory()["body"] != body:
        return "the report was made anew"
    return _sent_or_complained(visitor, tried)


def under_another_name(harness: PageHarness) -> str | None:
    """Ask for a report on the same study in other polls: it must be refused. A poll of another study stays open."""
    visitor = to_review(harness.visit(POLL))
    visitor.press_primary()
    report = visitor.done()
    for other in ("subset-selection", "central"):
        visitor.open(harness.address_of(other))
        if "has another name" not in visitor.words or report not in visitor.words or visitor.asks_for_consent:
            return f"the poll {other} of the same study may ask again"
    visitor.open(harness.address_of("kidney"))
    if not visitor.asks_for_consent:
        return "a poll of another study may not ask"
    return _sent_or_complained(visitor, 1)


def forgotten_ballot(harness: PageHarness) -> str | None:
    """Ask again after the ballot itself was deleted: the device must still know that it has taken part."""
    visitor = to_review(harness.visit(POLL))
    visitor.press_primary()
    visitor.done()
    visitor.page.evaluate(FORGET)
    visitor.reload()
    if visitor.asks_for_consent or "somebody has already taken part" not in visitor.words:
        return "the page may be asked again"
    return _sent_or_complained(visitor, 1)


def tagged_study(harness: PageHarness) -> str | None:
    """Compare the fingerprint in a report with that of the study shown: the server must not be able to mark it."""
    visitor = to_review(harness.visit("kidney"))
    described = visitor.page.request.get(f"{harness.server.address}/api/polls/kidney").json()
    own = Study.from_dict(described["study"]).fingerprint
    if json.loads(visitor.shown_body())["study"] != own:
        return "the report has another fingerprint than the study"
    return _sent_or_complained(visitor, 0)


def to_review(visitor: Visitor) -> Visitor:
    """Go to the screen on which everything is ready to be sent."""
    visitor.agree()
    visitor.page.locator(".dilemma").wait_for()
    visitor.answer_all()
    visitor.page.locator(".sent").wait_for()
    return visitor


def _sent_or_complained(visitor: Visitor, expected: int) -> str | None:
    """Return a finding if the number of reports sent is wrong, or if the page logs an error."""
    if len(visitor.sent()) != expected:
        return f"{len(visitor.sent())} reports were sent in place of {expected}"
    if None in visitor.told():
        return "more was told of a step than its name"
    return f"the page complains: {visitor.complaints[0]}" if visitor.complaints else None


BORDERS: dict[str, PageCase] = {
    "an honest server": honest,
    **LIES,
}
VISITS: dict[str, PageCase] = {
    **{
        f"{lie}, shown": partial(untrue_poll_shown, lie)
        for lie in (
            "randomised response for all of a voter",
            "a fingerprint that marks the visitor",
            "a million dilemmas",
        )
    },
    **{
        f"{lie}, shown": partial(untrue_session_shown, lie)
        for lie in ("one dilemma again and again", "a value beyond its range")
    },
    "another promise on the way": changed_on_the_way,
    "another promise after sending": changed_after_sending,
    "another promise while sending": changed_while_sending,
    "the same study under another name": under_another_name,
    "a ballot that is forgotten": forgotten_ballot,
    "a mark in the report": tagged_study,
}
CASES = {**BORDERS, **VISITS}


@dataclass(frozen=True)
class PageMutant:
    """A deliberate mistake in one of the page's modules, and the case that should reveal it."""

    mistake: str
    module: str
    right: str
    wrong: str
    noticed_by: str


PAGE_MUTANTS = (
    PageMutant(
        "a page that believes any unit", "poll.js", "units.includes(unit)", "true", "randomised response for records"
    ),
    PageMutant(
        "a page that believes any fingerprint",
        "poll.js",
        "fingerprint(study) === described.study_fingerprint",
        "true",
        "a fingerprint that marks the visitor",
    ),
    PageMutant(
        "a page that lets unknown fields through",
        "poll.js",
        "unknown === undefined",
        "true",
        "a field that marks the visitor",
    ),
    PageMutant(
        "a page that takes any epsilon",
        "mechanisms/records.js",
        " && micro <= GREATEST_MICRO",
        "",
        "an epsilon above 50",
    ),
    PageMutant(
        "a page that takes any scale",
        "poll.js",
        "positive(`the unit of feature ${name}`, feature.unit);",
        "",
        "a unit of nothing",
    ),
    PageMutant(
        "a page that sees no repeats", "poll.js", "!repeats(study, dilemmas)", "true", "one dilemma again and again"
    ),
    PageMutant(
        "a page that counts no dilemmas",
        "poll.js",
        "dilemmas.length === drawing.dilemmas",
        "true",
        "a dilemma too few",
    ),
    PageMutant(
        "a page that takes values out of bounds",
        "poll.js",
        "value >= low && value <= high",
        "true",
        "a value beyond its range",
    ),
    PageMutant(
        "a page that does not check the poll",
        "main.js",
        "checkedPoll(await getPoll(pollName()))",
        "await getPoll(pollName())",
        "a fingerprint that marks the visitor, shown",
    ),
    PageMutant(
        "a page that does not check the dilemmas",
        "page.js",
        "checkedSession(this.poll.study, (await getSession(this.poll.id)).dilemmas)",
        "(await getSession(this.poll.id)).dilemmas",
        "one dilemma again and again, shown",
    ),
    PageMutant(
        "a page that forgets what it promised",
        "journey.js",
        "stored.promise !== promise",
        "false",
        "another promise on the way",
    ),
    PageMutant(
        "a page that promises any place",
        "poll.js",
        "const promised = { id, place, unit,",
        "const promised = { id,",
        "another promise while sending",
    ),
    PageMutant(
        "a page that asks for free text anywhere",
        "poll.js",
        'place === "central" || kind !== "text"',
        "true",
        "free text where nobody is trusted",
    ),
    PageMutant(
        "a page that knows polls by their names",
        "main.js",
        "participationKey(poll.study) + link",
        "poll.id + link",
        "the same study under another name",
    ),
    PageMutant(
        "a page that forgets that it has sent",
        "page.js",
        "if (this.store.submission() === null) this.store.writeSubmission",
        "if (false) this.store.writeSubmission",
        "a ballot that is forgotten",
    ),
    PageMutant(
        "a page that tells a choice with a step",
        "page.js",
        "tellStep(this.poll.id, step)",
        "tellStep(this.poll.id, step + this.state.choices[0])",
        "a mark in the report",
    ),
)


@contextmanager
def open_page_harness() -> Iterator[PageHarness]:
    """Start the lying server and the browser."""
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        server = stack.enter_context(lying_server(Path(folder)))
        harness = PageHarness(server, stack.enter_context(open_browser()))
        stack.callback(harness.close)
        yield harness


def lies_against_page(harness: PageHarness, mutant: PageMutant | None = None) -> Iterator[str | None]:
    """Try all cases on the page as it is, or the case that should reveal the mistake on a mutant."""
    if mutant is not None:
        harness.server.damage(mutant.module, mutant.right, mutant.wrong)
    harness.load_modules()
    try:
        for name in CASES if mutant is None else (mutant.noticed_by,):
            yield try_case(harness, name, CASES[name])
    finally:
        harness.server.repair()
        harness.load_modules()


def page_attacks(harness: PageHarness) -> tuple[Attack, ...]:
    """List the attacks on the page and on copies with a mistake."""
    return attacks(PAGE, lambda mutant: lies_against_page(harness, mutant), PAGE_MUTANTS)
