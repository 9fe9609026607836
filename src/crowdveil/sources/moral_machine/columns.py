"""Reads columns of numbers and text, as Parquet files hold them: clean rows become units, odd ones are set aside."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from crowdveil.arrays import ByteArray, FloatArray, IntArray, WordArray
from crowdveil.sources.moral_machine.found import Found, Gathering, Words, begin, complete, tell
from crowdveil.sources.moral_machine.public_layout import DILEMMA, HIGHEST, SAVED, SIZE, VOTER
from crowdveil.sources.moral_machine.units import PADDING, SHIFTS, Word, compiled, hash_text, inlined
from crowdveil.study.moral_machine_sessions import LARGEST_GROUP

_FEATURES = tuple(HIGHEST)
_shifts, _highest = np.array(SHIFTS, np.uint64), np.array(list(HIGHEST.values()), np.float64)
_FIRST_COUNT = _FEATURES.index("Man")
_NOT_SAID = -1e300
"""In place of a missing group size. Other missing values are not a number."""


def scan_columns(batch: pa.RecordBatch, seen: WordArray) -> tuple[Found, IntArray]:
    """Return what the clean rows hold, numbered from 0, and the numbers of the odd ones."""
    numbers = [*_FEATURES, SAVED]
    sized = SIZE in batch.schema.names
    if not (all(_is_number(batch, c) for c in (*numbers, *([SIZE] if sized else []))) and _are_text(batch)):
        return Gathering(0, 0, seen).found(), np.arange(len(batch))
    values = np.stack([_numbers(batch.column(column), np.nan) for column in numbers], axis=1)
    sizes = _numbers(batch.column(SIZE), _NOT_SAID) if sized else np.full(len(batch), _NOT_SAID)
    dilemmas, voters = (padded_texts(batch.column(column)) for column in (DILEMMA, VOTER))
    gathering = Gathering(len(batch), len(voters[0]), seen)
    odd = np.empty(len(batch), np.int64)
    odd_rows = _scan(values, sizes, *dilemmas, *voters, odd, *gathering.arrays)
    return gathering.found(), odd[:odd_rows]


def padded_texts(column: pa.Array) -> tuple[ByteArray, IntArray]:
    """Return a column of text as its bytes, padded, and where each text begins (and where the last one ends)."""
    large = column.cast(pa.large_string()).fill_null("")
    ends = np.zeros(1, np.int64)
    if len(large):
        ends = np.frombuffer(large.buffers()[1], np.int64)[large.offset :][: len(large) + 1]
    data = np.zeros(int(ends[-1] - ends[0]) + PADDING, np.uint8)
    if len(data) > PADDING:
        data[:-PADDING] = np.frombuffer(large.buffers()[2], np.uint8)[ends[0] : ends[-1]]
    return data, ends - ends[0]


def _is_number(batch: pa.RecordBatch, column: str) -> bool:
    kind = batch.schema.field(column).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _are_text(batch: pa.RecordBatch) -> bool:
    return all(
        pa.types.is_string(kind) or pa.types.is_large_string(kind)
        for kind in (batch.schema.field(column).type for column in (DILEMMA, VOTER))
    )


def _numbers(column: pa.Array, missing: float) -> FloatArray:
    return np.asarray(column.cast(pa.float64(), safe=False).fill_null(missing).to_numpy(zero_copy_only=False))


@compiled
def _scan(
    values: FloatArray, sizes: FloatArray,
    dilemmas: ByteArray, dilemma_ends: IntArray, voters: ByteArray, voter_ends: IntArray, odd: IntArray,
    units: WordArray, names: WordArray, texts: ByteArray, ends: IntArray, seen: WordArray,
) -> int:  # fmt: skip
    odd_rows, waiting = 0, False
    last: Words = (np.uint64(0), np.uint64(0))
    last_voter: Words = (np.uint64(0), np.uint64(0))
    for row in range(len(values)):
        dilemma, name = (dilemma_ends[row], dilemma_ends[row + 1]), (voter_ends[row], voter_ends[row + 1])
        clean, packed, saved = _read(values[row], sizes[row])
        if not (clean and _plain(dilemmas, dilemma) and _plain(voters, name)):
            odd[odd_rows] = row
            odd_rows += 1
            waiting = False
            continue
        one, other, _ = hash_text(dilemmas, dilemma[0], dilemma[1])
        voter_one, voter_other, _ = hash_text(voters, name[0], name[1])
        if waiting and last == (one, other) and last_voter == (voter_one, voter_other):
            waiting = not complete(units, ends, packed, saved)
            if not waiting:
                continue
        begin(units, ends, (voter_one, voter_other), (one, other), row, saved, packed)
        tell(names, texts, ends, seen, (voter_one, voter_other), voters, name)
        waiting, last, last_voter = True, (one, other), (voter_one, voter_other)
    return odd_rows


@inlined
def _read(values: FloatArray, size: float) -> tuple[bool, Word, bool]:
    packed, group, saved = np.uint64(0), 0.0, values[-1]
    for k in range(len(_highest)):
        value = values[k]
        if not (0 <= value <= _highest[k]) or value != np.floor(value):
            return False, packed, False
        packed |= np.uint64(value) << _shifts[k]
        if k >= _FIRST_COUNT:
            group += value
    clean = saved in (0, 1) and 1 <= group <= LARGEST_GROUP and size in (group, _NOT_SAID)
    return bool(clean), packed, bool(saved == 1)


@inlined
def _plain(data: ByteArray, text: tuple[int, int]) -> bool:
    """Whether a text begins and ends with a visible ASCII character: spaces, of many kinds, would have to come off."""
    return bool(text[0] < text[1] and 32 < data[text[0]] < 127 and 32 < data[text[1] - 1] < 127)
