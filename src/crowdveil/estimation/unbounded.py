"""The baseline without privacy: each voter's maximum likelihood preference without a norm bound.

Noothigattu et al. 2018 maximise Eq. (2) over all of R^d. A maximiser exists if and only if the voter's records
cannot be separated: if no direction u has V u >= 0 and V u != 0. (If there is one, L(beta + s u) rises with s for
ever. If there is none, L falls without bound along every direction that it depends on, so it attains its maximum.)

That argument holds for any strictly concave, increasing function with an upper bound in the place of ln Phi. So
existence is decided with one whose slope fades slowly, (t - sqrt(1 + t^2)) / 2: none drowns in rounding. Both outcomes
leave a certificate. A point with V beta > 0: separated. A maximiser, where the slopes y > 0 have V'y = 0: not
separated, since V u >= 0 and y'V u = 0 force V u = 0. A linear program decides for the few voters with neither: those
whose records are separated with some of them on the boundary (V_j u = 0), or almost so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.estimation.l1_ball import largest_difference
from crowdveil.estimation.probit import slopes_and_weights

_RANK_TOLERANCE = 1e-10
_GAIN_TOLERANCE = 1e-20
_FAR = 1e4  # where the slope of the slow function is 2.5e-9, still far above rounding
_MOST_ITERATIONS = 500


@dataclass(frozen=True)
class UnboundedFit:
    """The result of `fit_unbounded`, one row per voter."""

    values: FloatArray
    exists: BoolArray
    unique: BoolArray


def fit_unbounded(differences: NDArray[Any], offsets: IntArray) -> UnboundedFit:
    """Maximise Eq. (2) for every voter: rows offsets[i]:offsets[i+1] of `differences` are the records of voter i.

    - exists: whether the maximum is attained. If not, the voter's records are separable, longer and longer vectors
      are more and more likely, and the row of values is NaN. (Likewise if a maximum lies so far out that double
      precision cannot tell its likelihood from the limit.)
    - values: the maximiser; of many, the shortest.
    - unique: whether there is only one maximiser: it exists and the records span all d dimensions. If they do not,
      nothing is known about the voter's preference in the directions that they leave out, and values has none.
    """
    largest_difference(differences, offsets)
    voters = offsets.size - 1
    features = differences.shape[1]
    values = np.full((voters, features), np.nan)
    unique = np.zeros(voters, dtype=np.bool_)
    for i in range(voters):
        records = differences[offsets[i] : offsets[i + 1]].astype(np.float64)
        records = records[records.any(axis=1)]  # the others say nothing
        if records.shape[0] == 0:
            values[i] = 0.0
            continue
        left, singular, right = np.linalg.svd(records, full_matrices=False)
        rank = int(np.count_nonzero(singular > _RANK_TOLERANCE * singular[0]))
        if not _separable(records, left[:, :rank]):
            x, converged = _newton(left[:, :rank], slopes_and_weights, stop=lambda t: False)
            if converged:
                values[i] = right[:rank].T @ (x / singular[:rank])
                unique[i] = rank == features
    return UnboundedFit(values=values, exists=~np.isnan(values[:, 0]), unique=unique)


def separable_by_program(records: FloatArray) -> bool:
    """Tell whether a direction u has V u >= 0 and V u != 0, by a linear program.

    It maximises sum s subject to V u >= s and 0 <= s <= 1. Directions can be lengthened, so the maximum is either
    0 or at least 1, and no tolerance has to be chosen. (Records are first scaled to a largest entry of 1.)
    """
    scaled = np.unique(records / np.abs(records).max(axis=1, keepdims=True), axis=0)
    n, d = scaled.shape
    program = linprog(
        np.concatenate([np.zeros(d), -np.ones(n)]),
        A_ub=np.hstack([-scaled, np.eye(n)]),
        b_ub=np.zeros(n),
        bounds=[(None, None)] * d + [(0.0, 1.0)] * n,
        method="highs",
    )
    if program.fun is None:
        raise ArithmeticError(f"The linear program for separability failed: {program.message}")
    return bool(program.fun < -0.5)


def _separable(records: FloatArray, basis: FloatArray) -> bool:
    """Tell whether the records, none of them zero, can be separated; `basis` spans their column space."""
    x, converged = _newton(basis, _slow, stop=lambda t: bool(t.min() > 0.0 or t.max() > _FAR))
    t = basis @ x
    if t.min() > 1e-12 * np.linalg.norm(x):
        return True
    if converged:
        slopes, _ = _slow(t)
        # The slopes minus their projection are orthogonal to all columns, up to rounding: positive?
        if np.all(2.0 * (basis @ (basis.T @ slopes)) < slopes):
            return False
    return separable_by_program(records)


def _newton(
    basis: FloatArray,
    derivatives: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    stop: Callable[[FloatArray], bool],
) -> tuple[FloatArray, bool]:
    """Maximise sum_j f(t_j), t = basis x, given the first and the negated second derivative of a concave f."""
    x = np.zeros(basis.shape[1])
    for _ in range(_MOST_ITERATIONS):
        t = basis @ x
        if stop(t):
            break
        slopes, curvatures = derivatives(t)
        gradient = basis.T @ slopes
        try:
            step = np.linalg.solve(basis.T @ (basis * curvatures[:, None]), gradient)
        except np.linalg.LinAlgError:  # some direction has no curvature left: beyond double precision
            break
        gain = float(step @ gradient)
        if gain <= _GAIN_TOLERANCE:
            return x + step, True
        move = basis @ step
        length = 1.0
        while derivatives(t + length * move)[0] @ move < -0.5 * gain:
            length /= 2.0
        x = x + length * step
    return x, False


def _slow(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    root = np.sqrt(1.0 + t * t)
    return 0.5 / (root * (root + np.abs(t))) + (t < 0.0) * np.abs(t) / root, 0.5 / root**3
