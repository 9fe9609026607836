"""A check that a website serves the voter's page that crowdveil ships, byte for byte.

A voter in a distributed poll has to trust the page that runs on her device, and a server could serve another one.
Anybody can compare the served page with the installed one. The check is evidence, not proof: a server may show one page
to somebody who checks and another to a voter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from crowdveil.client.client import Connection, Unreachable, website
from crowdveil.errors import CrowdveilError
from crowdveil.protocol.voters_page import SocialPreview, origin_of, voters_page


@dataclass(frozen=True)
class PageCheck:
    """The files that were compared: those that are the same, and those that differ."""

    same: tuple[str, ...]
    different: tuple[str, ...]
    """Paths on the website whose content differs from the installed crowdveil."""
    fingerprint: str | None
    """Fingerprint of the key that reports are sealed to, if the poll has a relay. The poll's address contains it."""


def check_page(http: httpx.Client, url: str, poll: str) -> PageCheck:
    """Fetch the voter's page of a poll with all its modules, and compare each with the installed one."""
    website(url)
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
    """Build the page of a poll from the title and question in its description."""
    study = described["study"]
    origin = origin_of(served)
    if origin is None:
        return voters_page().html()
    languages = tuple(described["languages"])
    return voters_page().html(SocialPreview(described["id"], study["title"], study["question"], origin, languages))


def _fingerprint(described: Mapping[str, Any]) -> str | None:
    """Compute the fingerprint of the key that the website publishes, if the poll has a relay."""
    if described.get("relay") is None:
        return None
    from crowdveil.protocol.relay import KeyConfiguration

    return KeyConfiguration.from_dict(described["relay"]["configuration"]).fingerprint


def _shipped(poll: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield the path and content of the page and of every file that it can load.

    The page's content is None because it depends on the poll.
    """
    page = voters_page()
    yield f"/p/{quote(poll, safe='')}/", None
    for path, content in page.files.items():
        yield page.address(path), content
