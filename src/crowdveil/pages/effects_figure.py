"""The picture of effects: factors between their two poles, the strongest at the top (Awad et al. 2018, Figure 2)."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crowdveil.effect_release import Effect, Effects
from crowdveil.pages.figures import FIGURE_SETTINGS, INK, LESS, MORE, MUTED, RULE, cut, inline_svg
from crowdveil.study.factors import Factor

COLOURS = (MORE, LESS, "#009e73", "#cc79a7", "#56b4e9", "#8c6d1f")
"""Of groups, after Okabe and Ito; a seventh group begins again."""
_WIDEST_POLE = 34


def draw_effects(effects: Effects, suffix: str) -> bytes:
    """Return the picture as a file with this suffix, .png or .svg."""
    buffer = io.BytesIO()
    with (
        FIGURE_SETTINGS,
        mpl.rc_context({"svg.hashsalt": "crowdveil", "svg.fonttype": "none", "text.parse_math": False}),
    ):
        nothing = dict.fromkeys(("Date", "Creator")) if suffix == ".svg" else None
        figure = _figure(effects, _Said(at_once=True))
        figure.savefig(buffer, format=suffix[1:], dpi=150, metadata=nothing, facecolor="white")
    return buffer.getvalue()


def effects_svg(effects: Effects, *, key: str, title: str, description: str) -> str:
    """Return the picture as an SVG element of a page; ``key`` must be unique on the page."""
    said = _Said(at_once=False)
    return inline_svg(_figure(effects, said), key, title, description, said.words)


class _Said:
    """The words of a picture: drawn at once, or put into the finished SVG, so that no word can break it."""

    def __init__(self, *, at_once: bool) -> None:
        self.words: dict[str, str] = {}
        self._at_once = at_once

    def __call__(self, axes: Axes, place: str, said: str, at: tuple[float, float], **style: Any) -> None:
        self.words[place] = said
        axes.annotate(said if self._at_once else "-", at, annotation_clip=False, gid=place, **style)


def _figure(effects: Effects, say: _Said) -> Figure:
    groups = effects.groups
    rows = _ordered(effects)
    tall = 18 + 11 * len(groups)
    head = 30 + (18 if len(groups) > 1 else 0)
    width = 720
    height = head + 46 + tall * len(rows)
    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    figure.patch.set_visible(False)
    side = 215
    axes = figure.add_axes((side / width, 46 / height, 1 - 2 * side / width, tall * len(rows) / height))
    axes.patch.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.set_yticks([])
    ends = [end for _, shown, _ in rows for one in shown if one.known for end in (one.low, one.high)]
    low = min([-0.05, *(e for e in ends)])
    high = max([0.05, *ends])
    axes.set(xlim=(low - 0.02, high + 0.02), ylim=(len(rows) - 0.5, -0.5))
    axes.axvline(0, color=INK, linewidth=1, zorder=1)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", length=0, labelsize=12, labelcolor=MUTED, pad=6)
    axes.xaxis.set_major_formatter(lambda x, _: "0" if abs(x) < 1e-9 else f"{x:+.1f}")
    for place, (factor, shown, turned) in enumerate(rows):
        for pole, at, align in ((factor.poles[turned], 0, "right"), (factor.poles[1 - turned], 1, "left")):
            offset = (-10, 0) if align == "right" else (10, 0)
            say(
                axes,
                f"pole-{place}-{at}",
                cut(pole, _WIDEST_POLE),
                (at, place),
                xytext=offset,
                xycoords=axes.get_yaxis_transform(),
                textcoords="offset points",
                ha=align,
                va="center_baseline",
                fontsize=12,
                color=INK,
            )
        _draw_row(axes, place, shown)
    say(
        axes,
        "axis",
        "preferred this side, less preferred the other (95 %)",
        (0.5, 0),
        xytext=(0, -40),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="center",
        fontsize=12,
        color=MUTED,
    )
    if len(groups) > 1:
        for place, group in enumerate(groups):
            say(
                axes,
                f"group-{place}",
                f"■ {cut(group.label, 24)}",
                ((place + 0.5) / len(groups), 1),
                xytext=(0, 14),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="center",
                fontsize=12,
                color=COLOURS[place % len(COLOURS)],
            )
    return figure


def _ordered(effects: Effects) -> list[tuple[Factor, list[Effect], bool]]:
    """Return the factors with the effects of all groups, the strongest first, turned to the side that was preferred."""
    rows = []
    for factor in effects.study.factors:
        shown = [effects.effect(factor.name, group.label) for group in effects.groups]
        known = [one.estimate for one in shown if one.known]
        mean = sum(known) / len(known) if known else 0.0
        turned = bool(mean < 0)
        rows.append((abs(mean) if known else -1.0, factor, [_turned(one) if turned else one for one in shown], turned))
    return [(factor, shown, turned) for _, factor, shown, turned in sorted(rows, key=lambda row: -row[0])]


def _turned(effect: Effect) -> Effect:
    ends = (-effect.estimate, effect.standard_error, -effect.high, -effect.low)
    return Effect(effect.factor, effect.contrast, *ends, effect.pairs, effect.known)


def _draw_row(axes: Axes, place: int, shown: Sequence[Effect]) -> None:
    """Draw a bar and its interval for each group; a cross where nothing is known."""
    height = 0.8 / len(shown)
    for k, effect in enumerate(shown):
        at = place - 0.4 + height * (k + 0.5)
        colour = COLOURS[k % len(COLOURS)]
        if effect.known:
            axes.barh(at, effect.estimate, height=0.8 * height, color=colour, alpha=0.55)
            axes.plot([effect.low, effect.high], [at, at], color=INK, linewidth=1.6, solid_capstyle="butt")
        else:
            axes.plot([0], [at], marker="x", color=MUTED)
