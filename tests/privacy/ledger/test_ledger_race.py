"""Many threads and processes after the same budget: it is spent to the last tenth and never over."""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import Barrier as ThreadBarrier

import pytest
from tests.privacy.ledger.posting import post

from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.amount import Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger import file as ledger_file
from crowdveil.privacy.ledger.ledger import Ledger

BUDGET, STEP = 1_000_000, 100_000
DATASET = "a" * 64


def accepted_in_a_race(
    contestants: int, attempt: Callable[[], object], refusal: type[CrowdveilError] = BudgetExceeded
) -> int:
    """Let ``contestants`` threads attempt it at the same moment; count those that were not refused."""
    start = ThreadBarrier(contestants)

    def contestant() -> bool:
        start.wait()
        try:
            attempt()
        except refusal:
            return False
        return True

    with ThreadPoolExecutor(contestants) as pool:
        return sum(pool.map(lambda _: contestant(), range(contestants)))


def test_forty_threads_share_ten_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Amount(BUDGET))

    def slow_clock() -> str:  # read between the check and the insert: widens the window for a race
        time.sleep(0.005)
        return "2030-01-01T00:00:00+00:00"

    monkeypatch.setattr(ledger_file, "now", slow_clock)
    assert accepted_in_a_race(40, lambda: post(ledger, DATASET, STEP, Unit.VOTER, 5, "race")) == 10
    (account,) = ledger.statement().accounts
    assert account.remaining.micro == 0
    assert [entry.id for entry in account.entries] == list(range(1, 11))


def test_check_then_insert_fails_in_the_same_race(tmp_path: Path) -> None:
    path = tmp_path / "naive.sqlite"
    everyone_has_checked = ThreadBarrier(40)
    setup = sqlite3.connect(path)
    setup.execute("CREATE TABLE entry (epsilon INTEGER)")
    setup.commit()
    setup.close()

    def naive_charge() -> None:
        connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        try:
            (spent,) = connection.execute("SELECT coalesce(sum(epsilon), 0) FROM entry").fetchone()
            if spent + STEP > BUDGET:
                raise BudgetExceeded("naive", Decimal(STEP), Decimal(BUDGET - spent))
            everyone_has_checked.wait()
            connection.execute("INSERT INTO entry VALUES (?)", (STEP,))
        finally:
            connection.close()

    assert accepted_in_a_race(40, naive_charge) == 40


def spend_until_refused(path: Path, start: Barrier, accepted: Path) -> None:
    ledger_file.PATIENCE_SECONDS = 600.0  # SQLite's locks are not fair: under load one of twelve may wait for long
    ledger = Ledger.open(path)
    start.wait()
    count = 0
    try:
        while True:
            post(ledger, DATASET, STEP, Unit.RECORD, 5, "race")
            count += 1
    except BudgetExceeded:
        accepted.write_text(str(count))


def test_twelve_processes_share_ten_steps(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Amount(BUDGET))
    context = multiprocessing.get_context("forkserver")
    start = context.Barrier(12)
    results = [tmp_path / f"accepted-{number}" for number in range(12)]
    processes = [context.Process(target=spend_until_refused, args=(ledger.path, start, result)) for result in results]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert sum(int(result.read_text()) for result in results) == 10
    (account,) = ledger.statement().accounts
    assert (len(account.entries), account.remaining.micro) == (10, 0)


def test_racing_creators_make_one_ledger(tmp_path: Path) -> None:
    made: list[Ledger] = []
    path = tmp_path / "ledger"
    assert accepted_in_a_race(10, lambda: made.append(Ledger.create(path, Amount(BUDGET))), CrowdveilError) == 1
    assert made == [Ledger.open(path)]
