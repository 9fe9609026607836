"""Somebody who takes part: what they do on the page, and what the page sends meanwhile."""

import json
import re
from urllib.parse import urljoin

STILL = '<!doctype html><link rel="icon" href="data:,">'


class Voter:
    """A page of a browser, used as a person uses it."""

    def __init__(self, page):
        self.page = page
        self.requests = []
        self.complaints = []
        page.on("request", lambda request: self.requests.append(request))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        page.set_default_timeout(10_000)

    def open(self, address):
        """Open a poll."""
        self.page.goto(address)
        self.page.locator("main:not([aria-busy])").wait_for()

    def leave(self):
        """Leave for a page of the site where nothing runs, and have this browser forget the visit."""
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

    @property
    def step(self):
        """Where the voter is, as the browser remembers it."""
        return self.memory()["step"]

    def memory(self):
        """What the browser remembers of the ballot."""
        memory = self.memory_or_none()
        assert memory is not None
        return memory

    def memory_or_none(self):
        """What the browser remembers of the ballot, if it has one."""
        stored = self.page.evaluate(
            "Object.keys(localStorage).filter(k => k.startsWith('crowdveil:ballot:')).map(k => localStorage.getItem(k))"
        )
        assert len(stored) <= 1
        return json.loads(stored[0])["value"] if stored else None

    def agree(self):
        """Give consent and start."""
        self.page.locator("#agree").check()
        self.press_primary()

    def choose_level(self, epsilon_micro):
        """Choose a level of protection."""
        self.page.locator(f"#level-{epsilon_micro}").check(force=True)
        self.press_primary()

    def press_primary(self):
        """Go on."""
        self.page.locator("main button.primary").click()

    def go_back(self):
        """Go back."""
        self.page.locator("main .actions button.quiet").click()

    def answer(self, side):
        """Touch a side of the dilemma on the page and go on."""
        self.page.locator(f"label.{side}").click()
        self.press_primary()

    def answer_all(self):
        """Answer all dilemmas that are left, by the arrow keys; return what was shown and what was chosen."""
        memory = self.memory()
        sides = [("left", "right")[i % 3 == 0] for i in range(len(memory["dilemmas"]))]
        for place, side in list(enumerate(sides))[memory["place"] :]:
            self.page.locator(f".progress progress[value='{place + 1}']").wait_for()
            self.page.keyboard.press("ArrowLeft" if side == "left" else "ArrowRight")
            self.page.keyboard.press("Enter")
        return memory["dilemmas"], sides

    def to_review(self, epsilon_micro=None):
        """Get to where everything is ready to be sent; return what was shown and what was chosen."""
        self.to_dilemmas(epsilon_micro)
        answered = self.answer_all()
        self.page.locator(".sent, fieldset").first.wait_for()
        if self.step == "about":
            self.press_primary()
        self.page.locator(".sent").wait_for()
        return answered

    def shown_body(self):
        """The text that the page shows as what will be sent."""
        return self.page.locator(".sent pre").text_content()

    def to_dilemmas(self, epsilon_micro=None):
        """Get past welcome and levels."""
        self.agree()
        if epsilon_micro is not None:
            self.choose_level(epsilon_micro)
        self.page.locator(".dilemma").wait_for()

    def done(self):
        """Wait for the receipt and return the report's number."""
        receipt = self.page.locator(".facts code")
        receipt.wait_for()
        assert re.fullmatch("[0-9a-f]{32}", receipt.inner_text())
        return receipt.inner_text()

    def sent(self, method="PUT"):
        """The requests of a method, in order."""
        return [request for request in self.requests if request.method == method]
