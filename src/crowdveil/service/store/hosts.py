"""Hosts and their sessions. The database holds hashes only: whoever reads it can neither sign in nor take a session."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from sqlalchemy import delete, insert, select, update

from crowdveil.errors import CrowdveilError
from crowdveil.service.store import schema
from crowdveil.service.store.database import Database

FIRST_HOST = "host"
"""Who the sign-in link of ``crowdveil serve`` is for."""
LEAST_PASSWORD, MOST_PASSWORD = 12, 200
SESSION_SECONDS = 12 * 3600
LINK_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Hosts:
    """Who may see the host's pages. Every time is given in seconds since 1970."""

    database: Database
    _hasher: PasswordHasher = field(default_factory=PasswordHasher, repr=False)

    def create_sign_in_link(self, now: int, host: str = FIRST_HOST) -> str:
        """Return a token with which the host can sign in once, within a day; makes the host if there is none."""
        token = secrets.token_urlsafe(32)
        with self.database.writing() as connection:
            if connection.scalar(select(schema.host.c.name).where(schema.host.c.name == host)) is None:
                connection.execute(insert(schema.host).values(name=host, password=None))
            connection.execute(delete(schema.sign_in_link).where(schema.sign_in_link.c.expires_at <= now))
            row = {"id": _hash(token), "host": host, "expires_at": now + LINK_SECONDS}
            connection.execute(insert(schema.sign_in_link).values(row))
        return token

    def use_sign_in_link(self, token: str, now: int) -> str | None:
        """Take a one-time token and return whose it is; None if it is unknown, used or too old."""
        link = schema.sign_in_link
        with self.database.writing() as connection:
            used = delete(link).where(link.c.id == _hash(token)).returning(link.c.host, link.c.expires_at)
            row = connection.execute(used).one_or_none()
        return row.host if row is not None and row.expires_at > now else None

    def has_password(self, host: str) -> bool:
        """Whether a host has chosen a password."""
        with self.database.reading() as connection:
            found = connection.scalar(select(schema.host.c.password).where(schema.host.c.name == host))
        return found is not None

    def set_password(self, host: str, password: str) -> None:
        """Choose a password (argon2), and end all sessions of the host."""
        if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
            raise CrowdveilError(f"a password has {LEAST_PASSWORD} to {MOST_PASSWORD} characters, got {len(password)}")
        hashed = self._hasher.hash(password)
        with self.database.writing() as connection:
            connection.execute(update(schema.host).where(schema.host.c.name == host).values(password=hashed))
            connection.execute(delete(schema.session).where(schema.session.c.host == host))

    def check_password(self, host: str, password: str) -> bool:
        """Whether this is the host's password. An unknown host takes as long as a known one."""
        with self.database.reading() as connection:
            found = connection.scalar(select(schema.host.c.password).where(schema.host.c.name == host))
        try:
            self._hasher.verify(found or _nobodys_hash(), password[: MOST_PASSWORD + 1])
        except (VerificationError, InvalidHashError):
            return False
        return found is not None

    def start_session(self, host: str, now: int) -> str:
        """Begin a session and return what its cookie holds."""
        cookie = secrets.token_urlsafe(32)
        row = {"id": _hash(cookie), "host": host, "expires_at": now + SESSION_SECONDS}
        with self.database.writing() as connection:
            connection.execute(delete(schema.session).where(schema.session.c.expires_at <= now))
            connection.execute(insert(schema.session).values(row))
        return cookie

    def session(self, cookie: str, now: int) -> str | None:
        """Return whose session a cookie holds; None if it is unknown, ended or too old."""
        table = schema.session
        asked = select(table.c.host).where(table.c.id == _hash(cookie), table.c.expires_at > now)
        with self.database.reading() as connection:
            return connection.scalar(asked)

    def end_session(self, cookie: str) -> None:
        """End a session."""
        with self.database.writing() as connection:
            connection.execute(delete(schema.session).where(schema.session.c.id == _hash(cookie)))


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@lru_cache(maxsize=1)
def _nobodys_hash() -> str:
    """Return the hash of a password that nobody has."""
    return PasswordHasher().hash(secrets.token_hex(32))
