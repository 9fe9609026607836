"""The voter's page as a server has to serve it: its files as they are, at an address that names their content.

All files stand below one address, ``/web/DIGEST/``, and name each other relative to themselves: so a browser may keep
them for ever, and nobody runs an old module with a new page. The page itself is ``index.html`` with that address in it,
and with two small files inside of it: the style of what is seen first, and the script that asks for all else.
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
"""How the page names its files, relative to ``/p/POLL/``."""
_INSIDE = {
    "first.css": (b'<link rel="stylesheet" href="../../web/first.css">', b"<style>", b"</style>"),
    "first.js": (b'<script src="../../web/first.js"></script>', b"<script>", b"</script>"),
}
"""Files that stand inside of the page: how it names each of them, and the element that holds it instead."""
_HEAD = b"<title>crowdveil</title><!-- what other websites show of the poll -->"
_ADDRESS = re.compile(r'<meta property="og:url" content="(https?://[A-Za-z0-9.:\[\]-]+)/p/')
PREVIEW = (1200, 630)
"""The size at which other websites show a picture of a page."""


@dataclass(frozen=True)
class SocialPreview:
    """What other websites and messengers show of a poll's address: its title, its question and a picture."""

    poll: str
    title: str
    question: str
    origin: str
    """The website's address, https://NAME."""
    languages: tuple[str, ...]
    """Those that the poll speaks: so the page asks for its words before it has heard of the poll."""

    def tags(self) -> str:
        """Return the tags of the page's head (Open Graph, Twitter). They are words: nothing in them is run."""
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
    """Return the website's address as a served page tells it to others; None where it tells none."""
    found = _ADDRESS.search(html.decode("utf-8", "replace"))
    return None if found is None else found[1]


@dataclass(frozen=True)
class VotersPage:
    """The page and all that it can load."""

    digest: str
    """Of the names and contents of all files."""
    files: Mapping[str, bytes]
    """Path below ``web/`` -> content."""

    def html(self, preview: SocialPreview | None = None) -> bytes:
        """Return the page, which is the same for all polls but for what other websites show of it."""
        page = self.files[PAGE]
        for path, (named, opening, closing) in _INSIDE.items():
            page = page.replace(named, opening + self.files[path] + closing)
        page = page.replace(_FILES, _FILES + self.digest.encode() + b"/")
        return page if preview is None else page.replace(_HEAD, preview.tags().encode())

    def inside(self) -> tuple[str, ...]:
        """Return the hashes by which a Content-Security-Policy lets the files inside of the page through."""
        hashes = (hashlib.sha256(self.files[path]).digest() for path in _INSIDE)
        return tuple(f"'sha256-{b64encode(one).decode()}'" for one in hashes)

    def address(self, path: str) -> str:
        """Return where a file is served."""
        return f"/web/{self.digest}/{path}"


@cache
def voters_page() -> VotersPage:
    """Return the page that this crowdveil ships."""
    files = dict(sorted(_walk(resources.files("crowdveil").joinpath("web"), "")))
    listed = "".join(f"{hashlib.sha256(content).hexdigest()}  {path}\n" for path, content in files.items())
    return VotersPage(hashlib.sha256(listed.encode()).hexdigest()[:20], files)


def _walk(folder: Traversable, at: str) -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _walk(item, f"{at}{item.name}/")
        else:
            yield f"{at}{item.name}", item.read_bytes()
