"""Figures that a notebook shows by itself, and that are written to a file whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Callable
from os import PathLike
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from crowdveil.errors import path_of
from crowdveil.files import check_picture, replacing

_SETTINGS: dict[Any, Any] = {"svg.hashsalt": "crowdveil", "svg.fonttype": "none"}
"""The same figure gives the same SVG, in which text stays text."""


class Plot(Figure):
    """A figure of matplotlib that no window holds open."""

    def _repr_png_(self) -> bytes:
        return self.content(".png")

    def content(self, suffix: str) -> bytes:
        """Return the content of a file with this suffix, .png or .svg."""
        buffer = io.BytesIO()
        unsaid = dict.fromkeys(("Date", "Creator") if suffix == ".svg" else ("Software",))
        with mpl.rc_context(_SETTINGS):
            self.savefig(buffer, format=suffix[1:], dpi=150, metadata=unsaid, facecolor="white")
        return buffer.getvalue()


def plotted(draw: Callable[[], Plot], path: str | PathLike[str] | None) -> Plot:
    """Draw a figure, and write it to a .png or .svg file if a path is given."""
    if path is None:
        return draw()
    path = path_of(path, "the plot")
    check_picture(path)
    figure = draw()
    with replacing(path) as unfinished:
        unfinished.write_bytes(figure.content(path.suffix))
    return figure
