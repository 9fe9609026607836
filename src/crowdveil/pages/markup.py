"""HTML fragments. ``text`` is the only way for words from a file to get into a page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from crowdveil.pages.feature_estimates import one_line

# Colours of the light page, after Okabe and Ito: colour-blind readers can distinguish them.
INK, MUTED, RULE, PAPER = "#1d1d1b", "#66655f", "#dedad1", "#fffefb"
MORE, LESS = "#0067a3", "#b84a00"


def text(value: object) -> str:
    """Escape any words for use in a page, between tags or in a quoted attribute."""
    return html.escape(one_line(str(value)))


def paragraphs(sentences: Iterable[str], kind: str = "") -> str:
    """Return each text as its own paragraph."""
    opening = f'<p class="{kind}">' if kind else "<p>"
    return "\n".join(f"{opening}{text(sentence)}</p>" for sentence in sentences)


def bullets(sentences: Iterable[str]) -> str:
    """Return a list of texts; if a text has several sentences, the first is its headline."""
    return f'<ul class="promise">\n{chr(10).join(map(_bullet, sentences))}\n</ul>'


def _bullet(sentence: str) -> str:
    first, stop, rest = sentence.partition(". ")
    return f"<li><strong>{text(first)}.</strong> {text(rest)}</li>" if stop else f"<li>{text(sentence)}</li>"


def definitions(pairs: Iterable[tuple[str, str]], kind: str) -> str:
    """Return a list of terms (plain text) and their meanings (HTML)."""
    rows = "\n".join(f"<div><dt>{text(term)}</dt><dd>{meaning}</dd></div>" for term, meaning in pairs)
    return f'<dl class="{kind}">\n{rows}\n</dl>'


def code(value: object) -> str:
    """Return words in a code element."""
    return f"<code>{text(value)}</code>"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Return a table of HTML cells, the first of each row its heading; columns of numbers get the style of numbers."""
    kinds = [_kind(column) for column in zip(*rows, strict=True)] or [""] * len(heads)
    head = "".join(
        f'<th role="columnheader" scope="col"{kind}>{one}</th>' for one, kind in zip(heads, kinds, strict=True)
    )
    body = "\n".join(
        f'<tr role="row"><th role="rowheader" scope="row">{first}</th>'
        + "".join(f'<td role="cell"{kind}>{cell}</td>' for cell, kind in zip(rest, kinds[1:], strict=True))
        + "</tr>"
        for first, *rest in rows
    )
    return f"""<table class="factors" role="table">
<caption>{caption}</caption>
<thead role="rowgroup"><tr role="row">{head}</tr></thead>
<tbody role="rowgroup">
{body}
</tbody>
</table>"""


_NUMBER = re.compile(r"[+−-]?[\d.]+(?: to [+−-]?[\d.]+)?")
"""A number or an interval, also with a true minus."""


def _kind(column: Sequence[str]) -> str:
    return ' class="number"' if any(map(_NUMBER.fullmatch, column)) else ""
