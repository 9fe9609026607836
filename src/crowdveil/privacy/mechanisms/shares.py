"""A share of a crowd, released beside a preference: from a part of the budget, or from bits of devices.

It is the share of choices in which neither side was chosen, or of voters who answered consistently. Centrally, each
unit (a voter, or a record) adds an integer number of steps from 0 to ``STEPS`` to a sum.

Theorem. The sum with noise of density proportional to exp(-epsilon |x| / STEPS) on the integers is epsilon-
differentially private. Proof. Replacing a unit moves the sum by at most STEPS: Theorem 1 of ``cube_noise``, in one
dimension. A voter's number is her own share of indifferent choices in steps, rounded down, however many records she
has. A record's number is 0 or STEPS, and so is that of a voter who did or did not answer consistently. The number of
units is the same in neighbours.

On a device, a record is drawn independently of the choices, and a bit says whether neither side was chosen in it.

Theorem. The bit, flipped with probability 1 / (1 + e^epsilon), is epsilon-differentially private for all of the voter's
answers together. Proof. Take any two ballots. If the bit is +1 with probability p before the flip (over the draw of the
record), it is +1 afterwards with probability (p e^epsilon + 1 - p) / (1 + e^epsilon). For any p this lies between
1 / (1 + e^epsilon) and e^epsilon / (1 + e^epsilon), and so does the probability of -1. So the probabilities under the
two ballots differ by a factor of at most e^epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, cast

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.engines.batches import Tally
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import LEAST_MICRO, Epsilon, Epsilons
from crowdveil.privacy.mechanisms.expected_errors import ExpectedErrors
from crowdveil.privacy.mechanisms.mechanism import (
    CentralMechanism,
    Estimate,
    Measurement,
    MechanismDescription,
    MechanismSettings,
    measured,
)
from crowdveil.privacy.mechanisms.reports import influence
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.noise.source import Noise

STEPS = 2**20
FLIP = Odds(0, 1, 1, 1)
"""Odds of a flip: probability 1 / (1 + e^epsilon)."""


@dataclass(frozen=True)
class NoisyShare:
    """A publishable share, and the standard deviation of its error."""

    value: float
    deviation: float
    concentration: float = 0.0
    """Sum of the squared weights of bits. The actual variance is smaller, by (2 s - 1)^2 / 4 times this."""


def split_budget(loss: Epsilon, one_in: int, between: str) -> tuple[Epsilon, Epsilon]:
    """Split one part in ``one_in`` off a central budget; return the remainder and the part."""
    part = loss.micro // one_in
    if part < LEAST_MICRO:
        raise CrowdveilError(
            f"an epsilon of {loss} is too small to be shared between {between}: use at least "
            f"{Epsilon.of_millionths(LEAST_MICRO * one_in)}"
        )
    return Epsilon.of_millionths(loss.micro - part), Epsilon.of_millionths(part)


class ShareQuestion(Protocol):
    """The quantity whose share is released."""

    @property
    def by_voter(self) -> bool:
        """Whether the units are voters rather than records."""

    def split(self, loss: Epsilon) -> tuple[Epsilon, Epsilon]:
        """Split a central budget into the parts for the mechanism and for the share."""

    def tally(self, ballots: Ballots) -> IntArray:
        """Sum the units' numbers, in steps."""

    def rest(self, source: BallotSource) -> BallotSource:
        """Return the ballots as the mechanism sees them."""

    def told(
        self, estimate: Estimate, settings: MechanismSettings, share: NoisyShare, voters: int, spent: Epsilon
    ) -> Estimate:
        """Return the estimate with what follows from the share added."""


@dataclass(frozen=True)
class _ShareMeasurement(Measurement):
    """The mechanism's measurement, and the sum over units."""

    units_total: int = 0
    effective_voters: float = 0.0
    """The number of voters, or for records, that of ballots of equal lengths with the same sampling variance."""
    inner: Measurement | None = None


class ShareComposition(MechanismDescription):
    """The composition of a central mechanism with a share, on which a part of the epsilon is spent.

    Theorem. If the mechanism is epsilon-differentially private for every epsilon, and its inputs for neighbours are
    equal or neighbours, this is epsilon-differentially private, too, for the same unit.

    Proof. The mechanism's release is (epsilon - epsilon_s)-differentially private; the share is
    epsilon_s-differentially private (above). Losses add up, and what is computed from the two is post-processing.
    """

    def __init__(self, inner: CentralMechanism[Any, Any], question: ShareQuestion) -> None:
        super().__init__(inner)
        self.takes = inner.takes
        self.fits_once = inner.fits_once
        self._inner = inner
        self._question = question

    def measure(self, source: BallotSource, settings: MechanismSettings, loss: Epsilon) -> Measurement:
        """Measure for the mechanism, and sum the units' numbers."""
        inner = self._inner.measure(self._question.rest(source), settings, self._question.split(loss)[0])
        counted = measured(source, partial(_with_squared_lengths, self._question.tally))
        units_total, squared_lengths = counted.total.tolist()
        by_voter = self._question.by_voter
        effective = counted.voters if by_voter else counted.records**2 / squared_lengths
        return _ShareMeasurement(
            inner.total,
            counted.voters,
            counted.records,
            units_total=units_total,
            effective_voters=effective,
            inner=inner,
        )

    def release(self, measurement: Measurement, settings: MechanismSettings, loss: Epsilon, noise: Noise) -> Estimate:
        """Release the preference, then the share."""
        assert isinstance(measurement, _ShareMeasurement)
        left, spent = self._question.split(loss)
        estimate = self._inner.release(cast(Measurement, measurement.inner), settings, left, noise)
        units = measurement.voters if self._question.by_voter else measurement.records
        share = noisy_share(measurement.units_total, units, measurement.effective_voters, spent, noise)
        return self._question.told(estimate, settings, share, measurement.voters, spent)

    def expected_noise(self, settings: MechanismSettings, voters: int, loss: Epsilon) -> NoiseDistribution:
        """Return the noise of the mechanism with its part of the budget."""
        return self._inner.expected_noise(settings, voters, self._question.split(loss)[0])

    def expected_errors(
        self, settings: MechanismSettings, voters: int, records: int, epsilon: Epsilon
    ) -> ExpectedErrors | None:
        """Return the errors of the mechanism with its part of the budget."""
        return self._inner.expected_errors(settings, voters, records, self._question.split(epsilon)[0])


