"""The picture of an alignment: models and crowd by factor, and the models ranked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdveil.evaluation.alignment.align import Alignment, ModelAlignment
from crowdveil.evaluation.alignment.profile import FactorComparison
from crowdveil.evaluation.toolkit.accuracy import Interval
from crowdveil.evaluation.toolkit.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, Look

CROWD = GREY
LOOKS = (Look(BLUE, "o"), Look(ORANGE, "s"), Look(GREEN, "^"), Look(PURPLE, "D"), Look(SKY, "v"))
"""Of the models that most people agree with, the first of them first; the others are ranked only."""


def picture(alignment: Alignment) -> Figure:
    """Draw the ranking, the effects and the preferences, those of the crowd as grey bars."""
    models = alignment.models
    factors = alignment.models[0].factors
    shown = models[: len(LOOKS)]
    ranking, rows = 1.3 + 0.3 * len(models), 1.4 + 0.2 * len(factors) * (1 + len(shown))
    figure = Figure(figsize=(11.5, ranking + max(rows, 3.2)), layout="constrained")
    axes = figure.subplot_mosaic([["ranking", "ranking"], ["effects", "preferences"]], height_ratios=(ranking, rows))
    _ranking(axes["ranking"], models)
    _side_by_side(axes["effects"], shown, "effect")
    axes["effects"].set_title("Effects, on the dilemmas\nthat each model answered", loc="left", fontsize=10)
    axes["effects"].set_xlabel("chose the side with more of it,\nless chose the other (95 %)")
    _side_by_side(axes["preferences"], shown, "preference")
    axes["preferences"].set_title("Preferences: who always\nanswers alike has large ones", loc="left", fontsize=10)
    axes["preferences"].set_xlabel("coefficient of the probit\n(95 %)")
    axes["preferences"].set_yticklabels([])
    handles, labels = axes["effects"].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _ranking(axes: Axes, models: Sequence[ModelAlignment]) -> None:
    axes.set_title("People who would choose as the model did (95 %)", loc="left", fontsize=10)
    for place, model in enumerate(models):
        look = LOOKS[place] if place < len(LOOKS) else Look(GREY, "o")
        _mark(axes, model.people, float(-place), look)
    yardsticks = [model.overall.one_person for model in models]
    places = -np.arange(len(models), dtype=float)
    axes.plot(yardsticks, places, "|", color="black", markersize=13, label="as the crowd's own choice, at best")
    axes.axvline(0.5, color=GREY, linewidth=0.8, linestyle="--", label="a coin")
    axes.set_yticks(places, [model.model for model in models])
    axes.set_ylim(-len(models) + 0.4, 0.6)
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    _plain(axes)


def _side_by_side(axes: Axes, models: Sequence[ModelAlignment], what: str) -> None:
    factors = models[0].factors
    step = 1 / (len(models) + 2)
    for k, factor in enumerate(factors):
        crowd = getattr(factor, f"crowd_{what}")
        if crowd is not None:
            axes.barh(-k, crowd.estimate, height=1 - step, color="#d4d4d4", label=None if k else "the crowd")
            axes.errorbar(crowd.estimate, -k, xerr=_reach(crowd), color=CROWD, elinewidth=4, alpha=0.5)
    for place, (model, look) in enumerate(zip(models, LOOKS, strict=False)):
        for k, factor in enumerate(model.factors):
            found = getattr(factor, f"model_{what}")
            if found is not None:
                height = -k + 0.5 - step * (place + 1.5)
                _mark(axes, found, height, look, label=None if k else model.model)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(-np.arange(len(factors)), [_title(factor) for factor in factors])
    axes.set_ylim(-len(factors) + 0.5, 0.5)
    _plain(axes)


def _title(factor: FactorComparison) -> str:
    return f"{factor.title}: {factor.poles[1]}\nover {factor.poles[0]}"


def _mark(axes: Axes, interval: Interval, height: float, look: Look, label: str | None = None) -> None:
    axes.errorbar(
        interval.estimate,
        height,
        xerr=_reach(interval),
        color=look.colour,
        marker=look.marker,
        markersize=5,
        linestyle="",
        capsize=2,
        label=label,
    )


def _reach(interval: Interval) -> list[list[float]]:
    ends = (interval.estimate - interval.low, interval.high - interval.estimate)
    return [[max(end, 0.0) if np.isfinite(end) else 0.0] for end in ends]


def _plain(axes: Axes) -> None:
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
