"""Pages for releases and effects of a poll: previewing, making and showing them, and comparing two releases.

While one is made, the page receives line by line how many voters were read, and finally the result.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from markupsafe import Markup
from starlette.responses import Response, StreamingResponse

from crowdveil.effect_release import EffectsRelease
from crowdveil.errors import CrowdveilError
from crowdveil.pages.feature_estimates import (
    decimals,
    expected_error_bar_sentence,
    feature_estimates,
    one_line,
    split_sentences,
)
from crowdveil.pages.plain_words import mechanism_words
from crowdveil.privacy.epsilon import Amount, Epsilon
from crowdveil.protocol.questions import host_words
from crowdveil.releases import Release
from crowdveil.service.host.request import PLACE, HostRequest, NotFound, attachment, minute, sentence
from crowdveil.service.poll import HostedPoll, grouping_questions
from crowdveil.service.poll_release import (
    CountCallback,
    make_effects,
    make_release,
    preview_poll_effects,
    preview_release,
    why_not,
)
from crowdveil.service.public.result import effects_in_words
from crowdveil.service.public.words import words_of
from crowdveil.service.server import log_failure
from crowdveil.service.store.hosts import LogEntry
from crowdveil.service.store.releases import PollBudget, StoredEffects, StoredRelease, outdated
from crowdveil.study.translations import OWN_LANGUAGE

PAIR_WIDTH = 240.0
PAIR_HEIGHT = 28.0
PAIR_MARGIN = 6.0
"""Margin of the picture of one feature in two releases."""
_STYLE = re.compile(r' style="([^"]*)"')


def releases_page(request: HostRequest) -> Response:
    """List a poll's releases and their costs, with the form for a new one."""
    status = request.poll_status()
    name = status.poll.name
    made_effects = [(stored, stored.read()) for stored in request.store.effects.all(name)]
    return request.show(
        "releases.html",
        poll=status.poll,
        tab="releases",
        status=status,
        made=[(stored, stored.read(), _made_at(stored)) for stored in request.store.releases.all(name)],
        account=request.store.releases.account(name),
        effects=made_effects,
        effect_ids={stored.id for stored, _ in made_effects},
        groupings=[(question.id, host_words(question.text)) for question in grouping_questions(status.poll)],
        without_effects=why_not(status.poll, grouped=False),
        without_groups=why_not(status.poll, grouped=True),
    )


def preview(request: HostRequest) -> Response:
    """Show what a release would cost and how accurate it would be. Nothing is spent."""
    poll = request.poll_status().poll
    epsilon = _epsilon(request, poll)
    previewed = preview_release(request.store, poll.name, epsilon)
    account = request.store.releases.account(poll.name)
    return request.show(
        "preview.html",
        poll=poll,
        tab="releases",
        epsilon=epsilon,
        preview=previewed,
        spent=_spent_so_far(account),
        account=account,
        mechanism=mechanism_words(poll.mechanism),
        error_bar=expected_error_bar_sentence(previewed.noise, poll.settings.robust),
        split=split_sentences(previewed.split, poll.paradigm.place),
    )


def release(request: HostRequest) -> Response:
    """Make the previewed release. A form that is sent twice makes one release, and pays for one."""
    return _made(request, _release(request, None))


def release_with_progress(request: HostRequest) -> Response:
    """Make the release as ``release`` does, and report progress."""
    return _with_progress(request, "made a release", _release)


def preview_effects(request: HostRequest) -> Response:
    """Show what effects would cost and how accurate they would be. Nothing is spent."""
    poll = request.poll_status().poll
    by = _grouping(request)
    epsilon = _epsilon(request, poll)
    account = request.store.releases.account(poll.name)
    return request.show(
        "effects_preview.html",
        poll=poll,
        tab="releases",
        epsilon=epsilon,
        preview=preview_poll_effects(request.store, poll.name, by, epsilon),
        question=next((host_words(one.text) for one in poll.questions if one.id == by), None),
        spent=_spent_so_far(account),
        account=account,
    )


def effects(request: HostRequest) -> Response:
    """Make the previewed effects. A form that is sent twice makes them once, and pays once."""
    return _made(request, _effects(request, None))


