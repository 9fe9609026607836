"""A claim of the paper, the quantities measured for it, and the verdict that follows from the intervals alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.evaluation.paper.plan import PRIVATE, SHORT
from crowdveil.evaluation.toolkit.scores import Interval, difference, mean
from crowdveil.evaluation.toolkit.sweep import Curve, Experiment, Results


class ClaimVerdict(StrEnum):
    """The outcome of a claim."""

    HOLDS = "holds"
    PARTLY = "holds partly"
    FAILS = "does not hold"
    UNCLEAR = "not shown"


class PartOutcome(StrEnum):
    """The outcome of one measured part of a claim."""

    YES = "yes"
    NO = "no"
    UNCLEAR = "not shown"


@dataclass(frozen=True)
class ClaimPart:
    """A measured quantity, and where it must lie for the claim to be true."""

    what: str
    interval: Interval
    above: float = -math.inf
    below: float = math.inf
    counts: bool = True
    """False for context, which is shown beside the claim and does not affect the verdict."""

    @property
    def outcome(self) -> PartOutcome:
        """Yes or no if the whole interval says so."""
        if self.interval.low > self.above and self.interval.high < self.below:
            return PartOutcome.YES
        if self.interval.high <= self.above or self.interval.low >= self.below:
            return PartOutcome.NO
        return PartOutcome.UNCLEAR

    @property
    def wanted(self) -> str:
        """The condition in words."""
        low, high = math.isfinite(self.above), math.isfinite(self.below)
        if low and high:
            return f"between {self.above:g} and {self.below:g}"
        return f"above {self.above:g}" if low else f"below {self.below:g}"

    def as_dict(self) -> dict[str, Any]:
        """Return the part as plain data."""
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
    """One sentence of the paper.

    It holds if every part does, and partly if some do. If none does, it does not hold, unless no part is refuted.
    """

    name: str
    section: str
    quote: str
    parts: tuple[ClaimPart, ...]
    why: str

    @property
    def verdict(self) -> ClaimVerdict:
        """The verdict, computed from the parts that count."""
        outcomes = {part.outcome for part in self.parts if part.counts}
        if PartOutcome.YES in outcomes:
            return ClaimVerdict.HOLDS if len(outcomes) == 1 else ClaimVerdict.PARTLY
        return ClaimVerdict.FAILS if PartOutcome.NO in outcomes else ClaimVerdict.UNCLEAR

    def as_dict(self) -> dict[str, Any]:
        """Return the claim as plain data."""
        return {
            "name": self.name,
            "section": self.section,
            "quote": self.quote,
            "verdict": self.verdict.value,
            "measured": [part.as_dict() for part in self.parts],
            "why": self.why,
        }


def parts(
    words: str,
    series: Iterable[str],
    truths: Iterable[str],
    measured: Callable[[str, str], Interval],
    above: float = -math.inf,
    below: float = math.inf,
) -> tuple[ClaimPart, ...]:
    """Measure the same quantity for several series and one or more truths; series that protect nobody are context.

    ``words`` contains {series}, and {truth} if there is more than one.
    """
    truths = tuple(truths)
    return tuple(
        ClaimPart(
            words.format(series=SHORT[one], truth=f", {truth}" if len(truths) > 1 else ""),
            measured(one, truth),
            above,
            below,
            counts=one in PRIVATE,
        )
        for one in series
        for truth in truths
    )


def curves(results: Results, experiments: Iterable[Experiment], series: str, measure: str) -> list[Curve]:
    """Return one series of several experiments."""
    return [results.curve(experiment, series, measure) for experiment in experiments]


def joined(values: Iterable[FloatArray]) -> FloatArray:
    """Concatenate the crowds of several experiments."""
    return np.concatenate(list(values))


def rise(found: Iterable[Curve]) -> Interval:
    """Return how much higher curves end than they begin, crowd by crowd."""
    return mean(joined(curve.values[:, -1] - curve.values[:, 0] for curve in found))


def certainly_below_zero(columns: Iterable[FloatArray]) -> Interval:
    """Count the columns whose mean over crowds is certainly below zero (95 % for all columns together)."""
    columns = list(columns)
    count = float(sum(mean(column, confidence=1 - 0.05 / len(columns)).high < 0 for column in columns))
    return Interval(count, count, count)


def steps_down(found: Iterable[Curve]) -> Interval:
    """Count the steps of curves from one point to the next that certainly go down."""
    return certainly_below_zero(step for curve in found for step in np.diff(curve.values, axis=1).T)


def advantage(first: Iterable[Curve], second: Iterable[Curve]) -> Interval:
    """Return how much higher one set of curves lies than another on the same crowds, averaged over the axis."""
    return mean(joined(a.overall - b.overall for a, b in zip(first, second, strict=True)))


def between(
    results: Results, first: Sequence[Experiment], second: Sequence[Experiment], series: str, measure: str
) -> Interval:
    """Return how much higher a series lies in some experiments than in others with other crowds, over the axis."""
    values = [joined(c.overall for c in curves(results, group, series, measure)) for group in (first, second)]
    return difference(*values)


@dataclass(frozen=True)
class JudgedResults:
    """Results judged by one or more truths, and measurements that claims share: one part per series and truth."""

    results: Results
    truths: tuple[str, ...]

    def rises(
        self, words: str, series: Iterable[str], where: Sequence[Experiment], above: float = 0, below: float = math.inf
    ) -> tuple[ClaimPart, ...]:
        """Measure how much higher series end than they begin."""
        return self.parts(words, series, lambda s, t: rise(curves(self.results, where, s, t)), above, below)

    def higher(
        self,
        words: str,
        series: Iterable[str],
        first: Sequence[Experiment],
        second: Sequence[Experiment],
        above: float = 0,
        below: float = math.inf,
    ) -> tuple[ClaimPart, ...]:
        """Measure how much higher series lie in the first experiments than in the second, which have other crowds."""
        return self.parts(words, series, lambda s, t: between(self.results, first, second, s, t), above, below)

    def leads(
        self, words: str, series: Iterable[str], where: Sequence[Experiment], other: str, above: float = 0
    ) -> tuple[ClaimPart, ...]:
        """Measure how much higher series lie than another one on the same crowds."""
        return self.parts(words, series, lambda s, t: self._lead(where, s, other, t), above)

    def trails(
        self, words: str, series: Iterable[str], where: Sequence[Experiment], other: str, above: float = 0
    ) -> tuple[ClaimPart, ...]:
        """Measure how much lower series lie than another one on the same crowds."""
        return self.parts(words, series, lambda s, t: self._lead(where, other, s, t), above)

    def parts(
        self,
        words: str,
        series: Iterable[str],
        measured: Callable[[str, str], Interval],
        above: float = -math.inf,
        below: float = math.inf,
    ) -> tuple[ClaimPart, ...]:
        """Measure any quantity of series by every truth."""
        return parts(words, series, self.truths, measured, above, below)

    def _lead(self, where: Sequence[Experiment], first: str, second: str, truth: str) -> Interval:
        return advantage(curves(self.results, where, first, truth), curves(self.results, where, second, truth))
