"""What an AI asks the crowd: releases and decisions, the same as the library gives."""

from __future__ import annotations

import json
from datetime import date

import pytest
from fastapi.testclient import TestClient
from tests.service.emptying import Rows, fill, rows_of
from tests.service.voters import ballot_row, poll, report_row

from crowdveil.decision import decide
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.releases import Release, release_from_dict
from crowdveil.service.poll_release import make_release
from crowdveil.service.service import Service

TODAY = date(2026, 5, 4)
DILEMMA = [
    {"name": "first", "features": {"age": 30, "life_years_gained": 20}},
    {"name": "second", "features": {"age": 60, "life_years_gained": 5}},
]


@pytest.fixture(scope="module")
def done() -> Rows:
    """What a service holds after a release, as soon as a test has made one."""
    return {}


@pytest.fixture
def released(service: Service, done: Rows) -> Release:
    """A release of a poll, made once: every test finds the same rows of it."""
    if done:
        fill(service, done)
    else:
        central = poll("c", "vlcp", budget=3)
        service.store.polls.add(central)
        service.store.submissions.put([ballot_row(central, seed) for seed in range(8)], TODAY)
        make_release(service.store, "c", TODAY, Epsilon(2))
        done.update(rows_of(service))
    (made,) = service.store.releases.all("c")
    return made.read()


def some_dilemma(release: Release) -> list[dict[str, object]]:
    low = {f.name: f.low for f in release.study.features}
    high = {f.name: f.high for f in release.study.features}
    return [{"name": "low", "features": low}, {"name": "high", "features": high}]


def test_releases_are_listed_and_given(client: TestClient, service: Service, released: Release) -> None:
    service.store.polls.add(poll("d"))
    service.store.submissions.put([report_row(poll("d"), number) for number in range(12)], TODAY)
    newest = make_release(service.store, "d", TODAY)
    listed = client.get("/api/releases").json()["releases"]
    assert [entry["id"] for entry in listed] == [newest.id, released.digest]
    assert listed[1] == {
        "id": released.digest,
        "poll": "c",
        "study": "kidney",
        "title": released.study.title,
        "paradigm": "vlcp",
        "mechanism": released.mechanism,
        "epsilon": 2.0,
        "voters": 8,
        "made_on": "2026-05-04",
        "current": True,
    }
    assert [entry["id"] for entry in client.get("/api/releases?poll=c").json()["releases"]] == [released.digest]
    assert release_from_dict(client.get(f"/api/releases/{released.digest}").json()).digest == released.digest
    missing = client.get(f"/api/releases/{'0' * 64}")
    assert (missing.status_code, missing.json()["error"]["reason"]) == (404, "unknown-release")


def test_an_archived_polls_releases_are_listed_with_the_poll_only(
    client: TestClient, service: Service, released: Release
) -> None:
    service.store.polls.archive("c")
    assert client.get("/api/releases").json() == {"releases": []}
    (entry,) = client.get("/api/polls/c/releases").json()["releases"]
    assert (entry["id"], entry["current"]) == (released.digest, True)
    assert client.get(f"/api/releases/{released.digest}").status_code == 200


def test_no_poll_decides_in_the_name_of_another(client: TestClient, service: Service, released: Release) -> None:
    """A newer release of another poll (a test, say) is not what an AI is told when it asks this poll."""
    service.store.polls.add(poll("d"))
    service.store.submissions.put([report_row(poll("d"), number) for number in range(12)], TODAY)
    other = make_release(service.store, "d", TODAY)
    for which in ("current", "latest"):
        assert client.get(f"/api/polls/c/releases/{which}").json()["checksum"] == released.digest
        assert client.get(f"/api/polls/d/releases/{which}").json()["checksum"] == other.id
        refused = client.get(f"/api/releases/{which}")
        assert (refused.status_code, refused.json()["error"]["reason"]) == (404, "unknown-poll")
        assert "there are: c, d" in refused.json()["error"]["message"]
    asked = {"alternatives": some_dilemma(released)}
    decided = client.post("/api/polls/c/releases/current/decisions", json=asked).json()
    assert decided["release"] == released.digest
    batch = client.post("/api/polls/c/releases/current/decisions/batch", json={"dilemmas": [asked]}).json()
    assert batch["decisions"] == [decided]
    assert client.post("/api/releases/current/decisions", json=asked).status_code == 404
    assert client.get(f"/api/polls/c/releases/{other.id}").json()["error"]["reason"] == "unknown-release"
    assert client.get("/api/polls/x/releases/current").json()["error"]["reason"] == "unknown-poll"
    assert client.get("/api/polls/x/releases").json()["error"]["reason"] == "unknown-poll"
    assert [one["id"] for one in client.get("/api/polls/c/releases").json()["releases"]] == [released.digest]


def test_decisions_use_the_release_that_the_host_has_marked(
    client: TestClient, service: Service, released: Release
) -> None:
    newer = make_release(service.store, "c", TODAY, Epsilon("0.5"))

    def current() -> tuple[str, str, list[str]]:
        listed = client.get("/api/polls/c/releases").json()["releases"]
        asked = {"alternatives": some_dilemma(released)}
        decided = client.post("/api/releases/current/decisions", json=asked).json()["release"]
        return client.get("/api/polls/c").json()["release"], decided, [one["id"] for one in listed if one["current"]]

    assert current() == (newer.id, newer.id, [newer.id])
    service.store.polls.mark_release("c", released.digest)
    assert current() == (released.digest, released.digest, [released.digest])
    assert client.get("/api/releases/latest").json()["checksum"] == newer.id
    service.store.polls.mark_release("c", None)
    assert current() == (newer.id, newer.id, [newer.id])
    with pytest.raises(CrowdveilError, match="has no release"):
        service.store.polls.mark_release("c", "0" * 64)


