"""A voter's device: it turns choices into a report, and only the report is sent.

Making a report and sending it are two steps. The first draws the noise, once. The second may be repeated, with the same
bytes: a second report from the same choices would let the server average out the noise.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.about_you import AboutYou
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import distributed
from crowdveil.privacy.noise.source import Noise
from crowdveil.protocol.description import check_mechanism
from crowdveil.protocol.polls import Level, Poll
from crowdveil.protocol.questions import Answer, Question
from crowdveil.protocol.relay import configuration_of
from crowdveil.protocol.report import write_reports
from crowdveil.protocol.submission import (
    Repeat,
    Submission,
    SubmissionKind,
    exact_answers,
    possible_choices,
    write_ballot,
)
from crowdveil.study.study import Dilemma

Choose = Callable[[Dilemma], str]
"""A function that returns the choice in a dilemma: ``left``, ``right``, or ``neither`` if the study allows it."""

_CODES = {"left": 1, "right": -1, "neither": 0}


def make_submission(
    poll: Poll,
    dilemmas: Sequence[Dilemma],
    choices: Sequence[str],
    level: Level,
    about: Mapping[str, Answer],
    token: str,
    noise: Noise,
    repeat: Repeat | None = None,
) -> Submission:
    """Turn choices into a submission. In a distributed poll, draw the noise here: the choices go no further.

    ``repeat`` is the second answer to a dilemma, if the study asks one twice.
    """
    exact = exact_answers(about, poll)
    if (repeat is not None) != poll.study.repeat:
        how_many = "one second answer" if poll.study.repeat else "no second answer"
        raise CrowdveilError(f"a ballot of study {poll.study.name} has {how_many}")
    for choice in [*choices, *([] if repeat is None else [repeat.chosen])]:
        if choice not in possible_choices(poll.study):
            allowed = " or ".join(map(repr, possible_choices(poll.study)))
            raise CrowdveilError(f"a voter chose {choice!r}: choose {allowed}")
    if not poll.distributed:
        ballot = write_ballot(poll.study, dilemmas, choices, exact, repeat)
        return Submission(poll.name, SubmissionKind.BALLOT, token, _bytes(ballot))
    report = make_report(poll, dilemmas, choices, level, noise, repeat)
    if poll.relay is not None:
        sealed = configuration_of(poll).seal(report)
        return Submission(poll.name, SubmissionKind.SEALED, token, sealed, poll.relay.url)
    noisy = {q.id: _perturbed(poll, q, exact[q.id], noise) for q in poll.sent_questions if q.id in exact}
    return Submission(
        poll.name, SubmissionKind.REPORT, token, _bytes({**report, **({"about": noisy} if noisy else {})})
    )


def make_report(
    poll: Poll,
    dilemmas: Sequence[Dilemma],
    choices: Sequence[str],
    level: Level,
    noise: Noise,
    repeat: Repeat | None = None,
) -> dict[str, Any]:
    """Make a report with the mechanism that the poll names.

    The server chooses the study, the mechanism and the epsilon, and this program prints or checks them. The mechanism's
    own code clips to the study's bounds and draws the noise for those bounds, so the promise holds for any choice.
    """
    check_mechanism(poll)
    shown = np.array([poll.study.difference(*dilemma.alternatives) for dilemma in dilemmas])
    codes = np.array([_CODES[choice] for choice in choices], np.int8)
    alike = None
    if repeat is not None:  # its sides were swapped
        alike = np.array([1 if codes[repeat.place] == -_CODES[repeat.chosen] else -1], np.int8)
    ballots = Ballots(poll.study, np.array([0, len(codes)]), shown, codes, alike=alike)
    epsilons = Epsilons.same(level.epsilon, 1)
    settings = MechanismSettings(poll.study, poll.study.norm_bound, drawn=True)
    batch = distributed(poll.mechanism, poll.study).report(ballots, settings, epsilons, noise)
    return write_reports(poll.mechanism, poll.study, epsilons, batch)[0]


def _perturbed(poll: Poll, question: Question, truth: Answer, noise: Noise) -> Answer:
    """Return the answer that the about-you mechanism reports in place of the true one."""
    if poll.about_epsilon is None:
        raise CrowdveilError(f"poll {poll.name} names no epsilon for its about-you questions: leave them out")
    epsilons: Epsilons = Epsilons.same(poll.about_epsilon, 1)
    levels: list[str | int] = [*question.levels]
    if isinstance(truth, list):
        ticks = np.array([[level in truth for level in levels]])
        (asked,), (said,) = AboutYou().report_several(ticks, epsilons, noise)
        return {str(levels[int(asked)]): bool(said)}
    (reported,) = AboutYou().report(
        np.array([[level == truth for level in levels].index(True)]), len(levels), epsilons, noise
    )
    return levels[int(reported)]


def _bytes(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
