"""crowdveil serve, backup, restore and relay: a website for a study's host, and a relay for another party."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.cli.terminal import AsJson, say, show, tell
from crowdveil.errors import CrowdveilError, missing_extra, plural

if TYPE_CHECKING:
    from crowdveil.service.store.backup import Backup


DataDirectory = Annotated[
    str | None, typer.Option(help="The directory of the SQLite database. Default: ./crowdveil-data.")
]
DatabaseAddress = Annotated[
    str | None, typer.Option(help="sqlite:///PATH or postgresql://USER@HOST/NAME. Default: SQLite in --data.")
]


def serve(
    asked: Annotated[
        str,
        typer.Argument(metavar="STUDY|POLL", help="A bundled study, a study file, or a poll file (TOML)."),
    ] = "moral-machine",
    paradigm: Annotated[
        str | None, typer.Option(help="Who is protected, and where: vlcp, rlcp, vldp, rldp (default), alcp or aldp.")
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="A mechanism by name, or: paper. Default: the best for the paradigm.")
    ] = None,
    database: DatabaseAddress = None,
    data: DataDirectory = None,
    listen: Annotated[str | None, typer.Option(help="The address to listen at. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 takes a free one. Default: 8000.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; more than one needs PostgreSQL. Default: 1.")] = None,
    public_url: Annotated[str | None, typer.Option(help="The address that voters use, if it is another.")] = None,
    settings_file: Annotated[Path | None, typer.Option("--settings", help="A file of settings (TOML).")] = None,
) -> None:
    """Put a study on the web: voters take part, the host makes releases, and AIs ask for decisions.

    Example: `crowdveil serve kidney --paradigm vldp`

    Without arguments: the Moral Machine study, noise on every voter's device, SQLite in ./crowdveil-data. Every setting
    can also be given by a file or by the environment (CROWDVEIL_PORT=8001).
    """
    from crowdveil.service.app import serve as run
    from crowdveil.service.app import set_up
    from crowdveil.service.poll import find_poll
    from crowdveil.service.settings import read_settings

    given = {
        "database": database,
        "data": data,
        "listen": listen,
        "port": port,
        "workers": workers,
        "public_url": public_url,
    }
    settings = read_settings(given, file=settings_file)
    poll = find_poll(asked, paradigm, mechanism)
    setup = set_up(settings, poll, int(time.time()))

    def announce(port: int) -> None:
        address = settings.address(port)
        say(f"Voters:   {address}{setup.voters_path}")
        say(f"Host:     {address}/host/sign-in#link={setup.sign_in_token} (works once)")
        say(f"Database: {setup.database}")
        if setup.deleted_poll is not None:
            tell(f"Poll {setup.deleted_poll!r} was deleted, and its name counts once: only the other polls are served.")
        tell("Stop with ctrl-C. Requests that have begun are finished first.")

    run(settings, announce)


def backup(
    out_path: Annotated[Path, typer.Option("--out", help="Where to write the backup (.crowdveil.gz).")],
    data: DataDirectory = None,
    database: DatabaseAddress = None,
    as_json: AsJson = False,
) -> None:
    """Write everything that a website stores to one file, from either kind of database, while it runs.

    Example: `crowdveil backup --data crowdveil-data --out monday.crowdveil.gz`

    The file contains what the database contains: in a central poll, the exact records. Nobody but you can read it; keep
    it that way. Sessions and sign-in links are left out.
    """
    from crowdveil.service.store.backup import back_up

    address = _address(data, database)
    _check_there(address)
    made = back_up(address, out_path)
    _show(made, out_path, as_json, f"Wrote {out_path}: {_words(made)}.")


def restore(
    path: Annotated[Path, typer.Argument(metavar="BACKUP", help="A file from `crowdveil backup`.")],
    data: DataDirectory = None,
    database: DatabaseAddress = None,
    as_json: AsJson = False,
) -> None:
    """Fill a new, empty database from a backup; a database with anything in it is refused.

    Example: `crowdveil restore monday.crowdveil.gz --data crowdveil-data-new`

    A backup of SQLite can be restored into PostgreSQL, and the other way round. Stop the website first.
    """
    from crowdveil.service.settings import make_directory, read_settings
    from crowdveil.service.store.backup import check_backup
    from crowdveil.service.store.backup import restore as restore_from

    settings = read_settings({"data": data, "database": database})
    check_backup(path)  # before a directory is made for it
    make_directory(settings)
    made = restore_from(path, settings.database_address)
    _show(
        made, path, as_json, f"Restored {path}: {_words(made)}. Next: crowdveil serve, which prints a new sign-in link."
    )


def _address(data: str | None, database: str | None) -> str:
    from crowdveil.service.settings import read_settings

    return read_settings({"data": data, "database": database}).database_address


def _check_there(address: str) -> None:
    """Refuse a SQLite database that does not exist; SQLite itself would create it."""
    scheme, _, path = address.partition(":///")
    if scheme == "sqlite" and not Path(path).is_file():
        raise CrowdveilError(f"there is no database {path}: say where it is with --data or --database")


def _words(made: Backup) -> str:
    counted = {
        "poll": made.rows["poll"],
        "vote": made.rows["report"] + made.rows["ballot"],
        "release": made.rows["release"],
    }
    return ", ".join(f"{number:,} {plural(number, word)}" for word, number in counted.items())


def _show(made: Backup, path: Path, as_json: bool, words: str) -> None:
    said = {"backup": str(path), "crowdveil": made.version, "tables": made.tables, "rows": made.rows}
    show(said, as_json, lambda: say(words))


RELAY_DATA = "crowdveil-relay-data"


def relay(
    host: Annotated[str, typer.Option(help="The address of the polls' host, as `crowdveil serve` prints it.")],
    database: Annotated[
        str | None, typer.Option(help="sqlite:///PATH or postgresql://USER@HOST/NAME. Default: SQLite in --data.")
    ] = None,
    data: Annotated[str, typer.Option(help="The directory of the SQLite database.")] = RELAY_DATA,
    listen: Annotated[str | None, typer.Option(help="The address to listen at. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="The port. Default: 8001.")] = None,
    public_url: Annotated[
        str | None, typer.Option(help="The address that voters use and poll files name, if it is another.")
    ] = None,
    links: Annotated[int | None, typer.Option(help="First make this many links for voters, with --out.")] = None,
    poll: Annotated[str | None, typer.Option(help="The poll that the links are for, if there are several.")] = None,
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to write the links (CSV).")] = None,
    pause: Annotated[float, typer.Option(help="Seconds between two rounds in which batches are handed over.")] = 5.0,
    settings_file: Annotated[Path | None, typer.Option("--settings", help="A file of settings (TOML).")] = None,
) -> None:
    """Pass sealed reports on from voters to a host, shuffled and in batches, so that nobody knows who said what.

    Example: `crowdveil relay --host https://crowd.example --public-url https://relay.example`

    A relay is run by somebody other than the host: a library, a newspaper, an ethics board. It knows who takes part and
    cannot read what they report; the host reads the reports and does not know whose they are. A host that also runs the
    relay breaks the promise, and no software can tell.
    """
    from crowdveil.files import check_writable
    from crowdveil.service.settings import read_settings

    try:
        from crowdveil.relay.app import make_links, serve_relay, set_up_relay
    except ModuleNotFoundError as error:
        raise missing_extra(error, "server") from None
    if (links is None) != (out_path is None):
        raise CrowdveilError("links go into a file: give --links NUMBER and --out FILE together")
    if out_path is not None:
        check_writable(out_path)  # before there are links that nobody could read
    if not pause > 0:
        raise CrowdveilError(f"--pause must be above 0 seconds, got {pause:g}")
    given = {
        "database": database,
        "data": data,
        "listen": listen,
        "port": 8001 if port is None else port,
        "public_url": public_url,
        "workers": 1,
    }
    settings = read_settings(given, file=settings_file)
    setup = set_up_relay(settings, host)
    if links is not None and out_path is not None:
        named = poll or (setup.polls[0].name if len(setup.polls) == 1 else "")
        if not named:
            raise CrowdveilError(f"say which poll with --poll: {', '.join(one.name for one in setup.polls)}")
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
    write_text(path, text.getvalue(), private=True)
