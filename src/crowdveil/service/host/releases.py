"""Making releases, looking at them, and comparing two of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from markupsafe import Markup
from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.pages.plain_words import mechanism_words
from crowdveil.pages.reading import decimals, expected_error_bar_sentence, one_line, readings, split_sentences
from crowdveil.pages.sections import ReleaseView, sections
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.protocol.questions import host_words
from crowdveil.releases import Release
from crowdveil.service.groupings import grouping_questions
from crowdveil.service.host.progress import told_line_by_line
from crowdveil.service.host.request import PLACE, HostRequest, Missing, attachment, minute
from crowdveil.service.poll import HostedPoll
from crowdveil.service.poll_effects import why_not
from crowdveil.service.poll_release import Tell, make_release, preview_release
from crowdveil.service.store.audit_log import LogEntry
from crowdveil.service.store.releases import StoredRelease

PAIR_WIDTH = 240.0
PAIR_HEIGHT = 28.0
PAIR_MARGIN = 6.0
"""Of the picture of one feature in two releases."""


def releases_page(request: HostRequest) -> Response:
    """List a poll's releases and what they cost, with the form for a new one."""
    status = request.poll_status()
    name = status.poll.name
    effects = [(stored, stored.read()) for stored in request.store.effects.all(name)]
    return request.show(
        "releases.html",
        poll=status.poll,
        tab="releases",
        status=status,
        made=[(stored, stored.read(), _made_at(stored)) for stored in request.store.releases.all(name)],
        account=request.store.releases.account(name),
        effects=effects,
        effect_ids={stored.id for stored, _ in effects},
        groupings=[(question.id, host_words(question.text)) for question in grouping_questions(status.poll)],
        without_effects=why_not(status.poll, grouped=False),
        without_groups=why_not(status.poll, grouped=True),
    )


def preview(request: HostRequest) -> Response:
    """Show what a release would cost and tell. Nothing is spent."""
    poll = request.poll_status().poll
    epsilon = _epsilon(poll, request.form.get("epsilon", ""))
    previewed = preview_release(request.store, poll.name, epsilon)
    return request.show(
        "preview.html",
        poll=poll,
        tab="releases",
        epsilon=epsilon,
        preview=previewed,
        spent=spent_so_far(request, poll),
        account=request.store.releases.account(poll.name),
        mechanism=mechanism_words(poll.mechanism),
        error_bar=expected_error_bar_sentence(previewed.noise, poll.settings.robust),
        split=split_sentences(previewed.split, poll.paradigm.place),
    )


def release(request: HostRequest) -> Response:
    """Make the release that was previewed. A form that is sent twice makes one release, and pays for one."""
    made = _make(request, None)
    request.remarks.append(made.id)
    return request.go(f"/releases/{made.id}")


def release_with_progress(request: HostRequest) -> Response:
    """Make the release as ``release`` does, and tell how far it is."""
    status = request.poll_status()

    def work(tell: Tell) -> dict[str, str]:
        made = _make(request, tell)
        entry = LogEntry(request.pages.now(), str(request.host), "made a release", status.poll.name, made.id)
        request.store.audit_log.add(entry)
        return {"to": f"{PLACE}/releases/{made.id}"}

    return told_line_by_line(work, status.participants)


def _make(request: HostRequest, tell: Tell | None) -> StoredRelease:
    poll = request.poll_status().poll
    epsilon = _epsilon(poll, request.form.get("epsilon", ""))
    with request.pages.one_release:
        if request.form.get("spent", "") != spent_so_far(request, poll):
            raise CrowdveilError(
                f"another release of poll {poll.name} was made in the meantime, and this one was not: "
                "see the list of releases, and look again at what a new one would cost"
            )
        made = make_release(request.store, poll.name, request.pages.today(), epsilon, tell)
    if request.store.releases.get(made.id) == made:  # Not one that was there before, from the same reports.
        _describe(request, made.id, request.pages.now())
    return made


def describe_release(request: HostRequest) -> Response:
    """Change the name and the note of a release, which only hosts see."""
    stored = _stored(request, request.path("release"))
    _describe(request, stored.id)
    return request.go(f"/releases/{stored.id}")


def _describe(request: HostRequest, release: str, made_at: int | None = None) -> None:
    name, note = request.form.get("name", "").strip(), request.form.get("note", "").strip()
    request.store.releases.describe(release, name, note, made_at)


def release_page(request: HostRequest) -> Response:
    """Show a release: its picture with error bars and its table, what it promises, where it is from."""
    stored = _stored(request, request.path("release"))
    made = stored.read()
    return request.show(
        "release.html",
        stored=stored,
        release=made,
        made_at=_made_at(stored),
        body=_parts(made),
        tab="releases",
        poll=_poll(request, stored),
    )


def mark_release(request: HostRequest) -> Response:
    """Let decisions use a release from now on, or the newest again."""
    status = request.poll_status()
    request.store.polls.mark_release(status.poll.name, request.form.get("release") or None)
    return request.go(f"/polls/{status.poll.name}/releases")


