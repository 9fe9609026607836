"""A client for a crowdveil website. It sends a request again, with the same bytes, if the connection is lost.

>>> import crowdveil as cv
>>> client = cv.Client("https://crowd.example")  # doctest: +SKIP
>>> client.decide([{"girl": 1}, {"dog": 2}]).choice  # doctest: +SKIP
'A'
"""

from __future__ import annotations

import json
import math
import random
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

import httpx

from crowdveil.decision import DEFAULT_CERTAINTY, Alternatives
from crowdveil.errors import (
    CrowdveilError,
    Reason,
    Refusal,
    check_certainty,
    check_text,
    check_type,
    is_number,
    shown,
)
from crowdveil.protocol.decisions import CURRENT, RemoteDecision, read_decision
from crowdveil.protocol.polls import Poll, PollState, PollSummary
from crowdveil.protocol.questions import Answer
from crowdveil.protocol.relay import SEALED_TYPE, check_fingerprint
from crowdveil.protocol.submission import (
    TOKEN_HEADER,
    Receipt,
    Repeat,
    Submission,
    SubmissionStatus,
    mirrored,
    new_token,
    read_session,
    repeatable,
)
from crowdveil.releases import Release, release_from_dict
from crowdveil.study.study import Dilemma

if TYPE_CHECKING:
    from crowdveil.client.voting import Choose


TRIES = 6
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0
BUSY = frozenset({429, 502, 503, 504})
"""Status codes after which the same request may succeed a little later."""


class Unreachable(CrowdveilError):
    """The server did not answer any of several attempts."""


def website(url: object) -> httpx.URL:
    """Return the address of a website; refuse what is none."""
    if not (isinstance(url, str) and url.startswith(("http://", "https://"))):
        raise CrowdveilError(f"{shown(url)} is not the address of a website: it must begin with http:// or https://")
    try:
        return httpx.URL(url)
    except httpx.InvalidURL as error:
        raise CrowdveilError(f"{shown(url)} is not the address of a website: {error}") from None


