"""What an engine is: it adds up exact integers over the pieces of a crowd, somewhere.

A sum of integers does not depend on the order of its terms. So what is added up is the same bit for bit, however the
crowd is cut, whoever works on a piece, and whether a piece had to be done again because a worker was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from veil.ballots import Ballots, BallotSource
from veil.engines.local import LocalEngine
from veil.study import Study

IntArray = npt.NDArray[np.int64]
Tally = Callable[[Ballots], IntArray]
"""What is to be added up, for one piece of a crowd: always as many integers."""


class Engine(Protocol):
    """Somewhere to work on a crowd."""

    def add_up(self, source: BallotSource, tally: Tally) -> IntArray:
        """Add up a tally over all pieces of a crowd. Nothing else leaves the workers."""


@dataclass(frozen=True)
class Crowd:
    """A crowd and the engine that is to work on it: a source like any other."""

    source: BallotSource
    engine: Engine

    @property
    def study(self) -> Study:
        """What was asked."""
        return self.source.study

    @property
    def voters(self) -> int:
        """The number of voters."""
        return self.source.voters

    def chunks(self) -> Iterator[Ballots]:
        """Walk the crowd here, one piece after another."""
        return self.source.chunks()


def add_up(source: BallotSource, tally: Tally) -> IntArray:
    """Add up a tally over a crowd, by its engine; without one, on all cores of this machine."""
    if isinstance(source, Crowd):
        return source.engine.add_up(source.source, tally)
    return LocalEngine().add_up(source, tally)
