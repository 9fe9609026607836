"""Group rows: refuse dilemmas that several voters claim, and turn rows into pairs, and pairs into voters' ballots.

Voters are in the order of the hashes of their names, and a voter's records in the order of their dilemmas' hashes. So
the ballots do not depend on the order of the rows or on how they were cut into shards and buckets. The first
alternative of a dilemma is the group that is hit if the car stays (``Intervention`` 0), because the order of rows in a
file may depend on what was chosen.

A contested dilemma is one that several voters claim. It belongs to nobody: all its rows are refused. Identical rows of
one dilemma are one row, repeated. If two different rows remain, of two voters, they are inconsistent; if more remain,
the dilemma is doubled. A repeated row is doubled in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from crowdveil.arrays import BoolArray, ByteArray, IntArray, SmallIntArray, WordArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import Categories
from crowdveil.sources.import_report import RowDefect
from crowdveil.sources.moral_machine.entries import (
    BITS,
    DILEMMA,
    DILEMMA_TOO,
    FIRST,
    FIRST_SAVED,
    ROW,
    ROW_NUMBER,
    SCENARIO_MASK,
    SCENARIO_SHIFT,
    SECOND,
    VOTER,
    VOTER_TOO,
    Word,
    compiled,
    inlined,
    merge_sort,
    ordered,
)
from crowdveil.sources.moral_machine.layout import SCENARIOS
from crowdveil.sources.moral_machine.rows import CODE
from crowdveil.sources.moral_machine.shards import (
    CLAIM_DILEMMA,
    CLAIM_DILEMMA_TOO,
    CLAIM_FIRST,
    CLAIM_PAIR,
    CLAIM_ROW,
    CLAIM_VOTER,
    no_refusals,
)
from crowdveil.study.study import Study

CodeArray = npt.NDArray[np.int16]

_DOUBLED = CODE[RowDefect.DOUBLED]
_INCONSISTENT = CODE[RowDefect.INCONSISTENT]
_NO_SINGLE_CHOICE = CODE[RowDefect.NO_SINGLE_CHOICE]
_UNPAIRED = CODE[RowDefect.UNPAIRED]
_ENTRY_ORDER = (VOTER, VOTER_TOO, DILEMMA, DILEMMA_TOO, ROW)
_CLAIM_ORDER = (CLAIM_DILEMMA, CLAIM_DILEMMA_TOO, CLAIM_VOTER, CLAIM_FIRST, CLAIM_ROW)
_MOST_VOTERS = 3
"""Voters whose claims on a dilemma are kept: enough to settle what becomes of it."""
_MOST_OF_A_VOTER = 2
"""Different claims of one voter on a dilemma that are kept: enough to settle what becomes of it."""
_FEATURES, _SAVED, _NUMBER, _KIND = range(4)
_BY_ROW = np.arange(3)
_ONE_BIT, _THREE_BITS = np.uint64(1), np.uint64(7)
_DIMENSION = len(BITS)


@dataclass(frozen=True)
class BucketBallots:
    """The ballots of some voters, and the rows that form no pair."""

    ballots: Ballots
    equal: int
    """The number of records with two identical alternatives."""
    refused: IntArray
    """Row and reason."""


def group(
    study: Study, entries: WordArray, names: tuple[WordArray, ByteArray], contested: IntArray, with_scenarios: bool
) -> BucketBallots:
    """Make the ballots of the voters of these entries.

    All entries of these voters must be given, and all their names. ``contested`` are the rows to leave out, in order.
    """
    if len(contested):
        entries = entries[~_among((entries[:, ROW] & ROW_NUMBER).astype(np.int64), contested)]
    order = ordered(entries, _ENTRY_ORDER)
    dilemmas = np.empty((len(entries), _DIMENSION), np.int8)
    choices = np.empty(len(entries), np.int8)
    kinds = np.empty(len(entries), np.int16)
    offsets = np.zeros(len(entries) + 1, np.int64)
    voters = np.empty(len(entries), np.int64)
    refused = np.empty((2 * len(entries), 2), np.int64)
    pairs, present, equal, refusals = _group(entries, order, dilemmas, choices, kinds, offsets, voters, refused)
    named = _names(entries[voters[:present], VOTER : VOTER_TOO + 1], *names)
    scenarios = Categories(SCENARIOS, kinds[:pairs] - np.int16(1)) if with_scenarios else None
    ballots = Ballots(
        study, offsets[: present + 1].copy(), dilemmas[:pairs].copy(), choices[:pairs].copy(), named, scenarios
    )
    return BucketBallots(ballots, equal, refused[:refusals].copy())


def contested_rows(batches: Callable[[], Iterable[WordArray]]) -> IntArray:
    """Return the rows of dilemmas that several voters claim: row and reason.

    ``batches`` returns all claims on some dilemmas, as often as it is called. Memory is needed for one batch, and for a
    few claims on each dilemma.
    """
    summary = _summary_of_all(batches())
    contested = summary[_contested(summary)]
    if not len(contested):
        return no_refusals()
    return np.concatenate([_refused_claims(batch[ordered(batch, _CLAIM_ORDER)], contested) for batch in batches()])


@compiled
def _among(rows: IntArray, chosen: IntArray) -> BoolArray:
    """Return which rows are among the chosen ones, which are in order."""
    result = np.empty(len(rows), np.bool_)
    for i in range(len(rows)):
        at = np.searchsorted(chosen, rows[i])
        result[i] = at < len(chosen) and chosen[at] == rows[i]
    return result


@compiled
def _group(
    entries: WordArray, order: IntArray, dilemmas: SmallIntArray, choices: SmallIntArray, kinds: CodeArray,
    offsets: IntArray, voters: IntArray, refused: IntArray,
) -> tuple[int, int, int, int]:  # fmt: skip
    pairs = 0
    present = 0
    equal = 0
    start = 0
    refusals: Word = np.int64(0)  # typed: a literal zero would make numba compile its callees twice
    while start < len(order):
        first = entries[order[start]]
        before = pairs
        voter = order[start]
        while start < len(order) and _same_voter(entries[order[start]], first):
            stop = start + 1
            while stop < len(order) and _same_dilemma(entries[order[stop]], entries[order[start]]):
                stop += 1
            found, chosen, other, kind, refusals = _pair(entries, order[start:stop], refused, refusals)
            if found:
                if _is_first(chosen, other):
                    _subtract(chosen, other, dilemmas[pairs])
                    choices[pairs] = 1
                else:
                    _subtract(other, chosen, dilemmas[pairs])
                    choices[pairs] = -1
                kinds[pairs] = np.int16(kind)
                equal += chosen == other
                pairs += 1
            start = stop
        if pairs > before:
            voters[present] = voter
            present += 1
            offsets[present] = pairs
    return pairs, present, equal, refusals


@inlined
def _pair(
    entries: WordArray, members: IntArray, refused: IntArray, refusals: int
) -> tuple[bool, Word, Word, Word, int]:
    """Return the chosen side, the other side and the scenario of the one dilemma of these entries, if it is clear."""
    entry = entries[members[0]]
    if len(members) == 1 and entry[SECOND] != np.uint64(0):
        kind = (entry[ROW] >> SCENARIO_SHIFT) & SCENARIO_MASK
        if entry[ROW] & FIRST_SAVED:
            return True, entry[FIRST], entry[SECOND], kind, refusals
        return True, entry[SECOND], entry[FIRST], kind, refusals
    return _pair_rows(entries, members, refused, refusals)


@compiled
def _pair_rows(
    entries: WordArray, members: IntArray, refused: IntArray, refusals: int
) -> tuple[bool, Word, Word, Word, int]:
    rows = np.empty((2 * len(members), 4), np.uint64)
    count = 0
    for member in members:
        entry = entries[member]
        saved = np.uint64(1) if entry[ROW] & FIRST_SAVED else np.uint64(0)
        number = entry[ROW] & ROW_NUMBER
        kind = (entry[ROW] >> SCENARIO_SHIFT) & SCENARIO_MASK
        rows[count, _FEATURES], rows[count, _SAVED], rows[count, _NUMBER] = entry[FIRST], saved, number
        rows[count, _KIND] = kind
        count += 1
        if entry[SECOND] != np.uint64(0):
            rows[count, _FEATURES], rows[count, _SAVED] = entry[SECOND], np.uint64(1) - saved
            rows[count, _NUMBER], rows[count, _KIND] = number + np.uint64(1), kind
            count += 1
    different, refusals = _set_repeated_aside(rows[:count], refused, refusals)
    if different == 2 and rows[0, _SAVED] != rows[1, _SAVED]:
        chosen = 0 if rows[0, _SAVED] == np.uint64(1) else 1
        kind = rows[0, _KIND] if rows[0, _KIND] == rows[1, _KIND] else np.uint64(0)
        return True, rows[chosen, _FEATURES], rows[1 - chosen, _FEATURES], kind, refusals
    reason = _UNPAIRED if different == 1 else _NO_SINGLE_CHOICE if different == 2 else _DOUBLED
    for i in range(different):
        refused[refusals, 0], refused[refusals, 1] = np.int64(rows[i, _NUMBER]), reason
        refusals += 1
    return False, np.uint64(0), np.uint64(0), np.uint64(0), refusals


@compiled
def _set_repeated_aside(rows: WordArray, refused: IntArray, refusals: int) -> tuple[int, int]:
    """Move distinct rows to the front and return their number; the first of equal rows stays."""
    order = np.arange(len(rows))
    merge_sort(rows, _BY_ROW, order, np.empty_like(order))
    given = rows.copy()
    different = 0
    for i in range(len(order)):
        row = given[order[i]]
        if i > 0:
            last = given[order[i - 1]]
            if row[_FEATURES] == last[_FEATURES] and row[_SAVED] == last[_SAVED]:
                refused[refusals, 0], refused[refusals, 1] = np.int64(row[_NUMBER]), _DOUBLED
                refusals += 1
                if row[_KIND] != rows[different - 1, _KIND]:
                    rows[different - 1, _KIND] = np.uint64(0)
                continue
        for k in range(rows.shape[1]):
            rows[different, k] = row[k]
        different += 1
    return different, refusals


@inlined
def _same_voter(one: WordArray, other: WordArray) -> bool:
    return bool(one[VOTER] == other[VOTER] and one[VOTER_TOO] == other[VOTER_TOO])


@inlined
def _same_dilemma(one: WordArray, other: WordArray) -> bool:
    return bool(_same_voter(one, other) and one[DILEMMA] == other[DILEMMA] and one[DILEMMA_TOO] == other[DILEMMA_TOO])


@inlined
def _is_first(one: Word, other: Word) -> bool:
    """Whether a row is the first of a dilemma: hit if the car stays, or by its features if that is not decisive."""
    if (one & _ONE_BIT) != (other & _ONE_BIT):
        return bool((one & _ONE_BIT) == np.uint64(0))
    return bool(one <= other)


@inlined
def _subtract(one: Word, other: Word, difference: SmallIntArray) -> None:
    """Write the study's features of one row minus those of the other."""
    for k in range(2):
        difference[k] = np.int64((one >> np.uint64(k)) & _ONE_BIT) - np.int64((other >> np.uint64(k)) & _ONE_BIT)
    difference[2] = _legality(one) - _legality(other)
    for k in range(3, _DIMENSION):
        shift = np.uint64(3 * k - 5)
        difference[k] = np.int64((one >> shift) & _THREE_BITS) - np.int64((other >> shift) & _THREE_BITS)


