"""Noise on the mean of all voters' preferences (VLCP, RLCP): Laplace noise, which is Algorithm 1, and Gaussian noise.

Gaussian noise is for crowds that are published many times.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

from crowdveil.arrays import IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.estimation.society import fit_voters
from crowdveil.privacy.epsilon import Epsilon, Epsilons, PrivacyMeasure
from crowdveil.privacy.grid import STEPS, from_steps, sum_of_preferences, to_steps
from crowdveil.privacy.mechanisms.expected_errors import ExpectedErrors
from crowdveil.privacy.mechanisms.mechanism import Estimand, Estimate, Measurement, MechanismSettings, measured
from crowdveil.privacy.noise.distribution import Gaussian, LaplaceSum
from crowdveil.privacy.noise.exact_noise import GaussianNoise, gaussian_variance
from crowdveil.privacy.noise.source import Noise


class _NoisyMean:
    """The common part of the two mechanisms: the description, and the measurement of the mean."""

    paradigms = ("vlcp", "rlcp")
    options = ("norm_bound",)
    estimates = Estimand.SOCIETY
    third_answer = False  # a mean of fits to chosen sides cannot express "neither"
    fits_once = True

    def measure(self, source: BallotSource, settings: MechanismSettings, loss: object) -> Measurement:
        """Fit every voter and add up the grid preferences (integers: the order cannot matter)."""
        return measured(source, partial(sum_of_grid_preferences, settings.norm_bound))

    def expected_errors(
        self, settings: MechanismSettings, voters: int, records: int, epsilon: Epsilon
    ) -> ExpectedErrors | None:
        """Return None: no release of a society is forecast."""
        return None


class Algorithm1(_NoisyMean):
    """Perturb the average preference (Section 4.2), on integers.

    Theorem 1. With noise of scale 2 STEPS / epsilon on each coordinate of the sum of the voters' grid
    preferences, the output is epsilon-differentially private for VLCP and RLCP.

    Proof. Replacing one voter's records moves the sum by at most Delta = 2 STEPS in l1
    (``grid.sum_of_preferences``), and discrete Laplace noise has P(x) / P(y) <= e^(epsilon |x - y| / Delta)
    in each coordinate; multiply over coordinates. Dividing by the public N is post-processing, and turns the
    scale into the paper's 2B / (N epsilon). A record-neighbour is a voter-neighbour, so the same holds there.
    """

    name = "algorithm-1"
    title = "Algorithm 1: Laplace noise on the mean preference"
    words = "noise, added once, to the average of all voters' preferences"
    papers = ("vlcp", "rlcp")
    takes = PrivacyMeasure.EPSILON

    def release(self, measurement: Measurement, settings: MechanismSettings, loss: Epsilon, noise: Noise) -> Estimate:
        """Add the noise to the sum and divide by the number of voters."""
        drawn = noise.laplace(sum_of_preferences(), Epsilons.same(loss, 1), settings.study.dimension)[0]
        parameter = from_steps(measurement.total + drawn, settings.norm_bound) / measurement.voters
        return Estimate(parameter, self.expected_noise(settings, measurement.voters, loss))

    def expected_noise(self, settings: MechanismSettings, voters: int, loss: Epsilon) -> LaplaceSum:
        """Scale 2B / (N epsilon) on each coordinate of the mean."""
        reach = settings.norm_bound * sum_of_preferences() / STEPS
        return LaplaceSum((reach * 1e6 / (voters * loss.micro),), (1,))


def sum_of_grid_preferences(norm_bound: float, ballots: Ballots) -> IntArray:
    """Add up the voters' preferences on the grid."""
    steps: IntArray = to_steps(fit_voters(ballots, norm_bound).values, norm_bound).sum(axis=0)
    return steps


class GaussianMean(_NoisyMean):
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
    papers = ()
    takes = PrivacyMeasure.RHO

    def release(
        self, measurement: Measurement, settings: MechanismSettings, loss: Fraction, noise: GaussianNoise
    ) -> Estimate:
        """Add the noise to the sum and divide by the number of voters."""
        drawn = noise.gaussian(sum_of_preferences(), loss, settings.study.dimension)
        parameter = from_steps(measurement.total + drawn, settings.norm_bound) / measurement.voters
        return Estimate(parameter, self.expected_noise(settings, measurement.voters, loss))

    def expected_noise(self, settings: MechanismSettings, voters: int, loss: Fraction) -> Gaussian:
        """Standard deviation 2B / (N sqrt(2 rho)) on each coordinate of the mean."""
        steps = math.sqrt(gaussian_variance(sum_of_preferences(), loss))
        return Gaussian(settings.norm_bound * steps / STEPS / voters)
