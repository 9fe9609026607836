"""Write a simulated crowd's answers as a file in the public layout, of any size and as dirty as requested.

The result says what an import of the file must find: how many rows, records and voters, and how many rows of each kind
are to be refused. Values that a simulation does not have are written as in the public files for random scenarios. The
names of voters and dilemmas look like the public ones. They are one-to-one functions of their numbers, so that no two
are equal. Lines are written byte by byte: a hundred million rows in minutes.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from io import BufferedWriter
from pathlib import Path
from typing import Any

import numba
import numpy as np

from crowdveil.arrays import ByteArray, IntArray, SmallIntArray
from crowdveil.errors import CrowdveilError
from crowdveil.files import replacing
from crowdveil.sources.import_report import RowDefect
from crowdveil.sources.moral_machine.layout import COLUMNS, GREEN, RED
from crowdveil.sources.simulated import Responses, simulate_responses
from crowdveil.study.study import Study

_MOST_BYTES_PER_ROW = 400
_MOST_ROWS_PER_DILEMMA = 3
_HEADER = (",".join(COLUMNS) + "\n").encode()

_compiled = numba.njit(cache=True, nogil=True)


class LayoutFault(IntEnum):
    """Faults or oddities of a written dilemma. They affect its first row unless stated otherwise."""

    NONE = 0
    PARTNER_LOST = 1
    REPEATED = 2
    TOO_MANY = 3
    NO_NUMBER = 4
    BLANK = 5
    NO_VOTER = 6
    NO_DILEMMA = 7
    WRONG_SUM = 8
    BOTH_SAVED = 9
    CUT_SHORT = 10
    DECIMALS = 11
    """Both rows write their numbers with a decimal point. Nothing is wrong."""
    APART = 12
    """The second row comes much later. Nothing is wrong."""


_NOTHING = np.frombuffer(b"Rand,Random,Random,,,,", np.uint8)
_TEMPLATES = np.frombuffer(b"DesktopMobile ", np.uint8).reshape(2, 7)
_COUNTRIES = np.frombuffer(b"USABRAFRADEUGBRCANAUSRUSITAESPPOLJPNKORTURINDMEX", np.uint8).reshape(-1, 3)
_LETTERS = np.frombuffer(b"23456789ABCDEFGHJKLMNPQRSTWXYZabcdefghijkmnopqrstuvwxyz", np.uint8)
_COMMA, _NEWLINE, _POINT, _ZERO, _MINUS, _UNDERSCORE, _SPACE, _X = (np.uint8(ord(c)) for c in ",\n.0-_ x")
# Multiplication is one-to-one modulo 2^64 since the first is odd, and modulo 10^16 since the second is coprime to 10.
_SCRAMBLE = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = 6_364_136_223_846_793
_DIGITS = 10**16

_LOST = {RowDefect.UNPAIRED: 1}
REFUSED_FOR: Mapping[LayoutFault, Mapping[RowDefect, int]] = {
    LayoutFault.NONE: {},
    LayoutFault.PARTNER_LOST: _LOST,
    LayoutFault.REPEATED: {RowDefect.DOUBLED: 1},
    LayoutFault.TOO_MANY: {RowDefect.OUT_OF_BOUNDS: 1, **_LOST},
    LayoutFault.NO_NUMBER: {RowDefect.NOT_A_NUMBER: 1, **_LOST},
    LayoutFault.BLANK: {RowDefect.BLANK: 1, **_LOST},
    LayoutFault.NO_VOTER: {RowDefect.VOTER_MISSING: 1, **_LOST},
    LayoutFault.NO_DILEMMA: {RowDefect.DILEMMA_MISSING: 1, **_LOST},
    LayoutFault.WRONG_SUM: {RowDefect.INCONSISTENT: 1, **_LOST},
    LayoutFault.BOTH_SAVED: {RowDefect.NO_SINGLE_CHOICE: 2},
    LayoutFault.CUT_SHORT: {RowDefect.RAGGED: 1, **_LOST},
    LayoutFault.DECIMALS: {},
    LayoutFault.APART: {},
}
"""The rows of a dilemma that an import refuses, by reason."""

_KEEP_THE_PAIR = (LayoutFault.NONE, LayoutFault.REPEATED, LayoutFault.DECIMALS, LayoutFault.APART)
_DILEMMAS_PER_BLOCK = 1 << 14


@dataclass(frozen=True)
class ExpectedImport:
    """The report that an import of the written file must give."""

    rows: int
    records: int
    voters: int
    refused: Mapping[RowDefect, int]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data, with the names of an import's report."""
        refused = {reason.value: count for reason, count in self.refused.items()}
        return {"rows": self.rows, "records": self.records, "voters": self.voters, "refused": refused}


