"""crowdveil mcp: the crowd as a tool for AI agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.client import Client
from crowdveil.errors import CrowdveilError
from crowdveil.releases import load_release

if TYPE_CHECKING:
    from crowdveil.mcp import Releases


def mcp(
    url: Annotated[str | None, typer.Option(help="Ask the releases of a website.")] = None,
    release: Annotated[Path | None, typer.Option(help="Ask one release file.")] = None,
) -> None:
    """Offer the crowd's decisions to an AI agent as a Model Context Protocol tool, over standard input and output.

    Example: `crowdveil mcp --release release.json`, or `crowdveil mcp --url https://crowd.example`

    An agent's program starts this command by itself; see the tutorial for engineers. It needs the extra `mcp`.
    """
    if (url is None) == (release is None):
        raise CrowdveilError("say whom to ask: either --url (a website's releases) or --release (one file)")
    try:
        from crowdveil.mcp import OneRelease, mcp_server
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        raise CrowdveilError(
            "the Model Context Protocol is an extra: install it with pip install 'crowdveil[mcp]'"
        ) from None
    source: Releases = Client(str(url)) if release is None else OneRelease(load_release(release))
    mcp_server(source).run()
