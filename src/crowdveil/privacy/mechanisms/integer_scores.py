"""Integer scores, which the score mechanisms release with noise, and their sensitivity.

A record's score along each axis (``record_axes``) is a sum of products of integers, clipped to
[-RECORD_CLIP, RECORD_CLIP]. So replacing any record by any other moves each coordinate of a sum of scores by at most
2 RECORD_CLIP: the sensitivity in the max norm, as cube noise (``noise.cube``) requires. This does not depend on how the
axes were computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numba
import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.design import CLIP, GRID, measured_design
from crowdveil.estimation.record_axes import RecordAxes, record_axes
from crowdveil.estimation.tilted_design import moment, moment_axes
from crowdveil.study.study import Study

T = TypeVar("T", float, FloatArray)

RECORD_CLIP = round(CLIP * GRID)
RECORD_SENSITIVITY = 2 * RECORD_CLIP
LARGEST_SCORE = 2**40
"""More than any score of a study's dilemma. Sums over whole ballots fit into 64 bits, and into a browser's 53."""

_AT_ONCE = 64
"""Records of a voter that are scored at once. Their values stay in the processor's cache."""

DISAGREEMENT = 0.15
"""Assumed standard deviation of voters' own mean scores, used to tune a mechanism. It affects accuracy only."""


@dataclass(frozen=True)
class ScoringParameters:
    """The parameters that a device needs to score its voter's records. Privacy does not depend on them."""

    axes: IntArray
    units: FloatArray
    clip: int
    records: int | None = None
    """The most records that are scored; None: all."""


def record_scores(
    ballots: Ballots, study: Study, voters: IntArray | None = None, chosen: IntArray | None = None
) -> IntArray:
    """Sum the integer scores of the records of each voter, or of some, on a study's axes of records, each clipped.

    ``chosen`` are the axes that each voter (row) is scored on, if not all.
    """
    return _voter_sums(ballots, voters, chosen, record_axes(study).axes, measured_design(study).units, RECORD_CLIP)


def record_moments(ballots: Ballots, study: Study, voters: IntArray, chosen: IntArray) -> IntArray:
    """Sum the moments of the dilemmas (``tilted_design``) of some voters, each an integer within the clip.

    ``chosen`` are the moments that each voter (row) is asked for. None depends on which side was preferred.
    """
    design = measured_design(study)
    first, second = moment_axes(design.directions)
    result = np.zeros(chosen.shape, np.int64)
    _add_moments(ballots.dilemmas, ballots.offsets, voters, first[chosen], second[chosen], design.basis, result)
    return result


def voter_scores(ballots: Ballots, study: Study, clip: int = LARGEST_SCORE) -> IntArray:
    """Sum the integer scores of each voter's records along a study's rotated axes, each clipped to [-clip, clip]."""
    design = measured_design(study)
    return _voter_sums(ballots, None, None, design.rotated.axes, design.units, clip)


def _voter_sums(
    ballots: Ballots, voters: IntArray | None, chosen: IntArray | None, axes: IntArray, units: FloatArray, clip: int
) -> IntArray:
    voters = np.arange(ballots.voters) if voters is None else voters
    chosen = np.tile(np.arange(axes.shape[1]), (len(voters), 1)) if chosen is None else chosen
    # Differences are not copied out of the dilemmas, unless a record without a choice has to be refused.
    dilemmas = ballots.dilemmas if ballots.choices.all() else ballots.differences
    signs = ballots.choices.astype(np.float64)
    result = np.zeros(chosen.shape, np.int64)
    _add_scores(dilemmas, signs, ballots.offsets, voters, chosen, units, axes.astype(np.float64), clip, result)
    return result


@numba.njit(cache=True, nogil=True)
def _add_scores(
    dilemmas: Any, signs: Any, offsets: Any, voters: Any, chosen: Any, units: Any, axes: Any, clip: Any, result: Any
) -> None:
    """Sum the scores of the records offsets[i]:offsets[i + 1] of some voters i on some axes, one voter per row.

    Numbers are floats that hold integers. They are exact below 2^53, far above any dilemma of a study, and summed
    feature by feature, so that even beyond it they have the same bits on every machine. Several records are scored at
    once: the inner loop is over them.
    """
    values = np.empty((axes.shape[0], _AT_ONCE))
    along = np.empty(_AT_ONCE)
    largest = float(clip)
    for row, i in enumerate(voters):
        for begin in range(offsets[i], offsets[i + 1], _AT_ONCE):
            count = min(offsets[i + 1] - begin, _AT_ONCE)
            for j in range(count):
                for k in range(axes.shape[0]):
                    difference = signs[begin + j] * float(dilemmas[begin + j, k])
                    values[k, j] = np.floor(difference * units[k] + 0.5)
            for place in range(chosen.shape[1]):
                along[:] = 0.0
                for k in range(axes.shape[0]):
                    weight = axes[k, chosen[row, place]]
                    for j in range(count):
                        along[j] += values[k, j] * weight
                for j in range(count):
                    # The clip holds for any input: NaN is not above -largest.
                    score = along[j] if along[j] > -largest else -largest
                    result[row, place] += int(score if score < largest else largest)


