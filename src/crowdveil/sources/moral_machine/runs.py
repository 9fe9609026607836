"""Puts what was read aside on disk, in runs: each sorted into parts, so that a part can be read without the others.

A run holds what some consecutive rows gave: their units and the voters' names, by parts of the voters' hashes; a
claim for every unit, by parts of the dilemmas' hashes; and the rows that were refused. A run's file appears under its
name only when it is complete, and carries a checksum: an import that was interrupted goes on after the last good run.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdveil.arrays import ByteArray, IntArray, WordArray
from crowdveil.sources.moral_machine.found import NAME_WORDS, Found
from crowdveil.sources.moral_machine.units import (
    DILEMMA,
    DILEMMA_TOO,
    FIRST,
    FIRST_SAVED,
    ROW,
    ROW_NUMBER,
    SECOND,
    VOTER,
    WORDS,
    Word,
    compiled,
    inlined,
)

CLAIM_WORDS = 5
CLAIM_DILEMMA, CLAIM_DILEMMA_TOO, CLAIM_VOTER, CLAIM_FIRST, CLAIM_ROW = range(CLAIM_WORDS)
"""A claim says that a voter has a unit of a dilemma: their hashes, the first row's features, and its number."""
CLAIM_PAIR = np.uint64(2**62)
"""Flag in CLAIM_ROW, beside FIRST_SAVED: the unit has a second row."""

_VERSION = 1
_HEAD = 6
"""Words at the beginning: version, checksum, bits, rows, place, last. Then come the ends of the tables' parts."""


@dataclass(frozen=True)
class Reached:
    """How far reading has come."""

    rows: int
    place: int
    """Where the reader goes on: a byte of the text, or a row of a Parquet file."""
    last: bool


@dataclass(frozen=True)
class Run:
    """A finished run on disk."""

    path: Path
    bits: int
    reached: Reached
    ends: IntArray
    """A row a table (units, claims, voters, texts, refused), with where each part ends; 0 comes first."""

    def units(self, part: int) -> WordArray:
        """Read the units of a part of the voters."""
        return self._words(0, WORDS, part)

    def claims(self, part: int) -> WordArray:
        """Read the claims on a part of the dilemmas."""
        return self._words(1, CLAIM_WORDS, part)

    def names(self, part: int) -> tuple[WordArray, ByteArray]:
        """Read the names of a part of the voters."""
        return self._words(2, NAME_WORDS, part), self._read(3, part)

    def refused(self) -> IntArray:
        """Read all rows that were refused: row and reason."""
        return np.concatenate([self._words(4, 2, part).astype(np.int64) for part in range(2**self.bits)])

    def _words(self, table: int, width: int, part: int) -> WordArray:
        return self._read(table, part).view(np.uint64).reshape(-1, width)

    def _read(self, table: int, part: int) -> ByteArray:
        start, stop = self.ends[table, part : part + 2].tolist()
        return np.fromfile(self.path, np.uint8, stop - start, offset=self._starts[table] + start)

    @cached_property
    def _starts(self) -> list[int]:
        sizes = [8 * (_HEAD + self.ends.size), *_padded(self.ends[:, -1]).tolist()]
        return [int(start) for start in np.cumsum(sizes)[:-1]]


def write_run(path: Path, bits: int, found: Found, refused: IntArray, reached: Reached) -> Run:
    """Sort what was found into 2^bits parts and write it."""
    parts = 2**bits
    units, unit_ends = np.empty_like(found.units), np.zeros(parts + 1, np.int64)
    _sort(found.units, VOTER, bits, units, unit_ends)
    claims, claim_ends = np.empty((len(units), CLAIM_WORDS), np.uint64), np.zeros(parts + 1, np.int64)
    _sort(_claims(found.units), CLAIM_DILEMMA, bits, claims, claim_ends)
    voters, voter_ends = np.empty_like(found.voters), np.zeros(parts + 1, np.int64)
    texts, text_ends = np.empty_like(found.texts), np.zeros(parts + 1, np.int64)
    _sort_texts(found.voters, found.texts, bits, voters, voter_ends, texts, text_ends)
    refused_ends = np.full(parts + 1, len(refused))
    refused_ends[0] = 0
    tables: list[npt.NDArray[Any]] = [units, claims, voters, texts, refused]
    widths = [8 * WORDS, 8 * CLAIM_WORDS, 8 * NAME_WORDS, 1, 16]
    ends = np.array([unit_ends, claim_ends, voter_ends, text_ends, refused_ends]) * np.array(widths)[:, None]
    body = [_padded_bytes(table) for table in tables]
    head = [_VERSION, _checksum(body), bits, reached.rows, reached.place, int(reached.last)]
    # A name of its own: where a worker was thought lost, two may write the same run.
    unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}.unfinished")
    with unfinished.open("wb") as file:
        for array in (np.array(head), ends, *body):
            file.write(np.ascontiguousarray(array).data)
    unfinished.replace(path)
    return Run(path, bits, reached, ends)


