"""The public terms of a poll: what is asked, who is protected, how much, and who may take part.

A poll never changes after its creation, because voters agreed to its terms. (A host can close it and open it again.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import Paradigm, Place
from crowdveil.privacy.shuffling import DEFAULT_DELTA, DEFAULT_HONEST, SMALLEST_BATCH, check_terms
from crowdveil.protocol.questions import MOST_NOISY_LEVELS, Attention, Question, QuestionKind, Texts
from crowdveil.study.study import Study

LARGEST_BATCH = 100_000
"""Upper limit of a poll's minimum batch size. A relay hands over at most twice this many reports at once."""
_RELAY = re.compile(r"https://[^\s<>\"/?#]+|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")
_NAME = re.compile(r"[a-z0-9-]{1,40}")
OLDEST = 120
MOST_DILEMMAS = 1000
"""Maximum number of dilemmas per voter, more than anybody answers; a device refuses a longer session."""


class EntryRule(StrEnum):
    """The rule of who may take part: anybody, or people with a link."""

    OPEN = "open"
    LINKS = "links"


class PollState(StrEnum):
    """Whether a poll accepts submissions now, and if not, why."""

    OPEN = "open"
    NOT_OPEN_YET = "not-open-yet"
    CLOSED = "closed"
    FULL = "full"


@dataclass(frozen=True)
class OpeningRules:
    """Rules for when a poll accepts submissions, and how many."""

    opens_on: date | None = None
    closes_on: date | None = None
    """The last day (UTC)."""
    quota: int | None = None

    def state(self, today: date, closed_by_host: bool, participants: int) -> PollState:
        """Return whether submissions are accepted today."""
        if closed_by_host or (self.closes_on is not None and today > self.closes_on):
            return PollState.CLOSED
        if self.opens_on is not None and today < self.opens_on:
            return PollState.NOT_OPEN_YET
        if self.quota is not None and participants >= self.quota:
            return PollState.FULL
        return PollState.OPEN


@dataclass(frozen=True)
class Level:
    """A named level of privacy that a poll offers."""

    name: str
    epsilon: Epsilon


@dataclass(frozen=True)
class RelayTerms:
    """The terms of a relay, run by somebody other than the host, which knows who sends but not what."""

    url: str
    """The address to which devices send their sealed reports."""
    batch: int
    """The minimum number of reports that the relay hands over together."""
    delta: float = DEFAULT_DELTA
    honest: float = DEFAULT_HONEST
    """The share of honest reports in a batch that the promise assumes."""
    public_key: str | None = None
    """The host's key, if the poll comes from its server."""

    def __post_init__(self) -> None:
        if not _RELAY.fullmatch(self.url):
            raise CrowdveilError(
                f"relay must be the address of a website, https://NAME without a path (http:// on this machine only), "
                f"got {self.url!r}"
            )
        if not SMALLEST_BATCH <= self.batch <= LARGEST_BATCH:
            raise CrowdveilError(f"batch must be from {SMALLEST_BATCH} to {LARGEST_BATCH:,} reports, got {self.batch}")
        check_terms(self.delta, self.honest)


