"""Each voter's preference: the most likely one inside the l1 ball (the paper's Eq. 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crowdveil.arrays import BoolArray, FloatArray
from crowdveil.ballots import Ballots
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.l1_ball import fit_in_ball
from crowdveil.estimation.unbounded import fit_unbounded


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


def fit_voters(ballots: Ballots, norm_bound: float, threads: int | None = None) -> Preferences:
    """Fit every voter's preference with ||beta||_1 <= B, all cores by default."""
    if not (norm_bound > 0 and math.isfinite(norm_bound)):
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

    A voter whose answers one direction explains perfectly (separable) has no most likely preference: the
    longer the vector, the likelier the answers. Such voters are marked, not guessed.
    """
    fit = fit_unbounded(ballots.differences, ballots.offsets)
    return UnboundedPreferences(fit.values, fit.exists)
