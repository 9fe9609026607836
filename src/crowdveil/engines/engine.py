"""An engine does numbered work somewhere: on the cores of this machine, or on a cluster.

All that it must promise is that everything is done and that one result of each number comes back. What the results
are is up to the work: sums of exact integers (``batches.add_up``), or sums of reports with noise in them. So a worker
that is lost costs time and nothing else, and another engine is one more file.

The engine that everybody has is the cores of this machine, in threads: what takes time here is compiled and lets other
threads run.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from crowdveil.errors import CrowdveilError

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


ENGINES = ("local", "spark")


class Engine(Protocol):
    """Somewhere to work."""

    def each(self, work: Callable[[int], R], count: int) -> Iterator[R]:
        """Work on the numbers 0 to count - 1, in any order, and yield the results in the numbers' order.

        A number may be worked on twice, if a worker is lost. ``work`` may be sent to another machine (pickled).
        """


@contextmanager
def chosen_engine(name: str, master: str | None = None) -> Iterator[Engine]:
    """Start an engine and end it afterwards. ``master`` says where a Spark cluster is; by default all cores here."""
    if name not in ENGINES:
        raise CrowdveilError(f"there is no engine {name!r}: use {' or '.join(ENGINES)}")
    if name == "spark":
        from crowdveil.engines.spark import spark_engine

        with spark_engine(master or "local[*]") as engine:
            yield engine
    elif master is not None:
        raise CrowdveilError("--master is for --engine spark: the local engine has no cluster")
    else:
        yield LocalEngine()
