"""Sealed reports a second: what a relay stores durably, and what it hands over and a host opens, checks and stores.

32 connections on the loopback send sealed reports to a real relay process, each with a token of its own. Then the poll
closes, and everything is handed over to a real host process. Every acknowledged report must be there in the end, once.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from multiprocessing.connection import Connection as Pipe

import httpx
import numpy as np
import uvicorn
from fastapi import FastAPI

from crowdveil.ballots import concatenate
from crowdveil.client.connection import Connection
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.noise.bulk_noise import BulkNoise
from crowdveil.protocol.description import describe_poll, read_poll
from crowdveil.protocol.polls import State
from crowdveil.protocol.relay import SEALED_TYPE, KeyConfiguration, describe_relay
from crowdveil.protocol.report import write_reports
from crowdveil.relay.app import Relay, create_relay_app
from crowdveil.relay.courier import Courier
from crowdveil.relay.poll import RelayedPoll
from crowdveil.relay.store import open_relay_store
from crowdveil.service.app import create_app
from crowdveil.service.middleware.logs import logging_config
from crowdveil.service.poll import HostedPoll
from crowdveil.service.poll_file import poll_from_dict
from crowdveil.service.service import Service
from crowdveil.service.settings import Settings
from crowdveil.service.store.store import open_store
from crowdveil.sources.simulated import simulate_crowd
from service import CONNECTIONS, load

BATCH = 1000
URL = "http://127.0.0.1:9"
"""The relay's address in the poll; nobody asks there, as its key is known to the host."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=5.0, help="how long voters send")
    arguments.add_argument("--most", type=int, default=20_000, help="how many sealed reports are made beforehand")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bodies = _set_up(folder, given.most)
        with _process(_run_relay, folder) as port:
            tokens, seconds = asyncio.run(load(port, bodies, given.seconds, "shuffled", SEALED_TYPE))
        with open_store(_address(folder, "host")) as store:
            store.polls.close("shuffled")
        with (
            _process(_run_host, folder) as port,
            open_relay_store(_address(folder, "relay")) as relay,
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600) as http,
        ):
            begun = time.perf_counter()
            batches = Courier(relay, Connection(http), URL, _today).round()
            opening = time.perf_counter() - begun
        with open_store(_address(folder, "host")) as store:
            stored = sum(store.batches.sizes("shuffled"))
    print(f"{CONNECTIONS} connections, {os.cpu_count()} cores")
    print(f"stored by the relay, durably          {len(tokens) / seconds:8,.0f} sealed reports/s")
    print(f"handed over, opened, checked, stored  {stored / opening:8,.0f} sealed reports/s, in {batches} batches")
    print(f"{len(tokens):,} acknowledged, {stored:,} at the host")
    sys.exit(0 if stored == min(len(tokens), given.most) else 1)


def _set_up(folder: str, most: int) -> list[bytes]:
    """Make both databases, with the poll and each other's keys in them, and sealed reports of simulated voters."""
    rules = {"name": "shuffled", "study": "moral-machine", "paradigm": "vldp", "levels": {"one": 3}}
    poll = poll_from_dict({**rules, "relay": URL, "batch": BATCH})
    with open_store(_address(folder, "host")) as host, open_relay_store(_address(folder, "relay")) as relay:
        host.polls.add(poll)
        host.batches.pin_relay_key(poll.name, relay.verifying_key())
        configuration = host.batches.key(poll).configuration
        described = describe_poll(poll, (), State.OPEN, None, describe_relay(configuration, None, None))
        relay.adopt(RelayedPoll.of(read_poll(described), described))
    return _sealed(poll, configuration, most)


def _sealed(poll: HostedPoll, configuration: KeyConfiguration, most: int) -> list[bytes]:
    voters = 1000
    epsilons = Epsilons.same(poll.levels[0].epsilon, voters)
    ballots = concatenate(poll.study, list(simulate_crowd(poll.study, voters, np.random.default_rng(1))))
    batch = DISTRIBUTED[poll.mechanism].report(ballots, poll.settings, epsilons, BulkNoise())
    reports = write_reports(poll.mechanism, poll.study, epsilons, batch)
    return [configuration.seal(reports[number % voters]) for number in range(most)]


def _address(folder: str, name: str) -> str:
    return f"sqlite:///{folder}/{name}.sqlite"


def _today() -> date:
    return datetime.now(UTC).date()


@contextmanager
def _process(run: Callable[[str, Pipe], None], folder: str) -> Iterator[int]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=run, args=(folder, there))
    process.start()
    try:
        yield here.recv()
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.join()


def _run_relay(folder: str, there: Pipe) -> None:
    with open_relay_store(_address(folder, "relay")) as store, httpx.Client() as http:
        courier = Courier(store, Connection(http), URL, _today)
        _serve(create_relay_app(Relay(store, courier, Settings(), pause=1e6)), there)


def _run_host(folder: str, there: Pipe) -> None:
    with open_store(_address(folder, "host")) as store:
        _serve(create_app(Service(store)), there)


def _serve(app: FastAPI, there: Pipe) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # The log is written, and not shown.
    config = uvicorn.Config(app, log_config=logging_config("info"), access_log=False)
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    there.send(listening.getsockname()[1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main()
