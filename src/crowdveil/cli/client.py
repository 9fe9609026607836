"""crowdveil crowd, check-page and mcp: commands that query a website, or a release, from outside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.cli.terminal import AsJson, progress, say, show
from crowdveil.errors import CrowdveilError, check_whole, plural

if TYPE_CHECKING:
    from crowdveil.mcp import ReleaseSource
    from crowdveil.simulated_voters import Turnout


def crowd(
    url: Annotated[str, typer.Option(help="The website's address, as `crowdveil serve` prints it.")],
    voters: Annotated[int, typer.Option(help="How many voters.")] = 1000,
    poll: Annotated[str | None, typer.Option(help="The poll to vote in. Default: the only open one.")] = None,
    level: Annotated[str | None, typer.Option(help="Everybody's level of privacy. Default: at random.")] = None,
    links: Annotated[Path | None, typer.Option(help="The host's file of links, for a poll that has them.")] = None,
    connections: Annotated[int, typer.Option(help="How many vote at the same time.")] = 16,
    seed: Annotated[
        int | None, typer.Option(help="Repeat the same preferences. Dilemmas and noise are always new.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let simulated voters vote on a running website, for demonstrations and load tests.

    Example: `crowdveil crowd --url https://crowd.example --voters 1000`

    Each voter's preference is drawn around the study's lean, and perturbed on this machine if the poll is distributed.
    Do not let it vote in a poll that real people take part in: nobody can tell the two apart afterwards.
    """
    import httpx

    from crowdveil.client.client import Client
    from crowdveil.simulated_voters import MOST_CONNECTIONS, find_poll, send_crowd

    check_whole(connections, "--connections", 1, MOST_CONNECTIONS)
    tokens = () if links is None else _read_links(links)
    http = httpx.Client(timeout=60, limits=httpx.Limits(max_connections=connections))
    with Client(url, http=http) as client, progress("voting", voters, "voters") as advance:
        turnout = send_crowd(
            client,
            find_poll(client, poll),
            voters,
            connections=connections,
            level=level,
            tokens=tokens,
            seed=seed,
            tell=advance,
        )
    show(turnout.as_dict(), as_json, lambda: _print_turnout(turnout))


def check_page(
    url: Annotated[str, typer.Option(help="The website's address.")],
    poll: Annotated[str, typer.Option(help="The poll whose page to compare.")],
    as_json: AsJson = False,
) -> None:
    """Compare the voter's page of a website and its modules with those of the installed crowdveil, byte for byte.

    Example: `crowdveil check-page --url https://crowd.example --poll moral-machine`

    Both must be of the same version. Exit code 2 if anything differs. For a poll with a relay, it prints the
    fingerprint of the key that reports are sealed to: compare it with the one in the address that voters were given. A
    server may still show another page to somebody else: let several people check, from several places, and look at the
    page's source yourself.
    """
    import httpx

    from crowdveil.client.page_check import check_page as compare

    with httpx.Client(timeout=30) as http:
        found = compare(http, url, poll)
    if found.different:
        raise CrowdveilError(
            f"{url} does not serve the page of this crowdveil; different: {', '.join(found.different)}"
        )
    said = {"url": url, "poll": poll, "files": list(found.same), "same": True, "key": found.fingerprint}

    def words() -> None:
        say(f"{len(found.same)} files, all as this crowdveil ships them.")
        if found.fingerprint is not None:
            say(f"Reports are sealed to the key {found.fingerprint}: the poll's address must contain it.")

    show(said, as_json, words)


def mcp(
    url: Annotated[str | None, typer.Option(help="Ask the releases of a website.")] = None,
    release: Annotated[Path | None, typer.Option(help="Ask one release file.")] = None,
    poll: Annotated[
        str | None, typer.Option(help="The poll to ask if the agent names none and the website has several.")
    ] = None,
) -> None:
    """Offer the crowd's decisions to an AI agent as a Model Context Protocol tool, over standard input and output.

    Example: `crowdveil mcp --release release.json`, or `crowdveil mcp --url https://crowd.example`

    An agent's program starts this command by itself; see the tutorial for engineers. It needs the extra `mcp`.
    """
    if (url is None) == (release is None):
        raise CrowdveilError("say whom to ask: either --url (a website's releases) or --release (one file)")
    if poll is not None and url is None:
        raise CrowdveilError(f"--poll {poll} names a poll of a website: give --url with it")
    from crowdveil.mcp import SingleRelease, mcp_server
    from crowdveil.releases import read_release

    mcp_server(_website(str(url)) if release is None else SingleRelease(read_release(release)), poll).run()


def _website(url: str) -> ReleaseSource:
    from crowdveil.client.client import Client

    return Client(url)


def _read_links(path: Path) -> list[str]:
    from crowdveil.simulated_voters import tokens_of_links

    try:
        return tokens_of_links(path.read_text(encoding="utf-8").splitlines())
    except OSError as error:
        raise CrowdveilError(f"cannot read the links in {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise CrowdveilError(
            f"{path} is no text (UTF-8), so it has no links: give the file (CSV) that the host's page wrote"
        ) from None


def _print_turnout(turnout: Turnout) -> None:
    mix = ", ".join(f"{number} {name}" for name, number in turnout.levels.items())
    say(
        f"{turnout.stored} {plural(turnout.stored, 'vote')} stored in {turnout.poll} in {turnout.seconds:.1f} s "
        f"({turnout.rate:,.0f} a second){': ' + mix if len(turnout.levels) > 1 else ''}."
    )
    for reason, number in turnout.refused.items():
        say(f"{number} refused: {reason}")