def _with_squared_lengths(tally: Tally, ballots: Ballots) -> IntArray:
    return np.append(tally(ballots), ballots.counts.astype(np.int64) @ ballots.counts)


def indifferent_by_voter(ballots: Ballots) -> IntArray:
    """Sum the voters' own shares of indifferent choices, in steps."""
    each = np.add.reduceat(ballots.choices == 0, ballots.offsets[:-1], dtype=np.int64)
    return np.array([int((each * STEPS // ballots.counts).sum())], np.int64)


def indifferent_by_record(ballots: Ballots) -> IntArray:
    """Count the records in which neither side was chosen, in steps."""
    return np.array([STEPS * int(np.count_nonzero(ballots.choices == 0))], np.int64)


def noisy_totals(total: int, epsilon: Epsilon, noise: Noise, times: int = 1) -> IntArray:
    """Add noise to a sum of steps, ``times`` times independently. The only place where noise enters."""
    return total + noise.cube(STEPS, Epsilons.same(epsilon, times), 1)[:, 0]


def noisy_share(total: int, units: int, voters: float, epsilon: Epsilon, noise: Noise) -> NoisyShare:
    """Add noise and divide. The sampling variance of a mean of voters' shares is at most s (1 - s) / N.

    That of the share of all records, with n records of a voter, is at most s (1 - s) times sum n^2 / (sum n)^2, if
    voters' shares do not depend on n. So ``voters`` is then (sum n)^2 / sum n^2, which is N for ballots of equal
    lengths.
    """
    share = int(noisy_totals(total, epsilon, noise)[0]) / (STEPS * units)
    return NoisyShare(share, float(np.sqrt(2 / (units * epsilon.value) ** 2 + _sampling(share, voters))))


def _sampling(share: float, voters: float) -> float:
    """Return a bound on the sampling variance, with the share kept away from 0 and 1."""
    kept = (min(max(share, 0.0), 1.0) * voters + 2) / (voters + 4)
    return kept * (1 - kept) / voters


def indifference_bits(ballots: Ballots, epsilons: Epsilons, noise: Noise) -> IntArray:
    """Draw a record of each voter, and report whether neither side was chosen in it. The only place of noise."""
    drawn = np.empty(ballots.voters, np.int64)
    for count in np.unique(ballots.counts).tolist():
        rows = np.flatnonzero(ballots.counts == count)
        drawn[rows] = noise.uniform(count, len(rows), 1)[:, 0]
    neither = ballots.choices[ballots.offsets[:-1] + drawn] == 0
    turned = noise.tosses(FLIP, epsilons, 1)[:, 0]
    return np.where(neither ^ turned, 1, -1)


@dataclass(frozen=True)
class BitSums:
    """Sums of voters' bits: for each epsilon, in millionths, their number and their sum."""

    sums: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, epsilons: Epsilons, bits: IntArray) -> BitSums:
        """Sum bits by epsilon."""
        levels, place = np.unique(epsilons.micro, return_inverse=True)
        counts, totals = np.bincount(place), np.bincount(place, bits)
        return cls({m: (c, int(t)) for m, c, t in zip(levels.tolist(), counts.tolist(), totals.tolist(), strict=True)})

    def __add__(self, other: BitSums) -> BitSums:
        both = dict(self.sums)
        for micro, (count, total) in other.sums.items():
            here = both.get(micro, (0, 0))
            both[micro] = (here[0] + count, here[1] + total)
        return BitSums(both)

    @property
    def voters(self) -> int:
        """The number of bits."""
        return sum(count for count, _ in self.sums.values())

    def share(self, equal_votes: bool) -> NoisyShare:
        """Return the share, corrected for the flips, with bits weighted by the precision that their epsilon allows.

        b / tanh(epsilon / 2) has mean 2 s - 1 and variance at most 1 / tanh(epsilon / 2)^2, over the flip and the draws
        of the record and of the voter.
        """
        levels = sorted(self.sums)
        counts, totals = np.array([self.sums[level] for level in levels], np.float64).T
        tanh = np.tanh(np.array(levels) / 2e6)
        each = influence(np.repeat(1 / tanh**2, counts.astype(np.int64)), equal_votes)
        weights = each[np.cumsum(counts.astype(np.int64)) - 1]
        mean = float((weights / tanh) @ totals)
        deviation = float(np.sqrt((weights / tanh) ** 2 @ counts)) / 2
        return NoisyShare((1 + mean) / 2, deviation, float(weights**2 @ counts))
