"""An engine performs numbered work: on the cores of this machine, or on a cluster.

It only has to promise that everything is done and that one result for each number comes back. The results depend on the
work: sums of exact integers (``batches.add_up``), or sums of reports that include noise. So a lost worker costs only
time, and another engine is just one more file.

The default engine is the cores of this machine, in threads: the slow parts are compiled and let other threads run.
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
    """Works on several batches at a time, which takes memory for several."""

    threads: int | None = None
    """None for one per core."""

    def each(self, work: Callable[[int], R], count: int) -> Iterator[R]:
        """Work in threads."""
        if count == 1:  # a single piece of work may use all cores itself
            yield work(0)
        else:
            yield from in_order(work, range(count), self.threads or usable_cores())


def usable_cores() -> int:
    """Return how many cores this process may use; one, in a thread that runs beside others."""
    if getattr(_here, "one_of_many", False):
        return 1
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not available on every system
        return os.cpu_count() or 1


def in_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Work on every item, several at a time, and yield the results in the order of the items.

    Items are taken only as fast as results are requested: there are never more than ``threads + 1`` in progress.
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
    """Mark this thread as one of several, so that it uses only one core."""
    _here.one_of_many = True


ENGINES = ("local", "spark")


class Engine(Protocol):
    """Something that performs work."""

    def each(self, work: Callable[[int], R], count: int) -> Iterator[R]:
        """Work on the numbers 0 to count - 1, in any order, and yield the results in the order of the numbers.

        A number may be processed twice, if a worker is lost. ``work`` may be sent to another machine (pickled).
        """


@contextmanager
def chosen_engine(name: str, master: str | None = None) -> Iterator[Engine]:
    """Start an engine and stop it afterwards. ``master`` is the URL of a Spark cluster; by default all cores here."""
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
