"""The engine that everybody has: the cores of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain, islice
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from veil.ballots import Ballots, BallotSource
from veil.engines.threads import in_order, usable_cores

IntArray = npt.NDArray[np.int64]


@runtime_checkable
class InPieces(Protocol):
    """A crowd of which any piece can be read by itself, by any thread."""

    @property
    def pieces(self) -> int:
        """How many pieces there are."""

    def piece(self, number: int) -> Ballots:
        """Read one."""


@dataclass(frozen=True)
class LocalEngine:
    """Works on several pieces at a time, and so takes memory for several pieces."""

    threads: int | None = None
    """None: as many as there are cores."""

    def add_up(self, source: BallotSource, tally: Callable[[Ballots], IntArray]) -> IntArray:
        """Add up a tally over all pieces of a crowd."""
        pieces = _readers(source)
        few = list(islice(pieces, 2))
        if not few:
            raise ValueError("nobody is in this crowd")
        if len(few) == 1:  # threads would cost more than they bring
            return tally(few[0]())
        parts = in_order(lambda read: tally(read()), chain(few, pieces), self.threads or usable_cores())
        return reduce(np.add, parts)


def _readers(source: BallotSource) -> Iterator[Callable[[], Ballots]]:
    """Return how each piece is read: by whoever works on it, where the crowd is in pieces; else one after another."""
    if isinstance(source, InPieces):
        return (partial(source.piece, number) for number in range(source.pieces))
    return (partial(_itself, chunk) for chunk in source.chunks())


def _itself(chunk: Ballots) -> Ballots:
    return chunk
