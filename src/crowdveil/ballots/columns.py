"""The columns of ballots: voters' answers about themselves, their names, and checks of records in plain arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crowdveil.arrays import BoolArray, IntArray, SmallIntArray, ValueArray
from crowdveil.errors import CrowdveilError, is_list, is_text, shown
from crowdveil.study.study import Study

CODE = np.dtype("<i2")
UNKNOWN = -1
CHOICES = {"left": 1, "right": -1, "neither": 0}
"""How a choice is written: in words, or as a number."""


@dataclass(frozen=True, eq=False)
class Categories:
    """A column of categories: entry i is ``labels[codes[i]]``, or unknown if the code is -1."""

    labels: tuple[str, ...]
    codes: NDArray[np.int16]

    def __post_init__(self) -> None:
        if len(set(self.labels)) < len(self.labels):
            raise CrowdveilError(f"two categories have the same label among {', '.join(self.labels)[:80]}")
        if len(self.codes) and not UNKNOWN <= self.codes.min() <= self.codes.max() < len(self.labels):
            raise CrowdveilError(
                f"codes of categories must be from -1 to {len(self.labels) - 1}: the column is damaged"
            )

    @classmethod
    def encode(cls, entries: Sequence[str | None], labels: Sequence[str] | None = None) -> Categories:
        """Find each entry among the labels (by default all that occur, sorted); None is unknown."""
        known = tuple(sorted({e for e in entries if e is not None}) if labels is None else labels)
        if len(known) > np.iinfo(np.int16).max:
            raise CrowdveilError(
                f"a column of categories has at most {np.iinfo(np.int16).max} labels, got {len(known)}"
            )
        codes = {label: code for code, label in enumerate(known)} | {None: UNKNOWN}
        try:
            return cls(known, np.array([codes[entry] for entry in entries], CODE))
        except KeyError as unexpected:
            raise CrowdveilError(f"{unexpected} is not among the categories {', '.join(known)[:200]}") from None

    @classmethod
    def concatenate(cls, columns: Sequence[Categories]) -> Categories:
        """Join columns that have the same labels."""
        labels = columns[0].labels
        if any(column.labels != labels for column in columns):
            raise CrowdveilError("batches of one crowd must have the same categories, in the same order")
        return cls(labels, np.concatenate([column.codes for column in columns]))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, entries: Any) -> Categories:
        return Categories(self.labels, self.codes[entries])

    def are(self, label: str) -> BoolArray:
        """Return which entries have a label, which need not be among the labels."""
        return np.asarray(self.codes == self.labels.index(label) if label in self.labels else self.codes < UNKNOWN)

    def to_list(self) -> list[str | None]:
        """Return each entry's label."""
        return [self.labels[code] if code >= 0 else None for code in self.codes.tolist()]


DIGEST = pa.binary(16)
"""The type of a digest that replaces a voter's name."""


def as_digests(names: pa.Array) -> pa.Array:
    """Hash names to 16 bytes each (BLAKE2b). Digests stay as they are."""
    if names.type == DIGEST:
        return names
    return pa.array([hashlib.blake2b(name.encode(), digest_size=16).digest() for name in names.to_pylist()], DIGEST)


_MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""The constants of splitmix64 (Steele, Lea and Flood 2014)."""


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return public pseudorandom numbers of 64 bits that look independent for different numbers (splitmix64)."""
    with np.errstate(over="ignore"):
        found = numbers * np.uint64(_MIX[0])
        found = (found ^ (found >> np.uint64(30))) * np.uint64(_MIX[1])
        found = (found ^ (found >> np.uint64(27))) * np.uint64(_MIX[2])
    return np.asarray(found ^ (found >> np.uint64(31)), np.uint64)


def keys_of_voters(names: pa.Array | pa.ChunkedArray | None, before: int, voters: int) -> NDArray[np.uint64]:
    """Return a public number for each voter, by her name alone where names are known.

    A position will not do there: voters stand in the order of their first rows, so that one of them moves others by
    leaving out a row. Without names it has to, and whoever makes the ballots must order them by who the voters are.
    """
    if names is None:
        return np.arange(before, before + voters, dtype=np.uint64) << np.uint64(32)
    parts = names.chunks if isinstance(names, pa.ChunkedArray) else [names]
    return np.frombuffer(b"".join(map(digest_bytes, parts)), "<u8")[::2].astype(np.uint64)


