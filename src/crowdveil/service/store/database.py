"""The connection to the database: how transactions begin, when a commit is durable, and which tables there are.

SQLite runs in WAL mode with synchronous=FULL: when a commit returns, it is on disk. Versions before 3.51.3 can, rarely,
damage a WAL database that two connections write to at the same time. So only one process at a time opens the file (it
holds a lock beside it), and only one thread of that process writes at a time.

PostgreSQL may serve many processes. A transaction that writes to a poll first locks the poll's row.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, Select, Table, bindparam, create_engine, event, func, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, OperationalError, SQLAlchemyError

from crowdveil.errors import CrowdveilError, missing_extra

T = TypeVar("T")

MIGRATIONS = Path(__file__).parent / "migrations"
"""Directory of the migrations of the service's tables."""
NAMES = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(referred_table_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}
"""Patterns for the names of constraints."""
PATIENCE_SECONDS = 30
CONNECTIONS = 16
"""Connections per process: the number of threads that may use the database at once."""
ROWS_AT_ONCE = 4096
"""Number of rows that one statement reads, names or inserts, below every database's limit on parameters."""
_TURN = int.from_bytes(b"crvl", "big")
"""Id of the lock with which two processes that start at the same time take turns at creating the tables."""


@dataclass(frozen=True)
class Database:
    """An open database."""

    engine: Engine
    _one_writer: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def is_sqlite(self) -> bool:
        """Whether this is an SQLite file, which this process alone uses."""
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection that sees the database at one moment, however long the block takes."""
        isolation = {} if self.is_sqlite else {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self.engine.connect().execution_options(**isolation) as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection whose changes are all durable when the block has ended, or none if it fails."""
        if not self.is_sqlite:
            with self.engine.begin() as connection:
                yield connection
            return
        with self._one_writer, self.engine.connect().execution_options(writes=True) as connection, connection.begin():
            yield connection

    @property
    def shown_address(self) -> str:
        """The address of the database, without the password."""
        return self.engine.url.render_as_string(hide_password=True)

    def responds(self) -> bool:
        """Return whether the database answers a query."""
        try:
            with self.engine.connect() as connection:
                return bool(connection.execute(text("SELECT 1")).scalar_one() == 1)
        except SQLAlchemyError:
            return False

    def forget_deleted(self, *tables: str) -> None:
        """Remove deleted rows from SQLite's write-ahead log, unless somebody is reading it.

        (In the file itself, ``secure_delete`` overwrites deleted rows. PostgreSQL drops them when it vacuums; the given
        tables are vacuumed at once, by rewriting them.)
        """
        if not self.is_sqlite and tables:
            with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as direct:
                for table in tables:
                    direct.execute(text(f"VACUUM FULL {table}"))
        if self.is_sqlite:
            with self._one_writer, closing(self.engine.raw_connection()) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def connect(address: str) -> Database:
    """Open a database by its address: sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME."""
    url = _url(address)
    # The parameters of statements stay out of error messages, and so out of logs.
    shared = {"pool_size": CONNECTIONS, "max_overflow": 0, "hide_parameters": True}
    if url.get_backend_name() == "postgresql":
        try:
            return Database(create_engine(url, **shared, pool_pre_ping=True))
        except ModuleNotFoundError as error:
            raise missing_extra(error) from None
    _check_own(Path(str(url.database)))
    engine = create_engine(url, **shared, connect_args={"timeout": PATIENCE_SECONDS, "check_same_thread": False})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return Database(engine)


def _check_own(path: Path) -> None:
    """Refuse a file that is no SQLite database, or is another program's, such as a ledger, before it is changed."""
    if path.exists() and not path.is_file():
        what = "a directory" if path.is_dir() else "a device or a pipe"
        raise CrowdveilError(f"cannot open the database {path}: it is {what}; name a file, like sqlite:///polls.sqlite")
    if not path.is_file() or path.stat().st_size == 0:
        return
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.OperationalError:
        return  # It cannot be opened: whoever opens it next says why.
    except sqlite3.DatabaseError as error:
        raise CrowdveilError(f"{path} is not an SQLite database ({error}): name another file") from None
    if tables and "alembic_version" not in tables:
        raise CrowdveilError(
            f"{path} is a ledger, or another program's database, not that of a website or a relay: name another file"
        )


