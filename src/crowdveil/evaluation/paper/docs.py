"""The same report as a page of Markdown with pictures, for the project's documentation."""

from __future__ import annotations

from pathlib import Path

from crowdveil.evaluation.paper.claim import Claim
from crowdveil.evaluation.paper.draw import png
from crowdveil.evaluation.paper.page import HOW_TO_READ, WHAT_REACHES, number, outcome, summary, versions
from crowdveil.evaluation.paper.reproduction import DrawnFigure, Reproduction
from crowdveil.files import replacing, write_text

_DPI = 90


def write_docs(made: Reproduction, folder: Path) -> None:
    """Write README.md and its pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in made.figures:
        with replacing(folder / f"{one.plan.name}.png") as unfinished:
            unfinished.write_bytes(png(one.figure, dpi=_DPI))
    write_text(folder / "README.md", _markdown(made))


def _markdown(made: Reproduction) -> str:
    claims = "\n".join(map(_claim, made.claims))
    reached = "\n".join(map(_claim, made.reached))
    figures = "\n".join(map(_figure, made.figures))
    choices = "\n".join(f"| {_cell(c.question)} | {_cell(c.chosen)} | {_cell(c.matters)} |" for c in made.choices)
    return f"""# The paper's evaluation, reproduced

Generated; do not edit. Made by

    {made.order.command}

with {versions(made)}.

{summary(made)} Every number is a mean over {made.order.crowds} crowds with its 95 % interval. Accuracy is the share of test
pairs on which the learned parameter and the truth choose the same side; 0.5 is a coin. Lines and rows marked NOT PRIVATE
show where a curve of the paper comes from; they protect nobody.

Data: {made.order.data_words}

## Claims

{HOW_TO_READ}

| Section | Claim | Verdict | Measured, with 95 % interval | Why |
|---|---|---|---|---|
{claims}

## What reaches the claim

{WHAT_REACHES}

| Paradigm | Asked | Verdict | Measured, with 95 % interval | Mechanism, and why |
|---|---|---|---|---|
{reached}

## Figures

{figures}
## What the paper leaves open

| Left open | Chosen here | How much it matters |
|---|---|---|
{choices}
"""


def _claim(claim: Claim) -> str:
    parts = "<br>".join(f"{outcome(part)}: {part.what}: {number(part)}, wanted {part.wanted}" for part in claim.parts)
    return (
        "| "
        + " | ".join(map(_cell, (claim.section, claim.quote, f"**{claim.verdict.value}**", parts, claim.why)))
        + " |"
    )


def _figure(one: DrawnFigure) -> str:
    title = f"{one.plan.title} ({one.plan.paper})"
    return f"### {title}\n\n{one.plan.beside_the_paper}\n\n![{title}]({one.plan.name}.png)\n"


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")
