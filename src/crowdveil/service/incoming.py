"""What voters send, read and checked, before anything is stored. A refusal has a reason from a fixed list."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from crowdveil.errors import Reason, Refusal
from crowdveil.protocol.report import check_report
from crowdveil.service.poll import Poll
from crowdveil.service.store.sent import SentBallot, SentReport
from crowdveil.study.study import Feature, canonical_json

BALLOT_FORMAT = "crowdveil ballot 1"


def read_sent_report(raw: bytes, poll: Poll, report_id: str) -> SentReport:
    """Read a report to a distributed poll, or refuse it."""
    body = _object(raw)
    about = _about(body.pop("about", {}), poll)
    check_report(body, poll.terms)
    return SentReport(poll.name, report_id, body["epsilon_micro"], canonical_json(body), about)


def read_sent_ballot(raw: bytes, poll: Poll, report_id: str) -> SentBallot:
    """Read a ballot for a central poll, or refuse it."""
    body = _object(raw)
    about = _about(body.pop("about", {}), poll)
    if set(body) != {"format", "study", "answers"} or body["format"] != BALLOT_FORMAT:
        raise Refusal(Reason.MALFORMED, f"a ballot is an object with format ({BALLOT_FORMAT!r}), study and answers")
    if body["study"] != poll.study.fingerprint:
        raise Refusal(Reason.WRONG_STUDY, f"the ballot is about another study than {poll.study.name}: load it again")
    answers, most = body["answers"], poll.study.drawing.dilemmas
    if not isinstance(answers, list):
        raise Refusal(Reason.MALFORMED, "answers must be a list")
    if not 1 <= len(answers) <= most:
        raise Refusal(Reason.WRONG_SIZE, f"a ballot of this study has 1 to {most} answers, got {len(answers)}")
    for answer in answers:
        _check_answer(answer, poll)
    return SentBallot(poll.name, report_id, canonical_json(answers), about)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refusal(Reason.MALFORMED, "the body must be a JSON object")
    return body


def _about(given: Any, poll: Poll) -> str:
    """Check the answers to about-you questions, all of them optional, and return them as canonical JSON."""
    asked = {question.id: [option.id for option in question.options] for question in poll.questions}
    if not isinstance(given, Mapping) or any(name not in asked for name in given):
        raise Refusal(
            Reason.WRONG_ABOUT,
            f"about must be an object with some of the poll's questions: {', '.join(asked) or 'none'}",
        )
    for name, option in given.items():
        if option not in asked[name]:
            raise Refusal(Reason.WRONG_ABOUT, f"the answer to question {name} must be one of {', '.join(asked[name])}")
    return canonical_json(given)


def _check_answer(answer: Any, poll: Poll) -> None:
    if not isinstance(answer, dict) or set(answer) != {"left", "right", "chosen"}:
        raise Refusal(Reason.MALFORMED, "an answer is an object with left, right and chosen")
    if answer["chosen"] not in ("left", "right"):
        raise Refusal(Reason.MALFORMED, "chosen must be left or right")
    for side in (answer["left"], answer["right"]):
        if not isinstance(side, list) or len(side) != poll.study.dimension:
            raise Refusal(Reason.WRONG_SIZE, f"left and right must have {poll.study.dimension} numbers each")
        for value, feature in zip(side, poll.study.features, strict=True):
            _check_value(value, feature)


def _check_value(value: Any, feature: Feature) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refusal(Reason.MALFORMED, f"{feature.name} must be a number")
    if not feature.low <= value <= feature.high:
        raise Refusal(Reason.OUT_OF_RANGE, f"{feature.name} must be from {feature.low:g} to {feature.high:g}")