def write_public_layout(
    path: Path,
    study: Study,
    voters: int,
    rng: np.random.Generator,
    dirty: float = 0.0,
    progress: Callable[[int], None] | None = None,
) -> ExpectedImport:
    """Write a simulated crowd's answers as CSV (gzipped if the name ends in .gz), one block of voters at a time.

    ``dirty`` is the share of dilemmas with something wrong or unusual, of all kinds in equal parts. The answers are
    those of ``simulated_batches`` with a generator of the same seed. Dilemmas are in random order within a block, with
    their two rows one after the other. ``progress`` is called with the number of voters written.
    """
    if study.name != "moral-machine":
        raise CrowdveilError(f"only answers to moral-machine can be written in its public layout, not to {study.name}")
    if not 0 <= dirty <= 1:
        raise CrowdveilError(f"the share of dirty dilemmas must be between 0 and 1, got {dirty}")
    rows = 0
    records = 0
    present = 0
    refused = Counter[RowDefect]()
    per_voter = study.drawing.dilemmas
    before = 0
    with replacing(path) as unfinished, _open(unfinished, path.suffix == ".gz") as file:
        file.write(_HEADER)
        for responses in simulate_responses(study, voters, rng):
            dilemmas = len(responses.chose_left)
            # Seeded by the block alone: faults must not change what the crowd's own generator draws.
            faults, order = _spoil(dilemmas, dirty, np.random.default_rng([before, dilemmas]))
            for start in range(0, dilemmas, _DILEMMAS_PER_BLOCK):
                text, written = _write_dilemmas(responses, faults, order[start : start + _DILEMMAS_PER_BLOCK], before)
                file.write(text)
                rows += written
            keeps = np.isin(faults, _KEEP_THE_PAIR)
            records += int(keeps.sum())
            present += int(keeps.reshape(-1, per_voter).any(axis=1).sum())
            for kind, count in zip(*np.unique(faults, return_counts=True), strict=True):
                refused.update({reason: n * int(count) for reason, n in REFUSED_FOR[LayoutFault(kind)].items()})
            before += dilemmas // per_voter
            if progress is not None:
                progress(dilemmas // per_voter)
    return ExpectedImport(rows, records, present, {reason: refused[reason] for reason in RowDefect if refused[reason]})


def _open(path: Path, zipped: bool) -> gzip.GzipFile | BufferedWriter:
    return gzip.open(path, "wb", compresslevel=1) if zipped else path.open("wb")


def _spoil(dilemmas: int, dirty: float, rng: np.random.Generator) -> tuple[SmallIntArray, IntArray]:
    """Choose which dilemmas are dirty, in what way, and the order of all of them."""
    kinds = rng.integers(1, len(LayoutFault), dilemmas, dtype=np.int8)
    return np.where(rng.random(dilemmas) < dirty, kinds, np.int8(LayoutFault.NONE)), rng.permutation(dilemmas)


def _write_dilemmas(
    responses: Responses, faults: SmallIntArray, order: IntArray, first_voter: int
) -> tuple[memoryview, int]:
    out = np.empty(len(order) * _MOST_ROWS_PER_DILEMMA * _MOST_BYTES_PER_ROW, np.uint8)
    size, rows = _write_rows(
        responses.left,
        responses.right,
        responses.chose_left,
        faults,
        order,
        responses.study.drawing.dilemmas,
        first_voter,
        out,
    )
    return out[:size].data, rows


@_compiled
def _write_rows(
    left: Any, right: Any, chose_left: Any, faults: Any, order: Any, per_voter: int, first_voter: int, out: ByteArray
) -> tuple[int, int]:
    """Write a block's dilemmas in the given order; return the number of bytes and of rows.

    ``out`` needs room for _MOST_ROWS_PER_DILEMMA rows of _MOST_BYTES_PER_ROW bytes for each dilemma.
    """
    # Typed, as are the arguments below: numba would compile a function again for another type, and for literals.
    at: Any = np.int64(0)
    rows = 0
    yes, no = np.bool_(True), np.bool_(False)
    for wrong_order in (False, True):
        for i in order:
            apart = faults[i] == LayoutFault.APART
            if wrong_order and not apart:
                continue
            dilemma = first_voter * per_voter + i
            voter = first_voter + i // per_voter
            if not wrong_order:
                repeats = 2 if faults[i] == LayoutFault.REPEATED else 1
                for _ in range(repeats):
                    at = _write_row(
                        out, at, left[i], right[i], chose_left[i], faults[i], yes, dilemma, voter, i % per_voter
                    )
                    rows += 1
            if faults[i] != LayoutFault.PARTNER_LOST and apart == wrong_order:
                saved = not chose_left[i] or faults[i] == LayoutFault.BOTH_SAVED
                second = faults[i] if faults[i] == LayoutFault.DECIMALS else np.int8(LayoutFault.NONE.value)
                at = _write_row(out, at, right[i], left[i], saved, second, no, dilemma, voter, i % per_voter)
                rows += 1
    return at, rows


@_compiled
def _write_row(
    out: ByteArray,
    at: int,
    group: Any,
    other: Any,
    saved: Any,
    fault: Any,
    first: Any,
    dilemma: int,
    voter: int,
    turn: int,
) -> int:
    point = fault == LayoutFault.DECIMALS
    whole = np.bool_(False)
    user = (voter * 2_862_933_555 + 1_234_567) % 4_000_000_000
    size, other_size = 0, 0
    for k in range(3, len(group)):
        size += group[k]
        other_size += other[k]
    if fault != LayoutFault.NO_DILEMMA:
        at = _dilemma_name(out, at, dilemma)
    at = _byte(out, at, _COMMA)
    if fault != LayoutFault.NO_VOTER:
        if user >= 2_000_000_000:
            at = _byte(out, at, _MINUS)
        at = _number(out, at, user // 2)
        at = _byte(out, at, _UNDERSCORE)
        at = _number(out, at, _spread(voter))
        at = _byte(out, _byte(out, at, _POINT), _ZERO)
    at = _byte(out, at, _COMMA)
    at = _cell(out, at, _spread(voter), whole)
    at = _cell(out, at, turn + 1, whole)
    at = _cell(out, at, np.int64(group[0]), point)
    at = _cell(out, at, 1 if group[1] == 0 and other[1] == 0 else 0, whole)
    at = _cell(out, at, np.int64(group[1]), point)
    if fault == LayoutFault.BLANK:
        at = _byte(out, at, _COMMA)
    else:
        at = _cell(out, at, GREEN if group[2] == 1 else RED if group[2] == -1 else 0, point)
    at = _text(out, at, _NOTHING)
    at = _cell(out, at, size + 1 if fault == LayoutFault.WRONG_SUM else size, point)
    at = _cell(out, at, abs(size - other_size), whole)
    at = _cell(out, at, 1 if saved or fault == LayoutFault.BOTH_SAVED else 0, point)
    if fault == LayoutFault.CUT_SHORT:
        return _byte(out, at, _NEWLINE)
    at = _text(out, at, _TEMPLATES[user % 2])
    at = _byte(out, at, _COMMA)
    at = _cell(out, at, user % 3 % 2, whole)
    at = _cell(out, at, 1 if first else 0, whole)
    at = _text(out, at, _COUNTRIES[voter % len(_COUNTRIES)])
    at = _byte(out, at, _COMMA)
    for k in range(3, len(group)):
        if k == 3 and fault == LayoutFault.TOO_MANY:
            at = _cell(out, at, np.int64(9), point)
        elif k == 3 and fault == LayoutFault.NO_NUMBER:
            at = _byte(out, _byte(out, at, _X), _COMMA)
        else:
            at = _cell(out, at, np.int64(group[k]), point)
    out[at - 1] = _NEWLINE
    return at


@_compiled
def _spread(number: int) -> int:
    """Map numbers below 10^16 one-to-one onto such numbers: multiply modulo 10^16, half by half."""
    low, high = number % 100_000_000, number // 100_000_000
    factor_low, factor_high = _SPREAD % 100_000_000, _SPREAD // 100_000_000
    middle = (low * factor_high + high * factor_low) % 100_000_000
    return (low * factor_low + middle * 100_000_000) % _DIGITS


@_compiled
def _dilemma_name(out: ByteArray, at: int, dilemma: int) -> int:
    """Write 17 letters: the first 12 encode the number, mixed one-to-one (55^12 > 2^64), and 5 are filler."""
    mixed = np.uint64(dilemma + 1) * _SCRAMBLE
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _SCRAMBLE
    rest = mixed
    for k in range(17):
        if k == 12:
            rest = mixed * _SCRAMBLE
        out[at + k] = _LETTERS[rest % np.uint64(55)]
        rest = rest // np.uint64(55)
    return at + 17


@_compiled
def _cell(out: ByteArray, at: int, value: Any, point: Any) -> int:
    at = _number(out, at, value)
    if point:
        at = _byte(out, _byte(out, at, _POINT), _ZERO)
    return _byte(out, at, _COMMA)


@_compiled
def _number(out: ByteArray, at: int, value: int) -> int:
    digits = 1
    while digits < 19 and value >= 10**digits:
        digits += 1
    for k in range(digits):
        out[at + digits - 1 - k] = _ZERO + np.uint8(value % 10)
        value //= 10
    return at + digits


@_compiled
def _text(out: ByteArray, at: int, text: ByteArray) -> int:
    for k in range(len(text)):
        out[at] = text[k]
        if text[k] != _SPACE:
            at += 1
    return at


@_compiled
def _byte(out: ByteArray, at: int, value: Any) -> int:
    out[at] = value
    return at + 1
