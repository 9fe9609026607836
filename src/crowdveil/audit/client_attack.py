"""A lying server against the Python client: the lies told to the page (``page_attack``), told to a program that votes.

No lie may get a choice out of the client. A promise that changes after the voter agreed to it must change nothing. If
an answer is lost, the same bytes must be sent again. Clients that lack one of their checks must be caught accepting a
lie.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from crowdveil.audit.lying_server import (
    CHANGED_PROMISES,
    LIES,
    POLLS,
    Description,
    LyingServer,
    lying_server,
    try_case,
)
from crowdveil.audit.surroundings import CLIENT, Attack, attacks
from crowdveil.client.client import Client, VoterReceipt
from crowdveil.client.voting import Choose
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import GREATEST
from crowdveil.privacy.guarantee import paradigm
from crowdveil.protocol.polls import Poll
from crowdveil.protocol.submission import SIDES
from crowdveil.study.study import Alternative, Dilemma, Study

PATIENCE = 60
"""Seconds after which an answer counts as lost."""
POLL = "algorithm-2"
"""The poll whose promise is changed after the voter agreed to it."""


class Network(httpx.HTTPTransport):
    """The connection to the server, which may lose an answer, with a record of everything that was sent."""

    def __init__(self) -> None:
        super().__init__(verify=False)  # The server runs on this machine, so there are no certificates to load.
        self.sent = list[httpx.Request]()
        self.loses_next = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Deliver a request, and record it unless it is a GET."""
        answer = super().handle_request(request)
        if request.method != "GET":
            self.sent.append(request)
            if self.loses_next:
                self.loses_next = False
                answer.close()
                raise httpx.ReadError("the connection was lost", request=request)
        return answer


@dataclass
class Voter:
    """A voter who uses the client, and how often she was asked."""

    client: Client
    network: Network
    asked: int = 0

    def choose(self, dilemma: Dilemma) -> str:
        """Choose a side."""
        self.asked += 1
        return SIDES[0]

    @property
    def silent(self) -> bool:
        """Whether the voter was asked nothing and sent nothing."""
        return self.asked == 0 and not self.network.sent


@dataclass(frozen=True)
class Stage:
    """A lying server, and the client that it lies to."""

    server: LyingServer
    client: type[Client] = Client

    @contextmanager
    def voter(self) -> Iterator[Voter]:
        """Yield a voter who has never been here."""
        network = Network()
        http = httpx.Client(transport=network, timeout=PATIENCE)
        with self.client(self.server.address, http=http, first_pause=0.001) as client:
            yield Voter(client, network)

    def refuses(self, poll: str) -> bool:
        """Whether a poll, as the server describes it now, is refused before anything is asked or sent."""
        with self.voter() as voter:
            try:
                voter.client.vote(voter.client.poll(poll), voter.choose)
            except CrowdveilError:
                return voter.silent
            return False


Case = Callable[[Stage], str | None]
"""Returns a finding, or None."""


def honest(stage: Stage) -> str | None:
    """Take part in honest polls: otherwise the refusals of lies would prove nothing."""
    for poll in POLLS:
        with stage.voter() as voter:
            try:
                voter.client.vote(voter.client.poll(poll), voter.choose)
            except CrowdveilError as error:
                return f"the honest poll {poll} is refused: {error}"
            if len(voter.network.sent) != 1:
                return f"in the honest poll {poll}, {len(voter.network.sent)} submissions were sent"
    return None


def changed_promise(what: str, stage: Stage) -> str | None:
    """Change the promise after the voter agreed to it: the submission must keep the old one."""
    with stage.voter() as voter:
        agreed = voter.client.poll(POLL)
        stage.server.describe(POLL, CHANGED_PROMISES[what])
        with suppress(CrowdveilError):  # The server may refuse a report that it did not ask for, but it has seen it.
            voter.client.vote(agreed, voter.choose)
    if len(voter.network.sent) != 1:
        return f"{len(voter.network.sent)} submissions were sent"
    (sent,) = voter.network.sent
    report = json.loads(sent.content)
    promised = (agreed.study.fingerprint, agreed.mechanism, agreed.levels[0].epsilon.micro)
    kept = (report.get("study"), report.get("mechanism"), report.get("epsilon_micro"))
    if kept != promised or not sent.url.path.endswith("/report"):
        return "what was sent does not keep what was agreed to"
    return None


