"""The sections of a page about one release: the picture, the decided dilemma, the guarantee, and its origin."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import cached_property

from crowdveil.decision import Decision
from crowdveil.errors import plural
from crowdveil.pages import plain_words
from crowdveil.pages.feature_estimates import (
    FeatureEstimate,
    PreferenceSign,
    decimals,
    error_bar_sentence,
    feature_estimates,
    finding_sentences,
    one_line,
    reliability_sentences,
    signed,
    third_answer_sentences,
)
from crowdveil.pages.figures import MOST_ROWS, forest_plot, guess_picture
from crowdveil.pages.markup import bullets, code, definitions, paragraphs, table, text
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.uncertainty import ERROR_BAR
from crowdveil.publish.implied_effects import implied_effects
from crowdveil.releases import Release

_SIGNS = {PreferenceSign.MORE: "▲", PreferenceSign.LESS: "▼", PreferenceSign.UNCLEAR: "○"}
_SPOKEN = {
    PreferenceSign.MORE: "more is preferred",
    PreferenceSign.LESS: "less is preferred",
    PreferenceSign.UNCLEAR: "cannot be told from zero",
}

EXPERIMENT = (
    '<div class="alarm" role="note"><p><strong>Experiment: floating-point noise, protects nobody</strong> '
    "The rounding of floating-point numbers gives away what the noise should hide. If real people answered, do not "
    "publish this page.</p></div>"
)


@dataclass(frozen=True)
class ReleaseView:
    """A release on a page, with what the page needs beyond the release itself."""

    release: Release
    key: str
    """Unique on the page."""
    decision: Decision | None
    file: str

    @cached_property
    def feature_estimates(self) -> tuple[FeatureEstimate, ...]:
        """The release feature by feature."""
        return feature_estimates(self.release)

    @cached_property
    def places(self) -> int:
        """The number of meaningful decimals."""
        return decimals(self.feature_estimates)


def sections(view: ReleaseView, level: int) -> str:
    """Return all sections, with their headings at this level."""
    decided = [] if view.decision is None else [decision_section(view.decision, level)]
    implied = [] if view.release.unknown is None else [effects_section(view, level)]
    return "\n".join(
        [picture_section(view, level), *implied, *decided, guarantee_section(view, level), origin_section(view, level)]
    )


def picture_section(view: ReleaseView, level: int) -> str:
    """Show the released parameter: what stands out, a picture, and a table with the same numbers."""
    estimates = view.feature_estimates
    places = view.places
    findings = finding_sentences(estimates, places)
    features = f"{len(estimates)} {plural(len(estimates), 'feature')}"
    title = f"What the crowd prefers: {features} with {ERROR_BAR:.0%} error bars"
    plots = "\n".join(
        f'<div class="{width}">'
        + forest_plot(
            estimates,
            key=f"{view.key}-{width}",
            title=title,
            description=" ".join([*findings, "All numbers are in the table that follows."]),
            narrow=width == "narrow",
        )
        + "</div>"
        for width in ("wide", "narrow")
    )
    left_out = (
        f" Only the {MOST_ROWS} largest of {len(estimates)} values are drawn; the table has them all."
        if len(estimates) > MOST_ROWS
        else ""
    )
    crosses = "" if all(estimate.known for estimate in estimates) else " A cross: not known."
    bars = error_bar_sentence(view.release, len(estimates))
    return f"""<section class="part">
<h{level}>What the crowd prefers</h{level}>
{paragraphs([" ".join(findings), *third_answer_sentences(view.release), *reliability_sentences(view.release)])}
{_factor_table(view)}
{paragraphs(view.release.remarks)}
<p>A positive value means that people tend to prefer alternatives with more of this, a negative one that they prefer
alternatives with less of it. Where the dot is hollow and grey, the error bar reaches zero: the value cannot be told
from it.</p>
<div class="beside">
<figure>
{plots}
<figcaption>Dots: the released values. Lines: {ERROR_BAR:.0%} error bars.{crosses} {text(bars + left_out)}</figcaption>
</figure>
{_table(estimates, places, coins=view.release.indifference is not None)}
</div>
{_error_parts(view)}
</section>"""


def _error_parts(view: ReleaseView) -> str:
    """Show what makes the error bars as wide as they are, folded; empty for a paper's society: only noise does."""
    release = view.release
    if release.unknown is None:
        return ""
    labels = {("feature", feature.name): feature.label for feature in release.study.features}
    labels |= {("factor", factor.name): factor.title for factor in release.study.factors}
    rows = [
        [text(one_line(labels[kind, name])), *(f"{part:.{view.places}f}" for part in parts)]
        for kind, name, *parts in release.error_parts().iter_rows()
    ]
    caption = (
        "Half of the width that an interval would have from each cause alone, and half of its width. The squares of "
        "noise, sampling and left out add up; what the model may be off by adds at most its part to the root of that."
    )
    heads = ["Factor or feature", "Noise", "Sampling", "Model", "Left out", "All"]
    return f"""<details>
<summary>What makes the error bars as wide as they are</summary>
{table(heads, rows, caption)}
</details>"""


