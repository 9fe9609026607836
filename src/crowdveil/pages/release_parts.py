"""The parts of a page about one release: the picture, the decided dilemma, the guarantee, and where it comes from."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crowdveil.decision import Decision
from crowdveil.pages import plain_words
from crowdveil.pages.figures import MOST_ROWS, forest_plot, guess_picture
from crowdveil.pages.markup import bullets, code, definitions, paragraphs, text
from crowdveil.pages.reading import Lean, Reading, decimals, readings, signed
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import Unit
from crowdveil.releases import ERROR_BAR, Release

_SIGNS = {Lean.MORE: "▲", Lean.LESS: "▼", Lean.UNCLEAR: "○"}
_SPOKEN = {Lean.MORE: "more is preferred", Lean.LESS: "less is preferred", Lean.UNCLEAR: "cannot be told from noise"}

EXPERIMENT = (
    '<div class="alarm" role="note"><p><strong>Experiment: floating-point noise, protects nobody</strong> '
    "The rounding of floating-point numbers gives away what the noise should hide. If real people answered, do not "
    "publish this page.</p></div>"
)


@dataclass(frozen=True)
class Shown:
    """A release on a page, with what the page says about it beyond the release itself."""

    release: Release
    key: str
    """Unique on the page."""
    decision: Decision | None
    file: str

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        """What the release says about each feature."""
        return readings(self.release)

    @cached_property
    def places(self) -> int:
        """The number of decimals that make sense."""
        return decimals(self.readings)


def parts(shown: Shown, level: int) -> str:
    """Return all parts, their headings at this level."""
    decided = [] if shown.decision is None else [decision_part(shown.decision, level)]
    return "\n".join(
        [picture_part(shown, level), *decided, guarantee_part(shown, level), provenance_part(shown, level)]
    )


def picture_part(shown: Shown, level: int) -> str:
    """Show the society's parameter: what stands out, a picture, and a table with the same numbers."""
    all_readings, places = shown.readings, shown.places
    findings = plain_words.finding_sentences(all_readings, places)
    title = f"What the crowd prefers: {len(all_readings)} features with {ERROR_BAR:.0%} error bars"
    plots = "\n".join(
        f'<div class="{width}">'
        + forest_plot(
            all_readings,
            key=f"{shown.key}-{width}",
            title=title,
            description=" ".join([*findings, "All numbers are in the table that follows."]),
            narrow=width == "narrow",
        )
        + "</div>"
        for width in ("wide", "narrow")
    )
    left_out = (
        f" Only the {MOST_ROWS} largest of {len(all_readings)} values are drawn; the table has them all."
        if len(all_readings) > MOST_ROWS
        else ""
    )
    noise = plain_words.error_bar_sentence(shown.release.noise, len(all_readings))
    return f"""<section class="part">
<h{level}>What the crowd prefers</h{level}>
{paragraphs([" ".join(findings)])}
<p>A positive value means that people tend to prefer alternatives with more of this, a negative one that they prefer
alternatives with less of it. Where the dot is hollow and grey, the error bar reaches zero: the value cannot be told
from noise.</p>
<div class="beside">
<figure>
{plots}
<figcaption>Dots: the released values. Lines: {ERROR_BAR:.0%} error bars. {text(noise + left_out)}</figcaption>
</figure>
{_table(all_readings, places)}
</div>
</section>"""


def _table(shown: tuple[Reading, ...], places: int) -> str:
    rows = "\n".join(
        f'<tr role="row" class="{r.lean}"><th role="rowheader" scope="row">'
        f'<span class="sign" aria-hidden="true">{_SIGNS[r.lean]}</span>{text(r.label)}'
        f'<span class="away">, {_SPOKEN[r.lean]}</span></th>'
        + "".join(f'<td role="cell" class="number">{cell}</td>' for cell in _cells(r, places))
        + "</tr>"
        for r in shown
    )
    heads = "".join(
        f'<th role="columnheader" scope="col"{kind}>{head}</th>'
        for head, kind in (("Feature", ""), *((h, ' class="number"') for h in ("Value", "Error bar", "One more wins")))
    )
    legend = ", ".join(f"{_SIGNS[lean]} {_SPOKEN[lean]}" for lean in Lean)
    return f"""<table class="readings" role="table">
<caption>The same numbers: {legend}. “One more wins”: of two otherwise equal alternatives, how often the crowd would
pick the one with one unit more.</caption>
<thead role="rowgroup"><tr role="row">{heads}</tr></thead>
<tbody role="rowgroup">
{rows}
</tbody>
</table>"""


def _cells(reading: Reading, places: int) -> tuple[str, str, str]:
    wins = "noise" if reading.lean is Lean.UNCLEAR else f"{reading.share:.1%}"
    return signed(reading.value, places), f"± {reading.error_bar:.{places}f}", wins


