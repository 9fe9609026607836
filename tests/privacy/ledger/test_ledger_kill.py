"""SIGKILL at any moment: a charge may be left without its release, never a release without its charge."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from tests.privacy.ledger.races import DATASET, PROCESSES

import crowdveil
from crowdveil.errors import BudgetExceeded
from crowdveil.files import write_text
from crowdveil.privacy.epsilon import Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger import ledger_file as ledger_file
from crowdveil.privacy.ledger.entries import Charge, Crowd
from crowdveil.privacy.ledger.ledger import Ledger

CROWD = Crowd("study", 1, b"somebody\0\0\0\0\0\0\0\0")
STEP = 1_000
BUDGET = 1_000_000


def release(ledger: Ledger, folder: Path, reached: Callable[[str], None] = lambda step: None) -> None:
    """Do what every release does, in its order."""
    entry = ledger.charge(Charge(DATASET, CROWD, Unit.VOTER, Amount(STEP), 5, "kill test"))
    reached("charged")
    text = json.dumps(entry.as_dict())
    write_text(folder / f"{entry.id}.json", text)
    reached("written")
    ledger.deliver(entry.id, hashlib.sha256(text.encode()).hexdigest())
    reached("delivered")


def check_books(path: Path, folder: Path) -> tuple[int, int, int]:
    """Assert what must hold after any kill; return the numbers of entries, delivered ones and releases."""
    ledger = Ledger.open(path)
    accounts = ledger.statement().accounts
    entries = {entry.id: entry for account in accounts for entry in account.entries}
    releases = {int(file.stem): file.read_bytes() for file in folder.glob("[0-9]*.json")}
    for number, content in releases.items():
        assert number in entries, "a release without its charge"
        assert json.loads(content)["ledger"] == ledger.id
    for account in accounts:
        assert account.spent_on(Unit.VOTER).micro == STEP * len(entries) <= account.budget.micro
        assert all(entry.state == "charged, not delivered" for entry in account.undelivered)
    delivered = {number for number, entry in entries.items() if entry.state == "delivered"}
    for number in delivered:
        assert entries[number].release_digest == hashlib.sha256(releases[number]).hexdigest()
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    connection.close()
    return len(entries), len(delivered), len(releases)


def release_until_killed(path: Path, folder: Path, ready: Event) -> None:
    ledger = Ledger.open(path)
    ready.set()
    while True:
        try:
            release(ledger, folder)
        except BudgetExceeded:
            return


def test_kills_at_random_moments(tmp_path: Path) -> None:
    path = Ledger.create(tmp_path / "ledger", Amount(BUDGET)).path
    moment = random.Random(20)
    patience = 0.04
    rounds = 0
    # On a slow machine nobody may live long enough to deliver: then they are left alone longer.
    while rounds < 60 or check_books(path, tmp_path)[1] == 0:
        rounds += 1
        if rounds > 60:
            patience *= 2
        ready = [PROCESSES.Event() for _ in range(2)]  # two at a time: the survivor recovers for the other
        pair = [PROCESSES.Process(target=release_until_killed, args=(path, tmp_path, event)) for event in ready]
        for process in pair:
            process.start()
        for event in ready:
            assert event.wait(60)
        for process in pair:
            time.sleep(moment.uniform(0, patience))
            process.kill()
            process.join()
            assert process.exitcode in (-signal.SIGKILL, 0)
        check_books(path, tmp_path)
    entries, delivered, _ = check_books(path, tmp_path)
    assert delivered > 0
    assert entries - delivered <= 2 * rounds


def release_once_and_die(path: Path, folder: Path, fatal: str) -> None:
    def reached(step: str) -> None:
        if step == fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def clock() -> str:  # read inside the transaction of ``charge``, after its first insert
        reached("charging")
        return "2030-01-01T00:00:00+00:00"

    ledger_file.now = clock
    release(Ledger.open(path), folder, reached)


@pytest.mark.parametrize(
    ("fatal", "entries", "delivered", "releases"),
    [("charging", 0, 0, 0), ("charged", 1, 0, 0), ("written", 1, 0, 1), ("delivered", 1, 1, 1)],
)
def test_a_kill_between_two_steps(tmp_path: Path, fatal: str, entries: int, delivered: int, releases: int) -> None:
    path = Ledger.create(tmp_path / "ledger", Amount(BUDGET)).path
    process = PROCESSES.Process(target=release_once_and_die, args=(path, tmp_path, fatal))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert check_books(path, tmp_path) == (entries, delivered, releases)


STRACE = shutil.which("strace")
HERE = Path(__file__).parent
ONE_RELEASE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from test_ledger_kill import Ledger, release
release(Ledger.open(Path(sys.argv[1])), Path(sys.argv[2]))
"""


@pytest.mark.slow
@pytest.mark.skipif(STRACE is None, reason="needs strace to kill at a given system call")
def test_a_kill_before_every_single_write(tmp_path: Path) -> None:
    """Kill before the first, second, third, ... system call of each kind, until a release survives."""
    environment = {**os.environ, "PYTHONPATH": str(Path(crowdveil.__file__).parents[1])}
    seen: set[tuple[int, int, int]] = set()
    kills = 0
    for call in ("pwrite64", "fdatasync", "fsync", "unlink", "rename"):
        progress = (0, 0, 0)
        for number in range(1, 200):
            folder = tmp_path / f"{call}-{number}"
            folder.mkdir()
            path = Ledger.create(folder / "ledger", Amount(BUDGET)).path
            kill = f"inject={call}:signal=KILL:when={number}"
            trace = [str(STRACE), "-f", "-o", os.devnull, "-e", f"trace={call}", "-e", kill]
            program = [sys.executable, "-B", "-c", ONE_RELEASE, str(path), str(folder), str(HERE)]
            done = subprocess.run(trace + program, env=environment, capture_output=True, text=True)
            books = check_books(path, folder)
            assert books >= progress, "a later kill left less behind"
            progress = books
            if done.returncode == 0:
                break
            assert done.returncode == -signal.SIGKILL, done.stderr
            seen.add(books)
            kills += 1
        assert progress == (1, 1, 1)
    # Every stage was interrupted: before the charge, before the release, before and after the delivery.
    assert seen == {(0, 0, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1)}
    assert kills >= 30