def digest_bytes(names: pa.Array) -> bytes:
    """Return the digests of names, 16 bytes each, concatenated."""
    digests = as_digests(names)
    start = digests.offset * DIGEST.byte_width
    return bytes(digests.buffers()[1][start : start + len(digests) * DIGEST.byte_width])


def names_from_digests(digests: bytes) -> pa.ChunkedArray:
    """Return digests as names."""
    count = len(digests) // DIGEST.byte_width
    return pa.chunked_array([pa.Array.from_buffers(DIGEST, count, [None, pa.py_buffer(digests)])])


def join_names(names: Sequence[pa.Array | None]) -> pa.ChunkedArray | None:
    """Join the names of batches, as digests if some have only those; None if no batch has names."""
    known = [each for each in names if each is not None]
    if not known:
        return None
    if len(known) < len(names):
        raise CrowdveilError("some of the voters have names and others have none: nobody can tell who is there twice")
    alike = len({each.type for each in known}) == 1
    return pa.chunked_array(known if alike else [as_digests(each) for each in known])


def check_distinct(names: pa.ChunkedArray | None, where: str) -> None:
    """Refuse a crowd in which a voter occurs twice: the promise for one ballot would not hold for two."""
    if names is None or len(names.unique()) == len(names):
        return
    whole = names.combine_chunks().dictionary_encode().indices.to_numpy()
    again = np.setdiff1d(np.arange(len(whole)), np.unique(whole, return_index=True)[1])
    doubled = len(np.unique(whole[again]))
    raise CrowdveilError(
        f"{where}: {doubled} of {len(whole) - len(again)} voters occur more than once, the first of them again at "
        f"position {again[0] + 1}: one voter is one ballot, so merge the records of each, or leave the copies out"
    )


def smallest_type(study: Study) -> type[np.int8] | type[np.float64]:
    """Return int8 if every possible difference of the study is a small whole number, else float64."""
    whole = all(
        f.unit == 1 and f.reach <= 127 and all(float(v).is_integer() for v in (f.low, f.high, *f.levels))
        for f in study.features
    )
    return np.int8 if whole and study.drawing.method != "gaussian" else np.float64


def dilemmas_between(study: Study, left: ValueArray, right: ValueArray) -> ValueArray:
    """Subtract the right alternatives from the left ones, in model units, in the smallest type that holds them."""
    dilemmas = np.subtract(left, right) / study.units
    # Even if every drawn difference is a small whole number, the given ones may not be.
    if smallest_type(study) is np.int8 and (dilemmas == np.rint(dilemmas)).all():
        return dilemmas.astype(np.int8)
    return dilemmas


def check_alternatives(study: Study, side: str, given: Any, records: int) -> ValueArray:
    """Check one side's values against the study's public bounds: one row per record, one column per feature."""
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise CrowdveilError(
            f"{side} must hold numbers of at most 308 digits only: a row for each record, a column for each feature"
        ) from None
    if values.shape != (records, study.dimension):
        raise CrowdveilError(
            f"{side} must have {records} rows (one for each entry of voters) and {study.dimension} columns "
            f"({', '.join(study.feature_names)}), got shape {values.shape}"
        )
    for k, feature in enumerate(study.features):
        inside = (values[:, k] >= feature.low) & (values[:, k] <= feature.high)
        if not inside.all():
            row = int(np.argmin(inside))
            raise CrowdveilError(
                f"{side}, row {row + 1}: feature {feature.name} must be a number from {feature.low:g} to "
                f"{feature.high:g}, got {values[row, k]:g}"
            )
    if wrong := study.first_without_level(values):
        raise CrowdveilError(
            f"{side}, row {wrong[0] + 1}: {wrong[1].name} needs a 1 for exactly one of its levels "
            f"({', '.join(wrong[1].feature_names)})"
        )
    return values


def check_choices(study: Study, given: Any, records: int) -> SmallIntArray:
    """Read choices: a word of ``CHOICES`` or its number, True for left, False for right; neither only if allowed."""
    choices = as_array(given)
    if choices.dtype == np.bool_:
        choices = np.where(choices, 1, -1)
    words = {word: number for word, number in CHOICES.items() if number or study.indifference is not None}
    texts = choices.dtype.kind in "UO" and all(isinstance(one, str) for one in choices.flat)
    rows = choices.shape == (records,) and (texts or choices.dtype.kind in "iuf")
    fits = [one in words for one in choices.tolist()] if texts and rows else np.isin(choices, [*words.values()])
    if not rows or not np.all(fits):
        row = int(np.argmin(fits)) if rows else 0
        found = f"row {row + 1} has {shown(choices.tolist()[row])}" if rows else f"it is {shown(given)}"
        sides = ", ".join(f"{number} or {word!r}" for word, number in words.items())
        raise CrowdveilError(
            f"choice must hold {sides}, or True (left) and False (right), for each of {records} records of the study "
            f"{study.name}: {found}"
        )
    return np.array([words[one] for one in choices.tolist()], np.int8) if texts else choices.astype(np.int8)


