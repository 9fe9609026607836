"""The server below a website: how it is set up, where it listens, and how it stops."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from socket import socket
from typing import Any

import uvicorn

from crowdveil.errors import CrowdveilError
from crowdveil.service.middleware.logs import logging_config
from crowdveil.service.settings import Settings


def make_directory(settings: Settings) -> None:
    """Make the directory of the SQLite database, for nobody else to read, where it is to be one."""
    if not settings.database:
        try:
            Path(settings.data).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CrowdveilError(f"cannot make the directory {settings.data}: {error.strerror or error}") from None


def server_config(settings: Settings) -> dict[str, Any]:
    """Return how the server library is to run."""
    return {
        "host": settings.host,
        "port": settings.port,
        "log_config": logging_config(settings.log_level),
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": settings.stop_seconds,
        "proxy_headers": False,
    }


def run_server(config: uvicorn.Config, tell: Callable[[int], None], run: Callable[[list[socket]], object]) -> None:
    """Listen, tell the port, and run until a signal says stop."""
    try:
        listening = config.bind_socket()
    except SystemExit:  # How the server library says that it cannot.
        raise CrowdveilError(
            f"cannot listen at {config.host}:{config.port}: it is in use, or not of this machine; choose another --port"
        ) from None
    tell(listening.getsockname()[1])
    # The server stops in good order, and then passes on the signal that stopped it: the database is to be closed, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with suppress(KeyboardInterrupt):
        run([listening])