def rows_at_once(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split rows into groups that are small enough for one statement."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[start : start + ROWS_AT_ONCE]


def rows_among(table: Table, *columns: str) -> Select[Any]:
    """Return a query for these columns of the rows of a poll (``poll_id``) with given ids (``ids``)."""
    ids = table.c.id.in_(bindparam("ids", expanding=True))
    return select(table.c.id, *(table.c[name] for name in columns)).where(table.c.poll == bindparam("poll_id"), ids)


def next_number(connection: Connection, table: Table) -> int:
    """Return the number after all that were given to rows of a table, which nobody else is given."""
    if connection.dialect.name == "sqlite":
        return (connection.scalar(select(func.max(table.c.number))) or 0) + 1
    counter = select(func.nextval(func.pg_get_serial_sequence(table.name, "number")))
    return int(connection.execute(counter).scalar_one())


def insert_into(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an INSERT that can say what becomes of a row that is already there."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


@contextmanager
def _alone(database: Database) -> Iterator[None]:
    """Hold a lock that excludes every other process that asks for it from an SQLite file."""
    if not database.is_sqlite:
        yield
        return
    path = Path(str(database.engine.url.database))
    try:
        descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise CrowdveilError(f"cannot open the database {path}: {error.strerror or error}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise CrowdveilError(
            f"{path} is in use by another process: stop that one first, or use PostgreSQL (--database), "
            "which many processes may share"
        ) from None
    finally:
        os.close(descriptor)


@contextmanager
def open_database(address: str, migrations: Path) -> Iterator[Database]:
    """Open a database by its address, bring its tables up to date, and close it afterwards.

    ``sqlite:///PATH`` is for one process at a time; ``postgresql://USER:PASSWORD@HOST/NAME`` for many.
    """
    database = connect(address)
    try:
        with _alone(database):
            _create_for_owner(database)
            _migrate(database, migrations)
            yield database
    finally:
        database.close()


def _create_for_owner(database: Database) -> None:
    """Create an SQLite file that is not there yet, readable only by its owner: it may come to hold exact answers.

    SQLite gives its log the mode of the database. A file that is there keeps the mode that its owner gave it.
    """
    if database.is_sqlite:
        with suppress(OSError):  # It is there, or whoever opens it next says why it cannot be.
            os.close(os.open(str(database.engine.url.database), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _migrate(database: Database, migrations: Path) -> None:
    """Bring a database to this version's tables, all or none. Two processes that start at the same time take turns."""
    try:
        with database.writing() as connection:
            if not database.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:turn)"), {"turn": _TURN})
            _upgrade(connection, migrations)
    except OperationalError as error:
        raise CrowdveilError(f"cannot open the database {database.shown_address}: {error.orig}") from None


def _url(address: str) -> URL:
    try:
        url = make_url(address)
    except ArgumentError:
        raise CrowdveilError("the database must be like sqlite:///PATH or postgresql://USER@HOST/NAME") from None
    if url.get_backend_name() in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        raise CrowdveilError(
            f"a database of kind {url.drivername!r} is not supported: use sqlite:///PATH or postgresql://USER@HOST/NAME"
        )
    if not url.database or url.database == ":memory:":
        raise CrowdveilError(
            f"{address} names no file, and what is stored must last: use sqlite:///PATH or postgresql://USER@HOST/NAME"
        )
    if url.query:
        raise CrowdveilError(f"{address} has a question mark, which no file of a database may have: use sqlite:///PATH")
    return url


def _set_up_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # Only _begin_sqlite begins transactions.
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # IMMEDIATE takes the write lock at once: a transaction that reads first might not get it later.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _upgrade(connection: Connection, migrations: Path) -> None:
    context = MigrationContext.configure(connection)
    found = context.get_current_revision()
    scripts = ScriptDirectory(str(migrations))
    known = [script.revision for script in scripts.walk_revisions()]
    if found is not None and found not in known:
        raise CrowdveilError(
            f"the database has a layout ({found}) that this version of crowdveil does not read (it reads "
            f"{', '.join(known)}): use the version that made it, or start with a new database"
        )
    with Operations.context(context):
        for script in reversed(list(scripts.iterate_revisions("head", found or "base"))):
            script.module.upgrade()
    context.stamp(scripts, "head")
