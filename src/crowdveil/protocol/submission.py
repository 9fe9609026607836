"""A submission: the ballot or report that one voter's device sends to the server, with a token so that it counts once.

In a distributed poll it is a report, which already contains the noise. In a central poll it is a ballot, for a trusted
host: the session's dilemmas with the voter's choices, and her answers about herself. The server stores an id derived
from the token, never the token itself.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeVar

import numpy as np

from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.protocol.polls import Poll
from crowdveil.protocol.questions import Answer, Question
from crowdveil.study.drawing import count_repeats, has_plenty, never_shown
from crowdveil.study.features import Feature
from crowdveil.study.study import Dilemma, Study

TOKEN_HEADER = "Crowdveil-Ballot"
"""HTTP header with a ballot token."""

_TOKEN = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")
T = TypeVar("T")
BALLOT_FORMAT = "crowdveil ballot 1"
SIDES = ("left", "right")
NEITHER = "neither"
"""The choice to treat both sides equally, in a study that allows it."""


class VoterStep(StrEnum):
    """The steps of a voter that the page reports to the host's server, by name and with nothing else."""

    HALF = "half"
    ALL = "all"
    REVIEW = "review"


class SubmissionKind(StrEnum):
    """The kinds of submission: with noise, exact, or with noise and sealed for a relay."""

    REPORT = "report"
    BALLOT = "ballot"
    SEALED = "sealed"


@dataclass(frozen=True)
class Submission:
    """A vote ready to be sent: its bytes and its token. It may be sent again, and counts only once."""

    poll: str
    kind: SubmissionKind
    token: str
    body: bytes
    relay: str | None = None
    """The address to which a sealed report is sent; anything else goes to the host."""

    def __repr__(self) -> str:
        return f"<submission to poll {self.poll}: a {self.kind} of {len(self.body):,} bytes>"


class SubmissionStatus(StrEnum):
    """The two outcomes that give a receipt."""

    STORED = "stored"
    ALREADY_STORED = "already-stored"


@dataclass(frozen=True)
class Receipt:
    """The server's confirmation that a submission is stored."""

    id: str
    """The report id, derived from the token."""
    status: SubmissionStatus
    completion_code: str | None
    return_url: str | None


def new_token() -> str:
    """Draw a ballot token: 16 random bytes as 22 base64url characters."""
    return secrets.token_urlsafe(16)


def is_token(text: str) -> bool:
    """Return whether a text is a token in its only valid spelling (the last character carries two bits)."""
    return _TOKEN.fullmatch(text) is not None


def report_id(token: str) -> str:
    """Return the id under which a token's submission is stored. Nobody can compute the token from it."""
    return hashlib.sha256(f"crowdveil report {token}".encode("ascii")).hexdigest()[:32]


@dataclass(frozen=True)
class Repeat:
    """The second answer to a dilemma, in a study that asks one twice."""

    place: int
    """Index of the dilemma in the session, from 0."""
    chosen: str
    """The side chosen the second time, when the sides were swapped; or neither."""


