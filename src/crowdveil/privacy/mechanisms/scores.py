"""Scores on integers: what the score mechanisms release, and how far one record or one voter can move it.

A record's score along each axis of the study's public design is a number in [-1, 1] (``Design.scores``), kept as a
whole number of 2^-20 steps. So whatever a record says, its integer scores are at most SCORE_STEPS in size, and
replacing a record moves each coordinate of a sum of scores by at most 2 SCORE_STEPS: the sensitivity in the max norm,
which is what noise on the cube (``noise.cube``) needs. Nothing of this depends on how the axes were found.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numba
import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots import Ballots
from crowdveil.estimation.design import CLIP, Design, public_design
from crowdveil.privacy.mechanisms.mechanism import Settings

T = TypeVar("T", float, FloatArray)

SCORE_STEPS = 2**20
RECORD_SENSITIVITY = 2 * SCORE_STEPS

DISAGREEMENT = 0.15
"""Assumed distance between voters' own mean scores, where a mechanism is tuned. It affects accuracy only."""


def voter_scores(ballots: Ballots, settings: Settings) -> IntArray:
    """Sum the integer scores of each voter's records."""
    return _scores(ballots, ballots.offsets, public_design(settings.study).basis)


def sum_of_scores(axes: FloatArray, clip: int | None, ballots: Ballots) -> IntArray:
    """Add up all voters' integer scores along these axes, each voter's kept within [-clip, clip] if that is given."""
    scores = _scores(ballots, ballots.offsets, axes)
    total: IntArray = (scores if clip is None else np.clip(scores, -clip, clip)).sum(axis=0)
    return total


def _scores(ballots: Ballots, offsets: IntArray, axes: FloatArray) -> IntArray:
    result = np.zeros((len(offsets) - 1, axes.shape[1]), np.int64)
    _add_scores(ballots.differences, offsets, np.ascontiguousarray(axes / CLIP), result)
    return result


@numba.njit(cache=True, nogil=True)
def _add_scores(differences: Any, offsets: Any, axes: Any, result: Any) -> None:
    """Add up the scores of the records offsets[i]:offsets[i + 1] in row i.

    A record's products are added up feature by feature: a score has the same bits on every machine, and whichever
    other records there are. (Those of a matrix product, which adds in an order of its own, have not.)
    """
    along = np.empty(axes.shape[1])
    for i in range(len(result)):
        for j in range(offsets[i], offsets[i + 1]):
            along[:] = 0.0
            for k in range(axes.shape[0]):
                value = float(differences[j, k])
                if value != 0.0:  # most are
                    for a in range(axes.shape[1]):
                        along[a] += value * axes[k, a]
            for a in range(axes.shape[1]):
                # Kept within the steps whatever came in; what is not a number, too.
                if along[a] >= 1.0:
                    result[i, a] += SCORE_STEPS
                elif along[a] > -1.0:
                    result[i, a] += int(along[a] * SCORE_STEPS)
                else:
                    result[i, a] -= SCORE_STEPS


def cube_variance(sensitivity: T, epsilon: float, dimension: T | int) -> T:
    """Variance of one coordinate of noise with density proportional to exp(-epsilon |x|_max / sensitivity).

    The radius is Gamma(d + 1) of scale s / epsilon and the coordinates are uniform within it: E R^2 / 3.
    """
    return (sensitivity / epsilon) ** 2 * (dimension + 1) * (dimension + 2) / 3


def expected_square(design: Design, records: T) -> T:
    """Model the mean square of a voter's summed score: records of mean square v, from voters who disagree."""
    return records * design.score_size + (records * DISAGREEMENT) ** 2
