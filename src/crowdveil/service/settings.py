"""Every setting of the service, in one table that the command line, the environment, the file and the docs use."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.files import make_folder
from crowdveil.study.plain_data import read_toml

PREFIX = "CROWDVEIL_"
LARGEST_PORT = 65_535


def _setting(default: Any, told: str) -> Any:
    return field(default=default, metadata={"told": told})


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of the service. The promises of a poll are not here but in the poll."""

    listen: str = _setting("127.0.0.1", "The address to listen at; 0.0.0.0 for every network of the machine.")
    port: int = _setting(8000, "The port to listen at; 0 takes a free one.")
    workers: int = _setting(1, "How many processes answer requests. More than one needs PostgreSQL.")
    data: str = _setting("crowdveil-data", "The directory of the SQLite database, where none is named by `database`.")
    database: str = _setting("", "sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME. Empty: SQLite in `data`.")
    backups: str = _setting(
        "", "A directory of backups, from which answers are destroyed on their day, as from the database."
    )
    public_url: str = _setting("", "The address that voters use, if it is not that of `listen` and `port`.")
    trusted_proxies: int = _setting(
        0, "How many reverse proxies of yours stand in front; so many entries of X-Forwarded-For are believed."
    )
    requests_per_minute: int = _setting(
        600, "How many requests one address may make in a minute. (Loopback is not limited unless proxies are trusted.)"
    )
    largest_report: int = _setting(65_536, "The largest report or ballot that is read, in bytes.")
    stop_seconds: int = _setting(
        20, "How long requests that have begun may take to finish when the service is stopped."
    )
    log_level: str = _setting("info", "How much is logged: debug, info, warning or error.")

    def __post_init__(self) -> None:
        least = {"port": 0, "workers": 1, "trusted_proxies": 0, "requests_per_minute": 1, "largest_report": 1024}
        for name, lowest in least.items():
            if not getattr(self, name) >= lowest:
                raise CrowdveilError(f"setting {name} must be {lowest} or more, got {getattr(self, name)}")
        if not self.port <= LARGEST_PORT:
            raise CrowdveilError(f"setting port must be {LARGEST_PORT} or less, got {self.port}")
        if self.public_url and not self.public_url.startswith(("https://", "http://")):
            raise CrowdveilError(f"setting public_url must start with https:// or http://, got {self.public_url!r}")
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise CrowdveilError(f"setting log_level must be debug, info, warning or error, got {self.log_level!r}")
        if self.workers > 1 and not self.database_address.startswith("postgres"):
            raise CrowdveilError(
                f"{self.workers} worker processes need PostgreSQL: give --database postgresql://USER@HOST/NAME, "
                "or use one worker with SQLite"
            )

    @property
    def database_address(self) -> str:
        """The database's address, or the default if none is set."""
        return self.database or f"sqlite:///{Path(self.data) / 'crowdveil.sqlite'}"

    @property
    def behind_https(self) -> bool:
        """Whether voters use https, so that cookies are for https only."""
        return self.public_url.startswith("https://")

    def address(self, port: int) -> str:
        """Return the address that voters use."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.listen, self.listen)
        return self.public_url.rstrip("/") or f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def as_environment(self) -> dict[str, str]:
        """Return the settings as environment variables, for the worker processes."""
        return {f"{PREFIX}{f.name.upper()}": str(getattr(self, f.name)) for f in fields(self)}


def read_settings(
    given: Mapping[str, Any], environment: Mapping[str, str] = os.environ, file: Path | None = None
) -> ServiceSettings:
    """Combine the settings: values given here win (None means not given), then the environment, then the file."""
    known = {f.name: type(f.default) for f in fields(ServiceSettings)}
    values = {} if file is None else _from_file(file, known)
    for name, kind in known.items():
        text = environment.get(f"{PREFIX}{name.upper()}")
        if text is not None:
            values[name] = _read(f"the environment variable {PREFIX}{name.upper()}", text, kind)
    values.update({name: value for name, value in given.items() if value is not None})
    return ServiceSettings(**values)


def make_directory(settings: ServiceSettings) -> None:
    """Create the directory of the SQLite database, unreadable for others, unless another database is set."""
    if not settings.database:
        make_folder(Path(settings.data), 0o700)


def _from_file(file: Path, known: Mapping[str, type]) -> dict[str, Any]:
    data = read_toml(file, "settings file")
    for name, value in data.items():
        if name not in known:
            raise CrowdveilError(f"{file}: there is no setting {name!r}; the settings are {', '.join(known)}")
        if type(value) is not known[name]:
            raise CrowdveilError(f"{file}: setting {name} must be a {_KINDS[known[name]]}, got {value!r}")
    return data


_KINDS = {int: "whole number", str: "text"}


def _read(what: str, text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise CrowdveilError(f"{what} must be a {_KINDS[kind]}, got {text!r}") from None
