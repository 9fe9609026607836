"""Bring a database to the tables of this version. Two processes that start at once take turns."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from crowdveil.errors import CrowdveilError
from crowdveil.service.store.database import Database

_TURN = int.from_bytes(b"crvl", "big")


def migrate(database: Database) -> None:
    """Run the migrations that are missing, all or none."""
    try:
        with database.writing() as connection:
            if not database.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:turn)"), {"turn": _TURN})
            _upgrade(connection)
    except OperationalError as error:
        raise CrowdveilError(f"cannot open the database {database.shown_address}: {error.orig}") from None


def _upgrade(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    found = MigrationContext.configure(connection).get_current_revision()
    known = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    if found is not None and found not in known:
        raise CrowdveilError(
            f"the database was made by a newer crowdveil (its version is {found}): use that one, or a backup"
        )
    command.upgrade(config, "head")
