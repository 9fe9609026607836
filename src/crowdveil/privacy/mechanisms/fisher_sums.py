"""Integer sums of bounded scores, to which Fisher scoring adds noise, and their sensitivity.

A unit (a voter, or a record) adds to each coordinate of a sum an integer of at most SCORE_STEPS in absolute value. So
replacing a unit moves each coordinate by at most 2 SCORE_STEPS: the sensitivity in the max norm, as cube noise
(``noise.cube``) requires. The bound is enforced in integers, whatever the axes are and however floats are rounded.

Products are summed feature by feature, so that a score has the same bits on every machine and in every batch. (A matrix
product, whose order of summation varies, does not guarantee that.)
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.probit import mills
from crowdveil.estimation.scoring_step import ScoringStep

SCORE_STEPS = 2**20
SENSITIVITY = 2 * SCORE_STEPS
SQUARE_REACH = 4.0
"""Clip of the squares along an axis, in units of their public mean, 1."""


def first_sums(mixed: FloatArray, clip: float, by_voter: bool, lengths: bool, ballots: Ballots) -> IntArray:
    """Sum the scores of the first step, at a preference of zero, along the mixed axes and in units of the clip.

    A voter adds the mean over her records; a record adds itself. With ``lengths``, a voter also adds one over the
    number of her records, which determines the scatter of the means.
    """
    k = mixed.shape[1]
    total = np.zeros(k + 1, np.int64)
    _add_first(ballots.differences, ballots.offsets, np.ascontiguousarray(mixed), clip, by_voter, total)
    return total[: k + lengths]


def square_directions(axes: int, products: bool) -> FloatArray:
    """Return the directions (columns) along which squares are measured: the axes and, for products, their bisectors.

    The square along the bisector of two axes is half the sum of the squares along them, plus their product.
    """
    if not products:
        return np.eye(axes)
    first, second = np.triu_indices(axes, 1)
    return np.asarray(np.hstack([np.eye(axes), (np.eye(axes)[:, first] + np.eye(axes)[:, second]) / np.sqrt(2)]))


def square_sums(basis: FloatArray, by_voter: bool, ballots: Ballots) -> IntArray:
    """Sum the squares along each direction: of a voter the mean over her records, of a record its own."""
    total = np.zeros(basis.shape[1], np.int64)
    _add_squares(ballots.differences, ballots.offsets, np.ascontiguousarray(basis), by_voter, total)
    return total


def step_sums(mixed: FloatArray, step: ScoringStep, by_voter: bool, spread: bool, ballots: Ballots) -> IntArray:
    """Sum the scores at a step's start, in units of its clips, and with ``spread`` a measure of their scatter.

    By voter, that measure is the mean over the axes of factors of the squares of her clipped mean scores. By record, it
    is the mean over these axes of the square of the sum of a voter's n clipped scores, divided by 2 n. Replacing a
    record moves that sum, which is at most n, by at most 2, and its square by at most n^2 - (n - 2)^2 = 4 (n - 1). So
    the measure moves by less than 2 (by at most 1/2 if n is 1).
    """
    total = np.zeros(len(step.clips) + 1, np.int64)
    squared = len(step.clips) - step.sample.left_out if spread else 0
    inputs = (np.ascontiguousarray(mixed), step.mixed_start, step.instrument_clips, step.clips, by_voter, squared)
    _add_step(ballots.differences, ballots.offsets, *inputs, total)
    return total[: len(step.clips) + spread]


@numba.njit(cache=True, nogil=True)
def _steps(value: float) -> int:
    """Clip a number to [-1, 1] and return it in steps. NaN becomes -1."""
    if value >= 1.0:
        return SCORE_STEPS
    if value > -1.0:
        return int(value * SCORE_STEPS)
    return -SCORE_STEPS


@numba.njit(cache=True, nogil=True)
def _look(differences: Any, j: int, basis: Any, along: Any) -> None:
    """Write the scores of record j along the axes into ``along``."""
    along[:] = 0.0
    for f in range(basis.shape[0]):
        value = float(differences[j, f])
        if value != 0.0:  # most are zero
            for a in range(basis.shape[1]):
                along[a] += value * basis[f, a]


@numba.njit(cache=True, nogil=True)
def _add_first(differences: Any, offsets: Any, basis: Any, clip: float, by_voter: bool, total: Any) -> None:
    """Sum the means, then one over the length of ballots."""
    k = basis.shape[1]
    along = np.empty(k)
    means = np.empty(k)
    for i in range(len(offsets) - 1):
        means[:] = 0.0
        for j in range(offsets[i], offsets[i + 1]):
            _look(differences, j, basis, along)
            for a in range(k):
                if by_voter:
                    means[a] += along[a]
                else:
                    total[a] += _steps(along[a] / clip)
        records = offsets[i + 1] - offsets[i]
        if by_voter and records > 0:
            for a in range(k):
                total[a] += _steps(means[a] / records / clip)
            total[k] += _steps(2.0 / records - 1.0)


@numba.njit(cache=True, nogil=True)
def _add_squares(differences: Any, offsets: Any, basis: Any, by_voter: bool, total: Any) -> None:
    k = basis.shape[1]
    along = np.empty(k)
    sizes = np.empty(k)
    for i in range(len(offsets) - 1):
        sizes[:] = 0.0
        for j in range(offsets[i], offsets[i + 1]):
            _look(differences, j, basis, along)
            for a in range(k):
                size = min(along[a] * along[a] / SQUARE_REACH, 1.0)
                if by_voter:
                    sizes[a] += size
                else:
                    total[a] += _steps(2.0 * size - 1.0)
        records = offsets[i + 1] - offsets[i]
        if by_voter and records > 0:
            for a in range(k):
                total[a] += _steps(2.0 * sizes[a] / records - 1.0)


@numba.njit(cache=True, nogil=True)
def _add_step(
    differences: Any,
    offsets: Any,
    basis: Any,
    preference: Any,
    reach: Any,
    clips: Any,
    by_voter: bool,
    squared: int,
    total: Any,
) -> None:
    k = basis.shape[1]
    along = np.empty(k)
    scores = np.empty(k)
    for i in range(len(offsets) - 1):
        scores[:] = 0.0
        records = offsets[i + 1] - offsets[i]
        if records == 0:
            continue
        for j in range(offsets[i], offsets[i + 1]):
            _look(differences, j, basis, along)
            margin = 0.0
            for a in range(k):
                margin += along[a] * preference[a]
            ours, theirs = mills(margin), mills(-margin)
            larger = max(ours, theirs)  # at least 0.79, at a margin of 0
            for a in range(k):
                score = min(max(along[a] * larger, -reach[a]), reach[a]) * (ours / larger) / clips[a]
                if by_voter:
                    scores[a] += score
                else:
                    steps = _steps(score)
                    total[a] += steps
                    scores[a] += steps / SCORE_STEPS
        squares = 0.0
        for a in range(k):
            if by_voter:
                steps = _steps(scores[a] / records)
                total[a] += steps
                scores[a] = steps / SCORE_STEPS
            if a < squared:
                squares += scores[a] * scores[a]
        if squared > 0 and by_voter:
            total[k] += _steps(2.0 * squares / squared - 1.0)
        elif squared > 0:
            total[k] += int(squares / (2.0 * records * squared) * SCORE_STEPS)
