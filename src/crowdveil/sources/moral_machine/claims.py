"""Finds dilemmas that several voters claim. They are no one's: all their rows are refused.

Rows of one dilemma that differ in nothing are one row, repeated. Where two different rows are left, of two voters,
they are inconsistent; where more are left, the dilemma is doubled. A repeated row is doubled in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from crowdveil.arrays import BoolArray, ByteArray, IntArray, WordArray
from crowdveil.sources.import_report import Refusal
from crowdveil.sources.moral_machine.ordering import ordered
from crowdveil.sources.moral_machine.runs import (
    CLAIM_DILEMMA,
    CLAIM_DILEMMA_TOO,
    CLAIM_FIRST,
    CLAIM_PAIR,
    CLAIM_ROW,
    CLAIM_VOTER,
)
from crowdveil.sources.moral_machine.text_rows import CODE
from crowdveil.sources.moral_machine.units import FIRST_SAVED, ROW_NUMBER, compiled, inlined

_ORDER = (CLAIM_DILEMMA, CLAIM_DILEMMA_TOO, CLAIM_VOTER, CLAIM_FIRST, CLAIM_ROW)
_INCONSISTENT, _DOUBLED = CODE[Refusal.INCONSISTENT], CODE[Refusal.DOUBLED]
_MOST_VOTERS, _MOST_OF_A_VOTER = 3, 2
"""Different claims on a dilemma that are remembered: with these, what becomes of it is settled."""


def refuse_crossing(batches: Callable[[], Iterable[WordArray]], reasons: ByteArray) -> bool:
    """Write the reasons of all rows of dilemmas that several voters claim; say whether there are any.

    ``batches`` gives all claims on some dilemmas, as often as asked. Memory is taken for one batch, and for a few
    claims on each dilemma.
    """
    told = _summary_of_all(batches())
    crossing = told[_crossing(told)]
    if not len(crossing):
        return False
    for batch in batches():
        _refuse(batch[ordered(batch, _ORDER)], crossing, reasons)
    return True


def _summary_of_all(batches: Iterable[WordArray]) -> WordArray:
    rest = iter(batches)
    told = next(rest)
    second = next(rest, None)
    if second is None:  # all there are: a dilemma with one claim crosses nothing
        return _summary(told[_repeated(told[:, CLAIM_DILEMMA])])
    told = _summary(np.concatenate([told, second]))
    for batch in rest:
        told = _summary(np.concatenate([told, batch]))
    return told


def _repeated(words: WordArray) -> BoolArray:
    """Say which words are there more than once."""
    inorder = np.sort(words)
    twice = inorder[1:][inorder[1:] == inorder[:-1]]
    return np.isin(words, twice) if len(twice) else np.zeros(len(words), np.bool_)


def _summary(claims: WordArray) -> WordArray:
    """Keep a few different claims on each dilemma, of equal ones the one that came first."""
    claims = claims[ordered(claims, _ORDER)]
    return claims[_keep(claims)]


@compiled
def _keep(claims: WordArray) -> IntArray:
    kept = np.empty(len(claims), np.int64)
    end, voters, of_voter = 0, 0, 0
    for i in range(len(claims)):
        if i == 0 or not _same_dilemma(claims[i], claims[i - 1]):
            voters, of_voter = 1, 1
        elif claims[i, CLAIM_VOTER] != claims[i - 1, CLAIM_VOTER]:
            voters, of_voter = voters + 1, 1
        elif not _same_row(claims[i], claims[i - 1]):
            of_voter += 1
        else:
            continue
        if voters <= _MOST_VOTERS and of_voter <= _MOST_OF_A_VOTER:
            kept[end] = i
            end += 1
    return kept[:end]


@compiled
def _crossing(claims: WordArray) -> IntArray:
    """Return the places of claims on dilemmas that several voters claim."""
    kept = np.empty(len(claims), np.int64)
    end, start = 0, 0
    while start < len(claims):
        stop, several = start + 1, False
        while stop < len(claims) and _same_dilemma(claims[stop], claims[start]):
            several |= claims[stop, CLAIM_VOTER] != claims[start, CLAIM_VOTER]
            stop += 1
        if several:
            for i in range(start, stop):
                kept[end] = i
                end += 1
        start = stop
    return kept[:end]


@compiled
def _refuse(claims: WordArray, told: WordArray, reasons: ByteArray) -> None:
    """Write the reasons of claims on the dilemmas that ``told`` is about. Both are in order."""
    start = 0
    for i in range(len(claims)):
        while start < len(told) and _before(told[start], claims[i]):
            start += 1
        if start == len(told):
            break
        if not _same_dilemma(told[start], claims[i]):
            continue
        row = np.int64(claims[i, CLAIM_ROW] & ROW_NUMBER)
        different, pairs, first = 0, False, False
        while start + different < len(told) and _same_dilemma(told[start + different], claims[i]):
            pairs |= (told[start + different, CLAIM_ROW] & CLAIM_PAIR) != np.uint64(0)
            first |= told[start + different, CLAIM_ROW] == claims[i, CLAIM_ROW]
            different += 1
        reasons[row] = _INCONSISTENT if different == 2 and not pairs and first else _DOUBLED
        if (claims[i, CLAIM_ROW] & CLAIM_PAIR) != np.uint64(0):
            reasons[row + 1] = _DOUBLED


@inlined
def _same_dilemma(one: WordArray, other: WordArray) -> bool:
    return bool(one[CLAIM_DILEMMA] == other[CLAIM_DILEMMA] and one[CLAIM_DILEMMA_TOO] == other[CLAIM_DILEMMA_TOO])


@inlined
def _same_row(one: WordArray, other: WordArray) -> bool:
    """Whether two claims of one voter on a dilemma look the same. (Pairs may still differ: with one, all is doubled.)"""
    flags = FIRST_SAVED | CLAIM_PAIR
    return bool(one[CLAIM_FIRST] == other[CLAIM_FIRST] and one[CLAIM_ROW] & flags == other[CLAIM_ROW] & flags)


@inlined
def _before(one: WordArray, other: WordArray) -> bool:
    if one[CLAIM_DILEMMA] != other[CLAIM_DILEMMA]:
        return bool(one[CLAIM_DILEMMA] < other[CLAIM_DILEMMA])
    return bool(one[CLAIM_DILEMMA_TOO] < other[CLAIM_DILEMMA_TOO])