def _factor_table(view: ReleaseView) -> str:
    """Show the release along the study's factors, strongest first; empty if those are the features."""
    release = view.release
    if release.study.factors_are_features:
        return ""
    shown = sorted(
        zip(
            release.study.factors,
            release.factor_values.tolist(),
            release.factor_intervals.tolist(),
            release.known.tolist(),
            strict=True,
        ),
        key=lambda row: -abs(row[1]),
    )
    rows = "\n".join(
        f'<tr role="row"><th role="rowheader" scope="row">{text(one_line(factor.title))}</th>'
        + "".join(f'<td role="cell">{text(one_line(pole))}</td>' for pole in factor.poles)
        + f'<td role="cell" class="number">{signed(value, view.places)}</td>'
        + f'<td role="cell" class="number">{_interval(ends, view.places) if known else "not known"}</td></tr>'
        for factor, value, ends, known in shown
    )
    heads = "".join(f'<th role="columnheader" scope="col">{head}</th>' for head in ("Factor", "From −", "To +"))
    heads += "".join(
        f'<th role="columnheader" scope="col" class="number">{head}</th>'
        for head in ("Value", f"{ERROR_BAR:.0%} interval")
    )
    return f"""<table class="factors" role="table">
<caption>Along the study’s factors. A positive value leans to the pole under +, a negative one to the pole under −.
The intervals cover {release.bars_cover}{_AROUND if release.unknown is not None else "."}</caption>
<thead role="rowgroup"><tr role="row">{heads}</tr></thead>
<tbody role="rowgroup">
{rows}
</tbody>
</table>"""


_AROUND = (
    ". They lie around what was measured; where little is known, the value is drawn toward zero, and where nothing is, "
    "the interval is “not known”."
)


def _interval(ends: list[float], places: int) -> str:
    low, high = ends
    return f"{signed(low, places)} to {signed(high, places)}"


def _table(shown: tuple[FeatureEstimate, ...], places: int, *, coins: bool) -> str:
    rows = "\n".join(
        f'<tr role="row" class="{r.sign}"><th role="rowheader" scope="row">'
        f'<span class="sign" aria-hidden="true">{_SIGNS[r.sign]}</span>{text(r.label)}'
        f'<span class="away">, {_SPOKEN[r.sign]}</span></th>'
        + "".join(f'<td role="cell" class="number">{cell}</td>' for cell in _cells(r, places))
        + "</tr>"
        for r in shown
    )
    shares = any(r.share is not None for r in shown)
    numbers = ("Value", "Error bar", *(["One more wins"] if shares else []))
    heads = "".join(
        f'<th role="columnheader" scope="col"{kind}>{head}</th>'
        for head, kind in (("Feature", ""), *((head, ' class="number"') for head in numbers))
    )
    legend = ", ".join(f"{_SIGNS[sign]} {_SPOKEN[sign]}" for sign in PreferenceSign)
    others = " The others would pick the other one, or toss a coin." if coins else ""
    wins = (
        " “One more wins”: of two otherwise equal alternatives, how many voters would pick the one with one unit more."
        f"{others}"
        if shares
        else ""
    )
    return f"""<table class="readings" role="table">
<caption>The same numbers: {legend}.{wins}</caption>
<thead role="rowgroup"><tr role="row">{heads}</tr></thead>
<tbody role="rowgroup">
{rows}
</tbody>
</table>"""


def _cells(estimate: FeatureEstimate, places: int) -> list[str]:
    cells = [signed(estimate.value, places) if estimate.known else "", estimate.bar_text(places)]
    if estimate.share is None:
        return cells
    return [*cells, "unclear" if estimate.sign is PreferenceSign.UNCLEAR else f"{estimate.share:.1%}"]


def effects_section(view: ReleaseView, level: int) -> str:
    """Show what the preference means in shares, on the dilemmas that the study draws."""
    effects = implied_effects(view.release)
    found = sorted(effects.groups[0].effects, key=lambda one: -abs(one.estimate))
    rows = [
        [
            text(effects.factor(one.factor).title),
            *(text(pole) for pole in effects.factor(one.factor).poles),
            signed(one.estimate, 2) if one.known else "",
            _interval([one.low, one.high], 2) if one.known else "not known",
        ]
        for one in found
    ]
    heads = ["Factor", "From −", "To +", "Effect", f"{ERROR_BAR:.0%} interval"]
    caption = "A positive effect prefers the pole under +, a negative one the pole under −."
    return f"""<section class="part">
<h{level}>What that means in shares</h{level}>
<p>An effect is the share of people who prefer the side with more of a factor, minus the share who prefer the other: +1
means all of them, 0 as many as the other. The preference implies these in the dilemmas that the study draws.</p>
{table(heads, rows, caption)}
</section>"""


