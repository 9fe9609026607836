"""The reproduction for readers: one HTML page that loads nothing and runs no script, or Markdown with pictures."""

from __future__ import annotations

import base64
from collections import Counter
from importlib import resources
from pathlib import Path

from crowdveil.evaluation.paper.reproduction import DrawnFigure, Reproduction
from crowdveil.evaluation.paper.verdicts import Claim, ClaimPart, ClaimVerdict
from crowdveil.evaluation.toolkit.plotting import png
from crowdveil.files import replacing, write_text
from crowdveil.pages.markup import text

HOW_TO_READ = (
    "A claim holds where every measured part that counts has its whole interval where it is wanted, holds partly where "
    "some have, and does not hold where none has and at least one lies wholly elsewhere. A part whose interval reaches "
    "both sides is “not shown”, and so is a claim of nothing but such parts: more crowds make intervals narrower. "
    "“Context” does not count."
)
WHAT_REACHES = (
    "The paper's headline is that its algorithms keep more than 80 % of the accuracy without privacy when ε > 0.3, and "
    "more than 90 % when ε > 1. Here the same is asked of the mechanism that crowdveil recommends for each promise, on "
    "the same crowds and read in the same way: as a ratio to the mean of bounded fits, at the nearest ε of the grid "
    "beyond. The ε itself and the paper's mechanism are context. None of this counts among the paper's claims above."
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_KINDS = {
    ClaimVerdict.HOLDS: "holds",
    ClaimVerdict.PARTLY: "partly",
    ClaimVerdict.FAILS: "fails",
    ClaimVerdict.UNCLEAR: "unclear",
}
_MARKS = {ClaimVerdict.HOLDS: "✓", ClaimVerdict.PARTLY: "◐", ClaimVerdict.FAILS: "✗", ClaimVerdict.UNCLEAR: "?"}


def reproduction_page(made: Reproduction) -> str:
    """Return the page as HTML."""
    style = resources.files("crowdveil.evaluation.paper").joinpath("page.css").read_text(encoding="utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>The paper, reproduced</title>
<style>
{style}</style>
</head>
<body>
<main>
<h1>Privacy-preserving Crowd-guided AI Decision-making in Ethical Dilemmas: its evaluation, reproduced</h1>
<p>{text(summary(made))}</p>
<p>Every number is a mean over {made.request.crowds} crowds with its 95&nbsp;% interval. Accuracy is the share of test
pairs on which the learned parameter and the truth choose the same side; 0.5 is a coin. Lines and rows marked
NOT PRIVATE show where a curve of the paper comes from; they protect nobody.</p>
<p>Data: {text(made.request.data_words)}</p>
<nav aria-label="Contents"><a href="#claims">Claims</a> · <a href="#recommended">What reaches the claim</a> ·
<a href="#figures">Figures</a> ·
<a href="#choices">What the paper leaves open</a> · <a href="#made">How this was made</a></nav>
<h2 id="claims">Claims</h2>
<p>{text(HOW_TO_READ)}</p>
<div class="wide"><table class="claims">
<thead><tr><th scope="col">Section</th><th scope="col">Claim</th><th scope="col">Verdict</th>
<th scope="col">Measured, with 95&nbsp;% interval</th><th scope="col">Why</th></tr></thead>
<tbody>
{"".join(map(_claim, made.claims))}</tbody>
</table></div>
<h2 id="recommended">What reaches the claim</h2>
<p>{text(WHAT_REACHES)}</p>
<div class="wide"><table class="claims">
<thead><tr><th scope="col">Paradigm</th><th scope="col">Asked</th><th scope="col">Verdict</th>
<th scope="col">Measured, with 95&nbsp;% interval</th><th scope="col">Mechanism, and why</th></tr></thead>
<tbody>
{"".join(map(_claim, made.recommended))}</tbody>
</table></div>
<h2 id="figures">Figures</h2>
{"".join(map(_figure, made.figures))}
<h2 id="choices">What the paper leaves open</h2>
<div class="wide"><table>
<thead><tr><th scope="col">Left open</th><th scope="col">Chosen here</th>
<th scope="col">How much it matters</th></tr></thead>
<tbody>
{"".join(_row(c.question, c.chosen, c.matters) for c in made.choices)}</tbody>
</table></div>
<h2 id="made">How this was made</h2>
<pre>{text(made.request.command)}</pre>
<p>{text(versions(made))}. Seeds follow from the names of the experiments: the same command gives the same numbers, on
any number of cores. The noise is seeded floating-point noise, for experiments only.</p>
</main>
</body>
</html>
"""


def summary(made: Reproduction) -> str:
    """Return in words how many claims hold."""
    counts = Counter(claim.verdict for claim in made.claims)
    said = ", ".join(f"{counts[verdict]} {_plural(verdict, counts[verdict])}" for verdict in ClaimVerdict)
    return f"Of {len(made.claims)} claims checked, {said}."


def versions(made: Reproduction) -> str:
    """Return in words the versions of the software that made the numbers."""
    return ", ".join(f"{name} {number}" for name, number in made.versions.items())


def outcome(part: ClaimPart) -> str:
    """Return the outcome of a part in one word."""
    return part.outcome.value if part.counts else "context"


def number(part: ClaimPart) -> str:
    """Format a measured number: with its interval, or alone if it is a count."""
    return f"{part.interval.estimate:g}" if part.interval.low == part.interval.high else str(part.interval)


def _plural(verdict: ClaimVerdict, count: int) -> str:
    plural = {ClaimVerdict.HOLDS: "hold", ClaimVerdict.PARTLY: "hold partly", ClaimVerdict.FAILS: "do not hold"}
    return verdict.value if count == 1 else plural.get(verdict, verdict.value)


def _claim(claim: Claim) -> str:
    kind = _KINDS[claim.verdict]
    mark = _MARKS[claim.verdict]
    parts = "".join(map(_part, claim.parts))
    return (
        f'<tr id="claim-{text(claim.name)}"><td>{text(claim.section)}</td><td>{text(claim.quote)}</td>'
        f'<td class="verdict {kind}"><span aria-hidden="true">{mark}</span> {text(claim.verdict.value)}</td>'
        f"<td><ul>{parts}</ul></td><td>{text(claim.why)}</td></tr>\n"
    )


def _part(part: ClaimPart) -> str:
    return (
        f'<li class="{"counts" if part.counts else "context"}"><span>{text(outcome(part))}</span>'
        f"<span>{text(part.what)}</span><span>{text(number(part))}</span><span>wanted {text(part.wanted)}</span></li>"
    )


def _figure(one: DrawnFigure) -> str:
    encoded = base64.b64encode(one.svg.encode()).decode()
    body = "".join(_row(*(f"{v:.4g}" if isinstance(v, float) else v for v in row)) for row in one.numbers.iter_rows())
    heads = "".join(f'<th scope="col">{text(name)}</th>' for name in one.numbers.columns)
    title = f"{one.plan.title} ({one.plan.paper})"
    return f"""<figure id="{text(one.plan.name)}">
<figcaption><h3>{text(title)}</h3><p>{text(one.plan.beside_the_paper)}</p></figcaption>
<img alt="{text(title)}; the numbers are in the table below" src="data:image/svg+xml;base64,{encoded}">
<details><summary>Numbers</summary><div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>
{body}</tbody></table></div></details>
</figure>
"""


def _row(*cells: object) -> str:
    return f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in cells)}</tr>\n"


_DPI = 90


def write_docs(made: Reproduction, folder: Path) -> None:
    """Write README.md and its pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in made.figures:
        with replacing(folder / f"{one.plan.name}.png") as unfinished:
            unfinished.write_bytes(png(one.figure, dpi=_DPI))
    write_text(folder / "README.md", _markdown(made))


def _markdown(made: Reproduction) -> str:
    request = made.request
    claims = "\n".join(map(_claim_row, made.claims))
    recommended = "\n".join(map(_claim_row, made.recommended))
    figures = "\n".join(map(_figure_section, made.figures))
    choices = "\n".join(f"| {_cell(c.question)} | {_cell(c.chosen)} | {_cell(c.matters)} |" for c in made.choices)
    return f"""# The paper's evaluation, reproduced

Generated; do not edit. Made by

    {request.command}

with {versions(made)}.

{summary(made)} Every number is a mean over {request.crowds} crowds with its 95 % interval. Accuracy is the share of
test pairs on which the learned parameter and the truth choose the same side; 0.5 is a coin. Lines and rows marked NOT
PRIVATE show where a curve of the paper comes from; they protect nobody.

Data: {request.data_words}

## Claims

{HOW_TO_READ}

| Section | Claim | Verdict | Measured, with 95 % interval | Why |
|---|---|---|---|---|
{claims}

## What reaches the claim

{WHAT_REACHES}

| Paradigm | Asked | Verdict | Measured, with 95 % interval | Mechanism, and why |
|---|---|---|---|---|
{recommended}

## Figures

{figures}
## What the paper leaves open

| Left open | Chosen here | How much it matters |
|---|---|---|
{choices}
"""


def _claim_row(claim: Claim) -> str:
    parts = "<br>".join(f"{outcome(part)}: {part.what}: {number(part)}, wanted {part.wanted}" for part in claim.parts)
    return (
        "| "
        + " | ".join(map(_cell, (claim.section, claim.quote, f"**{claim.verdict.value}**", parts, claim.why)))
        + " |"
    )


def _figure_section(one: DrawnFigure) -> str:
    title = f"{one.plan.title} ({one.plan.paper})"
    return f"### {title}\n\n{one.plan.beside_the_paper}\n\n![{title}]({one.plan.name}.png)\n"


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")
