"""A third answer for any mechanism that estimates a preference: part of its budget or reports goes to the threshold.

The mechanism itself sees completed choices: a fair coin decides where the answer is "toss a coin", as these people ask.
Completed choices give a shrunken preference. The share of indifferent choices determines the threshold and, with it,
the factor of shrinkage (``estimation.threshold``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.engines.batches import completed, completed_ballots
from crowdveil.estimation.design import public_design
from crowdveil.estimation.threshold import fit_threshold
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import (
    CentralMechanism,
    DistributedMechanism,
    Estimate,
    MechanismSettings,
)
from crowdveil.privacy.mechanisms.shares import (
    NoisyShare,
    ShareComposition,
    indifference_bits,
    indifferent_by_record,
    indifferent_by_voter,
    split_budget,
)
from crowdveil.privacy.mechanisms.side_bits import BitMixture
from crowdveil.privacy.noise.distribution import CoinSum, CubeSum, EmpiricalNormal, NoiseDistribution
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.side_answers import Indifference
from crowdveil.privacy.uncertainty import Uncertainty

BUDGET_ONE_IN = 10
"""One part of a central budget in this many is spent on the share of indifferent choices."""
REPORTS_ONE_IN = 5
"""One report in this many is about indifference, drawn independently of the answers."""
_STRETCH_REACH = 2.0
"""Standard deviations of the stretch that count as doubt about the size."""


def with_threshold(estimate: Estimate, settings: MechanismSettings, share: NoisyShare) -> Estimate:
    """Rescale the preference of completed choices to the crowd's own, and add its threshold.

    The threshold is that of a crowd whose margins are beta . x, as the exact one is (``estimation.threshold``): shares
    of three answers do not allow for the disagreement of voters.
    """
    assert estimate.unknown is not None  # the estimand is a preference
    unknown = replace(estimate.unknown, disagreement=0.0, common=1.0)
    shown = public_design(settings.study).differences
    if settings.design is not None and settings.design.differences is not None:
        shown = settings.design.differences
    margins, variances = unknown.predictive(shown)
    found = fit_threshold(margins, np.sqrt(variances), share.value, share.deviation)
    # Margins that are larger by a deviation of what is not known of their size make the same share a larger threshold.
    other = fit_threshold(margins * (1 + _size_doubt(unknown, shown)), np.sqrt(variances), share.value, share.deviation)
    found = found.less_sure(abs(other.tau - found.tau))
    return replace(
        estimate,
        parameter=estimate.parameter * found.stretch,
        noise=_stretched(estimate.noise, found.stretch),
        unknown=_stretched_unknown(unknown, found.stretch, found.stretch_deviation),
        indifference=Indifference(found.tau, found.deviation, found.low, found.high, share.value, share.deviation),
    )


def _size_doubt(unknown: Uncertainty, shown: FloatArray) -> float:
    """Return the relative standard deviation of the size of margins; a bound counts as two standard deviations."""
    along = shown @ unknown.basis
    margins = along @ unknown.mean
    square = float(margins @ margins)
    if not square > 0:
        return 0.0
    slope = along.T @ margins / square
    variance = float(slope @ (unknown.covariance + np.diag(unknown.doubt**2) / 4) @ slope)
    return min(math.sqrt(variance + unknown.furthest_size**2 / 4), 1.0)


def _stretched(noise: NoiseDistribution, factor: float) -> NoiseDistribution:
    match noise:
        case CubeSum():
            return noise.stretched(factor)
        case CoinSum() | EmpiricalNormal():
            return replace(noise, covariance=_scaled(noise.covariance, factor**2))
        case _:
            raise TypeError(f"no preference carries {type(noise).__name__}")


def _scaled(matrix: tuple[tuple[float, ...], ...], factor: float) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(factor * value for value in row) for row in matrix)


def _stretched_unknown(unknown: Uncertainty, factor: float, deviation: float) -> Uncertainty:
    """Rescale an estimate and its uncertainty, and add the uncertainty of the factor itself."""
    return replace(
        unknown,
        mean=factor * unknown.mean,
        covariance=factor**2 * unknown.covariance + deviation**2 * np.outer(unknown.mean, unknown.mean),
        center=factor * unknown.center,
        sampling=factor**2 * unknown.sampling,
        divided=None if unknown.divided is None else factor**2 * unknown.divided,
        doubt=factor * unknown.doubt,
        turn=factor * unknown.turn,
        drawn_shift=factor * unknown.drawn_shift,
        size=unknown.size + _STRETCH_REACH * deviation,
    )


def threshold_split(loss: Epsilon) -> tuple[Epsilon, Epsilon]:
    """Split a central budget into the parts for the preference and for the share."""
    return split_budget(loss, BUDGET_ONE_IN, "a preference and a threshold")


@dataclass(frozen=True)
class _IndifferentShare:
    """The share of choices in which neither side was chosen: a mean of voters' own, or of all records."""

    by_voter: bool

    def split(self, loss: Epsilon) -> tuple[Epsilon, Epsilon]:
        """Reserve a part of the budget for the share."""
        return threshold_split(loss)

    def tally(self, ballots: Ballots) -> IntArray:
        """Sum the indifferent choices, in steps."""
        return indifferent_by_voter(ballots) if self.by_voter else indifferent_by_record(ballots)

    def rest(self, source: BallotSource) -> BallotSource:
        """Complete each indifferent record by a public coin that depends on its voter's name and its place only."""
        return completed(source)

    def told(
        self, estimate: Estimate, settings: MechanismSettings, share: NoisyShare, voters: int, spent: Epsilon
    ) -> Estimate:
        """Stretch the preference, and tell the threshold."""
        return with_threshold(estimate, settings, share)


