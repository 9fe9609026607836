"""The log holds no address, no token, no report id, no body and no path as it was asked for."""

from __future__ import annotations

import io
import json
import logging
import logging.config
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from tests.service.voters import poll, reports

from crowdveil.protocol.submission import new_token, report_id
from crowdveil.service.app import create_app
from crowdveil.service.server import logging_config
from crowdveil.service.service import Service
from crowdveil.service.store.polls import Polls

ADDRESS = "203.0.113.77"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What the service logs, in the form in which it logs it."""
    written = io.StringIO()
    config = logging_config("debug")
    config["handlers"]["stderr"]["stream"] = written
    loggers = [logging.getLogger(name) for name in config["loggers"]]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    logging.config.dictConfig(config)
    yield written
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


def test_requests_are_logged_without_personal_data(service: Service, log: io.StringIO) -> None:
    service.store.polls.add(poll())
    token, body = new_token(), reports(poll(), 12)[0]
    with TestClient(create_app(service), client=(ADDRESS, 4711)) as client:
        headers = {"Crowdveil-Ballot": token, "User-Agent": "a-rare-browser", "X-Forwarded-For": "198.51.100.99"}
        assert client.put("/api/polls/p/report", json=body, headers=headers).status_code == 201
        assert client.put("/api/polls/p/report", json={**body, "records": 77_777}, headers=headers).status_code == 422
        assert client.get(f"/p/p/?ballot={token}").status_code == 200
        assert client.head(f"/p/p/?ballot={token}").status_code == 200
        assert client.get(f"/{token}").status_code == 404
        assert client.delete("/api/polls/p/participation", headers=headers).status_code == 204
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    requests = [(line["method"], line["route"], line["status"]) for line in lines if line["event"] == "request"]
    assert requests == [
        ("PUT", "/api/polls/{poll}/report", 201),
        ("PUT", "/api/polls/{poll}/report", 422),
        ("GET", "/p/{poll}/", 200),
        ("HEAD", "/p/{poll}/", 200),
        ("GET", None, 404),
        ("DELETE", "/api/polls/{poll}/participation", 204),
    ]
    secrets = [token, report_id(token), ADDRESS, "198.51.100.99", "4711", "a-rare-browser", "77777", body["study"]]
    assert not [secret for secret in secrets if secret in log.getvalue()]


def test_a_failure_is_logged_without_its_words(
    service: Service, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Polls) -> None:
        raise RuntimeError(f"somebody at {ADDRESS} sent this")

    monkeypatch.setattr(Polls, "listed", fail)
    with TestClient(create_app(service)) as client:
        assert client.get("/api/polls").status_code == 500
    (failure,) = [line for line in map(json.loads, log.getvalue().splitlines()) if line["event"] == "failure"]
    assert failure["error"] == "RuntimeError"
    assert any("test_logs.py" in place for place in failure["where"])
    assert ADDRESS not in log.getvalue()
