"""The picture of an evaluation: is what is stated true, and do the error bars cover the exact values?"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdveil.evaluation.scorecard.evaluate import Evaluation
from crowdveil.evaluation.toolkit.drawing import BLUE, GREY, ORANGE


def picture(evaluation: Evaluation) -> Figure:
    """Draw the calibration curve beside the factors' error bars and exact values."""
    height = max(3.8, 1.2 + 0.28 * len(evaluation.factors))
    figure = Figure(figsize=(9.6, height), layout="constrained")
    left, right = figure.subplots(1, 2)
    _calibration(left, evaluation)
    _bars(right, evaluation)
    return figure


def _calibration(axes: Axes, evaluation: Evaluation) -> None:
    slope = evaluation.released.slope
    shown = "" if slope is None else f", slope {slope.estimate:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
    axes.set_title(f"Calibration{shown}", loc="left", fontsize=10)
    axes.plot([0.5, 1], [0.5, 1], color=GREY, linewidth=1, linestyle="--", label="honest")
    stated = np.array([point.stated for point in evaluation.curve])
    right = [point.right for point in evaluation.curve]
    estimates = np.array([share.estimate for share in right])
    reach = np.abs(np.array([(share.low, share.high) for share in right]).T - estimates)
    axes.errorbar(stated, estimates, yerr=reach, color=BLUE, marker="o", capsize=3, linewidth=1.4, label="release")
    axes.set(xlabel="stated probability", ylabel="share that chose so (95 % interval)", xlim=(0.48, 1.02))
    axes.set_ylim(min(0.48, float(estimates.min() - reach[0].max()) - 0.02), 1.02)
    axes.legend(frameon=False, loc="upper left")
    _plain(axes)


def _bars(axes: Axes, evaluation: Evaluation) -> None:
    inside, of = evaluation.factor_coverage
    axes.set_title(f"Error bars cover {inside} of {of} exact values", loc="left", fontsize=10)
    rows = [factor.coverage for factor in evaluation.factors]
    places = np.arange(len(rows))[::-1]
    axes.errorbar(
        [row.released for row in rows],
        places,
        xerr=[row.bar for row in rows],
        color=BLUE,
        fmt="o",
        capsize=3,
        label="release, 95 % bar",
    )
    known = [(row.exact, place) for row, place in zip(rows, places, strict=True) if row.exact is not None]
    if known:
        axes.plot(*zip(*known, strict=True), "D", color=ORANGE, markersize=5, label="exact", zorder=3)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(places, [row.title for row in rows])
    axes.set_xlabel("preference")
    axes.legend(frameon=False, fontsize=8)
    _plain(axes)


def _plain(axes: Axes) -> None:
    axes.grid(color="#e4e4e4", linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)
