"""Real processes of a host and a relay, started as a person would start them, and killed as nobody should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
from tests.service.running import COMMAND


class Program:
    """``crowdveil serve`` or ``crowdveil relay`` at a port of its own, answering requests."""

    def __init__(self, log: Path, port: int, *words: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._log, self._words = log, [sys.executable, "-c", COMMAND, *words, "--port", str(port)]
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._words, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True, env=os.environ.copy()
            )
        with httpx.Client() as client:
            while not self._answers(client):
                assert self.process.poll() is None, self._log.read_text()
                time.sleep(0.05)

    def _answers(self, client: httpx.Client) -> bool:
        try:
            return client.get(f"{self.url}/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)
