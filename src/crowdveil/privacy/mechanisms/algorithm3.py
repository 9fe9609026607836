"""Algorithm 3 (RLDP): the functional mechanism, noise on the coefficients of each voter's objective.

At the choice level (ALDP), where the dilemmas are public, the quadratic needs no noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import numba
import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray, ValueArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.l1_ball import project_onto_l1_ball
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.grid import STEPS, coefficient_steps, papers_delta, tight_delta
from crowdveil.privacy.mechanisms.mechanism import DistributedSociety, Estimate, MechanismSettings
from crowdveil.privacy.mechanisms.reports import IntegerFormat, LevelSums, Reports, all_sums, within_reach
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study

RECORD_STEPS = 2**16
"""Grid of a normalised record: its coordinates are whole multiples of 2^-16, its l2 norm at most 1."""

_LINEAR = math.floor(math.sqrt(2 / math.pi) * STEPS)
_SQUARE = math.floor(STEPS / math.pi)
_PRODUCT = math.floor(2 * STEPS / math.pi)


def number_of_coefficients(features: int) -> int:
    """Count the coefficients of an objective: d linear ones, and d(d+1)/2 quadratic ones."""
    return features + features * (features + 1) // 2


class _PerturbedObjectives(DistributedSociety):
    """The common part of both mechanisms: a report is an objective's coefficients, the estimate a mean of maxima."""

    wire = IntegerFormat(number_of_coefficients)

    def expected_noise(self, settings: MechanismSettings, epsilons: Epsilons) -> None:
        """Return None: the noise goes through a maximisation, and has no simple form."""
        return


