"""Host and relay are killed in the middle of their work: no acknowledged report is lost or doubled."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select
from tests.relay.conftest import free_port, relay_poll
from tests.relay.processes import Parent, Program
from tests.service.voters import reports
from tests.statistics.tables import write_table

from crowdveil.client.client import Connection
from crowdveil.protocol.relay import KeyConfiguration
from crowdveil.protocol.submission import new_token
from crowdveil.relay import schema as relay_schema
from crowdveil.relay.forwarder import Forwarder
from crowdveil.relay.store import open_relay_store
from crowdveil.service.app import create_app
from crowdveil.service.server import served_here
from crowdveil.service.service import Service
from crowdveil.service.store import schema
from crowdveil.service.store.store import open_store
from crowdveil.study.plain_data import canonical_json

BATCH = 8
VOTERS_AT_ONCE = 4
TAKEN = re.compile(r'batches/\{batch\}", "status": 20')
"""What the host's log says of a batch that it took."""
POLL = """
name = "shuffled"
study = "kidney"
paradigm = "vldp"
levels = {{ one = 3 }}
relay = "{relay}"
batch = {batch}
"""


class Crowd:
    """Voters who send sealed reports, each until it is acknowledged, and note what was."""

    def __init__(self, url: str, configuration: KeyConfiguration) -> None:
        self.sent: Counter[str] = Counter()
        self.acknowledged: list[str] = []
        self._url, self._configuration = url, configuration
        self._honest = reports(relay_poll(url, batch=BATCH), 64)
        self._enough, self._lost, self._lock = threading.Event(), threading.Event(), threading.Lock()
        self._threads = [threading.Thread(target=self._vote, args=(n,)) for n in range(VOTERS_AT_ONCE)]
        for thread in self._threads:
            thread.start()

    def _vote(self, number: int) -> None:
        chance = random.Random(number)
        with httpx.Client(timeout=30) as client:
            while not self._enough.is_set():
                report, token = chance.choice(self._honest), new_token()
                if not self._send(client, self._configuration.seal(report), token):
                    return
                with self._lock:
                    self.sent[canonical_json(report)] += 1
                    self.acknowledged.append(token)
                # Voters are people: a backlog that is never handed over between two kills tests little.
                time.sleep(0.1)

    def _send(self, client: httpx.Client, sealed: bytes, token: str) -> bool:
        while not self._lost.is_set():
            try:
                url = f"{self._url}/api/polls/shuffled/report"
                answer = client.put(url, content=sealed, headers={"Crowdveil-Ballot": token})
            except httpx.TransportError:
                time.sleep(0.2)
                continue
            assert answer.status_code in (200, 201), answer.text
            return True
        return False

    def wait_for_more(self, number: int) -> None:
        wanted = len(self.acknowledged) + number
        while len(self.acknowledged) < wanted:
            assert any(thread.is_alive() for thread in self._threads)
            time.sleep(0.01)

    def go_home(self, lost: bool = False) -> None:
        """Let everybody finish; or, where the relay is gone for good, give up."""
        self._enough.set()
        if lost:
            self._lost.set()
        for thread in self._threads:
            thread.join()


@dataclass(frozen=True)
class Count:
    """What there was when the dust had settled."""

    acknowledged: int
    """By the relay, to voters."""
    stored: int
    """At the host."""
    lost_or_doubled: int
    batches: tuple[int, ...]
    """Reports of each, as the host took them."""


