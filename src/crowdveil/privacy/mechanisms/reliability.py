"""The test-retest reliability of a crowd: the share of voters who answer a repeated, mirrored dilemma consistently.

The second answer is not a record: no mechanism sees it, and nothing else is computed from it. A part of a central
budget, or of the reports, is spent on the share of people who answered consistently.

A voter contributes one bit: consistent or not. Centrally, the consistent voters are counted. Theorem. The count with
noise of density proportional to exp(-epsilon |x|) is epsilon-differentially private for all of a voter's answers
together, and so for each of her records and choices. Proof. Changing any of one voter's answers moves the count by at
most 1, and leaves the number of voters unchanged: Theorem 1 of ``cube_noise``, in one dimension. (The noise is drawn on
a grid of 1 / ``STEPS``.)

On a device, the bit is flipped with probability 1 / (1 + e^epsilon). Theorem. It is epsilon-differentially private for
all of the voter's answers together. Proof. Each of its two values has a probability between 1 / (1 + e^epsilon) and
e^epsilon / (1 + e^epsilon), whatever the answers are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import (
    CentralMechanism,
    DistributedMechanism,
    Estimate,
    MechanismSettings,
)
from crowdveil.privacy.mechanisms.shares import FLIP, STEPS, NoisyShare, ShareComposition, split_budget
from crowdveil.privacy.mechanisms.side_bits import BitMixture
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.side_answers import Reliability

ONE_IN = 10
"""One part in this many of a central budget, or of the reports of devices, is spent on the share.

