"""A poll's description: the server writes it, and a voter's device reads and checks it. No privacy depends on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from functools import lru_cache
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED, check_answers
from crowdveil.privacy.planning.plan import relayed_bits
from crowdveil.privacy.shuffling import RelayedPromise
from crowdveil.protocol.polls import EntryRule, Level, Poll, PollState
from crowdveil.protocol.questions import Attention, Question
from crowdveil.protocol.relay import read_relay, relay_terms
from crowdveil.study.study import Study

_DECIMALS = 9


def describe_poll(
    poll: Poll,
    languages: Sequence[str],
    state: PollState,
    release: str | None,
    relay: Mapping[str, Any] | None = None,
    pilot: bool = False,
) -> dict[str, Any]:
    """Describe a poll: its terms, what a device needs to know, its current state, and the release that decides.

    ``relay`` is the result of ``describe_relay`` if the poll has a relay; ``pilot`` means that nothing counts yet.
    """
    said = None if relay is None else {**relay, "promise": relayed_promise(poll).as_dict()}
    stands = {"languages": list(languages), "state": state.value, "pilot": pilot, "release": release, "relay": said}
    return {**_terms(poll), **stands}


@lru_cache(maxsize=256)
def relayed_promise(poll: Poll) -> RelayedPromise:
    """Return the promise behind a relay that holds whatever arrives: that of the smallest batch."""
    terms = relay_terms(poll)
    local = poll.levels[0].epsilon
    bits = relayed_bits(poll.study, local, poll.mechanism)
    return RelayedPromise.of_smallest(local, bits, terms.batch, terms.delta, terms.honest)


def describe_method(mechanism: str, study: Study) -> dict[str, Any]:
    """Return the numbers that a device computes with: the study's bounds, and the parameters of scores."""
    known = DISTRIBUTED.get(mechanism)
    scoring = None if known is None else known.scoring(study)
    return {
        "norm_bound": study.norm_bound,
        "record_bound": study.record_bound,
        "axes": scoring and scoring.axes.tolist(),
        "units": scoring and scoring.units.tolist(),
        "clip": scoring and scoring.clip,
        "records": scoring and scoring.records,
    }


@lru_cache(maxsize=256)
def _terms(poll: Poll) -> dict[str, Any]:
    study = poll.study
    mechanism = DISTRIBUTED.get(poll.mechanism)
    return {
        "id": poll.name,
        "study": study.as_dict(),
        "study_fingerprint": study.fingerprint,
        "paradigm": poll.paradigm.name,
        "unit": poll.paradigm.unit.value,
        "place": poll.paradigm.place.value,
        "mechanism": poll.mechanism,
        "levels": [
            {
                "name": level.name,
                "epsilon_micro": level.epsilon.micro,
                "size": mechanism and mechanism.report_size(study, level.epsilon),
            }
            for level in poll.levels
        ],
        "method": describe_method(poll.mechanism, study),
        "factors": [
            {"name": factor.name, "step": step}
            for factor, step in zip(study.factors, study.pole_steps.round(_DECIMALS).tolist(), strict=True)
        ],
        "scene": "road" if study.drawing.method == "moral-machine" else "cards",
        "entry": poll.entry.value,
        "questions": [question.as_dict(expected=poll.distributed) for question in poll.questions],
        "attention": None if poll.attention is None else asdict(poll.attention),
        "about_epsilon_micro": None if poll.about_epsilon is None else poll.about_epsilon.micro,
        "budget": None if poll.budget is None else {"epsilon_micro": poll.budget.micro},
        "contact": poll.contact,
        "consent": dict(poll.consent) or None,
        "minimum_age": poll.minimum_age,
        "closes_on": None if poll.closes_on is None else poll.closes_on.isoformat(),
        "destroy_on": None if poll.destroy_on is None else poll.destroy_on.isoformat(),
        "return_url": poll.return_url,
    }


def read_poll(data: Mapping[str, Any]) -> Poll:
    """Read a poll's description. Refuse one that contradicts itself: nobody should vote in such a poll."""
    try:
        poll = _read(data)
        norm_bound = data["method"]["norm_bound"]
        factors = [(factor["name"], len(factor["step"])) for factor in data["factors"]]
        promised = {"unit": poll.paradigm.unit.value, "place": poll.paradigm.place.value}
        broken = {what: data[what] for what, kept in promised.items() if data[what] != kept}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CrowdveilError(
            f"the server's description of the poll cannot be read: {type(error).__name__} {error}"
        ) from None
    for what, told in broken.items():
        raise CrowdveilError(
            f"poll {poll.name} says {what} {told!r}, but {poll.paradigm.name} is {promised[what]}; do not vote in it"
        )
    if poll.study.fingerprint != data.get("study_fingerprint"):
        raise CrowdveilError(
            f"poll {poll.name}: the study is not the one that its fingerprint names; do not vote in it"
        )
    if norm_bound != poll.study.norm_bound:
        raise CrowdveilError(f"poll {poll.name}: its norm bound is not the study's; do not vote in it")
    if factors != [(factor.name, poll.study.dimension) for factor in poll.study.factors]:
        raise CrowdveilError(f"poll {poll.name}: its factors are not the study's; do not vote in it")
    if poll.distributed:
        check_mechanism(poll)
    return poll if poll.relay is None else _with_promise_kept(poll, data["relay"]["promise"])


def check_mechanism(poll: Poll) -> None:
    """Refuse a distributed poll whose mechanism does not run on a device, or does not keep the promise."""
    if poll.mechanism not in DISTRIBUTED:
        raise CrowdveilError(
            f"poll {poll.name} asks for {poll.mechanism!r}, which makes no report on a voter's device; "
            "do not vote in it"
        )
    if poll.paradigm.name not in DISTRIBUTED[poll.mechanism].paradigms:
        raise CrowdveilError(
            f"poll {poll.name} promises {poll.paradigm.name}, which {poll.mechanism} does not keep; do not vote in it"
        )
    check_answers(poll.mechanism, poll.study)


def _with_promise_kept(poll: Poll, told: Mapping[str, Any]) -> Poll:
    """Refuse a relay's promise that its terms do not keep."""
    if dict(told) != relayed_promise(poll).as_dict():
        raise CrowdveilError(f"poll {poll.name}: its promise does not follow from its terms; do not vote in it")
    return poll


def _read(data: Mapping[str, Any]) -> Poll:
    about = data["about_epsilon_micro"]
    closes_on, destroy_on = data["closes_on"], data["destroy_on"]
    poll = Poll(
        name=data["id"],
        study=Study.from_dict(data["study"]),
        paradigm=find_paradigm(data["paradigm"]),
        mechanism=str(data["mechanism"]),
        levels=tuple(
            Level(str(level["name"]), Epsilon.of_millionths(level["epsilon_micro"])) for level in data["levels"]
        ),
        entry=EntryRule(data["entry"]),
        closes_on=None if closes_on is None else date.fromisoformat(closes_on),
        destroy_on=None if destroy_on is None else date.fromisoformat(destroy_on),
        return_url=data["return_url"],
        contact=data["contact"],
        minimum_age=data["minimum_age"],
        consent=dict(data["consent"] or {}),
        questions=tuple(map(Question.from_dict, data["questions"])),
        attention=None if data["attention"] is None else Attention(**data["attention"]),
        about_epsilon=None if about is None else Epsilon.of_millionths(about),
    )
    return poll if data["relay"] is None else replace(poll, relay=read_relay(poll, data["relay"]))
