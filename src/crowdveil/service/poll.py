"""A poll as its host runs it: the public terms, when it is open and to how many, and its groups of voters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import cycle, islice
from typing import Any

import numpy as np

from crowdveil.errors import CrowdveilError
from crowdveil.estimation.design import public_design
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.one_bit import BitReports, bits_to_report
from crowdveil.privacy.mechanisms.registry import mechanism_name
from crowdveil.protocol.polls import Level, Opening, Poll, State
from crowdveil.protocol.questions import Answer, Question, QuestionKind
from crowdveil.protocol.relay import padded
from crowdveil.protocol.report import Terms, write_reports
from crowdveil.study.translations import Translation

_EXPECTED_VOTERS = 1000
"""The crowd for which a central poll's mechanism is recommended, before anybody has voted."""
MOST_GROUPS = 12
_ONE_ANSWER = (QuestionKind.SINGLE, QuestionKind.NUMBER, QuestionKind.SCALE)


@dataclass(frozen=True)
class HostedPoll(Poll):
    """A poll with what only its host has to know."""

    quota: int | None = None
    opens_on: date | None = None
    completion_code: str | None = None
    translations: tuple[Translation, ...] = ()
    """The study's words in languages beside those that come with crowdveil."""

    __hash__ = Poll.__hash__

    def __post_init__(self) -> None:
        super().__post_init__()
        checked = mechanism_name(self.paradigm, self.mechanism, self.study, expected_epsilons(self.levels))
        if checked != self.mechanism:
            raise CrowdveilError(f"poll {self.name}: name the mechanism, {checked!r}, not {self.mechanism!r}")
        if self.quota is not None and not self.quota >= 1:
            raise CrowdveilError(f"poll {self.name}: the quota must be 1 or more, got {self.quota}")
        if self.opens_on and self.closes_on and not self.opens_on <= self.closes_on:
            raise CrowdveilError(f"poll {self.name}: it closes on {self.closes_on}, before it opens on {self.opens_on}")
        checks = sum(question.expected is not None for question in self.questions)
        if checks != (0 if self.attention is None else self.attention.checks):
            raise CrowdveilError(f"poll {self.name}: voters are to be told of its {checks} attention checks")
        if self.relay is not None and self.completion_code is not None:
            raise CrowdveilError(
                f"poll {self.name}: a completion code comes from the host, who does not know who took part behind a "
                "relay: leave it out, the relay's links tell who has"
            )
        if self.relay is not None:
            padded(self._longest_report())  # One that does not fit would tell what it says by its length.

    def _longest_report(self) -> dict[str, Any]:
        """Return a report that no other of this poll is longer than."""
        epsilon = self.levels[0].epsilon
        directions = public_design(self.study).directions
        bits = np.zeros((1, directions), np.int64)
        bits[0, -bits_to_report(directions, epsilon) :] = -1
        epsilons = Epsilons.same(epsilon, 1)
        reports = BitReports(epsilons, np.zeros(1, np.int64), bits)
        return write_reports(self.mechanism, self.study, epsilons, reports)[0]

    @cached_property
    def settings(self) -> Settings:
        """The mechanism's public settings."""
        return Settings(self.study, self.study.norm_bound, drawn=True)

    @cached_property
    def terms(self) -> Terms:
        """The terms that reports have to keep to."""
        return Terms(self.mechanism, self.settings, frozenset(level.epsilon for level in self.levels))

    @property
    def public_selection(self) -> str | None:
        """What releases select voters by, as declared before the poll opened; None: everybody is in them."""
        return "attention checks passed" if self.attention is not None and self.attention.left_out else None

    def failed_checks(self, about: Mapping[str, Answer]) -> int:
        """Count the attention checks that somebody with these answers has failed; central polls only."""
        checks = (question for question in self.questions if question.expected is not None)
        return sum(not question.passed(about.get(question.id)) for question in checks)

    def state(self, today: date, closed_by_host: bool, participants: int, pilot: bool = False) -> State:
        """Return whether submissions are taken today. Who tries a poll out needs to heed neither dates nor quota."""
        if pilot and not closed_by_host:
            return State.OPEN
        over = closed_by_host or (self.destroy_on is not None and today >= self.destroy_on)
        return Opening(self.opens_on, self.closes_on, self.quota).state(today, over, participants)


def expected_epsilons(levels: tuple[Level, ...]) -> Epsilons:
    """Return a crowd's epsilons as they are expected before anybody has voted: each level as often."""
    each = np.fromiter(islice(cycle(range(len(levels))), _EXPECTED_VOTERS), np.int64)
    return Epsilons.of(level.epsilon for level in levels)[each]


def grouping_questions(poll: Poll) -> tuple[Question, ...]:
    """Return the questions by which voters can be grouped: a choice of one, a scale, or a number cut into ranges.

    Several answers at once and free text make no groups, attention checks tell nothing of a voter, and of too many
    groups nothing could be told.
    """
    return tuple(
        question
        for question in poll.sent_questions
        if question.kind in _ONE_ANSWER and question.expected is None and len(question.levels) <= MOST_GROUPS
    )


def group_labels(question: Question) -> tuple[str, ...]:
    """Return the names of the groups: options by their ids, ranges by their numbers."""
    return tuple(group_label(question, level) for level in question.levels)


def group_label(question: Question, answer: Answer) -> str:
    """Return the name of the group of a voter with this answer."""
    return question.range_words(answer) if isinstance(answer, int) else str(answer)


def group_of(question: Question, about: Mapping[str, Answer]) -> str | None:
    """Return the group of a voter, given all that she said of herself; None if she did not answer."""
    return group_label(question, about[question.id]) if question.id in about else None
