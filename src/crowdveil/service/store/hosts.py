"""Hosts, their roles and their sessions, and the audit log of what they did.

The database contains only hashes of passwords, links and cookies: somebody who reads it can neither sign in nor take
over a session. (The key of one-time codes must be stored unhashed; without the password it is useless.)
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor import InvalidToken
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from sqlalchemy import Connection, delete, func, insert, select, update

from crowdveil.errors import CrowdveilError
from crowdveil.service.store import schema
from crowdveil.service.store.database import Database

FIRST_HOST = "host"
"""Name of the host for whom ``crowdveil serve`` creates a sign-in link."""
LEAST_PASSWORD, MOST_PASSWORD = 12, 200
SESSION_SECONDS = 12 * 3600
LINK_SECONDS = 24 * 3600
INVITATION_SECONDS = 7 * 24 * 3600
CODE_DIGITS = 6
"""Length of one-time codes, as in RFC 6238 and in every program for them."""
CODE_SECONDS = 30
"""Lifetime of one-time codes, as in RFC 6238 and in every program for them."""
_NAME = re.compile(r"[\w.@+-]{1,80}")
MOST_SHOWN = 1000


class Role(StrEnum):
    """The rights of a host: a viewer looks, an analyst also releases and downloads, an owner does everything."""

    VIEWER = "viewer"
    ANALYST = "analyst"
    OWNER = "owner"

    def covers(self, needed: Role) -> bool:
        """Return whether this role has the rights of the needed one."""
        order = list(Role)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True)
class Host:
    """A person who may see the host's pages."""

    name: str
    role: Role
    has_password: bool
    has_second_factor: bool


@dataclass(frozen=True)
class Hosts:
    """The people who may see the host's pages. All times are in seconds since 1970."""

    database: Database
    _hasher: PasswordHasher = field(default_factory=PasswordHasher, repr=False)

    def create_sign_in_link(self, now: int, host: str = FIRST_HOST) -> str:
        """Return a token with which the host can sign in once within a day. A new host becomes an owner."""
        return self._create_link(host, Role.OWNER, now, now + LINK_SECONDS)

    def invite(self, host: str, role: Role, now: int) -> str:
        """Add a host, and return a token to sign in once within a week and choose a password."""
        if not _NAME.fullmatch(host):
            raise CrowdveilError(
                f"a host's name has 1 to 80 letters, digits and . @ + - _ (an e-mail address will do), got {host!r}"
            )
        if self.get(host) is not None:
            raise CrowdveilError(f"there is a host {host!r} already: choose another name, or change the role")
        return self._create_link(host, role, now, now + INVITATION_SECONDS)

    def _create_link(self, host: str, role: Role, now: int, until: int) -> str:
        token = secrets.token_urlsafe(32)
        with self.database.writing() as connection:
            if connection.scalar(select(schema.host.c.name).where(schema.host.c.name == host)) is None:
                connection.execute(insert(schema.host).values(name=host, password=None, role=role.value, last_code=0))
            connection.execute(delete(schema.sign_in_link).where(schema.sign_in_link.c.expires_at <= now))
            connection.execute(
                insert(schema.sign_in_link).values({"id": _hash(token), "host": host, "expires_at": until})
            )
        return token

    def get(self, host: str) -> Host | None:
        """Return a host by name."""
        return next((one for one in self.all() if one.name == host), None)

    def all(self) -> list[Host]:
        """Return all hosts, by name."""
        with self.database.reading() as connection:
            rows = connection.execute(select(schema.host).order_by(schema.host.c.name)).all()
        return [Host(row.name, Role(row.role), row.password is not None, row.second_factor is not None) for row in rows]

    def set_role(self, host: str, role: Role) -> None:
        """Change the role of a host. At least one owner always stays."""
        with self.database.writing() as connection:
            connection.execute(update(schema.host).where(schema.host.c.name == host).values(role=role.value))
            _check_owner_left(connection)

    def remove(self, host: str) -> None:
        """Remove a host, who is signed out at once. At least one owner always stays."""
        with self.database.writing() as connection:
            for table in (schema.session, schema.sign_in_link):
                connection.execute(delete(table).where(table.c.host == host))
            connection.execute(delete(schema.host).where(schema.host.c.name == host))
            _check_owner_left(connection)

    def use_sign_in_link(self, token: str, now: int) -> str | None:
        """Use up a one-time token and return its host; None if it is unknown, used or expired."""
        link = schema.sign_in_link
        with self.database.writing() as connection:
            used = delete(link).where(link.c.id == _hash(token)).returning(link.c.host, link.c.expires_at)
            row = connection.execute(used).one_or_none()
        return row.host if row is not None and row.expires_at > now else None

    def has_password(self, host: str) -> bool:
        """Return whether a host has chosen a password."""
        with self.database.reading() as connection:
            found = connection.scalar(select(schema.host.c.password).where(schema.host.c.name == host))
        return found is not None

    def set_password(self, host: str, password: str) -> None:
        """Store the hash (argon2) of a new password, and end all sessions of the host."""
        if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
            raise CrowdveilError(f"a password has {LEAST_PASSWORD} to {MOST_PASSWORD} characters, got {len(password)}")
        hashed = self._hasher.hash(password)
        with self.database.writing() as connection:
            connection.execute(update(schema.host).where(schema.host.c.name == host).values(password=hashed))
            connection.execute(delete(schema.session).where(schema.session.c.host == host))

    def check_password(self, host: str, password: str) -> bool:
        """Return whether this is the host's password. An unknown host takes as long as a known one."""
        with self.database.reading() as connection:
            found = connection.scalar(select(schema.host.c.password).where(schema.host.c.name == host))
        try:
            self._hasher.verify(found or _nobodys_hash(), password[: MOST_PASSWORD + 1])
        except (VerificationError, InvalidHashError):
            return False
        return found is not None

    def new_key(self) -> str:
        """Return a key for one-time codes, in base32. It takes effect when ``set_second_factor`` is given a code."""
        return base64.b32encode(secrets.token_bytes(20)).decode()

    def set_second_factor(self, host: str, key: str, code: str, now: int) -> None:
        """Require one-time codes from this host from now on; ``code`` proves that the host's device has the key.

        A second factor that is set stays until it is dropped.
        """
        step = _step_of(key, code, now)
        if step is None:
            raise CrowdveilError(
                f"{code!r} is not the code of this moment: check that your device's clock is right, and try the next"
            )
        with self.database.writing() as connection:
            values = {"second_factor": key, "last_code": step}
            without = (schema.host.c.name == host, schema.host.c.second_factor.is_(None))
            if connection.execute(update(schema.host).where(*without).values(values)).rowcount == 0:
                raise CrowdveilError(
                    "there is a second factor already: end that one with one of its codes, and then set up another"
                )

    def drop_second_factor(self, host: str) -> None:
        """Stop requiring codes from this host."""
        with self.database.writing() as connection:
            connection.execute(update(schema.host).where(schema.host.c.name == host).values(second_factor=None))

    def check_code(self, host: str, code: str, now: int) -> bool:
        """Return whether a one-time code is correct and unused. For a host without a second factor, any code passes."""
        row = schema.host.c.name == host
        with self.database.writing() as connection:
            found = connection.execute(
                select(schema.host.c.second_factor, schema.host.c.last_code).where(row).with_for_update()
            ).one_or_none()
            if found is None or found.second_factor is None:
                return found is not None
            step = _step_of(found.second_factor, code, now)
            if step is None or step <= found.last_code:
                return False
            connection.execute(update(schema.host).where(row).values(last_code=step))
        return True

    def start_session(self, host: str, now: int) -> str:
        """Begin a session and return the content of its cookie."""
        cookie = secrets.token_urlsafe(32)
        row = {"id": _hash(cookie), "host": host, "expires_at": now + SESSION_SECONDS}
        with self.database.writing() as connection:
            connection.execute(delete(schema.session).where(schema.session.c.expires_at <= now))
            connection.execute(insert(schema.session).values(row))
        return cookie

    def session(self, cookie: str, now: int) -> str | None:
        """Return the host of a cookie's session; None if it is unknown, ended or expired."""
        table = schema.session
        asked = select(table.c.host).where(table.c.id == _hash(cookie), table.c.expires_at > now)
        with self.database.reading() as connection:
            return connection.scalar(asked)

    def role(self, host: str) -> Role | None:
        """Return the role of a host; None if there is no such host."""
        with self.database.reading() as connection:
            found = connection.scalar(select(schema.host.c.role).where(schema.host.c.name == host))
        return None if found is None else Role(found)

    def end_session(self, cookie: str) -> None:
        """End a session."""
        with self.database.writing() as connection:
            connection.execute(delete(schema.session).where(schema.session.c.id == _hash(cookie)))


