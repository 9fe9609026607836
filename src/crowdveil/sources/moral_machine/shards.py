"""Shards on disk: the content of some consecutive rows, sorted into buckets that can be read independently.

A shard contains entries and voters' names, by buckets of the voters' hashes; a claim for every entry, by buckets of the
dilemmas' hashes; and the refused rows. Its rows are numbered from 0. Its file appears under its name only when it is
complete, and has a checksum: an interrupted import resumes after the last good shard.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdveil.arrays import ByteArray, IntArray, WordArray
from crowdveil.errors import CrowdveilError
from crowdveil.files import check_writable
from crowdveil.sources.moral_machine.entries import (
    DILEMMA,
    DILEMMA_TOO,
    ENTRY_WORDS,
    FIRST,
    FIRST_SAVED,
    NAME_WORDS,
    ROW,
    ROW_NUMBER,
    SECOND,
    VOTER,
    ScanResult,
    Word,
    compiled,
    inlined,
)

BYTES_PER_BUCKET = 1 << 27
MOST_BITS = 12

CLAIM_WORDS = 5
CLAIM_DILEMMA, CLAIM_DILEMMA_TOO, CLAIM_VOTER, CLAIM_FIRST, CLAIM_ROW = range(CLAIM_WORDS)
"""A claim of a voter to a dilemma: the hashes of their names, the first row's features and its number."""
CLAIM_PAIR = np.uint64(2**62)
"""Flag in CLAIM_ROW, besides FIRST_SAVED: the entry has a second row."""

_VERSION = 2
_HEAD = 6
"""Words at the beginning: version, checksum, bits, rows, resume_at, last. The ends of the tables' buckets follow."""
_TABLES = 5


