"""A page about effects, in one file: the picture, the table, what groups differ in, and what is promised."""

from __future__ import annotations

from crowdveil.effect_release import Effects, EffectsRelease, GroupDifference
from crowdveil.pages import plain_words
from crowdveil.pages.effects_figure import effects_svg
from crowdveil.pages.markup import bullets, code, definitions, paragraphs, table, text
from crowdveil.pages.release_page import document
from crowdveil.pages.sections import EXPERIMENT

MEANING = (
    "An effect is a difference of shares: of the pairs that differ in a factor, how often the side with more of it was "
    "preferred, less how often the other was. 0 means that both were preferred equally often, +1 that one side always "
    "was."
)


def effects_page(release: EffectsRelease) -> str:
    """Return an HTML page about effects: what was preferred, by whom, and what is promised to the voters."""
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
    """Show what differs between groups, and where they agree; nothing where there are none."""
    if effects.question is None or len(effects.groups) < 2:
        return ""
    verdicts = [f"{factor.title}: {said}." for factor, said in effects.verdicts()]
    sizes = [
        f"{group.label}: {'not known' if group.voters is None else f'about {round(group.voters):,} voters'}"
        for group in effects.groups
    ]
    rows = [_difference_row(effects, one) for one in effects.differences]
    heads = ["Factor", "Groups", "Difference", "95 % interval", "Told from noise and chance"]
    return f"""<section class="part">
<h2>Groups by {text(effects.question)}</h2>
{paragraphs([f"{'; '.join(sizes)}."])}
{bullets(verdicts)}
<p>Whether a difference can be told from noise and chance is judged of all differences together: of those that are
called differences, at most 5 % are none, on average (Benjamini and Hochberg).</p>
{table(heads, rows, "The effect in the first group, less that in the second.")}
</section>"""


def _difference_row(effects: Effects, one: GroupDifference) -> list[str]:
    return [
        text(effects.factor(one.factor).title),
        text(f"{one.group} less {one.other}"),
        f"{one.estimate:+.3f}",
        f"{one.low:+.3f} to {one.high:+.3f}",
        "yes" if one.told_apart else "no",
    ]


def promise_section(release: EffectsRelease) -> str:
    """Show what is promised to the voters, and what is not."""
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
        *((f"Fact: {key.replace('_', ' ')}", text(plain_words.plain(value))) for key, value in release.facts.items()),
        ("Study", f"{code(release.study.name)}, fingerprint {code(release.study.fingerprint)}"),
        ("Checksum", code(release.digest)),
        ("Made by", text(f"crowdveil {release.version}")),
    ]
    return f'<section class="part">\n<h2>Where this comes from</h2>\n{definitions(pairs, "facts")}\n</section>'