At epsilon 1 the noise of a central share then equals its sampling error for 2,200 voters of whom nine in ten answer
consistently: sqrt(2) / (0.1 N) = sqrt(0.09 / N). The noise of a preference grows by a ninth, or by a twentieth if
devices add it.
"""

_TAIL = 0.025
_NORMAL = 1.959963984540054
_REACH = 9
"""Standard deviations of a binomial kept on either side; the rest has probability below 1e-18."""
_HALVINGS = 50


def answered_alike(ballots: Ballots) -> IntArray:
    """Count the voters who answered consistently, in steps."""
    assert ballots.alike is not None  # the study asks one dilemma twice
    return np.array([STEPS * int(np.count_nonzero(ballots.alike == 1))], np.int64)


def alike_bits(ballots: Ballots, epsilons: Epsilons, noise: Noise) -> IntArray:
    """Return for each voter a flipped bit about whether she answered consistently. The only place of noise."""
    assert ballots.alike is not None  # the study asks one dilemma twice
    turned = noise.tosses(FLIP, epsilons, 1)[:, 0]
    return np.where((ballots.alike == 1) ^ turned, 1, -1)


def counted_reliability(share: NoisyShare, voters: int, epsilon: Epsilon) -> Reliability:
    """Estimate the reliability of the population from a noisy count.

    The interval contains every share under which both tail probabilities of the count are at least 2.5 %, where the
    count is binomial plus Laplace noise (Clopper and Pearson 1934, with noise).
    """
    seen = share.value * voters

    def at_least(rate: float) -> float:
        return _tail(rate, voters, lambda counts: _laplace_above(seen - counts, epsilon.value))

    def at_most(rate: float) -> float:
        return _tail(rate, voters, lambda counts: _laplace_above(counts - seen, epsilon.value))

    low = _first(lambda rate: at_least(rate) >= _TAIL)
    high = 1 - _first(lambda rate: at_most(1 - rate) >= _TAIL)
    return _within(share, low, high)


def reported_reliability(share: NoisyShare) -> Reliability:
    """Estimate the reliability of the population from bits, whose mean is nearly normal.

    A bit over tanh(epsilon / 2) has mean m = 2 s - 1 and variance 1 / tanh(epsilon / 2)^2 - m^2. The interval contains
    every share s that is within 1.96 of its own standard deviations of the mean (Wilson 1927); its ends are the roots
    of a quadratic.
    """
    value = share.value
    squared = _NORMAL**2
    bound, less = squared * share.deviation**2, squared * share.concentration
    half = (2 * value + less) / 2
    reach = math.sqrt(max(half**2 - (1 + less) * (value**2 - bound + less / 4), 0.0))
    kept = min(max(value, 0.0), 1.0)
    deviation = math.sqrt(share.deviation**2 - share.concentration * (2 * kept - 1) ** 2 / 4)
    return _within(replace(share, deviation=deviation), (half - reach) / (1 + less), (half + reach) / (1 + less))


def _within(share: NoisyShare, low: float, high: float) -> Reliability:
    value, low, high = (min(max(one, 0.0), 1.0) for one in (share.value, low, high))
    return Reliability(value, share.deviation, min(low, value), max(high, value))


def _tail(rate: float, voters: int, above: Callable[[FloatArray], FloatArray]) -> float:
    """Return the expectation of a function of a binomial count."""
    reach = _REACH * math.sqrt(voters * rate * (1 - rate)) + _REACH**2
    counts = np.arange(max(0, math.floor(voters * rate - reach)), min(voters, math.ceil(voters * rate + reach)) + 1.0)
    ways = gammaln(voters + 1) - gammaln(counts + 1) - gammaln(voters - counts + 1)
    law = np.exp(ways + xlogy(counts, rate) + xlog1py(voters - counts, -rate))
    return float(law @ above(counts))


def _laplace_above(value: FloatArray, epsilon: float) -> FloatArray:
    """Return the probability that Laplace noise of scale 1 / epsilon is at least ``value``."""
    tail = np.exp(-epsilon * np.abs(value)) / 2
    return np.where(value > 0, tail, 1 - tail)


def _first(holds: Callable[[float], bool]) -> float:
    """Return the smallest rate from which a condition holds, or 1."""
    if holds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low


def reliability_split(loss: Epsilon) -> tuple[Epsilon, Epsilon]:
    """Split a central budget into the parts for the mechanism and for the count."""
    return split_budget(loss, ONE_IN, "a preference and its reliability")


class _ConsistentShare:
    """The share of voters who answered consistently."""

    by_voter = True

    def split(self, loss: Epsilon) -> tuple[Epsilon, Epsilon]:
        """Reserve a part of the budget for the count."""
        return reliability_split(loss)

    def tally(self, ballots: Ballots) -> IntArray:
        """Count the consistent voters, in steps."""
        return answered_alike(ballots)

    def rest(self, source: BallotSource) -> BallotSource:
        """Return the ballots: the second answer is no record."""
        return source

    def told(
        self, estimate: Estimate, settings: MechanismSettings, share: NoisyShare, voters: int, spent: Epsilon
    ) -> Estimate:
        """Add the reliability to the estimate."""
        return replace(estimate, reliability=counted_reliability(share, voters, spent))


def central_reliability(inner: CentralMechanism[Any, Any]) -> ShareComposition:
    """Spend a part of a central mechanism's epsilon on the number of consistent voters.

    Theorem. If the mechanism is epsilon-differentially private for every epsilon, so is this, for the same unit. A
    record, or a choice, then comprises both answers to its dilemma.

    Proof. The mechanism sees a voter's records without the second answer, so neighbours stay neighbours, and the count
    is private for all of a voter's answers together (``ShareComposition``).
    """
    return ShareComposition(inner, _ConsistentShare())


class _Reliability:
    """Whether the voter answered consistently."""

    field = "alike"
    topic = "reliability"
    one_in = ONE_IN

    def bits(self, ballots: Ballots, epsilons: Epsilons, noise: Noise) -> IntArray:
        """Return a private bit for each voter."""
        return alike_bits(ballots, epsilons, noise)

    def rest(self, ballots: Ballots, noise: Noise) -> Ballots:
        """Return the ballots: the second answer is no record."""
        return ballots

    def told(self, estimate: Estimate, settings: MechanismSettings, share: NoisyShare) -> Estimate:
        """Add the reliability to the estimate."""
        return replace(estimate, reliability=reported_reliability(share))


def distributed_reliability(inner: DistributedMechanism[Any]) -> BitMixture:
    """Replace one report in ten of a distributed mechanism by a bit about whether the voter answered consistently.

    Theorem. If the mechanism's reports are epsilon-differentially private, so are these, for the same unit.
    Proof. The bits are private for all of the voter's answers together; so reports of both kinds are (``side_bits``).
    """
    return BitMixture(inner, _Reliability())
