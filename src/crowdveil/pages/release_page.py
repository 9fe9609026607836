"""One page, in one file, that shows one or more releases to a person.

It loads nothing from anywhere and runs no script. The same releases always give the same page.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from itertools import zip_longest

import numpy as np

from crowdveil.decision import Decision, certainty_text
from crowdveil.pages import plain_words
from crowdveil.pages.markup import definitions, table, text
from crowdveil.pages.sections import EXPERIMENT, ReleaseView, sections
from crowdveil.privacy.uncertainty import ERROR_BAR
from crowdveil.publish.groups import preference_differences
from crowdveil.releases import Release

CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def release_page(
    releases: Sequence[Release],
    *,
    title: str | None = None,
    decisions: Sequence[Decision] = (),
    files: Sequence[str] = (),
) -> str:
    """Return an HTML page about releases: what the crowd prefers, what voters are promised, and its origin.

    ``decisions`` are dilemmas decided from the releases, and ``files`` the names of the release files: none, or one for
    each release, in the same order.
    """
    if not releases or {len(decisions), len(files)} - {0, len(releases)}:
        raise ValueError(f"{len(releases)} releases, {len(decisions)} decisions and {len(files)} files do not match")
    shown = [
        ReleaseView(release, f"release-{place}", decision, file or "release.json")
        for place, (release, decision, file) in enumerate(zip_longest(releases, decisions, files), start=1)
    ]
    titles = dict.fromkeys(release.study.title for release in releases)
    heading = title or " and ".join(titles)
    alone = len(shown) == 1
    body = (
        sections(shown[0], level=2)
        if alone
        else "\n".join([_comparison(shown), _groups(releases), *map(_article, shown)])
    )
    return document(heading, f"{_opening(heading, releases)}\n{body}")


def document(heading: str, body: str) -> str:
    """Return a whole page: it loads nothing from anywhere and runs no script."""
    style = resources.files(__package__).joinpath("release_page.css").read_text(encoding="utf-8")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{text(CONTENT_SECURITY_POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(heading)}</title>
<style>
{style}</style>
</head>
<body>
<main class="page">
{body}
</main>
</body>
</html>
"""


def _groups(releases: Sequence[Release]) -> str:
    """Show the differences between groups of one study; empty if the releases are not of groups."""
    labels = [_group(release) for release in releases]
    if not all(labels) or len(set(labels)) < len(labels) or len({one.study.fingerprint for one in releases}) > 1:
        return ""
    titles = {factor.name: factor.title for factor in releases[0].study.factors}
    rows = [
        [
            text(titles[one.factor]),
            text(f"{one.group} less {one.other}"),
            *one.in_words(),
            "yes" if one.told_apart else "no",
        ]
        for one in preference_differences(dict(zip(labels, releases, strict=True)))
    ]
    heads = ["Factor", "Groups", "Difference", f"{ERROR_BAR:.0%} interval", "Told from noise and chance"]
    caption = "All differences are judged together: of those that are told, at most 5 % are false, on average."
    return f"""<section class="part">
<h2>What differs between the groups</h2>
{table(heads, rows, caption)}
</section>"""


def _opening(heading: str, releases: Sequence[Release]) -> str:
    questions = dict.fromkeys(release.study.question for release in releases)
    asked = "\n".join(f'<p class="question">“{text(question)}”</p>' for question in questions)
    private = all(release.exact for release in releases)
    how = "released with privacy" if private else "an experiment"
    ways = f", in {len(releases)} ways" if len(releases) > 1 else ""
    whose = f"the group “{_group(releases[0])}” of a crowd" if not ways and _group(releases[0]) else "a crowd"
    return f"""<header>
{"" if private else EXPERIMENT}
<p class="eyebrow">What {text(whose)} prefers, {how}{ways}</p>
<h1>{text(heading)}</h1>
{asked}
{definitions(_numbers(releases), "numbers")}
</header>"""


def _numbers(releases: Sequence[Release]) -> list[tuple[str, str]]:
    voters = dict.fromkeys(_voters(release) for release in releases)
    features = dict.fromkeys(str(release.study.dimension) for release in releases)
    numbers = [
        ("voter" if set(voters) == {"1"} else "voters", " / ".join(voters)),
        ("feature" if set(features) == {"1"} else "features", " / ".join(features)),
    ]
    if len(releases) > 1:
        return [*numbers, ("releases", str(len(releases)))]
    promised = releases[0].guarantee
    best = plain_words.guess_text(promised.epsilon.value, promised.delta)
    guess = f"50% → {best}" if releases[0].exact else "not limited"
    return [*numbers, ("epsilon", text(_epsilons(releases[0]))), ("an outsider’s best guess", guess)]


