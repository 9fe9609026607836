"""HTML fragments. ``text`` is the only way for words from a file to get into a page."""

from __future__ import annotations

import html
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
    """Return a table of HTML cells, the first of each row its heading; numbers with a sign get the style of numbers."""
    head = "".join(f'<th role="columnheader" scope="col">{one}</th>' for one in heads)
    body = "\n".join(
        f'<tr role="row"><th role="rowheader" scope="row">{first}</th>'
        + "".join(f'<td role="cell"{_kind(cell)}>{cell}</td>' for cell in rest)
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


def _kind(cell: str) -> str:
    return ' class="number"' if cell[:1] in ("+", "-") or not cell else ""
