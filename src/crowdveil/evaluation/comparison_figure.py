"""The figure of a comparison: accuracy against epsilon."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes

from crowdveil.evaluation.comparison import Comparison
from crowdveil.evaluation.comparison_runs import ComparisonEntry
from crowdveil.evaluation.toolkit.plotting import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, bare
from crowdveil.figure import Plot
from crowdveil.privacy.guarantee import Paradigm, Place, Unit

_COLUMNS = 3
_PROTECTS = {Unit.VOTER: "voters", Unit.RECORD: "records", Unit.CHOICE: "choices"}
_TRUSTS = {Place.CENTRAL: "trusted aggregator", Place.DISTRIBUTED: "nobody trusted"}
_COLOURS = {"paper": ORANGE, "recommended": BLUE}
_OTHERS = (GREEN, PURPLE, "#e69f00", SKY, GREY)


def comparison_figure(comparison: Comparison) -> Plot:
    """Draw one panel per paradigm: accuracy against epsilon, with a line for no privacy."""
    paradigms = comparison.request.paradigms
    columns = min(_COLUMNS, len(paradigms))
    rows = math.ceil(len(paradigms) / columns)
    figure = Plot(figsize=(4.2 * columns, 3.0 * rows + 0.4), layout="constrained")
    places = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for axes, paradigm in zip(places.flat, paradigms, strict=False):
        _panel(axes, comparison, paradigm)
    for axes in places.flat[len(paradigms) :]:
        axes.set_visible(False)
    for axes in places[:, 0]:
        axes.set_ylabel(
            "accuracy" if comparison.request.population.quality == "accuracy" else "held-out choices predicted"
        )
    for column in places.T:
        column[max(i for i, axes in enumerate(column) if axes.get_visible())].set_xlabel("epsilon")
    return figure


def _panel(axes: Axes, comparison: Comparison, paradigm: Paradigm) -> None:
    words = f"{_PROTECTS[paradigm.unit]} protected, {_TRUSTS[paradigm.place]}"
    axes.set_title(f"{paradigm.name.upper()}: {words}", loc="left", fontsize=9)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    bare(axes)
    base, other = comparison.request.population.baselines
    for entry, dash in ((base, "--"), (other, ":")):
        height = comparison.quality(entry).estimate
        axes.axhline(height, color="#444444", linewidth=1, linestyle=dash, label=f"no privacy ({entry.mechanism})")
    others = iter(_OTHERS * 2)
    for choice, entries in comparison.curves(paradigm).items():
        _line(axes, comparison, entries, choice, _COLOURS.get(choice) or next(others))
    axes.legend(fontsize=7, frameon=False, loc="best")


def _line(axes: Axes, comparison: Comparison, entries: list[ComparisonEntry], choice: str, colour: str) -> None:
    points = np.array([entry.value for entry in entries])
    found = [comparison.quality(entry) for entry in entries]
    names = dict.fromkeys(entry.mechanism for entry in entries)
    label = f"{choice}: {', '.join(names)}" if choice in _COLOURS else choice
    axes.fill_between(points, [i.low for i in found], [i.high for i in found], color=colour, alpha=0.18, linewidth=0)
    axes.plot(points, [i.estimate for i in found], color=colour, marker="o", markersize=3, linewidth=1.4, label=label)
