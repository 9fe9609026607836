"""A poll's life after it is made: tried out, opened, put away, deleted."""

from __future__ import annotations

from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.service.host.request import HostRequest

COUNTED = {
    "report": "reports",
    "ballot": "ballots with exact answers",
    "link": "links",
    "withdrawal": "withdrawals",
    "release": "releases, which programs that decide by them will no longer find",
    "charge": "entries of the budget ledger",
}
"""The tables that a host is told of before a poll is deleted."""


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
