"""Work on a whole crowd, batch by batch, on an engine; and crowds whose choices are completed as they are read.

A sum of integers does not depend on the order of its terms. So the sums here are the same bit for bit, however the
crowd is cut, whoever works on a batch, and whether or not a batch was repeated because a worker was lost.

In completed ballots, a fair coin replaces every choice that was neither. The coins are a public table, indexed by a
voter's name (without names, by her position in the crowd) and a record's position in her ballot, whatever the choices
are and however the crowd is cut into batches. So every pass over a crowd sees the same choices, and completing them
protects or exposes nobody: changing one record changes one completed record, and changing one voter's records changes
no other voter's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, islice
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from crowdveil.arrays import BoolArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.ballots.columns import keys_of_voters, mixed
from crowdveil.engines.engine import Engine, LocalEngine, in_order, usable_cores
from crowdveil.study.study import Study

R = TypeVar("R")
Tally = Callable[[Ballots], IntArray]
"""Integers to be added up, computed for one batch of a crowd: always the same number of them."""
Work = Callable[[Ballots, int], R]
"""Work on one batch of a crowd, given the number of voters before it."""


@runtime_checkable
class NumberedBatches(BallotSource, Protocol):
    """A crowd of which any worker can read any batch by itself."""

    @property
    def batch_count(self) -> int:
        """The number of batches."""

    def batch(self, number: int) -> Ballots:
        """Read one batch."""

    def voters_before(self, number: int) -> int:
        """Return the number of voters in the batches before this one."""


@dataclass(frozen=True)
class BatchedBallots:
    """Ballots in batches, the engine that works on them, and a callback for progress."""

    source: NumberedBatches
    engine: Engine
    tell: Callable[[int], None] = lambda voters: None

    @property
    def study(self) -> Study:
        """The study that was asked."""
        return self.source.study

    @property
    def voters(self) -> int:
        """The number of voters."""
        return self.source.voters

    def batches(self) -> Iterator[Ballots]:
        """Read the crowd here, one batch after another."""
        for batch in self.source.batches():
            yield batch
            self.tell(batch.voters)

    def map_batches(self, work: Work[R]) -> Iterator[R]:
        """Let the engine work on every batch; yield the results in the order of the batches."""
        for number, result in enumerate(self.engine.each(_BatchWork(self.source, work), self.source.batch_count)):
            yield result
            self.tell(self.source.voters_before(number + 1) - self.source.voters_before(number))


@dataclass(frozen=True)
class _BatchWork(Generic[R]):
    """The work as it is sent to the workers."""

    source: NumberedBatches
    work: Work[R]

    def __call__(self, number: int) -> R:
        return self.work(self.source.batch(number), self.source.voters_before(number))


def map_batches(source: BallotSource, work: Work[R]) -> Iterator[R]:
    """Work on every batch of a crowd, on its engine if it has one, else on all cores here; results are in order."""
    if isinstance(source, BatchedBallots):
        return source.map_batches(work)
    if isinstance(source, NumberedBatches):
        return BatchedBallots(source, LocalEngine()).map_batches(work)
    return _as_they_come(source, work)


def add_up(source: BallotSource, tally: Tally) -> IntArray:
    """Add up a tally over a crowd. Only sums leave the workers."""
    return reduce(np.add, map_batches(source, _TallyWork(tally)))


@dataclass(frozen=True)
class _TallyWork:
    tally: Tally

    def __call__(self, ballots: Ballots, before: int) -> IntArray:
        return self.tally(ballots)


def _as_they_come(source: BallotSource, work: Work[R]) -> Iterator[R]:
    """Work on a crowd that can only be read from its beginning."""
    batches = _with_voters_before(source)
    few = list(islice(batches, 2))
    if len(few) == 1:  # a single batch may use all cores itself
        yield work(*few[0])
    else:
        yield from in_order(lambda batch: work(*batch), chain(few, batches), usable_cores())


def _with_voters_before(source: BallotSource) -> Iterator[tuple[Ballots, int]]:
    before = 0
    for batch in source.batches():
        yield batch, before
        before += batch.voters


S = TypeVar("S", bound=BallotSource)


def completed(source: BallotSource) -> BallotSource:
    """Toss a coin for every choice that was neither; the crowd keeps its engine."""
    if isinstance(source, BatchedBallots):
        return replace(source, source=_CompletedBatches(source.source))
    return _CompletedBatches(source) if isinstance(source, NumberedBatches) else _CompletedWalk(source)


def completed_ballots(ballots: Ballots, coins: BoolArray) -> Ballots:
    """Replace "neither" by the first side if the record's coin shows heads, else by the second."""
    sides = np.where(coins, np.int8(1), np.int8(-1))
    return replace(ballots, choices=np.where(ballots.choices == 0, sides, ballots.choices))


def _publicly_completed(ballots: Ballots, before: int) -> Ballots:
    """Complete a batch by the public coins, given the number of voters in the batches before it."""
    if ballots.choices.all():  # names are hashed for their coins only
        return ballots
    return completed_ballots(
        ballots, public_coins(keys_of_voters(ballots.names, before, ballots.voters), ballots.counts)
    )


def public_coins(keys: NDArray[np.uint64], counts: IntArray) -> BoolArray:
    """Return the coins for voters' records, given a public number of each voter."""
    voter = np.repeat(keys, counts)
    place = np.arange(len(voter)) - np.repeat(np.cumsum(counts) - counts, counts)
    with np.errstate(over="ignore"):
        return np.asarray((mixed(voter + place.astype(np.uint64) + np.uint64(1)) >> np.uint64(63)).astype(bool))


class _CompletedSource(Generic[S]):
    """A crowd whose choices are completed as they are read."""

    def __init__(self, source: S) -> None:
        self.source = source

    @property
    def study(self) -> Study:
        return self.source.study

    @property
    def voters(self) -> int:
        return self.source.voters


class _CompletedWalk(_CompletedSource[BallotSource]):
    """A crowd that can only be read from its beginning."""

    def batches(self) -> Iterator[Ballots]:
        before = 0
        for batch in self.source.batches():
            yield _publicly_completed(batch, before)
            before += batch.voters


class _CompletedBatches(_CompletedSource[NumberedBatches]):
    """A crowd of which any batch can be read by itself."""

    @property
    def batch_count(self) -> int:
        return self.source.batch_count

    def batch(self, number: int) -> Ballots:
        return _publicly_completed(self.source.batch(number), self.source.voters_before(number))

    def voters_before(self, number: int) -> int:
        return self.source.voters_before(number)

    def batches(self) -> Iterator[Ballots]:
        return (self.batch(number) for number in range(self.batch_count))