class Connection:
    """A connection to a server, which repeats requests that were lost.

    Every request of the API has the same effect once or twice, so a lost one is sent again unchanged.
    """

    def __init__(self, http: httpx.Client, pause: float = FIRST_PAUSE) -> None:
        self._http = http
        self._pause = pause

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        token: str | None = None,
        kind: str = "application/json",
        more_headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request and return the JSON of the answer; None if it is empty. ``kind`` is the body's media type."""
        headers = {**({} if body is None else {"Content-Type": kind}), **(more_headers or {})}
        if token is not None:
            headers[TOKEN_HEADER] = token
        answer = self._answer(httpx.Request(method, self._http.base_url.join(path), headers=headers, content=body))
        if answer.is_success:
            return self._json(answer) if answer.content else None
        said = self._json(answer)
        error = said.get("error") if isinstance(said, dict) else None
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            raise CrowdveilError(
                f"{answer.request.url} answered {answer.status_code}, but not in the way a crowdveil website does"
            )
        raise Refusal(_reason(error.get("reason")), error["message"])

    @property
    def url(self) -> str:
        """The server's address."""
        return str(self._http.base_url)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _answer(self, request: httpx.Request) -> httpx.Response:
        pause = self._pause
        lost = "no answer"
        for final in (False,) * (TRIES - 1) + (True,):
            wait = pause * random.uniform(0.5, 1)  # so that many clients do not come back all at once
            try:
                answer = self._http.send(request)
                if final or answer.status_code not in BUSY:
                    return answer
                wait = max(wait, _asked_to_wait(answer))
            except httpx.TransportError as error:
                lost = str(error) or type(error).__name__
            if not final:
                time.sleep(min(wait, LONGEST_PAUSE))
            pause *= 2
        raise Unreachable(f"cannot reach {self._http.base_url} ({lost}): is `crowdveil serve` running there?")

    @staticmethod
    def _json(answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except ValueError:
            raise CrowdveilError(
                f"{answer.request.url} answered {answer.status_code} without JSON: it is not a crowdveil website"
            ) from None


def _asked_to_wait(answer: httpx.Response) -> float:
    seconds = answer.headers.get("Retry-After", "0")
    return float(seconds) if seconds.isdecimal() else 0.0


def _reason(given: Any) -> Reason:
    """Return the server's reason; a reason that this version does not know becomes a bad request."""
    return Reason(given) if given in list(Reason) else Reason.BAD_REQUEST


@dataclass(frozen=True)
class VoterReceipt(Receipt):
    """A receipt, with the token that its voter keeps."""

    token: str
    """The token that withdraws the vote: keep it."""


class Client:
    """A crowdveil website at an address.

    It tries again if a connection is lost or the server is busy. If the server refuses something, it raises ``Refusal``
    with the server's message. Several threads may use one client.
    """

    def __init__(self, url: str, *, http: httpx.Client | None = None, first_pause: float = FIRST_PAUSE) -> None:
        """Use the website at ``url``. Give ``http`` if you need a proxy, certificates or another transport."""
        address = website(url)
        if http is not None:
            check_type(http, httpx.Client, "http", "give an httpx.Client")
        if not (is_number(first_pause) and 0 <= first_pause < math.inf):
            raise CrowdveilError(f"first_pause is {shown(first_pause)}: give a number of seconds, 0 or more")
        http = http or httpx.Client(timeout=30)
        http.base_url = address
        self._connection = Connection(http, first_pause)
        self._relays: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"<client of {self._connection.url}>"

    # --- Asking the crowd

    def releases(self, poll: str | None = None) -> list[dict[str, Any]]:
        """List the releases, newest first; ``current`` marks the ones that decisions use."""
        return list(self._get(_releases(poll))["releases"])

    def release(self, id: str = CURRENT, *, poll: str | None = None) -> Release:
        """Fetch a release and check it, as ``read_release`` checks a file.

        ``id`` is a checksum, ``current`` (the one that the poll's decisions use) or ``latest``. Name the poll unless
        the website has only one, or ``id`` is a checksum.
        """
        return release_from_dict(self._get(f"{_releases(poll)}/{_quoted(id, 'the release')}"))

    def decide(
        self,
        alternatives: Alternatives,
        *,
        poll: str | None = None,
        release: str = CURRENT,
        certainty: float = DEFAULT_CERTAINTY,
    ) -> RemoteDecision:
        """Ask what the crowd would choose, with what probability, and how certain this is despite the noise."""
        check_certainty(certainty)
        path = f"{_releases(poll)}/{_quoted(release, 'the release')}/decisions"
        return read_decision(self._post(path, {"alternatives": _plain(alternatives), "certainty": certainty}))

    def decide_many(
        self,
        dilemmas: Sequence[Alternatives],
        *,
        poll: str | None = None,
        release: str = CURRENT,
        certainty: float = DEFAULT_CERTAINTY,
    ) -> list[RemoteDecision]:
        """Decide up to 1,000 dilemmas from one release, and return the decisions in the same order."""
        check_certainty(certainty)
        if isinstance(dilemmas, str) or not isinstance(dilemmas, Sequence):
            raise CrowdveilError(f"the dilemmas are {shown(dilemmas)}: give a list of dilemmas")
        path = f"{_releases(poll)}/{_quoted(release, 'the release')}/decisions/batch"
        asked = {"dilemmas": [{"alternatives": _plain(given)} for given in dilemmas], "certainty": certainty}
        return [read_decision(made) for made in self._post(path, asked)["decisions"]]

    # --- Taking part

    def polls(self) -> list[PollSummary]:
        """List the website's polls."""
        names = PollSummary.__dataclass_fields__
        try:
            return [
                PollSummary(**{name: poll[name] for name in names} | {"state": PollState(poll["state"])})
                for poll in self._get("/api/polls")["polls"]
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise CrowdveilError(f"the server's list of polls cannot be read: {type(error).__name__} {error}") from None

    def poll(self, name: str, *, key: str | None = None) -> Poll:
        """Fetch a poll's questions and terms; refuse a poll that contradicts itself.

        If the poll has a relay, ``key`` is the fingerprint in the poll's address, which the host's key must match.
        """
        from crowdveil.protocol.description import read_poll  # only voters need this and the mechanisms

        if key is not None:
            check_text(key, "the key")
        poll = read_poll(self._get(f"/api/polls/{_quoted(name, 'the poll')}"))
        if key is not None:
            check_fingerprint(poll, key, "the poll's address names")
        return poll

    def session(self, poll: Poll) -> list[Dilemma]:
        """Fetch dilemmas for one voter, each between an alternative named left and one named right."""
        _check_poll(poll)
        return read_session(poll.study, self._get(f"/api/polls/{quote(poll.name, safe='')}/session"))

    def vote(
        self,
        poll: Poll,
        choose: Choose,
        level: str | None = None,
        *,
        about: Mapping[str, Answer] | None = None,
        token: str | None = None,
    ) -> VoterReceipt:
        """Answer a session's dilemmas and send the result.

        In a distributed poll the choices do not leave this machine: exact noise is added here, for the level of privacy
        (by name; None takes the most private one). ``about`` answers questions by their id: an option's id, a list of
        option ids, a whole number or a text. ``token`` is that of a voter's link if the poll has links.
        """
        return self.send(self.submission(poll, choose, level, about=about, token=token))

    def submission(
        self,
        poll: Poll,
        choose: Choose,
        level: str | None = None,
        *,
        about: Mapping[str, Answer] | None = None,
        token: str | None = None,
    ) -> Submission:
        """Answer a session's dilemmas without sending anything: the first half of ``vote``.

        If the study asks one dilemma twice, this machine draws which one, and asks it again with its sides swapped.
        """
        from crowdveil.client.voting import make_submission
        from crowdveil.privacy.noise.exact_noise import BulkNoise

        _check_poll(poll)
        if not callable(choose):
            raise CrowdveilError(f"choose is {shown(choose)}: give a function of a dilemma that returns left or right")
        if about is not None:
            check_type(about, Mapping, "about", "give a mapping from questions to answers")
        if token is not None:
            check_text(token, "the token")
        chosen = poll.level(level)
        self._compare_with_relay(poll)
        dilemmas = self.session(poll)
        choices = [choose(dilemma) for dilemma in dilemmas]
        repeat = None
        if poll.study.repeat:
            place = secrets.randbelow(repeatable(poll.study))
            repeat = Repeat(place, choose(mirrored(dilemmas[place])))
        return make_submission(poll, dilemmas, choices, chosen, about or {}, token or new_token(), BulkNoise(), repeat)

    def send(self, submission: Submission) -> VoterReceipt:
        """Send a submission, to the relay if it is sealed. It may be sent again, and counts only once."""
        check_type(submission, Submission, "the submission", "make it with client.submission(poll, choose)")
        if submission.relay is None:
            path = f"/api/polls/{quote(submission.poll, safe='')}/{submission.kind}"
            told = self._connection.ask("PUT", path, body=submission.body, token=submission.token)
        else:
            path = f"{submission.relay}/api/polls/{quote(submission.poll, safe='')}/report"
            told = self._connection.ask("PUT", path, body=submission.body, token=submission.token, kind=SEALED_TYPE)
        try:
            return VoterReceipt(
                id=told["id"],
                status=SubmissionStatus(told["status"]),
                completion_code=told["completion_code"],
                return_url=told["return_url"],
                token=submission.token,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CrowdveilError(f"the server's receipt cannot be read: {type(error).__name__} {error}") from None

    def withdraw(self, poll: str | Poll, token: str) -> bool:
        """Delete a vote; return False if there was none. The token cannot be used again.

        If the poll has a relay, give the ``Poll``: the relay erases a report that it has not yet handed over.
        """
        check_text(token, "the token")
        if not isinstance(poll, str):
            _check_poll(poll)
        name, place = (poll, "") if isinstance(poll, str) else (poll.name, poll.relay.url if poll.relay else "")
        try:
            self._connection.ask("DELETE", f"{place}/api/polls/{quote(name, safe='')}/participation", token=token)
        except Refusal as refusal:
            if refusal.reason is Reason.NOTHING_STORED:
                return False
            raise
        return True

    def _compare_with_relay(self, poll: Poll) -> None:
        """Refuse a poll whose relay states another key or promise than the host. Ask the relay only once."""
        if poll.relay is None or self._relays.get(poll.name) == poll.relay.url:
            return
        from crowdveil.protocol.description import relayed_promise

        told = self._get(f"{poll.relay.url}/api/polls/{quote(poll.name, safe='')}")
        check_fingerprint(poll, told.get("fingerprint"), "its relay knows")
        if told.get("epsilon") != relayed_promise(poll).epsilon:
            raise CrowdveilError(f"poll {poll.name}: its relay knows another promise; do not vote in it")
        self._relays[poll.name] = poll.relay.url

    def _get(self, path: str) -> Any:
        return self._connection.ask("GET", path)

    def _post(self, path: str, data: Mapping[str, Any]) -> Any:
        try:
            body = json.dumps(data, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise CrowdveilError(f"this cannot be sent because it is not plain data: {error}") from None
        return self._connection.ask("POST", path, body=body)


def _releases(poll: str | None) -> str:
    return "/api/releases" if poll is None else f"/api/polls/{_quoted(poll, 'the poll')}/releases"


def _quoted(name: str, what: str) -> str:
    check_text(name, what)
    return quote(name, safe="")


def _check_poll(poll: object) -> None:
    check_type(poll, Poll, "the poll", "fetch it first, with client.poll(name)")


def _plain(alternatives: Alternatives) -> Any:
    if isinstance(alternatives, str) or not isinstance(alternatives, Sequence | Mapping):
        raise CrowdveilError(f"the dilemma is {shown(alternatives)}: give a list of alternatives")
    return dict(alternatives) if isinstance(alternatives, Mapping) else list(alternatives)
