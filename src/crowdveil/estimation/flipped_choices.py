"""One preference for all, fitted to choices of which some were turned over with a known probability.

Voters differ. If their preferences are N(b, tau^2 I), a random voter chooses v with probability
Phi(b . v / sqrt(1 + tau^2 |v|^2)): the longer a dilemma, the more of its margin is a matter of whom one asks. Stated
for the dilemma of mean square length l^2, beta = b / sqrt(1 + tau^2 l^2) is what a fit that ignores the differences
finds too, only less exactly. So a side is reported as chosen with probability

    f + (1 - 2f) Phi(r beta . v),    r = sqrt((1 + tau^2 l^2) / (1 + tau^2 |v|^2)),

where f is the chance of a flip. The likelihood of all reported choices, with a weak prior N(0, 1) on each coordinate,
is maximised by Fisher scoring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray, IntArray, ValueArray

DISAGREEMENT = 0.5
"""tau: how far voters' own preferences are assumed to lie from the common one. It affects accuracy only."""
_ROUNDS = 100
_SETTLED = 1e-10


@dataclass(frozen=True)
class FlippedChoices:
    """Reported choices of some voters: a row of ``chosen`` is X - Z for what the report says was chosen."""

    chosen: ValueArray
    offsets: IntArray
    flip: FloatArray
    weight: FloatArray


@dataclass(frozen=True)
class PooledFit:
    """A preference for all, and the covariance of its error."""

    preference: FloatArray
    covariance: FloatArray
    """Of the sandwich form, clustered by voter: right even where voters differ among each other."""


def fit_flipped_choices(groups: Sequence[FlippedChoices]) -> PooledFit:
    """Fit one preference to the choices of all groups."""
    preference = np.zeros(groups[0].chosen.shape[1])
    reaches = _reaches(groups)
    slope, information, _, current = _evaluate(groups, reaches, preference)
    for _ in range(_ROUNDS):
        step = np.linalg.solve(information, slope)
        reached = _evaluate(groups, reaches, preference + step)
        while reached[3] < current and np.abs(step).max() > _SETTLED:
            step = step / 2
            reached = _evaluate(groups, reaches, preference + step)
        preference = preference + step
        slope, information, _, current = reached
        if np.abs(step).max() <= _SETTLED:
            break
    _, information, spread, _ = _evaluate(groups, reaches, preference)
    inverse = np.linalg.inv(information)
    return PooledFit(preference, np.asarray(inverse @ spread @ inverse, np.float64))


def _reaches(groups: Sequence[FlippedChoices]) -> list[FloatArray]:
    """Return r of every record."""
    squares = [np.square(group.chosen, dtype=np.float64).sum(axis=1) for group in groups]
    typical = sum(float(square.sum()) for square in squares) / sum(len(square) for square in squares)
    return [np.sqrt((1 + DISAGREEMENT**2 * typical) / (1 + DISAGREEMENT**2 * square)) for square in squares]


def _evaluate(
    groups: Sequence[FlippedChoices], reaches: Sequence[FloatArray], preference: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return slope, expected information, spread of the voters' slopes, and the objective itself."""
    slope, information = -preference, np.eye(len(preference))
    spread, objective = np.zeros_like(information), -0.5 * float(preference @ preference)
    for group, reach in zip(groups, reaches, strict=True):
        margins = reach * (group.chosen @ preference)
        honest = 1 - 2 * group.flip
        probability = group.flip + honest * ndtr(margins)
        density = reach * honest * np.exp(-0.5 * margins**2) / np.sqrt(2 * np.pi)
        objective += float(group.weight @ np.log(np.maximum(probability, 1e-300)))
        pull = group.weight * density / np.maximum(probability, 1e-300)
        curve = group.weight * density**2 / np.maximum(probability * (1 - probability), 1e-300)
        information = information + (group.chosen * curve[:, None]).T @ group.chosen
        slopes = np.add.reduceat(group.chosen * pull[:, None], group.offsets[:-1], axis=0)
        slope = slope + slopes.sum(axis=0)
        spread += slopes.T @ slopes
    return slope, information, spread, objective
