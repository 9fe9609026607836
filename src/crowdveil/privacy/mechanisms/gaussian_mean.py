"""Gaussian noise on the mean of all voters' preferences (VLCP, RLCP), for crowds that are published many times."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from crowdveil.ballots.ballots import BallotSource
from crowdveil.privacy.grid import STEPS, from_steps, sum_of_preferences
from crowdveil.privacy.mechanisms.algorithm1 import sum_of_grid_preferences
from crowdveil.privacy.mechanisms.mechanism import Estimand, Estimate, Loss, Measurement, Settings, measured
from crowdveil.privacy.noise.distribution import Gaussian
from crowdveil.privacy.noise.exact_noise import GaussianNoise, gaussian_variance


class GaussianMean:
    """Algorithm 1 with discrete Gaussian noise: not purely private, but rho-zCDP.

    Theorem. With noise of sigma^2 = (2 STEPS)^2 / (2 rho) on each coordinate of the sum of voters' grid preferences,
    the output is rho-zCDP for VLCP and RLCP, and so (epsilon, delta)-differentially private (``zcdp.epsilon_of``).

    Proof. Replacing a voter's records moves the sum by at most 2 STEPS in l1 (``grid.sum_of_preferences``), and
    so by at most as much in l2: the theorem of ``gaussian_variance`` applies. Dividing by the public N is
    post-processing. A record-neighbour is a voter-neighbour, so the same holds there.
    """

    name = "gaussian-mean"
    title = "Gaussian noise on the mean preference (zCDP)"
    words = "Gaussian noise, added once, to the average of all voters' preferences"
    paradigms = ("vlcp", "rlcp")
    papers = ()
    options = ()
    estimates = Estimand.SOCIETY
    takes = Loss.RHO

    def measure(self, source: BallotSource, settings: Settings, loss: Fraction) -> Measurement:
        """Fit every voter and add up the grid preferences."""
        return measured(source, partial(sum_of_grid_preferences, settings.norm_bound))

    def release(self, measurement: Measurement, settings: Settings, loss: Fraction, noise: GaussianNoise) -> Estimate:
        """Add the noise to the sum and divide by the number of voters."""
        drawn = noise.gaussian(sum_of_preferences(), loss, settings.study.dimension)
        parameter = from_steps(measurement.total + drawn, settings.norm_bound) / measurement.voters
        return Estimate(parameter, self.expected_noise(settings, measurement.voters, loss))

    def expected_noise(self, settings: Settings, voters: int, loss: Fraction) -> Gaussian:
        """Standard deviation 2B / (N sqrt(2 rho)) on each coordinate of the mean."""
        steps = math.sqrt(gaussian_variance(sum_of_preferences(), loss))
        return Gaussian(settings.norm_bound * steps / STEPS / voters)
