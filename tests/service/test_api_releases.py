"""What an AI asks the crowd: releases and decisions, the same as the library gives."""

from __future__ import annotations

from datetime import date

import pytest
from fastapi.testclient import TestClient
from tests.service.voters import ballot_row, poll, report_row

from crowdveil.decision import decide
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.releases import Release, release_from_dict
from crowdveil.service.poll_release import make_release
from crowdveil.service.service import Service

TODAY = date(2026, 5, 4)
DILEMMA = [
    {"name": "first", "features": {"age": 30, "life_years_gained": 20}},
    {"name": "second", "features": {"age": 60, "life_years_gained": 5}},
]


@pytest.fixture
def released(service: Service) -> Release:
    central = poll("c", "vlcp", budget=3)
    service.store.polls.add(central)
    service.store.submissions.put([ballot_row(central, seed) for seed in range(8)], TODAY)
    return make_release(service.store, "c", TODAY, Epsilon(2)).read()


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
    }
    assert [entry["id"] for entry in client.get("/api/releases?poll=c").json()["releases"]] == [released.digest]
    assert release_from_dict(client.get(f"/api/releases/{released.digest}").json()).digest == released.digest
    assert client.get("/api/releases/latest").json()["checksum"] == newest.id
    missing = client.get(f"/api/releases/{'0' * 64}")
    assert (missing.status_code, missing.json()["error"]["reason"]) == (404, "unknown-release")


def test_a_decision_is_the_librarys(client: TestClient, released: Release) -> None:
    asked = some_dilemma(released)
    answer = client.post("/api/releases/latest/decisions", json={"alternatives": asked, "certainty": 0.8})
    expected = decide(released, released.study.dilemma(asked), 0.8).as_dict()
    assert answer.json() == {**expected, "release": released.digest}


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
    one = client.post("/api/releases/latest/decisions", json={"alternatives": asked}).json()
    assert decisions[0] == one
    assert decisions[1]["ranking"] == one["ranking"]
    assert len(decisions[2]["ranking"]) == 3
    assert decisions[2]["probability"] is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "malformed"),
        ({"alternatives": []}, "malformed"),
        ({"alternatives": [{"features": {}}, {"features": {"shoe": 1}}]}, "wrong-dilemma"),
        ({"alternatives": [{"features": {"age": "30"}}, {"features": {}}]}, "malformed"),
        ({"alternatives": [{"features": {"age": 1e9}}, {"features": {}}]}, "wrong-dilemma"),
        ({"alternatives": DILEMMA, "certainty": 1}, "malformed"),
        ({"alternatives": DILEMMA, "certainty": 0.4}, "malformed"),
        ({"alternatives": DILEMMA, "more": 1}, "malformed"),
        ({"alternatives": [{**DILEMMA[0], "name": "x"}, {**DILEMMA[1], "name": "x"}]}, "wrong-dilemma"),
    ],
)
@pytest.mark.usefixtures("released")
def test_dilemmas_that_the_study_does_not_have(client: TestClient, body: dict[str, object], reason: str) -> None:
    answer = client.post("/api/releases/latest/decisions", json=body)
    assert (answer.status_code, answer.json()["error"]["reason"]) == (422, reason)


@pytest.mark.usefixtures("released")
@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"alternatives": "\\ud800"}'])
def test_what_is_no_json(client: TestClient, raw: bytes) -> None:
    answer = client.post("/api/releases/latest/decisions", content=raw)
    assert (answer.status_code, answer.json()["error"]["reason"]) == (422, "malformed")


def test_nothing_to_decide_from(client: TestClient) -> None:
    answer = client.post("/api/releases/latest/decisions", json={"alternatives": DILEMMA})
    assert (answer.status_code, answer.json()["error"]["reason"]) == (404, "unknown-release")
    assert client.get("/api/releases").json() == {"releases": []}