def effects_with_progress(request: HostRequest) -> Response:
    """Make the effects as ``effects`` does, and report progress."""
    return _with_progress(request, "made effects", _effects)


def _release(request: HostRequest, tell: CountCallback | None) -> StoredRelease:
    poll = request.poll_status().poll
    epsilon = _epsilon(request, poll)
    with _one_at_a_time(request, poll) as spent:
        made = make_release(request.store, poll.name, request.pages.today(), epsilon, tell, spent)
    stored = _stored(request, made.id)
    if stored.poll == poll.name:  # Leaves alone an identical release of another poll.
        name, note = _name_and_note(request)  # Made again without them, a release keeps its own.
        request.store.releases.describe(made.id, name or stored.name, note or stored.note, request.pages.now())
    return made


def _effects(request: HostRequest, tell: CountCallback | None) -> StoredEffects:
    poll = request.poll_status().poll
    epsilon = _epsilon(request, poll)
    with _one_at_a_time(request, poll) as spent:
        return make_effects(request.store, poll.name, request.pages.today(), _grouping(request), epsilon, tell, spent)


@contextmanager
def _one_at_a_time(request: HostRequest, poll: HostedPoll) -> Iterator[Amount | None]:
    """Wait for a turn, and yield the amount spent; refuse a form that showed another one.

    Another process may spend at the same time. So the charge itself is made only while this amount has been spent.
    """
    with request.pages.one_release:
        account = request.store.releases.account(poll.name)
        if request.form.get("spent", "") != _spent_so_far(account):
            raise outdated(poll.name)
        yield None if account is None else account.spent


def _made(request: HostRequest, made: StoredRelease | StoredEffects) -> Response:
    request.remarks.append(made.id)
    return request.go(_path(made))


def _path(made: StoredRelease | StoredEffects) -> str:
    return f"/{'releases' if isinstance(made, StoredRelease) else 'effects'}/{made.id}"


def _with_progress(
    request: HostRequest, action: str, make: Callable[[HostRequest, CountCallback], StoredRelease | StoredEffects]
) -> Response:
    """Make a release or effects in a thread, and send a line of JSON for each step and one for the end.

    The work continues if the browser disconnects: what was paid for is stored.
    """
    status = request.poll_status()
    lines: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def run() -> None:
        try:
            made = make(request, lambda read: lines.put({"read": read, "of": status.participants}))
            entry = LogEntry(request.pages.now(), str(request.host), action, status.poll.name, made.id)
            request.store.audit_log.add(entry)
            lines.put({"done": {"to": f"{PLACE}{_path(made)}"}})
        except CrowdveilError as error:
            lines.put({"wrong": sentence(str(error))})
        except Exception as error:
            log_failure(error)
            lines.put({"wrong": "An error in the service, which has been logged."})

    def tell() -> Iterator[str]:
        threading.Thread(target=run, daemon=True).start()
        while True:
            line = lines.get()
            yield json.dumps(line) + "\n"
            if "read" not in line:
                return

    return StreamingResponse(tell(), media_type="application/x-ndjson", headers={"Cache-Control": "no-store"})


def describe_release(request: HostRequest) -> Response:
    """Change the name and the note of a release, which only hosts see."""
    stored = _stored(request, request.path("release"))
    request.store.releases.describe(stored.id, *_name_and_note(request))
    return request.go(f"/releases/{stored.id}")


def _name_and_note(request: HostRequest) -> tuple[str, str]:
    return request.form.get("name", "").strip(), request.form.get("note", "").strip()


def release_page(request: HostRequest) -> Response:
    """Show a release: its picture with error bars, its table, its promise and its origin."""
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


def effects_page(request: HostRequest) -> Response:
    """Show effects: their picture and table, the differences between groups, and the promise."""
    from crowdveil.pages.effects_page import effects_section, groups_section, promise_section

    stored = _stored_effects(request)
    poll = request.store.polls.known(stored.poll)
    made = stored.read()
    shown = effects_in_words(made.effects, poll, words_of(OWN_LANGUAGE))
    parts = [effects_section(shown), groups_section(shown), promise_section(made)]
    return request.show(
        "effects.html",
        poll=poll,
        tab="releases",
        stored=stored,
        release=made,
        question=shown.question,
        notes=_notes(made),
        body=_presented("\n".join(parts)),
    )


