"""crowdveil relay: a second party between the voters and the host of a poll."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated

import typer

from crowdveil.cli.terminal import say, tell
from crowdveil.errors import CrowdveilError

DEFAULT_DATA = "crowdveil-relay-data"


def relay(
    host: Annotated[str, typer.Option(help="The address of the polls' host, as `crowdveil serve` prints it.")],
    database: Annotated[
        str | None, typer.Option(help="sqlite:///PATH or postgresql://USER@HOST/NAME. Default: SQLite in --data.")
    ] = None,
    data: Annotated[str, typer.Option(help="The directory of the SQLite database.")] = DEFAULT_DATA,
    listen: Annotated[str | None, typer.Option(help="The address to listen at. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="The port. Default: 8001.")] = None,
    public_url: Annotated[
        str | None, typer.Option(help="The address that voters use and poll files name, if it is another.")
    ] = None,
    links: Annotated[int | None, typer.Option(help="First make so many links for voters, with --out.")] = None,
    poll: Annotated[str | None, typer.Option(help="The poll that the links are for, if there are several.")] = None,
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to write the links (CSV).")] = None,
    pause: Annotated[float, typer.Option(help="Seconds between two rounds in which batches are handed over.")] = 5.0,
    settings_file: Annotated[Path | None, typer.Option("--settings", help="A file of settings (TOML).")] = None,
) -> None:
    """Pass sealed reports on from voters to a host, shuffled and in batches, so that nobody knows who said what.

    Example: `crowdveil relay --host https://crowd.example --public-url https://relay.example`

    A relay is run by somebody else than the host: a library, a newspaper, an ethics board. It knows who takes part and
    cannot read what they report; the host reads the reports and does not know whose they are. A host that also runs the
    relay breaks the promise, and no software can tell.
    """
    from crowdveil.relay.app import make_links, serve_relay, set_up_relay
    from crowdveil.service.settings import read_settings

    if (links is None) != (out_path is None):
        raise CrowdveilError("links go into a file: give --links NUMBER and --out FILE together")
    if not pause > 0:
        raise CrowdveilError(f"--pause must be above 0 seconds, got {pause:g}")
    given = {
        "database": database,
        "data": data,
        "host": listen,
        "port": 8001 if port is None else port,
        "public_url": public_url,
        "workers": 1,
    }
    settings = read_settings(given, file=settings_file)
    setup = set_up_relay(settings, host)
    if links is not None and out_path is not None:
        named = poll or (setup.polls[0].name if len(setup.polls) == 1 else "")
        if not named:
            raise CrowdveilError(f"say with --poll which: {', '.join(one.name for one in setup.polls)}")
        _write(out_path, make_links(settings, host, named, links))

    def announce(bound: int) -> None:
        say(f"Relay:    {settings.address(bound)}")
        for one in setup.polls:
            say(f"Poll:     {one.voters_address(host.rstrip('/'))}")
            tell(f"          batches of {one.configuration.batch:,} reports or more")
        say(f"Database: {setup.database}")
        tell("Stop with ctrl-C. Requests that have begun are finished first.")

    serve_relay(settings, host, pause, announce)


def _write(path: Path, links: list[str]) -> None:
    from crowdveil.files import write_text

    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["link"])
    rows.writerows([link] for link in links)
    write_text(path, text.getvalue())
