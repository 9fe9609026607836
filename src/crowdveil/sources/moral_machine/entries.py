"""An entry: one row, or two consecutive rows of one dilemma, as seven 64-bit words.

The 23 features of a row fit one word exactly: 1 bit each for intervention and barrier, 2 for the signal, 3 for each of
the 20 counts. A row has at least one character, so the word is never 0, and 0 stands for "no second row".

Voters and dilemmas are identified by 128-bit hashes of their names. Two of n names collide with a probability of
n^2 / 2^129: less than 10^-22 for the hundred million names of the whole public file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from crowdveil.arrays import ByteArray, IntArray, WordArray
from crowdveil.sources.moral_machine.layout import HIGHEST

Word = Any
"""One 64-bit word, or a number, in a compiled function."""
Hash = tuple[Word, Word]
"""The hash of a name."""

ENTRY_WORDS = 7
VOTER, VOTER_TOO, DILEMMA, DILEMMA_TOO, ROW, FIRST, SECOND = range(ENTRY_WORDS)
"""The words: the hashes of the names; the first row's number, scenario and flag; the features of both rows."""
NAME_WORDS = 3
"""Words of a voter's name: the two words of its hash, and the length of its text."""

ROW_NUMBER = np.uint64(2**60 - 1)
SCENARIO_SHIFT, SCENARIO_MASK = np.uint64(60), np.uint64(7)
"""Position in ROW of the scenario's code, if both rows agree on it; otherwise 0."""
FIRST_SAVED = np.uint64(2**63)
"""Flag in ROW: the first row is the group that was spared."""

BITS = tuple(highest.bit_length() for highest in HIGHEST.values())
SHIFTS = tuple(int(shift) for shift in np.cumsum([0, *BITS[:-1]]))
PADDING = 8
"""Number of bytes after a text that must be readable for it to be hashed."""

_ENTRIES, _NAMES, _TEXTS = range(3)
_ONE, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_HIGH_BITS = np.uint64(0x8080808080808080)
_codegen: Any = cgutils  # numba's code generation helpers have no type hints

compiled = numba.njit(cache=True, nogil=True, error_model="numpy")
inlined = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


@dataclass(frozen=True)
class ScanResult:
    """Entries, and the names of some of their voters."""

    entries: WordArray
    names: WordArray
    """One row of NAME_WORDS words per name."""
    texts: ByteArray
    """The names' texts, one after another."""


class ScanBuffer:
    """A buffer for entries and names, with how much of it is filled. Pages that are never written take no memory.

    ``seen`` is a table of voters whose names were already written, with a power of two of slots: their names are not
    written again, unless others have taken their slots. Threads may share it; a name may then be written twice.
    """

    def __init__(self, most_entries: int, most_bytes: int, seen: WordArray) -> None:
        self._entries = np.empty((most_entries, ENTRY_WORDS), np.uint64)
        self._names = np.empty((most_entries, NAME_WORDS), np.uint64)
        self._texts = np.empty(most_bytes, np.uint8)
        self._ends = np.zeros(3, np.int64)
        self._seen = seen

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arguments of the compiled functions below: entries, names, texts, ends, seen."""
        return self._entries, self._names, self._texts, self._ends, self._seen

    def result(self) -> ScanResult:
        """Return what was written."""
        entries, names, texts = self._ends.tolist()
        return ScanResult(self._entries[:entries].copy(), self._names[:names].copy(), self._texts[:texts].copy())


def join_results(results: Sequence[ScanResult]) -> ScanResult:
    """Join the results of several blocks."""
    nothing = ScanBuffer(0, 0, np.zeros(1, np.uint64)).result()
    together = [nothing, *results]
    return ScanResult(
        np.concatenate([result.entries for result in together]),
        np.concatenate([result.names for result in together]),
        np.concatenate([result.texts for result in together]),
    )


@inlined
def begin_entry(
    entries: WordArray, names: WordArray, texts: ByteArray, ends: IntArray, seen: WordArray,
    voter: Hash, data: Any, name: tuple[int, int],
    dilemma: Hash, row: int, saved: bool, packed: Word, scenario: int,
) -> None:  # fmt: skip
    """Add an entry of one row, and the name of its voter, which is in ``data`` between these bytes."""
    entry = entries[ends[_ENTRIES]]
    entry[VOTER], entry[VOTER_TOO] = voter
    entry[DILEMMA], entry[DILEMMA_TOO] = dilemma
    entry[ROW] = np.uint64(row) | (np.uint64(scenario) << SCENARIO_SHIFT) | (FIRST_SAVED if saved else np.uint64(0))
    entry[FIRST], entry[SECOND] = packed, np.uint64(0)
    ends[_ENTRIES] += 1
    _add_name(names, texts, ends, seen, voter, data, name)


@inlined
def complete_entry(entries: WordArray, ends: IntArray, packed: Word, saved: bool, scenario: int) -> bool:
    """Add the next row, of the same dilemma and voter, to the last entry, if just one of them was spared."""
    last = entries[ends[_ENTRIES] - 1]
    if saved == ((last[ROW] & FIRST_SAVED) != np.uint64(0)):
        return False
    last[SECOND] = packed
    if ((last[ROW] >> SCENARIO_SHIFT) & SCENARIO_MASK) != np.uint64(scenario):
        last[ROW] &= ~(SCENARIO_MASK << SCENARIO_SHIFT)
    return True


@inlined
def _add_name(
    names: WordArray, texts: ByteArray, ends: IntArray, seen: WordArray, voter: Hash, data: Any, text: tuple[int, int]
) -> None:
    """Add a voter's name unless it was seen: by 64 bits of the hash, in a slot that further bits determine."""
    slot = np.int64(voter[0] & np.uint64(seen.size - 1))
    if seen[slot] == voter[1]:
        return
    seen[slot] = voter[1]
    name = names[ends[_NAMES]]
    length = text[1] - text[0]
    name[0], name[1], name[2] = voter[0], voter[1], np.uint64(length)
    for k in range(length):
        texts[ends[_TEXTS] + k] = data[text[0] + k]
    ends[_NAMES] += 1
    ends[_TEXTS] += length


