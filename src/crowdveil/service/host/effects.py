"""Effects of a poll, and results by a question about voters: looking first, making them, and showing them."""

from __future__ import annotations

from markupsafe import Markup
from starlette.responses import Response

from crowdveil.effect_release import EffectsRelease
from crowdveil.errors import CrowdveilError
from crowdveil.pages.effects_page import effects_section, groups_section, promise_section
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.protocol.questions import host_words
from crowdveil.service.groupings import effects_in_words
from crowdveil.service.host.progress import told_line_by_line
from crowdveil.service.host.releases import presented, spent_so_far
from crowdveil.service.host.request import PLACE, HostRequest, Missing, attachment
from crowdveil.service.poll import HostedPoll
from crowdveil.service.poll_effects import make_effects, preview_poll_effects
from crowdveil.service.poll_release import Tell
from crowdveil.service.store.audit_log import LogEntry
from crowdveil.service.store.effects import StoredEffects


def preview(request: HostRequest) -> Response:
    """Show what effects would cost and tell. Nothing is spent."""
    poll = request.poll_status().poll
    by = _by(request)
    epsilon = _epsilon(request, poll)
    return request.show(
        "effects_preview.html",
        poll=poll,
        tab="releases",
        epsilon=epsilon,
        preview=preview_poll_effects(request.store, poll.name, by, epsilon),
        question=next((host_words(one.text) for one in poll.questions if one.id == by), None),
        spent=spent_so_far(request, poll),
        account=request.store.releases.account(poll.name),
    )


def make(request: HostRequest) -> Response:
    """Make the effects that were previewed. A form that is sent twice makes them once, and pays once."""
    made = _make(request, None)
    request.remarks.append(made.id)
    return request.go(f"/effects/{made.id}")


def make_with_progress(request: HostRequest) -> Response:
    """Make the effects as ``make`` does, and tell how far it is."""
    status = request.poll_status()

    def work(tell: Tell) -> dict[str, str]:
        made = _make(request, tell)
        entry = LogEntry(request.pages.now(), str(request.host), "made effects", status.poll.name, made.id)
        request.store.audit_log.add(entry)
        return {"to": f"{PLACE}/effects/{made.id}"}

    return told_line_by_line(work, status.participants)


def effects_page(request: HostRequest) -> Response:
    """Show effects: their picture and table, what differs between groups, and what is promised."""
    stored = _stored(request)
    poll = request.store.polls.known(stored.poll)
    made = stored.read()
    shown = effects_in_words(made.effects, poll)
    parts = [effects_section(shown), groups_section(shown), promise_section(made)]
    return request.show(
        "effects.html",
        poll=poll,
        tab="releases",
        stored=stored,
        release=made,
        question=shown.question,
        notes=_notes(made),
        body=presented("\n".join(parts)),
    )


def effects_file(request: HostRequest) -> Response:
    """Send the file of effects, or its table."""
    stored = _stored(request)
    name = f"{stored.poll}-effects-{stored.id[:8]}"
    if request.path("file") == "table.csv":
        return attachment(stored.read().to_polars().write_csv(), f"{name}.csv", "text/csv")
    return attachment(stored.file, f"{name}.json", "application/json")


def _notes(made: EffectsRelease) -> list[Markup]:
    """Say how groups came to be known, and what that leaves."""
    notes = []
    if "groups_reported_at" in made.facts:
        notes.append(
            Markup(
                "Voters’ devices may have reported another answer than the true one ({}). Every voter counts in every "
                "group then, so intervals of groups are much wider than those of everybody."
            ).format(made.facts["groups_reported_at"])
        )
    if "read_from" in made.facts:
        notes.append(Markup("The reports name no dilemmas: effects are read from {}.").format(made.facts["read_from"]))
    return notes


def _make(request: HostRequest, tell: Tell | None) -> StoredEffects:
    poll = request.poll_status().poll
    with request.pages.one_release:
        if request.form.get("spent", "") != spent_so_far(request, poll):
            raise CrowdveilError(
                f"something else was spent of the budget of poll {poll.name} in the meantime, and these effects were "
                "not made: look again at what they would cost"
            )
        epsilon = _epsilon(request, poll)
        return make_effects(request.store, poll.name, request.pages.today(), _by(request), epsilon, tell)


def _by(request: HostRequest) -> str | None:
    return request.form.get("by", "") or None


def _epsilon(request: HostRequest, poll: HostedPoll) -> Epsilon | None:
    return None if poll.distributed else Epsilon(request.form.get("epsilon", "").strip())


def _stored(request: HostRequest) -> StoredEffects:
    found = request.store.effects.get(request.path("effects"))
    if found is None:
        raise Missing(f"there are no effects {request.path('effects')!r}: see the list of a poll's releases")
    return found
