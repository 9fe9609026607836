"""The pictures of a page, as SVG that takes its colours and its typeface from the page around it.

Matplotlib draws only geometry and never sees a word from a file. Such words are put into the finished SVG, so that a
label cannot be taken for a formula, lack a glyph or break the markup.
"""

from __future__ import annotations

import io
import re
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crowdveil.pages.feature_estimates import FeatureEstimate, PreferenceSign, signed
from crowdveil.pages.markup import INK, LESS, MORE, MUTED, PAPER, RULE

MOST_ROWS = 60
"""Most features in a forest plot; the table beside it always shows all."""

# The page's name for each colour.
_PAGE_COLOURS = {INK: "ink", MUTED: "muted", RULE: "rule", PAPER: "paper", MORE: "more", LESS: "less"}
_SIGN_COLOURS = {PreferenceSign.MORE: MORE, PreferenceSign.LESS: LESS, PreferenceSign.UNCLEAR: MUTED}

# Matplotlib's settings are global to the process.
FIGURE_SETTINGS = threading.Lock()


def forest_plot(estimates: Sequence[FeatureEstimate], *, key: str, title: str, description: str, narrow: bool) -> str:
    """Draw each feature's value with its error bar, in the given order; ``key`` must be unique on the page.

    The narrow version is for phones: labels are above the bars, and the letters are no smaller.
    """
    largest = sorted(range(len(estimates)), key=lambda i: -abs(estimates[i].value))[:MOST_ROWS]
    rows = [estimates[i] for i in sorted(largest)]
    labels = [cut(r.label, 41 if narrow else 32) for r in rows]
    row, width, right, top, bottom = (40, 300, 8, 34, 30) if narrow else (30, 620, 16, 34, 30)
    left = 8 if narrow else 24 + 6.6 * max(map(_columns, labels))
    height = top + bottom + row * len(rows)
    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    axes = _axes(figure, (left, bottom, width - left - right, row * len(rows)))
    low = min(0.0, *(min(r.value, r.ends[0]) for r in rows))
    high = max(0.0, *(max(r.value, r.ends[1]) for r in rows))
    low, high = (low, high) if low < high else (-1.0, 1.0)
    margin = 0.04 * (high - low)
    axes.set(xlim=(low - margin, high + margin), ylim=(len(rows) - 0.5, -0.5))
    words: dict[str, str] = {}
    for place, estimate in enumerate(rows):
        _draw_estimate(axes, place + (0.22 if narrow else 0), estimate)
        words[f"label-{place}"] = labels[place]
        axes.annotate(
            "-",
            (0, place),
            (0, 1) if narrow else (-12, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha="left" if narrow else "right",
            va="baseline" if narrow else "center_baseline",
            fontsize=13,
            color=MUTED if estimate.sign is PreferenceSign.UNCLEAR else INK,
            gid=f"label-{place}",
        )
    axes.axvline(0, color=INK, linewidth=1, zorder=1)
    axes.xaxis.set_major_locator(MaxNLocator(4 if narrow else 7, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(lambda x, _: "0" if abs(x) < 1e-12 else signed(x, 9).rstrip("0").rstrip("."))
    axes.tick_params(axis="x", length=0, labelsize=12, labelcolor=MUTED, pad=8)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    _say_directions(axes, width - left - right)
    return inline_svg(figure, key, title, description, words)


def guess_picture(marks: Sequence[tuple[float, str]], *, key: str, title: str, description: str) -> str:
    """Draw how certain somebody can become of an answer: from a coin toss to each mark, a probability and its words."""
    figure = Figure(figsize=(300 / 72, (66 + 18 * len(marks)) / 72), dpi=72)
    axes = _axes(figure, (4, 30, 292, 30))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.barh(0.5, 1, height=0.7, color=RULE)
    words: dict[str, str] = {}
    for place, (probability, said) in enumerate(marks):
        axes.barh(0.5, probability - 0.5, left=0.5, height=0.7, color=MORE, alpha=1 if len(marks) == 1 else 0.55)
        axes.plot([probability] * 2, [0.02, 0.98], color=MORE, linewidth=2.5, solid_capstyle="butt")
        words[f"mark-{place}"] = said
        axes.annotate(
            "-",
            (probability, 1),
            (0, 6 + 18 * place),
            textcoords="offset points",
            ha="right" if probability > 0.6 else "center",
            fontsize=13,
            color=MORE,
            annotation_clip=False,
            gid=f"mark-{place}",
        )
    axes.plot([0.5, 0.5], [0.02, 0.98], color=INK, linewidth=2, solid_capstyle="butt")
    axes.set_xticks([0, 0.5, 1], ["0%", "50%: a coin toss", "100%"])
    axes.tick_params(axis="x", length=0, labelsize=12, labelcolor=MUTED, pad=6)
    first, _, last = axes.get_xticklabels()
    first.set_horizontalalignment("left")
    last.set_horizontalalignment("right")
    return inline_svg(figure, key, title, description, words)


def _axes(figure: Figure, box: tuple[float, float, float, float]) -> Axes:
    """Add bare axes at a box in points: left, bottom, width, height."""
    width, height = figure.get_size_inches() * 72
    axes = figure.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
    figure.patch.set_visible(False)
    axes.patch.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.set_yticks([])
    axes.set_axisbelow(True)
    return axes


def _draw_estimate(axes: Axes, y: float, estimate: FeatureEstimate) -> None:
    """Draw one bar; one that reaches zero is thin, grey and hollow, so that it differs by more than its colour.

    A feature of which nothing is known is a cross.
    """
    if not estimate.known:
        axes.plot([estimate.value], [y], "x", markersize=6, markeredgecolor=MUTED, markeredgewidth=1.2, zorder=3)
        return
    colour = _SIGN_COLOURS[estimate.sign]
    unclear = estimate.sign is PreferenceSign.UNCLEAR
    axes.plot(
        estimate.ends, [y, y], color=colour, linewidth=1.2 if unclear else 3, alpha=0.8 if unclear else 0.55, zorder=2
    )
    axes.plot(
        [estimate.value],
        [y],
        "o",
        markersize=6 if unclear else 8,
        markerfacecolor=PAPER if unclear else colour,
        markeredgecolor=colour,
        markeredgewidth=1.2,
        zorder=3,
    )


def _say_directions(axes: Axes, width: float) -> None:
    low, high = axes.get_xlim()
    for long, short, room, side, offset in (
        ("← less is preferred", "← less", -low / (high - low) * width, "right", -8),
        ("more is preferred →", "more →", high / (high - low) * width, "left", 8),
    ):
        if room > 55:
            axes.annotate(
                long if room > 135 else short,
                (0, 1),
                (offset, 12),
                xycoords=axes.get_xaxis_transform(),
                textcoords="offset points",
                ha=side,
                fontsize=12,
                color=MUTED,
            )


def _columns(label: str) -> int:
    """Return the width of a text; wide characters, such as Chinese ones, take two columns."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in label)


def cut(label: str, columns: int) -> str:
    """Shorten a label to a number of columns."""
    if _columns(label) <= columns:
        return label
    while _columns(label) >= columns:
        label = label[:-1]
    return label.rstrip() + "…"


def inline_svg(figure: Figure, key: str, title: str, description: str, words: Mapping[str, str]) -> str:
    """Turn a figure into an SVG element for use inside a page, without names that clash or external addresses."""
    buffer = io.StringIO()
    with FIGURE_SETTINGS, mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": key}):
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing)
    drawn = ElementTree.fromstring(buffer.getvalue())
    for element in drawn.iter():
        element.tag = element.tag.partition("}")[2]
    viewbox = drawn.attrib["viewBox"]
    for place, said in words.items():
        text = drawn.find(f".//g[@id='{place}']//text")
        if text is None:
            raise RuntimeError(f"the figure {key} has no place for the words of {place}")
        text.text = said
    referred = set(re.findall(r"#([\w-]+)[\")]", buffer.getvalue()))
    for element in drawn.iter():
        _adapt(element, key, referred)
    svg = ElementTree.Element(
        "svg",
        {"viewBox": viewbox, "role": "img", "aria-labelledby": f"{key}-title", "aria-describedby": f"{key}-desc"},
    )
    ElementTree.SubElement(svg, "title", {"id": f"{key}-title"}).text = title
    ElementTree.SubElement(svg, "desc", {"id": f"{key}-desc"}).text = description
    # Matplotlib's own style sheet would apply to the whole page.
    svg.extend(child for child in drawn if child.find("style") is None)
    return ElementTree.tostring(svg, encoding="unicode")


def _adapt(element: ElementTree.Element, key: str, referred: set[str]) -> None:
    """Adapt one element of a drawing to the page."""
    for name, value in list(element.attrib.items()):
        del element.attrib[name]
        if name == "id":
            if value in referred:
                element.set("id", f"{key}-{value}")
        elif name.endswith("}href"):
            element.set("href", f"#{key}-{value[1:]}")
        elif name == "clip-path":
            element.set(name, value.replace("#", f"#{key}-"))
        elif name == "style":
            kept = (part for part in value.split("; ") if not part.startswith("font-family"))
            element.set(name, _PAINT.sub(_page_colour, "; ".join(kept)))
        elif not (name == "transform" and value.startswith("rotate(-0 ")):
            element.set(name, value)
    element.tail = None
    if element.tag != "text":
        element.text = None


_PAINT = re.compile("#[0-9a-f]{6}")


def _page_colour(match: re.Match[str]) -> str:
    return f"var(--{_PAGE_COLOURS[match[0]]}, {match[0]})" if match[0] in _PAGE_COLOURS else match[0]
