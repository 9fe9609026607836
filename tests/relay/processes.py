"""Real processes of a host and a relay, forked from one that has loaded everything, and killed as nobody should."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

PARENT = """
import json, os, sys
import httpcore, uvicorn.protocols.http.auto, uvicorn.protocols.websockets.auto, uvloop
import crowdveil.cli.website, crowdveil.relay.app, crowdveil.service.app
from crowdveil.cli.app import main
for line in sys.stdin:
    asked = json.loads(line)
    if "words" not in asked:
        told = os.waitpid(asked["child"], asked["flags"])[0]
    elif not (told := os.fork()):
        os.setsid()
        files = os.open(os.devnull, os.O_RDWR), os.open(asked["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for place, file in enumerate((files[0], *files)):
            os.dup2(file, place)
        main(asked["words"])
    print(told, flush=True)
"""
"""Starts the program in a process of its own for each line that it reads, or says whether one has ended."""


class Parent:
    """The process from which all others are forked: to start an interpreter for each costs more than what it does."""

    def __enter__(self) -> Self:
        words = [sys.executable, "-c", PARENT]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)

    def start(self, log: Path, words: list[str]) -> int:
        """Start the program, and return the number of its process."""
        return self._ask(log=str(log), words=words)

    def alive(self, child: int) -> bool:
        """Tell whether a process runs."""
        return self._ask(child=child, flags=os.WNOHANG) == 0

    def wait_for(self, child: int) -> None:
        """Wait until a process has ended."""
        assert self._ask(child=child, flags=0) == child

    def _ask(self, **asked: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


class Program:
    """``crowdveil serve`` or ``crowdveil relay`` at a port of its own, answering requests."""

    def __init__(self, parent: Parent, log: Path, port: int, *words: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._parent, self._log, self._words = parent, log, [*words, "--port", str(port)]
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._child: int | None = self._parent.start(self._log, self._words)
        with httpx.Client() as client:
            while not self._answers(client):
                assert self._parent.alive(self._child), self._log.read_text()
                time.sleep(0.05)

    def _answers(self, client: httpx.Client) -> bool:
        try:
            return client.get(f"{self.url}/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        if self._child is not None:
            os.killpg(self._child, signal.SIGKILL)
            self._parent.wait_for(self._child)
            self._child = None
