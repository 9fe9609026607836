"""Algorithm 2 (VLDP, RLDP): Laplace noise on each voter's own preference."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.society import fit_voters
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.grid import STEPS, from_steps, sum_of_preferences, to_steps
from crowdveil.privacy.mechanisms.mechanism import DistributedSociety, Estimate, MechanismSettings
from crowdveil.privacy.mechanisms.reports import (
    IntegerFormat,
    LevelSums,
    Reports,
    all_sums,
    influence,
    unsummed,
    winsorised,
    within_reach,
)
from crowdveil.privacy.noise.distribution import LaplaceSum, empirical_normal
from crowdveil.privacy.noise.source import Noise


class Algorithm2(DistributedSociety):
    """Perturb each voter's preference (Section 4.3), on integers, with personal epsilons.

    Theorem 3. With noise of scale 2 STEPS / epsilon_i on each coordinate, voter i's report is
    epsilon_i-differentially private for VLDP and RLDP.

    Proof. Any two data sets of a voter, neighbours in a record or not, have preferences at most 2 STEPS apart
    in l1 (``grid.sum_of_preferences``); the rest is as for Theorem 1. Any weighted mean is post-processing.
    """

    name = "algorithm-2"
    title = "Algorithm 2: Laplace noise on each voter's preference"
    words = "noise, added to each voter's preference"
    paradigms = ("vldp", "rldp")
    papers = ("vldp",)
    options = ("norm_bound", "equal_votes", "robust")
    wire = IntegerFormat(lambda features: features)
    fits_once = True

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> Reports:
        """Fit each voter, round onto the grid, add the noise."""
        return self.perturb_fits(fit_voters(ballots, settings.norm_bound).values, settings, epsilons, noise)

    def perturb_fits(self, fits: FloatArray, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> Reports:
        """Make reports from fitted preferences (one row per voter): round onto the grid and add the noise."""
        steps = to_steps(fits, settings.norm_bound)
        drawn = noise.laplace(sum_of_preferences(), epsilons, settings.study.dimension)
        return Reports(epsilons, steps + drawn)

    def acceptable(self, reports: Reports, settings: MechanismSettings) -> BoolArray:
        """Refuse reports that lie further outside the ball than noise reaches."""
        largest = np.full(len(reports.epsilons), STEPS)
        return within_reach(reports.values, largest, sum_of_preferences(), reports.epsilons, terms=1)

    def condense(self, reports: Reports, settings: MechanismSettings) -> Reports | LevelSums:
        """Sum the reports, unless they are to be Winsorised."""
        return reports if settings.robust else _sums(settings, reports)

    def aggregate(self, reports: Iterable[Reports | LevelSums], settings: MechanismSettings) -> Estimate:
        """Average the reports, with equal weights or by the precision that their epsilons allow."""
        if settings.robust:
            return _robust(unsummed(reports), settings)
        sums = all_sums(reports, partial(_sums, settings))
        levels = sums.levels[:, 0]
        mean = sums.mean(sums.weights(_variances(settings, levels), settings.equal_votes))
        return Estimate(mean, self.expected_noise(settings, Epsilons.of_millionths(np.repeat(levels, sums.counts))))

    def expected_noise(self, settings: MechanismSettings, epsilons: Epsilons) -> LaplaceSum:
        """On each coordinate of the mean, one Laplace variable of scale w_i 2B / epsilon_i from every voter.

        With equal votes, w_i = 1/N, this is the paper's 2B / (N epsilon_i).
        """
        levels, first, counts = np.unique(epsilons.micro, return_index=True, return_counts=True)
        weights = influence(_variances(settings, epsilons.micro), settings.equal_votes)
        scales = weights[first] * _reach(settings) * 1e6 / levels
        return LaplaceSum(tuple(scales.tolist()), tuple(counts.tolist()))


def _reach(settings: MechanismSettings) -> float:
    """2B: the sensitivity of one voter's preference."""
    return settings.norm_bound * sum_of_preferences() / STEPS


def _variances(settings: MechanismSettings, micro: IntArray) -> FloatArray:
    """Variance of a report: that of its noise, and at most B^2/d between voters."""
    between = settings.norm_bound**2 / settings.study.dimension
    return np.asarray(2 * (_reach(settings) * 1e6 / micro) ** 2 + between)


def _sums(settings: MechanismSettings, reports: Reports) -> LevelSums:
    return LevelSums.of(reports.epsilons.micro, from_steps(reports.values, settings.norm_bound))


def _robust(batches: list[Reports], settings: MechanismSettings) -> Estimate:
    """Estimate from Winsorised reports, which needs all of them at once."""
    values = from_steps(np.concatenate([batch.values for batch in batches]), settings.norm_bound)
    epsilons = Epsilons.joined(batch.epsilons for batch in batches)
    weights = influence(_variances(settings, epsilons.micro), settings.equal_votes)
    pulled = winsorised(values, weights, np.ones(values.shape, bool), settings.robust)
    return Estimate(
        weights @ pulled.values, empirical_normal(pulled.pseudo_values, weights), {"robust": settings.robust}
    )
