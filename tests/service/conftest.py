"""Every test of the store runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.databases import address, new_address, postgres
from tests.service.emptying import empty

from crowdveil.service.app import create_app
from crowdveil.service.service import Service
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.store import Store, open_store

__all__ = ["address", "new_address", "postgres"]


@pytest.fixture(scope="module", autouse=True)
def _few_crowds(few_crowds: None) -> None:
    """No test here asks how good a release's probabilities are."""


@pytest.fixture(scope="session")
def new_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What SQLite keeps of a store in which there is nothing yet."""
    path = tmp_path_factory.mktemp("new") / "crowdveil.sqlite"
    with open_store(f"sqlite:///{path}"):
        pass
    return path


@pytest.fixture
def store(address: str, new_file: Path) -> Iterator[Store]:
    """An empty store. To copy SQLite's costs a quarter of making its tables, which the tests of the schema do."""
    if address.startswith("sqlite"):
        shutil.copy(new_file, address.removeprefix("sqlite:///"))
    with open_store(address) as opened:
        yield opened


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, TestClient]]:
    """A service on SQLite that the tests of a module share."""
    path = tmp_path_factory.mktemp("shared") / "crowdveil.sqlite"
    with open_store(f"sqlite:///{path}") as opened:
        made = Service(opened, ServiceSettings(requests_per_minute=1_000_000))
        with TestClient(create_app(made), base_url="http://crowdveil.test") as client:
            yield made, client


@pytest.fixture
def service(running: tuple[Service, TestClient]) -> Service:
    """A service in which nobody has done anything yet."""
    shared, client = running
    client.cookies.clear()
    empty(shared)
    return shared


@pytest.fixture
def client(service: Service, running: tuple[Service, TestClient]) -> TestClient:
    return running[1]
