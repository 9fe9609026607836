"""crowdveil crowd: simulated voters through the real API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import httpx
import typer

from crowdveil.cli.terminal import AsJson, out, progress, show
from crowdveil.client import Client
from crowdveil.errors import CrowdveilError
from crowdveil.simulated_voters import Turnout, find_poll, send_crowd, tokens_of_links


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
    """Let a crowd that does not exist vote on a running website, for demonstrations and load.

    Example: `crowdveil crowd --url https://crowd.example --voters 1000`

    Each voter's preference is drawn around the study's lean, and perturbed on this machine where the poll is
    distributed. Do not let it vote in a poll that real people take part in: nobody can tell the two apart afterwards.
    """
    tokens = () if links is None else _read_links(links)
    http = httpx.Client(timeout=60, limits=httpx.Limits(max_connections=connections))
    with Client(url, http=http) as client, progress("voting", voters, "voters") as tell:
        turnout = send_crowd(
            client,
            find_poll(client, poll),
            voters,
            connections=connections,
            level=level,
            tokens=tokens,
            seed=seed,
            tell=tell,
        )
    show(turnout.as_dict(), as_json, lambda: _print(turnout))


def _read_links(path: Path) -> list[str]:
    try:
        return tokens_of_links(path.read_text(encoding="utf-8").splitlines())
    except OSError as error:
        raise CrowdveilError(f"cannot read the links in {path}: {error.strerror or error}") from None


def _print(turnout: Turnout) -> None:
    mix = ", ".join(f"{number} {name}" for name, number in turnout.levels.items())
    out.print(
        f"{turnout.stored} votes stored in {turnout.poll} in {turnout.seconds:.1f} s "
        f"({turnout.rate:,.0f} a second){': ' + mix if len(turnout.levels) > 1 else ''}."
    )
    for reason, number in turnout.refused.items():
        out.print(f"{number} refused: {reason}", markup=False)
