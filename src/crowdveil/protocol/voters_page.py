"""The voter's page as a server has to serve it: its files as they are, at an address that names their content.

All files stand below one address, ``/web/DIGEST/``, and name each other relative to themselves: so a browser may keep
them for ever, and nobody runs an old module with a new page. The page itself is ``index.html`` with that address in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

PAGE = "index.html"
_FILES = b"../../web/"
"""How the page names its files, relative to ``/p/POLL/``."""


@dataclass(frozen=True)
class VotersPage:
    """The page and all that it can load."""

    digest: str
    """Of the names and contents of all files."""
    files: Mapping[str, bytes]
    """Path below ``web/`` -> content."""

    @property
    def html(self) -> bytes:
        """The page, which is the same for all polls."""
        return self.files[PAGE].replace(_FILES, _FILES + self.digest.encode() + b"/")

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
