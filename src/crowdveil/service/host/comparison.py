"""Two releases side by side: what moved by more than noise can."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from crowdveil.errors import CrowdveilError
from crowdveil.pages.reading import one_line
from crowdveil.releases import Release

WIDTH, HEIGHT, MARGIN = 240.0, 28.0, 6.0


@dataclass(frozen=True)
class Compared:
    """One feature in two releases."""

    label: str
    first: float
    first_bar: float
    second: float
    second_bar: float
    picture: Markup

    @property
    def change(self) -> float:
        """From the first to the second."""
        return self.second - self.first

    @property
    def moved(self) -> bool:
        """Whether the error bars are apart: the change is larger than both noises together.

        Each error bar holds with 95 % probability, so both do with 90 % or more, whether or not the two noises have
        something in common.
        """
        return abs(self.change) > self.first_bar + self.second_bar


def compared(first: Release, second: Release) -> list[Compared]:
    """Compare two releases of one study, the largest change first."""
    if first.study.fingerprint != second.study.fingerprint:
        raise CrowdveilError("these two releases are of different studies, which have nothing to compare")
    rows = list(
        zip(
            (one_line(feature.label) for feature in first.study.features),
            first.parameter.tolist(),
            first.error_bars.tolist(),
            second.parameter.tolist(),
            second.error_bars.tolist(),
            strict=True,
        )
    )
    ends = [
        value + sign * bar
        for _, a, a_bar, b, b_bar in rows
        for value, bar in ((a, a_bar), (b, b_bar))
        for sign in (-1, 1)
    ]
    low, high = min(0.0, *ends), max(0.0, *ends)
    scale = (WIDTH - 2 * MARGIN) / (high - low or 1.0)
    made = [Compared(*row, _picture(row[1:], low, scale)) for row in rows]
    return sorted(made, key=lambda row: -abs(row.change))


def _picture(values: tuple[float, float, float, float], low: float, scale: float) -> Markup:
    """Draw both error bars over one another, on the scale that all rows share. The numbers stand beside it."""

    def at(value: float) -> float:
        return MARGIN + (value - low) * scale

    first, first_bar, second, second_bar = values
    bars = "".join(
        f'<line class="{kind}" x1="{at(value - bar):.1f}" x2="{at(value + bar):.1f}" y1="{y}" y2="{y}"/>'
        f'<circle class="{kind}" cx="{at(value):.1f}" cy="{y}" r="4"/>'
        for kind, value, bar, y in (("first", first, first_bar, 9), ("second", second, second_bar, 19))
    )
    zero = f'<line class="zero" x1="{at(0):.1f}" x2="{at(0):.1f}" y1="0" y2="{HEIGHT:g}"/>'
    return Markup(f'<svg class="pair" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" aria-hidden="true">{zero}{bars}</svg>')
