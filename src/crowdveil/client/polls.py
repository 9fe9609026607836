"""What a website says about its polls, checked before a program relies on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import Paradigm, Place
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.study.study import Study


@dataclass(frozen=True)
class Listed:
    """A poll in the list of a website's polls."""

    id: str
    title: str
    state: str
    paradigm: str
    release: str | None
    """The newest release, if there is one."""


@dataclass(frozen=True)
class Level:
    """A level of privacy that voters may choose."""

    name: str
    epsilon: Epsilon


@dataclass(frozen=True)
class Poll:
    """A study put to voters: what is asked, and on what terms."""

    id: str
    state: str
    study: Study
    paradigm: Paradigm
    mechanism: str
    norm_bound: float
    levels: tuple[Level, ...]
    questions: Mapping[str, tuple[str, ...]]
    """About-you questions: the options of each, by their ids."""
    about_epsilon: Epsilon | None
    entry: str

    @property
    def distributed(self) -> bool:
        """Whether each voter's device adds the noise."""
        return self.paradigm.place is Place.DISTRIBUTED

    def level(self, name: str | None) -> Level:
        """Find a level by its name; None takes the most private one."""
        if name is None:
            return min(self.levels, key=lambda level: level.epsilon)
        for level in self.levels:
            if level.name == name:
                return level
        offered = ", ".join(level.name for level in self.levels)
        raise CrowdveilError(f"poll {self.id} has no level of privacy {name!r}: choose one of {offered}")


def read_poll(data: Mapping[str, Any]) -> Poll:
    """Read a poll's description. What it asks must be what its fingerprint names."""
    try:
        study = Study.from_dict(data["study"])
        poll = Poll(
            id=str(data["id"]),
            state=str(data["state"]),
            study=study,
            paradigm=find_paradigm(data["paradigm"]),
            mechanism=str(data["mechanism"]),
            norm_bound=float(data["method"]["norm_bound"]),
            levels=tuple(
                Level(str(level["name"]), Epsilon.of_millionths(level["epsilon_micro"])) for level in data["levels"]
            ),
            questions={q["id"]: tuple(option["id"] for option in q["options"]) for q in data["questions"]},
            about_epsilon=None
            if data["about_epsilon_micro"] is None
            else Epsilon.of_millionths(data["about_epsilon_micro"]),
            entry=str(data["entry"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CrowdveilError(
            f"the server's description of the poll cannot be read: {type(error).__name__} {error}"
        ) from None
    if study.fingerprint != data["study_fingerprint"]:
        raise CrowdveilError(f"poll {poll.id}: the study is not the one that its fingerprint names; do not vote in it")
    if not poll.levels:
        raise CrowdveilError(f"poll {poll.id} offers no level of privacy")
    return poll
