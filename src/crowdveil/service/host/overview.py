"""A host's pages about a poll: its state, from its trial to its deletion, and how voters are invited and withdraw."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

import segno
from starlette.responses import Response

from crowdveil.errors import CrowdveilError, plural
from crowdveil.pages.plain_words import paradigm_title, protected_words, trusted_words
from crowdveil.protocol.description import relayed_promise
from crowdveil.protocol.submission import is_token, report_id
from crowdveil.service.host.measured import measured_words
from crowdveil.service.host.participation import about_tallies, attention_tally, poll_activity, state_words
from crowdveil.service.host.request import HostRequest, attachment, qr_code
from crowdveil.service.host.study_form import whole
from crowdveil.service.poll import HostedPoll
from crowdveil.service.public.result import Result, read_result
from crowdveil.service.public.words import words_of
from crowdveil.service.store.polls import PollStatus
from crowdveil.study.translations import OWN_LANGUAGE

COUNTED = {
    "report": ("report", "reports"),
    "ballot": ("ballot with exact answers", "ballots with exact answers"),
    "link": ("link", "links"),
    "withdrawal": ("withdrawal", "withdrawals"),
    "release": (
        "release, which programs that use it for decisions will no longer find",
        "releases, which programs that use them for decisions will no longer find",
    ),
    "charge": ("entry of the budget ledger", "entries of the budget ledger"),
}
"""The tables that a host is told about before a poll is deleted: what one row is, and what several are."""
MOST_LINKS = 10_000
SERVICES = {
    "Prolific": "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}",
    "Amazon Mechanical Turk": "workerId=${workerId}&assignmentId=${assignmentId}&hitId=${hitId}",
}
"""The parameters that recruitment services fill in. The page does not read them, and nothing stores them."""
_REPORT_ID = re.compile(r"[0-9a-f]{32}")


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
        live=poll_activity(request, status),
        result=_result(request, status),
        tallies=about_tallies(status.poll, said),
        attention=attention_tally(status.poll, said),
        account=request.store.releases.account(status.poll.name),
        batches=request.store.batches.sizes(status.poll.name),
        relayed=None if status.poll.relay is None else relayed_promise(status.poll),
        promise=(paradigm_title(paradigm), protected_words(paradigm), trusted_words(paradigm)),
        measured=measured_words(status.poll),
    )


def _result(request: HostRequest, status: PollStatus) -> Result | None:
    """Return the release that decisions use, in words."""
    stored = None if status.current_release is None else request.store.releases.get(status.current_release)
    return None if stored is None else read_result(stored.read(), words_of(OWN_LANGUAGE))


def live_part(request: HostRequest) -> Response:
    """Show the part of the page that changes, so that the page can update itself."""
    status = request.poll_status()
    return request.show("live.html", poll=status.poll, live=poll_activity(request, status))


def close_poll(request: HostRequest) -> Response:
    """Stop accepting answers."""
    name = request.poll_status().poll.name
    request.store.polls.close(name)
    return request.go(f"/polls/{name}")


def open_poll(request: HostRequest) -> Response:
    """Accept answers again."""
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
    """Archive a poll: it is closed and no longer listed. Its results stay where they are."""
    name = request.poll_status().poll.name
    request.store.polls.archive(name)
    return request.go("/")


def unarchive(request: HostRequest) -> Response:
    """Take a poll out of the archive; it stays closed until it is opened."""
    name = request.poll_status().poll.name
    request.store.polls.archive(name, False)
    return request.go(f"/polls/{name}")


def delete_page(request: HostRequest) -> Response:
    """Show what a deletion would delete, without deleting anything."""
    return _before(request)


def delete(request: HostRequest) -> Response:
    """Delete a poll and everything in it, if the host has typed its name."""
    status = request.poll_status()
    if request.form.get("name", "").strip() != status.poll.name:
        return _before(request, f"To delete the poll, type its name, {status.poll.name}. Nothing was deleted.", 400)
    told = request.store.polls.contents(status.poll.name)
    request.store.polls.delete(status.poll.name)
    request.remarks.append(", ".join(f"{told[table]} {plural(told[table], table)}" for table in COUNTED if told[table]))
    return request.go("/")


def _before(request: HostRequest, wrong: str | None = None, code: int = 200) -> Response:
    status = request.poll_status()
    told = request.store.polls.contents(status.poll.name)
    return request.show(
        "delete.html",
        code,
        poll=status.poll,
        tab="overview",
        counted=[(told[table], plural(told[table], *words)) for table, words in COUNTED.items() if told[table]],
        wrong=wrong,
    )


def recruit_page(request: HostRequest) -> Response:
    """Show how to invite voters."""
    poll = request.poll_status().poll
    links = request.store.submissions.links(poll.name)
    beyond = max(0, links - poll.quota) if poll.quota is not None else 0
    address = _address(request, poll)
    page, behind, fragment = address.partition("#")
    return request.show(
        "recruit.html",
        poll=poll,
        tab="recruit",
        links=links,
        beyond=beyond,
        most=MOST_LINKS,
        address=address,
        services={name: f"{page}?{parameters}{behind}{fragment}" for name, parameters in SERVICES.items()},
        picture=qr_code(address),
        unreachable=_unreachable(request.origin),
    )


def _address(request: HostRequest, poll: HostedPoll) -> str:
    return f"{request.origin}{request.store.batches.voters_path(poll)}"


def _unreachable(origin: str) -> str | None:
    """Return why voters elsewhere cannot, or should not, use the website's address; None if they can."""
    host = urlsplit(origin).hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return "This address works only on this machine: nobody else can open it. Set public_url to what voters use."
    if not origin.startswith("https://"):
        return "Voters come without https: anybody in between can read and change what is sent. Put a proxy in front."
    return None


def qr_picture(request: HostRequest) -> Response:
    """Send the QR code of the voters' address as a file, to print."""
    poll = request.poll_status().poll
    drawn = io.BytesIO()
    segno.make(_address(request, poll), error="m").save(drawn, kind="svg", scale=10, border=4)
    return attachment(drawn.getvalue(), f"{poll.name}-qr.svg", "image/svg+xml")


def make_links(request: HostRequest) -> Response:
    """Create links and send them as a file. They are available only this once: the server stores no token."""
    poll = request.poll_status().poll
    wanted = whole(request.form.get("number", "").strip(), "how many links")
    if not 1 <= wanted <= MOST_LINKS:
        raise CrowdveilError(f"{wanted} links were asked for: ask for 1 to {MOST_LINKS:,}")
    tokens = request.store.submissions.create_links(poll.name, wanted)
    return attachment(links_file(request.origin, poll.name, tokens), f"{poll.name}-links.csv", "text/csv")


def links_file(origin: str, poll: str, tokens: Sequence[str]) -> str:
    """Write voters' links as CSV. The token follows the #, and no browser sends that part to a server."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["report", "link"])
    rows.writerows([report_id(token), f"{origin}/p/{poll}/#ballot={token}"] for token in tokens)
    return text.getvalue()


def withdraw(request: HostRequest) -> Response:
    """Delete a voter's report or ballot, given its report id or the voter's own token."""
    poll = request.poll_status().poll
    given = request.form.get("report", "").strip()
    report = report_id(given) if is_token(given) else given.lower()
    if not _REPORT_ID.fullmatch(report):
        raise CrowdveilError("a report id has 32 digits from 0 to f: it is on the voter's receipt")
    if not request.store.submissions.withdraw(poll.name, report):
        raise CrowdveilError(
            f"nothing is stored under the report id {report}: it was never sent, or was deleted already"
        )
    return request.show("withdrawn.html", poll=poll, tab="data", report=report)
