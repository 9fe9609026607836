"""Group commit: nobody is told before the commit, everybody is told what became of theirs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
from tests.service.voters import poll, report_row

from crowdveil.protocol.submission import SubmissionStatus
from crowdveil.service.store.submissions import GroupCommit, Outcome, Refusals, SubmissionRow


def sent(number: int) -> SubmissionRow:
    return report_row(poll(), number % 12)


def test_what_waits_goes_into_one_commit() -> None:
    sizes: list[int] = []
    first_may_end = threading.Event()

    def put(batch: Sequence[SubmissionRow], _: Refusals) -> list[Outcome]:
        sizes.append(len(batch))
        first_may_end.wait()
        return [SubmissionStatus.STORED] * len(batch)

    async def run() -> list[Outcome]:
        commits = GroupCommit(put)
        waiting = [asyncio.create_task(commits.put(sent(0)))]
        await asyncio.sleep(0.01)
        waiting += [asyncio.create_task(commits.put(sent(number))) for number in range(30)]
        await asyncio.sleep(0.01)
        assert not any(task.done() for task in waiting)  # Told after the commit, never before.
        first_may_end.set()
        outcomes = await asyncio.gather(*waiting)
        await commits.close()
        return outcomes

    assert asyncio.run(run()) == [SubmissionStatus.STORED] * 31
    assert sizes == [1, 30]


def test_a_failure_reaches_everybody_who_waits_and_nobody_after() -> None:
    calls = 0

    def put(batch: Sequence[SubmissionRow], _: Refusals) -> list[Outcome]:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise OSError("the disk is full")
        return [SubmissionStatus.STORED] * len(batch)

    async def run() -> None:
        commits = GroupCommit(put)
        with pytest.raises(OSError, match="disk is full"):
            await commits.put(sent(0))
        assert await commits.put(sent(1)) is SubmissionStatus.STORED
        await commits.close()

    asyncio.run(run())


def test_closing_waits_for_refusals_and_for_whoever_hung_up() -> None:
    stored: list[SubmissionRow] = []
    counted: list[Refusals] = []

    def put(batch: Sequence[SubmissionRow], refusals: Refusals) -> list[Outcome]:
        stored.extend(batch)
        counted.append(refusals)
        return [SubmissionStatus.STORED] * len(batch)

    async def run() -> None:
        commits = GroupCommit(put)
        impatient = asyncio.create_task(commits.put(sent(0)))
        await asyncio.sleep(0)
        impatient.cancel()
        commits.count_refusal("p", "malformed")
        commits.count_refusal("p", "malformed")
        await commits.close()

    asyncio.run(run())
    assert len(stored) == 1
    assert [dict(refusals) for refusals in counted if refusals] == [{("p", "malformed"): 2}]