@dataclass(frozen=True)
class Poll:
    """A study that is put to voters on public terms."""

    name: str
    study: Study
    paradigm: Paradigm
    mechanism: str
    levels: tuple[Level, ...]
    """Distributed polls: the levels that a voter chooses from. Central polls: one, the cap on all releases together."""
    entry: EntryRule = EntryRule.OPEN
    closes_on: date | None = None
    """The last day on which submissions are accepted (UTC)."""
    destroy_on: date | None = None
    """Central polls: the day on which the exact answers are destroyed, including those in backups."""
    return_url: str | None = None
    contact: str | None = None
    consent: Texts = field(default_factory=dict)
    questions: tuple[Question, ...] = ()
    about_epsilon: Epsilon | None = None
    """Distributed polls: the epsilon that protects each answer to a question, on the device."""
    attention: Attention | None = None
    """The notice to voters about attention checks; None if there are none."""
    minimum_age: int | None = None
    """The age that voters must declare to have reached; None if they are not asked."""
    relay: RelayTerms | None = None
    """The relay that passes on the reports, shuffled and without their senders; None if devices send to the host."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise CrowdveilError(f"poll name {self.name!r}: use 1 to 40 small letters, digits and -")
        if self.study.drawing.dilemmas > MOST_DILEMMAS:
            raise CrowdveilError(
                f"poll {self.name}: study {self.study.name} shows {self.study.drawing.dilemmas:,} dilemmas to a voter; "
                f"a poll may show up to {MOST_DILEMMAS:,}"
            )
        names = [level.name for level in self.levels]
        epsilons = {level.epsilon for level in self.levels}
        if not self.levels or len(set(names)) < len(names) or len(epsilons) < len(names):
            raise CrowdveilError(f"poll {self.name}: levels need different names and epsilons, and there must be one")
        if not self.distributed and len(self.levels) != 1:
            raise CrowdveilError(
                f"poll {self.name}: {self.paradigm.name} has one budget for all, not {len(names)} levels"
            )
        if self.return_url is not None and not re.match(r"https?://[^\s<>\"]+$", self.return_url):
            raise CrowdveilError(
                f"poll {self.name}: return_url must start with https:// or http://, got {self.return_url!r}"
            )
        self._check_questions()
        if self.minimum_age is not None and not 1 <= self.minimum_age <= OLDEST:
            raise CrowdveilError(f"poll {self.name}: minimum_age must be from 1 to {OLDEST}, got {self.minimum_age}")
        if self.destroy_on is not None and self.distributed:
            raise CrowdveilError(f"poll {self.name}: destroy_on is for central polls; this one has no exact answers")
        if self.relay is not None:
            self._check_relay()

    def _check_questions(self) -> None:
        ids = [question.id for question in self.questions]
        if len(set(ids)) < len(ids):
            raise CrowdveilError(f"poll {self.name}: two questions have the same id: {', '.join(ids)}")
        if bool(self.sent_questions and self.distributed) != (self.about_epsilon is not None):
            raise CrowdveilError(
                f"poll {self.name}: about_epsilon protects the questions of a distributed poll; "
                "give it there, and leave it out elsewhere"
            )
        for question in self.questions if self.distributed else ():
            if question.kind is QuestionKind.TEXT:
                raise CrowdveilError(
                    f"poll {self.name}: question {question.id!r} asks for free text, which no noise can protect: "
                    "ask it in a central poll (vlcp, rlcp, alcp), or offer options"
                )
            if question.kind is QuestionKind.NUMBER and len(question.levels) > MOST_NOISY_LEVELS:
                raise CrowdveilError(
                    f"poll {self.name}: question {question.id!r} has {len(question.levels):,} ranges, and coin tosses "
                    f"among more than {MOST_NOISY_LEVELS} reveal nothing: give a larger step, like 10"
                )
        checks = sum(question.expected is not None for question in self.questions)
        told = 0 if self.attention is None else self.attention.checks
        if self.distributed and (told != checks or (self.attention is not None and self.attention.left_out)):
            raise CrowdveilError(
                f"poll {self.name}: attention checks of a distributed poll are judged on the device and nothing about "
                "them is sent: nobody can be left out for them"
            )
        if not checks <= told <= len(self.questions):
            raise CrowdveilError(
                f"poll {self.name} announces {told} attention checks but has {len(self.questions)} questions"
            )

    def _check_relay(self) -> None:
        """Refuse a relay if reports could reveal their senders, or if no theorem covers them."""
        from crowdveil.privacy.mechanisms.registry import RELAYABLE  # a poll without a relay needs no mechanism

        if self.paradigm.name != "vldp" or self.mechanism not in RELAYABLE:
            raise CrowdveilError(
                f"poll {self.name}: a relay carries reports of paradigm vldp by {' or '.join(RELAYABLE)}, "
                f"not {self.paradigm.name} by {self.mechanism}"
            )
        if len(self.levels) != 1:
            raise CrowdveilError(
                f"poll {self.name}: behind a relay everybody has one level, because the level would mark a report; "
                f"give one, like levels = {{ shuffled = 3 }}, got {len(self.levels)}"
            )
        if self.study.indifference is not None:
            raise CrowdveilError(
                f"poll {self.name}: a relay carries no third answer, which study {self.study.name} allows"
            )
        if self.study.repeat:
            raise CrowdveilError(
                f"poll {self.name}: a relay carries no report on a repeat, which study {self.study.name} asks for"
            )
        if self.sent_questions:
            raise CrowdveilError(
                f"poll {self.name}: about-you questions would mark a report behind a relay: leave them out"
            )

    def __repr__(self) -> str:
        levels = ", ".join(str(level.epsilon) for level in self.levels)
        return f"<poll {self.name}: {self.study.name}, {self.paradigm.name} by {self.mechanism} at epsilon {levels}>"

    def __hash__(self) -> int:
        return hash((self.name, self.study.fingerprint))

    @property
    def distributed(self) -> bool:
        """Whether noise is added on the voters' devices, so that no choice reaches the server."""
        return self.paradigm.place is Place.DISTRIBUTED

    @property
    def budget(self) -> Epsilon | None:
        """Central polls: the cap on all releases together."""
        return None if self.distributed else self.levels[0].epsilon

    @property
    def sent_questions(self) -> tuple[Question, ...]:
        """The questions whose answers leave the device. In a distributed poll, answers to attention checks do not."""
        if not self.distributed:
            return self.questions
        return tuple(question for question in self.questions if question.expected is None)

    def level(self, name: str | None) -> Level:
        """Return a level by its name; None selects the most private one."""
        if name is None:
            return min(self.levels, key=lambda level: level.epsilon)
        for level in self.levels:
            if level.name == name:
                return level
        offered = ", ".join(level.name for level in self.levels)
        raise CrowdveilError(f"poll {self.name} has no level of privacy {name!r}: choose one of {offered}")


@dataclass(frozen=True)
class PollSummary:
    """A poll in the list of a website's polls."""

    id: str
    """The poll's name."""
    title: str
    state: PollState
    paradigm: str
    release: str | None
    """The id of the release that decisions use, if there is one."""
