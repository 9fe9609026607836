"""An engine does numbered work somewhere: on the cores of this machine, or on a cluster.

All that it must promise is that everything is done and that one result of each number comes back. What the results
are is up to the work: sums of exact integers (``batches.add_up``), or sums of reports with noise in them. So a worker
that is lost costs time and nothing else, and another engine is one more file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from crowdveil.engines.local import LocalEngine
from crowdveil.engines.spark import spark_engine
from crowdveil.errors import CrowdveilError

R = TypeVar("R")

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
        with spark_engine(master or "local[*]") as engine:
            yield engine
    elif master is not None:
        raise CrowdveilError("--master is for --engine spark: the local engine has no cluster")
    else:
        yield LocalEngine()
