"""A poll: a study put to voters on the web, with who is protected, how much, and who may take part until when.

A poll never changes once it is made: it is what voters agreed to. (A host can close it, and open it again.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import cached_property
from itertools import cycle, islice

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import Paradigm, Place
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.registry import mechanism_name
from crowdveil.protocol.report import Terms
from crowdveil.study.study import Study
from crowdveil.study.translations import Translation

_ID = re.compile(r"[a-z0-9-]{1,40}")
_EXPECTED_VOTERS = 1000
"""The crowd for which a central poll's mechanism is recommended, before anybody has answered."""

Texts = Mapping[str, str]
"""Language -> text."""


class Entry(StrEnum):
    """Who may take part."""

    OPEN = "open"
    LINKS = "links"


class State(StrEnum):
    """Whether a poll takes answers now."""

    OPEN = "open"
    NOT_OPEN_YET = "not-open-yet"
    CLOSED = "closed"
    FULL = "full"


@dataclass(frozen=True)
class Level:
    """An epsilon on offer, with a name."""

    name: str
    epsilon: Epsilon


@dataclass(frozen=True)
class Option:
    """One answer to choose from."""

    id: str
    text: Texts


@dataclass(frozen=True)
class Question:
    """An about-you question. Nobody has to answer it."""

    id: str
    text: Texts
    options: tuple[Option, ...]

    def __post_init__(self) -> None:
        ids = [option.id for option in self.options]
        if len(ids) < 2 or len(set(ids)) < len(ids):
            raise CrowdveilError(f"question {self.id!r} needs two or more options with different ids, got {ids}")


@dataclass(frozen=True)
class Poll:
    """What is asked, what is promised, and the rules of entry."""

    name: str
    study: Study
    paradigm: Paradigm
    mechanism: str
    levels: tuple[Level, ...]
    """Distributed: what a voter chooses from. Central: one, the cap on all releases together."""
    entry: Entry = Entry.OPEN
    quota: int | None = None
    opens_on: date | None = None
    closes_on: date | None = None
    """The last day on which answers are taken (UTC)."""
    return_url: str | None = None
    completion_code: str | None = None
    contact: str | None = None
    consent: Texts = field(default_factory=dict)
    questions: tuple[Question, ...] = ()
    about_epsilon: Epsilon | None = None
    """Distributed: what each answer to a question is protected with on the device."""
    translations: tuple[Translation, ...] = ()
    """The study's words in languages beside those that come with crowdveil."""

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.name):
            raise CrowdveilError(f"poll name {self.name!r}: use 1 to 40 small letters, digits and -")
        names, epsilons = [level.name for level in self.levels], [level.epsilon for level in self.levels]
        if not self.levels or len(set(names)) < len(names) or len(set(epsilons)) < len(epsilons):
            raise CrowdveilError(f"poll {self.name}: levels need different names and epsilons, and there must be one")
        if not self.distributed and len(self.levels) != 1:
            raise CrowdveilError(
                f"poll {self.name}: {self.paradigm.name} has one budget for all, not {len(names)} levels"
            )
        checked = mechanism_name(self.paradigm, self.mechanism, self.study, self._epsilons)
        if checked != self.mechanism:
            raise CrowdveilError(f"poll {self.name}: name the mechanism, {checked!r}, not {self.mechanism!r}")
        if self.quota is not None and not self.quota >= 1:
            raise CrowdveilError(f"poll {self.name}: the quota must be 1 or more, got {self.quota}")
        if self.opens_on and self.closes_on and not self.opens_on <= self.closes_on:
            raise CrowdveilError(f"poll {self.name}: it closes on {self.closes_on}, before it opens on {self.opens_on}")
        if self.return_url is not None and not re.match(r"https?://[^\s<>\"]+$", self.return_url):
            raise CrowdveilError(
                f"poll {self.name}: return_url must start with https:// or http://, got {self.return_url!r}"
            )
        ids = [question.id for question in self.questions]
        if len(set(ids)) < len(ids):
            raise CrowdveilError(f"poll {self.name}: two questions have the same id: {', '.join(ids)}")
        if bool(self.questions and self.distributed) != (self.about_epsilon is not None):
            raise CrowdveilError(
                f"poll {self.name}: about_epsilon protects the questions of a distributed poll; "
                "give it there, and leave it out elsewhere"
            )

    def __hash__(self) -> int:
        return hash((self.name, self.study.fingerprint))

    @property
    def distributed(self) -> bool:
        """Whether noise is added on the voters' devices, so that no answer may reach the server."""
        return self.paradigm.place is Place.DISTRIBUTED

    @property
    def budget(self) -> Epsilon | None:
        """Central polls: the cap on all releases together."""
        return None if self.distributed else self.levels[0].epsilon

    @cached_property
    def settings(self) -> Settings:
        """What the mechanism runs with."""
        return Settings(self.study, self.study.norm_bound)

    @cached_property
    def terms(self) -> Terms:
        """What reports have to keep to."""
        return Terms(self.mechanism, self.settings, frozenset(level.epsilon for level in self.levels))

    @property
    def _epsilons(self) -> Epsilons:
        return expected_epsilons(self.levels)

    def state(self, today: date, closed_by_host: bool, participants: int) -> State:
        """Say whether answers are taken today."""
        if closed_by_host or (self.closes_on is not None and today > self.closes_on):
            return State.CLOSED
        if self.opens_on is not None and today < self.opens_on:
            return State.NOT_OPEN_YET
        if self.quota is not None and participants >= self.quota:
            return State.FULL
        return State.OPEN


def expected_epsilons(levels: tuple[Level, ...]) -> Epsilons:
    """Return a crowd's epsilons as they are expected before anybody has answered: each level as often."""
    return Epsilons.of(islice(cycle(level.epsilon for level in levels), _EXPECTED_VOTERS))