class Algorithm3(_PerturbedObjectives):
    """Perturb the objective function of each voter (Section 4.4), on integers, with personal epsilons.

    The log-likelihood is expanded to second order at 0 (Eq. 11): ln Phi(t) = ln(1/2) + sqrt(2/pi) t - t^2/pi.
    So a voter's objective has d linear and d(d+1)/2 quadratic coefficients. The constant never matters for
    the maximum; it is neither noised nor sent.

    Theorem 5. With noise of scale Delta / epsilon_i on each coefficient, voter i's report is
    epsilon_i-differentially private for RLDP, for Delta either of ``grid.papers_delta`` and
    ``grid.tight_delta``, plus the grid's share (``grid.coefficient_steps``).

    Proof. A record enters as integers: it is divided by the study's public bound, scaled down to l2 norm 1 if
    longer, truncated onto the record grid and its norm checked there. One record then moves the sum of the
    voter's integer coefficients by at most Delta in l1; discrete Laplace noise does the rest. Finding the
    maximum is post-processing, so the report is the noisy coefficients, and any repair is free.

    As printed, the maximum almost never exists: the noisy quadratic is indefinite. Without the repair the
    stationary point is taken, and how many voters have no maximum is among the facts. The repair is that of
    Zhang et al. 2012: subtract 4 standard deviations of the noise from the diagonal, drop the directions
    that still curve upwards, and project onto the l1 ball.
    """

    name = "algorithm-3"
    title = "Algorithm 3: functional mechanism on each voter's objective"
    words = "noise, added to each voter's objective function, from which the preference is then computed"
    paradigms = ("rldp",)
    papers = ("rldp",)
    options = ("norm_bound", "repair", "sensitivity", "equal_votes")

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> Reports:
        """Expand each voter's objective into integer coefficients and add the noise."""
        exact = objective_coefficients(ballots.differences, ballots.offsets, settings.study.record_bound)
        return self.perturb(exact, settings, epsilons, noise)

    def perturb(self, exact: IntArray, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> Reports:
        """Make reports of coefficients that are computed already, a row a voter: add the noise."""
        return Reports(epsilons, exact + noise.laplace(_sensitivity(settings), epsilons, exact.shape[1]))

    def acceptable(self, reports: Reports, settings: MechanismSettings) -> BoolArray:
        """Accept any numbers: however large, the solution that they lead to lies in the l1 ball (with the repair)."""
        return np.full(len(reports.epsilons), settings.repair)

    def condense(self, reports: Reports, settings: MechanismSettings) -> LevelSums:
        """Solve each voter's noisy objective and add up the solutions."""
        return _sums(settings, reports)

    def aggregate(self, reports: Iterable[Reports | LevelSums], settings: MechanismSettings) -> Estimate:
        """Solve each voter's noisy objective and average the solutions.

        A solution's size shrinks with its noise (through the repair), so its worth grows like epsilon only.
        """
        sums = all_sums(reports, partial(_sums, settings))
        micro, exists = sums.levels.T
        weights = sums.weights(1 / micro, settings.equal_votes)
        facts: dict[str, Any] = {
            "repair": "regularised, trimmed, projected onto the l1 ball" if settings.repair else "none",
            "sensitivity": settings.sensitivity,
            "record_norm": settings.study.record_bound,
            "voters_without_a_maximum": int(sums.counts[exists == 0].sum()),
        }
        return Estimate(sums.mean(weights), sums.spread(weights), facts)


def clipped_records(ballots: Ballots, study: Study) -> int:
    """Count the records longer than the study's public bound, which get scaled down. Private: not to publish."""
    lengths = np.sqrt(np.square(ballots.dilemmas, dtype=np.float64).sum(axis=1))
    return int(np.sum(lengths > study.record_bound))


def solve(reports: Reports, settings: MechanismSettings) -> tuple[FloatArray, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Maximise each report's noisy quadratic; also tell for which the printed maximum exists at all.

    Works on beta for normalised records; divided by the record bound, it is a preference in model units.
    """
    linear, quadratic = quadratic_forms(reports.values, settings.study.dimension)
    curvature, axes = np.linalg.eigh(quadratic)
    exists = curvature[:, -1] < 0
    if settings.repair:
        deviation = math.sqrt(2) * _sensitivity(settings) / STEPS / reports.epsilons.values
        curvature = curvature - 4 * deviation[:, None]
        usable = curvature < 0
    else:
        usable = curvature != 0
    along = np.einsum("vkl,vk->vl", axes, linear)
    steps = np.where(usable, -along / (2 * np.where(usable, curvature, 1.0)), 0.0)
    solution = np.einsum("vkl,vl->vk", axes, steps) / settings.study.record_bound
    if settings.repair:
        solution = project_onto_l1_ball(solution, settings.norm_bound)
    return solution, exists


def _sums(settings: MechanismSettings, reports: Reports) -> LevelSums:
    """Add up the solutions, by epsilon and by whether the maximum exists."""
    solved, exists = solve(reports, settings)
    return LevelSums.of(np.stack([reports.epsilons.micro, exists], axis=1), solved)


def quadratic_forms(coefficients: IntArray, dimension: int) -> tuple[FloatArray, FloatArray]:
    """Return integer coefficients as real objectives a . b + b' Q b: the vectors a and the symmetric matrices Q."""
    real = coefficients / STEPS
    rows, columns = np.triu_indices(dimension)
    quadratic = np.zeros((len(real), dimension, dimension))
    quadratic[:, rows, columns] = quadratic[:, columns, rows] = real[:, dimension:] * np.where(rows == columns, 1, 0.5)
    return real[:, :dimension], quadratic


def _sensitivity(settings: MechanismSettings) -> int:
    d = settings.study.dimension
    return coefficient_steps(d, tight_delta(d) if settings.sensitivity == "tight" else papers_delta(d))


def objective_coefficients(differences: ValueArray, offsets: IntArray, record_bound: float) -> IntArray:
    """Sum the integer coefficients of each voter's records: d linear ones, then the upper triangle by rows."""
    d = differences.shape[1]
    result = np.zeros((len(offsets) - 1, number_of_coefficients(d)), np.int64)
    _accumulate(differences, offsets, record_bound, result)
    return result


@numba.njit(cache=True, nogil=True)
def _accumulate(differences: Any, offsets: Any, record_bound: float, result: Any) -> None:
    d = differences.shape[1]
    record = np.empty(d, np.int64)
    for voter in range(len(offsets) - 1):
        for j in range(offsets[voter], offsets[voter + 1]):
            length = 0.0
            for k in range(d):
                length += float(differences[j, k]) ** 2
            shrink = RECORD_STEPS / max(record_bound, math.sqrt(length))
            norm = 0
            for k in range(d):
                record[k] = int(differences[j, k] * shrink)
                norm += record[k] * record[k]
            while norm > RECORD_STEPS * RECORD_STEPS:  # the promise is kept in integers, whatever came in
                k = int(np.argmax(np.abs(record)))
                norm -= 2 * abs(record[k]) - 1
                record[k] -= np.sign(record[k])
            place = d
            for k in range(d):
                result[voter, k] += _scaled(_LINEAR, record[k], RECORD_STEPS)
                for m in range(k, d):
                    factor = _SQUARE if m == k else _PRODUCT
                    result[voter, place] -= _scaled(factor, record[k] * record[m], RECORD_STEPS * RECORD_STEPS)
                    place += 1


@numba.njit(cache=True, nogil=True, inline="always")
def _scaled(factor: int, value: int, steps: int) -> int:
    """factor * value / steps, truncated toward zero; the product stays below 2^62."""
    return factor * value // steps if value >= 0 else -(factor * -value // steps)


_PRIOR_DEVIATION = 1.0


class Algorithm3Choices(_PerturbedObjectives):
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
    options = ("norm_bound", "equal_votes")

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> Reports:
        """Expand each voter's objective and add noise to its linear coefficients."""
        values = objective_coefficients(ballots.differences, ballots.offsets, settings.study.record_bound)
        d = settings.study.dimension
        values[:, :d] += noise.laplace(linear_sensitivity(d), epsilons, d)
        return Reports(epsilons, values)

    def acceptable(self, reports: Reports, settings: MechanismSettings) -> BoolArray:
        """Refuse linear parts further out than the records (seen in the public diagonal) and the noise reach."""
        d = settings.study.dimension
        _, quadratic = quadratic_forms(reports.values, d)
        # |sum of n values| <= sqrt(n sum of squares) <= n / 2 + sum of squares; n is at most a ballot's dilemmas.
        squares = -np.trace(quadratic, axis1=1, axis2=2) * math.pi
        largest = ((settings.study.drawing.dilemmas + squares) * STEPS).astype(np.int64)
        return within_reach(reports.values[:, :d], largest, linear_sensitivity(d), reports.epsilons, terms=1)

    def condense(self, reports: Reports, settings: MechanismSettings) -> LevelSums:
        """Solve each voter's objective and add up the solutions."""
        return _linear_sums(settings, reports)

    def aggregate(self, reports: Iterable[Reports | LevelSums], settings: MechanismSettings) -> Estimate:
        """Solve each voter's objective and average the solutions by what their noise leaves of them."""
        sums = all_sums(reports, partial(_linear_sums, settings))
        weights = sums.weights(1 / sums.levels[:, 0], settings.equal_votes)
        facts = {"record_norm": settings.study.record_bound}
        return Estimate(sums.mean(weights), sums.spread(weights), facts)


def linear_sensitivity(dimension: int) -> int:
    """Bound in grid steps how far one turned choice moves the linear coefficients, in l1."""
    return 2 * math.ceil(math.nextafter(math.sqrt(2 * dimension / math.pi) * STEPS, math.inf))


def _linear_sums(settings: MechanismSettings, reports: Reports) -> LevelSums:
    return LevelSums.of(reports.epsilons.micro, _solve_linear(reports, settings))


def _solve_linear(reports: Reports, settings: MechanismSettings) -> FloatArray:
    """Find the most probable preference given the noisy slope at zero.

    At zero the objective has the slope a and the curvature -H, so without noise H beta = a. Along an eigenvector of H
    with eigenvalue h, a is h beta with variance h (of the choices) + s^2 (of the noise); with the prior N(0, tau^2)
    this gives beta = a h / (h + s^2) / (h^2 / (h + s^2) + 1 / tau^2).
    """
    d = settings.study.dimension
    bound = settings.study.record_bound
    linear, quadratic = quadratic_forms(reports.values, d)
    curvature, axes = np.linalg.eigh(-2 * quadratic)
    noise = 2 * (linear_sensitivity(d) / STEPS * 1e6 / reports.epsilons.micro[:, None]) ** 2
    curvature = np.maximum(curvature, 0.0)
    trust = curvature / (curvature + noise)
    along = np.einsum("vkl,vk->vl", axes, linear)
    steps = along * trust / (curvature * trust + 1 / (_PRIOR_DEVIATION * bound) ** 2)
    return project_onto_l1_ball(np.einsum("vkl,vl->vk", axes, steps) / bound, settings.norm_bound)
