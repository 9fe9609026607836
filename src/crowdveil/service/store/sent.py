"""What voters send, as it goes into the database, and what becomes of it there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What became of a report or ballot that was sent."""

    STORED = "stored"
    ALREADY_STORED = "already-stored"
    DIFFERENT = "different-report"
    UNKNOWN_BALLOT = "unknown-ballot"
    WITHDRAWN = "withdrawn"
    CLOSED = "closed"
    NOT_OPEN_YET = "not-open-yet"
    FULL = "full"


@dataclass(frozen=True)
class SentReport:
    """A checked report, as it is stored in a distributed poll."""

    poll: str
    id: str
    epsilon_micro: int
    body: str
    """Canonical JSON, without ``about``."""
    about: str
    """Canonical JSON."""

    @property
    def content(self) -> tuple[str, str]:
        """What makes two reports of one token the same."""
        return self.body, self.about


@dataclass(frozen=True)
class SentBallot:
    """Checked answers, as they are stored in a central poll."""

    poll: str
    id: str
    answers: str
    """Canonical JSON: a list of {"left", "right", "chosen"}."""
    about: str
    """Canonical JSON."""

    @property
    def content(self) -> tuple[str, str]:
        """What makes two ballots of one token the same."""
        return self.answers, self.about


Sent = SentReport | SentBallot
Refusals = Mapping[tuple[str, str], int]
"""(poll, reason) -> how often something was refused for it."""
