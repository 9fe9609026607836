"""Hosts sign in once by a link, then by password, and nothing in the database lets anybody else in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from argon2 import PasswordHasher
from sqlalchemy import text
from tests.service.host.website import code_at

from crowdveil.errors import CrowdveilError
from crowdveil.service.store.hosts import (
    FIRST_HOST,
    INVITATION_SECONDS,
    LINK_SECONDS,
    SESSION_SECONDS,
    Host,
    Hosts,
    LogEntry,
    Role,
)
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


def test_an_invitation_brings_a_host_with_a_role(store: Store) -> None:
    store.hosts.create_sign_in_link(NOW)
    token = store.hosts.invite("ana@lab.example", Role.ANALYST, NOW)
    assert store.hosts.use_sign_in_link(token, NOW + INVITATION_SECONDS - 1) == "ana@lab.example"
    assert store.hosts.all() == [
        Host("ana@lab.example", Role.ANALYST, False, False),
        Host(FIRST_HOST, Role.OWNER, False, False),
    ]
    for wrong in ("ana@lab.example", "", "a b", "<b>"):
        with pytest.raises(CrowdveilError):
            store.hosts.invite(wrong, Role.VIEWER, NOW)


def test_one_owner_always_stays(store: Store) -> None:
    store.hosts.create_sign_in_link(NOW)
    store.hosts.invite("ana", Role.VIEWER, NOW)
    with pytest.raises(CrowdveilError, match="somebody must own"):
        store.hosts.set_role(FIRST_HOST, Role.ANALYST)
    with pytest.raises(CrowdveilError, match="somebody must own"):
        store.hosts.remove(FIRST_HOST)
    assert store.hosts.role(FIRST_HOST) is Role.OWNER
    store.hosts.set_role("ana", Role.OWNER)
    cookie = store.hosts.start_session(FIRST_HOST, NOW)
    store.hosts.remove(FIRST_HOST)
    assert store.hosts.session(cookie, NOW) is None
    assert [host.name for host in store.hosts.all()] == ["ana"]


@pytest.mark.parametrize(
    ("time", "code"),
    [(59, "287082"), (1111111109, "081804"), (1111111111, "050471"), (1234567890, "005924"), (2000000000, "279037")],
)
def test_one_time_codes_are_those_of_rfc_6238(store: Store, time: int, code: str) -> None:
    """Appendix B, SHA-1; six digits are the last of the eight there."""
    key = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # 12345678901234567890 in base32.
    store.hosts.create_sign_in_link(NOW)
    store.hosts.set_second_factor(FIRST_HOST, key, code, time)
    assert store.hosts.all()[0].has_second_factor
    with pytest.raises(CrowdveilError, match="not the code of this moment"):
        store.hosts.set_second_factor(FIRST_HOST, key, code, time + 90)


def test_a_second_factor_stays_until_it_is_dropped(store: Store) -> None:
    key, other = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ", "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJR"
    store.hosts.create_sign_in_link(NOW)
    store.hosts.set_second_factor(FIRST_HOST, key, code_at(key, 59), 59)
    with pytest.raises(CrowdveilError, match="there is a second factor already"):
        store.hosts.set_second_factor(FIRST_HOST, other, code_at(other, 59), 59)
    assert store.hosts.check_code(FIRST_HOST, "081804", 1111111109)  # Of the first.
    store.hosts.drop_second_factor(FIRST_HOST)
    store.hosts.set_second_factor(FIRST_HOST, other, code_at(other, 59), 59)


def test_a_code_counts_once(store: Store) -> None:
    key = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
    store.hosts.create_sign_in_link(NOW)
    assert store.hosts.check_code(FIRST_HOST, "", NOW)  # There is no second factor yet.
    assert not store.hosts.check_code("nobody", "", NOW)
    store.hosts.set_second_factor(FIRST_HOST, key, "287082", 59)
    assert not store.hosts.check_code(FIRST_HOST, "287082", 59)
    assert not store.hosts.check_code(FIRST_HOST, "", 1111111109)
    assert not store.hosts.check_code(FIRST_HOST, "ünsinn", 1111111109)
    assert store.hosts.check_code(FIRST_HOST, "081 804", 1111111109)
    assert not store.hosts.check_code(FIRST_HOST, "081804", 1111111109)
    store.hosts.drop_second_factor(FIRST_HOST)
    assert store.hosts.check_code(FIRST_HOST, "", 1111111109)


def test_the_audit_log_has_the_latest_first(store: Store) -> None:
    first, second = LogEntry(NOW, "ana", "signed in", None, ""), LogEntry(NOW + 1, "ana", "closed a poll", "p", "x")
    store.audit_log.add(first)
    store.audit_log.add(second)
    assert store.audit_log.latest() == [second, first]
    assert store.audit_log.latest("p") == [second]
