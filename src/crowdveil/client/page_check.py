"""Does a website serve the voter's page that crowdveil ships, byte for byte?

A voter in a distributed poll has to trust the page that runs on the device, and a server could serve another one.
Whoever watches can compare what is served with what is installed. It is evidence, not proof: a server may show one
page to whoever watches and another one to a voter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import httpx

from crowdveil.client.connection import Connection, Unreachable
from crowdveil.errors import CrowdveilError
from crowdveil.protocol.voters_page import voters_page


@dataclass(frozen=True)
class PageCheck:
    """The files that were compared, and those that are not as they should be."""

    same: tuple[str, ...]
    different: tuple[str, ...]
    """Paths on the website whose content is not that of the installed crowdveil."""
    fingerprint: str | None
    """Of a poll with a relay: of the key that reports are sealed to, which stands in the poll's address."""


def check_page(http: httpx.Client, url: str, poll: str) -> PageCheck:
    """Fetch the voter's page of a poll with all its modules, and compare each with the installed one."""
    same: list[str] = []
    different: list[str] = []
    for path, expected in _shipped(poll):
        try:
            answer = http.get(url.rstrip("/") + path)
        except httpx.TransportError as error:
            raise Unreachable(f"cannot reach {url} ({error})") from None
        if answer.status_code == 404 and not path.startswith("/web/"):
            raise CrowdveilError(f"{url} has no poll {poll!r}")
        (same if answer.is_success and answer.content == expected else different).append(path)
    return PageCheck(tuple(same), tuple(different), _fingerprint(http, url, poll))


def _fingerprint(http: httpx.Client, url: str, poll: str) -> str | None:
    """Return the fingerprint of the key that the website tells, computed here, where the poll has a relay."""
    described = Connection(http).ask("GET", f"{url.rstrip('/')}/api/polls/{quote(poll, safe='')}")
    if described.get("relay") is None:
        return None
    from crowdveil.protocol.relay import KeyConfiguration

    return KeyConfiguration.from_dict(described["relay"]["configuration"]).fingerprint


def _shipped(poll: str) -> Iterator[tuple[str, bytes]]:
    """Walk the page and everything that it can load, with the path that it is served at."""
    page = voters_page()
    yield f"/p/{quote(poll, safe='')}/", page.html
    for path, content in page.files.items():
        yield page.address(path), content
