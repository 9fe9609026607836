"""A website with two polls, a clock that can be moved, and a host's browser without a window."""

import base64
import hashlib
import hmac
import re
import struct
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np
from argon2 import PasswordHasher
from starlette.testclient import TestClient
from tests.service.emptying import empty

from crowdveil.client.voting import make_submission
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.protocol.description import read_poll
from crowdveil.protocol.submission import new_token, read_session
from crowdveil.service.app import create_app
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.service import Service
from crowdveil.service.store.hosts import Hosts
from crowdveil.service.store.store import open_store
from crowdveil.simulated_voters import SimulatedVoter

CENTRAL = {
    "name": "trusted",
    "study": "kidney",
    "paradigm": "vlcp",
    "mechanism": "algorithm-1",
    "budget": 2,
    "entry": "links",
    "completion_code": "DONE-42",
    "return_url": "https://recruit.example/done",
    "questions": [
        {"id": "age", "text": "Age?", "options": [{"id": "young", "text": "young"}, {"id": "old", "text": "old"}]}
    ],
}
DISTRIBUTED = {"name": "untrusted", "study": "kidney", "paradigm": "vldp", "levels": {"strong": "0.5", "light": "2"}}
POLLS = [poll_from_dict(given) for given in (CENTRAL, DISTRIBUTED)]
PASSWORD = "correct horse battery"
BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()


@dataclass(frozen=True)
class Clocked(Service):
    """A service whose time is told."""

    time: list[float] = field(default_factory=lambda: [BEGIN])

    def now(self):
        return int(self.time[0])

    def today(self):
        return datetime.fromtimestamp(self.time[0], UTC).date()


@dataclass
class Site:
    """A running website, and how a test goes about in it."""

    service: Clocked
    browser: TestClient

    @property
    def store(self):
        return self.service.store

    def later(self, seconds):
        self.service.time[0] += seconds

    def get(self, path, status=200):
        answer = self.browser.get(path)
        assert answer.status_code == status, answer.text
        return answer

    def submit(self, page, action, status=200, **fields):
        """Fill in the form of a page that sends to an action, and send it with what its hidden fields hold."""
        (form,) = re.findall(rf'<form[^>]*action="{action}"[^>]*>(.*?)</form>', self.get(page).text, re.DOTALL)[:1]
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))
        return self.post(action, {**hidden, **fields}, status)

    def post(self, action, fields, status=200, **more):
        answer = self.browser.post(action, data=fields, **more)
        assert answer.status_code == status, answer.text
        return answer

    def sign_in(self):
        token = self.store.hosts.create_sign_in_link(self.service.now())
        return self.submit("/host/sign-in", "/host/sign-in", link=token)

    def vote(self, name, voters, seed=1):
        """Let simulated voters vote through the API; return their tokens."""
        poll = read_poll(self.get(f"/api/polls/{name}").json())
        tokens = (
            self.store.submissions.create_links(name, voters)
            if poll.entry == "links"
            else [new_token() for _ in range(voters)]
        )
        rng = np.random.default_rng(seed)
        for token in tokens:
            voter = SimulatedVoter(poll, rng)
            dilemmas = read_session(poll.study, self.get(f"/api/polls/{name}/session").json())
            choose = voter.chooser()
            level = poll.level(voter.level())
            made = make_submission(
                poll, dilemmas, [choose(d) for d in dilemmas], level, voter.about(), token, BulkNoise()
            )
            path = f"/api/polls/{name}/{made.kind}"
            sent = self.browser.put(path, content=made.body, headers={"Crowdveil-Ballot": token})
            assert sent.status_code == 201, sent.text
        return tokens


def flat(page):
    """Return a page's source on one line: where it is broken means nothing."""
    return re.sub(r">\s+<", "><", " ".join(page.split()))


def code_at(key, time):
    """A one-time code by the letter of RFC 4226 and RFC 6238."""
    digest = hmac.new(base64.b32decode(key), struct.pack(">Q", int(time) // 30), hashlib.sha1).digest()
    start = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[start : start + 4])[0] & 0x7FFFFFFF) % 10**6:06d}"


def begin_anew(site):
    """Leave a website as it is in the beginning: nobody is signed in, nobody has voted."""
    empty(site.service)
    for poll in POLLS:
        site.store.polls.add(poll)
    site.service.time[0] = BEGIN
    site.browser.cookies.clear()


@contextmanager
def website(folder, base_url="http://crowd.example", **settings):
    with open_store(f"sqlite:///{folder}/crowdveil.sqlite") as store:
        for poll in POLLS:
            store.polls.add(poll)
        quick = Hosts(store.database, PasswordHasher(time_cost=1, memory_cost=64))
        service = Clocked(replace(store, hosts=quick), **settings)
        with TestClient(create_app(service), base_url=base_url) as browser:
            yield Site(service, browser)
