"""Durable reports a second, beside the same service without a database.

32 connections on the loopback send reports of simulated voters, each with a token of its own, to a real server process.
The second server is the same in everything (the same parsing, checking, limits, headers and logs), but answers "stored"
where the first one waits for its commit. The two take turns on the same machine, so that what else it does meets both;
the median of the rounds' ratios is what is asked for. Afterwards every acknowledged report must be stored, and none
twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from multiprocessing.connection import Connection

import numpy as np
import uvicorn

from crowdveil.ballots.ballots import concatenate
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.protocol.report import write_reports
from crowdveil.protocol.submission import SubmissionStatus, new_token, report_id
from crowdveil.service.app import create_app
from crowdveil.service.poll import find_poll
from crowdveil.service.server import logging_config
from crowdveil.service.service import Service
from crowdveil.service.settings import ServiceSettings
from crowdveil.service.store.store import open_store
from crowdveil.service.store.submissions import Outcome
from crowdveil.sources.simulated import simulated_batches

CONNECTIONS = 32
ASKED = 0.60


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=2.0, help="how long each round takes")
    arguments.add_argument("--rounds", type=int, default=7)
    arguments.add_argument("--database", default="", help="default: SQLite in a temporary directory")
    given = arguments.parse_args()
    bodies = _bodies(2000)
    rates: dict[str, list[float]] = {"durable": [], "nothing": []}
    with tempfile.TemporaryDirectory() as directory:
        settings = ServiceSettings(data=directory, database=given.database, port=0)
        with _server(settings, durable=True) as durable, _server(settings, durable=False) as nothing:
            ports = {"durable": durable, "nothing": nothing}
            acknowledged: list[str] = []
            for _ in range(given.rounds):
                for kind, port in ports.items():
                    tokens, seconds = asyncio.run(load(port, bodies, given.seconds))
                    rates[kind].append(len(tokens) / seconds)
                    acknowledged += tokens if kind == "durable" else []
        stored = _stored(settings)
    ids = [report_id(token) for token in acknowledged]
    lost, doubled = len(set(ids) - set(stored)), len(stored) - len(set(stored))
    durable_rate, nothing_rate = statistics.median(rates["durable"]), statistics.median(rates["nothing"])
    ratio = statistics.median(a / b for a, b in zip(rates["durable"], rates["nothing"], strict=True))
    print(f"{CONNECTIONS} connections, {given.rounds} rounds of {given.seconds:g} s each, {os.cpu_count()} cores")
    print(f"acknowledged after a durable commit   {durable_rate:8,.0f} reports/s")
    print(f"the same without a database           {nothing_rate:8,.0f} reports/s")
    print(f"ratio                                 {ratio:8.2f}   ({ASKED:.2f} or more is asked for)")
    print(f"{len(ids):,} acknowledged, {lost} lost, {doubled} doubled")
    sys.exit(0 if ratio >= ASKED and not lost and not doubled else 1)


class Nothing:
    """Says that everything is stored, and stores nothing."""

    async def put(self, row: object) -> Outcome:
        """Answer at once."""
        return SubmissionStatus.STORED

    def count_refusal(self, poll: str, reason: str) -> None:
        """Count nothing."""

    async def close(self) -> None:
        """Have nothing to finish."""


class _WithoutDatabase(Service):
    """The service, but for what it stores."""

    commits = Nothing()


@contextmanager
def _server(settings: ServiceSettings, durable: bool) -> Iterator[int]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_run_server, args=(settings, durable, there))
    process.start()
    try:
        yield here.recv()
    finally:
        os.kill(process.pid, signal.SIGTERM)
        process.join()


def _run_server(settings: ServiceSettings, durable: bool, there: Connection) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # The log is written, and not shown.
    address = settings.database_address if durable else f"sqlite:///{settings.data}/without.sqlite"
    with open_store(address) as store:
        store.polls.add(find_poll("moral-machine"))
        service = (Service if durable else _WithoutDatabase)(store, settings)
        config = uvicorn.Config(create_app(service), log_config=logging_config("info"), access_log=False)
        listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        there.send(listening.getsockname()[1])
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        uvicorn.Server(config).run([listening])


def _bodies(voters: int) -> list[bytes]:
    """Make honest reports, of the three levels in turn."""
    poll = find_poll("moral-machine")
    epsilons = Epsilons(islice(cycle(level.epsilon for level in poll.levels), voters))
    ballots = concatenate(poll.study, list(simulated_batches(poll.study, voters, np.random.default_rng(1))))
    batch = DISTRIBUTED[poll.mechanism].report(ballots, poll.settings, epsilons, BulkNoise())
    return [json.dumps(body).encode() for body in write_reports(poll.mechanism, poll.study, epsilons, batch)]


async def load(
    port: int, bodies: Sequence[bytes], seconds: float, poll: str = "moral-machine", kind: str = "application/json"
) -> tuple[list[str], float]:
    """Send for so long; return the tokens of what was acknowledged, and the time that it took."""
    acknowledged: list[str] = []
    end = time.perf_counter() + seconds

    async def connection(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        position = number
        while time.perf_counter() < end:
            token, body = new_token(), bodies[position % len(bodies)]
            position += CONNECTIONS
            writer.write(
                b"PUT /api/polls/%s/report HTTP/1.1\r\nHost: 127.0.0.1\r\nCrowdveil-Ballot: %s\r\n"
                b"Content-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
                % (poll.encode(), token.encode(), kind.encode(), len(body), body)
            )
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            answer = await reader.readexactly(length)
            if not head.startswith(b"HTTP/1.1 201"):
                raise RuntimeError(f"refused: {answer.decode()}")
            acknowledged.append(token)
        writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(connection(number) for number in range(CONNECTIONS)))
    return acknowledged, time.perf_counter() - begun


def _stored(settings: ServiceSettings) -> list[str]:
    with open_store(settings.database_address) as store:
        return [report.id for batch in store.submissions.reports("moral-machine") for report in batch]


if __name__ == "__main__":
    main()