def decision_part(decision: Decision, level: int) -> str:
    """Show a dilemma that was decided from the release."""
    if decision.choice is None:
        verdict = "<strong>Too close to call.</strong>"
    else:
        verdict = f"The crowd would choose <strong>{text(decision.choice)}</strong>."
    first, second = decision.ranking[0], decision.ranking[1]
    how_often = (
        ""
        if decision.probability is None
        else f"Asked about these two, the released crowd picks “{first.name}” over “{second.name}” "
        f"{decision.probability:.0%} of the time. "
    )
    alternatives = "\n".join(
        f"<li><strong>{text(r.name)}</strong>: {text(r.description)} "
        f'<span class="note">(score {signed(r.score, 3)})</span></li>'
        for r in decision.ranking
    )
    certain = (
        f"Certainty despite the noise: {certainty_text(decision.certainty)} (asked for: {decision.threshold:.0%}). "
        f"{decision.reason[:1].upper()}{decision.reason[1:]}."
    )
    return f"""<section class="part card decided">
<h{level}>A dilemma, decided from this release</h{level}>
<p class="choice">{verdict}</p>
<ol>
{alternatives}
</ol>
{paragraphs([how_often + certain])}
</section>"""


def certainty_text(certainty: float) -> str:
    """Write a certainty in per cent; only what is certain to the last digit shown is called more than 99.9%."""
    return "more than 99.9%" if certainty > 0.999 else f"{certainty:.1%}"


def guarantee_part(shown: Shown, level: int) -> str:
    """Say what is promised, to whom, and what is not."""
    release, guarantee = shown.release, shown.release.guarantee
    promised_to = "to each voter" if guarantee.paradigm.unit is Unit.VOTER else "for each answer"
    heading = (
        f"What is promised {promised_to}" if release.exact else f"What exact noise would have promised {promised_to}"
    )
    levels = (guarantee.smallest_epsilon, guarantee.epsilon) if guarantee.personal else (guarantee.epsilon,)

    def guess(epsilon: Epsilon) -> str:
        return plain_words.guess_text(epsilon.value, guarantee.delta)

    picture = guess_picture(
        [(plain_words.attacker_odds(e.value), f"at most {guess(e)} (ε = {e})") for e in levels],
        key=f"{shown.key}-guess",
        title="How sure somebody can become of what was answered",
        description="From a coin toss, 50%, to " + " or ".join(f"at most {guess(e)} with epsilon {e}" for e in levels),
    )
    return f"""<section class="part">
<h{level}>{heading}</h{level}>
<div class="beside">
<div>
{"" if release.exact else paragraphs(["This release protects nobody. With exact noise, the promise would have been:"])}
{paragraphs([*plain_words.guarantee_sentences(guarantee), *plain_words.devices_sentences(release.facts)])}
</div>
<figure class="card guess">
{picture}
<figcaption>How often somebody who wavers between two versions of the answers picks the true one. Without the release
that is a coin toss; the blue part is the most that the release can add.</figcaption>
</figure>
</div>
<h{level + 1}>What it does not protect</h{level + 1}>
{bullets(plain_words.limit_sentences(guarantee))}
<h{level + 1}>The noise and the account</h{level + 1}>
{paragraphs([_noise_words(release), _ledger_words(release.ledger)])}
</section>"""


def _noise_words(release: Release) -> str:
    mechanism = plain_words.mechanism_words(release.mechanism)
    return (
        f"Privacy comes from {mechanism}. What that leaves in the numbers above: {release.noise.description}. "
        f"Drawn with: {release.sampler}."
    )


def _ledger_words(ledger: Mapping[str, Any] | None) -> str:
    if ledger is None:
        return (
            "This release was not charged to a ledger, so nobody kept account of what else was released from the same "
            "answers."
        )
    entry = ", ".join(f"{key} {_plain(value)}" for key, value in ledger.items())
    return f"It was charged to a privacy ledger: {entry}."


def provenance_part(shown: Shown, level: int) -> str:
    """Say where the release comes from, and how to decide from it."""
    release, guarantee = shown.release, shown.release.guarantee
    allowed = "" if release.exact else " --allow-experiment"
    pairs = [
        ("Mechanism", f"{code(release.mechanism)}: {text(plain_words.mechanism_words(release.mechanism))}"),
        ("Paradigm", f"{text(guarantee.paradigm.name.upper())}: {text(guarantee.paradigm.neighbours)}"),
        ("Norm bound of a preference", text(f"{guarantee.norm_bound:g}")),
        *((f"Fact: {key.replace('_', ' ')}", text(_plain(value))) for key, value in release.facts.items()),
        ("Study", f"{code(release.study.name)}, fingerprint {code(release.study.fingerprint)}"),
        ("Release checksum", code(release.digest)),
        ("Made by", text(f"crowdveil {release.version}")),
    ]
    return f"""<section class="part">
<h{level}>Where this comes from</h{level}>
{definitions(pairs, "facts")}
<h{level + 1}>Decide from it</h{level + 1}>
<p>A decision needs the release file and nothing else:</p>
<pre>{code(f"crowdveil decide {shlex.quote(shown.file)} dilemma.json{allowed}")}</pre>
</section>"""


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
