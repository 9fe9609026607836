"""crowdveil serve: a study as a website."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from crowdveil.cli.terminal import err, out


def serve(
    asked: Annotated[
        str,
        typer.Argument(metavar="[STUDY|POLL]", help="A bundled study, a study file, or a poll file (TOML)."),
    ] = "moral-machine",
    paradigm: Annotated[
        str | None, typer.Option(help="Who is protected, and where: vlcp, rlcp, vldp, rldp (default), alcp or aldp.")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="A mechanism by name, or: paper. Default: the best for the paradigm.")
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="sqlite:///PATH or postgresql://USER@HOST/NAME. Default: SQLite in --data.")
    ] = None,
    data: Annotated[str | None, typer.Option(help="Where the SQLite database is. Default: ./crowdveil-data.")] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen at. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes a free one. Default: 8000.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; more than one needs PostgreSQL. Default: 1.")] = None,
    public_url: Annotated[str | None, typer.Option(help="The address that voters use, if it is another.")] = None,
    settings_file: Annotated[Path | None, typer.Option("--settings", help="A file of settings (TOML).")] = None,
) -> None:
    """Put a study on the web: voters take part, the host makes releases, and AIs ask for decisions.

    Example: `crowdveil serve kidney --paradigm vldp`

    Without arguments: the Moral Machine study, noise on every voter's device, SQLite in ./crowdveil-data. Every setting can
    also be given by a file or by the environment (CROWDVEIL_PORT=8001).
    """
    # Here, and not above: other commands should not wait for a web server to load.
    from crowdveil.service.poll_file import find_poll
    from crowdveil.service.run import prepare
    from crowdveil.service.run import serve as run
    from crowdveil.service.settings import read_settings

    given = {
        "database": database,
        "data": data,
        "host": host,
        "port": port,
        "workers": workers,
        "public_url": public_url,
    }
    settings = read_settings(given, file=settings_file)
    poll = find_poll(asked, paradigm, mechanism)
    prepared = prepare(settings, poll, int(time.time()))

    def tell(port: int) -> None:
        address = settings.address(port)
        out.print(f"Voters:   {address}/p/{poll.name}/", markup=False)
        out.print(f"Host:     {address}/host/sign-in#link={prepared.sign_in_token} (works once)", markup=False)
        out.print(f"Database: {prepared.database}", markup=False)
        err.print("Stop with ctrl-C. Requests that have begun are finished first.")

    run(settings, tell)