def test_a_decision_is_the_librarys(client: TestClient, released: Release) -> None:
    asked = some_dilemma(released)
    answer = client.post("/api/releases/current/decisions", json={"alternatives": asked, "certainty": 0.8})
    expected = decide(released, released.study.dilemma(asked), 0.8).as_dict()
    assert answer.json() == {**expected, "release": released.digest}


def test_a_dilemma_is_given_as_python_takes_it(client: TestClient, released: Release) -> None:
    first, second = (one["features"] for one in some_dilemma(released))
    for form in ([first, second], {"stay": first, "swerve": second}):
        answer = client.post("/api/releases/current/decisions", json={"alternatives": form})
        assert answer.json() == {**decide(released, form).as_dict(), "release": released.digest}


def test_many_decisions_at_once(client: TestClient, released: Release) -> None:
    asked = some_dilemma(released)
    many = {
        "dilemmas": [
            {"alternatives": asked},
            {"alternatives": asked[::-1]},
            {"alternatives": [*asked, {"features": asked[0]["features"]}]},
        ]
    }
    decisions = client.post(f"/api/releases/{released.digest}/decisions/batch", json=many).json()["decisions"]
    one = client.post("/api/releases/current/decisions", json={"alternatives": asked}).json()
    assert decisions[0] == one
    assert decisions[1]["ranking"] == one["ranking"]
    assert len(decisions[2]["ranking"]) == 3
    assert decisions[2]["probability"] is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "malformed"),
        ({"alternatives": []}, "wrong-dilemma"),
        ({"alternatives": [{}] * 101}, "wrong-dilemma"),
        ({"alternatives": {str(number): {} for number in range(101)}}, "wrong-dilemma"),
        ({"alternatives": json.loads("[" * 300 + "]" * 300)}, "wrong-dilemma"),
        ({"alternatives": [{"age": json.loads("[" * 300 + "]" * 300)}, {}]}, "wrong-dilemma"),
        ({"alternatives": [{"features": {}}, {"features": {"shoe": 1}}]}, "wrong-dilemma"),
        ({"alternatives": [{"features": {"elderly_dependents": "1"}}, {"features": {}}]}, "wrong-dilemma"),
        ({"alternatives": [{"features": {"elderly_dependents": 1e9}}, {"features": {}}]}, "wrong-dilemma"),
        ({"alternatives": [{"features": {"elderly_dependents": 10**400}}, {"features": {}}]}, "wrong-dilemma"),
        ({"alternatives": DILEMMA, "certainty": 1}, "malformed"),
        ({"alternatives": DILEMMA, "certainty": 10**400}, "malformed"),
        ({"alternatives": DILEMMA, "certainty": 0.4}, "malformed"),
        ({"alternatives": DILEMMA, "more": 1}, "malformed"),
        ({"alternatives": [{**DILEMMA[0], "name": "x"}, {**DILEMMA[1], "name": "x"}]}, "wrong-dilemma"),
    ],
)
@pytest.mark.usefixtures("released")
def test_dilemmas_that_the_study_does_not_have(client: TestClient, body: dict[str, object], reason: str) -> None:
    answer = client.post("/api/releases/current/decisions", json=body)
    assert (answer.status_code, answer.json()["error"]["reason"]) == (422, reason)


@pytest.mark.usefixtures("released")
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "malformed"),
        (b"{", "malformed"),
        (b"\xff\xfe", "malformed"),
        (b"[" * 100_000, "malformed"),
        (b'{"alternatives": "\\ud800"}', "wrong-dilemma"),
        (b'{"alternatives": {"\\ud800": {}, "b": {}}}', "wrong-dilemma"),
    ],
)
def test_what_is_no_json_or_no_text(client: TestClient, raw: bytes, reason: str) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post("/api/releases/current/decisions", content=raw, headers=headers)
    assert (answer.status_code, answer.json()["error"]["reason"]) == (422, reason)


@pytest.mark.usefixtures("released")
def test_what_is_wrong_with_json_is_said_and_where(client: TestClient) -> None:
    """After 20 characters, 3 of them in the second line, a brace stands in place of a value."""
    raw = b'{"alternatives":\n[1,}'
    answer = client.post("/api/releases/current/decisions", content=raw, headers={"Content-Type": "application/json"})
    assert answer.json()["error"]["message"] == (
        "the body is not JSON: Expecting value: line 2 column 4 (char 20) (see /api/openapi.json)"
    )


def test_nothing_to_decide_from(client: TestClient, service: Service) -> None:
    answer = client.post("/api/releases/current/decisions", json={"alternatives": DILEMMA})
    assert (answer.status_code, answer.json()["error"]["reason"]) == (404, "unknown-poll")
    service.store.polls.add(poll("c", "vlcp"))
    answer = client.post("/api/releases/current/decisions", json={"alternatives": DILEMMA})
    assert (answer.status_code, answer.json()["error"]["reason"]) == (404, "unknown-release")
    assert answer.json()["error"]["message"] == "poll 'c' has no release yet: ask again when its host has made one"
    assert client.get("/api/releases").json() == {"releases": []}