@inlined
def _legality(packed: Word) -> Word:
    """Return 0, +1, -1 for no light, green, red."""
    return np.int64((packed >> np.uint64(2)) & _ONE_BIT) - np.int64((packed >> np.uint64(3)) & _ONE_BIT)


def _names(wanted: WordArray, names: WordArray, texts: ByteArray) -> pa.StringArray:
    """Find the names of voters, who are in order, among names in any order and with repetitions."""
    starts = np.concatenate([[0], np.cumsum(names[:, 2].astype(np.int64))])
    found = _find_names(wanted, names, ordered(names, (0, 1)))
    lengths = names[found, 2].astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    data = _copy_texts(texts, starts[found], lengths, int(ends[-1]))
    return pa.StringArray.from_buffers(len(wanted), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data))


@compiled
def _find_names(wanted: WordArray, names: WordArray, order: IntArray) -> IntArray:
    found = np.empty(len(wanted), np.int64)
    at = 0
    for i in range(len(wanted)):
        while names[order[at], 0] != wanted[i, 0] or names[order[at], 1] != wanted[i, 1]:
            at += 1
        found[i] = order[at]
    return found


@compiled
def _copy_texts(texts: ByteArray, starts: IntArray, lengths: IntArray, size: int) -> ByteArray:
    result = np.empty(size, np.uint8)
    at = 0
    for i in range(len(starts)):
        for k in range(lengths[i]):
            result[at + k] = texts[starts[i] + k]
        at += lengths[i]
    return result


