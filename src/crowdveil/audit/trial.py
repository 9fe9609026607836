"""One promise put on trial: four ways to break it, and a verdict.

A promise is a curve: for every delta an epsilon with P(E | left) <= e^epsilon P(E | right) + delta for all events E. A
pure promise is a single point, at delta 0. An attack may choose its point on the curve; the promise is broken if at any
of them more than its epsilon is proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Protocol

from crowdveil.audit.attack import Evidence, Rows, Score, attack
from crowdveil.audit.laws import FALSE_ALARM

TIGHT = 0.85
"""A bound of at least this share of the promise leaves hardly any noise that could be saved."""


@dataclass(frozen=True)
class Point:
    """One point of a promised curve."""

    epsilon: float
    delta: float = 0.0


class Subject(Protocol):
    """Something that makes a promise, with the two neighbours that it is tried on: left and right."""

    @property
    def name(self) -> str:
        """The mechanism's name."""

    @property
    def remark(self) -> str:
        """The special way in which it is tried here, if it is."""

    @property
    def paradigm(self) -> str:
        """Who is promised what; nothing where it is none of the paradigms."""

    @property
    def promised(self) -> Sequence[Point]:
        """Points of the promised curve, those that are attacked."""

    @property
    def neighbours(self) -> str:
        """The way in which the neighbours were found."""

    @property
    def reach(self) -> Fraction | float | None:
        """Their distance, as a share of what the noise covers; None where no noise is added."""

    def sample(self, left: bool, draws: int) -> Rows:
        """Make the outputs of one side again and again; each row is everything that leaves at once."""

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return scores that know more than the outputs: the laws of both sides, or where to look."""

    def noise_p_value(self, rows: Rows) -> float | None:
        """Test rows of the left side against the law of the noise; None where no noise is added."""

    def same_release(self) -> bool:
        """Check that a release depends on nothing but what the rows hold."""


class Verdict(StrEnum):
    """The outcome of a trial."""

    TIGHT = "tight"
    HOLDS = "holds"
    VIOLATED = "VIOLATED"
    CAUGHT = "caught"
    MISSED = "MISSED"


class Flaw(StrEnum):
    """A way in which a promise can be broken."""

    BOUND = "attack"
    NEIGHBOURS = "neighbours too far apart"
    NOISE = "law of the noise"
    RELEASE = "release tells more than the noisy sum"


@dataclass(frozen=True)
class Trial:
    """A promise, and what was found."""

    name: str
    remark: str
    paradigm: str
    claimed: Point
    evidence: Evidence
    neighbours: str
    reach: float | None
    """The distance of the neighbours, as a share of what the noise covers."""
    noise_p_value: float | None
    flaws: tuple[Flaw, ...]
    bug: str | None = None
    """The mistake that was made on purpose, if any: then a flaw must be found."""

    @property
    def verdict(self) -> Verdict:
        """Its outcome in a word."""
        if self.bug is not None:
            return Verdict.CAUGHT if self.flaws else Verdict.MISSED
        if self.flaws:
            return Verdict.VIOLATED
        return Verdict.TIGHT if self.evidence.shown >= TIGHT * self.claimed.epsilon else Verdict.HOLDS

    @property
    def promised(self) -> str:
        """The promise in short: an epsilon, with its delta if it has one."""
        epsilon, delta = self.claimed.epsilon, self.claimed.delta
        return f"{epsilon:.3g}, delta {delta:g}" if delta else f"{epsilon:g}"

    @property
    def as_it_should_be(self) -> bool:
        """Whether a promise held, or a mistake was caught."""
        return self.verdict not in (Verdict.VIOLATED, Verdict.MISSED)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "mechanism": self.name,
            "remark": self.remark,
            "paradigm": self.paradigm,
            **({"bug": self.bug} if self.bug is not None else {}),
            "claimed": self.claimed.epsilon,
            **({"delta": self.claimed.delta} if self.claimed.delta else {}),
            "lower_bound": self.evidence.shown,
            "verdict": self.verdict.value,
            "flaws": [flaw.value for flaw in self.flaws],
            "neighbours": self.neighbours,
            "reach": self.reach,
            "noise_p_value": self.noise_p_value,
        }


def put_on_trial(subject: Subject, draws: int, bug: str | None = None) -> Trial:
    """Attack every promised point, and show the one at which the attack comes nearest to the promise."""
    train, fresh = ((subject.sample(True, draws), subject.sample(False, draws)) for _ in ("train", "fresh"))
    scores = subject.scores(train)
    attacked = [(point, attack(train, fresh, scores, point.delta)) for point in subject.promised]
    point, evidence = max(attacked, key=lambda one: _nearness(*one))
    p_value = subject.noise_p_value(fresh[0])
    reach = subject.reach
    present = {
        Flaw.BOUND: any(each.judged > at.epsilon for at, each in attacked),
        Flaw.NEIGHBOURS: reach is not None and reach > 1,
        Flaw.NOISE: p_value is not None and p_value < FALSE_ALARM,
        Flaw.RELEASE: not subject.same_release(),
    }
    return Trial(
        name=subject.name,
        remark=subject.remark,
        paradigm=subject.paradigm,
        claimed=point,
        evidence=evidence,
        neighbours=subject.neighbours,
        reach=None if reach is None else float(reach),
        noise_p_value=p_value,
        flaws=tuple(flaw for flaw, is_there in present.items() if is_there),
        bug=bug,
    )


def _nearness(point: Point, evidence: Evidence) -> tuple[bool, float]:
    """Order points: a broken one first, then by the share of the promise that was proved."""
    return evidence.judged > point.epsilon, evidence.shown / point.epsilon
