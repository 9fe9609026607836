"""veil check-page: is the page that a website serves the one that veil ships?"""

from __future__ import annotations

from typing import Annotated

import httpx
import typer

from veil.cli.terminal import AsJson, out, show
from veil.client.page_check import check_page as compare
from veil.errors import VeilError


def check_page(
    url: Annotated[str, typer.Option(help="The website's address.")],
    poll: Annotated[str, typer.Option(help="The poll whose page to compare.")],
    as_json: AsJson = False,
) -> None:
    """Compare the voter's page of a website, with all its modules, with those of the installed veil, byte for byte.

    Example: `veil check-page --url https://crowd.example --poll moral-machine`

    Both must be of the same version. Exit code 2 if anything differs. A server may still show another page to somebody
    else: let several people check, from several places, and look at the page's source yourself.
    """
    with httpx.Client(timeout=30) as http:
        found = compare(http, url, poll)
    if found.different:
        raise VeilError(f"{url} does not serve the page of this veil; different: {', '.join(found.different)}")
    said = {"url": url, "poll": poll, "files": list(found.same), "same": True}
    show(said, as_json, lambda: out.print(f"{len(found.same)} files, all as this veil ships them.", markup=False))
