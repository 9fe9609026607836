"""Figures: their content, as data, and how it is drawn. The same numbers give the same file."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdveil.arrays import FloatArray
from crowdveil.evaluation.toolkit.scores import Interval, half_width, ratio
from crowdveil.evaluation.toolkit.sweep import Curve, Experiment, Results


@dataclass(frozen=True)
class LineStyle:
    """The style of a line: colours after Okabe and Ito, also distinguished by marker and dash."""

    colour: str
    marker: str
    dash: str = "-"


BLUE, ORANGE, GREEN, PURPLE, SKY, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#666666"
STEPS = (LineStyle(SKY, "o"), LineStyle(BLUE, "s"), LineStyle(GREEN, "^"), LineStyle(ORANGE, "D"))
"""Styles for lines that differ by a number, from the smallest to the largest."""


@dataclass(frozen=True)
class Line:
    """A curve ready to draw."""

    label: str
    style: LineStyle
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
    """A horizontal line for comparison."""
    marks: tuple[tuple[float, float], ...] = ()
    """Points that the paper names."""


@dataclass(frozen=True)
class FigurePlan:
    """One figure of the reproduction."""

    name: str
    title: str
    paper: str
    """The corresponding figure of the paper, or that it is not in the paper."""
    columns: int
    experiments: tuple[Experiment, ...]
    panels: Callable[[Results], list[Panel]]
    beside_the_paper: str
    """The paper's words about its figure, and where this one differs."""


def line(label: str, style: LineStyle, curve: Curve) -> Line:
    """Average a curve over its crowds."""
    means = curve.values.mean(axis=0)
    halves = half_width(curve.values)
    intervals = tuple(Interval(float(m), float(m - h), float(m + h)) for m, h in zip(means, halves, strict=True))
    return Line(label, style, curve.points, intervals, len(curve.values))


def ratio_line(label: str, style: LineStyle, curve: Curve, baseline: FloatArray) -> Line:
    """Divide a curve's mean by that of a baseline on the same crowds."""
    intervals = tuple(ratio(values, baseline) for values in curve.values.T)
    return Line(label, style, curve.points, intervals, len(curve.values))


def numbers(panels: Sequence[Panel]) -> pl.DataFrame:
    """Return everything that a figure shows, one row per point."""
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


# matplotlib declares a literal type for the keys of its settings.
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.hashsalt": "crowdveil",
    "svg.fonttype": "none",
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
}
_NOTHING = dict.fromkeys(("Date", "Creator"))


def draw(panels: Sequence[Panel], columns: int) -> Figure:
    """Draw panels of the same lines row by row, above one legend; the same quantity has the same axis everywhere."""
    rows = math.ceil(len(panels) / columns)
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(4.1 * columns + 0.2, 2.7 * rows + 0.7), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flat
        for place, panel in zip(axes, panels, strict=True):
            _draw_panel(place, panel)
            place.set_ylim(_limits([other for other in panels if other.y_label == panel.y_label]))
        handles, labels = figure.axes[0].get_legend_handles_labels()
        beside = len(labels) if sum(map(len, labels)) < 45 * columns else columns
        figure.legend(handles, labels, loc="outside lower center", ncols=beside)
    return figure


def png(figure: Figure, dpi: int = 150) -> bytes:
    """Return the figure as a PNG file."""
    buffer = io.BytesIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()


def svg(figure: Figure) -> str:
    """Return the figure as an SVG file, in which text stays text."""
    buffer = io.StringIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(buffer, format="svg", metadata=_NOTHING)
    return buffer.getvalue()


def bare(axes: Axes, grid: Literal["both", "x"] = "both") -> None:
    """Remove the frame, and draw a light grid behind everything."""
    axes.grid(axis=grid, color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_panel(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, loc="left")
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label)
    if panel.log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    if panel.level is not None:
        label, height = panel.level
        axes.axhline(height, color="#444444", linewidth=1, linestyle=(0, (6, 2)), label=label)
    for x, y in panel.marks:
        axes.plot([x], [y], marker="*", markersize=13, color="#e69f00", markeredgecolor="black", linestyle="", zorder=5)
    for one in panel.lines:
        _draw_line(axes, one)


def _limits(panels: Sequence[Panel]) -> tuple[float, float]:
    """Return the limits of an axis that fits all these panels, rounded outward to twentieths."""
    drawn = [(i.low, i.high) for panel in panels for one in panel.lines for i in one.intervals]
    ends = [end for pair in drawn for end in pair if math.isfinite(end)]
    ends += [i.estimate for panel in panels for one in panel.lines for i in one.intervals]
    return math.floor(20 * min(ends)) / 20, math.ceil(20 * max(ends)) / 20


def _draw_line(axes: Axes, one: Line) -> None:
    low, high = (np.array([getattr(i, end) for i in one.intervals]) for end in ("low", "high"))
    if np.isfinite(low).all():
        axes.fill_between(one.points, low, high, color=one.style.colour, alpha=0.18, linewidth=0)
    axes.plot(
        one.points,
        [i.estimate for i in one.intervals],
        color=one.style.colour,
        marker=one.style.marker,
        linestyle=one.style.dash,
        label=one.label,
    )
