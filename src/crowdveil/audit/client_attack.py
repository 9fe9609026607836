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

from crowdveil.audit.attacks import CLIENT, Attack, attacks
from crowdveil.audit.lying_server import (
    CHANGED_PROMISES,
    LIES,
    POLLS,
    Description,
    LyingServer,
    lying_server,
    try_case,
)
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


class RecordedTransport(httpx.HTTPTransport):
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
class ClientVoter:
    """A voter who uses the client, and how often she was asked."""

    client: Client
    network: RecordedTransport
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
class ClientHarness:
    """A lying server, and the client that it lies to."""

    server: LyingServer
    client: type[Client] = Client

    @contextmanager
    def voter(self) -> Iterator[ClientVoter]:
        """Yield a voter who has never been here."""
        network = RecordedTransport()
        http = httpx.Client(transport=network, timeout=PATIENCE)
        with self.client(self.server.address, http=http, first_pause=0.001) as client:
            yield ClientVoter(client, network)

    def refuses(self, poll: str) -> bool:
        """Whether a poll, as the server describes it now, is refused before anything is asked or sent."""
        with self.voter() as voter:
            try:
                voter.client.vote(voter.client.poll(poll), voter.choose)
            except CrowdveilError:
                return voter.silent
            return False


ClientCase = Callable[[ClientHarness], str | None]
"""Returns a finding, or None."""


def honest(harness: ClientHarness) -> str | None:
    """Take part in honest polls: otherwise the refusals of lies would prove nothing."""
    for poll in POLLS:
        with harness.voter() as voter:
            try:
                voter.client.vote(voter.client.poll(poll), voter.choose)
            except CrowdveilError as error:
                return f"the honest poll {poll} is refused: {error}"
            if len(voter.network.sent) != 1:
                return f"in the honest poll {poll}, {len(voter.network.sent)} submissions were sent"
    return None


def changed_promise(what: str, harness: ClientHarness) -> str | None:
    """Change the promise after the voter agreed to it: the submission must keep the old one."""
    with harness.voter() as voter:
        agreed = voter.client.poll(POLL)
        harness.server.describe(POLL, CHANGED_PROMISES[what])
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


def lost_answer(harness: ClientHarness) -> str | None:
    """Lose the answer to a report: the same bytes must be sent again, with the same token."""
    with harness.voter() as voter:
        poll = voter.client.poll(POLL)
        voter.network.loses_next = True
        voter.client.vote(poll, voter.choose)
        sent = {(bytes(request.content), str(request.headers)) for request in voter.network.sent}
        if len(voter.network.sent) < 2:
            return "nothing was sent again"
    return None if len(sent) == 1 else "another report was sent"


CASES: dict[str, ClientCase] = {
    "an honest server": honest,
    **LIES,
    **{f"another {what} on the way": partial(changed_promise, what) for what in CHANGED_PROMISES},
    "an answer that is lost": lost_answer,
}


class CredulousClient(Client, ABC):
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


class AnyUnitClient(CredulousClient):
    """A client that believes any unit."""

    @staticmethod
    def put_right(told: Description) -> None:
        """Promise the unit of the paradigm."""
        told["unit"] = paradigm(told["paradigm"]).unit.value


class AnyFingerprintClient(CredulousClient):
    """A client that believes any fingerprint."""

    @staticmethod
    def put_right(told: Description) -> None:
        """Name the study that is shown."""
        told["study_fingerprint"] = Study.from_dict(told["study"]).fingerprint


class AnyEpsilonClient(CredulousClient):
    """A client that accepts any epsilon."""

    @staticmethod
    def put_right(told: Description) -> None:
        """Replace an epsilon that is too large by the largest."""
        for level in told["levels"]:
            level["epsilon_micro"] = min(level["epsilon_micro"], GREATEST.micro)


class UncheckedSessionClient(Client):
    """A client that shows whatever dilemmas a server draws: a deliberate mistake."""

    def session(self, poll: Poll) -> list[Dilemma]:
        """Read the dilemmas without checking them."""
        drawn = self._get(f"/api/polls/{poll.name}/session")["dilemmas"]
        return [Dilemma(tuple(Alternative(side, tuple(pair[side])) for side in SIDES)) for pair in drawn]


class LatestPromiseClient(Client):
    """A client that follows the server's latest description, not the one agreed to: a deliberate mistake."""

    def vote(self, poll: Poll, choose: Choose, *given: Any, **named: Any) -> VoterReceipt:
        """Fetch the poll again, and vote in it."""
        return super().vote(self.poll(poll.name), choose, *given, **named)


class FreshNoiseClient(Client):
    """A client that makes a second report when it sends again: a deliberate mistake."""

    def vote(self, poll: Poll, choose: Choose, *given: Any, **named: Any) -> VoterReceipt:
        """Vote twice."""
        super().vote(poll, choose, *given, **named)
        return super().vote(poll, choose, *given, **named)


@dataclass(frozen=True)
class ClientMutant:
    """A client with a mistake, and the case that should reveal it."""

    mistake: str
    client: type[Client]
    noticed_by: str


CLIENT_MUTANTS = (
    ClientMutant("a client that believes any unit", AnyUnitClient, "randomised response for all of a voter"),
    ClientMutant(
        "a client that believes any fingerprint", AnyFingerprintClient, "a fingerprint that marks the visitor"
    ),
    ClientMutant("a client that takes any epsilon", AnyEpsilonClient, "an epsilon above 50"),
    ClientMutant("a client that does not check the dilemmas", UncheckedSessionClient, "one dilemma again and again"),
    ClientMutant("a client that goes by the latest promise", LatestPromiseClient, "another level on the way"),
    ClientMutant("a client that makes a report anew", FreshNoiseClient, "an answer that is lost"),
)


@contextmanager
def open_server() -> Iterator[LyingServer]:
    """Start the lying server."""
    with TemporaryDirectory() as folder, lying_server(Path(folder)) as server:
        yield server


def lies_against_client(server: LyingServer, mutant: ClientMutant | None = None) -> Iterator[str | None]:
    """Try all cases on the client as it is, or the case that should reveal the mistake on a mutant."""
    harness = ClientHarness(server) if mutant is None else ClientHarness(server, mutant.client)
    for name in CASES if mutant is None else (mutant.noticed_by,):
        yield try_case(harness, name, CASES[name])


def client_attacks(server: LyingServer) -> tuple[Attack, ...]:
    """List the attacks on the client and on copies with a mistake."""
    return attacks(CLIENT, lambda mutant: lies_against_client(server, mutant), CLIENT_MUTANTS)
