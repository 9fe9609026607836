"""Sealed reports a second: what a relay stores durably, and what it hands over and a host opens, checks and stores.

32 connections on the loopback send sealed reports to a real relay process, each with a token of its own; a second one,
which answers "stored" where the first waits for its commit, takes turns with it. Then the poll closes, and everything
is handed over to a real host process, beside which the same reports are only decrypted. Every acknowledged report must
be there in the end, once.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import signal
import socket
import statistics
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

from crowdveil.ballots.ballots import concatenate
from crowdveil.client.client import Connection
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.protocol.description import describe_poll, read_poll
from crowdveil.protocol.polls import PollState
from crowdveil.protocol.relay import SEALED_TYPE, KeyConfiguration, describe_relay
from crowdveil.protocol.report import write_reports
from crowdveil.relay.app import Relay, create_relay_app
from crowdveil.relay.forwarder import Forwarder
from crowdveil.relay.store import RelayedPoll, open_relay_store
from crowdveil.service.app import create_app
from crowdveil.service.poll import HostedPoll, poll_from_dict
from crowdveil.service.server import logging_config
from crowdveil.service.service import Service
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.store import Store, open_store
from crowdveil.sources.simulated import simulated_batches
from service import CONNECTIONS, Nothing, load

BATCH = 1000
URL = "http://127.0.0.1:9"
"""The relay's address in the poll; nobody asks there, as its key is known to the host."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=1.0, help="how long each round takes")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--most", type=int, default=60_000, help="how many sealed reports are made beforehand")
    given = arguments.parse_args()
    rates: dict[str, list[float]] = {"durable": [], "nothing": []}
    acknowledged = 0
    with tempfile.TemporaryDirectory() as folder:
        bodies = _set_up(folder, given.most)
        with _process(_run_relay, folder, "relay") as durable, _process(_run_nothing, folder, "twin") as nothing:
            each = given.most // given.rounds
            for number in range(given.rounds):
                for kind, port in (("durable", durable), ("nothing", nothing)):
                    fresh = bodies[number * each : (number + 1) * each]
                    tokens, seconds = asyncio.run(load(port, fresh, given.seconds, "shuffled", SEALED_TYPE))
                    if len(tokens) > each // 2:
                        sys.exit("sealed reports were sent twice, which a host refuses: give a larger --most")
                    rates[kind].append(len(tokens) / seconds)
                    acknowledged += len(tokens) if kind == "durable" else 0
        with open_store(_address(folder, "host")) as store:
            store.polls.close("shuffled")
            bare = _decrypted_a_second(store, bodies[:2000])
        with (
            _process(_run_host, folder, "host") as port,
            open_relay_store(_address(folder, "relay")) as relay,
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=600) as http,
        ):
            begun = time.perf_counter()
            batches = Forwarder(relay, Connection(http), URL, _today).round()
            opening = time.perf_counter() - begun
        with open_store(_address(folder, "host")) as store:
            stored = sum(store.batches.sizes("shuffled"))
    durable_rate, nothing_rate = statistics.median(rates["durable"]), statistics.median(rates["nothing"])
    ratio = statistics.median(a / b for a, b in zip(rates["durable"], rates["nothing"], strict=True))
    print(f"{CONNECTIONS} connections, {given.rounds} rounds of {given.seconds:g} s each, {os.cpu_count()} cores")
    print(f"stored by the relay, durably          {durable_rate:8,.0f} sealed reports/s")
    print(f"the same without a database           {nothing_rate:8,.0f} sealed reports/s")
    print(f"ratio                                 {ratio:8.2f}")
    print(f"handed over, opened, checked, stored  {stored / opening:8,.0f} sealed reports/s (batches: {batches})")
    print(f"only decrypted                        {bare:8,.0f} sealed reports/s")
    print(f"ratio                                 {stored / opening / bare:8.2f}")
    print(f"{acknowledged:,} acknowledged, {stored:,} at the host")
    sys.exit(0 if stored == acknowledged else 1)


def _set_up(folder: str, most: int) -> list[bytes]:
    """Make both databases, with the poll and each other's keys in them, and sealed reports of simulated voters."""
    rules = {"name": "shuffled", "study": "moral-machine", "paradigm": "vldp", "levels": {"one": 3}}
    poll = poll_from_dict({**rules, "relay": URL, "batch": BATCH})
    with open_store(_address(folder, "host")) as host, open_relay_store(_address(folder, "relay")) as relay:
        host.polls.add(poll)
        host.batches.pin_relay_key(poll.name, relay.verifying_key())
        configuration = host.batches.key(poll).configuration
        described = describe_poll(poll, (), PollState.OPEN, None, describe_relay(configuration, None, None))
        relay.adopt(RelayedPoll.of(read_poll(described), described))
        with open_relay_store(_address(folder, "twin")) as twin:
            twin.adopt(RelayedPoll.of(read_poll(described), described))
    return _sealed(poll, configuration, most)


def _sealed(poll: HostedPoll, configuration: KeyConfiguration, most: int) -> list[bytes]:
    voters = 1000
    epsilons = Epsilons.same(poll.levels[0].epsilon, voters)
    ballots = concatenate(poll.study, list(simulated_batches(poll.study, voters, np.random.default_rng(1))))
    batch = DISTRIBUTED[poll.mechanism].report(ballots, poll.settings, epsilons, BulkNoise())
    reports = write_reports(poll.mechanism, poll.study, epsilons, batch)
    return [configuration.seal(reports[number % voters]) for number in range(most)]


def _decrypted_a_second(store: Store, sealed: list[bytes]) -> float:
    status = store.polls.get("shuffled")
    key = store.batches.key(status.poll)
    begun = time.perf_counter()
    for one in sealed:
        key.configuration.unseal(one, key.private)
    return len(sealed) / (time.perf_counter() - begun)


def _address(folder: str, name: str) -> str:
    return f"sqlite:///{folder}/{name}.sqlite"


def _today() -> date:
    return datetime.now(UTC).date()


@contextmanager
def _process(run: Callable[[str, Pipe], None], folder: str, database: str) -> Iterator[int]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=run, args=(_address(folder, database), there))
    process.start()
    try:
        yield here.recv()
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.join()


def _run_relay(address: str, there: Pipe) -> None:
    _serve_relay(Relay, address, there)


class _WithoutDatabase(Relay):
    """The relay, but for what it stores."""

    commits = Nothing()


def _run_nothing(address: str, there: Pipe) -> None:
    _serve_relay(_WithoutDatabase, address, there)


def _serve_relay(kind: type[Relay], address: str, there: Pipe) -> None:
    with open_relay_store(address) as store, httpx.Client() as http:
        forwarder = Forwarder(store, Connection(http), URL, _today)
        _serve(create_relay_app(kind(store, forwarder, ServiceSettings(), pause=1e6)), there)


def _run_host(address: str, there: Pipe) -> None:
    with open_store(address) as store:
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
