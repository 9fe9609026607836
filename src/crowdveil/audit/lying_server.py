"""The real service on this machine with its answers altered, and the lies that a server could tell."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crowdveil.protocol.voters_page import voters_page
from crowdveil.service.app import create_app
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.public.routes import WEB
from crowdveil.service.server import served_here
from crowdveil.service.service import Service
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.store import open_store
from crowdveil.study.bundled import load_study
from crowdveil.study.plain_data import canonical_json
from crowdveil.study.study import Study

Description = dict[str, Any]
"""A poll's description, as the service sends it."""
Change = Callable[[Description], object]
"""Changes a poll's description in place."""
Dilemmas = list[dict[str, Any]]

LEVEL = {"levels": {"balanced": "1"}}
DILEMMAS = 5
"""Length of a session, kept short so that the attack is fast."""
POLLS: dict[str, dict[str, Any]] = {
    "score": {"paradigm": "rldp", "mechanism": "score", **LEVEL},
    "algorithm-3": {"paradigm": "rldp", "mechanism": "algorithm-3", **LEVEL},
    "algorithm-2": {"paradigm": "vldp", "mechanism": "algorithm-2", **LEVEL},
    "subset-selection": {"paradigm": "vldp", "mechanism": "subset-selection", **LEVEL},
    "algorithm-3-choices": {"paradigm": "aldp", "mechanism": "algorithm-3-choices", **LEVEL},
    "randomised-response": {"paradigm": "aldp", "mechanism": "randomised-response", **LEVEL},
    "one-choice": {"paradigm": "aldp", "mechanism": "one-choice", **LEVEL},
    "kidney": {"study": "kidney", "paradigm": "rldp", **LEVEL},
    "central": {"paradigm": "rlcp"},
}


class LyingServer:
    """A server that tells the truth until it is asked to lie."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.address = ""
        """The address it listens at, once it does."""
        self._lies = dict[str, Callable[[bytes], bytes]]()
        self._damage = dict[str, Callable[[bytes], bytes]]()

    def describe(self, poll: str, change: Change) -> None:
        """Describe a poll differently from now on."""

        def lie(told: bytes) -> bytes:
            described = json.loads(told)
            change(described)
            return json.dumps(described).encode()

        self._lies[f"/api/polls/{poll}"] = lie

    def draw(self, poll: str, change: Callable[[Dilemmas], Dilemmas]) -> None:
        """Send other dilemmas than those that were drawn."""
        self._lies[f"/api/polls/{poll}/session"] = lambda told: json.dumps(
            {"dilemmas": change(json.loads(told)["dilemmas"])}
        ).encode()

    def damage(self, module: str, right: str, wrong: str) -> None:
        """Serve one of the page's modules with a mistake, until it is repaired."""
        text = (WEB / module).read_text(encoding="utf-8")
        if text.count(right) != 1:
            raise LookupError(f"{module} has {right!r} {text.count(right)} times: the mistake cannot be made")
        spoiled = text.replace(right, wrong).encode()
        addresses = (f"/web/{module}", voters_page().address(module))
        self._damage = {address: lambda _: spoiled for address in addresses}

    def repair(self) -> None:
        """Serve the page unchanged."""
        self._damage.clear()

    def tell_the_truth(self) -> None:
        """Stop lying."""
        self._lies.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the service does, except for the changes."""
        changes = {**self._lies, **self._damage} if scope["type"] == "http" else {}
        change = changes.get(scope.get("path", ""))

        async def uncached(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(raw=message["headers"])["Cache-Control"] = "no-store"  # Damage is repaired later.
            await send(message)

        if change is None:
            await self._app(scope, receive, uncached)
            return
        unwanted = (b"accept-encoding", b"if-none-match", b"if-modified-since")
        scope = {**scope, "headers": [(name, value) for name, value in scope["headers"] if name not in unwanted]}
        started: Message = {}
        body = b""

        async def answer(message: Message) -> None:
            nonlocal body
            if message["type"] == "http.response.start":
                started.update(message)
                return
            body += message.get("body", b"")
            if message.get("more_body"):
                return
            changed = change(body)
            untrue = (b"content-length", b"etag", b"last-modified")
            headers = [(name, value) for name, value in started["headers"] if name not in untrue]
            await uncached({**started, "headers": [*headers, (b"content-length", str(len(changed)).encode())]})
            await send({"type": "http.response.body", "body": changed})

        await self._app(scope, receive, answer)


@contextmanager
def lying_server(folder: Path) -> Iterator[LyingServer]:
    """Run the service with polls of every kind, on a free port of this machine."""
    with open_store(f"sqlite:///{folder / 'crowdveil.sqlite'}") as store:
        for name, given in POLLS.items():
            study = load_study(given.get("study", "moral-machine")).as_dict()
            study["drawing"]["dilemmas"] = DILEMMAS
            store.polls.add(poll_from_dict({**given, "name": name, "study": study}))
        app = create_app(Service(store, ServiceSettings(port=0)))
        liar = LyingServer(app)
        with served_here(liar) as liar.address:
            yield liar


def _unit(name: str) -> Change:
    return lambda poll: poll.update(unit=name)


def _as_study(described: Description, **changes: object) -> None:
    """Put another study into a poll's description, with its correct fingerprint."""
    study = Study.from_dict({**described["study"], **changes})
    described.update(study=study.as_dict(), study_fingerprint=study.fingerprint)


