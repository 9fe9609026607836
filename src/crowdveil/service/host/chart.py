"""Pictures on the host's pages, as SVG: who took part, day by day, in the style sheet's colours; QR codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import segno
from markupsafe import Markup

MOST_DAYS = 60
WIDTHS = {"wide": 640.0, "narrow": 320.0}
"""The narrow one is for phones: it is not a smaller picture, its letters are as large."""
HEIGHT = 200.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 4.0, 12.0, 26.0
LABEL_WIDTH = 56.0


@dataclass(frozen=True)
class Day:
    """How many took part on a day, at each level in order."""

    day: date
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """All levels together."""
        return sum(self.counts)


def without_gaps(days: Sequence[Day]) -> list[Day]:
    """Add the days on which nobody came, and keep the last ones of many."""
    if not days:
        return []
    counted = {one.day: one for one in days}
    nobody = (0,) * len(days[0].counts)
    length = min((days[-1].day - days[0].day).days + 1, MOST_DAYS)
    every = (days[-1].day - timedelta(days=back) for back in reversed(range(length)))
    return [counted.get(day, Day(day, nobody)) for day in every]


def participation_chart(days: Sequence[Day], levels: Sequence[str]) -> Markup:
    """Draw a bar a day, the levels on top of each other, for wide and for narrow screens.

    The table beside it has the same numbers.
    """
    said = f"{sum(one.total for one in days):,} voters on {len(days)} days, by level of privacy: {', '.join(levels)}"
    return Markup("").join(
        Markup(
            '<div class="{0}"><svg class="chart" viewBox="0 0 {1:g} {2:g}" role="img" aria-labelledby="chart-{0}">'
        ).format(name, width, HEIGHT)
        + Markup('<title id="chart-{}">{}</title>').format(name, said)
        + Markup(_drawn(days, width))
        + Markup("</svg></div>")
        for name, width in WIDTHS.items()
    )


def _drawn(days: Sequence[Day], width: float) -> str:
    highest = nice_ceiling(max((one.total for one in days), default=0))
    step = (width - LEFT - RIGHT) / max(len(days), 1)
    bar = min(step * 0.8, 48.0)
    parts = [_scale(highest, width)]
    for place, one in enumerate(days):
        x, top = LEFT + (place + 0.5) * step - bar / 2, HEIGHT - BOTTOM
        for level, count in enumerate(one.counts):
            height = count / highest * (HEIGHT - TOP - BOTTOM)
            top -= height
            if count:
                shape = f'x="{x:.1f}" y="{top:.1f}" width="{bar:.1f}" height="{height:.1f}"'
                parts.append(f'<rect class="level-{level + 1}" {shape}/>')
    labels = labelled(len(days), most=int((width - LEFT - RIGHT) // LABEL_WIDTH))
    return "".join([*parts, *(_day_label(days[place].day, LEFT + (place + 0.5) * step) for place in labels)])


def nice_ceiling(largest: int) -> int:
    """Return the smallest of 4, 8, 10, 20, 40, 80, 100 ... that is not below a number: its quarters are easy to read.

    >>> [nice_ceiling(n) for n in (0, 4, 5, 11, 81, 801)]
    [4, 4, 8, 20, 100, 1000]
    """
    power = 1
    while True:
        for factor in (4, 8, 10, 20):
            if factor * power >= largest:
                return factor * power
        power *= 10


def labelled(days: int, most: int) -> list[int]:
    """Return the places of the days that get a label: the last, and others evenly apart, as many as there is room for.

    >>> labelled(3, 5), labelled(10, 4)
    ([0, 1, 2], [0, 3, 6, 9])
    """
    return list(range(days - 1, -1, -max(1, -(-days // most))))[::-1]


def _scale(highest: int, width: float) -> str:
    lines = []
    for quarter in (0, 2, 4):
        y = HEIGHT - BOTTOM - quarter / 4 * (HEIGHT - TOP - BOTTOM)
        lines.append(f'<line class="rule" x1="{LEFT:g}" x2="{width - RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text class="end" x="{LEFT - 8:g}" y="{y + 4:.1f}">{highest * quarter // 4:,}</text>')
    return "".join(lines)


def _day_label(day: date, x: float) -> str:
    return f'<text class="middle" x="{x:.1f}" y="{HEIGHT - 6:g}">{day.day} {day:%b}</text>'


def qr_code(text: str) -> Markup:
    """Draw a text as a QR code, black on white in any light."""
    return Markup(
        segno.make(text, error="m").svg_inline(border=4, dark="#000", light="#fff", svgclass="qr", omitsize=True)
    )
