"""A unit: one row, or two rows of one dilemma that follow each other, as seven 64-bit words.

The 23 features of a row fit one word exactly: 1 bit each for intervention and barrier, 2 for the signal, 3 for each
of the 20 counts. A row has at least one character, so the word is never 0, and 0 stands for "no second row".

Voters and dilemmas are told apart by 128 bits of a hash of their names. Two of n names share them with a probability
of n^2 / 2^129: less than 10^-22 for the hundred million names of the whole public file.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from crowdveil.sources.moral_machine.public_layout import HIGHEST

Word = Any
"""One 64-bit word, or a number, in a compiled function."""

WORDS = 7
VOTER, VOTER_TOO, DILEMMA, DILEMMA_TOO, ROW, FIRST, SECOND = range(WORDS)
"""The words: the names' hashes, the first row's number and flags, the features of the first row and of the second."""

ROW_NUMBER = np.uint64(2**60 - 1)
FIRST_SAVED = np.uint64(2**63)
"""Flag in ROW: the first row is the group that was spared."""

BITS = tuple(highest.bit_length() for highest in HIGHEST.values())
SHIFTS = tuple(int(shift) for shift in np.cumsum([0, *BITS[:-1]]))
FEATURES = len(BITS)
PADDING = 8
"""How many bytes after a text must be readable for it to be hashed."""

_ONE_BIT, _THREE_BITS = np.uint64(1), np.uint64(7)
_ONE, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_HIGH_BITS = np.uint64(0x8080808080808080)
_codegen: Any = cgutils  # numba's code generation helpers carry no types

compiled = numba.njit(cache=True, nogil=True, error_model="numpy")
inlined = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


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
"""trailing_zeros(word): how many zero bits there are below the lowest one."""

load_word: Any = intrinsic(_load_word)
"""load_word(bytes, at): the eight bytes from ``at`` on as one word, the first the lowest. Nothing is checked."""


@inlined
def hash_text(data: Any, start: int, stop: int) -> tuple[Word, Word, bool]:
    """Hash the bytes start:stop (at least one) to two words; say also whether all are ASCII.

    Reads, but does not use, up to PADDING bytes after the text.
    """
    one, other = _ONE ^ np.uint64(stop - start), _OTHER
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


@inlined
def subtract(chosen: Word, other: Word, difference: Any) -> None:
    """Fill in the study's features of the chosen row minus those of the other one."""
    for k in range(2):
        difference[k] = np.int64((chosen >> np.uint64(k)) & _ONE_BIT) - np.int64((other >> np.uint64(k)) & _ONE_BIT)
    difference[2] = _legality(chosen) - _legality(other)
    for k in range(3, FEATURES):
        shift = np.uint64(3 * k - 5)
        difference[k] = np.int64((chosen >> shift) & _THREE_BITS) - np.int64((other >> shift) & _THREE_BITS)


@inlined
def _legality(packed: Word) -> Word:
    """No light, green, red: 0, +1, -1."""
    return np.int64((packed >> np.uint64(2)) & _ONE_BIT) - np.int64((packed >> np.uint64(3)) & _ONE_BIT)
