"""What a figure shows, as data: panels of lines with their 95 % bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from crowdveil.arrays import FloatArray
from crowdveil.evaluation.paper.across_epsilons import ALGORITHM_1, ALGORITHM_2, NO_PRIVACY, AcrossEpsilons
from crowdveil.evaluation.paper.curves import CUT, PRINTED, RAW_PRINTED, RAW_REPAIRED, REPAIRED
from crowdveil.evaluation.paper.experiment import Experiment
from crowdveil.evaluation.paper.intervals import Interval, half_width, ratio
from crowdveil.evaluation.paper.results import Curve, Results


@dataclass(frozen=True)
class Look:
    """How a line is drawn: colours after Okabe and Ito, told apart by marker and dash too."""

    colour: str
    marker: str
    dash: str = "-"


BLUE, ORANGE, GREEN, PURPLE, SKY, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#666666"
STEPS = (Look(SKY, "o"), Look(BLUE, "s"), Look(GREEN, "^"), Look(ORANGE, "D"))
"""For lines that differ by a number, from the smallest to the largest."""
ALGORITHM_LOOKS = {
    ALGORITHM_1: Look(BLUE, "o"),
    ALGORITHM_2: Look(ORANGE, "s"),
    PRINTED.name: Look(PURPLE, "v"),
    REPAIRED.name: Look(GREEN, "^"),
    CUT.name: Look(SKY, "D"),
    RAW_PRINTED.name: Look(GREY, "x", ":"),
    RAW_REPAIRED.name: Look(GREY, "+", "--"),
}
SHORT = {
    ALGORITHM_1: "Algorithm 1",
    ALGORITHM_2: "Algorithm 2",
    PRINTED.name: "Algorithm 3, as printed",
    REPAIRED.name: "Algorithm 3, repaired",
    CUT.name: "Algorithm 3, repaired, records cut",
    RAW_PRINTED.name: "NOT PRIVATE: 3 as printed, unscaled",
    RAW_REPAIRED.name: "NOT PRIVATE: 3 repaired, unscaled",
}
SERIES = tuple(SHORT)
THIRD = (PRINTED.name, REPAIRED.name, CUT.name, RAW_REPAIRED.name)
"""The readings of Algorithm 3 that a figure shows; the last protects nobody."""
EPSILON = "privacy parameter ε"


@dataclass(frozen=True)
class Line:
    """A curve ready to draw."""

    label: str
    look: Look
    points: tuple[float, ...]
    intervals: tuple[Interval, ...]
    crowds: int


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    log_x: bool = False
    level: tuple[str, float] | None = None
    """A horizontal line to compare with."""
    marks: tuple[tuple[float, float], ...] = ()
    """Points that the paper names."""


@dataclass(frozen=True)
class FigurePlan:
    """One figure of the reproduction."""

    name: str
    title: str
    paper: str
    """Which of the paper's figures it is, or that it is not in the paper."""
    columns: int
    experiments: tuple[Experiment, ...]
    panels: Callable[[Results], list[Panel]]
    beside_the_paper: str
    """What the paper says of its figure, and where this one differs."""


def line(label: str, look: Look, curve: Curve) -> Line:
    """Average a curve over its crowds."""
    means, halves = curve.values.mean(axis=0), half_width(curve.values)
    intervals = tuple(Interval(float(m), float(m - h), float(m + h)) for m, h in zip(means, halves, strict=True))
    return Line(label, look, curve.points, intervals, len(curve.values))


def ratio_line(label: str, look: Look, curve: Curve, baseline: FloatArray) -> Line:
    """Divide a curve's mean by that of a baseline on the same crowds."""
    intervals = tuple(ratio(values, baseline) for values in curve.values.T)
    return Line(label, look, curve.points, intervals, len(curve.values))


def all_series(results: Results, experiment: AcrossEpsilons, measure: str) -> tuple[Line, ...]:
    """Every algorithm on the same crowds."""
    return tuple(line(SHORT[one], ALGORITHM_LOOKS[one], results.curve(experiment, one, measure)) for one in SERIES)


def level(results: Results, experiment: AcrossEpsilons, measure: str) -> float:
    """What the same crowds reach without privacy."""
    return float(results.curve(experiment, NO_PRIVACY, measure).only.mean())


def numbers(panels: Sequence[Panel]) -> pl.DataFrame:
    """Return everything a figure shows, a row a point."""
    return pl.DataFrame(
        [
            {
                "panel": panel.title,
                "line": one.label,
                "x": point,
                "mean": interval.estimate,
                "low": interval.low,
                "high": interval.high,
                "crowds": one.crowds,
            }
            for panel in panels
            for one in panel.lines
            for point, interval in zip(one.points, one.intervals, strict=True)
        ]
    )