def _in_study(change: Change) -> tuple[str, Change]:
    """Change a study into an invalid one, with the fingerprint that it would have.

    The kidney study's factors are its features, so its fingerprint does not include them.
    """

    def changed(described: Description) -> None:
        change(described["study"])
        named = {name: value for name, value in described["study"].items() if name != "factors"}
        described.update(study_fingerprint=hashlib.sha256(canonical_json(named).encode()).hexdigest())

    return "kidney", changed


def _in_weights(**weights: float) -> tuple[str, Change]:
    return "algorithm-2", lambda poll: poll["study"]["factors"][6]["weights"].update(weights)


def _asking(attention: dict[str, Any] | None = None, **changes: Any) -> Change:
    """Ask a question about the voter, with these changes."""
    options = [{"id": id, "text": {"en": id}} for id in ("a", "b")]
    question = {"id": "q", "kind": "single", "text": {"en": "?"}, "required": False, "options": options}
    question |= {"low": None, "high": None, "step": 1, "ends": None, "expected": None, **changes}
    return lambda poll: poll.update(questions=[question], about_epsilon_micro=1_000_000, attention=attention)


UNTRUE_POLLS: dict[str, tuple[str, Change]] = {
    "randomised response for all of a voter": ("randomised-response", _unit("voter")),
    "randomised response for records": ("randomised-response", _unit("record")),
    "single choices for all of a voter": ("one-choice", _unit("voter")),
    "scores for all of a voter": ("score", _unit("voter")),
    "coefficients for all of a voter": ("algorithm-3", _unit("voter")),
    "linear coefficients for records": ("algorithm-3-choices", _unit("record")),
    "a unit that there is not": ("algorithm-2", _unit("answer")),
    "a mechanism that there is not": ("algorithm-2", lambda poll: poll.update(mechanism="exact")),
    "a mechanism that every object has": ("algorithm-2", lambda poll: poll.update(mechanism="toString")),
    "a place that there is not": ("algorithm-2", lambda poll: poll.update(place="elsewhere")),
    "an epsilon above 50": ("algorithm-2", lambda poll: poll["levels"][0].update(epsilon_micro=50_000_001)),
    "no level": ("algorithm-2", lambda poll: poll.update(levels=[])),
    "a fingerprint that marks the visitor": ("algorithm-2", lambda poll: poll.update(study_fingerprint="a" * 64)),
    "a field that marks the visitor": _in_study(lambda study: study.update(visitor=17)),
    "a feature's field that marks the visitor": _in_study(lambda study: study["features"][0].update(visitor=17)),
    "a factor's field that marks the visitor": _in_study(lambda study: study["factors"][0].update(visitor=17)),
    "another study than its fingerprint names": (
        "kidney",
        lambda poll: poll["study"]["features"][0].update(lean=0.123),
    ),
    "a range upside down": _in_study(lambda study: study["features"][0].update(low=9.0, high=3.0)),
    "a unit of nothing": _in_study(lambda study: study["features"][0].update(unit=0.0)),
    "a weight that is not whole": _in_weights(legality=0.5),
    "a weight of no feature": _in_weights(visitor=1),
    "other weights than its fingerprint names": _in_weights(legality=2),
    "no factors": ("algorithm-2", lambda poll: poll.pop("factors")),
    "factors that are not the study's": ("algorithm-2", lambda poll: poll["factors"].reverse()),
    "a step that is too short": ("algorithm-2", lambda poll: poll["factors"][0]["step"].pop()),
    "free text where nobody is trusted": ("algorithm-2", _asking(kind="text", options=[])),
    "a check that leaves out where the device judges": (
        "algorithm-2",
        _asking({"checks": 1, "left_out": True}, expected="a"),
    ),
    "a check that voters are not told of": ("algorithm-2", _asking(expected="a")),
    "a million dilemmas": ("kidney", lambda poll: _as_study(poll, drawing={"method": "gaussian", "dilemmas": 10**6})),
}
"""Inconsistent descriptions of polls: which poll, and the change to it."""


