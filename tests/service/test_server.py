"""What stands in front of the application: headers, limits, and faults that tell nothing."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.exc import OperationalError

from crowdveil.protocol.voters_page import voters_page
from crowdveil.service.app import create_app
from crowdveil.service.poll import poll_from_dict
from crowdveil.service.server import CONTENT_SECURITY_POLICY, Buckets, client_address
from crowdveil.service.service import Service
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.database import Database
from crowdveil.service.store.polls import Polls
from crowdveil.service.store.store import Store


@pytest.mark.parametrize("path", ["/", "/api/polls", "/web/index.html", "/nowhere", "/healthz", "/host/sign-in"])
def test_security_headers_are_on_every_answer(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] in ("no-store", "no-cache")
    assert "strict-transport-security" not in headers


def test_the_voters_page_may_run_what_stands_in_it_and_nothing_else_that_is_not_a_file(
    client: TestClient, service: Service
) -> None:
    service.store.polls.add(poll_from_dict({"name": "a", "study": "kidney"}))
    policy = client.get("/p/a/").headers["content-security-policy"]
    for one in voters_page().inside():
        assert policy.count(one) == 2  # as a script and as a style
        policy = policy.replace(f" {one}", "")
    assert policy == CONTENT_SECURITY_POLICY


def test_https_is_kept_to_where_voters_come_by_it(service: Service) -> None:
    secure = Service(service.store, ServiceSettings(public_url="https://vote.example"))
    assert "strict-transport-security" in TestClient(create_app(secure)).get("/healthz").headers


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [("GET", "/nowhere", 404, "not-found"), ("POST", "/api/polls", 405, "method-not-allowed")],
)
def test_errors_have_one_shape(client: TestClient, method: str, path: str, status: int, reason: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.json()["error"]["reason"] == reason
    assert set(answer.json()["error"]) == {"reason", "message"}


def test_a_fault_tells_nothing(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Polls) -> None:
        raise RuntimeError("the secret is 42")

    monkeypatch.setattr(Polls, "all", fail)
    answer = client.get("/api/polls")
    assert (answer.status_code, answer.json()["error"]["reason"]) == (500, "internal")
    assert "42" not in answer.text
    assert "content-security-policy" in answer.headers


def test_a_database_that_does_not_answer(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "database": "ok"}

    def fail(*_: object) -> None:
        raise OperationalError("SELECT secret", {}, Exception())

    monkeypatch.setattr(Database, "reading", fail)
    answer = client.get("/api/polls")
    assert (answer.status_code, answer.json()["error"]["reason"]) == (503, "unavailable")
    assert "secret" not in answer.text
    monkeypatch.setattr(Database, "responds", lambda _: False)
    unwell = client.get("/healthz")
    assert (unwell.status_code, unwell.json()["database"]) == (503, "does-not-answer")


def test_an_address_that_asks_too_often_waits(service: Service) -> None:
    limited = Service(service.store, ServiceSettings(requests_per_minute=5))
    client = TestClient(create_app(limited), client=("203.0.113.7", 1))
    assert [client.get("/healthz").status_code for _ in range(5)] == [200] * 5
    refused = client.get("/healthz")
    assert (refused.status_code, refused.json()["error"]["reason"]) == (429, "too-many-requests")
    assert 1 <= int(refused.headers["retry-after"]) <= 12
    other = TestClient(create_app(limited), client=("203.0.113.8", 1))
    assert other.get("/healthz").status_code == 200


def test_ipv4_visitors_of_a_server_on_ipv6_are_told_apart_and_loopback_is_free(service: Service) -> None:
    app = create_app(Service(service.store, ServiceSettings(requests_per_minute=1)))

    def visit(address: str) -> int:
        return TestClient(app, client=(address, 1)).get("/healthz").status_code

    assert [visit(f"::ffff:203.0.113.{last}") for last in (7, 8, 7)] == [200, 200, 429]
    assert visit("203.0.113.8") == 429  # the same visitor
    assert [visit("::ffff:127.0.0.1") for _ in range(3)] == [200] * 3


def test_buckets_fill_at_their_rate() -> None:
    now = 0.0
    buckets = Buckets(60, clock=lambda: now)
    assert [buckets.take("192.0.2.1") for _ in range(61)] == [0] * 60 + [1]
    now = 0.5
    assert buckets.take("192.0.2.1") == 1
    now = 1.0
    assert [buckets.take("192.0.2.1") for _ in range(2)] == [0, 1]


def test_an_ipv6_network_counts_as_one_and_no_address_is_kept() -> None:
    buckets = Buckets(1, clock=lambda: 0.0)
    assert [buckets.take(f"2001:db8::{last}") for last in ("1", "2")] == [0, 60]
    assert buckets.take("2001:db8:1::1") == 0
    kept = b"".join(buckets._levels)
    assert b"2001" not in kept
    assert bytes.fromhex("20010db8") not in kept


@pytest.mark.parametrize(
    ("proxies", "told", "expected"),
    [
        (0, "198.51.100.1", "192.0.2.9"),
        (1, "203.0.113.5, 198.51.100.1", "198.51.100.1"),
        (2, "203.0.113.5, 198.51.100.1", "203.0.113.5"),
        (3, "203.0.113.5, 198.51.100.1", "192.0.2.9"),
        (1, "", "192.0.2.9"),
        (1, "::ffff:198.51.100.1", "198.51.100.1"),
        (1, "2001:db8::1", "2001:db8::1"),
        (1, "unknown", "unknown"),
    ],
)
def test_only_trusted_proxies_are_believed(proxies: int, told: str, expected: str) -> None:
    scope = {"client": ("192.0.2.9", 1), "headers": [(b"x-forwarded-for", told.encode())]}
    assert client_address(scope, proxies) == expected


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/p/a/", "/p/a", "/p/a/picture.png", "/r/a/", "/nowhere", "/host/sign-in"),
        *("/api", "/api/polls", "/api/polls/a", "/api/polls/a/report", "/healthz"),
        *("/web/main.js", "/web/index.html", "/public/public.css"),
    ],
)
def test_head_is_answered_as_get_is_and_without_a_body(client: TestClient, service: Service, path: str) -> None:
    service.store.polls.add(poll_from_dict({"name": "a", "study": "kidney"}))
    service.store.polls.add(poll_from_dict({"name": "b", "study": "kidney"}))
    client.get("/host/sign-in")  # It gives the browser a cookie, once.
    for accepted in ("text/html", "application/json"):
        headers = {"Accept": accepted}
        whole = client.get(path, headers=headers, follow_redirects=False)
        head = client.head(path, headers=headers, follow_redirects=False)
        assert (head.status_code, head.content) == (whole.status_code, b"")
        assert dict(head.headers) == dict(whole.headers)


def test_head_counts_nobody_and_asks_for_nothing_else(client: TestClient, service: Service) -> None:
    service.store.polls.add(poll_from_dict({"name": "a", "study": "kidney"}))
    today = service.today()
    for path in ("/p/a/", "/api/polls/a/session"):
        assert client.head(path).status_code == 200
    assert service.store.steps.reached("a", today) == {}
    for path in ("/p/a/", "/api/polls/a/session"):
        client.get(path)
    assert sorted(service.store.steps.reached("a", today).values()) == [1, 1]


def test_a_nul_in_an_address_is_no_failure_of_the_database(store: Store) -> None:
    client = TestClient(create_app(Service(store, ServiceSettings())))
    for path in ("/p/%00/", "/r/a%00b/", "/api/polls/%00", "/api/releases/%00", "/?lang=%00", "/host/new?from=a%00b"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["error"]["reason"]) == (404, "not-found")
    shown = client.get("/host/sign-in").text
    token = shown.split('name="form_token" value="')[1].split('"')[0]
    refused = client.post("/host/sign-in", data={"form_token": token, "name": "a\0b", "password": "x"})
    assert refused.status_code == 400
    assert "has the character NUL" in refused.text
