"""Writes answered dilemmas as lines of the public layout, byte by byte: a hundred million rows in minutes.

What a simulation does not know is written as the public files write it for their random scenarios. A voter's and a
dilemma's names look like the public ones and are made from their numbers by one-to-one maps, so that no two are equal.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numba
import numpy as np

from crowdveil.arrays import ByteArray
from crowdveil.sources.moral_machine.public_layout import COLUMNS, GREEN, RED

MOST_BYTES_PER_ROW = 400
MOST_ROWS_PER_DILEMMA = 3
HEADER = (",".join(COLUMNS) + "\n").encode()

_compiled = numba.njit(cache=True, nogil=True)


class Dirt(IntEnum):
    """What can be wrong, or only unusual, with a written dilemma. It befalls its first row unless said otherwise."""

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
# Odd, so that multiplication is one-to-one modulo 2^64; and coprime to 10, so that it is modulo 10^16.
_SCRAMBLE, _SPREAD = np.uint64(0x9E3779B97F4A7C15), 6_364_136_223_846_793
_DIGITS = 10**16


@_compiled
def write_rows(
    left: Any, right: Any, chose_left: Any, dirt: Any, order: Any, per_voter: int, first_voter: int, out: ByteArray
) -> tuple[int, int]:
    """Write a block's dilemmas in the given order; return how many bytes and rows that were.

    ``out`` needs room for MOST_ROWS_PER_DILEMMA rows of MOST_BYTES_PER_ROW bytes for each dilemma.
    """
    at, rows = 0, 0
    for wrong_order in (False, True):
        for i in order:
            apart = dirt[i] == Dirt.APART
            if wrong_order and not apart:
                continue
            dilemma, voter = first_voter * per_voter + i, first_voter + i // per_voter
            if not wrong_order:
                repeats = 2 if dirt[i] == Dirt.REPEATED else 1
                for _ in range(repeats):
                    at = _write(out, at, left[i], right[i], chose_left[i], dirt[i], True, dilemma, voter, i % per_voter)
                    rows += 1
            if dirt[i] != Dirt.PARTNER_LOST and apart == wrong_order:
                saved = not chose_left[i] or dirt[i] == Dirt.BOTH_SAVED
                second = Dirt.DECIMALS if dirt[i] == Dirt.DECIMALS else Dirt.NONE
                at = _write(out, at, right[i], left[i], saved, second, False, dilemma, voter, i % per_voter)
                rows += 1
    return at, rows


@_compiled
def _write(
    out: ByteArray,
    at: int,
    group: Any,
    other: Any,
    saved: bool,
    dirt: int,
    first: bool,
    dilemma: int,
    voter: int,
    turn: int,
) -> int:
    point = dirt == Dirt.DECIMALS
    user = (voter * 2_862_933_555 + 1_234_567) % 4_000_000_000
    size, other_size = 0, 0
    for k in range(3, len(group)):
        size += group[k]
        other_size += other[k]
    if dirt != Dirt.NO_DILEMMA:
        at = _dilemma_name(out, at, dilemma)
    at = _byte(out, at, _COMMA)
    if dirt != Dirt.NO_VOTER:
        if user >= 2_000_000_000:
            at = _byte(out, at, _MINUS)
        at = _number(out, at, user // 2)
        at = _byte(out, at, _UNDERSCORE)
        at = _number(out, at, _spread(voter))
        at = _byte(out, _byte(out, at, _POINT), _ZERO)
    at = _byte(out, at, _COMMA)
    at = _cell(out, at, _spread(voter), False)
    at = _cell(out, at, turn + 1, False)
    at = _cell(out, at, group[0], point)
    at = _cell(out, at, 1 if group[1] == 0 and other[1] == 0 else 0, False)
    at = _cell(out, at, group[1], point)
    if dirt == Dirt.BLANK:
        at = _byte(out, at, _COMMA)
    else:
        at = _cell(out, at, GREEN if group[2] == 1 else RED if group[2] == -1 else 0, point)
    at = _text(out, at, _NOTHING)
    at = _cell(out, at, size + 1 if dirt == Dirt.WRONG_SUM else size, point)
    at = _cell(out, at, abs(size - other_size), False)
    at = _cell(out, at, 1 if saved or dirt == Dirt.BOTH_SAVED else 0, point)
    if dirt == Dirt.CUT_SHORT:
        return _byte(out, at, _NEWLINE)
    at = _text(out, at, _TEMPLATES[user % 2])
    at = _byte(out, at, _COMMA)
    at = _cell(out, at, user % 3 % 2, False)
    at = _cell(out, at, 1 if first else 0, False)
    at = _text(out, at, _COUNTRIES[voter % len(_COUNTRIES)])
    at = _byte(out, at, _COMMA)
    for k in range(3, len(group)):
        if k == 3 and dirt == Dirt.TOO_MANY:
            at = _cell(out, at, 9, point)
        elif k == 3 and dirt == Dirt.NO_NUMBER:
            at = _byte(out, _byte(out, at, _X), _COMMA)
        else:
            at = _cell(out, at, group[k], point)
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
    """17 letters: the first 12 tell the number, mixed one-to-one (55^12 > 2^64), and 5 only look so."""
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
def _cell(out: ByteArray, at: int, value: int, point: bool) -> int:
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
