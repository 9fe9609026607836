"""A website with a released poll of each kind, for tests that change nothing."""

import pytest
from tests.service.host.website import website

from crowdveil.privacy.epsilon import Epsilon
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.poll_release import make_effects, make_release

AGE = {
    "id": "age",
    "text": {"en": "How old are you?", "de": "Wie alt sind Sie?"},
    "options": [
        {"id": "young", "text": {"en": "under 40", "de": "unter 40"}},
        {"id": "old", "text": {"en": "40 or <more>", "de": "40 oder mehr"}},
    ],
}
TRUSTED = {"name": "preferred", "study": "kidney", "paradigm": "vlcp", "budget": 50, "questions": [AGE]}
ODD_TITLE = 'Cars & "cats" <script>'


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with website(tmp_path_factory.mktemp("public")) as made:
        made.store.polls.add(poll_from_dict(TRUSTED))
        odd = {**poll_from_dict(TRUSTED).study.as_dict(), "name": "odd", "title": ODD_TITLE}
        made.store.polls.add(poll_from_dict({**TRUSTED, "name": "odd", "study": odd}))
        for name in ("preferred", "trusted", "untrusted", "odd"):
            made.vote(name, 12)
        for name in ("preferred", "trusted", "odd"):
            make_release(made.store, name, made.service.today(), Epsilon("2"))
        make_release(made.store, "untrusted", made.service.today())
        for by, spent in (("age", "40"), (None, "2"), (None, "2")):  # so that noise hides no group
            make_effects(made.store, "preferred", made.service.today(), by, Epsilon(spent))
        made.browser.cookies.clear()
        yield made
