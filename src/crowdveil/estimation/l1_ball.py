"""Voters' preferences inside the l1 ball: Eq. (3), the maximum of Eq. (2) subject to ||beta||_1 <= B."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.engines.local import usable_cores
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.active_set import maximise, new_workspace
from crowdveil.estimation.kernel import compiled, inlined, padded
from crowdveil.estimation.quadratic_model import RIDGE
from crowdveil.estimation.records import fill_columns, largest_difference, new_sorter

GAP_LIMIT = 1e-6
LARGEST_PRODUCT = 1e6  # of the norm bound and a difference

_EAGERNESS = 0.35
_CHUNKS_PER_THREAD = 8  # so that no thread waits long for the last one


@dataclass(frozen=True)
class BoundedFit:
    """What `fit_in_ball` returns, one row per voter."""

    values: FloatArray
    gaps: FloatArray
    """Upper bounds on how much log-likelihood the values miss."""
    iterations: IntArray


def fit_in_ball(
    differences: NDArray[Any], offsets: IntArray, norm_bound: float, threads: int | None = None
) -> BoundedFit:
    """Fit every voter: the rows offsets[i]:offsets[i+1] of `differences` are the records X - Z of voter i.

    `differences` is int8, float32 or float64 and is not copied; `threads` is all usable cores unless given.

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
            "where double precision can no longer tell good answers from bad ones. Measure the features in larger units."
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
        chunk = slice(first, last)
        _fit_chunk(
            flat, offsets[first : last + 1], float(norm_bound),
            result.values[chunk], result.gaps[chunk], result.iterations[chunk],
        )  # fmt: skip

    borders = np.linspace(0, voters, min(voters, workers * _CHUNKS_PER_THREAD) + 1).astype(int).tolist()
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
def _fit_chunk(
    flat: NDArray[Any], offsets: IntArray, norm_bound: float,
    values: FloatArray, gaps: FloatArray, iterations: IntArray,
) -> None:  # fmt: skip
    features = values.shape[1]
    most = 0
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
