"""``crowdveil serve`` as a person runs it."""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from tests.service.running import Server
from tests.service.voters import poll, reports

from crowdveil.errors import CrowdveilError
from crowdveil.protocol.submission import new_token
from crowdveil.service.app import serve, set_up
from crowdveil.service.poll import find_poll
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.hosts import FIRST_HOST
from crowdveil.service.store.store import open_store


def test_it_says_where_it_is_and_stops_in_good_order(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    server = Server(log, "kidney", "--data", str(data))
    voters, host, database = server.told
    assert voters.startswith("Voters:")
    assert "/host/sign-in#link=" in host
    assert str(data / "crowdveil.sqlite") in database
    assert httpx.get(server.page).status_code == 200
    body, answers = reports(poll("kidney"), 12)[0], []

    def vote() -> None:
        headers = {"Crowdveil-Ballot": new_token()}
        answers.append(httpx.put(f"{server.url}/api/polls/kidney/report", json=body, headers=headers).status_code)

    threads = [threading.Thread(target=vote) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Refused, which is counted without anybody waiting for it: it must be there after the stop.
    httpx.put(f"{server.url}/api/polls/kidney/report", content=b"{}", headers={"Crowdveil-Ballot": new_token()})
    assert server.stop() == 0
    assert answers == [201] * 8
    assert all(json.loads(line)["level"] == "info" for line in log.read_text().splitlines() if line.startswith("{"))
    assert not list(data.glob("*-wal"))  # Everything is in the one file.
    with open_store(f"sqlite:///{data / 'crowdveil.sqlite'}") as store:
        assert sum(len(batch) for batch in store.submissions.reports("kidney")) == 8
        assert [(count.reason, count.times) for count in store.submissions.refusals("kidney")] == [("malformed", 1)]


def test_the_same_poll_again_is_the_same_poll(tmp_path: Path) -> None:
    settings = ServiceSettings(data=str(tmp_path / "data"))
    first, second = (set_up(settings, find_poll("kidney"), now=1) for _ in range(2))
    assert first.database == second.database
    assert first.sign_in_token != second.sign_in_token
    with pytest.raises(CrowdveilError, match="a poll never changes"):
        set_up(settings, find_poll("kidney", "vlcp"), now=1)


def test_a_poll_that_was_deleted_is_not_served_again_and_the_others_are(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    settings = ServiceSettings(data=str(data))
    assert set_up(settings, find_poll("kidney"), now=1).deleted_poll is None
    with open_store(settings.database_address) as store:
        store.polls.add(poll("other"))
        store.polls.delete("kidney")
    setup = set_up(settings, find_poll("kidney"), now=1)
    assert (setup.voters_path, setup.deleted_poll) == ("/", "kidney")
    with open_store(settings.database_address) as store:
        assert store.hosts.use_sign_in_link(setup.sign_in_token, 2) == FIRST_HOST
    server = Server(log, "kidney", "--data", str(data))
    assert server.page == f"{server.url}/"
    assert httpx.get(server.page, follow_redirects=True).url.path == "/p/other/"  # With several, a list of them.
    assert [one["id"] for one in httpx.get(f"{server.url}/api/polls").json()["polls"]] == ["other"]
    assert server.stop() == 0
    assert log.read_text().count("Poll 'kidney' was deleted, and its name counts once: only the other polls") == 1


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CrowdveilError, match="cannot make the folder"):
        set_up(ServiceSettings(data=str(tmp_path / "file" / "data")), find_poll("kidney"), now=1)
    with pytest.raises(CrowdveilError, match="cannot open the database"):
        set_up(ServiceSettings(database=f"sqlite:///{tmp_path / 'nowhere' / 'x.sqlite'}"), find_poll("kidney"), now=1)
    with pytest.raises(CrowdveilError, match="cannot open the database"):
        set_up(ServiceSettings(database="postgresql://nobody@127.0.0.1:1/none"), find_poll("kidney"), now=1)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    settings = ServiceSettings(data=str(tmp_path), port=0)
    set_up(settings, find_poll("kidney"), now=1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CrowdveilError, match=f"cannot listen at 127.0.0.1:{port}"):
            serve(replace(settings, port=port), lambda _: None)
