"""Many threads and processes after the same budget: it is spent to the last tenth and never over."""

from __future__ import annotations

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from threading import Barrier as ThreadBarrier

import pytest
from tests.privacy.ledger.posting import charge_of, post
from tests.privacy.ledger.races import DATASET, accepted_in_a_race, spent_by_processes

from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.epsilon import Amount
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger import ledger_file as ledger_file
from crowdveil.privacy.ledger.ledger import Ledger

BUDGET, STEP = 1_000_000, 100_000


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
        connection = sqlite3.connect(path, isolation_level=None, timeout=600)
        try:
            (spent,) = connection.execute("SELECT coalesce(sum(epsilon), 0) FROM entry").fetchone()
            if spent + STEP > BUDGET:
                raise BudgetExceeded("naive", Decimal(STEP), Decimal(BUDGET - spent))
            everyone_has_checked.wait()
            connection.execute("INSERT INTO entry VALUES (?)", (STEP,))
        finally:
            connection.close()

    assert accepted_in_a_race(40, naive_charge) == 40


def test_twelve_processes_share_ten_steps(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger", Amount(BUDGET))
    charge = charge_of(DATASET, STEP, Unit.RECORD, purpose="race")
    assert spent_by_processes(ledger, tmp_path, [charge] * 12) == BUDGET
    (account,) = ledger.statement().accounts
    assert (len(account.entries), account.remaining.micro) == (10, 0)


def test_racing_creators_make_one_ledger(tmp_path: Path) -> None:
    made: list[Ledger] = []
    path = tmp_path / "ledger"
    assert accepted_in_a_race(10, lambda: made.append(Ledger.create(path, Amount(BUDGET))), CrowdveilError) == 1
    assert made == [Ledger.open(path)]


def test_those_who_open_a_new_ledger_at_once_get_the_same_one(tmp_path: Path) -> None:
    opened: list[str] = []

    def open_it() -> None:
        opened.append(Ledger.open(tmp_path / "ledger", budget=1).id)

    for number in range(10):
        assert accepted_in_a_race(8, open_it) == 8
        assert len(set(opened[8 * number :])) == 1
        (tmp_path / "ledger").rename(tmp_path / f"{number}")
        (tmp_path / "ledger.key").rename(tmp_path / f"{number}.key")


def test_whoever_opens_a_ledger_while_it_is_created_gets_it_whole(tmp_path: Path) -> None:
    def create(path: Path) -> None:
        with suppress(CrowdveilError):  # One of the others may have created it.
            Ledger.create(path, 1)

    with ThreadPoolExecutor(8) as threads:
        for path in (tmp_path / f"{number}" for number in range(50)):
            threads.submit(create, path)
            assert list(threads.map(partial(Ledger.open, budget=1), [path] * 7)) == [Ledger.open(path)] * 7