def central_indifference(inner: CentralMechanism[Any, Any]) -> ShareComposition:
    """Run a central mechanism on completed choices, with a part of epsilon spent on the share of indifferent ones.

    Theorem. If the mechanism is epsilon-differentially private for every epsilon, so is this, for the same unit.

    Proof. A record is completed by a public coin for its voter and its place, so neighbours stay neighbours; the rest
    is the theorem of ``ShareComposition``. Stretch and threshold are computed from preference and share
    (post-processing). The expected noise is that of the mechanism itself, since the stretch is not known beforehand.
    """
    return ShareComposition(inner, _IndifferentShare("vlcp" in inner.paradigms))


class _Indifference:
    """Whether neither side was chosen in a record that is drawn independently of the choices."""

    field = "indifferent"
    topic = "indifference"
    one_in = REPORTS_ONE_IN

    def bits(self, ballots: Ballots, epsilons: Epsilons, noise: Noise) -> IntArray:
        """Return a private bit for each voter."""
        return indifference_bits(ballots, epsilons, noise)

    def rest(self, ballots: Ballots, noise: Noise) -> Ballots:
        """Toss a coin for every record; it decides the indifferent ones."""
        return completed_ballots(ballots, noise.uniform(2, ballots.records, 1)[:, 0] == 1)

    def told(self, estimate: Estimate, settings: MechanismSettings, share: NoisyShare) -> Estimate:
        """Stretch the preference, and tell the threshold."""
        return with_threshold(estimate, settings, share)


def distributed_indifference(inner: DistributedMechanism[Any]) -> BitMixture:
    """Run a distributed mechanism on completed choices, with one report in five replaced by a bit about indifference.

    Theorem. If the mechanism's reports are epsilon-differentially private, so are these, for the same unit.

    Proof. A bit is epsilon-differentially private for all of the voter's answers together (``shares``). In the other
    reports the device tosses a coin for every record. For any outcome of the coins, neighbours stay neighbours, and the
    mechanism's report is private; averaging over the coins preserves this. So reports of both kinds are private
    (``side_bits``).
    """
    return BitMixture(inner, _Indifference())