@numba.njit(cache=True, nogil=True)
def _add_moments(dilemmas: Any, offsets: Any, voters: Any, first: Any, second: Any, basis: Any, result: Any) -> None:
    """Sum the moments of the dilemmas offsets[i]:offsets[i + 1] of some voters i, one voter per row, in integer steps.

    ``first`` and ``second`` are the axes of each moment. A dilemma's contrasts are summed feature by feature, so that a
    moment depends on no other dilemma, nor on the machine. The negated dilemma has the same moments.
    """
    values = np.empty((basis.shape[0], _AT_ONCE))
    along = np.empty((2, _AT_ONCE))
    for row, i in enumerate(voters):
        for begin in range(offsets[i], offsets[i + 1], _AT_ONCE):
            count = min(offsets[i + 1] - begin, _AT_ONCE)
            for j in range(count):
                for k in range(basis.shape[0]):
                    values[k, j] = float(dilemmas[begin + j, k])
            for place in range(result.shape[1]):
                x, y = first[row, place], second[row, place]
                along[:] = 0.0
                for k in range(basis.shape[0]):
                    for j in range(count):
                        along[0, j] += values[k, j] * basis[k, x]
                        along[1, j] += values[k, j] * basis[k, y]
                for j in range(count):
                    value = moment(along[0, j], along[1, j], x == y)
                    if -1.0 <= value <= 1.0:  # whatever the input: NaN counts as zero
                        result[row, place] += int(np.rint(value * RECORD_CLIP))


def cube_variance(sensitivity: T, epsilon: float, dimension: T | int) -> T:
    """Return the variance of a coordinate of noise with density proportional to exp(-epsilon |x|_max / sensitivity).

    It is E R^2 / 3: the radius R is Gamma(d + 1) with scale s / epsilon, and the coordinates are uniform within it.
    """
    return (sensitivity / epsilon) ** 2 * (dimension + 1) * (dimension + 2) / 3


def truncated(noisy: IntArray, largest: IntArray, scale: FloatArray) -> IntArray:
    """Return estimates of integers within [-L, L] from values with discrete Laplace noise, which beat the values.

    Theorem. Let P(X = x) be proportional to q^|x|, and psi(v) = v for |v| <= L, otherwise L + 1 / (1 - q) with the sign
    of v. For every integer s within [-L, L], E psi(s + X) = s, and

        Var psi(s + X) = (2 q - q^(L + 2) (q^s + q^-s) / (1 + q)) / (1 - q)^2,

    which is less than Var X = 2 q / (1 - q)^2.

    Proof. P is the Green's function of f -> f - c (f(. + 1) - 2 f + f(. - 1)) with c = q / (1 - q)^2: if the image of a
    bounded g is psi, then g = E psi(. + X). Take g(v) = v within [-L, L], and beyond it L + (1 - q^(|v| - L)) / (1 - q)
    with the sign of v. Within, its second differences vanish, also at the ends, where g rises by 1 on both sides.
    Beyond, the image of the constant is the constant, and that of q^|v| is 0. So the image of g is psi. In the same
    way, E psi(. + X)^2 is v^2 + 2 c + A (q^v + q^-v) within, and (L + 1 / (1 - q))^2 + B q^|v| beyond. That the two
    agree at L and at L + 1 gives A.

    In fine steps, with b = 1 / (1 - q), the variance is b^2 (2 - e^(-L / b) cosh(s / b)); ``truncated_variance`` is
    that at s = 0, where it is largest.

    ``scale`` is 1 / ln(1 / q). The constant is rounded to an integer, which is one part in a million of a clip.
    """
    beyond = np.rint(largest + 1 / -np.expm1(-1 / scale)).astype(np.int64)
    return np.where(np.abs(noisy) <= largest, noisy, np.sign(noisy) * beyond)


def truncated_variance(largest: FloatArray, scale: FloatArray) -> FloatArray:
    """Return a bound on the variance of ``truncated`` estimates of numbers within [-largest, largest]."""
    return np.asarray(scale**2 * (2 - np.exp(-largest / scale)), np.float64)


def expected_square(axes: RecordAxes, records: T) -> T:
    """Return the modelled mean square of a voter's summed score, given voters who differ by DISAGREEMENT."""
    return records * axes.size + (records * DISAGREEMENT) ** 2
