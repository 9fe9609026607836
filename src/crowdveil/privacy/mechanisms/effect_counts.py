"""Effects with central noise (VLCP, RLCP, ALCP): noisy counts of preferred sides, for all groups at once.

For each group of voters and each factor two counts are released, with exact noise: how often the side with more of the
factor was preferred (plus), and how often the other was (minus). The effect is their difference over their sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Protocol

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.engines.batches import map_batches
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.effects import counts_of_voters
from crowdveil.estimation.ratios import Ratio
from crowdveil.privacy.epsilon import LEAST, LEAST_MICRO, Epsilon, Epsilons, PrivacyMeasure
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.mechanisms.group_mechanism import Grouping
from crowdveil.privacy.mechanisms.integer_scores import cube_variance
from crowdveil.privacy.mechanisms.mechanism import Estimand, Estimate, Measurement, MechanismSettings
from crowdveil.privacy.noise.distribution import EmpiricalNormal
from crowdveil.privacy.noise.source import Noise

STEPS = 2**20
"""Grid steps of one voter's share, or of one record."""
WEIGHT_STEPS = 2**16
"""Grid steps of the largest allowed weight."""
ALIKE = 0.5
"""Assumed upper bound on the correlation of one person's choices along a factor, if it is not measured."""
_USUALLY_ALIKE = 0.2
"""Expected correlation, if it is measured; used for planning only."""
_USUAL_SCATTER = 0.65
"""Expected scatter of voters relative to its bound, if it is measured; used for planning only."""
_SQUARE_REACH = 4
"""A record moves the square of its voter's sum, divided by the number of terms, by less than this."""
_LENGTHS = 6
"""Number of public tallies of a group if records are protected: voters, weights, and sums of L, L^2, u L, u^2 L."""
_BIN_BITS = 4
_BINS = 2**8
"""Bins of lengths: each length of fewer than 2^5 has its own, and longer ones have 2^4 for every doubling."""


@dataclass(frozen=True)
class NoisySums:
    """Sums of some factors that share one draw of cube noise, in each group."""

    factors: tuple[int, ...]
    parts: int
    """Number of sums per factor."""
    counts_voters: bool
    """Whether there is one more sum, that of voters."""
    sensitivity: int
    """Sensitivity in steps: the largest moves in all groups and all blocks with the same epsilon, added up."""
    epsilon: Epsilon
    scenario: bool = False
    """Whether the block is for one type of scenario; no record is in two such blocks."""

    @property
    def columns(self) -> int:
        """The number of sums of each group."""
        return self.parts * len(self.factors) + self.counts_voters

    @property
    def variance(self) -> float:
        """The variance of the noise in each sum."""
        return cube_variance(self.sensitivity / STEPS, self.epsilon.value, self.columns)


@dataclass(frozen=True)
class _CountMeasurement(Measurement):
    """Exact counts, and the public data beside them."""

    public: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False)