def _turned(dilemma: dict[str, Any]) -> dict[str, Any]:
    return {"left": dilemma["right"], "right": dilemma["left"]}


def _with_value(dilemmas: Dilemmas, value: float | None) -> Dilemmas:
    changed = copy.deepcopy(dilemmas)
    changed[-1]["right"][0] = value
    return changed


UNTRUE_SESSIONS: dict[str, tuple[str, Callable[[Dilemmas], Dilemmas]]] = {
    "one dilemma again and again": ("algorithm-2", lambda d: d[:1] * len(d)),
    "one dilemma twice": ("algorithm-2", lambda d: [*d[:-1], d[0]]),
    "one dilemma the other way round": ("randomised-response", lambda d: [*d[:-1], _turned(d[0])]),
    "a dilemma too few": ("algorithm-2", lambda d: d[1:]),
    "twice as many dilemmas": ("algorithm-2", lambda d: d + [_turned(one) for one in d]),
    "a value beyond its range": ("algorithm-2", lambda d: _with_value(d, 2)),
    "a value between the levels": ("kidney", lambda d: _with_value(d, 0.5)),
    "a part of a person": ("algorithm-2", lambda d: _with_value(d, 0.5)),
    "a value that is none": ("algorithm-2", lambda d: _with_value(d, None)),
    "an alternative of another study": ("algorithm-2", lambda d: [{"left": [0], "right": [1]}] * len(d)),
}
"""Dilemmas that are not the study's: which poll, and the change to its dilemmas."""

CHANGED_PROMISES: dict[str, Change] = {
    "place": lambda poll: poll.update(place="central", unit="record"),
    "unit": _unit("record"),
    "mechanism": lambda poll: poll.update(mechanism="subset-selection", levels=[{**poll["levels"][0], "size": 3}]),
    "level": lambda poll: poll["levels"][0].update(epsilon_micro=3_000_000),
    "study": lambda poll: _as_study(poll, question="Whom would you rather hit?"),
    "consent": lambda poll: poll.update(consent={"en": "We sell what you choose."}),
}
"""Changes that a server may make to the poll ``algorithm-2`` after a voter agreed to it."""


class AttackHarness(Protocol):
    """A lying server, and somebody to whom it lies."""

    @property
    def server(self) -> LyingServer:
        """The server."""

    def refuses(self, poll: str) -> bool:
        """Whether a poll, as the server describes it now, is refused."""


S = TypeVar("S", bound=AttackHarness)


def untrue_poll(lie: str, harness: AttackHarness) -> str | None:
    """Describe a poll inconsistently."""
    poll, change = UNTRUE_POLLS[lie]
    harness.server.describe(poll, change)
    return None if harness.refuses(poll) else "the poll is accepted"


def untrue_session(lie: str, harness: AttackHarness) -> str | None:
    """Draw dilemmas that are not the study's."""
    poll, change = UNTRUE_SESSIONS[lie]
    harness.server.draw(poll, change)
    return None if harness.refuses(poll) else "the dilemmas are accepted"


LIES: dict[str, Callable[[AttackHarness], str | None]] = {
    **{lie: partial(untrue_poll, lie) for lie in UNTRUE_POLLS},
    **{lie: partial(untrue_session, lie) for lie in UNTRUE_SESSIONS},
}
"""Cases that any client of a server must refuse: each returns a finding, or None."""


def try_case(harness: S, name: str, case: Callable[[S], str | None]) -> str | None:
    """Try one case, and let the server tell the truth again; return the finding, if any."""
    try:
        found = case(harness)
    finally:
        harness.server.tell_the_truth()
    return None if found is None else f"{name}: {found}"
