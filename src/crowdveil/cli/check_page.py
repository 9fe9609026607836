"""crowdveil check-page: is the page that a website serves the one that crowdveil ships?"""

from __future__ import annotations

from typing import Annotated

import httpx
import typer

from crowdveil.cli.terminal import AsJson, out, show
from crowdveil.client.page_check import check_page as compare
from crowdveil.errors import CrowdveilError


def check_page(
    url: Annotated[str, typer.Option(help="The website's address.")],
    poll: Annotated[str, typer.Option(help="The poll whose page to compare.")],
    as_json: AsJson = False,
) -> None:
    """Compare the voter's page of a website, with all its modules, with those of the installed crowdveil, byte for byte.

    Example: `crowdveil check-page --url https://crowd.example --poll moral-machine`

    Both must be of the same version. Exit code 2 if anything differs. A server may still show another page to somebody
    else: let several people check, from several places, and look at the page's source yourself.
    """
    with httpx.Client(timeout=30) as http:
        found = compare(http, url, poll)
    if found.different:
        raise CrowdveilError(
            f"{url} does not serve the page of this crowdveil; different: {', '.join(found.different)}"
        )
    said = {"url": url, "poll": poll, "files": list(found.same), "same": True}
    show(said, as_json, lambda: out.print(f"{len(found.same)} files, all as this crowdveil ships them.", markup=False))
