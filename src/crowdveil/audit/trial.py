"""A promise on trial: four ways to break it, and a verdict.

A promise is a curve: for every delta, an epsilon with P(E | left) <= e^epsilon P(E | right) + delta for all events E
and all neighbours left and right. A pure promise is a single point, at delta 0. An attack may choose its point on the
curve; the promise is broken if at any of them more than its epsilon is proved.

The attack learns from one sample which event distinguishes the sides, and counts it on a fresh one. A sample is a
matrix with one row per independent output, which contains everything that is output, as numbers. An attacker orders the
rows by a score and bets on one side from some threshold on. The attacked subject supplies scores that use the known law
of the noise; the scores here are learned from the outputs alone. An event that was seen more often on one side than on
the other refutes every epsilon below ln(p / p'), where p is at least and p' at most what the counts allow (Clopper and
Pearson 1934, exact for any count).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import betainccinv, betaincinv

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.privacy.epsilon import Epsilon

Rows = npt.NDArray[Any]
Score = Callable[[Rows], FloatArray]

SHOWN = 1e-3
"""Bounds are shown at 99.9 %: each is too high with at most this probability."""
JUDGED = 1e-8
"""Probability that the bound behind the verdict "broken" is too high.

It is so small that a whole audit of some forty trials raises a false alarm less than once in a million audits.
"""
FALSE_ALARM = 1e-9
"""False alarm rate of one test of noise against its law. All of an audit together stay far below one in a million."""
TIGHT = 0.85
"""Share of the promise that, if proved, leaves hardly any noise to be saved."""
_THRESHOLDS = 256
_ROWS_TO_LOOK_AT = 4096
_LEAST_REPEATS = 10
_RIDGE = 1e-12


@dataclass(frozen=True)
class Event:
    """Outputs whose score is at least the threshold (or below it), and the side on which they are more frequent."""

    score: Score
    threshold: float
    above: bool
    on_the_left: bool

    def hits(self, rows: Rows) -> int:
        """Count the rows in the event."""
        return int(np.sum((self.score(rows) >= self.threshold) == self.above))


@dataclass(frozen=True)
class Evidence:
    """Lower bounds on epsilon that an attack proves."""

    shown: float
    """At 99.9 %."""
    judged: float
    """At a confidence high enough for a verdict."""


def attack(train: tuple[Rows, Rows], fresh: tuple[Rows, Rows], scores: Sequence[Score], delta: float = 0.0) -> Evidence:
    """Choose the event on the first pair of samples (left, right), and count it on the second pair."""
    event = choose_event(train, [*scores, *learned_scores(train)], delta)
    left, right = event.hits(fresh[0]), event.hits(fresh[1])
    more, less = np.array([left, right] if event.on_the_left else [right, left])[:, None]
    shown, judged = (float(least_epsilon(more, less, len(fresh[0]), miss, delta)[0]) for miss in (SHOWN, JUDGED))
    return Evidence(shown, judged)


def choose_event(train: tuple[Rows, Rows], scores: Sequence[Score], delta: float = 0.0) -> Event:
    """Return the event that would prove the largest epsilon on this sample.

    It is chosen by the high-confidence bound, so that a rare event must be very lucky to look better than it is.
    """
    draws = len(train[0])
    candidates = list[tuple[float, Event]]()
    for score in scores:
        left, right = (np.sort(score(rows)) for rows in train)
        pooled = np.unique(np.concatenate([left, right]))
        if len(pooled) > _THRESHOLDS:
            # Thresholds are values that occurred, so that they do not split an atom of the law.
            both = np.concatenate([left, right])
            at = np.linspace(0.001, 0.999, _THRESHOLDS)
            pooled = np.unique(np.quantile(both, at, method="lower"))
        below = [np.searchsorted(side, pooled) for side in (left, right)]
        for above in (True, False):
            hits = [draws - count if above else count for count in below]
            for on_the_left in (True, False):
                more, less = hits if on_the_left else hits[::-1]
                proved = least_epsilon(more, less, draws, JUDGED, delta)
                best = int(np.argmax(proved))
                candidates.append((float(proved[best]), Event(score, float(pooled[best]), above, on_the_left)))
    return max(candidates, key=lambda pair: pair[0])[1]


def least_epsilon(hits: IntArray, others: IntArray, draws: int, miss: float, delta: float = 0.0) -> FloatArray:
    """Return lower bounds on epsilon from how often events were seen on one side and on the other.

    Each is too high with a probability of at most ``miss``, half of it spent on each count. A promise with a delta
    allows P(E | left) <= e^epsilon P(E | right) + delta, so delta is subtracted first.
    """
    with np.errstate(divide="ignore"):
        more = np.maximum(at_least(hits, draws, miss / 2) - delta, 0.0)
        ratio = np.log(more) - np.log(at_most(others, draws, miss / 2))
    return np.asarray(np.maximum(ratio, 0.0))


def at_least(hits: IntArray, draws: int, miss: float) -> FloatArray:
    """Return a lower bound on the probability of an event that was seen ``hits`` times."""
    return np.where(hits == 0, 0.0, betaincinv(np.maximum(hits, 1), draws - hits + 1, miss))


def at_most(hits: IntArray, draws: int, miss: float) -> FloatArray:
    """Return an upper bound on the probability of an event that was seen ``hits`` times."""
    return np.where(hits == draws, 1.0, betainccinv(hits + 1, np.maximum(draws - hits, 1), miss))


def learned_scores(train: tuple[Rows, Rows]) -> list[Score]:
    """Learn from outputs alone: the best linear score and, if outputs repeat, how often each was seen."""
    some = train[0][:_ROWS_TO_LOOK_AT]
    repeats = len(some) / len(np.unique(some, axis=0))
    return [discriminant(train)] + ([frequencies(train)] if repeats >= _LEAST_REPEATS else [])


def discriminant(train: tuple[Rows, Rows]) -> Score:
    """Fisher's linear discriminant: the direction in which the sides are furthest apart relative to their spread.

    If a combination of outputs carries no noise at all, this is the direction it finds.
    """
    left, right = (np.asarray(rows, np.float64) for rows in train)
    varies = np.flatnonzero(np.ptp(np.concatenate([left, right]), axis=0))
    left, right = left[:, varies], right[:, varies]
    size = np.maximum(np.abs(left).max(axis=0), np.abs(right).max(axis=0))
    left, right = left / size, right / size
    spread = np.atleast_2d(np.cov(left, rowvar=False)) + np.atleast_2d(np.cov(right, rowvar=False))
    ridge = _RIDGE * np.eye(len(varies))
    direction = np.linalg.solve(spread + ridge, left.mean(axis=0) - right.mean(axis=0)) / size
    return lambda rows: np.asarray(rows[:, varies], np.float64) @ direction


def frequencies(train: tuple[Rows, Rows]) -> Score:
    """Score each output by how much more often it was seen on the left than on the right."""
    left, right = (Counter(_as_bytes(rows)) for rows in train)
    known = {output: math.log((left[output] + 0.5) / (right[output] + 0.5)) for output in left | right}
    return lambda rows: np.array([known.get(output, 0.0) for output in _as_bytes(rows)])


def _as_bytes(rows: Rows) -> list[Any]:
    """Return the bytes of the numbers in each row."""
    whole = np.ascontiguousarray(rows)
    return whole.view(np.dtype((np.void, whole.dtype.itemsize * whole.shape[1]))).ravel().tolist()


@dataclass(frozen=True)
class PrivacyPoint:
    """One point of a promised curve."""

    epsilon: float
    delta: float = 0.0


class Subject(Protocol):
    """Something that makes a promise, with the two neighbours on which it is tried: left and right."""

    @property
    def name(self) -> str:
        """The mechanism's name."""

    @property
    def remark(self) -> str:
        """How the mechanism is tried here, if in a special way."""

    @property
    def paradigm(self) -> str:
        """Who is promised what; empty if it is none of the paradigms."""

    @property
    def promised(self) -> Sequence[PrivacyPoint]:
        """The points of the promised curve that are attacked."""

    @property
    def neighbours(self) -> str:
        """How the neighbours were found."""

    @property
    def reach(self) -> Fraction | float | None:
        """Their distance, as a share of what the noise covers; None if no noise is added."""

    def sample(self, left: bool, draws: int) -> Rows:
        """Make the outputs of one side again and again; each row is everything that is output at once."""

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return scores that use more than the outputs: the laws of both sides, or where to look."""

    def noise_p_value(self, rows: Rows) -> float | None:
        """Test rows of the left side against the law of the noise; None if no noise is added."""

    def same_release(self) -> bool:
        """Check that a release depends only on what the rows contain."""


class RowSubject:
    """A subject whose outputs are all in the rows, and whose noise, if any, is tested elsewhere."""

    reach: Fraction | float | None = None

    def noise_p_value(self, rows: Rows) -> float | None:
        """Return None: there is no law to test."""
        return None

    def same_release(self) -> bool:
        """Return True: there are no other outputs."""
        return True


@dataclass(frozen=True)
class PureEpsilonSubject(RowSubject):
    """Such a subject with a promise of pure epsilon."""

    epsilon: Epsilon

    @property
    def promised(self) -> Sequence[PrivacyPoint]:
        """The epsilon."""
        return [PrivacyPoint(self.epsilon.value)]


class TrialVerdict(StrEnum):
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
    claimed: PrivacyPoint
    evidence: Evidence
    neighbours: str
    reach: float | None
    """The distance of the neighbours, as a share of what the noise covers."""
    noise_p_value: float | None
    flaws: tuple[Flaw, ...]
    bug: str | None = None
    """The deliberate mistake, if any: then a flaw must be found."""

    @property
    def verdict(self) -> TrialVerdict:
        """The outcome in one word."""
        if self.bug is not None:
            return TrialVerdict.CAUGHT if self.flaws else TrialVerdict.MISSED
        if self.flaws:
            return TrialVerdict.VIOLATED
        return TrialVerdict.TIGHT if self.evidence.shown >= TIGHT * self.claimed.epsilon else TrialVerdict.HOLDS

    @property
    def promised(self) -> str:
        """The promise in brief: an epsilon, with its delta if it has one."""
        epsilon, delta = self.claimed.epsilon, self.claimed.delta
        return f"{epsilon:.3g}, delta {delta:g}" if delta else f"{epsilon:g}"

    @property
    def as_it_should_be(self) -> bool:
        """Whether a promise held, or a mistake was caught."""
        return self.verdict not in (TrialVerdict.VIOLATED, TrialVerdict.MISSED)

    def as_dict(self) -> dict[str, Any]:
        """Return the trial as plain data."""
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
    """Attack every promised point, and report the one at which the attack comes nearest to the promise."""
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


def _nearness(point: PrivacyPoint, evidence: Evidence) -> tuple[bool, float]:
    """Order points: a broken one first, then by the share of the promise that was proved."""
    return evidence.judged > point.epsilon, evidence.shown / point.epsilon
