"""Sorting rows of words, in memory."""

from __future__ import annotations

import numpy as np

from crowdveil.arrays import IntArray, WordArray
from crowdveil.sources.moral_machine.units import compiled, inlined


def ordered(table: WordArray, words: tuple[int, ...]) -> IntArray:
    """Return the order of a table's rows by these words: by the first, where it is equal by the second, and so on."""
    order: IntArray = np.argsort(table[:, words[0]])
    _order_ties(table, np.array(words), order, np.empty_like(order))
    return order


@compiled
def _order_ties(table: WordArray, words: IntArray, order: IntArray, spare: IntArray) -> None:
    start = 0
    while start < len(order):
        stop = start + 1
        while stop < len(order) and table[order[stop], words[0]] == table[order[start], words[0]]:
            stop += 1
        if stop - start > 1:
            merge_sort(table, words, order[start:stop], spare)
        start = stop


@compiled
def merge_sort(table: WordArray, words: IntArray, order: IntArray, spare: IntArray) -> None:
    """Sort an order of rows by these words, keeping rows that are equal in it as they are."""
    width = 1
    while width < len(order):
        for low in range(0, len(order), 2 * width):
            left, middle, high = low, min(low + width, len(order)), min(low + 2 * width, len(order))
            right = middle
            for i in range(low, high):
                if right == high or (left < middle and not _precedes(table, words, order[right], order[left])):
                    spare[i] = order[left]
                    left += 1
                else:
                    spare[i] = order[right]
                    right += 1
        order[:] = spare[: len(order)]
        width *= 2


@inlined
def _precedes(table: WordArray, words: IntArray, one: int, other: int) -> bool:
    for word in words:
        if table[one, word] != table[other, word]:
            return bool(table[one, word] < table[other, word])
    return False