def decision_section(decision: Decision, level: int) -> str:
    """Show a dilemma that was decided from the release."""
    if decision.choice is None:
        verdict = "<strong>Too close to call.</strong>"
    elif decision.coin:
        verdict = "The crowd would <strong>toss a coin</strong>."
    else:
        verdict = f"The crowd would choose <strong>{text(decision.choice)}</strong>."
    alternatives = "\n".join(
        f"<li><strong>{text(r.name)}</strong>: {text(r.description)} "
        f'<span class="note">(score {signed(r.score, 3)})</span></li>'
        for r in decision.ranking
    )
    reason = f"{decision.reason[:1].upper()}{decision.reason[1:]}."
    return f"""<section class="part card decided">
<h{level}>A dilemma, decided from this release</h{level}>
<p class="choice">{verdict}</p>
<ol>
{alternatives}
</ol>
{paragraphs([reason, *decision.sentences])}
</section>"""


def guarantee_section(view: ReleaseView, level: int) -> str:
    """Show what is promised, to whom, and what is not; for an experiment, that nothing is."""
    release = view.release
    guarantee = release.guarantee
    noise = paragraphs([_noise_sentence(release), plain_words.account_sentence(release)])
    sentences = paragraphs(plain_words.guarantee_sentences(release))
    if not release.exact:
        return f"""<section class="part">
<h{level}>Nothing is promised</h{level}>
{sentences}
<h{level + 1}>The noise</h{level + 1}>
{noise}
</section>"""
    promised_to = "to each voter" if guarantee.paradigm.unit is Unit.VOTER else f"for each {guarantee.paradigm.unit}"
    return f"""<section class="part">
<h{level}>What is promised {promised_to}</h{level}>
<div class="beside">
<div>
{sentences}
</div>
<figure class="card guess">
{_guess(view)}
<figcaption>How often somebody who wavers between two versions of what is protected picks the true one. Without the
release that is a coin toss; the blue part is the most that the release can add.</figcaption>
</figure>
</div>
<h{level + 1}>What it does not protect</h{level + 1}>
{bullets(plain_words.limit_sentences(release))}
<h{level + 1}>The noise and the account</h{level + 1}>
{noise}
</section>"""


def _guess(view: ReleaseView) -> str:
    guarantee = view.release.guarantee
    levels = (guarantee.smallest_epsilon, guarantee.epsilon) if guarantee.personal else (guarantee.epsilon,)
    guesses = {e: f"at most {plain_words.guess_text(e.value, guarantee.delta)}" for e in levels}
    return guess_picture(
        [(plain_words.attacker_odds(e.value), f"{guess} (ε = {e})") for e, guess in guesses.items()],
        key=f"{view.key}-guess",
        title="How sure somebody can become of what is protected",
        description="From a coin toss, 50%, to "
        + " or ".join(f"{said} with epsilon {e}" for e, said in guesses.items()),
    )


def _noise_sentence(release: Release) -> str:
    mechanism = plain_words.mechanism_words(release.mechanism)
    source = f"Privacy comes from {mechanism}" if release.exact else f"The noise: {mechanism}"
    return (
        f"{source}. What that leaves in the numbers above: {release.noise.description}. Drawn with: {release.sampler}."
    )


def origin_section(view: ReleaseView, level: int) -> str:
    """Show where the release comes from, and how to decide from it."""
    release = view.release
    guarantee = view.release.guarantee
    allowed = "" if release.exact else " --allow-experiment"
    pairs = [
        ("Mechanism", f"{code(release.mechanism)}: {text(plain_words.mechanism_words(release.mechanism))}"),
        ("Paradigm", f"{text(guarantee.paradigm.name.upper())}: {text(guarantee.paradigm.neighbours)}"),
        ("Norm bound of a preference", text(f"{guarantee.norm_bound:g}")),
        *(("Fact", text(phrase)) for phrase in plain_words.fact_phrases(release.facts)),
        ("Study", f"{code(release.study.name)}, fingerprint {code(release.study.fingerprint)}"),
        ("Release checksum", code(release.digest)),
        ("Made by", text(f"crowdveil {release.version}")),
    ]
    return f"""<section class="part">
<h{level}>Where this comes from</h{level}>
{definitions(pairs, "facts")}
<h{level + 1}>Decide from it</h{level + 1}>
<p>A decision needs the release file and nothing else:</p>
<pre>{code(f"crowdveil decide {shlex.quote(view.file)} dilemma.json{allowed}")}</pre>
</section>"""
