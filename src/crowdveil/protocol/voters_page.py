"""The voter's page as a server must serve it: its files unchanged, at an address that contains a digest of them.

All files are below one address, ``/web/DIGEST/``, and refer to each other by relative paths. So a browser may keep them
for ever, and nobody runs an old module with a new page. The page itself is ``index.html`` with that address in it, and
with two small files inlined: the style of what is visible first, and the script that requests everything else.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources
from importlib.resources.abc import Traversable

PAGE = "index.html"
_FILES = b"../../web/"
"""Prefix by which the page refers to its files, relative to ``/p/POLL/``."""
_INSIDE = {
    "first.css": (b'<link rel="stylesheet" href="../../web/first.css">', b"<style>", b"</style>"),
    "first.js": (b'<script src="../../web/first.js"></script>', b"<script>", b"</script>"),
}
"""Files that are inlined in the page: the reference to each, and the tags that enclose it instead."""
_HEAD = b"<title>crowdveil</title><!-- what other websites show of the poll -->"
_ADDRESS = re.compile(r'<meta property="og:url" content="(https?://[A-Za-z0-9.:\[\]-]+)/p/')
PREVIEW = (1200, 630)
"""The size at which other websites show a picture of a page."""


@dataclass(frozen=True)
class SocialPreview:
    """The preview that other websites and messengers show for a poll's address: title, question and picture."""

    poll: str
    title: str
    question: str
    origin: str
    """The website's address, https://NAME."""
    languages: tuple[str, ...]
    """The poll's languages, so that the page can request its texts before it has the poll's description."""

    def tags(self) -> str:
        """Return the tags for the page's head (Open Graph, Twitter). They are text: nothing in them is executed."""
        title, question, place = (escape(part) for part in (self.title, self.question, f"{self.origin}/p/{self.poll}/"))
        return (
            f'<title>{title}</title>\n<meta name="description" content="{question}">\n'
            f'<meta property="og:type" content="website">\n<meta property="og:site_name" content="crowdveil">\n'
            f'<meta property="og:title" content="{title}">\n<meta property="og:description" content="{question}">\n'
            f'<meta property="og:url" content="{place}">\n<meta property="og:image" content="{place}picture.png">\n'
            f'<meta property="og:image:width" content="{PREVIEW[0]}">\n'
            f'<meta property="og:image:height" content="{PREVIEW[1]}">\n'
            f'<meta property="og:image:alt" content="{title}">\n'
            '<meta name="twitter:card" content="summary_large_image">\n'
            f'<meta name="languages" content="{escape(",".join(self.languages))}">'
        )


def origin_of(html: bytes) -> str | None:
    """Return the website's address from the preview tags of a served page; None if it has none."""
    found = _ADDRESS.search(html.decode("utf-8", "replace"))
    return None if found is None else found[1]


@dataclass(frozen=True)
class VotersPage:
    """The page and all files that it can load."""

    digest: str
    """Digest of the names and contents of all files."""
    files: Mapping[str, bytes]
    """Path below ``web/`` -> content."""

    def html(self, preview: SocialPreview | None = None) -> bytes:
        """Return the page, which is the same for all polls except for the preview."""
        page = self.files[PAGE]
        for path, (named, opening, closing) in _INSIDE.items():
            page = page.replace(named, opening + self.files[path] + closing)
        page = page.replace(_FILES, _FILES + self.digest.encode() + b"/")
        return page if preview is None else page.replace(_HEAD, preview.tags().encode())

    def inside(self) -> tuple[str, ...]:
        """Return the hashes by which a Content-Security-Policy allows the inlined files."""
        hashes = (hashlib.sha256(self.files[path]).digest() for path in _INSIDE)
        return tuple(f"'sha256-{b64encode(one).decode()}'" for one in hashes)

    def address(self, path: str) -> str:
        """Return the path at which a file is served."""
        return f"/web/{self.digest}/{path}"


@cache
def voters_page() -> VotersPage:
    """Return the page that this version of crowdveil ships."""
    files = dict(sorted(_walk(resources.files("crowdveil").joinpath("web"), "")))
    listed = "".join(f"{hashlib.sha256(content).hexdigest()}  {path}\n" for path, content in files.items())
    return VotersPage(hashlib.sha256(listed.encode()).hexdigest()[:20], files)


def _walk(folder: Traversable, at: str) -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _walk(item, f"{at}{item.name}/")
        else:
            yield f"{at}{item.name}", item.read_bytes()
