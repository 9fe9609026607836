"""A real server process, started as a person would start it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

COMMAND = "import sys; from crowdveil.cli.app import main; sys.argv[0] = 'crowdveil'; main()"


class Server:
    """``crowdveil serve`` with some options, answering requests."""

    def __init__(self, log: Path, *options: str) -> None:
        self._log = log.open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "serve", *options, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.told = [self.process.stdout.readline() for _ in range(3)]
        self.page = self.told[0].split()[-1]
        self.url = self.page.partition("/p/")[0].rstrip("/")
        while not self._answers():
            assert self.process.poll() is None, log.read_text()
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._ended()

    def kill(self) -> None:
        """End it and its workers at once."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self._ended()

    def _ended(self) -> int:
        assert self.process.stdout is not None
        code = self.process.wait(60)
        self.process.stdout.close()
        self._log.close()
        return code
