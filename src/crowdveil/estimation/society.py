"""Voters' preferences and their mean, the society's: exact, and so for comparison only, never to release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource, check_source
from crowdveil.engines.batches import add_up
from crowdveil.errors import CrowdveilError, ImpossibleEstimate
from crowdveil.estimation.l1_ball import fit_in_ball
from crowdveil.estimation.unbounded import fit_unbounded

_COARSE, _FINE = 2.0**20, 2.0**32
_GAPS, _SMALLEST = 64, -56


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
        return f"<preferences of {voters:,} voters in {features} features>"


def fit_voters(ballots: Ballots, norm_bound: float, threads: int | None = None) -> Preferences:
    """Fit every voter's preference with ||beta||_1 <= B, all cores by default."""
    check_source(ballots)
    if not (isinstance(norm_bound, int | float) and 0 < norm_bound < math.inf):
        raise CrowdveilError(f"the norm bound B must be a positive number (the paper uses 2), got {norm_bound}")
    fit = fit_in_ball(ballots.differences, ballots.offsets, norm_bound, threads)
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
        return f"<society of {self.voters:,} voters: {len(self.parameter)} weights>"


def society(source: BallotSource, norm_bound: float | None) -> Society:
    """Average all voters' preferences; ``norm_bound=None`` takes the unconstrained estimates.

    Preferences are added up as whole numbers of 2^-52: the mean is the same bit for bit, however the crowd is cut and
    whoever works on its batches.
    """
    check_source(source)
    counted = add_up(source, partial(_tally, norm_bound))
    (voters, left_out), gaps, sums = counted[:2].tolist(), counted[2 : 2 + _GAPS], counted[2 + _GAPS :]
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
