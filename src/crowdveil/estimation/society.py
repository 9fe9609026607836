"""Voters' preferences and their mean, the society's: exact, and so for comparison only, never to release.

The baseline without a norm bound: Noothigattu et al. 2018 maximise Eq. (2) over all of R^d. A maximiser exists if and
only if the voter's records cannot be separated: if no direction u has V u >= 0 and V u != 0. (If there is one, L(beta +
s u) rises with s for ever. If there is none, L falls without bound along every direction that it depends on, so it
attains its maximum.)

That argument holds for any strictly concave, increasing function with an upper bound in the place of ln Phi. So
existence is decided with one whose slope fades slowly, (t - sqrt(1 + t^2)) / 2: none drowns in rounding. Both outcomes
leave a certificate. A point with V beta > 0: separated. A maximiser, where the slopes y > 0 have V'y = 0: not
separated, since V u >= 0 and y'V u = 0 force V u = 0. A linear program decides for the few voters with neither: those
whose records are separated with some of them on the boundary (V_j u = 0), or almost so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource, check_source
from crowdveil.engines.batches import add_up
from crowdveil.errors import CrowdveilError, ImpossibleEstimate, check_whole, is_number, plural, shown
from crowdveil.estimation.l1_ball import fit_in_ball, largest_difference
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
    """Find out whether a direction u has V u >= 0 and V u != 0, by a linear program.

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
    """Find out whether the records, none of them zero, can be separated; `basis` spans their column space."""
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


_COARSE = 2.0**20
_FINE = 2.0**32
_GAPS = 64
_SMALLEST = -56


@dataclass(frozen=True)
class Preferences:
    """Exact preferences, a row a voter. Private: they are nobody's but the voter's."""

    values: FloatArray
    gaps: FloatArray
    """Certified per voter: no point of the ball has a log-likelihood higher by more than this."""

    @property
    def largest_gap(self) -> float:
        """The worst certificate of all voters."""
        return float(self.gaps.max(initial=0.0))

    def __repr__(self) -> str:
        voters, features = self.values.shape
        return f"<preferences of {voters:,} {plural(voters, 'voter')} in {features} {plural(features, 'feature')}>"


def fit_voters(ballots: Ballots, norm_bound: float, threads: int | None = None) -> Preferences:
    """Fit every voter's preference with ||beta||_1 <= B, all cores by default."""
    if not isinstance(ballots, Ballots):
        raise CrowdveilError(
            f"the ballots are {shown(ballots)}: read them into memory first, with read_ballots, read_moral_machine or "
            "read_table"
        )
    if not (is_number(norm_bound) and 0 < norm_bound < math.inf):
        raise CrowdveilError(f"the norm bound B must be a positive number (the paper uses 2), got {shown(norm_bound)}")
    if threads is not None:
        check_whole(threads, "the number of threads", 1)
    fit = fit_in_ball(ballots.differences, ballots.offsets, float(norm_bound), threads)
    return Preferences(fit.values, fit.gaps)


@dataclass(frozen=True)
class UnboundedPreferences:
    """Noothigattu et al.'s unconstrained estimates, where they exist. Private, and not fit for a release."""

    values: FloatArray
    """NaN rows where no maximum exists."""
    exists: BoolArray


def fit_voters_unbounded(ballots: Ballots) -> UnboundedPreferences:
    """Fit every voter without a bound: the baseline without privacy.

    A voter whose records one direction explains perfectly (separable) has no most likely preference: the
    longer the vector, the likelier the choices. Such voters are marked, not guessed.
    """
    fit = fit_unbounded(ballots.differences, ballots.offsets)
    return UnboundedPreferences(fit.values, fit.exists)


@dataclass(frozen=True)
class Society:
    """A mean preference that protects nobody."""

    parameter: FloatArray
    voters: int
    left_out: int
    """Voters who have no unconstrained estimate, and so are not in the mean."""
    largest_gap: float | None
    """The worst certificate of all voters, rounded up to a power of two; None for the unconstrained estimate."""

    def __repr__(self) -> str:
        weights = len(self.parameter)
        return f"<society of {self.voters:,} {plural(self.voters, 'voter')}: {weights} {plural(weights, 'weight')}>"


def society(source: BallotSource, norm_bound: float | None) -> Society:
    """Average all voters' preferences; ``norm_bound=None`` takes the unconstrained estimates.

    Preferences are added up as whole numbers of 2^-52: the mean is the same bit for bit, however the crowd is cut and
    whoever works on its batches.
    """
    check_source(source)
    counted = add_up(source, partial(_tally, norm_bound))
    voters, left_out = counted[:2].tolist()
    gaps, sums = counted[2 : 2 + _GAPS], counted[2 + _GAPS :]
    if voters == 0:
        raise ImpossibleEstimate(
            f"none of the {left_out} voters has an unconstrained estimate (each voter's records are separable): "
            "give a norm bound instead"
        )
    coarse, fine = (sums.reshape(2, -1) / voters).tolist()
    mean = np.array([c / _COARSE + f / (_COARSE * _FINE) for c, f in zip(coarse, fine, strict=True)])
    gap = float(2.0 ** (int(np.flatnonzero(gaps)[-1]) + _SMALLEST)) if gaps.any() else 0.0
    return Society(mean, voters, left_out, None if norm_bound is None else gap)


def _tally(norm_bound: float | None, ballots: Ballots) -> IntArray:
    """Count voters, those left out, and gaps by their powers of two; add up preferences, coarsely and the rest."""
    gaps = np.zeros(_GAPS, np.int64)
    if norm_bound is None:
        free = fit_voters_unbounded(ballots)
        values = free.values[free.exists]
    else:
        fit = fit_voters(ballots, norm_bound)
        values = fit.values
        positive = fit.gaps[fit.gaps > 0]
        # A gap g in (2^(k-1), 2^k] is counted for k: frexp gives g = m 2^e with 1/2 <= m < 1.
        mantissa, exponent = np.frexp(positive)
        np.add.at(gaps, np.clip(exponent - (mantissa == 0.5) - _SMALLEST, 0, _GAPS - 1), 1)
    scaled = values * _COARSE
    coarse = np.rint(scaled)
    sums = np.stack([coarse, np.rint((scaled - coarse) * _FINE)]).astype(np.int64).sum(axis=1)
    return np.concatenate([[len(values), ballots.voters - len(values)], gaps, sums.reshape(-1)])
