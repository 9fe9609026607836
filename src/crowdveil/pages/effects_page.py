"""A page about effects, in one file: the picture, the table, the differences between groups, and the promise.

The picture shows factors between their two poles, the strongest at the top (Awad et al. 2018, Figure 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes

from crowdveil.effect_release import Effect, Effects, EffectsRelease, GroupDifference
from crowdveil.figure import Plot
from crowdveil.pages import plain_words
from crowdveil.pages.figures import FIGURE_SETTINGS, cut, inline_svg
from crowdveil.pages.markup import INK, LESS, MORE, MUTED, RULE, bullets, code, definitions, paragraphs, table, text
from crowdveil.pages.release_page import document
from crowdveil.pages.sections import EXPERIMENT
from crowdveil.study.features import Factor

COLOURS = (MORE, LESS, "#009e73", "#cc79a7", "#56b4e9", "#8c6d1f")
"""Colours of groups, after Okabe and Ito; the seventh group reuses the first."""
_WIDEST_POLE = 30


def draw_effects(effects: Effects, suffix: str) -> bytes:
    """Return the picture as a file with this suffix, .png or .svg."""
    with FIGURE_SETTINGS:
        return effects_figure(effects).content(suffix)


def effects_figure(effects: Effects) -> Plot:
    """Return the picture with all of its words, none of which is taken for mathematics."""
    with mpl.rc_context({"text.parse_math": False}):
        return _figure(effects, _Labels(at_once=True))


def effects_svg(effects: Effects, *, key: str, title: str, description: str) -> str:
    """Return the picture as an SVG element of a page; ``key`` must be unique on the page."""
    said = _Labels(at_once=False)
    return inline_svg(_figure(effects, said), key, title, description, said.words)


class _Labels:
    """The words of a picture: drawn directly, or put into the finished SVG, so that no word can break it."""

    def __init__(self, *, at_once: bool) -> None:
        self.words: dict[str, str] = {}
        self._at_once = at_once

    def __call__(self, axes: Axes, place: str, said: str, at: tuple[float, float], **style: Any) -> None:
        self.words[place] = said
        axes.annotate(said if self._at_once else "-", at, annotation_clip=False, gid=place, **style)


def _figure(effects: Effects, say: _Labels) -> Plot:
    groups = effects.groups
    rows = _ordered(effects)
    tall = 18 + 11 * len(groups)
    head = 30 + (18 if len(groups) > 1 else 0)
    width = 720
    height = head + 46 + tall * len(rows)
    figure = Plot(figsize=(width / 72, height / 72), dpi=72)
    figure.patch.set_visible(False)
    side = 215
    axes = figure.add_axes((side / width, 46 / height, 1 - 2 * side / width, tall * len(rows) / height))
    axes.patch.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.set_yticks([])
    ends = [end for _, shown, _ in rows for one in shown if one.known for end in (one.low, one.high)]
    low = min([-0.05, *(e for e in ends)])
    high = max([0.05, *ends])
    axes.set(xlim=(low - 0.02, high + 0.02), ylim=(len(rows) - 0.5, -0.5))
    axes.axvline(0, color=INK, linewidth=1, zorder=1)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", length=0, labelsize=12, labelcolor=MUTED, pad=6)
    axes.xaxis.set_major_formatter(lambda x, _: "0" if abs(x) < 1e-9 else f"{x:+.{_decimals(axes.get_xticks())}f}")
    for place, (factor, shown, turned) in enumerate(rows):
        for pole, at, align in ((factor.poles[turned], 0, "right"), (factor.poles[1 - turned], 1, "left")):
            offset = (-10, 0) if align == "right" else (10, 0)
            say(
                axes,
                f"pole-{place}-{at}",
                cut(pole, _WIDEST_POLE),
                (at, place),
                xytext=offset,
                xycoords=axes.get_yaxis_transform(),
                textcoords="offset points",
                ha=align,
                va="center_baseline",
                fontsize=12,
                color=INK,
            )
        _draw_row(axes, place, shown)
    say(
        axes,
        "axis",
        "preferred this side, minus preferred the other (95 %)",
        (0.5, 0),
        xytext=(0, -40),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="center",
        fontsize=12,
        color=MUTED,
    )
    if len(groups) > 1:
        for place, group in enumerate(groups):
            say(
                axes,
                f"group-{place}",
                f"■ {cut(group.label, 24)}",
                ((place + 0.5) / len(groups), 1),
                xytext=(0, 14),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="center",
                fontsize=12,
                color=COLOURS[place % len(COLOURS)],
            )
    return figure


def _decimals(ticks: Iterable[float]) -> int:
    """Return how many decimals the numbers at the ticks of an axis have, at least one."""
    numbers = list(ticks)
    return next((places for places in range(1, 9) if all(abs(round(x, places) - x) < 1e-9 for x in numbers)), 9)


def _ordered(effects: Effects) -> list[tuple[Factor, list[Effect], bool]]:
    """Return the factors with the effects of all groups, strongest first, oriented toward the preferred side."""
    rows = []
    for factor in effects.study.factors:
        shown = [effects.effect(factor.name, group.label) for group in effects.groups]
        known = [one.estimate for one in shown if one.known]
        mean = sum(known) / len(known) if known else 0.0
        turned = bool(mean < 0)
        rows.append((abs(mean) if known else -1.0, factor, [_turned(one) if turned else one for one in shown], turned))
    return [(factor, shown, turned) for _, factor, shown, turned in sorted(rows, key=lambda row: -row[0])]


def _turned(effect: Effect) -> Effect:
    ends = (-effect.estimate, effect.standard_error, -effect.high, -effect.low)
    return Effect(effect.factor, effect.contrast, *ends, effect.pairs, effect.known)


def _draw_row(axes: Axes, place: int, shown: Sequence[Effect]) -> None:
    """Draw a bar and its interval for each group, or a cross if nothing is known."""
    height = 0.8 / len(shown)
    for k, effect in enumerate(shown):
        at = place - 0.4 + height * (k + 0.5)
        colour = COLOURS[k % len(COLOURS)]
        if effect.known:
            axes.barh(at, effect.estimate, height=0.8 * height, color=colour, alpha=0.55)
            axes.plot([effect.low, effect.high], [at, at], color=INK, linewidth=1.6, solid_capstyle="butt")
        else:
            axes.plot([0], [at], marker="x", color=MUTED)


MEANING = (
    "An effect is a difference of shares: of the pairs that differ in a factor, how often the side with more of it was "
    "preferred, less how often the other was. 0 means that both were preferred equally often, +1 that one side always "
    "was."
)


def effects_page(release: EffectsRelease) -> str:
    """Return an HTML page about effects: what was preferred, by whom, and what voters are promised."""
    promised = release.guarantee
    effects = release.effects
    by = "" if effects.question is None else f", by {effects.question}"
    numbers = [
        ("voters", f"{promised.voters:,}"),
        ("factors", str(len(release.study.factors))),
        *([] if effects.question is None else [("groups", str(len(effects.groups)))]),
        ("epsilon", text(str(promised.epsilon))),
    ]
    header = f"""<header>
{"" if release.exact else EXPERIMENT}
<p class="eyebrow">What a crowd goes by{text(by)}, {"released with privacy" if release.exact else "an experiment"}</p>
<h1>{text(release.study.title)}</h1>
<p class="question">“{text(release.study.question)}”</p>
{definitions(numbers, "numbers")}
</header>"""
    parts = [effects_section(effects), groups_section(effects), promise_section(release), _origin_section(release)]
    return document(release.study.title, "\n".join([header, *parts]))


def effects_section(effects: Effects, key: str = "effects") -> str:
    """Show effects: a picture, and a table with the same numbers."""
    shown = [(group.label, effect) for group in effects.groups for effect in group.effects]
    means = []
    for factor in effects.study.factors:
        known = [effect.estimate for _, effect in shown if effect.factor == factor.name and effect.known]
        means += [(sum(known) / len(known), factor.poles)] if known else []
    strongest = sorted(means, key=lambda one: -abs(one[0]))[:3]
    said = [f"{poles[mean > 0]} over {poles[mean <= 0]}" for mean, poles in strongest]
    findings = f"The strongest: {'; '.join(said)}." if said else "Nothing can be told from noise."
    drawn = effects_svg(effects, key=key, title="Effects, factor by factor", description=findings)
    grouped = effects.question is not None
    rows = [
        [
            text(effects.factor(effect.factor).title),
            *([text(label)] if grouped else []),
            *(text(pole) for pole in effects.factor(effect.factor).poles),
            f"{effect.estimate:+.3f}" if effect.known else "",
            f"{effect.low:+.3f} to {effect.high:+.3f}" if effect.known else "not known",
            text(effect.contrast),
        ]
        for label, effect in shown
    ]
    heads = ["Factor", *(["Group"] if grouped else []), "From −", "To +", "Effect", "95 % interval", "Read from"]
    return f"""<section class="part">
