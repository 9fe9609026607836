"""Puts the units of some voters together: rows to pairs, pairs to voters' ballots.

Voters come in the order of their names' hashes, and a voter's answers in the order of their dilemmas' hashes. So the
ballots do not depend on the order of the rows or on how they were cut into runs and parts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from crowdveil.arrays import ByteArray, IntArray, SmallIntArray, WordArray
from crowdveil.ballots import Ballots
from crowdveil.sources.import_report import Refusal
from crowdveil.sources.moral_machine.ordering import merge_sort, ordered
from crowdveil.sources.moral_machine.text_rows import CODE
from crowdveil.sources.moral_machine.units import (
    DILEMMA,
    DILEMMA_TOO,
    FEATURES,
    FIRST,
    FIRST_SAVED,
    ROW,
    ROW_NUMBER,
    SECOND,
    VOTER,
    VOTER_TOO,
    Word,
    compiled,
    inlined,
    subtract,
)
from crowdveil.study.study import Study

_DOUBLED, _UNPAIRED, _NO_SINGLE_CHOICE = (
    CODE[reason] for reason in (Refusal.DOUBLED, Refusal.UNPAIRED, Refusal.NO_SINGLE_CHOICE)
)
_FEATURES, _SAVED, _NUMBER = range(3)
_BY_ROW = np.arange(3)


def group(
    study: Study, units: WordArray, names: tuple[WordArray, ByteArray], reasons: ByteArray, crossing: bool
) -> tuple[Ballots, int]:
    """Make the ballots of the voters of these units, and write the reasons of rows that make no pair.

    Returns also how many of the answers are between two alternatives that are the same.

    All units of these voters must be here, and all their names. Rows that have a reason already are left out, if it
    is said that there may be such (``crossing``).
    """
    if crossing:
        units = units[reasons[(units[:, ROW] & ROW_NUMBER).astype(np.int64)] == 0]
    order = ordered(units, (VOTER, VOTER_TOO, DILEMMA, DILEMMA_TOO, ROW))
    differences = np.empty((len(units), FEATURES), np.int8)
    offsets, voters = np.zeros(len(units) + 1, np.int64), np.empty(len(units), np.int64)
    pairs, present, equal = _group(units, order, reasons, differences, offsets, voters)
    named = _names(units[voters[:present], VOTER : VOTER_TOO + 1], *names)
    return Ballots(study, offsets[: present + 1].copy(), differences[:pairs].copy(), named), equal


@compiled
def _group(
    units: WordArray,
    order: IntArray,
    reasons: ByteArray,
    differences: SmallIntArray,
    offsets: IntArray,
    voters: IntArray,
) -> tuple[int, int, int]:
    pairs, present, equal, start = 0, 0, 0, 0
    while start < len(order):
        first, before = units[order[start]], pairs
        voter = order[start]
        while start < len(order) and _same_voter(units[order[start]], first):
            stop = start + 1
            while stop < len(order) and _same_dilemma(units[order[stop]], units[order[start]]):
                stop += 1
            found, chosen, other = _pair(units, order[start:stop], reasons)
            if found:
                subtract(chosen, other, differences[pairs])
                equal += chosen == other
                pairs += 1
            start = stop
        if pairs > before:
            voters[present] = voter
            present += 1
            offsets[present] = pairs
    return pairs, present, equal


@inlined
def _pair(units: WordArray, members: IntArray, reasons: ByteArray) -> tuple[bool, Word, Word]:
    """Return what was chosen and what was not in the one dilemma that these units are about, if it is clear."""
    unit = units[members[0]]
    if len(members) == 1 and unit[SECOND] != np.uint64(0):
        if unit[ROW] & FIRST_SAVED:
            return True, unit[FIRST], unit[SECOND]
        return True, unit[SECOND], unit[FIRST]
    return _pair_rows(units, members, reasons)


@compiled
def _pair_rows(units: WordArray, members: IntArray, reasons: ByteArray) -> tuple[bool, Word, Word]:
    rows = np.empty((2 * len(members), 3), np.uint64)
    count = 0
    for member in members:
        unit = units[member]
        saved, number = np.uint64(1) if unit[ROW] & FIRST_SAVED else np.uint64(0), unit[ROW] & ROW_NUMBER
        rows[count, _FEATURES], rows[count, _SAVED], rows[count, _NUMBER] = unit[FIRST], saved, number
        count += 1
        if unit[SECOND] != np.uint64(0):
            rows[count, _FEATURES], rows[count, _SAVED] = unit[SECOND], np.uint64(1) - saved
            rows[count, _NUMBER] = number + np.uint64(1)
            count += 1
    different = _set_repeated_aside(rows[:count], reasons)
    if different == 2 and rows[0, _SAVED] != rows[1, _SAVED]:
        chosen = 0 if rows[0, _SAVED] == np.uint64(1) else 1
        return True, rows[chosen, _FEATURES], rows[1 - chosen, _FEATURES]
    reason = _UNPAIRED if different == 1 else _NO_SINGLE_CHOICE if different == 2 else _DOUBLED
    for i in range(different):
        reasons[np.int64(rows[i, _NUMBER])] = reason
    return False, np.uint64(0), np.uint64(0)


@compiled
def _set_repeated_aside(rows: WordArray, reasons: ByteArray) -> int:
    """Bring rows that differ to the front, and return their number; of equal ones the first stays, the rest is doubled."""
    order = np.arange(len(rows))
    merge_sort(rows, _BY_ROW, order, np.empty_like(order))
    given, different = rows.copy(), 0
    for i in range(len(order)):
        row = given[order[i]]
        if i > 0:
            last = given[order[i - 1]]
            if row[_FEATURES] == last[_FEATURES] and row[_SAVED] == last[_SAVED]:
                reasons[np.int64(row[_NUMBER])] = _DOUBLED
                continue
        rows[different] = row
        different += 1
    return different


@inlined
def _same_voter(one: WordArray, other: WordArray) -> bool:
    return bool(one[VOTER] == other[VOTER] and one[VOTER_TOO] == other[VOTER_TOO])


@inlined
def _same_dilemma(one: WordArray, other: WordArray) -> bool:
    return bool(_same_voter(one, other) and one[DILEMMA] == other[DILEMMA] and one[DILEMMA_TOO] == other[DILEMMA_TOO])


def _names(wanted: WordArray, voters: WordArray, texts: ByteArray) -> pa.StringArray:
    """Find the names of voters, who are in order, among names told in any order and perhaps more than once."""
    starts = np.concatenate([[0], np.cumsum(voters[:, 2].astype(np.int64))])
    found = _find_names(wanted, voters, ordered(voters, (0, 1)))
    lengths = voters[found, 2].astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    data = _copy_texts(texts, starts[found], lengths, int(ends[-1]))
    return pa.StringArray.from_buffers(len(wanted), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data))


@compiled
def _find_names(wanted: WordArray, voters: WordArray, order: IntArray) -> IntArray:
    found, at = np.empty(len(wanted), np.int64), 0
    for i in range(len(wanted)):
        while voters[order[at], 0] != wanted[i, 0] or voters[order[at], 1] != wanted[i, 1]:
            at += 1
        found[i] = order[at]
    return found


@compiled
def _copy_texts(texts: ByteArray, starts: IntArray, lengths: IntArray, size: int) -> ByteArray:
    result, at = np.empty(size, np.uint8), 0
    for i in range(len(starts)):
        for k in range(lengths[i]):
            result[at + k] = texts[starts[i] + k]
        at += lengths[i]
    return result