def _voters(release: Release) -> str:
    """Return the number of voters in a release: for a secret group, its noisy count."""
    counted = release.facts.get("group_voters")
    return f"{release.guarantee.voters:,}" if counted is None else f"about {counted:,}"


def _comparison(shown: Sequence[ReleaseView]) -> str:
    several_studies = len({one.release.study.fingerprint for one in shown}) > 1
    grouped = any(_group(one.release) for one in shown)
    decided = any(one.decision is not None for one in shown)
    columns = [
        *(["Study"] if several_studies else []),
        *(["Group"] if grouped else []),
        "ε",
        "Protected",
        "Trusted",
        "Noise",
        f"Typical {ERROR_BAR:.0%} error bar",
        *(["Decision"] if decided else []),
    ]
    typical = [
        float(np.median([each.error_bar for each in one.feature_estimates if each.known] or [0.0])) for one in shown
    ]
    rows = []
    for one, error_bar in zip(shown, typical, strict=True):
        guarantee = one.release.guarantee
        cells = [
            *([f'<span class="own">{text(one.release.study.title)}</span>'] if several_studies else []),
            *([f'<span class="own">{text(_group(one.release) or "everybody")}</span>'] if grouped else []),
            text(_epsilons(one.release)),
            text(plain_words.protected_words(guarantee.paradigm) if one.release.exact else "nobody"),
            text(plain_words.noise_party(one.release).value),
            text(plain_words.mechanism_words(one.release.mechanism)),
            _meter(error_bar, max(typical), one.places),
            *([_decided(one.decision)] if decided else []),
        ]
        rows.append(
            f'<tr role="row"><th role="rowheader" scope="row"><a href="#{one.key}">{_name(one.release)}</a></th>'
            + "".join(
                f'<td role="cell" data-label="{text(column)}">{cell}</td>'
                for column, cell in zip(columns, cells, strict=True)
            )
            + "</tr>"
        )
    heads = "".join(f'<th role="columnheader" scope="col">{text(column)}</th>' for column in ("Release", *columns))
    return f"""<section class="part">
<h2>Side by side</h2>
<table class="comparison" role="table">
<caption>Longer bars: less is known, so that less can be said about the crowd. Each picture below has its own
scale.</caption>
<thead role="rowgroup"><tr role="row">{heads}</tr></thead>
<tbody role="rowgroup">
{chr(10).join(rows)}
</tbody>
</table>
</section>"""


def _article(view: ReleaseView) -> str:
    release = view.release
    whose = [f"group “{_group(release)}”"] if _group(release) else []
    above = [release.study.title, *whose, release.guarantee.paradigm.name, f"epsilon {_epsilons(release)}"]
    return f"""<article class="release" id="{view.key}">
{"" if release.exact else EXPERIMENT}
<p class="eyebrow">{text(" · ".join(above))}</p>
<h2>{text(plain_words.release_title(release))}</h2>
{sections(view, level=3)}
</article>"""


def _group(release: Release) -> str:
    """Return the name of the group whose preference this is; empty if it is everybody's."""
    return str(release.facts.get("group", ""))


def _name(release: Release) -> str:
    return f"{text(release.guarantee.paradigm.name.upper())}{'' if release.exact else ' (experiment)'}"


def _epsilons(release: Release) -> str:
    guarantee = release.guarantee
    return guarantee.epsilons + (f" (delta {guarantee.delta:g})" if guarantee.delta else "")


def _meter(error_bar: float, longest: float, places: int) -> str:
    share = error_bar / longest if longest > 0 else 0.0
    bar = f'<span class="meter" aria-hidden="true"><span style="width: {100 * share:.1f}%"></span></span>'
    return f"<span>± {error_bar:.{places}f}{bar}</span>"


def _decided(decision: Decision | None) -> str:
    if decision is None:
        return "none"
    choice = "too close to call" if decision.choice is None else decision.choice
    sure = certainty_text(decision.certainty)
    return f'<span><strong class="own">{text(choice)}</strong>, certain to {text(sure)}</span>'
