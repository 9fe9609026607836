"""Group commit: what arrives while one commit is on its way to the disk goes into the next, all of it at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from crowdveil.service.store.submissions import Outcome, Refusals

MOST_AT_ONCE = 500

R = TypeVar("R")
"""The row of a submission."""


class GroupCommit(Generic[R]):
    """Stores what voters submit. Each is told what became of it after the commit that it was part of, never before.

    A commit takes the disk a millisecond or more, whether it holds one report or hundreds. The longer it takes, the
    more reports the next one holds.
    """

    def __init__(self, put: Callable[[Sequence[R], Refusals], list[Outcome]]) -> None:
        self._put = put
        self._waiting: list[tuple[R, asyncio.Future[Outcome]]] = []
        self._refused: Counter[tuple[str, str]] = Counter()
        self._running: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "commit")

    async def put(self, row: R) -> Outcome:
        """Store a submission and return what became of it, durably."""
        told: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, told))
        self._run()
        return await told

    def count_refusal(self, poll: str, reason: str) -> None:
        """Count a refusal with the next commit. Nobody waits for it."""
        self._refused[poll, reason] += 1
        self._run()

    async def close(self) -> None:
        """Wait until everything is stored."""
        if self._running is not None:
            await self._running
        self._thread.shutdown()

    def _run(self) -> None:
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._commit_all())

    async def _commit_all(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting or self._refused:
            batch, self._waiting = self._waiting[:MOST_AT_ONCE], self._waiting[MOST_AT_ONCE:]
            refused, self._refused = self._refused, Counter()
            try:
                outcomes = await loop.run_in_executor(self._thread, self._put, [row for row, _ in batch], refused)
            except Exception as error:
                for _, told in batch:
                    if not told.done():
                        told.set_exception(error)
                continue
            for (_, told), outcome in zip(batch, outcomes, strict=True):
                if not told.done():  # Whoever hung up is not told.
                    told.set_result(outcome)