def bits_for(text_bytes: int) -> int:
    """Return the number of buckets (2^bits) for a file of this size, so that each fits in memory easily."""
    return min(MOST_BITS, max(0, (text_bytes - 1) // BYTES_PER_BUCKET).bit_length())


def no_refusals() -> IntArray:
    """Return an empty table of refused rows: row and reason."""
    return np.empty((0, 2), np.int64)


@dataclass(frozen=True)
class RowShard:
    """A finished shard on disk."""

    path: Path
    bits: int
    rows: int
    resume_at: int
    """Where reading resumes after it: a byte of the text, or a row of a Parquet file."""
    last: bool
    ends: IntArray
    """One row per table (entries, claims, names, texts, refused), with the end of each bucket, starting with 0."""

    def entries(self, bucket: int) -> WordArray:
        """Read the entries of a bucket of voters."""
        return self._words(0, ENTRY_WORDS, bucket)

    def claims(self, bucket: int) -> WordArray:
        """Read the claims on a bucket of dilemmas."""
        return self._words(1, CLAIM_WORDS, bucket)

    def names(self, bucket: int) -> tuple[WordArray, ByteArray]:
        """Read the names of a bucket of voters."""
        return self._words(2, NAME_WORDS, bucket), self._read(3, bucket)

    def refused(self) -> IntArray:
        """Read all refused rows: row and reason."""
        return self._words(4, 2, 0).astype(np.int64)

    def _words(self, table: int, width: int, bucket: int) -> WordArray:
        return self._read(table, bucket).view(np.uint64).reshape(-1, width)

    def _read(self, table: int, bucket: int) -> ByteArray:
        start, stop = self.ends[table, bucket : bucket + 2].tolist()
        return np.fromfile(self.path, np.uint8, stop - start, offset=self._starts[table] + start)

    @cached_property
    def _starts(self) -> list[int]:
        sizes = [8 * (_HEAD + self.ends.size), *_padded(self.ends[:, -1]).tolist()]
        return [int(start) for start in np.cumsum(sizes)[:-1]]


@dataclass(frozen=True)
class ShardFolder:
    """A temporary folder with the shards of one source."""

    path: Path
    bits: int

    @property
    def buckets(self) -> int:
        """The number of buckets."""
        return 1 << self.bits

    def good_shards(self) -> list[RowShard]:
        """Return the good shards, from the first one on."""
        shards: list[RowShard] = []
        while (shard := self.read(len(shards))) is not None:
            shards.append(shard)
        return shards

    def read(self, number: int, *, known_good: bool = False) -> RowShard | None:
        """Return a shard as it was written; None if it is missing or damaged (checking this reads the whole file)."""
        try:
            words = np.memmap(self._path(number), np.int64, "r")
        except (OSError, ValueError):
            return None
        begin = _HEAD + _TABLES * (self.buckets + 1)
        if len(words) < begin or words[0] != _VERSION or words[2] != self.bits:
            return None
        ends = np.array(words[_HEAD:begin]).reshape(_TABLES, self.buckets + 1)
        complete = 8 * (len(words) - begin) == _padded(ends[:, -1]).sum()
        if not complete or not (known_good or words[1] == _checksum([words[begin:]])):
            return None
        return RowShard(self._path(number), self.bits, int(words[3]), int(words[4]), bool(words[5]), ends)

    def write(
        self, number: int, result: ScanResult, refused: IntArray, rows: int, resume_at: int = 0, last: bool = False
    ) -> RowShard:
        """Sort the content of some rows into buckets and write it."""
        entries, entry_ends = _sorted(result.entries, VOTER, self.bits)
        claims, claim_ends = _sorted(_claims(result.entries), CLAIM_DILEMMA, self.bits)
        names, name_ends = _sorted(result.names, 0, self.bits)
        texts = np.empty_like(result.texts)
        text_ends = np.zeros(self.buckets + 1, np.int64)
        _sort_texts(result.names, result.texts, self.bits, texts, text_ends)
        refused_ends = np.full(self.buckets + 1, len(refused))
        refused_ends[0] = 0
        widths = [8 * ENTRY_WORDS, 8 * CLAIM_WORDS, 8 * NAME_WORDS, 1, 16]
        ends = np.array([entry_ends, claim_ends, name_ends, text_ends, refused_ends]) * np.array(widths)[:, None]
        body = [_padded_bytes(table) for table in (entries, claims, names, texts, refused)]
        head = np.array([_VERSION, _checksum(body), self.bits, rows, resume_at, int(last)])
        path = self._path(number)
        # A unique name: if a worker was thought lost, two may write the same shard.
        unfinished = path.with_name(f"{path.name}.{secrets.token_hex(4)}.unfinished")
        try:
            with unfinished.open("wb") as file:
                for array in (head, ends, *body):
                    file.write(np.ascontiguousarray(array).data)
            unfinished.replace(path)
        except OSError as error:
            raise CrowdveilError(f"cannot write to {self.path}: {error.strerror or error}") from None
        return RowShard(path, self.bits, rows, resume_at, last, ends)

    def reasons(self, rows: int) -> ByteArray:
        """Return an empty table of the reasons for refusals, by row, which need not fit in memory."""
        return np.memmap(self.path / "reasons", np.uint8, "w+", shape=(rows + 1,))

    def _path(self, number: int) -> Path:
        return self.path / f"shard-{number:06}"


@contextmanager
def folder_beside(target: Path, source: Mapping[str, Any], bits: int) -> Iterator[ShardFolder]:
    """Open the folder of an import into ``target``, with the shards of an earlier one of the same source, if any.

    It is removed when the import is done, and when it fails; it stays when the import is interrupted or killed.
    """
    check_writable(target)
    folder = target.with_name(f".{target.name}.importing")
    identity = json.dumps({**source, "bits": bits})
    label = folder / "source.json"
    try:
        if not label.is_file() or label.read_text(encoding="utf-8") != identity:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            label.write_text(identity, encoding="utf-8")
    except OSError as error:
        raise CrowdveilError(f"cannot write to {folder}: {error.strerror or error}") from None
    try:
        yield ShardFolder(folder, bits)
    except Exception:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _padded(sizes: IntArray) -> IntArray:
    return (sizes + 7) // 8 * 8


def _padded_bytes(table: npt.NDArray[Any]) -> IntArray:
    data = np.ascontiguousarray(table).reshape(-1).view(np.uint8)
    if len(data) % 8:
        data = np.concatenate([data, np.zeros(-len(data) % 8, np.uint8)])
    return data.view(np.int64)


def _checksum(body: list[IntArray]) -> int:
    """Add up all words: enough to detect pages that never reached the disk."""
    return int(np.sum([words.sum(dtype=np.int64) for words in body], dtype=np.int64))


def _sorted(table: WordArray, word: int, bits: int) -> tuple[WordArray, IntArray]:
    """Group the rows by bucket, in their order; also return where each bucket ends."""
    result = np.empty_like(table)
    ends = np.zeros(2**bits + 1, np.int64)
    _sort(table, word, bits, result, ends)
    return result, ends


@inlined
def _bucket(word: Word, bits: int) -> Word:
    return np.int64((word >> np.uint64(63 - bits)) >> np.uint64(1))


@compiled
def _sort(table: WordArray, word: int, bits: int, result: WordArray, ends: IntArray) -> None:
    for i in range(len(table)):
        ends[_bucket(table[i, word], bits) + 1] += 1
    for bucket in range(len(ends) - 1):
        ends[bucket + 1] += ends[bucket]
    place = ends[:-1].copy()
    for i in range(len(table)):
        bucket = _bucket(table[i, word], bits)
        for k in range(table.shape[1]):
            result[place[bucket], k] = table[i, k]
        place[bucket] += 1


@compiled
def _sort_texts(names: WordArray, texts: ByteArray, bits: int, result: ByteArray, ends: IntArray) -> None:
    for i in range(len(names)):
        ends[_bucket(names[i, 0], bits) + 1] += np.int64(names[i, 2])
    for bucket in range(len(ends) - 1):
        ends[bucket + 1] += ends[bucket]
    place = ends[:-1].copy()
    start: Word = 0
    for i in range(len(names)):
        bucket = _bucket(names[i, 0], bits)
        length = np.int64(names[i, 2])
        for k in range(length):
            result[place[bucket] + k] = texts[start + k]
        place[bucket] += length
        start += length


@compiled
def _claims(entries: WordArray) -> WordArray:
    claims = np.empty((len(entries), CLAIM_WORDS), np.uint64)
    for i in range(len(entries)):
        entry, claim = entries[i], claims[i]
        claim[CLAIM_DILEMMA], claim[CLAIM_DILEMMA_TOO] = entry[DILEMMA], entry[DILEMMA_TOO]
        claim[CLAIM_VOTER], claim[CLAIM_FIRST] = entry[VOTER], entry[FIRST]
        claim[CLAIM_ROW] = entry[ROW] & (FIRST_SAVED | ROW_NUMBER)
        if entry[SECOND] != np.uint64(0):
            claim[CLAIM_ROW] |= CLAIM_PAIR
    return claims