def release_file(request: HostRequest) -> Response:
    """Send the release file."""
    stored = _stored(request, request.path("release"))
    return attachment(stored.file, f"{stored.poll}-release-{stored.id[:8]}.json", "application/json")


def compare_page(request: HostRequest) -> Response:
    """Show two releases of one poll side by side."""
    poll = request.poll_status().poll
    first, second = (_stored(request, request.http.query_params.get(which, "")) for which in ("first", "second"))
    if {first.poll, second.poll} != {poll.name}:
        raise CrowdveilError(f"choose two releases of poll {poll.name}")
    one, other = first.read(), second.read()
    return request.show(
        "compare.html",
        poll=poll,
        tab="releases",
        first=(first, one),
        second=(second, other),
        rows=compare(one, other),
        places=max(decimals(readings(one)), decimals(readings(other))),
    )


@dataclass(frozen=True)
class FeatureChange:
    """One feature in two releases."""

    label: str
    first: float
    first_bar: float
    second: float
    second_bar: float
    picture: Markup

    @property
    def change(self) -> float:
        """From the first to the second."""
        return self.second - self.first

    @property
    def moved(self) -> bool:
        """Whether the error bars are apart: the change is larger than both together.

        Each error bar holds with 95 % probability, so both do with 90 % or more, whether or not the two errors have
        something in common.
        """
        return abs(self.change) > self.first_bar + self.second_bar


def compare(first: Release, second: Release) -> list[FeatureChange]:
    """Compare two releases of one study, the largest change first."""
    if first.study.fingerprint != second.study.fingerprint:
        raise CrowdveilError("these two releases are of different studies, which have nothing to compare")
    rows = list(
        zip(
            (one_line(feature.label) for feature in first.study.features),
            first.parameter.tolist(),
            first.error_bars.tolist(),
            second.parameter.tolist(),
            second.error_bars.tolist(),
            strict=True,
        )
    )
    ends = [
        value + sign * bar
        for _, a, a_bar, b, b_bar in rows
        for value, bar in ((a, a_bar), (b, b_bar))
        for sign in (-1, 1)
    ]
    low = min(0.0, *ends)
    high = max(0.0, *ends)
    scale = (PAIR_WIDTH - 2 * PAIR_MARGIN) / (high - low or 1.0)
    made = [FeatureChange(*row, _picture(row[1:], low, scale)) for row in rows]
    return sorted(made, key=lambda row: -abs(row.change))


def _picture(values: tuple[float, float, float, float], low: float, scale: float) -> Markup:
    """Draw both error bars over one another, on the scale that all rows share. The numbers stand beside it."""

    def at(value: float) -> float:
        return PAIR_MARGIN + (value - low) * scale

    first, first_bar, second, second_bar = values
    bars = "".join(
        f'<line class="{kind}" x1="{at(value - bar):.1f}" x2="{at(value + bar):.1f}" y1="{y}" y2="{y}"/>'
        f'<circle class="{kind}" cx="{at(value):.1f}" cy="{y}" r="4"/>'
        for kind, value, bar, y in (("first", first, first_bar, 9), ("second", second, second_bar, 19))
    )
    zero = f'<line class="zero" x1="{at(0):.1f}" x2="{at(0):.1f}" y1="0" y2="{PAIR_HEIGHT:g}"/>'
    return Markup(
        f'<svg class="pair" viewBox="0 0 {PAIR_WIDTH:g} {PAIR_HEIGHT:g}" aria-hidden="true">{zero}{bars}</svg>'
    )


def presented(html: str) -> Markup:
    """Turn the style attributes of a drawing into attributes of its own.

    They mean the same to SVG, and the page's Content-Security-Policy allows no style inside the page. Words from files
    are escaped in these parts, so that what looks like a style attribute is one.
    """
    return Markup(_STYLE.sub(_as_attributes, html))


_STYLE = re.compile(r' style="([^"]*)"')


def _as_attributes(match: re.Match[str]) -> str:
    pairs = (part.split(":", 1) for part in match[1].split(";") if part.strip())
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs)


def _parts(made: Release) -> Markup:
    return presented(sections(ReleaseView(made, "release", None, f"release-{made.digest[:8]}.json"), level=2))


def _made_at(stored: StoredRelease) -> str:
    """Return when a release was made: to the minute (UTC) where that is known, else the day."""
    return str(stored.made_on) if stored.made_at is None else minute(stored.made_at)


def _poll(request: HostRequest, stored: StoredRelease) -> HostedPoll:
    return request.store.polls.known(stored.poll)


def _stored(request: HostRequest, id: str) -> StoredRelease:
    found = request.store.releases.get(id)
    if found is None:
        raise Missing(f"there is no release {id!r}: see the list of a poll's releases")
    return found


def _epsilon(poll: HostedPoll, given: str) -> Epsilon | None:
    return None if poll.distributed else Epsilon(given.strip())


def spent_so_far(request: HostRequest, poll: HostedPoll) -> str:
    """Return what has been spent so far, by which a form knows whether it is still the newest."""
    account = request.store.releases.account(poll.name)
    return "" if account is None else str(account.spent)