def _step_of(key: str, code: str, now: int) -> int | None:
    """Return the time step of a code: the current one, or one beside it because clocks differ; None if it is wrong."""
    totp = TOTP(base64.b32decode(key), CODE_DIGITS, SHA1(), CODE_SECONDS)
    given = "".join(code.split())
    for step in (now // CODE_SECONDS + ahead for ahead in (0, -1, 1)):
        try:
            totp.verify(given.encode(), step * CODE_SECONDS)
        except InvalidToken:
            continue
        return step
    return None


def _check_owner_left(connection: Connection) -> None:
    owners = select(func.count()).select_from(schema.host).where(schema.host.c.role == Role.OWNER.value)
    if not connection.execute(owners).scalar_one():
        raise CrowdveilError("somebody must own this server: make another host an owner first")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@lru_cache(maxsize=1)
def _nobodys_hash() -> str:
    """Return the hash of a password that nobody has."""
    return PasswordHasher().hash(secrets.token_hex(32))


@dataclass(frozen=True)
class LogEntry:
    """An action of a host."""

    at: int
    """The time, in seconds since 1970."""
    host: str
    action: str
    poll: str | None
    detail: str


@dataclass(frozen=True)
class AuditLog:
    """The hosts' actions, in order. Nothing is ever changed or removed, and it contains nothing about voters."""

    database: Database

    def add(self, entry: LogEntry) -> None:
        """Write an entry."""
        row = {"at": entry.at, "host": entry.host, "action": entry.action, "poll": entry.poll, "detail": entry.detail}
        with self.database.writing() as connection:
            connection.execute(insert(schema.audit_log).values(row))

    def latest(self, poll: str | None = None) -> list[LogEntry]:
        """Return the latest entries of one poll or of all, newest first."""
        table = schema.audit_log
        asked = select(table.c.at, table.c.host, table.c.action, table.c.poll, table.c.detail)
        chosen = asked if poll is None else asked.where(table.c.poll == poll)
        with self.database.reading() as connection:
            rows = connection.execute(chosen.order_by(table.c.number.desc()).limit(MOST_SHOWN)).all()
        return [LogEntry(*row) for row in rows]
