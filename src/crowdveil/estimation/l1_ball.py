"""Voters' preferences inside the l1 ball: Eq. (3), the maximum of Eq. (2) subject to ||beta||_1 <= B.

Sums of floats depend on the order of their terms. A voter's records are therefore sorted before they are fitted, so
that the fit is a function of the set of records (with repetitions) and not of the order in which they were stored: bit
for bit.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.engines.engine import usable_cores
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.active_set import RIDGE, maximise, new_workspace
from crowdveil.estimation.probit import LANES, compiled, dot, inlined, padded

GAP_LIMIT = 1e-6
LARGEST_PRODUCT = 1e6  # of the norm bound and a difference

_EAGERNESS = 0.35
_TURNS_PER_THREAD = 8  # so that no thread waits long for the last one
_FEW_VOTERS = 50  # are fitted before threads have started
_GOLDEN = 0.6180339887498949  # the fractional parts of its multiples are well spread
_FEW = 512  # up to here, comparing all pairs is faster than sorting


@dataclass(frozen=True)
class BoundedFit:
    """The result of `fit_in_ball`, one row per voter."""

    values: FloatArray
    gaps: FloatArray
    """Upper bounds on how much log-likelihood the values miss."""
    iterations: IntArray


def fit_in_ball(
    differences: NDArray[Any], offsets: IntArray, norm_bound: float, threads: int | None = None
) -> BoundedFit:
    """Fit every voter: the rows offsets[i]:offsets[i+1] of `differences` are the records X - Z of voter i.

    `differences` is int8 or float64 and is not copied; `threads` is all usable cores unless given.

    What is promised for each voter, where B is the norm bound and |V| the largest difference:

    - ||values||_1 <= B (1 + 1e-12).
    - gaps = B max_k |g_k| - g . values (not less than 0) for the gradient g of Eq. (2) at the values returned. Eq. (2)
      is concave, so no point of the ball is better by more than that. It is at most GAP_LIMIT: so it was for every
      one of a million random voters, separable, contradictory or degenerate, with B |V| from 1e-6 to LARGEST_PRODUCT.
      Should it ever not be, it is still the gap of what is returned.
    - values depends on the voter's records, as a set with repetitions, and on B alone, bit for bit: not on the order of
      the records, on other voters, on the number of threads or on the processor.
    - values is the only maximiser of Eq. (2) minus (RIDGE/2) ||beta/B||^2, whatever method finds it: to a tenth of
      B 2^-30 for small integers, and to about 3e-10 B max(1, B |V|) where the records leave directions open and are
      themselves rounded. Where the likelihood gains less than 1e-6 in all of the ball's outer part, or in all of the
      ball (B |V| < 1e-6), the ridge decides, and values is shorter than B.

    A voter without records, or with records that are all zero, gets values 0 and gap 0.
    """
    if not 0 < norm_bound < np.inf:
        raise CrowdveilError(f"The norm bound is {norm_bound!r}; it must be a positive number, such as 2.")
    if threads is not None and not threads >= 1:
        raise CrowdveilError(f"{threads!r} threads were asked for; give 1 or more, or None for all cores.")
    largest = largest_difference(differences, offsets)
    if not largest * norm_bound <= LARGEST_PRODUCT:
        raise CrowdveilError(
            f"The largest difference, {largest}, times the norm bound, {norm_bound}, is above {LARGEST_PRODUCT:g}, "
            "where double precision can no longer tell a good fit from a bad one. Measure the features in larger units."
        )
    voters = offsets.size - 1
    features = differences.shape[1]
    result = BoundedFit(
        values=np.zeros((voters, features)),
        gaps=np.zeros(voters),
        iterations=np.zeros(voters, dtype=np.int64),
    )
    flat = np.ascontiguousarray(differences).reshape(-1)
    workers = threads if threads is not None else usable_cores()

    def fit(first: int, last: int) -> None:
        some = slice(first, last)
        _fit_some(
            flat, offsets[first : last + 1], float(norm_bound),
            result.values[some], result.gaps[some], result.iterations[some],
        )  # fmt: skip

    if voters <= _FEW_VOTERS:
        fit(0, voters)
        return result
    borders = np.linspace(0, voters, min(voters, workers * _TURNS_PER_THREAD) + 1).astype(int).tolist()
    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(fit, *pair) for pair in pairwise(borders)]:
            done.result()
    return result


def project_onto_l1_ball(vectors: FloatArray, radius: float) -> FloatArray:
    """The nearest point, in the Euclidean norm, of each row in the l1 ball (Duchi et al. 2008, Fig. 1).

    A row inside the ball is returned as it is; the others are soft-thresholded: sign(x) max(|x| - theta, 0), with the
    theta for which the norm is the radius.
    """
    if not 0 < radius < np.inf:
        raise CrowdveilError(f"The radius of an l1 ball is a positive number, not {radius!r}.")
    magnitudes = np.abs(vectors)
    descending = -np.sort(-magnitudes, axis=1)
    excess = np.cumsum(descending, axis=1) - radius
    ranks = np.arange(1, vectors.shape[1] + 1)
    support = np.count_nonzero(descending * ranks > excess, axis=1)  # at least 1 outside the ball
    theta = np.take_along_axis(excess, np.maximum(support - 1, 0)[:, None], axis=1) / np.maximum(support, 1)[:, None]
    shrunk = np.sign(vectors) * np.maximum(magnitudes - np.maximum(theta, 0.0), 0.0)
    result: FloatArray = np.where(magnitudes.sum(axis=1, keepdims=True) > radius, shrunk, vectors)
    # The difference of large numbers above may be off by more than the small radius can bear.
    result *= radius / np.maximum(np.abs(result).sum(axis=1, keepdims=True), radius)
    return result


@compiled
def _fit_some(
    flat: NDArray[Any], offsets: IntArray, norm_bound: float,
    values: FloatArray, gaps: FloatArray, iterations: IntArray,
) -> None:  # fmt: skip
    features = values.shape[1]
    most: Any = np.int64(0)  # of a type: a literal zero would have what takes it compiled twice
    for i in range(gaps.size):
        most = max(most, offsets[i + 1] - offsets[i])
    work = new_workspace(most, features)
    sorter = new_sorter(most, features)
    room = np.zeros(features * padded(most))
    for i in range(gaps.size):
        n = padded(offsets[i + 1] - offsets[i])
        columns = room[: features * n].reshape((features, n))
        records = flat[offsets[i] * features : offsets[i + 1] * features]
        fill_columns(records, norm_bound, sorter, columns)
        # The careful way, one atom at a time, is only needed where rounding misleads the eager one: where long
        # columns (1e4 and more) differ little.
        for eagerness, most_iterations in ((_EAGERNESS, 100), (0.0, 1000 + 20 * features)):
            count, converged = maximise(work, columns, eagerness, most_iterations)
            iterations[i] += count
            gaps[i] = _gap(work.gradient, work.beta)
            if converged and gaps[i] <= GAP_LIMIT:
                break
        for k in range(features):
            values[i, k] = norm_bound * work.beta[k]


@inlined
def _gap(gradient: FloatArray, beta: FloatArray) -> float:
    """The gap of the likelihood alone, from the gradient with the ridge."""
    top = 0.0
    level = 0.0
    for k in range(beta.size):
        slope = gradient[k] + RIDGE * beta[k]
        top = max(top, abs(slope))
        level += slope * beta[k]
    return max(0.0, top - level)


def largest_difference(differences: NDArray[Any], offsets: IntArray) -> float:
    """The largest magnitude among the differences, after checking that they and the offsets make sense."""
    if differences.ndim != 2 or differences.shape[1] == 0:
        raise CrowdveilError(f"The differences have shape {differences.shape}; give records x features.")
    if differences.dtype not in (np.int8, np.float64):
        raise CrowdveilError(f"The differences are {differences.dtype}; convert them to int8 or float64.")
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
            left = low
            middle = min(low + width, records)
            high = min(low + 2 * width, records)
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
