"""What the database can hold, looked up in the database itself."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Date, DateTime, Time, insert, inspect, text
from sqlalchemy.exc import IntegrityError
from tests.service.voters import poll

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.service.store import schema
from crowdveil.service.store.store import Store, open_store

FROM_VOTERS = {
    "report": {"poll", "id", "place", "epsilon_micro", "body", "about", "day", "pilot"},
    "ballot": {"poll", "id", "place", "records", "about", "day", "pilot"},
    "link": {"poll", "id"},
    "withdrawal": {"poll", "id"},
    "refusal": {"poll", "day", "reason", "times"},
    "step": {"poll", "day", "step", "times"},
    "batch": {"poll", "id", "handed_over", "accepted", "refused", "day"},
    "seen": {"poll", "digest"},
}
DAY = date(2026, 5, 4)


def test_there_is_no_column_for_an_address_or_an_exact_time(store: Store) -> None:
    seen = inspect(store.database.engine)
    for table, columns in FROM_VOTERS.items():
        found = {column["name"]: column["type"] for column in seen.get_columns(table)}
        assert set(found) == columns
        assert not any(isinstance(kind, DateTime | Time) for kind in found.values())
        assert isinstance(found.get("day", Date()), Date)


def test_sqlite_keeps_no_order_of_arrival(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path / 'x.sqlite'}") as store, store.database.reading() as connection:
        made = dict(connection.execute(text("SELECT name, sql FROM sqlite_master WHERE type = 'table'")).all())
    assert all("WITHOUT ROWID" in made[table] for table in FROM_VOTERS)


def test_the_database_refuses_an_answer_in_a_distributed_poll(store: Store) -> None:
    store.polls.add(poll("d"))
    for place in ("central", "distributed"):
        row = {"poll": "d", "id": "0" * 32, "place": place, "records": "[]", "about": "{}", "day": DAY, "pilot": False}
        with pytest.raises(IntegrityError), store.database.writing() as connection:
            connection.execute(insert(schema.ballot).values(row))
    assert list(store.submissions.ballots("d")) == []


def test_the_database_refuses_a_report_in_a_central_poll(store: Store) -> None:
    store.polls.add(poll("c", "vlcp"))
    for place in ("central", "distributed"):
        row = {"poll": "c", "id": "0" * 32, "place": place, "body": "{}", "about": "{}", "day": DAY, "pilot": False}
        with pytest.raises(IntegrityError), store.database.writing() as connection:
            connection.execute(insert(schema.report).values({**row, "epsilon_micro": 1}))
    assert list(store.submissions.reports("c")) == []


def test_a_poll_cannot_be_moved_to_where_its_reports_are_not_allowed(store: Store) -> None:
    store.polls.add(poll("d"))
    row = {"poll": "d", "id": "0" * 32, "place": "distributed", "body": "{}", "about": "{}", "day": DAY, "pilot": False}
    with store.database.writing() as connection:
        connection.execute(insert(schema.report).values({**row, "epsilon_micro": 1}))
    with pytest.raises(IntegrityError), store.database.writing() as connection:
        connection.execute(text("UPDATE poll SET place = 'central', budget_micro = 1 WHERE id = 'd'"))


def test_the_database_refuses_overspending(store: Store) -> None:
    store.polls.add(poll("c", "vlcp", budget=1))
    with pytest.raises(IntegrityError), store.database.writing() as connection:
        connection.execute(text("UPDATE poll SET spent_micro = 1000001 WHERE id = 'c'"))


def test_the_migrations_make_the_tables_of_the_program(store: Store) -> None:
    with store.database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []


@pytest.mark.parametrize("layout", ["0001", "9999"])
def test_a_database_of_another_layout_is_refused(address: str, layout: str) -> None:
    with open_store(address) as store, store.database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :layout"), {"layout": layout})
    with pytest.raises(CrowdveilError, match=f"layout \\({layout}\\) that this version"), open_store(address):
        pass


@pytest.mark.parametrize("new_address", ["postgresql"], indirect=True)
def test_those_that_start_at_once_take_turns(address: str) -> None:
    with ThreadPoolExecutor(4) as openers:
        list(openers.map(_open, [address] * 4))
    with open_store(address) as store, store.database.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM installation")).scalar_one() == 1


def _open(address: str) -> None:
    with open_store(address):
        pass


def test_a_ledger_and_other_files_are_refused_and_left_as_they_are(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "ledger", 3)
    (tmp_path / "words").write_bytes(b"to be or not to be" * 100)
    for name, said in (("ledger", "is a ledger, or another program's database"), ("words", "not an SQLite database")):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(CrowdveilError, match=said), open_store(f"sqlite:///{tmp_path / name}"):
            pass
        assert (tmp_path / name).read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger", "ledger.key", "words"]


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "new ü#1.sqlite").touch()
    for _ in range(2):  # and is one when it is opened again
        with open_store(f"sqlite:///{tmp_path / 'new ü#1.sqlite'}") as store:
            assert store.polls.all() == []


def test_a_new_sqlite_file_is_readable_by_its_owner_alone_and_another_keeps_its_mode(tmp_path: Path) -> None:
    usual = os.umask(0)
    try:
        (tmp_path / "shared.sqlite").touch(0o640)
        for name in ("new.sqlite", "shared.sqlite"):
            with open_store(f"sqlite:///{tmp_path / name}"):
                modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob(f"{name}*")}
            expected = 0o600 if name == "new.sqlite" else 0o640
            assert modes == dict.fromkeys([name, f"{name}-wal", f"{name}-shm"], expected) | {f"{name}.lock": 0o600}
    finally:
        os.umask(usual)


def test_a_second_process_is_kept_out_of_a_sqlite_file(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'x.sqlite'}"
    with open_store(address), pytest.raises(CrowdveilError, match="in use by another process"), open_store(address):
        pass
    with open_store(address):
        pass


@pytest.mark.parametrize("address", ["mysql://x/y", "sqlite://", "nonsense", ""])
def test_other_databases_are_refused(address: str) -> None:
    with pytest.raises(CrowdveilError, match="postgresql://"), open_store(address):
        pass


def test_what_is_no_file_is_refused_as_a_database_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, told in (("folder", "it is a directory"), ("pipe", "it is a device or a pipe")):
        address = f"sqlite:///{tmp_path / name}"
        with (
            pytest.raises(CrowdveilError, match=f"^cannot open the database .*{told}; name a file"),
            open_store(address),
        ):
            pass
    with pytest.raises(CrowdveilError, match="has a question mark"), open_store(f"sqlite:///{tmp_path / 'a?b=1'}"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe"]
