"""Ballots in which a fair coin has completed every choice that was neither.

The coins are a public table: that of a voter's place in the crowd and a record's place in her ballot, whatever the
choices are and however the crowd is cut into batches. So every pass over a crowd sees the same choices, and completing
them protects or exposes nobody: to change one record is to change one completed record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from crowdveil.arrays import BoolArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.engines.batches import BatchedBallots, NumberedBatches
from crowdveil.study.study import Study

S = TypeVar("S", bound=BallotSource)

_MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""The constants of splitmix64 (Steele, Lea and Flood 2014)."""


def completed(source: BallotSource) -> BallotSource:
    """Toss a coin for every choice that was neither; the engine that works on the crowd stays the same."""
    if isinstance(source, BatchedBallots):
        return replace(source, source=_Numbered(source.source))
    return _Numbered(source) if isinstance(source, NumberedBatches) else _Walked(source)


def completed_ballots(ballots: Ballots, coins: BoolArray) -> Ballots:
    """Put the first side where neither was chosen and the record's coin shows heads, else the second."""
    if ballots.choices.all():
        return ballots
    return replace(ballots, choices=np.where(ballots.choices == 0, np.where(coins, 1, -1), ballots.choices))


def public_coins(before: int, counts: IntArray) -> BoolArray:
    """Return the coins of voters' records, given how many voters come before them."""
    voter = np.repeat(np.arange(before, before + len(counts), dtype=np.uint64), counts)
    place = np.arange(len(voter)) - np.repeat(np.cumsum(counts) - counts, counts)
    with np.errstate(over="ignore"):
        mixed = (voter << np.uint64(32)) + place.astype(np.uint64) + np.uint64(1)
        mixed = mixed * np.uint64(_MIX[0])
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_MIX[1])
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_MIX[2])
    return np.asarray((mixed >> np.uint64(63)).astype(bool))


class _Completed(Generic[S]):
    """A crowd whose choices are completed as they are read."""

    def __init__(self, source: S) -> None:
        self.source = source

    @property
    def study(self) -> Study:
        return self.source.study

    @property
    def voters(self) -> int:
        return self.source.voters


class _Walked(_Completed[BallotSource]):
    """A crowd that can only be walked from its beginning."""

    def batches(self) -> Iterator[Ballots]:
        before = 0
        for batch in self.source.batches():
            yield completed_ballots(batch, public_coins(before, batch.counts))
            before += batch.voters


class _Numbered(_Completed[NumberedBatches]):
    """A crowd of which any batch can be read by itself."""

    @property
    def batch_count(self) -> int:
        return self.source.batch_count

    def batch(self, number: int) -> Ballots:
        read = self.source.batch(number)
        return completed_ballots(read, public_coins(self.source.voters_before(number), read.counts))

    def voters_before(self, number: int) -> int:
        return self.source.voters_before(number)

    def batches(self) -> Iterator[Ballots]:
        return (self.batch(number) for number in range(self.batch_count))