def _summary_of_all(batches: Iterable[WordArray]) -> WordArray:
    rest = iter(batches)
    summary = next(rest)
    second = next(rest, None)
    if second is None:  # the only batch: a dilemma with one claim is not contested
        return _summary(summary[_repeated(summary[:, CLAIM_DILEMMA])])
    summary = _summary(np.concatenate([summary, second]))
    for batch in rest:
        summary = _summary(np.concatenate([summary, batch]))
    return summary


def _repeated(words: WordArray) -> BoolArray:
    """Return which words occur more than once."""
    inorder = np.sort(words)
    twice = inorder[1:][inorder[1:] == inorder[:-1]]
    return np.isin(words, twice) if len(twice) else np.zeros(len(words), np.bool_)


def _summary(claims: WordArray) -> WordArray:
    """Keep a few different claims on each dilemma; of equal ones, the first."""
    claims = claims[ordered(claims, _CLAIM_ORDER)]
    return claims[_keep(claims)]


@compiled
def _keep(claims: WordArray) -> IntArray:
    kept = np.empty(len(claims), np.int64)
    end = 0
    voters = 0
    of_voter = 0
    for i in range(len(claims)):
        if i == 0 or not _claim_same_dilemma(claims[i], claims[i - 1]):
            voters, of_voter = 1, 1
        elif claims[i, CLAIM_VOTER] != claims[i - 1, CLAIM_VOTER]:
            voters, of_voter = voters + 1, 1
        elif not _claim_same_row(claims[i], claims[i - 1]):
            of_voter += 1
        else:
            continue
        if voters <= _MOST_VOTERS and of_voter <= _MOST_OF_A_VOTER:
            kept[end] = i
            end += 1
    return kept[:end]