def lost_answer(stage: Stage) -> str | None:
    """Lose the answer to a report: the same bytes must be sent again, with the same token."""
    with stage.voter() as voter:
        poll = voter.client.poll(POLL)
        voter.network.loses_next = True
        voter.client.vote(poll, voter.choose)
        sent = {(bytes(request.content), str(request.headers)) for request in voter.network.sent}
        if len(voter.network.sent) < 2:
            return "nothing was sent again"
    return None if len(sent) == 1 else "another report was sent"


CASES: dict[str, Case] = {
    "an honest server": honest,
    **LIES,
    **{f"another {what} on the way": partial(changed_promise, what) for what in CHANGED_PROMISES},
    "an answer that is lost": lost_answer,
}


class Credulous(Client, ABC):
    """A client that trusts a part of a poll's description: it corrects the part before it is checked."""

    @staticmethod
    @abstractmethod
    def put_right(told: Description) -> None:
        """Correct a part of a description."""

    def _get(self, path: str) -> Any:
        told = super()._get(path)
        if path == f"/api/polls/{told.get('id')}":
            self.put_right(told)
        return told


class AnyUnit(Credulous):
    """A client that believes any unit."""

    @staticmethod
    def put_right(told: Description) -> None:
        """Promise the unit of the paradigm."""
        told["unit"] = paradigm(told["paradigm"]).unit.value


class AnyFingerprint(Credulous):
    """A client that believes any fingerprint."""

    @staticmethod
    def put_right(told: Description) -> None:
        """Name the study that is shown."""
        told["study_fingerprint"] = Study.from_dict(told["study"]).fingerprint


class AnyEpsilon(Credulous):
    """A client that accepts any epsilon."""

    @staticmethod
    def put_right(told: Description) -> None:
        """Replace an epsilon that is too large by the largest."""
        for level in told["levels"]:
            level["epsilon_micro"] = min(level["epsilon_micro"], GREATEST.micro)


class UncheckedSession(Client):
    """A client that shows whatever dilemmas a server draws: a deliberate mistake."""

    def session(self, poll: Poll) -> list[Dilemma]:
        """Read the dilemmas without checking them."""
        drawn = self._get(f"/api/polls/{poll.name}/session")["dilemmas"]
        return [Dilemma(tuple(Alternative(side, tuple(pair[side])) for side in SIDES)) for pair in drawn]


class LatestPromise(Client):
    """A client that follows the server's latest description, not the one agreed to: a deliberate mistake."""

    def vote(self, poll: Poll, choose: Choose, *given: Any, **named: Any) -> VoterReceipt:
        """Fetch the poll again, and vote in it."""
        return super().vote(self.poll(poll.name), choose, *given, **named)


class FreshNoise(Client):
    """A client that makes a second report when it sends again: a deliberate mistake."""

    def vote(self, poll: Poll, choose: Choose, *given: Any, **named: Any) -> VoterReceipt:
        """Vote twice."""
        super().vote(poll, choose, *given, **named)
        return super().vote(poll, choose, *given, **named)


@dataclass(frozen=True)
class Sabotage:
    """A client with a mistake, and the case that should reveal it."""

    mistake: str
    client: type[Client]
    noticed_by: str


SABOTAGES = (
    Sabotage("a client that believes any unit", AnyUnit, "randomised response for all of a voter"),
    Sabotage("a client that believes any fingerprint", AnyFingerprint, "a fingerprint that marks the visitor"),
    Sabotage("a client that takes any epsilon", AnyEpsilon, "an epsilon above 50"),
    Sabotage("a client that does not check the dilemmas", UncheckedSession, "one dilemma again and again"),
    Sabotage("a client that goes by the latest promise", LatestPromise, "another level on the way"),
    Sabotage("a client that makes a report anew", FreshNoise, "an answer that is lost"),
)


@contextmanager
def open_server() -> Iterator[LyingServer]:
    """Start the lying server."""
    with TemporaryDirectory() as folder, lying_server(Path(folder)) as server:
        yield server


def lies_against_client(server: LyingServer, sabotage: Sabotage | None = None) -> Iterator[str | None]:
    """Try all cases on the client as it is, or the case that should reveal the mistake on a sabotaged one."""
    stage = Stage(server) if sabotage is None else Stage(server, sabotage.client)
    for name in CASES if sabotage is None else (sabotage.noticed_by,):
        yield try_case(stage, name, CASES[name])


def client_attacks(server: LyingServer) -> tuple[Attack, ...]:
    """List the attacks on the client and on copies with a mistake."""
    return attacks(CLIENT, lambda sabotage: lies_against_client(server, sabotage), SABOTAGES)
