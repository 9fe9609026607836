"""The file behind a privacy ledger: its tables, its transactions, and its failures in plain words.

It is an SQLite database with a rollback journal and synchronous=EXTRA. It does not use WAL, for three reasons. A ledger
at rest is one file: copying it cannot leave charges behind in a ``-wal`` file. SQLite before 3.51.3 can, rarely,
corrupt a WAL database that several processes write to, and most systems still ship an older version. And a ledger makes
only a few commits per release, so it gains nothing from WAL's speed. It uses EXTRA because FULL does not sync the
directory after deleting the journal: a power cut could then bring the journal back and undo a charge whose noise has
already been published.

Nothing is ever updated or deleted: budgets and sums are derived from the rows that were appended. Every operation opens
its own connection, so threads may share a ledger, and a process may fork unless one of its threads is in the middle of
an operation. POSIX locks belong to the process, and a plain ``open`` and ``close`` of the file would drop the locks of
its other threads, so nothing but SQLite opens a ledger once it exists.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Amount
from crowdveil.privacy.ledger.people import create_key, key_path

PATIENCE_SECONDS = 30.0
"""Time to wait for another process that is writing to the ledger."""

APPLICATION_ID = int.from_bytes(b"crvl", "big")
PURE_FORMAT, ZCDP_FORMAT = 3, 4
"""Formats of a ledger that adds up epsilons, and of one that adds up rhos."""

_HOW_TO_CREATE = "create one with: crowdveil ledger create PATH --budget 3"

_TABLES = (
    """CREATE TABLE ledger (
        id TEXT NOT NULL,
        created_at TEXT NOT NULL,
        opening_budget INTEGER NOT NULL CHECK (opening_budget > 0),
        key_recognised_by TEXT NOT NULL)""",
    """CREATE TABLE budget_raise (
        id INTEGER PRIMARY KEY,
        old_budget INTEGER NOT NULL,
        new_budget INTEGER NOT NULL CHECK (new_budget > old_budget),
        note TEXT NOT NULL,
        raised_at TEXT NOT NULL)""",
    # people: the sorted numbers of a crowd's people, 8 bytes each; NULL if they are unknown.
    """CREATE TABLE crowd (
        id INTEGER PRIMARY KEY,
        digest TEXT NOT NULL UNIQUE,
        study TEXT NOT NULL,
        voters INTEGER NOT NULL CHECK (voters > 0),
        people BLOB CHECK (people IS NULL OR length(people) > 0))""",
    """CREATE TABLE entry (
        id INTEGER PRIMARY KEY,
        crowd INTEGER NOT NULL REFERENCES crowd,
        dataset TEXT NOT NULL,
        unit TEXT NOT NULL,
        epsilon INTEGER NOT NULL CHECK (epsilon > 0),
        spent_before INTEGER NOT NULL CHECK (spent_before >= 0),
        records_per_voter INTEGER NOT NULL CHECK (records_per_voter > 0),
        purpose TEXT NOT NULL,
        charged_at TEXT NOT NULL)""",
    "CREATE INDEX entry_crowd ON entry (crowd, epsilon)",
    """CREATE TABLE delivery (
        entry INTEGER PRIMARY KEY REFERENCES entry,
        release_digest TEXT NOT NULL,
        delivered_at TEXT NOT NULL)""",
    """CREATE VIEW budget AS
        SELECT coalesce((SELECT max(new_budget) FROM budget_raise), opening_budget) AS budget FROM ledger""",
    # A second check: a program that forgets the first one can neither overspend on a crowd nor understate its spending.
    """CREATE TRIGGER within_budget AFTER INSERT ON entry
        WHEN NEW.spent_before + NEW.epsilon > (SELECT budget FROM budget)
          OR NEW.spent_before + NEW.epsilon < (SELECT sum(epsilon) FROM entry WHERE crowd = NEW.crowd)
        BEGIN SELECT RAISE(ABORT, 'the budget does not cover this entry'); END""",
    *(
        f"""CREATE TRIGGER {table}_no_{action} BEFORE {action} ON {table}
        BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END"""
        for table in ("ledger", "budget_raise", "crowd", "entry", "delivery")
        for action in ("UPDATE", "DELETE")
    ),
)

_ZCDP_TABLES = (
    "CREATE TABLE zcdp (delta REAL NOT NULL CHECK (delta > 0 AND delta < 1))",
    *(
        f"""CREATE TRIGGER zcdp_no_{action} BEFORE {action} ON zcdp
        BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END"""
        for action in ("UPDATE", "DELETE")
    ),
)
"""The additional table of a zCDP ledger. All amounts in its other tables are millionths of rho, not of epsilon."""


def now() -> str:
    """Return the current time in UTC, in ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def creating(path: Path) -> Iterator[None]:
    """Let others wait who may create the same ledger, by a lock on its directory, which leaves no file behind."""
    with ExitStack() as held:
        with suppress(OSError):  # Creation, or opening, says what is wrong with the directory.
            directory = os.open(path.absolute().parent, os.O_RDONLY)
            held.callback(os.close, directory)
            fcntl.flock(directory, fcntl.LOCK_EX)
        yield


