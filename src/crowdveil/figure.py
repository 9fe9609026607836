"""Figures that a notebook shows by itself, and that are written to a file whole or not at all."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from os import PathLike
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from crowdveil.errors import path_of
from crowdveil.files import check_picture, replacing

_SETTINGS: dict[Any, Any] = {"svg.hashsalt": "crowdveil", "svg.fonttype": "none"}
"""The same figure gives the same SVG, in which text stays text."""
_NO_GLYPH = re.compile(r"Glyph (\d+) ")
"""The beginning of what matplotlib says of a character that its fonts do not have."""


class Plot(Figure):
    """A figure of matplotlib that no window holds open."""

    def _repr_png_(self) -> bytes:
        return self.content(".png")

    def content(self, suffix: str) -> bytes:
        """Return the content of a file with this suffix, .png or .svg; warn of characters that are drawn as boxes."""
        buffer = io.BytesIO()
        unsaid = dict.fromkeys(("Date", "Creator") if suffix == ".svg" else ("Software",))
        with mpl.rc_context(_SETTINGS), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.savefig(buffer, format=suffix[1:], dpi=150, metadata=unsaid, facecolor="white")
        boxes: dict[str, None] = {}
        for one in caught:
            found = _NO_GLYPH.match(str(one.message))
            if found is None:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
            else:
                boxes[chr(int(found[1]))] = None
        if boxes and suffix != ".svg":
            warnings.warn(
                f"no font of matplotlib has {''.join(boxes)}: boxes are drawn in their place; write an .svg, whose "
                "text browsers show in fonts of their own",
                stacklevel=2,
            )
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
