"""Backups: everything that the service stores, in one file from which either kind of database can be restored.

The file is gzipped text with one JSON value per line: a header, then the rows of every table, then their numbers and a
checksum. It shows the database at one moment, while voters go on voting. Sessions and sign-in links are left out,
because they expire soon.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import IO, Any

from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Date, Table, delete, func, insert, select, text
from sqlalchemy.exc import SQLAlchemyError

from crowdveil.errors import CrowdveilError
from crowdveil.files import replacing
from crowdveil.service.store import schema
from crowdveil.service.store.database import MIGRATIONS, ROWS_AT_ONCE, Database, connect, open_database
from crowdveil.version import VERSION

FORMAT = "crowdveil backup 1"
TABLES = tuple(table for table in schema.metadata.sorted_tables if table not in (schema.session, schema.sign_in_link))


@dataclass(frozen=True)
class Backup:
    """The contents of a backup file."""

    version: str
    """The version of crowdveil that made it."""
    tables: str
    """The version of its tables."""
    rows: dict[str, int]
    """The number of rows of each table."""


def back_up(address: str, path: Path) -> Backup:
    """Write everything in a database to a file, completely or not at all. The service may keep running."""
    database = connect(address)
    try:
        with database.reading() as connection, replacing(path) as unfinished:
            unfinished.chmod(0o600)  # It may contain exact answers.
            with gzip.open(unfinished, "wt", encoding="utf-8", newline="\n") as file:
                return _write(connection, file)
    except SQLAlchemyError as error:
        raise CrowdveilError(f"cannot read the database {database.shown_address}: {error.args[0]}") from None
    finally:
        database.close()


def restore(path: Path, address: str, today: date | None = None) -> Backup:
    """Fill an empty database from a backup, completely or not at all; refuse a database that is not empty.

    Exact answers whose day of destruction has come are left out.
    """
    backup = check_backup(path)
    with open_database(address, MIGRATIONS) as database, database.writing() as connection:
        _check_empty(connection, database)
        if _version(connection) != backup.tables:
            raise CrowdveilError(
                f"{path} has tables of version {backup.tables}, this crowdveil has {_version(connection)}: "
                f"restore it with crowdveil {backup.version}, and then start this one, to bring it up to date"
            )
        _fill(connection, path, today or datetime.now(UTC).date())
    return backup


def check_backup(path: Path) -> Backup:
    """Read a whole backup and check that it is complete and unchanged."""
    last = next(iter(deque(_lines(path), maxlen=1)), None)
    if not isinstance(last, dict) or "checksum" not in last:
        raise CrowdveilError(f"{path} is not complete: its end is missing; take another backup")
    header = next(_lines(path))
    return Backup(header["crowdveil"], header["tables"], last["rows"])


def _write(connection: Connection, file: IO[str]) -> Backup:
    tables = _version(connection)
    if tables is None:
        raise CrowdveilError("the database has no crowdveil tables: there is nothing to back up")
    digest = hashlib.sha256()
    counted = {}

    def line(value: Any) -> None:
        said = _line(value)
        digest.update(said.encode())
        file.write(said)

    line({"format": FORMAT, "crowdveil": VERSION, "tables": tables})
    for table in TABLES:
        counted[table.name] = 0
        for row in connection.execution_options(yield_per=ROWS_AT_ONCE).execute(
            select(table).order_by(*table.primary_key)
        ):
            line([table.name, [value.isoformat() if isinstance(value, date) else value for value in row]])
            counted[table.name] += 1
    file.write(json.dumps({"rows": counted, "checksum": digest.hexdigest()}) + "\n")
    return Backup(VERSION, tables, counted)


def _lines(path: Path) -> Iterator[Any]:
    """Yield the values of a backup; check the last one, a checksum, against all before it."""
    digest = hashlib.sha256()
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for number, said in enumerate(file):
                value = json.loads(said)
                if number == 0 and (not isinstance(value, dict) or value.get("format") != FORMAT):
                    raise CrowdveilError(f"{path} is not a backup that this version of crowdveil can read")
                if isinstance(value, dict) and value.get("checksum", digest.hexdigest()) != digest.hexdigest():
                    raise CrowdveilError(
                        f"{path} was changed or damaged after it was made: its checksum does not match"
                    )
                digest.update(said.encode())
                yield value
    except (OSError, EOFError, ValueError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise CrowdveilError(f"cannot read the backup {path}: {why}") from None


def destroy_in_backup(path: Path, today: date) -> int:
    """Rewrite a backup without the exact answers whose day of destruction has come; return their number."""
    check_backup(path)
    destroyed = sum(is_due for _, is_due in _with_dues(path, today))
    if not destroyed:
        return 0
    digest = hashlib.sha256()
    counted = {table.name: 0 for table in TABLES}
    with replacing(path) as unfinished:
        unfinished.chmod(0o600)
        with gzip.open(unfinished, "wt", encoding="utf-8", newline="\n") as file:
            for value, is_due in _with_dues(path, today):
                if is_due or (isinstance(value, dict) and "checksum" in value):
                    continue
                said = _line(value)
                digest.update(said.encode())
                file.write(said)
                if isinstance(value, list):
                    counted[value[0]] += 1
            file.write(json.dumps({"rows": counted, "checksum": digest.hexdigest()}) + "\n")
    return destroyed


def _with_dues(path: Path, today: date) -> Iterator[tuple[Any, bool]]:
    """Yield each value of a backup, and whether it is an exact answer whose day of destruction has come."""
    due: set[str] = set()
    for value in _lines(path):
        row = _row(schema.poll, value[1]) if isinstance(value, list) and value[0] == schema.poll.name else None
        if row is not None:
            destroy_on = json.loads(row["definition"]).get("destroy_on")
            if destroy_on is not None and date.fromisoformat(destroy_on) <= today:
                due.add(row["id"])
        is_ballot = isinstance(value, list) and value[0] == schema.ballot.name
        yield value, is_ballot and _row(schema.ballot, value[1])["poll"] in due


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"


def _fill(connection: Connection, path: Path, today: date) -> None:
    connection.execute(delete(schema.installation))  # A new database has its own id, which the backup replaces.
    by_name = {table.name: table for table in TABLES}
    waiting: list[dict[str, Any]] = []
    filled: Table | None = None
    for value, is_due in _with_dues(path, today):
        if is_due:
            continue
        table = by_name[value[0]] if isinstance(value, list) else None
        if filled is not None and waiting and (table is not filled or len(waiting) == ROWS_AT_ONCE):
            connection.execute(insert(filled), waiting)
            waiting = []
        if table is not None:
            filled = table
            waiting.append(_row(table, value[1]))
    if connection.dialect.name == "postgresql":
        for numbered in (table for table in TABLES if table.autoincrement_column is not None):
            _go_on_counting(connection, numbered)


def _row(table: Table, values: list[Any]) -> dict[str, Any]:
    return {
        column.name: date.fromisoformat(value) if isinstance(column.type, Date) and value is not None else value
        for column, value in zip(table.columns, values, strict=True)
    }


def _go_on_counting(connection: Connection, table: Table) -> None:
    """Set PostgreSQL's counter to the largest number, because rows inserted with a number do not advance it."""
    largest = connection.scalar(select(func.max(table.c.number)))
    if largest is not None:
        counter = "SELECT setval(pg_get_serial_sequence(:table, 'number'), :largest)"
        connection.execute(text(counter), {"table": table.name, "largest": largest})


def _check_empty(connection: Connection, database: Database) -> None:
    for table in TABLES:
        if table is not schema.installation and connection.scalar(select(func.count()).select_from(table)):
            raise CrowdveilError(
                f"the database {database.shown_address} is not empty, and a backup never overwrites anything: "
                "restore into a new one"
            )


def _version(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()
