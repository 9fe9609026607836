"""One preference for all, fitted to choices of which some were turned over with a known probability.

Voters differ. If their preferences are N(b, tau^2 I), a random voter chooses v with probability
Phi(b . v / sqrt(1 + tau^2 |v|^2)): the longer a dilemma, the more of its margin is a matter of whom one asks. Stated
for the dilemma of mean square length l^2, beta = b / sqrt(1 + tau^2 l^2) is what a fit that ignores the differences
finds too, only less exactly. So a side is reported as chosen with probability

    f + (1 - 2f) Phi(r beta . v),    r = sqrt((1 + tau^2 l^2) / (1 + tau^2 |v|^2)),

where f is the chance of a flip. The likelihood of all reported choices, with a weak prior N(0, 1) on each coordinate,
is maximised by Newton steps; where it is not concave, by Fisher scoring.
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
_ROUNDING = 1e-13
_CONCAVE = 1e-3
"""Least curvature along any direction, of which the prior alone has 1, for a Newton step to be trusted."""
_LEAST = 1e-300


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
    objective, slope, curvature = _evaluate(groups, reaches, preference)
    for _ in range(_ROUNDS):
        if np.linalg.eigvalsh(curvature)[0] < _CONCAVE:
            curvature, _ = _information(groups, reaches, preference)
        step = np.linalg.solve(curvature, slope)
        reached = _evaluate(groups, reaches, preference + step)
        # What rounding takes from a sum of so many terms is no fall.
        while reached[0] < objective - _ROUNDING * abs(objective) and np.abs(step).max() > _SETTLED:
            step = step / 2
            reached = _evaluate(groups, reaches, preference + step)
        preference = preference + step
        objective, slope, curvature = reached
        if np.abs(step).max() <= _SETTLED:
            break
    information, spread = _information(groups, reaches, preference)
    inverse = np.linalg.inv(information)
    return PooledFit(preference, np.asarray(inverse @ spread @ inverse, np.float64))


def _reaches(groups: Sequence[FlippedChoices]) -> list[FloatArray]:
    """Return r of every record."""
    squares = [np.square(group.chosen, dtype=np.float64).sum(axis=1) for group in groups]
    typical = sum(float(square.sum()) for square in squares) / sum(len(square) for square in squares)
    return [np.sqrt((1 + DISAGREEMENT**2 * typical) / (1 + DISAGREEMENT**2 * square)) for square in squares]


def _evaluate(
    groups: Sequence[FlippedChoices], reaches: Sequence[FloatArray], preference: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return the objective, its slope and its negated second derivative."""
    objective, slope, curvature = -0.5 * float(preference @ preference), -preference, np.eye(len(preference))
    for group, reach in zip(groups, reaches, strict=True):
        chosen = group.chosen.astype(np.float64)
        margins, probability, density = _probabilities(group, reach, chosen, preference)
        objective += float(group.weight @ np.log(probability))
        pull = density / probability
        slope = slope + (group.weight * pull) @ chosen
        curvature += (chosen * (group.weight * pull * (reach * margins + pull))[:, None]).T @ chosen
    return objective, slope, curvature


def _information(
    groups: Sequence[FlippedChoices], reaches: Sequence[FloatArray], preference: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the expected curvature, and the spread of the voters' slopes."""
    information, spread = np.eye(len(preference)), np.zeros((len(preference), len(preference)))
    for group, reach in zip(groups, reaches, strict=True):
        chosen = group.chosen.astype(np.float64)
        _, probability, density = _probabilities(group, reach, chosen, preference)
        expected = group.weight * density**2 / np.maximum(probability * (1 - probability), _LEAST)
        information += (chosen * expected[:, None]).T @ chosen
        pulled = chosen * (group.weight * density / probability)[:, None]
        slopes = np.add.reduceat(pulled, group.offsets[:-1], axis=0)
        spread += slopes.T @ slopes
    return information, spread


def _probabilities(
    group: FlippedChoices, reach: FloatArray, chosen: FloatArray, preference: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return each report's margin and probability, and the derivative of the latter in beta . v."""
    margins = reach * (chosen @ preference)
    honest = 1 - 2 * group.flip
    probability = np.maximum(group.flip + honest * ndtr(margins), _LEAST)
    density = reach * honest * np.exp(-0.5 * margins**2) / np.sqrt(2 * np.pi)
    return margins, probability, density
