"""A server that lies to the Python client: it is refused before anybody has chosen, and nothing is sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar

import httpx
import numpy as np
import pytest

from crowdveil.client.client import Client
from crowdveil.errors import CrowdveilError
from crowdveil.protocol.description import describe_poll
from crowdveil.protocol.polls import PollState
from crowdveil.protocol.submission import read_session, write_session
from crowdveil.service.poll import poll_from_dict
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_session

POLL = poll_from_dict({"name": "p", "study": "kidney", "paradigm": "vldp"})
DESCRIPTION = json.loads(json.dumps(describe_poll(POLL, ["en"], PollState.OPEN, None)))
SESSION = json.loads(json.dumps(write_session(draw_session(POLL.study, np.random.default_rng(1)))))
DILEMMAS = SESSION["dilemmas"]
Answer = dict[str, Any]


class Server:
    """Describes a poll, draws a session, and notes whatever else is asked of it."""

    receipt: ClassVar[Answer] = {"id": "a" * 32, "status": "stored", "completion_code": None, "return_url": None}

    def __init__(self, description: Answer, session: Answer) -> None:
        self.answers = {"/api/polls/p": description, "/api/polls/p/session": session}
        self.received: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET" and not request.content:
            return httpx.Response(200, json=self.answers[request.url.path])
        self.received.append(request)
        return httpx.Response(200, json=self.receipt)


def vote(server: Server, choose: Callable[[object], str]) -> None:
    with Client("http://a.example", http=httpx.Client(transport=httpx.MockTransport(server))) as client:
        client.vote(client.poll("p"), choose)


def test_an_honest_server_gets_one_report() -> None:
    """Otherwise the refusals below would show nothing."""
    server = Server(DESCRIPTION, SESSION)
    vote(server, lambda dilemma: "left")
    (sent,) = server.received
    assert (sent.method, sent.url.path) == ("PUT", "/api/polls/p/report")


def changed_study(**changes: object) -> Answer:
    return {"study": {**DESCRIPTION["study"], **changes}}


def with_last(dilemma: Answer) -> Answer:
    return {"dilemmas": [*DILEMMAS[:-1], dilemma]}


def other_study() -> Answer:
    drawn = draw_session(load_study("moral-machine"), np.random.default_rng(1))
    return dict(write_session(drawn))


FAR_OUT = [1e9] * POLL.study.dimension
LIES: dict[str, tuple[Answer, Answer]] = {
    "a mechanism that does not keep the unit": ({"mechanism": "randomised-response"}, SESSION),
    "a mechanism of the trusted server": ({"mechanism": "algorithm-1"}, SESSION),
    "another unit than the paradigm's": ({"unit": "choice"}, SESSION),
    "another place than the paradigm's": ({"place": "central"}, SESSION),
    "another paradigm under the same promise": ({"paradigm": "aldp", "mechanism": "randomised-response"}, SESSION),
    "an epsilon beyond all": ({"levels": [{"name": "nice", "epsilon_micro": 10**9, "size": None}]}, SESSION),
    "a changed study under the old fingerprint": (changed_study(norm_bound=1000.0), SESSION),
    "a fingerprint that tags the voter": ({"study_fingerprint": "f" * 64}, SESSION),
    "another norm bound than the study's": ({"method": {**DESCRIPTION["method"], "norm_bound": 1000.0}}, SESSION),
    "one dilemma again and again": ({}, {"dilemmas": DILEMMAS[:1] * len(DILEMMAS)}),
    "a dilemma repeated with its sides swapped": (
        {},
        with_last({**DILEMMAS[0], "left": DILEMMAS[0]["right"], "right": DILEMMAS[0]["left"]}),
    ),
    "fewer dilemmas than the study has": ({}, {"dilemmas": DILEMMAS[:-1]}),
    "more dilemmas than the study has": ({}, {"dilemmas": [*DILEMMAS, {**DILEMMAS[0], "left": FAR_OUT}]}),
    "values out of bounds": ({}, with_last({**DILEMMAS[0], "left": FAR_OUT})),
    "values between two steps": ({}, with_last({**DILEMMAS[0], "left": [v + 0.001 for v in DILEMMAS[0]["left"]]})),
    "no values": ({}, with_last({**DILEMMAS[0], "left": []})),
    "dilemmas of another study": ({}, other_study()),
    "no dilemmas": ({}, {}),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_before_anything_is_sent(lie: str) -> None:
    change, session = LIES[lie]
    server = Server({**DESCRIPTION, **change}, session)
    chosen: list[object] = []

    def choose(dilemma: object) -> str:
        chosen.append(dilemma)
        return "left"

    with pytest.raises(CrowdveilError):
        vote(server, choose)
    assert (server.received, chosen) == ([], [])


def test_a_part_of_a_person_is_refused() -> None:
    """A value in between would let one dilemma come again and again, each time a little different."""
    study = load_study("moral-machine")
    drawn = write_session(draw_session(study, np.random.default_rng(1)))["dilemmas"]
    assert len(read_session(study, {"dilemmas": drawn})) == len(drawn)
    almost = {**drawn[0], "left": [*drawn[0]["left"][:-1], 0.001]}
    with pytest.raises(CrowdveilError, match=r"shows 0\.001 for .*, which study moral-machine never shows"):
        read_session(study, {"dilemmas": [*drawn[:-1], almost]})


def test_a_receipt_that_is_none_is_said_to_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server, "receipt", {"id": "a", "status": "perhaps"})
    with pytest.raises(CrowdveilError, match="receipt cannot be read"):
        vote(Server(DESCRIPTION, SESSION), lambda dilemma: "left")
