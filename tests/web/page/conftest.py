"""The real service with a poll for every kind of journey, and pages of a real browser that watch what is sent."""

from datetime import date

import numpy as np
import pytest
from tests.kinds_of_question import CHECK, NOISY, TEXT
from tests.web.page.devices import Devices

from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.protocol.report import write_reports
from crowdveil.publish.gather import release_from_reports
from crowdveil.service.app import create_app
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.server import served_here
from crowdveil.service.service import Service
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.store import open_store
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study

AGE = {
    "id": "age",
    "text": {"en": "How old are you?", "ar": "كم عمرك؟"},
    "options": [
        {"id": "young", "text": {"en": "Under 30", "ar": "أقل من 30"}},
        {"id": "middle", "text": {"en": "30 to 59", "ar": "من 30 إلى 59"}},
        {"id": "old", "text": {"en": "60 or older", "ar": "60 أو أكثر"}},
    ],
}
LEVEL = {"levels": {"balanced": "1"}}
DILEMMAS = 5
"""A session is this short, so that the tests are, too; the central poll has the study as it is."""
DISTRIBUTED_POLLS = {
    "score": {"paradigm": "rldp", "mechanism": "score", "questions": [AGE], "about_epsilon": "1"},
    "algorithm-3": {"paradigm": "rldp", "mechanism": "algorithm-3", **LEVEL},
    "algorithm-2": {"paradigm": "vldp", "mechanism": "algorithm-2", **LEVEL},
    "one-bit": {"paradigm": "vldp", "mechanism": "one-bit", **LEVEL},
    "subset-selection": {"paradigm": "vldp", "mechanism": "subset-selection", **LEVEL},
    "algorithm-3-choices": {"paradigm": "aldp", "mechanism": "algorithm-3-choices", **LEVEL},
    "randomised-response": {"paradigm": "aldp", "mechanism": "randomised-response", **LEVEL},
    "one-choice": {"paradigm": "aldp", "mechanism": "one-choice", **LEVEL},
}
"""A poll for each mechanism that runs on the voter's device, named after it."""

OTHER_POLLS = {
    "central": {
        "paradigm": "rlcp",
        "questions": [AGE],
        "completion_code": "SPARED-42",
        "return_url": "https://example.org/done",
        "consent": {"en": "We are the Institute.\n\nWe keep the answers for a year."},
        "contact": "host@example.org",
    },
    "central-kinds": {
        "paradigm": "rlcp",
        "study": "kidney",
        "questions": [*NOISY, TEXT, CHECK],
        "failed_checks": "left-out",
        "minimum_age": 18,
    },
    "kinds": {"paradigm": "rldp", "study": "kidney", "questions": [*NOISY, CHECK], "about_epsilon": "1", **LEVEL},
    "kidney": {"study": "kidney", "paradigm": "rldp", **LEVEL},
    "fairness": {"study": "fairness", "paradigm": "vldp", **LEVEL},
    "synthetic": {"study": "synthetic-4", "paradigm": "vldp", **LEVEL},
    "coin": {"study": "kidney", "paradigm": "aldp", **LEVEL},
    "central-coin": {"paradigm": "vlcp"},
    "twice": {"study": "kidney", "paradigm": "aldp", "mechanism": "randomised-response", **LEVEL},
    "central-twice": {"study": "kidney", "paradigm": "rlcp"},
    "by-link": {"paradigm": "rldp", "entry": "links", **LEVEL},
    "released": {"paradigm": "rldp", "mechanism": "score", **LEVEL},
    "closed": {"paradigm": "rldp", **LEVEL},
}


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """The service on a database of its own, with every poll."""
    directory = tmp_path_factory.mktemp("service")
    with open_store(f"sqlite:///{directory / 'crowdveil.sqlite'}") as store:
        for name, given in {**DISTRIBUTED_POLLS, **OTHER_POLLS}.items():
            study = load_study(given.get("study", "moral-machine")).as_dict()
            if name != "central":
                study["drawing"]["dilemmas"] = DILEMMAS
            if name.endswith("coin"):
                study["indifference"] = "Treat them equally: toss a coin"
            if name.endswith("twice"):
                study["repeat"] = True
            store.polls.add(poll_from_dict({**given, "name": name, "study": study}))
        store.polls.close("closed")
        store.releases.put("released", crowds_release(store.polls.known("released")), date(2026, 1, 2))
        yield Service(store, ServiceSettings(port=0))


def crowds_release(poll):
    """What is published of a crowd of 200."""
    reports = []
    for ballots in simulated_batches(poll.study, 200, np.random.default_rng(1)):
        epsilons = Epsilons.same(1, ballots.voters)
        batch = DISTRIBUTED[poll.mechanism].report(ballots, poll.settings, epsilons, BulkNoise())
        reports.append(write_reports(poll.mechanism, poll.study, epsilons, batch))
    return release_from_reports(reports, poll.paradigm, poll.terms)


@pytest.fixture(scope="session")
def address(service):
    """Where the service listens."""
    with served_here(create_app(service)) as address:
        yield address


@pytest.fixture(scope="session")
def devices():
    """The browsers of all voters."""
    return Devices()


@pytest.fixture
def visit(browser, address, devices):
    """Open a poll as a new voter. Whatever the page complains about fails the test, unless it is expected to.

    ``script`` runs before those of every page.
    """
    voters = []

    def open_page(poll, *, fragment="", script="", **options):
        voter = devices.lend(browser, script, options)
        voters.append(voter)
        voter.open(f"{address}/p/{poll}/{fragment}")
        return voter

    yield open_page
    complaints = [complaint for voter in voters for complaint in voter.complaints]
    for voter in voters:
        devices.take_back(voter)
    assert complaints == []


@pytest.fixture(scope="module")
def modules(browser, address, devices):
    """A page that can load the voter's page's own modules."""
    voter = devices.lend(browser, "", {})
    voter.open(f"{address}/p/algorithm-2/")
    yield voter.page
    devices.take_back(voter)


@pytest.fixture
def stored(service):
    """What the service has of a poll: bodies by report id."""

    def read(name):
        poll = service.store.polls.known(name)
        chunks = (
            service.store.submissions.reports(name) if poll.distributed else service.store.submissions.ballots(name)
        )
        return {one.id: one for chunk in chunks for one in chunk}

    return read
