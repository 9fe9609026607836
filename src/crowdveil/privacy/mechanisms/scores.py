"""Scores on integers: what the score mechanisms release, and how far one record or one voter can move it.

A record's score along each axis (``record_axes``) is a sum of products of integers, kept within
[-RECORD_CLIP, RECORD_CLIP]. So whatever a record says, replacing it moves each coordinate of a sum of scores by at most
2 RECORD_CLIP: the sensitivity in the max norm, which is what noise on the cube (``noise.cube``) needs. Nothing of this
depends on how the axes were found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numba
import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.design import CLIP, GRID, public_design
from crowdveil.estimation.record_axes import RecordAxes, record_axes
from crowdveil.estimation.tilted_design import moment_count, moments

T = TypeVar("T", float, FloatArray)

RECORD_CLIP = round(CLIP * GRID)
RECORD_SENSITIVITY = 2 * RECORD_CLIP
LARGEST_SCORE = 2**40
"""Beyond any score of a dilemma of a study: sums of whole ballots stay within 64 bits, and a browser's 53."""

DISAGREEMENT = 0.15
"""Assumed distance between voters' own mean scores, where a mechanism is tuned. It affects accuracy only."""


@dataclass(frozen=True)
class Scoring:
    """What a device needs to know to score its voter's records. Privacy does not rest on it."""

    axes: IntArray
    units: FloatArray
    clip: int


def record_scores(ballots: Ballots) -> IntArray:
    """Sum the integer scores of each voter's records on the axes of records, each kept within the clip."""
    return _voter_sums(ballots, record_axes(ballots.study).axes, RECORD_CLIP)


def record_moments(ballots: Ballots, rows: IntArray) -> IntArray:
    """Sum the moments of the dilemmas (``tilted_design``) of some voters, each a whole number within the clip.

    The others have zeros. A moment is the same whichever side was chosen.
    """
    design = public_design(ballots.study)
    result = np.zeros((ballots.voters, moment_count(design.directions)), np.int64)
    of_these = ballots.take(rows)
    # Not a matrix product, whose last digit depends on what else it multiplies.
    along = np.einsum("jf,fk->jk", of_these.differences.astype(np.float64), design.basis)
    whole = np.rint(np.nan_to_num(moments(along)) * RECORD_CLIP).astype(np.int64)
    kept = np.clip(whole, -RECORD_CLIP, RECORD_CLIP)
    so_far = np.vstack([np.zeros((1, kept.shape[1]), np.int64), kept.cumsum(axis=0)])
    result[rows] = so_far[of_these.offsets[1:]] - so_far[of_these.offsets[:-1]]
    return result


def voter_scores(ballots: Ballots, clip: int = LARGEST_SCORE) -> IntArray:
    """Sum the integer scores of each voter's records along the rotated axes, each kept within [-clip, clip]."""
    return _voter_sums(ballots, public_design(ballots.study).rotated.axes, clip)


def _voter_sums(ballots: Ballots, axes: IntArray, clip: int) -> IntArray:
    result = np.zeros((ballots.voters, axes.shape[1]), np.int64)
    units = public_design(ballots.study).units
    _add_scores(ballots.differences, ballots.offsets, units, axes.astype(np.float64), clip, result)
    return result


@numba.njit(cache=True, nogil=True)
def _add_scores(differences: Any, offsets: Any, units: Any, axes: Any, clip: Any, result: Any) -> None:
    """Add up the scores of the records offsets[i]:offsets[i + 1] in row i.

    Numbers are floats that hold integers: exact below 2^53, which no dilemma of a study comes near, and added up
    feature by feature, so that even beyond it they have the same bits on every machine.
    """
    along = np.empty(axes.shape[1])
    for i in range(len(result)):
        for j in range(offsets[i], offsets[i + 1]):
            along[:] = 0.0
            for k in range(axes.shape[0]):
                value = np.floor(float(differences[j, k]) * units[k] + 0.5)
                if value != 0.0:  # most are
                    for a in range(axes.shape[1]):
                        along[a] += value * axes[k, a]
            for a in range(axes.shape[1]):
                # Kept within the clip whatever came in; what is not a number, too.
                if along[a] >= clip:
                    result[i, a] += clip
                elif along[a] > -clip:
                    result[i, a] += int(along[a])
                else:
                    result[i, a] -= clip


def cube_variance(sensitivity: T, epsilon: float, dimension: T | int) -> T:
    """Variance of one coordinate of noise with density proportional to exp(-epsilon |x|_max / sensitivity).

    The radius is Gamma(d + 1) of scale s / epsilon and the coordinates are uniform within it: E R^2 / 3.
    """
    return (sensitivity / epsilon) ** 2 * (dimension + 1) * (dimension + 2) / 3


def expected_square(axes: RecordAxes, records: T) -> T:
    """Model the mean square of a voter's summed score: records of mean square v, from voters who disagree."""
    return records * axes.size + (records * DISAGREEMENT) ** 2
