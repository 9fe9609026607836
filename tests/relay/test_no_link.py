"""Captured traffic and both databases, searched for any link between sender and report; planted links are found."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import insert
from tests.relay.conftest import Pair, running_pair
from tests.relay.links import Evidence, Sender, files_of, find_links, rows_of
from tests.service.voters import reports
from tests.statistics.tables import write_table

from crowdveil.client.client import Connection
from crowdveil.protocol.submission import new_token, report_id
from crowdveil.relay import schema as relay_schema
from crowdveil.relay import store as relay_store
from crowdveil.relay.forwarder import Forwarder
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store import batches as host_batches
from crowdveil.service.store import schema as host_schema
from crowdveil.study.plain_data import canonical_json

VOTERS = 300


@contextmanager
def tapped(url: str) -> Iterator[tuple[str, bytearray]]:
    """A wire to a server that keeps a copy of everything that is sent to it."""
    port, heard = int(url.rpartition(":")[2]), bytearray()
    listening = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, target: socket.socket, note: bool) -> None:
        with suppress(OSError):  # Whichever side hangs up first ends both directions.
            while data := source.recv(65536):
                if note:
                    heard.extend(data)
                target.sendall(data)
        target.close()

    def accept() -> None:
        while True:
            try:
                caller, _ = listening.accept()
            except OSError:
                return
            called = socket.create_connection(("127.0.0.1", port))
            for ends in ((caller, called, True), (called, caller, False)):
                threading.Thread(target=pump, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}", heard
    listening.close()


def send_crowd(pair: Pair, by_http: bool) -> list[Sender]:
    """Voters come one after the other, each from an address of her own; or straight into the store."""
    honest, configuration = reports(pair.poll, 64), pair.host.batches.key(pair.poll).configuration
    senders = []
    for number in range(VOTERS):
        report, token = honest[number % 64], new_token()
        one = Sender(token, f"10.77.{number // 250}.{number % 250}", configuration.seal(report), canonical_json(report))
        senders.append(one)
        if by_http:
            headers = {"Crowdveil-Ballot": token, "X-Forwarded-For": one.address}
            url = f"{pair.relay_url}/api/polls/{pair.name}/report"
            assert pair.http.put(url, content=one.sealed, headers=headers).status_code == 201
    if not by_http:
        rows = [relay_store.SealedRow(pair.name, report_id(one.token), one.sealed) for one in senders]
        pair.relay.put(rows, pair.forwarder.today)
    return senders


def gather(
    folder: Path,
    tamper: Callable[[Pair], None] = lambda pair: None,
    addresses: tuple[str, ...] = (),
    by_http: bool = True,
) -> Evidence:
    """Let a poll run its course, and keep all that there is to look at."""
    addresses = addresses or tuple(f"sqlite:///{folder / name}.sqlite" for name in ("host", "relay"))
    settings = ServiceSettings(trusted_proxies=1, requests_per_minute=10**6)
    handed: list[tuple[bytes, ...]] = []
    with running_pair(*addresses, batch=VOTERS, relay_settings=settings) as pair:
        senders = send_crowd(pair, by_http)
        pair.host.polls.close(pair.name)
        with tapped(pair.host_url) as (url, heard), httpx.Client(base_url=url, timeout=60) as http:
            forwarder = Forwarder(pair.relay, Connection(http), pair.relay_url, pair.forwarder.today)
            waiting = pair.relay.next_batch
            object.__setattr__(pair.relay, "next_batch", lambda *given: _noted(waiting(*given), handed))
            assert forwarder.round() == 1
        tamper(pair)
        pair.host.database.forget_deleted()
        return Evidence(
            senders,
            bytes(heard),
            handed,
            rows_of(pair.relay.database, relay_schema.metadata),
            rows_of(pair.host.database, host_schema.metadata),
            files_of(folder, "relay"),
            files_of(folder, "host"),
        )


def _noted(batch: Any, handed: list[tuple[bytes, ...]]) -> Any:
    if batch is not None:
        handed.append(batch.sealed)
    return batch


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return gather(tmp_path_factory.mktemp("links"))


def test_there_is_no_link(evidence: Evidence) -> None:
    assert len(evidence.batches[0]) == len(evidence.host["report"]) == VOTERS
    assert evidence.batches[0][7] in evidence.traffic, "the traffic was not captured"
    assert evidence.senders[0].content.encode() in evidence.host_files, "the file of the host was not read"
    assert find_links(evidence) == set()


@pytest.mark.slow
def test_there_is_no_link_on_either_database(new_address: Callable[[str], str], tmp_path: Path) -> None:
    addresses = (new_address("host"), new_address("relay"))
    found = gather(tmp_path, addresses=addresses)
    assert len(found.host["report"]) == VOTERS
    links = find_links(found)
    assert links == set()
    caught = sum(find_links(changed) == {kind} for kind, changed in planted(found))
    header = ("database", "voters", "bytes captured", "rows searched", "links", "planted links found")
    rows = sum(len(rows) for tables in (found.relay, found.host) for rows in tables.values())
    row = (addresses[0].partition(":")[0], VOTERS, f"{len(found.traffic):,}", f"{rows:,}", len(links))
    told = f"{caught} of {len(planted(found))}"
    write_table("relay.md", "links", header, [(*row, told)], "pytest -m slow tests/relay/test_no_link.py")


def planted(evidence: Evidence) -> list[tuple[str, Evidence]]:
    """The same evidence with one link in it, for each kind that can be put there."""
    someone = evidence.senders[41]
    headers = {
        "token": f"X-Ballot: {someone.token}",
        "id": f"X-Report: {report_id(someone.token)[:16]}",
        "address": f"X-Forwarded-For: {someone.address}",
        "time": "X-Sent-At: 2026-05-04T10:11",
    }
    longer = [[*evidence.batches[0][:-1], evidence.batches[0][-1] + b" "]]
    return [
        *((kind, replace(evidence, traffic=evidence.traffic + header.encode())) for kind, header in headers.items()),
        ("length", replace(evidence, batches=longer)),
        ("kept", replace(evidence, host_files=someone.sealed)),
        ("order", replace(evidence, batches=[[sender.sealed for sender in evidence.senders]])),
    ]


def test_a_planted_link_is_found(evidence: Evidence) -> None:
    for kind, changed in planted(evidence):
        assert find_links(changed) == {kind}


@pytest.mark.parametrize("mistake", ["not shuffled", "not sorted", "batch remembered", "not erased"])
def test_a_mistake_in_the_running_parts_is_found(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def remember(pair: Pair) -> None:
        with pair.relay.database.writing() as connection:
            one = connection.execute(relay_schema.batch.select()).one()
            (spent, *_) = connection.execute(relay_schema.spent.select()).all()
            row = {"poll": pair.name, "id": spent.id, "body": b"", "batch": one.id}
            connection.execute(insert(relay_schema.sealed).values(row))

    if mistake == "not shuffled":
        monkeypatch.setattr(relay_store, "shuffled", tuple)
        expected = {"order"}
    elif mistake == "not sorted":
        monkeypatch.setattr(host_batches, "sorted", list, raising=False)
        expected = {"order"}
    elif mistake == "not erased":
        monkeypatch.setattr(relay_store.RelayStore, "erase", lambda *given: None)
        monkeypatch.setattr(Forwarder, "_hand_over", _once)
        expected = {"kept"}
    else:
        expected = {"join"}
    tamper = remember if mistake == "batch remembered" else lambda pair: None
    found = gather(tmp_path, tamper, by_http=False)
    assert expected <= find_links(found)


def _once(forwarder: Forwarder, name: str) -> int:
    batch = forwarder.store.next_batch(name, forwarder.today())
    assert batch is not None
    forwarder._send(batch)
    return 1
