"""Does a website serve the voter's page that crowdveil ships, byte for byte?

A voter in a distributed poll has to trust the page that runs on the device, and a server could serve another one.
Whoever watches can compare what is served with what is installed. It is evidence, not proof: a server may show one
page to whoever watches and another one to a voter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from crowdveil.client.client import Connection, Unreachable
from crowdveil.errors import CrowdveilError
from crowdveil.protocol.voters_page import SocialPreview, origin_of, voters_page


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
    described: Mapping[str, Any] = {}
    for path, expected in _shipped(poll):
        try:
            answer = http.get(url.rstrip("/") + path)
        except httpx.TransportError as error:
            raise Unreachable(f"cannot reach {url} ({error})") from None
        if answer.status_code == 404 and not path.startswith("/web/"):
            raise CrowdveilError(f"{url} has no poll {poll!r}")
        if expected is None:
            described = Connection(http).ask("GET", f"{url.rstrip('/')}/api/polls/{quote(poll, safe='')}")
        as_shipped = answer.content == (expected or _page(answer.content, described))
        (same if answer.is_success and as_shipped else different).append(path)
    return PageCheck(tuple(same), tuple(different), _fingerprint(described))


def _page(served: bytes, described: Mapping[str, Any]) -> bytes:
    """Return the page of a poll with the title and question that its description has, made here."""
    study, origin = described["study"], origin_of(served)
    if origin is None:
        return voters_page().html()
    languages = tuple(described["languages"])
    return voters_page().html(SocialPreview(described["id"], study["title"], study["question"], origin, languages))


def _fingerprint(described: Mapping[str, Any]) -> str | None:
    """Return the fingerprint of the key that the website tells, computed here, where the poll has a relay."""
    if described.get("relay") is None:
        return None
    from crowdveil.protocol.relay import KeyConfiguration

    return KeyConfiguration.from_dict(described["relay"]["configuration"]).fingerprint


def _shipped(poll: str) -> Iterator[tuple[str, bytes | None]]:
    """Walk the page (None: it tells of its poll) and everything that it can load, with the path it is served at."""
    page = voters_page()
    yield f"/p/{quote(poll, safe='')}/", None
    for path, content in page.files.items():
        yield page.address(path), content
