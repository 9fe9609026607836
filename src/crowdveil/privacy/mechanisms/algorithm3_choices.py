"""Algorithm 3 at the choice level (ALDP): where the dilemmas are public, the quadratic needs no noise."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.l1_ball import project_onto_l1_ball
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.grid import STEPS
from crowdveil.privacy.mechanisms.aggregation import LevelSums, all_sums, within_reach
from crowdveil.privacy.mechanisms.algorithm3 import number_of_coefficients, objective_coefficients, quadratic_forms
from crowdveil.privacy.mechanisms.mechanism import Estimand, Estimate, Settings
from crowdveil.privacy.mechanisms.reports import IntegerRow, Reports
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study

_PRIOR_DEVIATION = 1.0


class Algorithm3Choices:
    """Perturb the linear part of each voter's objective; the quadratic part is public.

    Theorem. Where the dilemmas shown are public and only the choices are secret, noise of scale
    2 sqrt(2d/pi) / epsilon_i on the d linear coefficients alone is epsilon_i-differentially private for ALDP.

    Proof. Turning a choice over replaces a record V by -V. The quadratic coefficients, made of V V', do not change. The
    linear ones change by 2 sqrt(2/pi) V, of l1 norm at most 2 sqrt(2d/pi) for |V|_2 <= 1 (Cauchy-Schwarz); truncation
    toward zero is odd and shrinks, so the same holds for the integers.

    The objective stays concave, so its maximum exists. With a weak prior, the noise of the linear part is allowed for.
    """

    name = "algorithm-3-choices"
    title = "Algorithm 3 with an exact quadratic: noise on the linear part of each voter's objective"
    words = "noise, added to the part of each voter's objective function that depends on the choices"
    paradigms = ("aldp",)
    papers = ()
    options = ("equal_votes",)
    estimates = Estimand.SOCIETY
    wire = IntegerRow(number_of_coefficients)
    tosses_coins = False

    def scoring(self, study: Study) -> None:
        """Nothing is scored."""
        return

    def report_size(self, study: Study, epsilon: Epsilon) -> None:
        """Return None: the study alone says how long a report is."""

    def report(self, ballots: Ballots, settings: Settings, epsilons: Epsilons, noise: Noise) -> Reports:
        """Expand each voter's objective and add noise to its linear coefficients."""
        values = objective_coefficients(ballots.differences, ballots.offsets, settings.study.record_bound)
        d = settings.study.dimension
        values[:, :d] += noise.laplace(linear_sensitivity(d), epsilons, d)
        return Reports(epsilons, values)

    def acceptable(self, reports: Reports, settings: Settings) -> BoolArray:
        """Refuse linear parts further out than the records (seen in the public diagonal) and the noise reach."""
        d = settings.study.dimension
        _, quadratic = quadratic_forms(reports.values, d)
        # |sum of n values| <= sqrt(n sum of squares) <= n / 2 + sum of squares; n is at most a ballot's dilemmas.
        squares = -np.trace(quadratic, axis1=1, axis2=2) * math.pi
        largest = ((settings.study.drawing.dilemmas + squares) * STEPS).astype(np.int64)
        return within_reach(reports.values[:, :d], largest, linear_sensitivity(d), reports.epsilons, terms=1)

    def condense(self, reports: Reports, settings: Settings) -> LevelSums:
        """Solve each voter's objective and add up the solutions."""
        return _sums(settings, reports)

    def aggregate(self, reports: Iterable[Reports | LevelSums], settings: Settings) -> Estimate:
        """Solve each voter's objective and average the solutions by what their noise leaves of them."""
        sums = all_sums(reports, partial(_sums, settings))
        weights = sums.weights(1 / sums.levels[:, 0], settings.equal_votes)
        facts = {"record_norm": settings.study.record_bound}
        return Estimate(sums.mean(weights), sums.spread(weights), facts)

    def expected_noise(self, settings: Settings, epsilons: Epsilons) -> None:
        """Nothing simple: the noise goes through a maximisation."""
        return


def linear_sensitivity(dimension: int) -> int:
    """Bound in grid steps how far one turned choice moves the linear coefficients, in l1."""
    return 2 * math.ceil(math.nextafter(math.sqrt(2 * dimension / math.pi) * STEPS, math.inf))


def _sums(settings: Settings, reports: Reports) -> LevelSums:
    return LevelSums.of(reports.epsilons.micro, _solve(reports, settings))


def _solve(reports: Reports, settings: Settings) -> FloatArray:
    """Find the most probable preference given the noisy slope at zero.

    At zero the objective has the slope a and the curvature -H, so without noise H beta = a. Along an eigenvector of H
    with eigenvalue h, a is h beta with variance h (of the choices) + s^2 (of the noise); with the prior N(0, tau^2)
    this gives beta = a h / (h + s^2) / (h^2 / (h + s^2) + 1 / tau^2).
    """
    d, bound = settings.study.dimension, settings.study.record_bound
    linear, quadratic = quadratic_forms(reports.values, d)
    curvature, axes = np.linalg.eigh(-2 * quadratic)
    noise = 2 * (linear_sensitivity(d) / STEPS * 1e6 / reports.epsilons.micro[:, None]) ** 2
    curvature = np.maximum(curvature, 0.0)
    trust = curvature / (curvature + noise)
    along = np.einsum("vkl,vk->vl", axes, linear)
    steps = along * trust / (curvature * trust + 1 / (_PRIOR_DEVIATION * bound) ** 2)
    return project_onto_l1_ball(np.einsum("vkl,vl->vk", axes, steps) / bound, settings.norm_bound)