def survive(kills: int, host_address: str, relay_address: str, folder: Path, seed: int) -> Count:
    host_port, relay_port = free_port(), free_port()
    relay_url, host_url = f"http://127.0.0.1:{relay_port}", f"http://127.0.0.1:{host_port}"
    file = folder / "poll.toml"
    file.write_text(POLL.format(relay=relay_url, batch=BATCH))
    with Parent() as parent:
        host = Program(parent, folder / "host.log", host_port, "serve", str(file), "--database", host_address)
        relay = Program(
            *(parent, folder / "relay.log", relay_port, "relay", "--host", host_url),
            *("--database", relay_address, "--pause", "0.2"),
        )
        described = httpx.get(f"{relay_url}/api/polls/shuffled").json()
        crowd = Crowd(relay_url, KeyConfiguration.from_dict(described["configuration"]))
        chance = random.Random(seed)
        try:
            # From the first batch on the host has the relay's key, and needs no answer from it when all is counted.
            wait_for_batch(crowd, folder / "host.log")
            for number in range(kills):
                crowd.wait_for_more(BATCH)
                if chance.random() < 0.5:  # Otherwise both are still busy with what the last kill left behind.
                    wait_for_batch(crowd, folder / "host.log")
                time.sleep(chance.random() * 0.2)
                victim = (host, relay)[number % 2]
                victim.kill()
                time.sleep(chance.random() * 0.2)
                victim.start()
            crowd.wait_for_more(2 * BATCH)
            crowd.go_home()
        finally:
            crowd.go_home(lost=True)
            relay.kill()
            host.kill()
    return check(crowd, host_address, relay_address, relay_url)


def wait_for_batch(crowd: Crowd, log: Path) -> None:
    """Wait until the host has taken one more batch, while voters go on."""
    before = len(TAKEN.findall(log.read_text()))
    while len(TAKEN.findall(log.read_text())) == before:
        crowd.wait_for_more(1)


def check(crowd: Crowd, host_address: str, relay_address: str, relay_url: str) -> Count:
    """Close the poll, hand over what is left, and count. Nobody is killed any more: the host is in this process."""
    with open_store(host_address) as store:
        store.polls.close("shuffled")
        with (
            served_here(create_app(Service(store))) as host_url,
            open_relay_store(relay_address) as relay,
            httpx.Client(base_url=host_url, timeout=60) as http,
        ):
            # The key of the relay was asked for long ago, so that the relay need not answer now.
            Forwarder(relay, Connection(http), relay_url, lambda: datetime.now(UTC).date()).round()
            waiting = relay.waiting("shuffled")
            with relay.database.reading() as connection:
                sizes = sorted(connection.scalars(select(relay_schema.batch.c.size)))
        stored = Counter(canonical_json(one.body) for batch in store.submissions.reports("shuffled") for one in batch)
        with store.database.reading() as connection:
            taken = sorted(connection.scalars(select(schema.batch.c.handed_over)))
        status = store.polls.get("shuffled")
        assert status is not None
        participants = status.participants
    assert waiting == 0
    assert taken == sizes
    assert min(taken) >= BATCH, "a batch below its size was handed over"
    assert stored == crowd.sent, "a report was lost or doubled"
    assert sum(stored.values()) == participants == len(crowd.acknowledged)
    wrong = (stored - crowd.sent) + (crowd.sent - stored)
    return Count(len(crowd.acknowledged), participants, sum(wrong.values()), tuple(taken))


@pytest.mark.parametrize("new_address", ["sqlite"], indirect=True)
def test_killing_host_and_relay_loses_and_doubles_nothing(new_address: Callable[[str], str], tmp_path: Path) -> None:
    survive(2, new_address("host"), new_address("relay"), tmp_path, seed=1)


@pytest.mark.slow
def test_a_hundred_kills_lose_and_double_nothing(new_address: Callable[[str], str], tmp_path: Path) -> None:
    kills = 100
    address = new_address("host")
    count = survive(kills, address, new_address("relay"), tmp_path, seed=2)
    header = ("database", "kills", "acknowledged", "stored", "lost or doubled", "batches", "smallest", "largest")
    counted = (count.acknowledged, count.stored, count.lost_or_doubled)
    row = (address.partition(":")[0], kills, *counted, len(count.batches), min(count.batches), max(count.batches))
    write_table("relay.md", "kills", header, [row], "pytest -m slow tests/relay/test_kill_either.py")
