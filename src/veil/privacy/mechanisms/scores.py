"""Scores on integers: what the score mechanisms release, and how far one record or one voter can move it.

A record's score along each axis of the study's public design is a number in [-1, 1] (``Design.scores``), kept as a
whole number of 2^-20 steps. So whatever a record says, its integer scores are at most SCORE_STEPS in size, and
replacing a record moves each coordinate of a sum of scores by at most 2 SCORE_STEPS: the sensitivity in the max norm,
which is what noise on the cube (``noise.cube``) needs. Nothing of this depends on how the axes were found.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from veil.ballots import Ballots
from veil.preference.design import Design, public_design
from veil.privacy.mechanisms.mechanism import FloatArray, IntArray, Settings

T = TypeVar("T", float, FloatArray)

SCORE_STEPS = 2**20
RECORD_SENSITIVITY = 2 * SCORE_STEPS

DISAGREEMENT = 0.15
"""How far voters' own mean scores are assumed to lie apart where a mechanism is tuned. It affects accuracy only."""


def voter_scores(ballots: Ballots, settings: Settings) -> IntArray:
    """Sum the integer scores of each voter's records."""
    return np.add.reduceat(record_scores(ballots, public_design(settings.study)), ballots.offsets[:-1], axis=0)


def record_scores(ballots: Ballots, design: Design) -> IntArray:
    """Score every record along the design's axes, in whole steps."""
    steps = np.trunc(design.scores(ballots.differences) * SCORE_STEPS).astype(np.int64)
    return np.clip(steps, -SCORE_STEPS, SCORE_STEPS)


def cube_variance(sensitivity: T, epsilon: float, dimension: T | int) -> T:
    """Variance of one coordinate of noise with density proportional to exp(-epsilon |x|_max / sensitivity).

    The radius is Gamma(d + 1) of scale s / epsilon and the coordinates are uniform within it: E R^2 / 3.
    """
    return (sensitivity / epsilon) ** 2 * (dimension + 1) * (dimension + 2) / 3


def expected_square(design: Design, records: T) -> T:
    """Model the mean square of a voter's summed score: answers of mean square v, from voters who disagree."""
    return records * design.score_size + (records * DISAGREEMENT) ** 2
