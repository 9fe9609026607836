"""A claim of the paper, what was measured about it, and the verdict that follows from the intervals alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.evaluation.paper.across_epsilons import ALGORITHM_1, ALGORITHM_2
from crowdveil.evaluation.paper.curves import CUT, PRINTED, REPAIRED
from crowdveil.evaluation.paper.experiment import Experiment
from crowdveil.evaluation.paper.intervals import Interval, difference, mean
from crowdveil.evaluation.paper.results import Curve, Results

PRIVATE = (ALGORITHM_1, ALGORITHM_2, PRINTED.name, REPAIRED.name, CUT.name)
"""The series that protect somebody."""


def private(series: str) -> bool:
    """Whether a series protects anybody, and so counts."""
    return series in PRIVATE


class Verdict(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    PARTLY = "holds partly"
    FAILS = "does not hold"


class Outcome(StrEnum):
    """What became of one measured part of a claim."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "not shown"


@dataclass(frozen=True)
class Part:
    """A measured quantity, and where it must lie for the claim to be true."""

    what: str
    interval: Interval
    above: float = -math.inf
    below: float = math.inf
    counts: bool = True
    """False for context: shown beside the claim, no part of its verdict."""

    @property
    def outcome(self) -> Outcome:
        """Yes or no where the whole interval says so."""
        if self.interval.low > self.above and self.interval.high < self.below:
            return Outcome.YES
        if self.interval.high <= self.above or self.interval.low >= self.below:
            return Outcome.NO
        return Outcome.UNCLEAR

    @property
    def wanted(self) -> str:
        """The condition in words."""
        low, high = math.isfinite(self.above), math.isfinite(self.below)
        if low and high:
            return f"between {self.above:g} and {self.below:g}"
        return f"above {self.above:g}" if low else f"below {self.below:g}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        i = self.interval
        return {
            "what": self.what,
            "estimate": i.estimate,
            "low": i.low if math.isfinite(i.low) else None,
            "high": i.high if math.isfinite(i.high) else None,
            "wanted": self.wanted,
            "outcome": self.outcome.value,
            "counts": self.counts,
        }


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper. It holds where every part does, and does not hold where no part does."""

    name: str
    section: str
    quote: str
    parts: tuple[Part, ...]
    why: str

    @property
    def verdict(self) -> Verdict:
        """The verdict, computed from the parts that count."""
        shown = [part.outcome is Outcome.YES for part in self.parts if part.counts]
        if all(shown):
            return Verdict.HOLDS
        return Verdict.PARTLY if any(shown) else Verdict.FAILS

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "name": self.name,
            "section": self.section,
            "quote": self.quote,
            "verdict": self.verdict.value,
            "measured": [part.as_dict() for part in self.parts],
            "why": self.why,
        }


def curves(results: Results, experiments: Iterable[Experiment], series: str, measure: str) -> list[Curve]:
    """Return one series of several experiments."""
    return [results.curve(experiment, series, measure) for experiment in experiments]


def joined(values: Iterable[FloatArray]) -> FloatArray:
    """Put the crowds of several experiments together."""
    return np.concatenate(list(values))


def rise(found: Iterable[Curve]) -> Interval:
    """How much higher curves end than they begin, crowd by crowd."""
    return mean(joined(curve.values[:, -1] - curve.values[:, 0] for curve in found))


def steps_down(found: list[Curve]) -> Interval:
    """Count the steps of curves from one point to the next that go down for certain (95 % for all steps together)."""
    steps = [np.diff(curve.values, axis=1)[:, k] for curve in found for k in range(len(curve.points) - 1)]
    count = float(sum(mean(step, confidence=1 - 0.05 / len(steps)).high < 0 for step in steps))
    return Interval(count, count, count)


def advantage(first: list[Curve], second: list[Curve]) -> Interval:
    """How much higher one set of curves lies than another on the same crowds, on average over the axis."""
    return mean(joined(a.overall - b.overall for a, b in zip(first, second, strict=True)))


def between(
    results: Results, first: Sequence[Experiment], second: Sequence[Experiment], series: str, measure: str
) -> Interval:
    """How much higher a series lies in some experiments than in others on other crowds, on average over the axis."""
    values = [joined(c.overall for c in curves(results, group, series, measure)) for group in (first, second)]
    return difference(*values)