<h2>What was preferred</h2>
{paragraphs([MEANING, findings])}
<figure>
{drawn}
<figcaption>Bars: effects, turned to the side that was preferred. Lines: 95 % intervals, which cover noise and the draw
of voters. A cross: not known.</figcaption>
</figure>
{table(heads, rows, "The same numbers: a positive effect prefers the pole under +, a negative one the pole under −.")}
</section>"""


def groups_section(effects: Effects) -> str:
    """Show where groups differ and where they agree; empty if there are no groups."""
    if effects.question is None or len(effects.groups) < 2:
        return ""
    verdicts = [f"{factor.title}: {said}." for factor, said in effects.verdicts()]
    sizes = [f"{group.label}: {group.size}" for group in effects.groups]
    rows = [_difference_row(effects, one) for one in effects.differences]
    heads = ["Factor", "Groups", "Difference", "95 % interval", "Told from noise and chance"]
    return f"""<section class="part">
<h2>Groups by {text(effects.question)}</h2>
{paragraphs([f"{'; '.join(sizes)}."])}
{bullets(verdicts)}
<p>Whether a difference can be told from noise and chance is judged for all differences together: of those that are
called differences, at most 5 % are false, on average (Benjamini and Hochberg).</p>
{table(heads, rows, "The effect in the first group, minus that in the second.")}
</section>"""


def _difference_row(effects: Effects, one: GroupDifference) -> list[str]:
    return [
        text(effects.factor(one.factor).title),
        text(f"{one.group} less {one.other}"),
        *one.in_words(),
        "yes" if one.told_apart else "no",
    ]


def promise_section(release: EffectsRelease) -> str:
    """Show what voters are promised, and what they are not."""
    sentences = paragraphs(plain_words.guarantee_sentences(release))
    words = plain_words.mechanism_words(release.mechanism)
    noise = paragraphs([f"The noise: {words}. Drawn with: {release.sampler}.", plain_words.account_sentence(release)])
    limits = (
        f"<h3>What it does not protect</h3>\n{bullets(plain_words.limit_sentences(release))}" if release.exact else ""
    )
    return f"""<section class="part">
<h2>{"What is promised" if release.exact else "Nothing is promised"}</h2>
{sentences}
{limits}
<h3>The noise and the account</h3>
{noise}
</section>"""


def _origin_section(release: EffectsRelease) -> str:
    paradigm = release.guarantee.paradigm
    pairs = [
        ("Mechanism", f"{code(release.mechanism)}: {text(plain_words.mechanism_words(release.mechanism))}"),
        ("Paradigm", f"{text(paradigm.name.upper())}: {text(paradigm.neighbours)}"),
        *(("Fact", text(phrase)) for phrase in plain_words.fact_phrases(release.facts)),
        ("Study", f"{code(release.study.name)}, fingerprint {code(release.study.fingerprint)}"),
        ("Checksum", code(release.digest)),
        ("Made by", text(f"crowdveil {release.version}")),
    ]
    return f'<section class="part">\n<h2>Where this comes from</h2>\n{definitions(pairs, "facts")}\n</section>'
