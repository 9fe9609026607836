"""Signed subset selection (VLDP, RLDP): each voter reports k signs, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.society import fit_voters
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.grid import STEPS, to_steps
from crowdveil.privacy.mechanisms.mechanism import DistributedSociety, Estimate, MechanismSettings
from crowdveil.privacy.mechanisms.reports import IntegerFormat, LevelSums, Reports, all_sums, influence, random_orders
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.distribution import EmpiricalNormal
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study

FLIP = Odds(0, 1, 1, 1)
"""Odds of a flip: probability 1 / (1 + e^epsilon)."""


class SubsetSelection(DistributedSociety):
    """Round the preference to a corner of the l1 ball and hide the corner among k random signs.

    A preference beta in the ball of radius B is rounded to a corner s B e_j with probability |beta_j| / B (what
    is left over: a uniformly random corner), which is unbiased. The report w has k entries +1 or -1 and zeros
    elsewhere: with a = e^epsilon - 1 and r = k / (2d), w_j = s with probability r e^epsilon / (1 + r a), w_j = -s
    with probability r / (1 + r a), and the rest is filled with uniformly random places and signs.

    Theorem. The report is epsilon-differentially private for VLDP (and so for RLDP), exactly, and
    B (1 + r a) / (r a) w is an unbiased estimate of beta.

    Proof. Fix a corner (j, s). The C(d-1, k-1) 2^(k-1) reports with w_j = s share r e^epsilon / (1 + r a); as many
    have w_j = -s and share r / (1 + r a); the C(d-1, k) 2^k with w_j = 0 share (1 - 2r) / (1 + r a), which is
    r / (1 + r a) per C(d-1, k-1) 2^(k-1) of them. So a report has probability e^epsilon or 1, times the same
    constant for every corner: no two corners differ by more than e^epsilon, and mixing corners (the rounding)
    keeps that. By symmetry E w = (r a / (1 + r a)) s e_j.

    The mean squared error is at most B^2 k (1 + 2d / (k a))^2, least at k = 2d / a, kept within 1 and d.
    """

    name = "subset-selection"
    title = "Signed subset selection on each voter's preference"
    words = "random signs, among which each voter's device hides the one that stands for the preference"
    paradigms = ("vldp", "rldp")
    papers = ()
    options = ("norm_bound", "equal_votes")
    wire = IntegerFormat(lambda features: features, largest=1)
    fits_once = True

    def report_size(self, study: Study, epsilon: Epsilon) -> int:
        """Return the number k of signs."""
        return subset_size(study.dimension, epsilon.value)

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> Reports:
        """Fit each voter, round to a corner, and draw the signs."""
        return self.perturb_fits(fit_voters(ballots, settings.norm_bound).values, settings, epsilons, noise)

    def perturb_fits(self, fits: FloatArray, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> Reports:
        """Make reports from fitted preferences (one row per voter): round to a corner and draw the signs."""
        d = settings.study.dimension
        steps = to_steps(fits, settings.norm_bound)
        corner, sign = _corners(steps, noise)
        signs = np.zeros_like(steps)
        values = epsilons.values
        for epsilon in np.unique(values).tolist():
            rows = np.flatnonzero(values == epsilon)
            size = subset_size(d, epsilon)
            signs[rows] = _select(corner[rows], sign[rows], d, size, epsilons[rows], noise)
        return Reports(epsilons, signs)

    def acceptable(self, reports: Reports, settings: MechanismSettings) -> BoolArray:
        """Accept reports with exactly k signs and zeros elsewhere."""
        sizes = _subset_sizes(settings.study.dimension, reports.epsilons)
        values = reports.values
        return np.asarray((np.abs(values) <= 1).all(axis=1) & (np.abs(values).sum(axis=1) == sizes))

    def condense(self, reports: Reports, settings: MechanismSettings) -> LevelSums:
        """Sum the reports."""
        return _sums(reports)

    def aggregate(self, reports: Iterable[Reports | LevelSums], settings: MechanismSettings) -> Estimate:
        """Average the unbiased estimates, weighted by the precision that their epsilons allow."""
        d = settings.study.dimension
        bound = settings.norm_bound
        sums = all_sums(reports, _sums)
        levels = Epsilons.of_millionths(sums.levels[:, 0]).values.tolist()
        gains = np.array([_gain(d, epsilon) for epsilon in levels]) * bound
        variances = np.array([mean_squared_error(d, epsilon) for epsilon in levels]) * bound**2 / d
        weights = sums.weights(variances, settings.equal_votes)
        facts = {"signs_per_report": sorted({subset_size(d, epsilon) for epsilon in levels})}
        return Estimate(sums.mean(weights, gains), sums.spread(weights, gains), facts)

    def expected_noise(self, settings: MechanismSettings, epsilons: Epsilons) -> EmpiricalNormal:
        """Return the variance of the weighted mean, by symmetry the same on every coordinate."""
        d = settings.study.dimension
        levels, at = np.unique(epsilons.values, return_inverse=True)
        errors = (
            np.array([mean_squared_error(d, epsilon) for epsilon in levels.tolist()])[at] * settings.norm_bound**2 / d
        )
        weights = influence(errors, settings.equal_votes)
        return EmpiricalNormal(tuple(map(tuple, (np.eye(d) * float(weights**2 @ errors)).tolist())))


def _sums(reports: Reports) -> LevelSums:
    return LevelSums.of(reports.epsilons.micro, reports.values.astype(np.float64))


def _subset_sizes(dimension: int, epsilons: Epsilons) -> IntArray:
    levels, at = np.unique(epsilons.values, return_inverse=True)
    return np.array([subset_size(dimension, epsilon) for epsilon in levels.tolist()], np.int64)[at]


def subset_size(dimension: int, epsilon: float) -> int:
    """Return the k that minimises the mean squared error at this dimension and epsilon."""
    best = 2 * dimension / math.expm1(epsilon)
    nearby = {min(dimension, max(1, k)) for k in (math.floor(best), math.ceil(best))}
    return min(nearby, key=lambda k: _error(dimension, k, epsilon))


def mean_squared_error(dimension: int, epsilon: float) -> float:
    """Bound E |estimate - beta|^2 / B^2 for one voter's report, at the best k."""
    return _error(dimension, subset_size(dimension, epsilon), epsilon)


