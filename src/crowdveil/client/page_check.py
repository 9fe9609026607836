"""A check that a website serves the voter's page that crowdveil ships, byte for byte.

A voter in a distributed poll has to trust the page that runs on her device, and a server could serve another one.
Anybody can compare the served page with the installed one. The check is evidence, not proof: a server may show one page
to somebody who checks and another to a voter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from crowdveil.client.client import Connection, Unreachable, website
from crowdveil.errors import CrowdveilError
from crowdveil.protocol.voters_page import SocialPreview, origin_of, voters_page

_MODULES = re.compile(rb"/web/([0-9a-f]{20})/")
"""The address of the modules, as a page names it."""


@dataclass(frozen=True)
class PageCheck:
    """The files that were compared: those that are the same, and those that differ."""

    same: tuple[str, ...]
    different: tuple[str, ...]
    """Paths on the website whose content differs from the installed crowdveil."""
    fingerprint: str | None
    """Fingerprint of the key that reports are sealed to, if the poll has a relay. The poll's address contains it."""


def check_page(http: httpx.Client, url: str, poll: str) -> PageCheck:
    """Fetch the voter's page of a poll with all its modules, and compare each with the installed one.

    A page that differs may name another address for its modules: then they are compared there, so that only those are
    named that differ. Of a page that is the same, they stand at the installed page's address, whatever else it says.
    """
    website(url)
    root = url.rstrip("/")
    place = f"/p/{quote(poll, safe='')}/"
    served = _get(http, root, place)
    if served.status_code == 404:
        raise CrowdveilError(f"{url} has no poll {poll!r}")
    described = Connection(http).ask("GET", f"{root}/api/polls/{quote(poll, safe='')}")
    same_page = served.is_success and served.content == _page(served.content, described)
    compared = {place: same_page}
    page = voters_page()
    named = None if same_page else _MODULES.search(served.content)
    digest = page.digest if named is None else named[1].decode()
    for path, content in page.files.items():
        at = f"/web/{digest}/{path}"
        answer = _get(http, root, at)
        compared[at] = answer.is_success and answer.content == content
    same, different = (tuple(at for at, alike in compared.items() if alike is wanted) for wanted in (True, False))
    return PageCheck(same, different, _fingerprint(described))


def _get(http: httpx.Client, root: str, path: str) -> httpx.Response:
    try:
        return http.get(root + path)
    except httpx.TransportError as error:
        raise Unreachable(f"cannot reach {root} ({error})") from None


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
