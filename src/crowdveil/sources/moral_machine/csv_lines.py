"""Read rows of CSV in the public layout straight from their bytes: clean ones become entries, odd ones are set aside.

A clean row has as many cells as there are columns, names of plain characters, and numbers written as one digit (with or
without .0) within their bounds. Any other row may still be good, and is left to a slower reader that knows every way of
writing. So this reader does not judge what is wrong with a row.

A row is a line, unless a quoted cell contains line breaks. A row of several lines must have as many cells as there are
columns, and its quotes must end where cells do. Otherwise its quote was never meant to be closed there, and it costs
only its own line, not those after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import BoolArray, ByteArray, IntArray, WordArray
from crowdveil.sources.moral_machine.entries import (
    SHIFTS,
    ScanBuffer,
    ScanResult,
    Word,
    begin_entry,
    compiled,
    complete_entry,
    has_visible_ends,
    hash_text,
    inlined,
    load_word,
    trailing_zeros,
)
from crowdveil.sources.moral_machine.layout import (
    DILEMMA,
    GROUP,
    HIGHEST,
    SAVED,
    SCENARIO,
    SCENARIO_CODES,
    SIZE,
    STRICT_SCENARIO,
    VOTER,
)
from crowdveil.study.drawing import LARGEST_GROUP

_SKIP, _DILEMMA, _VOTER, _SCENARIO, _SAVED, _SIZE, _FEATURE, _COUNT = range(8)
_COMMA, _QUOTE, _POINT, _ZERO, _NEWLINE, _RETURN = (ord(c) for c in ',".0\n\r')
_EVERY_BYTE, _HIGH_BITS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_EVERY_LANE = np.uint64(0x0001000100010001)
_UP_TO_5 = np.uint64(7 - LARGEST_GROUP) * _EVERY_LANE
_NOT_UP_TO_7 = np.uint64(0xFFF8) * _EVERY_LANE
_FEWEST_BYTES = 2 * len(HIGHEST)
"""Length of the shortest possible clean line: each of its numbers takes one byte and a comma."""
_LABELS = [label.encode() for label in SCENARIO_CODES]
_label_heads = np.array([int.from_bytes(label[:8], "little") for label in _LABELS], np.uint64)
_label_tails = np.array([int.from_bytes(label[-8:], "little") for label in _LABELS], np.uint64)
_label_sizes = np.array([len(label) for label in _LABELS])
_label_codes = np.array(list(SCENARIO_CODES.values()))
"""Labels of scenarios by their first and their last eight bytes, which may overlap."""


@dataclass(frozen=True)
class ColumnRoles:
    """The role of each column of a file for the scanner."""

    roles: IntArray
    shifts: IntArray
    highest: IntArray
    four: WordArray
    """The text of four zero counts from this column on, if four counts follow each other; otherwise 0."""

    @classmethod
    def of(cls, columns: Sequence[str]) -> ColumnRoles:
        """Find the needed columns, each of which occurs once, among all columns of a file."""
        roles = {DILEMMA: _DILEMMA, VOTER: _VOTER, SAVED: _SAVED, SIZE: _SIZE, **dict.fromkeys(HIGHEST, _FEATURE)}
        roles |= dict.fromkeys(GROUP, _COUNT) | dict.fromkeys((SCENARIO, STRICT_SCENARIO), _SCENARIO)
        shifts = dict(zip(HIGHEST, SHIFTS, strict=True))
        highest = {SAVED: 1, SIZE: LARGEST_GROUP, **HIGHEST}
        by_column = [np.array([of.get(c, 0) for c in columns]) for of in (roles, shifts, highest)]
        by_column.append(np.array([_four_zeros(columns, k) for k in range(len(columns))], np.uint64))
        return cls(*by_column)


def _four_zeros(columns: Sequence[str], first: int) -> int:
    here = tuple(columns[first : first + 4])
    if columns[first] not in GROUP or here != GROUP[GROUP.index(columns[first]) :][:4] or len(here) < 4:
        return 0
    return int.from_bytes(b"0,0,0,0" + (b"," if first + 4 < len(columns) else b"\n"), "little")


def scan_rows(block: ByteArray, size: int, columns: ColumnRoles, seen: WordArray) -> tuple[int, ScanResult, IntArray]:
    """Read the first ``size`` bytes of a block, which end at the end of a row; PADDING more bytes must follow.

    Return the number of rows, the entries of the clean ones (rows are numbered from 0), and the odd ones: row, first
    byte and end. ``seen`` is as for ``ScanBuffer``.
    """
    buffer = ScanBuffer(size // _FEWEST_BYTES + 1, size, seen)
    odd = np.empty((size // 2 + 1, 3), np.int64)  # pages that are never written take no memory
    rows, odd_rows = _scan(
        block, size, columns.roles, columns.shifts, columns.highest, columns.four, odd, *buffer.arrays
    )
    return rows, buffer.result(), odd[:odd_rows].copy()


@compiled
def _scan(
    block: ByteArray, size: int, roles: IntArray, shifts: IntArray, highest: IntArray, four: WordArray, odd: IntArray,
    entries: WordArray, names: WordArray, texts: ByteArray, ends: IntArray, seen: WordArray,
) -> tuple[int, int]:  # fmt: skip
    # Typed zeros: numba would compile a function again for an argument that begins as a literal.
    row: Word = np.int64(0)
    at: Word = np.int64(0)
    odd_rows = 0
    # Whether the previous row is clean and still unpaired, and where its names are.
    waiting = False
    last_dilemma = (0, 0)
    last_voter = (0, 0)
    while at < size:
        if block[at] == _NEWLINE or block[at] == _RETURN:
            at += 1
            continue
        start = at
        clean, at, packed, saved, dilemma, voter, kind = _read(block, at, roles, shifts, highest, four)
        if clean and waiting and _same(block, dilemma, last_dilemma) and _same(block, voter, last_voter):
            waiting = not complete_entry(entries, ends, packed, saved, kind)
            if not waiting:
                row += 1
                continue
        waiting = False
        if clean:
            one, other, plain = hash_text(block, dilemma[0], dilemma[1])
            voter_one, voter_other, voter_plain = hash_text(block, voter[0], voter[1])
            waiting = plain and voter_plain
        if waiting:
            begin_entry(
                entries, names, texts, ends, seen,
                (voter_one, voter_other), block, voter, (one, other), row, saved, packed, kind,
            )  # fmt: skip
            last_dilemma, last_voter = dilemma, voter
        else:
            at, _ = row_end(block, start, size, roles.size)
            odd[odd_rows, 0], odd[odd_rows, 1], odd[odd_rows, 2] = row, start, at
            odd_rows += 1
        row += 1
    return row, odd_rows


@inlined
def _ends_cell(byte: int) -> bool:
    return byte in (_COMMA, _NEWLINE, _RETURN)


@compiled
def row_end(block: ByteArray, start: int, size: int, columns: int) -> tuple[int, bool]:
    """Return where the row that begins at a byte ends, and whether it is open: it continues after ``size`` bytes.

    If a row is open, or has several lines but not as many cells as there are columns, it ends with its first line. So
    does one in which other text follows a quoted cell of several lines: its quotes were not meant as a pair.
    """
    at = start
    cells = 1
    first_end = -1
    beginning = True
    while at < size and block[at] != _NEWLINE and block[at] != _RETURN:
        if beginning and block[at] == _QUOTE:
            at += 1
            broken = False
            while at < size and not (block[at] == _QUOTE and block[at + 1] != _QUOTE):
                if block[at] == _NEWLINE or block[at] == _RETURN:
                    broken = True
                    first_end = at if first_end < 0 else first_end
                at += 2 if block[at] == _QUOTE else 1
            if broken and at + 1 < size and not _ends_cell(block[at + 1]):
                return first_end, False
            beginning = False
        else:
            beginning = block[at] == _COMMA
            cells += beginning
        at += 1
    is_open = at >= size
    if first_end >= 0 and (is_open or cells != columns):
        return first_end, is_open
    return min(at, size), is_open


@compiled
def whole_rows(block: ByteArray, filled: int, columns: int) -> Word:
    """Return where the last whole row of a block ends, if more rows follow the block; 0 if there is none.

    A row that begins with the block and is still open at its end is longer than a block: only its first line counts.
    """
    at: Word = np.int64(0)
    while at < filled:
        if block[at] == _NEWLINE or block[at] == _RETURN:
            at += 1
            continue
        end, is_open = row_end(block, at, filled, columns)
        if is_open and (at > 0 or end == filled):
            return at
        at = end
    return at


@compiled
def ends_open(block: ByteArray, size: int, columns: int) -> bool:
    """Whether a quote is left open in a block."""
    at: Word = np.int64(0)
    while at < size:
        if block[at] == _NEWLINE or block[at] == _RETURN:
            at += 1
            continue
        at, is_open = row_end(block, at, size, columns)
        if is_open:
            return True
    return False


def has_quote(block: ByteArray, size: int) -> bool:
    """Whether there is any quote: without one, every line is a row."""
    return bool((block[:size] == _QUOTE).any())


@compiled
def count_rows(block: ByteArray, size: int, columns: int) -> int:
    """Return the number of rows. Blank lines do not count."""
    rows = 0
    at: Word = np.int64(0)
    while at < size:
        if block[at] != _NEWLINE and block[at] != _RETURN:
            at, _ = row_end(block, at, size, columns)
            rows += 1
        at += 1
    return rows


@compiled
def find_rows(block: ByteArray, size: int, columns: int, wanted: IntArray) -> IntArray:
    """Return the wanted rows, given in order and numbered from 0: row, first byte and end."""
    rows = np.empty((len(wanted), 3), np.int64)
    row = 0
    found = 0
    at: Word = np.int64(0)
    while at < size and found < len(wanted):
        if block[at] == _NEWLINE or block[at] == _RETURN:
            at += 1
            continue
        start = at
        at, _ = row_end(block, at, size, columns)
        if row == wanted[found]:
            rows[found, 0], rows[found, 1], rows[found, 2] = row, start, at
            found += 1
        row += 1
    return rows[:found]


@compiled
def open_rows(block: ByteArray, rows: IntArray) -> BoolArray:
    """Return which rows (row, first byte, end) end inside a quoted cell."""
    result = np.zeros(len(rows), np.bool_)
    for i in range(len(rows)):
        at = rows[i, 1]
        stop = rows[i, 2]
        beginning = True
        while at < stop:
            if beginning and block[at] == _QUOTE:
                at += 1
                while at < stop and not (block[at] == _QUOTE and (at + 1 == stop or block[at + 1] != _QUOTE)):
                    at += 2 if block[at] == _QUOTE else 1
                result[i] = at >= stop
            beginning = at < stop and block[at] == _COMMA
            at += 1
    return result


@inlined
def _same(block: ByteArray, one: tuple[int, int], other: tuple[int, int]) -> bool:
    length = one[1] - one[0]
    if length != other[1] - other[0]:
        return False
    for k in range(0, length - 7, 8):
        if load_word(block, one[0] + k) != load_word(block, other[0] + k):
            return False
    rest = np.uint64(8 * (length & 7))
    difference = load_word(block, one[1] - (length & 7)) ^ load_word(block, other[1] - (length & 7))
    return bool(difference & ((np.uint64(1) << rest) - np.uint64(1)) == np.uint64(0))


@inlined
def _find(block: ByteArray, at: int, wanted: int) -> int:
    """Return the position of the next wanted byte or end of line; eight bytes are examined at once."""
    repeated = np.uint64(wanted) * _EVERY_BYTE
    while True:
        word = load_word(block, at)
        difference = word ^ repeated
        # Flags of bytes that are zero, and of bytes below 14. Only the lowest flag is reliable.
        flags = ((difference - _EVERY_BYTE) & ~difference) | ((word - np.uint64(14) * _EVERY_BYTE) & ~word)
        flags &= _HIGH_BITS
        if flags == np.uint64(0):
            at += 8
            continue
        at += trailing_zeros(flags) >> 3
        byte = block[at]
        if byte in (wanted, _NEWLINE, _RETURN):
            return at
        at += 1


@inlined
def _read(
    block: ByteArray, at: int, roles: IntArray, shifts: IntArray, highest: IntArray, four: WordArray
) -> tuple[bool, int, Word, bool, tuple[int, int], tuple[int, int], int]:
    """Read a line; return whether it is clean, where reading stopped, and what was found.

    If the line is not clean, reading stopped somewhere in it, at the latest at its end.
    """
    packed = np.uint64(0)
    saved: Word = 0
    group: Word = 0
    size: Word = -1
    kind: Word = -1
    dilemma, voter = (0, 0), (0, 0)
    last = roles.size - 1
    column = -1
    while column < last:
        column += 1
        role = roles[column]
        if role == _COUNT and four[column] != np.uint64(0):
            # Four counts at a time, "1,0,0,2,": in 16-bit lanes, each must be a digit up to 5 and a comma.
            lanes = load_word(block, at) ^ four[column]
            if ((lanes | (lanes + _UP_TO_5)) & _NOT_UP_TO_7) == np.uint64(0):
                together = lanes | (lanes >> np.uint64(13)) | (lanes >> np.uint64(26)) | (lanes >> np.uint64(39))
                packed |= (together & np.uint64(0xFFF)) << np.uint64(shifts[column])
                group += np.int64((lanes * _EVERY_LANE) >> np.uint64(48))
                column += 3
                at += 8
                if column == last:
                    at -= 1
                    break
                continue
        quoted = block[at] == _QUOTE
        if quoted:
            at += 1
        if role >= _SAVED:
            value = np.int64(block[at]) - _ZERO
            if 0 <= value <= highest[column]:
                at += 1
                if block[at] == _POINT and block[at + 1] == _ZERO:
                    at += 2
                if role >= _FEATURE:
                    packed |= np.uint64(value) << np.uint64(shifts[column])
                    if role == _COUNT:
                        group += value
                elif role == _SAVED:
                    saved = value
                else:
                    size = value
            elif role != _SIZE:
                return False, at, packed, False, dilemma, voter, 0
        else:
            start = at
            end = _QUOTE if quoted else _COMMA
            at = _find(block, at, end)
            if role == _SCENARIO:
                code = _scenario(block, start, at)
                if code == 0 and at > start and not has_visible_ends(block, start, at):
                    return False, at, packed, False, dilemma, voter, 0
                kind = code if kind < 0 or kind == code else 0
            elif role != _SKIP:
                if not has_visible_ends(block, start, at):
                    return False, at, packed, False, dilemma, voter, 0
                if role == _DILEMMA:
                    dilemma = (start, at)
                else:
                    voter = (start, at)
        if quoted:
            if block[at] != _QUOTE:
                return False, at, packed, False, dilemma, voter, 0
            at += 1
        if column < last:
            if block[at] != _COMMA:
                return False, at, packed, False, dilemma, voter, 0
            at += 1
    ended = block[at] == _NEWLINE or block[at] == _RETURN
    clean = ended and 1 <= group <= LARGEST_GROUP and (size < 0 or size == group)
    return clean, at, packed, saved == 1, dilemma, voter, max(kind, 0)


@inlined
def _scenario(block: ByteArray, start: int, stop: int) -> int:
    """Return the code of the scenario's label; 0 if it is unknown."""
    size = stop - start
    if size <= 0:
        return 0
    head = load_word(block, start)
    if size < 8:
        head &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
    for k in range(_label_sizes.size):
        same_ends = head == _label_heads[k] and (size <= 8 or load_word(block, stop - 8) == _label_tails[k])
        if same_ends and size == _label_sizes[k]:
            return int(_label_codes[k])
    return 0
