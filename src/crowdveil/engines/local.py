"""The engine that everybody has: the cores of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from crowdveil.engines.threads import in_order, usable_cores

R = TypeVar("R")


@dataclass(frozen=True)
class LocalEngine:
    """Works on several pieces at a time, and so takes memory for several pieces."""

    threads: int | None = None
    """None: as many as there are cores."""

    def each(self, work: Callable[[int], R], count: int) -> Iterator[R]:
        """Do the pieces of some work in threads."""
        if count == 1:  # one piece may take all cores itself
            yield work(0)
        else:
            yield from in_order(work, range(count), self.threads or usable_cores())