@compiled
def _contested(claims: WordArray) -> IntArray:
    """Return the positions of claims on dilemmas that several voters claim."""
    kept = np.empty(len(claims), np.int64)
    end, start = 0, 0
    while start < len(claims):
        stop = start + 1
        several = False
        while stop < len(claims) and _claim_same_dilemma(claims[stop], claims[start]):
            several |= claims[stop, CLAIM_VOTER] != claims[start, CLAIM_VOTER]
            stop += 1
        if several:
            for i in range(start, stop):
                kept[end] = i
                end += 1
        start = stop
    return kept[:end]


@compiled
def _refused_claims(claims: WordArray, contested: WordArray) -> IntArray:
    """Return row and reason of claims on contested dilemmas, a few of which are given. Both are in order."""
    refused = np.empty((2 * len(claims), 2), np.int64)
    start, end = 0, 0
    for i in range(len(claims)):
        while start < len(contested) and _claim_before(contested[start], claims[i]):
            start += 1
        if start == len(contested):
            break
        if not _claim_same_dilemma(contested[start], claims[i]):
            continue
        row = np.int64(claims[i, CLAIM_ROW] & ROW_NUMBER)
        different = 0
        pairs = False
        first = False
        while start + different < len(contested) and _claim_same_dilemma(contested[start + different], claims[i]):
            pairs |= (contested[start + different, CLAIM_ROW] & CLAIM_PAIR) != np.uint64(0)
            first |= contested[start + different, CLAIM_ROW] == claims[i, CLAIM_ROW]
            different += 1
        refused[end, 0] = row
        refused[end, 1] = _INCONSISTENT if different == 2 and not pairs and first else _DOUBLED
        end += 1
        if (claims[i, CLAIM_ROW] & CLAIM_PAIR) != np.uint64(0):
            refused[end, 0], refused[end, 1] = row + 1, _DOUBLED
            end += 1
    return refused[:end].copy()


@inlined
def _claim_same_dilemma(one: WordArray, other: WordArray) -> bool:
    return bool(one[CLAIM_DILEMMA] == other[CLAIM_DILEMMA] and one[CLAIM_DILEMMA_TOO] == other[CLAIM_DILEMMA_TOO])


@inlined
def _claim_same_row(one: WordArray, other: WordArray) -> bool:
    """Whether two claims of one voter on a dilemma look the same. (Pairs may differ: with one, all are doubled.)"""
    flags = FIRST_SAVED | CLAIM_PAIR
    return bool(one[CLAIM_FIRST] == other[CLAIM_FIRST] and one[CLAIM_ROW] & flags == other[CLAIM_ROW] & flags)


@inlined
def _claim_before(one: WordArray, other: WordArray) -> bool:
    if one[CLAIM_DILEMMA] != other[CLAIM_DILEMMA]:
        return bool(one[CLAIM_DILEMMA] < other[CLAIM_DILEMMA])
    return bool(one[CLAIM_DILEMMA_TOO] < other[CLAIM_DILEMMA_TOO])