def check_voters(given: Iterable[object]) -> list[str]:
    """Read the label of each record's voter."""
    voters = _entries(given, "voters", "the name or number of the voter of each record")
    for row, voter in enumerate(voters, start=1):
        nobody = voter is None or isinstance(voter, np.ndarray) or voter != voter or voter == ""  # NaN is not itself
        if nobody or not is_text(str(voter)):
            raise CrowdveilError(
                f"voters, row {row}: {shown(voter)} is nobody; every record needs its voter's number or name, of whole "
                "characters"
            )
    return [str(voter) for voter in voters]


def check_labels(given: Iterable[str | None], what: str, records: int) -> list[str | None]:
    """Read one text for each record, or None where it is not known."""
    labels = _entries(given, what, "a text for each record, or None where it is not known")
    if len(labels) != records:
        raise CrowdveilError(f"{what} has {len(labels)} entries for {records} records: give one for each")
    for row, label in enumerate(labels, start=1):
        if not (label is None or is_text(label)):
            raise CrowdveilError(f"{what}, row {row}: {shown(label)} is no text: give one, or None if it is not known")
    return labels


def check_levels(given: Iterable[str] | None, question: str) -> list[str] | None:
    """Read the public answers to a question, if they are given."""
    if given is None:
        return None
    levels = _entries(given, f"levels of {question!r}", "a list of texts")
    for level in levels:
        if not is_text(level):
            raise CrowdveilError(f"levels of {question!r}: {shown(level)} is no text: give a list of texts")
    return levels


def as_array(given: Any) -> NDArray[Any]:
    """Return what was given as an array; rows of different lengths are none, and become one without dimensions."""
    try:
        return np.asarray(given)
    except ValueError:
        return np.asarray(None)


def _entries(given: object, what: str, remedy: str) -> list[Any]:
    if not is_list(given):
        raise CrowdveilError(f"{what} is {shown(given)}: give {remedy}")
    return list(given)


def answered_alike(
    offsets: IntArray, left: ValueArray, right: ValueArray, choices: SmallIntArray, repeat: BoolArray
) -> SmallIntArray:
    """Compare each voter's second answer to a dilemma with the first: 1 if they are the same, -1 if not.

    The rows of voter i are those from ``offsets[i]`` to ``offsets[i + 1]``, and ``repeat`` marks second answers. A
    repeat may be mirrored or not. The result is 0 if a voter has no second answer, more than one, or one to a dilemma
    that she has not answered otherwise.
    """
    voters = len(offsets) - 1
    counts = np.diff(offsets)
    whose = np.repeat(np.arange(voters), counts)
    second, first = np.full(voters, -1), np.full(voters, -1)
    second[whose[repeat]] = np.flatnonzero(repeat)
    again = second[whose]
    mirrored = (left == right[again]).all(axis=1) & (right == left[again]).all(axis=1)
    same = (left == left[again]).all(axis=1) & (right == right[again]).all(axis=1)
    found = np.flatnonzero((mirrored | same) & ~repeat)[::-1]
    first[whose[found]] = found  # the first of several wins, because it is written last
    whole = (first >= 0) & (np.bincount(whose[repeat], minlength=voters) == 1)
    turned = np.where(mirrored[first], -choices[second], choices[second])
    return np.where(whole, np.where(choices[first] == turned, 1, -1), 0).astype(np.int8)


def unknown_question(question: object, known: Iterable[str], where: str) -> CrowdveilError:
    """Return the error of a question about voters that ballots do not have."""
    if listed := ", ".join(known):
        return CrowdveilError(f"{where} do not say what voters' {question!r} is; the questions about them are {listed}")
    return CrowdveilError(
        f"{where} hold nothing that voters said of themselves, so no group can be made by {question!r}: import them "
        "again with their answers (import --about, or columns that the mapping names)"
    )
