"""What reading some rows has found so far: units, and the names of voters who have not been named before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.arrays import ByteArray, IntArray, WordArray
from crowdveil.sources.moral_machine.units import (
    DILEMMA,
    DILEMMA_TOO,
    FIRST,
    FIRST_SAVED,
    ROW,
    SECOND,
    VOTER,
    VOTER_TOO,
    WORDS,
    Word,
    inlined,
)

Words = tuple[Word, Word]
"""The hash of a name."""

NAME_WORDS = 3
_UNITS, _VOTERS, _TEXTS = range(3)


@dataclass(frozen=True)
class Found:
    """WordArray, and the names of some of their voters."""

    units: WordArray
    voters: WordArray
    """A row a name: the two words of its hash, and the length of its text."""
    texts: ByteArray
    """The names' texts, one after another."""


class Gathering:
    """Room for what is found, with how much of it is filled. What is not written to takes no memory.

    ``seen`` is a table of voters who have been named already, with a power of two of entries: they are not named
    again, unless others have taken their places. Threads may share it; a voter is then perhaps named twice.
    """

    def __init__(self, most_units: int, most_bytes: int, seen: WordArray) -> None:
        self._units = np.empty((most_units, WORDS), np.uint64)
        self._voters = np.empty((most_units, NAME_WORDS), np.uint64)
        self._texts = np.empty(most_bytes, np.uint8)
        self._ends, self._seen = np.zeros(3, np.int64), seen

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What the compiled functions below take: units, voters, texts, ends, seen."""
        return self._units, self._voters, self._texts, self._ends, self._seen

    def found(self) -> Found:
        """Return what was found."""
        units, voters, texts = self._ends.tolist()
        return Found(self._units[:units].copy(), self._voters[:voters].copy(), self._texts[:texts].copy())


@inlined
def begin(units: WordArray, ends: IntArray, voter: Words, dilemma: Words, row: int, saved: bool, packed: Word) -> None:
    """Add a unit of one row."""
    unit = units[ends[_UNITS]]
    unit[VOTER], unit[VOTER_TOO] = voter
    unit[DILEMMA], unit[DILEMMA_TOO] = dilemma
    unit[ROW] = np.uint64(row) | (FIRST_SAVED if saved else np.uint64(0))
    unit[FIRST], unit[SECOND] = packed, np.uint64(0)
    ends[_UNITS] += 1


@inlined
def complete(units: WordArray, ends: IntArray, packed: Word, saved: bool) -> bool:
    """Add the next row, of the same dilemma and voter, to the last unit, if one of the two was spared; else say no."""
    last = units[ends[_UNITS] - 1]
    if saved == ((last[ROW] & FIRST_SAVED) != np.uint64(0)):
        return False
    last[SECOND] = packed
    return True


@inlined
def tell(
    voters: WordArray, texts: ByteArray, ends: IntArray, seen: WordArray, voter: Words, data: Any, name: tuple[int, int]
) -> None:
    """Name a voter, unless seen already: by 64 bits of the hash, in a place that further bits choose."""
    place = np.int64(voter[0] & np.uint64(seen.size - 1))
    if seen[place] == voter[1]:
        return
    seen[place] = voter[1]
    told, length = voters[ends[_VOTERS]], name[1] - name[0]
    told[0], told[1], told[2] = voter[0], voter[1], np.uint64(length)
    for k in range(length):
        texts[ends[_TEXTS] + k] = data[name[0] + k]
    ends[_VOTERS] += 1
    ends[_TEXTS] += length