def effects_file(request: HostRequest) -> Response:
    """Send the file of effects, or its table."""
    stored = _stored_effects(request)
    name = f"{stored.poll}-effects-{stored.id[:8]}"
    if request.path("file") == "table.csv":
        return attachment(stored.read().to_polars().write_csv(), f"{name}.csv", "text/csv")
    return attachment(stored.file, f"{name}.json", "application/json")


def _notes(made: EffectsRelease) -> list[Markup]:
    """Return notes on how the groups and effects were obtained, and what this means for them."""
    notes = []
    if "groups_reported_at" in made.facts:
        notes.append(
            Markup(
                "Voters’ devices may have reported another answer than the true one ({}). So every voter counts in "
                "every group, and the intervals of groups are much wider than those of everybody."
            ).format(made.facts["groups_reported_at"])
        )
    if "read_from" in made.facts:
        notes.append(Markup("The reports name no dilemmas: effects are read from {}.").format(made.facts["read_from"]))
    return notes


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
        places=max(decimals(feature_estimates(one)), decimals(feature_estimates(other))),
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
    known: bool = True
    """Whether anything is known about the feature: the study's dilemmas differ in it."""

    @property
    def change(self) -> float:
        """The difference from the first to the second."""
        return self.second - self.first

    @property
    def moved(self) -> bool:
        """Whether the error bars do not overlap: the change is larger than both together.

        Each error bar holds with 95 % probability, so both hold with 90 % or more, whether or not the two errors are
        dependent.
        """
        return self.known and abs(self.change) > self.first_bar + self.second_bar


def compare(first: Release, second: Release) -> list[FeatureChange]:
    """Compare two releases of one study, the largest change first."""
    if first.study.fingerprint != second.study.fingerprint:
        raise CrowdveilError("these two releases are of different studies and cannot be compared")
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
    known = (first.features_known & second.features_known).tolist()
    made = [
        FeatureChange(*row, _picture(row[1:], low, scale) if told else Markup(), told)
        for row, told in zip(rows, known, strict=True)
    ]
    return sorted(made, key=lambda row: -abs(row.change))


def _picture(values: tuple[float, float, float, float], low: float, scale: float) -> Markup:
    """Draw both error bars, one above the other, on the scale that all rows share. The numbers are beside it."""

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


def _presented(html: str) -> Markup:
    """Turn the style attributes of a drawing into presentation attributes.

    They mean the same in SVG, and the page's Content-Security-Policy allows no inline styles. Text from files is
    escaped in these parts, so anything that looks like a style attribute is one.
    """
    return Markup(_STYLE.sub(_as_attributes, html))


def _as_attributes(match: re.Match[str]) -> str:
    pairs = (part.split(":", 1) for part in match[1].split(";") if part.strip())
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs)


def _parts(made: Release) -> Markup:
    from crowdveil.pages.sections import ReleaseView, sections  # loads matplotlib, so only when needed

    return _presented(sections(ReleaseView(made, "release", None, f"release-{made.digest[:8]}.json"), level=2))


def _made_at(stored: StoredRelease) -> str:
    """Return the time when a release was made: to the minute (UTC) if known, else the day."""
    return str(stored.made_on) if stored.made_at is None else minute(stored.made_at)


def _poll(request: HostRequest, stored: StoredRelease) -> HostedPoll:
    return request.store.polls.known(stored.poll)


def _stored(request: HostRequest, id: str) -> StoredRelease:
    found = request.store.releases.get(id)
    if found is None:
        raise NotFound(f"there is no release {id!r}: see the list of a poll's releases")
    return found


def _stored_effects(request: HostRequest) -> StoredEffects:
    found = request.store.effects.get(request.path("effects"))
    if found is None:
        raise NotFound(f"there are no effects {request.path('effects')!r}: see the list of a poll's releases")
    return found


def _grouping(request: HostRequest) -> str | None:
    return request.form.get("by", "") or None


def _epsilon(request: HostRequest, poll: HostedPoll) -> Epsilon | None:
    return None if poll.distributed else Epsilon(request.form.get("epsilon", "").strip())


def _spent_so_far(account: PollBudget | None) -> str:
    """Return the amount spent so far, which shows whether a form is outdated."""
    return "" if account is None else str(account.spent)
