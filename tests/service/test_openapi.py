"""Schemathesis reads the API's description and looks for an answer that it does not describe, or a fault."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.service.voters import ballot, poll, report_row, reports

from crowdveil.protocol.submission import new_token
from crowdveil.service.app import create_app
from crowdveil.service.poll_release import make_release
from crowdveil.service.service import Service
from crowdveil.service.store.store import open_store

TODAY = date(2026, 5, 4)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

OPERATIONS = [
    ("GET", "/api/polls"),
    ("GET", "/api/polls/{poll}"),
    ("GET", "/api/polls/{poll}/words/{language}"),
    ("GET", "/api/polls/{poll}/session"),
    ("PUT", "/api/polls/{poll}/report"),
    ("PUT", "/api/polls/{poll}/ballot"),
    ("POST", "/api/polls/{poll}/steps"),
    ("GET", "/api/polls/{poll}/participation"),
    ("DELETE", "/api/polls/{poll}/participation"),
    ("PUT", BATCH := "/api/polls/{poll}/batches/{batch}"),
    ("GET", "/api/polls/{poll}/releases"),
    ("GET", "/api/polls/{poll}/releases/{release}"),
    ("POST", "/api/polls/{poll}/releases/{release}/decisions"),
    ("POST", "/api/polls/{poll}/releases/{release}/decisions/batch"),
    ("GET", "/api/polls/{poll}/effects"),
    ("GET", "/api/effects/{effects}"),
    ("GET", "/api/releases"),
    ("GET", "/api/releases/{release}"),
    ("POST", "/api/releases/{release}/decisions"),
    ("POST", "/api/releases/{release}/decisions/batch"),
    ("GET", "/healthz"),
]
WITH_JSON = [given for given in OPERATIONS if given[0] in ("PUT", "POST") and given[1] != BATCH]
"""A batch is no JSON: tests/relay is about those."""


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """A service with a poll of each kind and a release."""
    directory: Path = tmp_path_factory.mktemp("described")
    with open_store(f"sqlite:///{directory / 'crowdveil.sqlite'}") as store:
        store.polls.add(poll())
        store.polls.add(poll("c", "vlcp"))
        store.submissions.put([report_row(poll(), number) for number in range(12)], TODAY)
        make_release(store, "p", TODAY)
        made = create_app(Service(store))
        with TestClient(made):
            yield made


@pytest.fixture(scope="module")
def description(app: FastAPI) -> schemathesis.BaseSchema:
    """The API as it describes itself."""
    return schemathesis.openapi.from_asgi("/api/openapi.json", app)


@pytest.fixture(scope="module")
def release(app: FastAPI) -> str:
    """The id of the release, which is good in every path: which one is current depends on the poll."""
    (listed,) = TestClient(app).get("/api/releases").json()["releases"]
    return str(listed["id"])


@pytest.mark.parametrize("examples", [5, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        *((operation, GenerationMode.POSITIVE) for operation in OPERATIONS),
        *((operation, GenerationMode.NEGATIVE) for operation in WITH_JSON),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else given.value,
)
def test_every_answer_is_described(
    description: schemathesis.BaseSchema, release: str, operation: tuple[str, str], mode: GenerationMode, examples: int
) -> None:
    method, path = operation
    described = description[path][method.lower()]

    @given(case=described.as_strategy(generation_mode=mode), exists=st.booleans(), poll=st.sampled_from("pc"))
    @settings(max_examples=examples, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    def check(case: schemathesis.Case, exists: bool, poll: str) -> None:
        # Names that are made up never exist.
        known = {"poll": poll, "release": release, "language": "en", "batch": "0" * 32, "effects": "0" * 64}
        case.path_parameters.update({name: known[name] for name in case.path_parameters if exists})
        case.call_and_validate(checks=CHECKS)

    check()


def honest_body(path: str) -> dict[str, Any]:
    """What a voter's device or an AI would send there."""
    if path.endswith("/report"):
        return reports(poll(), 12)[0]
    if path.endswith("/ballot"):
        return ballot(poll("c", "vlcp"), 0)
    if path.endswith("/steps"):
        return {"step": "half"}
    ends = [{feature.name: getattr(feature, end) for feature in poll().study.features} for end in ("low", "high")]
    dilemma = {"alternatives": [{"name": "a", "features": ends[0]}, {"name": "b", "features": ends[1]}]}
    return {"dilemmas": [dilemma, dilemma]} if path.endswith("/batch") else dilemma


@pytest.mark.parametrize("operation", WITH_JSON, ids=" ".join)
def test_the_answer_to_an_honest_request_is_described(
    description: schemathesis.BaseSchema, release: str, operation: tuple[str, str]
) -> None:
    """What is made up is never a whole ballot or dilemma."""
    method, path = operation
    known = {"poll": "c" if path.endswith("/ballot") else "p", "release": release}
    case = description[path][method.lower()].Case(
        path_parameters={name: value for name, value in known.items() if f"{{{name}}}" in path},
        headers={"Crowdveil-Ballot": new_token()} if method == "PUT" else {},
        body=honest_body(path),
        media_type="application/json",
    )
    expected = 201 if method == "PUT" else 204 if path.endswith("/steps") else 200
    assert case.call_and_validate(checks=CHECKS).status_code == expected


def test_everything_but_pages_is_described(app: FastAPI) -> None:
    described = {(method.upper(), path) for path, operations in app.openapi()["paths"].items() for method in operations}
    assert described == set(OPERATIONS)


def test_a_person_can_read_it_without_another_origin(app: FastAPI) -> None:
    page = TestClient(app).get("/api").text
    assert "PUT /api/polls/{poll}/report" in page
    assert "http://" not in page
    assert "https://" not in page