def _error(dimension: int, size: int, epsilon: float) -> float:
    return size * (1 + 2 * dimension / (size * math.expm1(epsilon))) ** 2


def _gain(dimension: int, epsilon: float) -> float:
    """Return (1 + r a) / (r a), the factor that makes a report unbiased."""
    return 1 + 2 * dimension / (subset_size(dimension, epsilon) * math.expm1(epsilon))


def among_odds(dimension: int, size: int) -> Odds:
    """Return the odds that the corner's own place is among the k.

    P(w_j != 0) = r (e^epsilon + 1) / (1 + r a), written in q = e^-epsilon and multiplied out.
    """
    return Odds(size, size, size, 2 * dimension - size)


def _corners(steps: IntArray, noise: Noise) -> tuple[IntArray, IntArray]:
    """Round grid preferences to signed corners: exact, since |beta_j| / B is a whole number of grid steps."""
    voters, d = steps.shape
    reached = np.cumsum(np.abs(steps), axis=1)
    drawn = noise.uniform(STEPS, voters, 1)
    corner = (drawn >= reached).sum(axis=1)
    left_over = corner == d
    anywhere = noise.uniform(2 * d, voters, 1)[:, 0]
    corner = np.where(left_over, anywhere // 2, corner)
    sign = np.sign(steps[np.arange(voters), corner])
    return corner, np.where(left_over, 2 * (anywhere % 2) - 1, sign)


def _select(corner: IntArray, sign: IntArray, d: int, size: int, epsilons: Epsilons, noise: Noise) -> IntArray:
    """Draw w for each voter: is the corner's place among the k, is its sign kept, and what fills the rest."""
    voters = len(corner)
    among = noise.tosses(among_odds(d, size), epsilons, 1)[:, 0]
    kept = np.where(noise.tosses(FLIP, epsilons, 1)[:, 0], -sign, sign)
    # A random order of all places in which the corner's own comes first: the places after it fill the rest.
    order = random_orders(voters, d, noise)
    order = np.take_along_axis(order, np.argsort(order != corner[:, None], axis=1, kind="stable"), axis=1)
    fills = np.arange(d) <= np.where(among, size - 1, size)[:, None]
    drawn = np.where(fills, 2 * noise.uniform(2, voters, d) - 1, 0)
    drawn[:, 0] = np.where(among, kept, 0)
    report = np.empty((voters, d), np.int64)
    np.put_along_axis(report, order, drawn, axis=1)
    return report
