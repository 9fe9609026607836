"""What an engine is: it does numbered pieces of work, somewhere.

All that an engine must promise is that every piece is done and that one result of each comes back. What the results
are is up to the work: sums of exact integers (``crowd.add_up``), or sums of reports with noise in them. So a worker
that is lost costs time and nothing else, and another engine is one more file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

R = TypeVar("R")


class Engine(Protocol):
    """Somewhere to work."""

    def each(self, work: Callable[[int], R], count: int) -> Iterator[R]:
        """Do the pieces 0 to count - 1 of some work, in any order, and yield their results in the pieces' order.

        A piece may be done more than once, if a worker is lost. ``work`` may be sent to another machine (pickled).
        """
