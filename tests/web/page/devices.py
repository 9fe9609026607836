"""Browsers that voters use one after the other: a new tab costs three times what a visit in an old one does."""

from tests.web.page.voter import Voter

PHONE = {"width": 360, "height": 640}


class Devices:
    """Lends voters, each with a browser context of their own in which nobody has been, as far as a site can tell."""

    def __init__(self):
        self._idle = {}
        self._lent = {}

    def lend(self, browser, script, options):
        """Return a voter whose browser has these options and runs ``script`` before those of every page."""
        options = {"viewport": PHONE, "locale": "en-GB", "reduced_motion": "reduce", **options}
        idle = self._idle.setdefault((script, repr(options)), [])
        if idle:
            voter = idle.pop()
        else:
            context = browser.new_context(**options)
            context.add_init_script(script)
            voter = Voter(context.new_page())
        self._lent[voter] = idle
        return voter

    def take_back(self, voter):
        """Take a voter back, who leaves the site as if nobody had been there."""
        voter.leave()
        self._lent.pop(voter).append(voter)
