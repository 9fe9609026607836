"""The engine that everybody has: the cores of this machine, in threads.

(What takes time here is compiled and lets other threads run.)
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_here = threading.local()


@dataclass(frozen=True)
class LocalEngine:
    """Works on several batches at a time, and so takes memory for several."""

    threads: int | None = None
    """None: as many as there are cores."""

    def each(self, work: Callable[[int], R], count: int) -> Iterator[R]:
        """Work in threads."""
        if count == 1:  # which may take all cores itself
            yield work(0)
        else:
            yield from in_order(work, range(count), self.threads or usable_cores())


def usable_cores() -> int:
    """Return how many cores this process may use; one, in a thread beside which others work."""
    if getattr(_here, "one_of_many", False):
        return 1
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def in_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Do the work on every item, several at a time, and yield the results in the items' order.

    Items are taken only as fast as results are asked for: there are never more than ``threads + 1`` on the way.
    """
    pool = ThreadPoolExecutor(threads, initializer=be_one_of_many)
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def be_one_of_many() -> None:
    """Let this thread know that others work beside it, so that it takes one core only."""
    _here.one_of_many = True