def read_run(path: Path, bits: int, *, known_good: bool = False) -> Run | None:
    """Return a run as it was written; None if there is none, or not a good one (which takes reading all of it)."""
    tables, parts = 5, 2**bits
    try:
        words = np.memmap(path, np.int64, "r")
    except (OSError, ValueError):
        return None
    begin = _HEAD + tables * (parts + 1)
    if len(words) < begin or words[0] != _VERSION or words[2] != bits:
        return None
    ends = np.array(words[_HEAD:begin]).reshape(tables, parts + 1)
    complete = 8 * (len(words) - begin) == _padded(ends[:, -1]).sum()
    if not complete or not (known_good or words[1] == _checksum([words[begin:]])):
        return None
    return Run(path, bits, Reached(int(words[3]), int(words[4]), bool(words[5])), ends)


def _padded(sizes: IntArray) -> IntArray:
    return (sizes + 7) // 8 * 8


def _padded_bytes(table: npt.NDArray[Any]) -> IntArray:
    data = np.ascontiguousarray(table).reshape(-1).view(np.uint8)
    return (
        np.concatenate([data, np.zeros(-len(data) % 8, np.uint8)]).view(np.int64)
        if len(data) % 8
        else data.view(np.int64)
    )


def _checksum(body: list[IntArray]) -> int:
    """Add up all words: enough to notice pages that never reached the disk."""
    return int(np.sum([words.sum(dtype=np.int64) for words in body], dtype=np.int64))


@inlined
def _part(word: Word, bits: int) -> Word:
    return np.int64((word >> np.uint64(63 - bits)) >> np.uint64(1))


@compiled
def _sort(table: WordArray, word: int, bits: int, result: WordArray, ends: IntArray) -> None:
    """Bring the rows of the same part together, in their order."""
    for i in range(len(table)):
        ends[_part(table[i, word], bits) + 1] += 1
    for part in range(len(ends) - 1):
        ends[part + 1] += ends[part]
    place = ends[:-1].copy()
    for i in range(len(table)):
        part = _part(table[i, word], bits)
        for k in range(table.shape[1]):
            result[place[part], k] = table[i, k]
        place[part] += 1


@compiled
def _sort_texts(
    voters: WordArray,
    texts: ByteArray,
    bits: int,
    result: WordArray,
    ends: IntArray,
    result_texts: ByteArray,
    text_ends: IntArray,
) -> None:
    _sort(voters, 0, bits, result, ends)
    for i in range(len(voters)):
        text_ends[_part(voters[i, 0], bits) + 1] += np.int64(voters[i, 2])
    for part in range(len(text_ends) - 1):
        text_ends[part + 1] += text_ends[part]
    place = text_ends[:-1].copy()
    start: Word = 0
    for i in range(len(voters)):
        part, length = _part(voters[i, 0], bits), np.int64(voters[i, 2])
        result_texts[place[part] : place[part] + length] = texts[start : start + length]
        place[part] += length
        start += length


@compiled
def _claims(units: WordArray) -> WordArray:
    claims = np.empty((len(units), CLAIM_WORDS), np.uint64)
    for i in range(len(units)):
        unit, claim = units[i], claims[i]
        claim[CLAIM_DILEMMA], claim[CLAIM_DILEMMA_TOO] = unit[DILEMMA], unit[DILEMMA_TOO]
        claim[CLAIM_VOTER], claim[CLAIM_FIRST] = unit[VOTER], unit[FIRST]
        claim[CLAIM_ROW] = unit[ROW] & (FIRST_SAVED | ROW_NUMBER)
        if unit[SECOND] != np.uint64(0):
            claim[CLAIM_ROW] |= CLAIM_PAIR
    return claims
