"""Threads and processes that are after the same budget at the same moment.

It imports little, for every process of a race imports it anew.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path
from threading import Barrier as ThreadBarrier

from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.ledger import ledger_file as ledger_file
from crowdveil.privacy.ledger.entries import Charge
from crowdveil.privacy.ledger.ledger import Ledger

DATASET = "a" * 64
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "pytest",
        "crowdveil.files",
        "crowdveil.privacy.ledger.ledger",
        "cryptography.hazmat.primitives.ciphers",
        "scipy.optimize",  # which a ledger of rhos loads when it is opened
    ]
)  # quick to start, quick to kill


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


def spend_until_refused(path: Path, charge: Charge, start: Barrier, spent: Path) -> None:
    """Charge again and again, as one of many processes."""
    ledger_file.PATIENCE_SECONDS = 600.0  # SQLite's locks are not fair: under load one of many may wait for long
    ledger = Ledger.open(path)
    start.wait()
    total = 0
    try:
        while True:
            total += ledger.charge(charge).charged.micro
    except BudgetExceeded:
        spent.write_text(str(total))


def spent_by_processes(ledger: Ledger, folder: Path, charges: Sequence[Charge]) -> int:
    """Let a process for each charge repeat it until the budget is spent; return what they spent together."""
    start = PROCESSES.Barrier(len(charges))
    results = [folder / f"spent-{number}" for number in range(len(charges))]
    processes = [
        PROCESSES.Process(target=spend_until_refused, args=(ledger.path, charge, start, result))
        for charge, result in zip(charges, results, strict=True)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return sum(int(result.read_text()) for result in results)