def create(path: Path, budget: Amount, delta: float | None) -> None:
    """Create a ledger. It is complete and on disk when this returns; an existing file is never overwritten.

    Only its owner can read it, as it tells who was charged what; SQLite's journal gets the mode of the ledger. With
    ``delta`` it is a zCDP ledger, whose budget is a rho.
    """
    try:
        # O_EXCL: if several processes create the same ledger, exactly one succeeds.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        raise CrowdveilError(f"{path} already exists: use it as it is, or choose another path") from None
    except OSError as error:
        raise CrowdveilError(f"cannot create ledger {path}: {error.strerror}") from None
    try:
        recognised_by = create_key(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    try:
        with _in_plain_words(path), closing(_connect(path)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _TABLES if delta is None else _TABLES + _ZCDP_TABLES:
                connection.execute(statement)
            if delta is not None:
                connection.execute("INSERT INTO zcdp VALUES (?)", (delta,))
            connection.execute(
                "INSERT INTO ledger VALUES (?, ?, ?, ?)", (str(uuid.uuid4()), now(), budget.micro, recognised_by)
            )
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {PURE_FORMAT if delta is None else ZCDP_FORMAT}")
            connection.execute("COMMIT")
    except BaseException:
        path.unlink(missing_ok=True)
        key_path(path).unlink(missing_ok=True)
        raise


@contextmanager
def transaction(path: Path, ledger: str | None = None, *, writes: bool) -> Iterator[sqlite3.Connection]:
    """Run a block as one transaction: committed and on disk if the block succeeds, undone if it raises.

    With ``writes`` the block holds the only write lock from its first line, so what it reads stays true until its
    commit. Without ``writes`` it sees the ledger at one moment. ``ledger`` is the id that the file must have.
    """
    _check_path(path)
    with _in_plain_words(path), closing(_connect(path)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            _check_identity(path, connection, ledger)
            yield connection
            connection.execute("COMMIT")
        finally:
            connection.rollback()


def _connect(path: Path) -> sqlite3.Connection:
    """Open a connection whose commits are on disk when they return."""
    # mode=rw: never create an empty ledger if the file is missing.
    uri = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE_SECONDS, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone stops at the drive's own cache
        connection.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_path(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise CrowdveilError(f"there is no ledger at {path}: {_HOW_TO_CREATE}") from None
    except OSError as error:
        raise CrowdveilError(f"cannot open ledger {path}: {error.strerror}") from None
    if stat.S_ISDIR(mode):
        raise CrowdveilError(f"{path} is a directory, not a ledger: give the ledger's file, or {_HOW_TO_CREATE}")
    if not stat.S_ISREG(mode):
        raise CrowdveilError(f"{path} is not a file, so not a ledger: {_HOW_TO_CREATE}")
    # The directory too: the journal that makes a charge durable is written beside the ledger.
    for place in (path, path.resolve().parent):
        if not os.access(place, os.W_OK):
            raise CrowdveilError(
                f"ledger {path} cannot be charged because {place} is not writable: get write permission to it"
            )


def delta_of(connection: sqlite3.Connection) -> float | None:
    """Return the delta of a zCDP ledger; None for a pure one."""
    if _format(connection) == PURE_FORMAT:
        return None
    (delta,) = connection.execute("SELECT delta FROM zcdp").fetchone()
    return float(delta)


def _format(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _check_identity(path: Path, connection: sqlite3.Connection, ledger: str | None) -> None:
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        raise CrowdveilError(f"{path} is not a crowdveil ledger, or its creation was cut off: {_HOW_TO_CREATE}")
    if (version := _format(connection)) not in (PURE_FORMAT, ZCDP_FORMAT):
        raise CrowdveilError(
            f"ledger {path} has format {version}, this crowdveil knows formats {PURE_FORMAT} and {ZCDP_FORMAT}: "
            "use the crowdveil that made it"
        )
    (found,) = connection.execute("SELECT id FROM ledger").fetchone()
    if ledger is not None and found != ledger:
        raise CrowdveilError(f"{path} was replaced by another ledger while in use: restore the first one")


@contextmanager
def _in_plain_words(path: Path) -> Iterator[None]:
    """Turn an error of the file into a message for the person who must fix it; bugs pass through."""
    try:
        yield
    except sqlite3.Error as error:
        # The low byte is the family of the error; errors that Python itself raises have no code.
        advice = {
            sqlite3.SQLITE_BUSY: f"another program keeps it locked ({PATIENCE_SECONDS:g} s waited): try again",
            sqlite3.SQLITE_FULL: "the disk is full: free some space, then try again",
            sqlite3.SQLITE_IOERR: "the disk could not be read or written: check it, then look at the ledger",
            sqlite3.SQLITE_READONLY: "it is not writable: get write permission to it and its directory",
            sqlite3.SQLITE_CANTOPEN: "it cannot be opened: get write permission to it and its directory",
            sqlite3.SQLITE_NOTADB: f"it is not a crowdveil ledger: {_HOW_TO_CREATE}",
            sqlite3.SQLITE_CORRUPT: "it is damaged: restore a backup, then charge what is missing in it",
        }.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if advice is None:
            raise
        raise CrowdveilError(f"cannot use ledger {path}: {advice}") from error