def _load_word(typing_context: Any, data: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index = arguments
        pointer = builder.gep(context.make_array(signature.args[0])(context, builder, array).data, [index])
        word = builder.load(builder.bitcast(pointer, _codegen.ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(data, types.intp), generate


def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], _codegen.ir.Constant(_codegen.ir.IntType(1), 0))

    return types.int64(types.uint64), generate


trailing_zeros: Any = intrinsic(_trailing_zeros)
"""trailing_zeros(word): the number of zero bits below the lowest one bit."""

load_word: Any = intrinsic(_load_word)
"""load_word(bytes, at): the eight bytes from ``at`` on as one word, the first one lowest. Nothing is checked."""


@inlined
def has_visible_ends(data: Any, start: int, stop: int) -> bool:
    """Whether a text begins and ends with a visible ASCII character, so that no kind of space has to be stripped."""
    return bool(start < stop and 32 < data[start] < 127 and 32 < data[stop - 1] < 127)


@inlined
def hash_text(data: Any, start: int, stop: int) -> tuple[Word, Word, bool]:
    """Hash the bytes start:stop (at least one) to two words; also return whether all are ASCII.

    Reads, but does not use, up to PADDING bytes after the text.
    """
    one = _ONE ^ np.uint64(stop - start)
    other = _OTHER
    seen = np.uint64(0)
    at = start
    while at < stop:
        word = load_word(data, at)
        if stop - at < 8:
            word &= (np.uint64(1) << np.uint64(8 * (stop - at))) - np.uint64(1)
        seen |= word
        one = (one ^ word) * _ONE
        one ^= one >> np.uint64(32)
        other = (other + word) * _OTHER
        other ^= other >> np.uint64(29)
        at += 8
    return _finish(one), _finish(other), (seen & _HIGH_BITS) == np.uint64(0)


@inlined
def _finish(word: Word) -> Word:
    word *= np.uint64(0xFF51AFD7ED558CCD)
    word ^= word >> np.uint64(33)
    word *= np.uint64(0xC4CEB9FE1A85EC53)
    return word ^ (word >> np.uint64(33))


def ordered(table: WordArray, words: tuple[int, ...]) -> IntArray:
    """Return the order of a table's rows by these words: by the first, then by the second if it is equal, and so on."""
    order: IntArray = np.argsort(table[:, words[0]])
    by = np.array(words)
    by.setflags(write=False)  # like constants of compiled functions, so that the sort is compiled only once
    _order_ties(table, by, order, np.empty_like(order))
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
    """Sort an order of rows by these words, stably."""
    width = 1
    while width < len(order):
        for low in range(0, len(order), 2 * width):
            left = low
            middle = min(low + width, len(order))
            high = min(low + 2 * width, len(order))
            right = middle
            for i in range(low, high):
                if right == high or (left < middle and not _precedes(table, words, order[right], order[left])):
                    spare[i] = order[left]
                    left += 1
                else:
                    spare[i] = order[right]
                    right += 1
        for i in range(len(order)):
            order[i] = spare[i]
        width *= 2


@inlined
def _precedes(table: WordArray, words: IntArray, one: int, other: int) -> bool:
    for word in words:
        if table[one, word] != table[other, word]:
            return bool(table[one, word] < table[other, word])
    return False