def repeatable(study: Study) -> int:
    """Return how many dilemmas may be asked again: the first half, so that the repeat does not follow at once.

    The voter's own device draws one of them uniformly, without asking anybody, and asks it again after the last
    dilemma, with its sides swapped. A server never shows a dilemma twice.
    """
    return -(-study.drawing.dilemmas // 2)


def mirrored(dilemma: Dilemma) -> Dilemma:
    """Swap the sides of a dilemma."""
    left, right = dilemma.alternatives
    return Dilemma((replace(right, name=left.name), replace(left, name=right.name)))


def possible_choices(study: Study) -> tuple[str, ...]:
    """Return the possible choices in a dilemma of a study."""
    return SIDES if study.indifference is None else (*SIDES, NEITHER)


def write_session(dilemmas: Iterable[Dilemma]) -> dict[str, Any]:
    """Return drawn dilemmas as plain data: for each side a value for every feature, in the study's order."""
    return {"dilemmas": [_sides(dilemma) for dilemma in dilemmas]}


def read_session(study: Study, data: Mapping[str, Any]) -> list[Dilemma]:
    """Read the dilemmas that a server drew; refuse a session that the study cannot have.

    The number of dilemmas must be the study's, and it must be able to show every value. If the study has plenty of
    dilemmas, none may occur twice (even mirrored): many noisy choices in one dilemma would reveal the voter's choice.
    """
    try:
        shown = [
            [dict(zip(study.feature_names, pair[side], strict=True)) for side in SIDES] for pair in data["dilemmas"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise CrowdveilError(f"the server's dilemmas cannot be read: {type(error).__name__} {error}") from None
    if len(shown) != study.drawing.dilemmas:
        raise CrowdveilError(
            f"the server drew {len(shown)} dilemmas, a ballot of study {study.name} has {study.drawing.dilemmas}; "
            "do not vote in this poll"
        )
    dilemmas = [
        Dilemma(tuple(study.alternative(values, side) for side, values in zip(SIDES, pair, strict=True)))
        for pair in shown
    ]
    for alternative in (alternative for dilemma in dilemmas for alternative in dilemma.alternatives):
        if impossible := never_shown(study, alternative):
            raise CrowdveilError(
                f"the server shows {impossible}, which study {study.name} never shows; do not vote in this poll"
            )
    if has_plenty(study) and count_repeats(dilemmas):
        raise CrowdveilError(
            f"the server shows a dilemma of study {study.name} more than once, which would reveal more about a "
            "voter than is promised; do not vote in this poll"
        )
    return dilemmas


def write_ballot(
    study: Study,
    dilemmas: Sequence[Dilemma],
    choices: Sequence[str],
    about: Mapping[str, Answer],
    repeat: Repeat | None = None,
) -> dict[str, Any]:
    """Return a ballot: the exact choice in each dilemma, for a host who is trusted with it."""
    records: list[dict[str, Any]] = [
        {**_sides(dilemma), "chosen": choice} for dilemma, choice in zip(dilemmas, choices, strict=True)
    ]
    if repeat is not None:
        again = _sides(mirrored(dilemmas[repeat.place]))
        records.append({**again, "chosen": repeat.chosen, "repeats": repeat.place})
    return {"format": BALLOT_FORMAT, "study": study.fingerprint, "records": records, "about": dict(about)}


def check_ballot(body: Mapping[str, Any], study: Study) -> None:
    """Refuse a ballot (without its ``about``) that no voter in this study could have cast."""
    if set(body) != {"format", "study", "records"} or body["format"] != BALLOT_FORMAT:
        raise Refusal(Reason.MALFORMED, f"a ballot is an object with format ({BALLOT_FORMAT!r}), study and records")
    if body["study"] != study.fingerprint:
        raise Refusal(Reason.WRONG_STUDY, f"the ballot is about another study than {study.name}: load it again")
    records = body["records"]
    least, most = 1 + study.repeat, study.answers
    if not isinstance(records, list):
        raise Refusal(Reason.MALFORMED, "records must be a list")
    if not least <= len(records) <= most:
        raise Refusal(Reason.WRONG_SIZE, f"a ballot of this study has {least} to {most} records, got {len(records)}")
    if study.repeat:
        *records, again = records
        _check_repeat(again, records, study)
    for record in records:
        _check_record(record, study)


def split_repeat(records: Sequence[Mapping[str, Any]]) -> tuple[Sequence[Mapping[str, Any]], bool | None]:
    """Split off the second answer of a ballot, and return whether it agrees with the first; None if there is none."""
    if "repeats" not in records[-1]:
        return records, None
    first, second = records[records[-1]["repeats"]]["chosen"], records[-1]["chosen"]
    return records[:-1], (first == second) if NEITHER in (first, second) else first != second


def exact_answers(given: Mapping[str, Any], poll: Poll) -> dict[str, Answer]:
    """Return what leaves the device of a voter's answers about herself, before noise; refuse anything else."""
    return {question.id: _told(question, question.exact, answer) for question, answer in _asked(given, poll)}


def check_about(given: Any, poll: Poll) -> None:
    """Refuse answers to about-you questions that no honest device in this poll would send."""
    for question, answer in _asked(given, poll):
        _told(question, question.check_noisy if poll.distributed else question.check_exact, answer)


def _asked(given: Any, poll: Poll) -> list[tuple[Question, Any]]:
    """Return each answer with its question; refuse answers to other questions, and missing required answers."""
    asked = {question.id: question for question in poll.sent_questions}
    if not isinstance(given, Mapping) or any(name not in asked for name in given):
        known = ", ".join(asked) or "none"
        raise Refusal(Reason.WRONG_ABOUT, f"about must be an object with some of the poll's questions: {known}")
    for question in asked.values():
        if question.required and question.id not in given:
            raise Refusal(Reason.WRONG_ABOUT, f"question {question.id} has to be answered")
    return [(asked[name], answer) for name, answer in given.items()]


def _told(question: Question, check: Callable[[Any], T], answer: Any) -> T:
    try:
        return check(answer)
    except ValueError as error:
        raise Refusal(Reason.WRONG_ABOUT, f"the answer to question {question.id} {error}") from None


def _sides(dilemma: Dilemma) -> dict[str, list[float]]:
    return {alternative.name: list(alternative.values) for alternative in dilemma.alternatives}


def _check_record(record: Any, study: Study) -> None:
    if not isinstance(record, dict) or set(record) != {*SIDES, "chosen"}:
        raise Refusal(Reason.MALFORMED, "a record is an object with left, right and chosen")
    if record["chosen"] not in possible_choices(study):
        raise Refusal(Reason.MALFORMED, f"chosen must be {' or '.join(possible_choices(study))}")
    for side in SIDES:
        if not isinstance(record[side], list) or len(record[side]) != study.dimension:
            raise Refusal(Reason.WRONG_SIZE, f"left and right must have {study.dimension} numbers each")
        for value, feature in zip(record[side], study.features, strict=True):
            _check_value(value, feature)
        if wrong := study.first_without_level(np.array([record[side]], np.float64)):
            raise Refusal(Reason.OUT_OF_RANGE, f"{wrong[1].name} must be exactly one of its levels")


def _check_repeat(again: Any, records: Sequence[Any], study: Study) -> None:
    """Refuse a second answer unless it is to one of the first half of the dilemmas, with its sides swapped."""
    if not isinstance(again, dict) or "repeats" not in again:
        raise Refusal(Reason.MALFORMED, "the last record of this study must be a second answer, with repeats")
    place = again["repeats"]
    if type(place) is not int or not 0 <= place < min(repeatable(study), len(records)):
        raise Refusal(Reason.OUT_OF_RANGE, f"repeats must be the place of one of the first {repeatable(study)} records")
    _check_record({key: value for key, value in again.items() if key != "repeats"}, study)
    first = records[place]
    if not isinstance(first, dict) or (again["left"], again["right"]) != (first.get("right"), first.get("left")):
        raise Refusal(Reason.MALFORMED, "the dilemma that is asked twice must have its sides swapped the second time")


def _check_value(value: Any, feature: Feature) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refusal(Reason.MALFORMED, f"{feature.name} must be a number")
    if not feature.low <= value <= feature.high:
        raise Refusal(Reason.OUT_OF_RANGE, f"{feature.name} must be from {feature.low:g} to {feature.high:g}")
