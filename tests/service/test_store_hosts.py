"""Hosts sign in once by a link, then by password, and nothing in the database lets anybody else in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from argon2 import PasswordHasher
from sqlalchemy import text

from crowdveil.errors import CrowdveilError
from crowdveil.service.store.hosts import FIRST_HOST, LINK_SECONDS, SESSION_SECONDS, Hosts
from crowdveil.service.store.store import Store

NOW = 1_000_000
PASSWORD = "correct horse battery"


def test_a_link_works_once(store: Store) -> None:
    token = store.hosts.create_sign_in_link(NOW)
    assert store.hosts.use_sign_in_link("x" + token, NOW) is None
    with ThreadPoolExecutor(8) as threads:
        used = list(threads.map(lambda _: store.hosts.use_sign_in_link(token, NOW), range(8)))
    assert used.count(FIRST_HOST) == 1
    assert used.count(None) == 7


def test_a_link_expires(store: Store) -> None:
    token = store.hosts.create_sign_in_link(NOW)
    assert store.hosts.use_sign_in_link(token, NOW + LINK_SECONDS) is None


def test_passwords(store: Store) -> None:
    hosts = Hosts(store.database, PasswordHasher(time_cost=1, memory_cost=64))
    assert not hosts.check_password(FIRST_HOST, "")
    hosts.create_sign_in_link(NOW)
    assert not hosts.has_password(FIRST_HOST)
    with pytest.raises(CrowdveilError, match="12 to 200"):
        hosts.set_password(FIRST_HOST, "short")
    hosts.set_password(FIRST_HOST, PASSWORD)
    assert hosts.has_password(FIRST_HOST)
    assert hosts.check_password(FIRST_HOST, PASSWORD)
    assert not hosts.check_password(FIRST_HOST, PASSWORD + " ")
    assert not hosts.check_password("somebody", PASSWORD)


def test_sessions_end(store: Store) -> None:
    store.hosts.create_sign_in_link(NOW)
    first, second = store.hosts.start_session(FIRST_HOST, NOW), store.hosts.start_session(FIRST_HOST, NOW)
    assert store.hosts.session(first, NOW + SESSION_SECONDS - 1) == FIRST_HOST
    assert store.hosts.session(first, NOW + SESSION_SECONDS) is None
    store.hosts.end_session(first)
    assert store.hosts.session(first, NOW) is None
    assert store.hosts.session(second, NOW) == FIRST_HOST
    store.hosts.set_password(FIRST_HOST, PASSWORD)
    assert store.hosts.session(second, NOW) is None


def test_no_secret_is_in_the_database(store: Store) -> None:
    token = store.hosts.create_sign_in_link(NOW)
    store.hosts.set_password(FIRST_HOST, PASSWORD)
    cookie = store.hosts.start_session(FIRST_HOST, NOW)
    with store.database.reading() as connection:
        rows = [
            str(connection.execute(text(f"SELECT * FROM {table}")).all())
            for table in ("host", "session", "sign_in_link")
        ]
    assert not any(secret in kept for secret in (token, cookie, PASSWORD) for kept in rows)
    assert "$argon2id$" in rows[0]
