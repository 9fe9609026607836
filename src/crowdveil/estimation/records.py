"""One voter's records, made ready for the solver: scaled, one feature after another, in canonical order.

Sums of floats depend on the order of their terms. The records are therefore sorted first, so that the fit is a
function of the set of records (with repetitions) and not of the order in which they were stored: bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.kernel import LANES, compiled, dot, inlined, padded

_GOLDEN = 0.6180339887498949  # the fractional parts of its multiples are well spread
_FEW = 512  # up to here, comparing all pairs is faster than sorting


def largest_difference(differences: NDArray[Any], offsets: IntArray) -> float:
    """The largest magnitude among the differences, after checking that they and the offsets make sense."""
    if differences.ndim != 2 or differences.shape[1] == 0:
        raise CrowdveilError(f"The differences have shape {differences.shape}; give records x features.")
    if differences.dtype not in (np.int8, np.float32, np.float64):
        raise CrowdveilError(f"The differences are {differences.dtype}; convert them to int8, float32 or float64.")
    if (
        offsets.ndim != 1
        or offsets.dtype != np.int64
        or offsets.size == 0
        or offsets[0] != 0
        or offsets[-1] != differences.shape[0]
        or np.any(offsets[1:] < offsets[:-1])
    ):
        raise CrowdveilError(
            f"The offsets must be int64 and rise from 0 to the number of records, {differences.shape[0]}: "
            "voter i has the records offsets[i]:offsets[i+1]."
        )
    if differences.size == 0:
        return 0.0
    largest = max(float(differences.max()), -float(differences.min()))
    if not largest < np.inf:  # nor if it is not a number
        raise CrowdveilError(
            "A difference between two outcomes' features is not a finite number; leave that record out."
        )
    return largest


class Sorter(NamedTuple):
    """The sorting weights, and arrays that `fill_columns` overwrites."""

    weights: FloatArray  # per feature: a record's key is its product with these. Equal records have equal keys
    rows: FloatArray
    keys: FloatArray
    order: IntArray
    spare: IntArray
    rank: IntArray


@compiled
def new_sorter(records: int, features: int) -> Sorter:
    """A sorter for voters of at most this many records."""
    weights = np.zeros(padded(features))
    for k in range(features):
        weights[k] = (_GOLDEN * (k + 1)) % 1.0
    return Sorter(
        weights,
        np.zeros(records * features + LANES),  # `dot` reads beyond the last record, with weight zero
        np.zeros(records),
        np.zeros(records, dtype=np.int64),
        np.zeros(records, dtype=np.int64),
        np.zeros(records, dtype=np.int64),
    )


@compiled
def fill_columns(flat: Any, norm_bound: float, sorter: Sorter, columns: FloatArray) -> None:
    """Fill columns (features x padded records) with norm_bound times the records in flat, sorted.

    `flat` holds the voter's records one after another.
    """
    weights, rows, keys, order, spare, rank = sorter
    features, padded_records = columns.shape
    records = flat.size // features
    for i in range(flat.size):
        rows[i] = norm_bound * flat[i]
    for j in range(records):
        keys[j] = dot(rows, j * features, weights, 0, weights.size)
    if records > _FEW or not _rank_distinct(keys, records, rank):
        _rank_any(rows, keys, records, features, order, spare, rank)
    for k in range(features):
        for j in range(records, padded_records):
            columns[k, j] = 0.0
    for j in range(records):
        for k in range(features):
            columns[k, rank[j]] = rows[j * features + k]


@compiled
def _rank_distinct(keys: FloatArray, records: int, rank: IntArray) -> bool:
    """Rank the keys by comparing all pairs, without a branch; False if two are equal."""
    for j in range(records):
        rank[j] = 0
    for i in range(records):
        key = keys[i]
        for j in range(records):
            rank[j] += key < keys[j]
    total = 0
    for j in range(records):
        total += rank[j]
    return 2 * total == records * (records - 1)


@compiled
def _rank_any(
    rows: FloatArray, keys: FloatArray, records: int, features: int, order: IntArray, spare: IntArray, rank: IntArray
) -> None:
    """Rank by key and, where keys are equal, by features: merge sort, for many records or equal ones."""
    for j in range(records):
        order[j] = j
    width = 1
    while width < records:
        for low in range(0, records, 2 * width):
            left, middle, high = low, min(low + width, records), min(low + 2 * width, records)
            right = middle
            for i in range(low, high):
                if right == high or (left < middle and not _precedes(rows, keys, features, order[right], order[left])):
                    spare[i] = order[left]
                    left += 1
                else:
                    spare[i] = order[right]
                    right += 1
        order, spare = spare, order
        width *= 2
    for j in range(records):
        rank[order[j]] = j


@inlined
def _precedes(rows: FloatArray, keys: FloatArray, features: int, one: int, other: int) -> bool:
    if keys[one] != keys[other]:
        return bool(keys[one] < keys[other])
    for k in range(features):
        if rows[one * features + k] != rows[other * features + k]:
            return bool(rows[one * features + k] < rows[other * features + k])
    return False
