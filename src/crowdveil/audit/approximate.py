"""Promises with a delta put on trial: Gaussian noise (zCDP), and reports that are shuffled.

Such a promise is a curve: for every delta an epsilon with P(E | left) <= e^epsilon P(E | right) + delta for all events E.
An attack may choose its point on the curve. The promise is broken if at any of them more than its epsilon is proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from crowdveil.audit.attack import Evidence, Rows, Score, attack
from crowdveil.audit.noise_laws import FALSE_ALARM
from crowdveil.audit.trial import Flaw, Trial


@dataclass(frozen=True)
class Point:
    """One point of a promised curve."""

    epsilon: float
    delta: float


class ApproximateSubject(Protocol):
    """Something that promises a curve, with the neighbours it is tried on."""

    @property
    def name(self) -> str:
        """The mechanism's name."""

    @property
    def remark(self) -> str:
        """What is special about how it is run here."""

    @property
    def paradigm(self) -> str:
        """Who is promised what."""

    @property
    def promised(self) -> Sequence[Point]:
        """Points of the promised curve, those that are attacked."""

    @property
    def how(self) -> str:
        """How the neighbours were found."""

    @property
    def reach(self) -> float | None:
        """How far apart they are, as a share of what the noise covers; None where no noise is added."""

    def sample(self, left: bool, draws: int) -> Rows:
        """Run one side again and again; each row is everything that leaves one run."""

    def scores(self) -> Sequence[Score]:
        """Return the scores that use the known laws of both sides."""

    def noise_p_value(self, rows: Rows) -> float | None:
        """Test rows of the left side against the law of the noise; None where no noise is added."""

    def same_release(self) -> bool:
        """Check that a release depends on nothing but what the rows hold."""


def try_curve(subject: ApproximateSubject, draws: int, bug: str | None = None) -> Trial:
    """Attack every point, and show the one at which the attack comes nearest to the promise."""
    train, fresh = ((subject.sample(True, draws), subject.sample(False, draws)) for _ in ("train", "fresh"))
    scores = subject.scores()
    tried = [(point, attack(train, fresh, scores, point.delta)) for point in subject.promised]
    point, evidence = max(tried, key=lambda one: _nearness(*one))
    p_value, reach = subject.noise_p_value(fresh[0]), subject.reach
    found = {
        Flaw.BOUND: any(each.judged > at.epsilon for at, each in tried),
        Flaw.NEIGHBOURS: reach is not None and reach > 1,
        Flaw.NOISE: p_value is not None and p_value < FALSE_ALARM,
        Flaw.RELEASE: not subject.same_release(),
    }
    return Trial(
        name=subject.name,
        remark=subject.remark,
        paradigm=subject.paradigm,
        claimed=point.epsilon,
        evidence=evidence,
        neighbours=subject.how,
        reach=reach,
        noise_p_value=p_value,
        flaws=tuple(flaw for flaw, is_there in found.items() if is_there),
        bug=bug,
        delta=point.delta,
    )


def _nearness(point: Point, evidence: Evidence) -> tuple[bool, float]:
    """Order points: a broken one first, then by the share of the promise that was proved."""
    return evidence.judged > point.epsilon, evidence.shown / point.epsilon
