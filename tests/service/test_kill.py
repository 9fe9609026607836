"""A server that is killed in the middle of its work has kept every promise that it made."""

from __future__ import annotations

import json
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient
from tests.service.running import Server
from tests.service.voters import poll, reports

from crowdveil.protocol.submission import new_token, report_id
from crowdveil.service.app import create_app
from crowdveil.service.service import Service
from crowdveil.service.store.store import open_store

VOTERS_AT_ONCE = 12


class Voters:
    """Voters who send reports as fast as they can until the server is gone."""

    def __init__(self, url: str) -> None:
        self.sent: dict[str, bytes] = {}
        self.acknowledged: list[str] = []
        self._bodies = [json.dumps(body).encode() for body in reports(poll("kidney"), 12)]
        self._threads = [threading.Thread(target=self._vote, args=(url, n)) for n in range(VOTERS_AT_ONCE)]
        for thread in self._threads:
            thread.start()

    def _vote(self, url: str, number: int) -> None:
        with httpx.Client(timeout=30) as client, suppress(httpx.TransportError):
            while True:
                token, body = new_token(), self._bodies[number]
                self.sent[token] = body
                answer = client.put(f"{url}/api/polls/kidney/report", content=body, headers={"Crowdveil-Ballot": token})
                assert answer.status_code == 201
                self.acknowledged.append(token)

    def wait_for(self, number: int) -> None:
        while len(self.acknowledged) < number:
            time.sleep(0.01)

    def gone(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("new_address", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True)
def test_every_acknowledged_report_survives_a_kill_and_none_is_there_twice(address: str, tmp_path: Path) -> None:
    workers = "1" if address.startswith("sqlite") else "2"
    server = Server(tmp_path / "log", "kidney", "--database", address, "--workers", workers)
    voters = Voters(server.url)
    voters.wait_for(80)
    server.kill()
    voters.gone()
    with open_store(address) as store:
        kept = [report.id for batch in store.submissions.reports("kidney") for report in batch]
        status = store.polls.get("kidney")
        assert status is not None
        assert len(kept) == len(set(kept)) == status.participants
        assert {report_id(token) for token in voters.acknowledged} <= set(kept)
        assert set(kept) <= {report_id(token) for token in voters.sent}
        # Whoever got no answer sends the same again: each is there once in the end.
        with TestClient(create_app(Service(store))) as client:
            for token, body in voters.sent.items():
                answer = client.put("/api/polls/kidney/report", content=body, headers={"Crowdveil-Ballot": token})
                assert answer.status_code == (200 if report_id(token) in kept else 201)
        again = [report.id for batch in store.submissions.reports("kidney") for report in batch]
        assert sorted(again) == sorted(report_id(token) for token in voters.sent)
