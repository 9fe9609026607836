"""Inviting voters, and letting them go: links for recruitment, and deletion on withdrawal."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

import segno
from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.protocol.submission import is_token, report_id
from crowdveil.service.host.request import HostRequest, attachment, qr_code
from crowdveil.service.poll import HostedPoll

MOST_LINKS = 10_000
SERVICES = {
    "Prolific": "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}",
    "Amazon Mechanical Turk": "workerId=${workerId}&assignmentId=${assignmentId}&hitId=${hitId}",
}
"""The parameters that recruitment services fill in. The page does not read them, and nothing keeps them."""
_REPORT_ID = re.compile(r"[0-9a-f]{32}")


def recruit_page(request: HostRequest) -> Response:
    """Show how voters get in."""
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
    """Say why voters elsewhere cannot come, or should not have to, by the website's address."""
    host = urlsplit(origin).hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        return "This address leads to this machine only: nobody else can open it. Set public_url to the voters' one."
    if not origin.startswith("https://"):
        return (
            "Voters come without https: whoever is on the way sees and can change what is sent. Put a proxy in front."
        )
    return None


def qr_picture(request: HostRequest) -> Response:
    """Send the QR code of the voters' address as a file, to print."""
    poll = request.poll_status().poll
    drawn = io.BytesIO()
    segno.make(_address(request, poll), error="m").save(drawn, kind="svg", scale=10, border=4)
    return attachment(drawn.getvalue(), f"{poll.name}-qr.svg", "image/svg+xml")


def make_links(request: HostRequest) -> Response:
    """Make links and send them as a file. This is the only time that they can be seen: the server keeps no token."""
    poll = request.poll_status().poll
    wanted = request.form.get("number", "").strip()
    if not wanted.isdecimal() or not 1 <= int(wanted) <= MOST_LINKS:
        raise CrowdveilError(f"{wanted!r} links were asked for: ask for a whole number from 1 to {MOST_LINKS:,}")
    tokens = request.store.submissions.create_links(poll.name, int(wanted))
    return attachment(links_file(request.origin, poll.name, tokens), f"{poll.name}-links.csv", "text/csv")


def links_file(origin: str, poll: str, tokens: Sequence[str]) -> str:
    """Write voters' links as CSV. The token stands after #, which no browser sends to a server."""
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["report", "link"])
    rows.writerows([report_id(token), f"{origin}/p/{poll}/#ballot={token}"] for token in tokens)
    return text.getvalue()


def withdraw(request: HostRequest) -> Response:
    """Delete a voter's report or ballot, named by its report id or by the voter's own token."""
    poll = request.poll_status().poll
    given = request.form.get("report", "").strip()
    report = report_id(given) if is_token(given) else given.lower()
    if not _REPORT_ID.fullmatch(report):
        raise CrowdveilError("a report id has 32 digits from 0 to f: it is on the voter's receipt")
    if not request.store.submissions.withdraw(poll.name, report):
        raise CrowdveilError(
            f"nothing is stored under the report id {report}: it was never sent, or is deleted already"
        )
    return request.show("withdrawn.html", poll=poll, tab="data", report=report)
