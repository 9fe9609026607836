"""Somebody who takes part, with all that a person can do on the page."""

from crowdveil.audit.browser import Visitor


class Voter(Visitor):
    """A visitor of the audit's, who also chooses levels, goes back and answers questions."""

    @property
    def step(self):
        """Where the voter is, as the browser remembers it."""
        return self.memory()["step"]

    def choose_level(self, epsilon_micro):
        """Choose a level of protection."""
        self.page.locator(f"#level-{epsilon_micro}").check(force=True)
        self.press_primary()
        self.page.locator(".practice, .dilemma").first.wait_for()
        self.practise()

    def go_back(self):
        """Go back."""
        self.page.locator("main .actions button.quiet").click()

    def answer(self, side):
        """Touch a side of the dilemma on the page and go on."""
        self.page.locator(f"label.{side}").click()
        self.press_primary()

    def to_review(self, epsilon_micro=None):
        """Get to where everything is ready to be sent; return what was shown and what was chosen."""
        self.to_dilemmas(epsilon_micro)
        answered = self.answer_all()
        self.page.locator(".sent, fieldset").first.wait_for()
        if self.step == "about":
            self.press_primary()
        self.page.locator(".sent").wait_for()
        return answered

    def to_dilemmas(self, epsilon_micro=None):
        """Get past welcome and levels."""
        self.agree()
        if epsilon_micro is not None:
            self.choose_level(epsilon_micro)
        self.page.locator(".dilemma").wait_for()