class EffectCounts:
    """Counts of preferred sides, by group and factor, with cube noise.

    A voter (VLCP) adds to the counts of her group, for each factor, the share of her pairs in which she preferred the
    side with more of it (plus) and the share in which she preferred the other (minus). If there are several groups, she
    also adds 1 to the number of its voters. She adds nothing for a factor without such a pair, and nothing at all if
    her group is not known. A record (RLCP) adds 1 to one of the two counts of each factor that its pair is a contrast
    of. If only choices are protected (ALCP), the number of pairs is public, and only plus is released. With
    ``squares``, each factor has one more sum, which measures the correlation of one person's choices: for a voter with
    n pairs and the sum S of signs, (S / n)^2 by voter, and S^2 / 4n otherwise. Weights u, from 0 to 1, multiply what a
    voter adds.

    The sums of factors whose contrasts are different types of scenario (A) are separate from those of all others (B),
    since a record is of one type. Each factor in A has its own draw of noise; all factors in B share one.

    Theorem. Let B have cube noise of sensitivity STEPS at epsilon_B, and A of sensitivity s at epsilon_A, where s is
    STEPS for ALCP and 2 STEPS for RLCP. If voters are protected, everything is in B, with sensitivity 2 STEPS if there
    are several groups. In steps of 1 / STEPS, and with independent noise for each group, the noisy sums are
    (epsilon_A + epsilon_B)-differentially private for VLCP (including what a voter says about herself), RLCP and ALCP
    (not including it).

    Proof. What a voter adds to a coordinate lies in [0, 1] and is rounded down to steps; a difference of at most STEPS
    stays at most STEPS. So replacing a voter moves no coordinate of a group by more than STEPS. If her group changes,
    it moves those of two groups, and the largest moves in all groups add up to at most 2 STEPS. The groups' noises are
    independent, with densities proportional to exp(-|x|_max epsilon / s). So by the triangle inequality in each group,
    probabilities change by a factor of at most exp(epsilon (sum of largest moves) / s) <= e^epsilon.

    A replaced record stays in its voter's group. It leaves at most one of the two counts of a factor and enters at most
    one, so each moves by at most 1. For the squares, let n pairs have the sum S, |S| <= n. Flipping a choice moves
    S^2 / n by 4 |S + 1| / n <= 4 (n - 1) / n < 4, where S is the smaller sum. Adding a pair of sign s moves it by
    (n (2 s S + 1) - S^2) / (n (n + 1)), which grows with s S from above -3 (at -n) to 1 (at n). So whatever a replaced
    record was and becomes, S^2 / 4n moves by at most 1. A weight of at most 1 does not increase any move. So the sums
    in B move by at most STEPS. In A, a record affects the sums of one factor, and the record that replaces it those of
    at most one other factor: the largest moves of the factors add up to at most 2 STEPS. A flipped choice is such a
    record, but stays with its factor, and the numbers of pairs do not move. A and B together lose the sum of what each
    loses.
    """

    unit: Unit
    blocks: tuple[NoisySums, ...]
    grouping: Grouping | None = None
    squares: bool = False
    weights: IntArray | None = None
    """Public weights of the voters in order, in WEIGHT_STEPS of the largest allowed; None for equal weights."""

    name = "effect-counts"
    title = "Noisy counts of which side was preferred, by factor"
    words = "noise, added once, to the counts of who preferred which side"
    paradigms = ("vlcp", "rlcp", "alcp")
    papers = ()
    options = ()
    estimates = Estimand.EFFECTS
    takes = PrivacyMeasure.EPSILON

    @classmethod
    def planned(
        cls, unit: Unit, epsilon: Epsilon, crowd: PublicCrowd, grouping: Grouping | None = None
    ) -> EffectCounts:
        """Choose the split of epsilon that minimises the summed variance of the effects, from public numbers."""
        candidates = [cls._with(unit, epsilon, crowd, grouping, squares=squares) for squares in (False, True)]
        return min(candidates, key=lambda one: float(one._variances(crowd).sum()))

    @classmethod
    def _with(
        cls, unit: Unit, epsilon: Epsilon, crowd: PublicCrowd, grouping: Grouping | None, *, squares: bool
    ) -> EffectCounts:
        parts = 1 + (unit is not Unit.CHOICE) + squares
        apart = [] if unit is Unit.VOTER else [k for k, alone in enumerate(crowd.apart) if alone]
        together = tuple(k for k in range(len(crowd.apart)) if k not in apart)
        grouped_voters = unit is Unit.VOTER and grouping is not None
        sensitivity = 2 * STEPS if grouped_voters else STEPS
        if not apart:
            return cls(unit, (NoisySums(together, parts, grouped_voters, sensitivity, epsilon),), grouping, squares)
        alone = 2 * STEPS if unit is Unit.RECORD and len(apart) > 1 else STEPS
        shares = [
            sum(NoisySums(factors, parts, False, steps, epsilon).variance / crowd.pairs[k] ** 2 for k in counted)
            for factors, steps, counted in (((0,), alone, apart), (together, STEPS, together))
        ]
        first, second = (share ** (1 / 3) for share in shares)
        micro = min(max(round(epsilon.micro * first / (first + second)), LEAST_MICRO), epsilon.micro - LEAST_MICRO)
        if not together:
            micro = epsilon.micro
        elif micro < LEAST_MICRO:
            raise CrowdveilError(f"epsilon {epsilon} is too small to be divided: effects need twice {LEAST} or more")
        blocks = [NoisySums((k,), parts, False, alone, Epsilon.of_millionths(micro), scenario=True) for k in apart]
        if together:
            blocks.append(NoisySums(together, parts, False, STEPS, Epsilon.of_millionths(epsilon.micro - micro)))
        return cls(unit, tuple(blocks), grouping, squares)

    @property
    def groups(self) -> int:
        """The number of groups."""
        return 1 if self.grouping is None else len(self.grouping.labels)

    def prepare(
        self, source: BallotSource, settings: MechanismSettings, loss: Epsilon, noise: Noise
    ) -> Callable[[], list[GroupCounts]]:
        """Count, and return a function that adds the noise and computes the effects."""
        measured = self.measure(source, settings, loss)
        return lambda: self.ratios(self.release(measured, settings, loss, noise), measured, settings, loss)

    def measure(self, source: BallotSource, settings: MechanismSettings, loss: Epsilon) -> Measurement:
        """Add up the counts."""
        size = self.groups * sum(block.columns for block in self.blocks)
        voters, records, *sums = reduce(np.add, map_batches(source, self._tally)).tolist()
        return _CountMeasurement(
            np.array(sums[:size], np.int64), voters, records, public=np.array(sums[size:], np.int64)
        )

    def release(self, measurement: Measurement, settings: MechanismSettings, loss: Epsilon, noise: Noise) -> Estimate:
        """Add the noise."""
        if self._spent != loss.micro:
            raise ValueError(f"these blocks spend {self._spent} millionths, and not {loss.micro}: this is a bug")
        noisy = (measurement.total + self.draw(noise, 1)[0]) / STEPS
        return Estimate(noisy, self.expected_noise(settings, measurement.voters, loss))

    def draw(self, noise: Noise, times: int) -> IntArray:
        """Draw the noise of all sums ``times`` times, one row each."""
        drawn = [
            noise.cube(block.sensitivity, Epsilons.same(block.epsilon, times * self.groups), block.columns)
            for block in self.blocks
        ]
        return np.concatenate(drawn, axis=1).reshape(times, -1)

    @staticmethod
    def public_part(measurement: Measurement) -> IntArray:
        """Return the part of the measurement that neighbours share, which effects are computed with."""
        assert isinstance(measurement, _CountMeasurement)
        return measurement.public

    @property
    def _spent(self) -> int:
        """Total epsilon in millionths. All blocks of single types of scenario have the same epsilon, counted once."""
        once = {block.epsilon.micro for block in self.blocks if block.scenario}
        return sum(once) + sum(block.epsilon.micro for block in self.blocks if not block.scenario)

    def expected_noise(self, settings: MechanismSettings, voters: int, loss: Epsilon) -> EmpiricalNormal:
        """Return the noise of one group's sums."""
        variances = np.concatenate([np.full(block.columns, block.variance) for block in self.blocks])
        return EmpiricalNormal(tuple(map(tuple, np.diag(variances).tolist())))

    def expected_variances(self, crowd: PublicCrowd, voters: int, loss: Epsilon) -> FloatArray:
        """Return the expected variance of each factor's effect, if the effect is 0; the blocks know the epsilon."""
        return self._variances(crowd)

    def _variances(self, crowd: PublicCrowd) -> FloatArray:
        pairs = (crowd.heard if self.unit is Unit.VOTER else crowd.pairs) / self.groups
        noise = np.zeros(len(pairs))
        for block in self.blocks:
            noise[list(block.factors)] = (4 if self.unit is Unit.CHOICE else 2) * block.variance
        if self.unit is Unit.VOTER:
            drawn = pairs * (_USUAL_SCATTER if self.squares else 1.0)
        else:
            drawn = pairs * (1 + (_USUALLY_ALIKE if self.squares else ALIKE) * (crowd.sizes - 1))
        return np.asarray((noise + drawn) / np.maximum(pairs, 1e-9) ** 2, np.float64)

    def ratios(
        self, noisy: Estimate, measurement: Measurement, settings: MechanismSettings, loss: Epsilon
    ) -> list[GroupCounts]:
        """Compute the effects of each group from its noisy sums."""
        rows = noisy.parameter.reshape(self.groups, -1)
        public = self.public_part(measurement).reshape(self.groups, -1)
        dilemmas = settings.study.drawing.dilemmas
        if self.unit is Unit.VOTER:
            return [self._of_voters(self._sums(row), row, dilemmas) for row in rows]
        return [self._of_records(self._sums(row), told) for row, told in zip(rows, public, strict=True)]

    def _sums(self, row: FloatArray) -> list[_FactorSums]:
        """Split a group's noisy sums by factor."""
        found: dict[int, _FactorSums] = {}
        start = 0
        for block in self.blocks:
            size = len(block.factors)
            for place, k in enumerate(block.factors):
                sums = [float(row[start + part * size + place]) for part in range(block.parts)]
                found[k] = _FactorSums(
                    sums[0],
                    None if self.unit is Unit.CHOICE else sums[1],
                    sums[-1] if self.squares else None,
                    block.variance,
                )
            start += block.columns
        return [found[k] for k in range(len(found))]

    def _tally(self, ballots: Ballots, before: int) -> IntArray:
        plus, minus = counts_of_voters(ballots)
        pairs = plus + minus
        some = np.maximum(pairs, 1)
        if self.unit is Unit.VOTER:
            added = [plus * STEPS // some, minus * STEPS // some, squared_share(plus - minus, some)]
        else:
            added = [plus * STEPS, minus * STEPS, squared_sum(plus - minus, some)]
        parts = [added[0], *([] if self.unit is Unit.CHOICE else [added[1]]), *([added[2]] if self.squares else [])]
        kept = []
        for block in self.blocks:
            kept += [part[:, list(block.factors)] for part in parts]
            if block.counts_voters:
                kept.append(np.full((ballots.voters, 1), STEPS))
        weights = np.full(ballots.voters, WEIGHT_STEPS)
        if self.weights is not None:
            weights = self.weights[before : before + ballots.voters]
        sums = np.concatenate(kept, axis=1) * weights[:, None] // WEIGHT_STEPS
        codes = np.zeros(ballots.voters, np.int64) if self.grouping is None else self.grouping.codes(ballots)
        totals = [sums, self._public(ballots.counts, plus + minus, weights)]
        found, public = (np.stack([one[codes == g].sum(axis=0) for g in range(self.groups)]) for one in totals)
        if self.unit is Unit.RECORD:
            public = np.concatenate([public, self._binned(ballots.counts, weights, codes)], axis=1)
        return np.concatenate([[ballots.voters, ballots.records], found.reshape(-1), public.reshape(-1)])

    def _public(self, lengths: IntArray, pairs: IntArray, weights: IntArray) -> IntArray:
        """Return what neighbours share of each voter (rows).

        If records are protected, that is the length of her ballot (also counted by its bin); if choices are, also her
        numbers of pairs.
        """
        if self.unit is Unit.VOTER:
            return np.zeros((len(lengths), 0), np.int64)
        weighed = weights * lengths
        of_lengths = [np.ones_like(lengths), weights, lengths, lengths**2, weighed, weights * weighed // WEIGHT_STEPS]
        told = np.stack(of_lengths, axis=1)
        if self.unit is Unit.RECORD:
            return told
        return np.concatenate([told, pairs * weights[:, None], (pairs > 0) * weights[:, None], pairs**2, pairs], axis=1)

    def _binned(self, lengths: IntArray, weights: IntArray, codes: IntArray) -> IntArray:
        """Return the sums of u and of u L of each group's voters (rows), by the bin of their length."""
        known = codes >= 0
        found = np.zeros((2, self.groups, _BINS), np.int64)
        for sums, values in zip(found, (weights, weights * lengths), strict=True):
            np.add.at(sums, (codes[known], length_bins(lengths[known])), values[known])
        return np.concatenate(found, axis=1)

    def _of_voters(self, sums: list[_FactorSums], row: FloatArray, dilemmas: int) -> GroupCounts:
        share = 1.0
        if self.weights is not None:
            shares = self.weights / WEIGHT_STEPS
            share = float((shares**2).sum() / max(shares.sum(), 1e-12))
        ratios = []
        for one in sums:
            found = one.ratio
            scatter = 1.0
            if one.square is not None and found.known:
                left = one.square - found.estimate**2 * found.pairs + math.sqrt(one.variance)
                scatter = _within(left, found.pairs * (1 - found.estimate**2), 1 / dilemmas, 1.0)
            ratios.append(replace(found, clustering=share * scatter))
        (block,) = self.blocks
        return GroupCounts(tuple(ratios), float(row[-1]) if block.counts_voters else None)

    def _of_records(self, sums: list[_FactorSums], public: IntArray) -> GroupCounts:
        _, weighed, records, squared, weighed_records, weighed_squares = public[:_LENGTHS].tolist()
        share = weighed_squares / max(weighed_records, 1)
        of_pairs = public[_LENGTHS:].reshape(-1, len(sums)) if self.unit is Unit.CHOICE else None
        ratios = []
        for k, one in enumerate(sums):
            if of_pairs is not None:
                counted, having, pair_squares, pairs = of_pairs[:, k].tolist()
                found = one.ratio_of(counted / WEIGHT_STEPS)
                heard = having / WEIGHT_STEPS
                size = pair_squares / max(pairs, 1)
            else:
                found = one.ratio
                # As if each record were a contrast of this factor with the same chance.
                chance = min(max(found.pairs * WEIGHT_STEPS / max(weighed_records, 1), 0.0), 1.0)
                size = 1 + (squared / max(records, 1) - 1) * chance
                heard = _heard(public[_LENGTHS:].reshape(2, _BINS), chance)
            alike = ALIKE
            if one.square is not None and found.known and found.pairs > heard:
                within = 1 - found.estimate**2
                left = _SQUARE_REACH * (one.square + math.sqrt(one.variance)) - found.estimate**2 * found.pairs
                alike = _within(left - within * heard, within * (found.pairs - heard), 0.0, 1.0)
            ratios.append(replace(found, clustering=share * (1 + alike * max(size - 1, 0.0))))
        return GroupCounts(tuple(ratios), weighed / WEIGHT_STEPS)


def length_bins(lengths: IntArray) -> IntArray:
    """Return the bin of each length: the length itself where it is small, and later its first binary digits."""
    shift = np.maximum(np.frexp(lengths.astype(np.float64))[1] - 1 - _BIN_BITS, 0).astype(np.int64)
    return np.asarray(np.minimum((shift << _BIN_BITS) + (lengths >> shift), _BINS - 1), np.int64)


def _heard(binned: IntArray, chance: float) -> float:
    """Return the expected weight of voters with a pair, the sum of u (1 - (1 - chance)^L).

    It is exact where a bin has one length. In the others L is the mean, and the sum too large by less than 0.1 %.
    """
    weights, weighed = binned[:, binned[0] > 0].astype(np.float64)
    return float((weights * (1 - (1 - chance) ** (weighed / weights))).sum()) / WEIGHT_STEPS


def squared_share(difference: IntArray, pairs: IntArray) -> IntArray:
    """Return (S / n)^2 in steps, rounded down, from 0 to STEPS however many pairs there are."""
    share = np.abs(difference) * STEPS // pairs
    return np.asarray(share**2 // STEPS)


def squared_sum(difference: IntArray, pairs: IntArray) -> IntArray:
    """Return S^2 / (n _SQUARE_REACH) in steps, rounded down: divided before it is multiplied, for it to fit."""
    whole, left = np.divmod(difference**2, _SQUARE_REACH * pairs)
    return np.asarray(whole * STEPS + left * STEPS // (_SQUARE_REACH * pairs))


@dataclass(frozen=True)
class _FactorSums:
    """The noisy sums of one factor in one group."""

    plus: float
    minus: float | None
    """None if the number of pairs is public."""
    square: float | None
    variance: float
    """Variance of the noise in each sum."""

    @property
    def ratio(self) -> Ratio:
        assert self.minus is not None
        return Ratio(self.plus - self.minus, self.plus + self.minus, 2 * self.variance, 2 * self.variance, 0.0, 1.0)

    def ratio_of(self, pairs: float) -> Ratio:
        return Ratio(2 * self.plus - pairs, pairs, 4 * self.variance, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class PublicCrowd:
    """Public facts about a crowd before effects are released, completed by the study's distribution of dilemmas."""

    apart: tuple[bool, ...]
    """For each factor, whether its contrast is a type of scenario of its own."""
    pairs: FloatArray
    """Expected number of pairs of each factor's contrast."""
    heard: FloatArray
    """Expected number of voters who have such a pair."""
    sizes: FloatArray
    """Expected number of the same voter's pairs of a contrast, given a random pair of it."""


@dataclass(frozen=True)
class GroupCounts:
    """The effects of one group, and the number of its voters."""

    ratios: tuple[Ratio, ...]
    """One for each factor."""
    voters: float | None
    """A noisy count if it is protected; None for a whole crowd, or if it is not known."""

    @classmethod
    def merged(cls, groups: Iterable[GroupCounts]) -> GroupCounts:
        """Sum groups of different people."""
        several = list(groups)
        ratios = [
            Ratio(
                sum(one.difference for one in ratios),
                sum(one.pairs for one in ratios),
                sum(one.difference_variance for one in ratios),
                sum(one.pairs_variance for one in ratios),
                sum(one.covariance for one in ratios),
                max(one.clustering for one in ratios),
            )
            for ratios in zip(*(one.ratios for one in several), strict=True)
        ]
        return cls(tuple(ratios), sum(one.voters or 0.0 for one in several))


class EffectMechanism(Protocol):
    """A mechanism that releases effects."""

    @property
    def name(self) -> str:
        """Its name in releases."""

    @property
    def grouping(self) -> Grouping | None:
        """The question by which voters are grouped."""

    def expected_variances(self, crowd: PublicCrowd, voters: int, loss: Epsilon) -> FloatArray:
        """Return the expected variance of each factor's effect, if it is 0 and groups have the same size."""

    def prepare(
        self, source: BallotSource, settings: MechanismSettings, loss: Epsilon, noise: Noise
    ) -> Callable[[], list[GroupCounts]]:
        """Do everything that needs no noise, and return a function that does the rest."""


def _within(numerator: float, denominator: float, low: float, high: float) -> float:
    """Divide and clip the quotient; return the upper bound if the denominator is not positive."""
    return min(max(numerator / denominator, low), high) if denominator > 0 else high
