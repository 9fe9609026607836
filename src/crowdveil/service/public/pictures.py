"""Pictures of a result: tracks for the page, and one picture to download or show elsewhere (SVG, PNG)."""

from __future__ import annotations

import io
import textwrap
import threading
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from crowdveil.effect_release import Effects
from crowdveil.pages.markup import INK, LESS, MORE, MUTED, PAPER, RULE
from crowdveil.protocol.voters_page import PREVIEW
from crowdveil.service.public.result import FactorLeaning, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RAIL = 160
"""Length of a track on the page, in the picture's own units."""
MOST_PREVIEWED = 9
_ONE_AT_A_TIME = threading.Lock()
"""Lock for drawing, because all threads share Matplotlib's fonts."""


def track(leaning: FactorLeaning, direction: str) -> Markup:
    """Draw a leaning in one factor: the rail from pole to pole, the range left open, and the best estimate."""
    return Markup(
        f'<svg class="track" viewBox="-4 0 {RAIL + 8} 14" aria-hidden="true" focusable="false">'
        f"{_track(leaning, direction)}</svg>"
    )


def _track(leaning: FactorLeaning, direction: str) -> str:
    low, high, at = (RAIL * place for place in _places(leaning, direction))
    rail = f'<path class="rail" d="M0 7H{RAIL}"/><path class="middle" d="M{RAIL / 2:g} 2V12"/>'
    if not leaning.known:
        return rail
    kind = "clear" if leaning.clear else "open"
    band = f'<rect class="band {kind}" x="{low:.1f}" y="4.5" width="{max(high - low, 0.5):.1f}" height="5" rx="2.5"/>'
    return f'{rail}{band}<circle class="dot {kind}" cx="{at:.1f}" cy="7" r="3.2"/>'


def svg_picture(result: Result, direction: str, foot: str) -> str:
    """Draw all leanings as one self-contained file, in the page's language."""
    width = 720
    row = 62
    top = 96
    height = top + row * len(result.leanings) + 40
    start, end = (24, width - 24) if direction == "ltr" else (width - 24, 24)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'direction="{direction}" font-family="system-ui, sans-serif" role="img" aria-label="{escape(result.title)}">'
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>'
        f'<text x="{start}" y="40" font-size="24" font-weight="600" fill="{INK}">{escape(result.title)}</text>'
        f'<text x="{start}" y="68" font-size="16" fill="{MUTED}">{escape(_cut(result.question, 84))}</text>'
    ]
    for place, leaning in enumerate(result.leanings):
        y = top + place * row
        parts.append(
            f'<text x="{start}" y="{y + 14}" font-size="14" fill="{INK}">{escape(_cut(leaning.less, 44))}</text>'
            f'<text x="{end}" y="{y + 14}" font-size="14" text-anchor="end" fill="{INK}">'
            f"{escape(_cut(leaning.more, 44))}</text>"
            f'<g transform="translate(24 {y + 14}) scale({(width - 48) / 100} 2)">'
            f"{_plain_track(leaning, direction)}</g>"
        )
    parts.append(
        f'<text x="24" y="{height - 16}" font-size="12" direction="ltr" fill="{MUTED}">{escape(foot)}</text></svg>'
    )
    return "".join(parts)


def _places(leaning: FactorLeaning, direction: str) -> tuple[float, float, float]:
    """Return the ends of the band and the dot, from the left."""
    if direction == "ltr":
        return leaning.low, leaning.high, leaning.at
    return 1 - leaning.high, 1 - leaning.low, 1 - leaning.at


def _plain_track(leaning: FactorLeaning, direction: str) -> str:
    """Draw a track with its colours included, in hundredths of the rail; the caller doubles its height."""
    low, high, middle = (100 * place for place in _places(leaning, direction))
    colour = MORE if leaning.clear else MUTED
    rail = (
        f'<path d="M0 10H100" stroke="{RULE}" stroke-width="1"/><path d="M50 6V14" stroke="{MUTED}" stroke-width=".2"/>'
    )
    if not leaning.known:
        return rail
    return (
        f'{rail}<rect x="{low:.1f}" y="7.5" width="{max(high - low, 0.3):.1f}" height="5" '
        f'fill="{colour}" opacity=".3"/>'
        f'<ellipse cx="{middle:.1f}" cy="10" rx="1.1" ry="3.6" fill="{colour}"/>'
    )


