"""A voter's part: answers become a report on this machine, and only the report is sent.

Making a report and sending it are two steps. The first draws the noise, once. The second may be repeated, with the same
bytes: a report made anew from the same answers would let the server average the noise away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from crowdveil.ballots import Ballots
from crowdveil.client.polls import Level, Poll
from crowdveil.client.votes import Sealed
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.noise.odds import Odds
from crowdveil.privacy.noise.source import Noise
from crowdveil.protocol.report import write_reports
from crowdveil.study.study import Alternative, Dilemma, Study

BALLOT_FORMAT = "crowdveil ballot 1"
SIDES = ("left", "right")

Choose = Callable[[Dilemma], str]
"""Returns the name of the chosen alternative of a dilemma: ``left`` or ``right``."""


def read_session(study: Study, data: Mapping[str, Any]) -> list[Dilemma]:
    """Check the dilemmas that a server drew against the study."""
    try:
        shown = [
            [dict(zip(study.feature_names, pair[side], strict=True)) for side in SIDES] for pair in data["dilemmas"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise CrowdveilError(f"the server's dilemmas cannot be read: {type(error).__name__} {error}") from None
    return [
        Dilemma(tuple(study.alternative(values, side) for side, values in zip(SIDES, pair, strict=True)))
        for pair in shown
    ]


def seal(
    poll: Poll,
    dilemmas: Sequence[Dilemma],
    choices: Sequence[str],
    level: Level,
    about: Mapping[str, str],
    token: str,
    noise: Noise,
) -> Sealed:
    """Turn answers into what is sent. In a distributed poll the noise is drawn here, and the answers end here."""
    _check_about(poll, about)
    if poll.distributed:
        report = _report(poll, dilemmas, choices, level, noise)
        noisy = {question: _perturbed(poll, question, option, noise) for question, option in about.items()}
        return Sealed(poll.id, "report", token, _bytes({**report, **({"about": noisy} if noisy else {})}))
    answers = [
        {**{a.name: list(a.values) for a in dilemma.alternatives}, "chosen": choice}
        for dilemma, choice in zip(dilemmas, choices, strict=True)
    ]
    ballot = {"format": BALLOT_FORMAT, "study": poll.study.fingerprint, "answers": answers, "about": dict(about)}
    return Sealed(poll.id, "ballot", token, _bytes(ballot))


def _report(
    poll: Poll, dilemmas: Sequence[Dilemma], choices: Sequence[str], level: Level, noise: Noise
) -> dict[str, Any]:
    """Make a report with the mechanism that the poll names.

    The server chooses the norm bound, the mechanism and the epsilon, and this program prints or checks them; the
    mechanism's own code clips to that bound and draws the noise for it, so that the promise holds for any choice.
    """
    if poll.mechanism not in DISTRIBUTED:
        raise CrowdveilError(f"poll {poll.id} asks for {poll.mechanism!r}, which makes no report on a voter's device")
    if poll.paradigm.name not in DISTRIBUTED[poll.mechanism].paradigms:
        raise CrowdveilError(f"poll {poll.id} promises {poll.paradigm.name}, which {poll.mechanism} does not keep")
    records = [_record(poll.study, dilemma, choice) for dilemma, choice in zip(dilemmas, choices, strict=True)]
    ballots = Ballots.from_differences(poll.study, np.array([0, len(records)]), np.array(records))
    epsilons = Epsilons.same(level.epsilon, 1)
    batch = DISTRIBUTED[poll.mechanism].report(ballots, Settings(poll.study, poll.norm_bound), epsilons, noise)
    return write_reports(poll.mechanism, poll.study, epsilons, batch)[0]


def _record(study: Study, dilemma: Dilemma, choice: str) -> Any:
    chosen, other = _sides(dilemma, choice)
    return study.difference(chosen, other)


def _sides(dilemma: Dilemma, choice: str) -> tuple[Alternative, Alternative]:
    left, right = dilemma.alternatives
    if choice not in SIDES:
        raise CrowdveilError(f"a voter chose {choice!r}: choose 'left' or 'right'")
    return (left, right) if choice == "left" else (right, left)


def _check_about(poll: Poll, about: Mapping[str, str]) -> None:
    for question, option in about.items():
        if option not in poll.questions.get(question, ()):
            known = "; ".join(f"{name}: {', '.join(options)}" for name, options in poll.questions.items()) or "none"
            raise CrowdveilError(
                f"poll {poll.id} has no option {option!r} of a question {question!r}; it asks: {known}"
            )


def _perturbed(poll: Poll, question: str, option: str, noise: Noise) -> str:
    """Keep an option with odds e^epsilon : 1 against each other one (k-ary randomised response).

    Theorem. The option that comes out is epsilon-differentially private: it is the true one with probability
    e^epsilon / (e^epsilon + k - 1) and each other one with probability 1 / (e^epsilon + k - 1).
    """
    if poll.about_epsilon is None:
        raise CrowdveilError(f"poll {poll.id} names no epsilon for its about-you questions: leave them out")
    options = poll.questions[question]
    others = [other for other in options if other != option]
    if not others:
        return option
    keep = noise.tosses(Odds(1, 0, 1, len(others)), Epsilons.same(poll.about_epsilon, 1), 1)[0, 0]
    return option if keep else others[int(noise.uniform(len(others), 1, 1)[0, 0])]


def _bytes(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
