"""Gaussian noise on the mean of all voters' preferences (VLCP, RLCP), for crowds that are published many times."""

from __future__ import annotations

import math
from fractions import Fraction

from crowdveil.ballots import BallotSource
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.grid import STEPS, from_steps
from crowdveil.privacy.mechanisms.algorithm1 import Algorithm1
from crowdveil.privacy.mechanisms.mechanism import Estimate, Measurement, Settings
from crowdveil.privacy.noise.distribution import Gaussian
from crowdveil.privacy.sensitivity import sum_of_preferences
from crowdveil.privacy.zcdp import GaussianNoise, gaussian_variance


class GaussianMean:
    """Algorithm 1 with discrete Gaussian noise: not purely private, but rho-zCDP.

    Theorem. With noise of sigma^2 = (2 STEPS)^2 / (2 rho) on each coordinate of the sum of the voters' grid preferences,
    the output is rho-zCDP for VLCP and RLCP, and so (epsilon, delta)-differentially private (``zcdp.epsilon_of``).

    Proof. Replacing one voter's records moves the sum by at most 2 STEPS in l1 (``sensitivity.sum_of_preferences``), and
    so by at most as much in l2: the theorem of ``zcdp.gaussian_variance`` applies. Dividing by the public N is
    post-processing. A record-neighbour is a voter-neighbour, so the same holds there.
    """

    name = "gaussian-mean"
    title = "Gaussian noise on the mean preference (zCDP)"
    paradigms = ("vlcp", "rlcp")

    def measure(self, source: BallotSource, settings: Settings, epsilon: Epsilon) -> Measurement:
        """Fit every voter and add up the grid preferences."""
        return Algorithm1().measure(source, settings, epsilon)

    def release(self, measurement: Measurement, settings: Settings, rho: Fraction, noise: GaussianNoise) -> Estimate:
        """Add the noise to the sum and divide by the number of voters."""
        drawn = noise.gaussian(sum_of_preferences(), rho, settings.study.dimension)
        parameter = from_steps(measurement.total + drawn, settings.norm_bound) / measurement.voters
        return Estimate(parameter, self.expected_noise(settings, measurement.voters, rho))

    def expected_noise(self, settings: Settings, voters: int, rho: Fraction) -> Gaussian:
        """Standard deviation 2B / (N sqrt(2 rho)) on each coordinate of the mean."""
        steps = math.sqrt(gaussian_variance(sum_of_preferences(), rho))
        return Gaussian(settings.norm_bound * steps / STEPS / voters)