def png_picture(result: Result, voters: str, foot: str) -> bytes:
    """Draw the clearest leanings, at the size that other websites show.

    It uses matplotlib's own font, which has no Arabic or Chinese characters. So this picture uses the study's own
    words, and leaves out a line with characters that the font lacks.
    """
    rows = result.leanings[:MOST_PREVIEWED]
    figure, axes = _empty_picture()

    def write(x: float, y: float, said: str, size: float, colour: str = INK, **more: Any) -> None:
        if _has_letters(said):
            axes.text(x, y, said, fontsize=size, color=colour, va="center", parse_math=False, **more)

    title, *rest = textwrap.wrap(result.title, 52) or [""]
    write(60, 62, title + ("…" if rest else ""), 24, weight="bold")
    write(60, 108, _cut(result.question, 96), 13, MUTED)
    step = (PREVIEW[1] - 210) / max(len(rows), 1)
    for place, row in enumerate(rows):
        y = 160 + (place + 0.5) * step
        colour = MORE if row.clear else MUTED
        write(400, y, _cut(row.less, 40), 12, ha="right")
        write(800, y, _cut(row.more, 40), 12)
        axes.plot([420, 780], [y, y], color=RULE, linewidth=6, solid_capstyle="round")
        axes.plot([600, 600], [y - 12, y + 12], color=MUTED, linewidth=1)
        if row.known:
            axes.plot(
                [420 + 360 * row.low, 420 + 360 * row.high],
                [y, y],
                color=colour,
                linewidth=9,
                alpha=0.35,
                solid_capstyle="butt",
            )
            axes.plot([420 + 360 * row.at], [y], "o", markersize=13, color=colour)
    write(60, PREVIEW[1] - 30, voters, 13, MUTED)
    write(PREVIEW[0] - 60, PREVIEW[1] - 30, foot, 13, MUTED, ha="right")
    return _png(figure)


def effects_picture(effects: Effects, suffix: str) -> bytes:
    """Draw effects between their poles, groups side by side, in the study's own words, as a file with this suffix."""
    from crowdveil.pages.effects_page import draw_effects

    with _ONE_AT_A_TIME:
        return draw_effects(effects, suffix)


@lru_cache(maxsize=256)
def invitation_picture(title: str, question: str) -> bytes:
    """Draw a poll's title and question and two diverging paths, at the size that other websites show."""
    figure, axes = _empty_picture()
    for x, letter, colour in ((420, "A", MORE), (780, "B", LESS)):
        axes.plot([600, x], [640, 470], color=RULE, linewidth=14, solid_capstyle="round", zorder=1)
        axes.plot([x], [470], "o", markersize=84, color=colour, zorder=2)
        axes.text(x, 470, letter, fontsize=34, color=PAPER, ha="center", va="center", weight="bold", zorder=3)
    lines = [(line, 34, INK, "bold") for line in textwrap.wrap(title, 40)[:2]]
    lines += [(line, 20, MUTED, "normal") for line in textwrap.wrap(question, 68)[:3]]
    y = 130.0
    for said, size, colour, weight in lines:
        if _has_letters(said):
            style: dict[str, Any] = {
                "fontsize": size,
                "color": colour,
                "weight": weight,
                "ha": "center",
                "va": "center",
            }
            axes.text(600, y, said, parse_math=False, **style)
        y += 2.05 * size
    axes.text(PREVIEW[0] - 60, PREVIEW[1] - 30, "crowdveil", fontsize=15, color=MUTED, ha="right", va="center")
    return _png(figure)


def _empty_picture() -> tuple[Figure, Axes]:
    """Return an empty picture of the size that other websites show, with its origin in the upper left corner."""
    from matplotlib.figure import Figure  # loaded for the first picture, so that a server starts faster

    figure = Figure(figsize=(PREVIEW[0] / 100, PREVIEW[1] / 100), dpi=100, facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, PREVIEW[0]), ylim=(PREVIEW[1], 0))
    axes.axis("off")
    return figure, axes


def _png(figure: Figure) -> bytes:
    drawn = io.BytesIO()
    with _ONE_AT_A_TIME:
        figure.savefig(drawn, format="png", metadata={"Software": None})
    return drawn.getvalue()


def _has_letters(said: str) -> bool:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    with _ONE_AT_A_TIME:
        known = get_font(findfont(FontProperties())).get_charmap()
    return all(ord(character) in known for character in said)


def _cut(said: str, most: int) -> str:
    return said if len(said) <= most else said[: most - 1].rstrip() + "…"
