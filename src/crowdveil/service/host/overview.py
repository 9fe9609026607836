"""A host's view of a poll and of its life: tried out, opened and closed, put away, deleted."""

from __future__ import annotations

from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.pages.plain_words import paradigm_title, protected_words, trusted_words
from crowdveil.protocol.description import relayed_promise
from crowdveil.service.host.participation import about_tallies, attention_tally, live, state_words
from crowdveil.service.host.request import HostRequest
from crowdveil.service.public.result import Result, read_result
from crowdveil.service.public.words import words_of
from crowdveil.service.store.polls import PollStatus
from crowdveil.study.translations import OWN_LANGUAGE

COUNTED = {
    "report": "reports",
    "ballot": "ballots with exact answers",
    "link": "links",
    "withdrawal": "withdrawals",
    "release": "releases, which programs that decide by them will no longer find",
    "charge": "entries of the budget ledger",
}
"""The tables that a host is told of before a poll is deleted."""


def polls_page(request: HostRequest) -> Response:
    """List the polls."""
    polls = [(one, state_words(request, one)) for one in request.store.polls.all()]
    has_password = request.store.hosts.has_password(str(request.host))
    return request.show("polls.html", polls=polls, has_password=has_password, protected_words=protected_words)


def poll_page(request: HostRequest) -> Response:
    """Show one poll."""
    status = request.poll_status()
    paradigm = status.poll.paradigm
    said = request.store.submissions.about_counts(status.poll.name)
    return request.show(
        "poll.html",
        status=status,
        poll=status.poll,
        tab="overview",
        pilots=request.store.submissions.pilots(status.poll.name),
        live=live(request, status),
        result=_result(request, status),
        tallies=about_tallies(status.poll, said),
        attention=attention_tally(status.poll, said),
        account=request.store.releases.account(status.poll.name),
        batches=request.store.batches.sizes(status.poll.name),
        relayed=None if status.poll.relay is None else relayed_promise(status.poll),
        promise=(paradigm_title(paradigm), protected_words(paradigm), trusted_words(paradigm)),
    )


def _result(request: HostRequest, status: PollStatus) -> Result | None:
    """Return what the release that decisions use says, in words."""
    stored = None if status.current_release is None else request.store.releases.get(status.current_release)
    return None if stored is None else read_result(stored.read(), words_of(OWN_LANGUAGE))


def live_part(request: HostRequest) -> Response:
    """Show what changes, for the page to put in place of what it shows."""
    status = request.poll_status()
    return request.show("live.html", poll=status.poll, live=live(request, status))


def close_poll(request: HostRequest) -> Response:
    """Take no more answers."""
    name = request.poll_status().poll.name
    request.store.polls.close(name)
    return request.go(f"/polls/{name}")


def open_poll(request: HostRequest) -> Response:
    """Take answers again."""
    name = request.poll_status().poll.name
    request.store.polls.reopen(name)
    return request.go(f"/polls/{name}")


def end_pilot(request: HostRequest) -> Response:
    """Let votes count from now on."""
    status = request.poll_status()
    if not status.pilot:
        raise CrowdveilError(f"poll {status.poll.name} is not being tried out: its votes count already")
    request.store.polls.end_pilot(status.poll.name)
    return request.go(f"/polls/{status.poll.name}")


def archive(request: HostRequest) -> Response:
    """Put a poll away: it is closed, and no longer listed. Its results stay where they are."""
    name = request.poll_status().poll.name
    request.store.polls.archive(name)
    return request.go("/")


def unarchive(request: HostRequest) -> Response:
    """Take a poll out again; it stays closed until it is opened."""
    name = request.poll_status().poll.name
    request.store.polls.archive(name, False)
    return request.go(f"/polls/{name}")


def delete_page(request: HostRequest) -> Response:
    """Show what a deletion would delete. Nothing is deleted by looking."""
    return _before(request)


def delete(request: HostRequest) -> Response:
    """Delete a poll with everything in it, if the host has typed its name."""
    status = request.poll_status()
    if request.form.get("name", "").strip() != status.poll.name:
        return _before(request, f"To delete the poll, type its name, {status.poll.name}. Nothing was deleted.", 400)
    told = request.store.polls.contents(status.poll.name)
    request.store.polls.delete(status.poll.name)
    request.remarks.append(", ".join(f"{told[table]} {table}s" for table in COUNTED if told[table]))
    return request.go("/")


def _before(request: HostRequest, wrong: str | None = None, code: int = 200) -> Response:
    status = request.poll_status()
    told = request.store.polls.contents(status.poll.name)
    return request.show(
        "delete.html",
        code,
        poll=status.poll,
        tab="overview",
        counted=[(told[table], words) for table, words in COUNTED.items() if told[table]],
        wrong=wrong,
    )
