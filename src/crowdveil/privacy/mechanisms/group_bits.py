"""Preferences of groups (VLDP): each voter reports one bit together with her group, by randomised response."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.estimation.ballot_fit import gain_of_whole
from crowdveil.estimation.design import measured_design
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.about_you import AboutYou
from crowdveil.privacy.mechanisms.devices import device_sums
from crowdveil.privacy.mechanisms.group_mechanism import (
    GroupEstimate,
    Grouping,
    NoisyGroup,
    fewest_voters,
    groups_by_counts,
    less_sure_of_size,
)
from crowdveil.privacy.mechanisms.integer_scores import voter_scores
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.one_bit import (
    LENGTH_ONE_IN,
    UNHEARD,
    AxisMeans,
    BitKind,
    carried_coins,
    estimate_from_means,
    exact_bits,
    public_clip,
    scored_ballots,
    uniform_below,
    whole_ballots,
)
from crowdveil.privacy.noise.distribution import CoinSum
from crowdveil.privacy.noise.source import Noise

_DIRECTION, _LENGTH = range(len(BitKind))


@dataclass(frozen=True)
class GroupBitReports:
    """Reports of devices: a kind, an axis, and one of 1 + 2 G answers."""

    epsilons: Epsilons
    kinds: IntArray
    axes: IntArray
    said: IntArray
    of: int
    """Number of axes."""

    def rows(self) -> IntArray:
        """Return all that leaves the devices, one row per voter: public columns, a mask of the answers, the answers."""
        mask = (self.axes[:, None] == np.arange(self.of)).astype(np.int64)
        return np.column_stack([self.epsilons.micro, self.kinds, mask, mask * self.said[:, None]])


@dataclass(frozen=True)
class GroupBits:
    """The bit of ``OneBit`` along one axis, together with the voter's group, as one of 1 + 2 G answers.

    The device draws a kind and an axis independently of the voter's data, and draws the exact bit there as ``OneBit``
    does. It reports the group and the bit together, or that the group is not known, by ``AboutYou``.

    Theorem. The report is epsilon-differentially private for VLDP: it protects all of a voter's answers and what she
    said about herself, taken together.

    Proof. The kind and the axis are independent of the voter's data. Given them and the exact bits of any two voters,
    each of the 1 + 2 G answers is at most e^epsilon times as likely for one as for the other (``AboutYou``). Averaging
    over the randomness of the exact bits preserves this.
    """

    grouping: Grouping

    name = "group-bits"
    title = "One bit of each voter's mean score along a random axis with the group, by randomised response"
    words = "coin tosses, by which each voter's device may report another group and another bit than the true ones"
    paradigms = ("vldp",)
    papers = ()
    options = ()

    @property
    def answers(self) -> int:
        """The number of possible answers, 1 + 2 G."""
        return 1 + 2 * len(self.grouping.labels)

    def prepare(
        self, source: BallotSource, settings: MechanismSettings, loss: Epsilon, noise: Noise, smallest: int = 0
    ) -> Callable[[], list[GroupEstimate]]:
        """Return a function that lets the devices report, and estimates."""
        return lambda: self.estimates(
            device_sums(source, self.report, self.tally, settings, loss, noise), settings, loss, smallest
        )

    def report(
        self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise
    ) -> GroupBitReports:
        """Draw records, kinds, axes and exact bits, and report them with the group."""
        scored = scored_ballots(ballots, settings.study, noise)
        directions = measured_design(settings.study).directions
        clip = public_clip(settings.study)
        of_length = noise.uniform(LENGTH_ONE_IN, ballots.voters, 1)[:, 0] == 0
        axes = noise.uniform(directions, ballots.voters, 1)[:, 0]
        scores = voter_scores(scored, settings.study)[np.arange(ballots.voters), axes]
        drawn = uniform_below(2 * clip * scored.counts, 1, noise)
        bits = exact_bits(scores[:, None], scored.counts, clip, of_length, drawn)[:, 0]
        codes = self.grouping.codes(ballots)
        truths = np.where(codes >= 0, 1 + 2 * codes + (bits < 0), 0)
        said = AboutYou().report(truths, self.answers, epsilons, noise)
        return GroupBitReports(epsilons, np.where(of_length, _LENGTH, _DIRECTION), axes, said, directions)

    def tally(self, reports: GroupBitReports, settings: MechanismSettings) -> FloatArray:
        """Count the answers of each kind along each axis."""
        places = (reports.kinds * reports.of + reports.axes) * self.answers + reports.said
        counts = np.bincount(places, minlength=len(BitKind) * reports.of * self.answers)
        return counts.reshape(len(BitKind), reports.of, self.answers).astype(np.float64)

    def estimates(
        self, tallies: Iterable[FloatArray], settings: MechanismSettings, epsilon: Epsilon, smallest: int = 0
    ) -> list[GroupEstimate]:
        """Correct the counts for the randomisation, merge small groups, and estimate the preference of each group.

        If x of N voters hold one of C answers, the expected number of reports of it is g x + N / (e^epsilon + C - 1)
        with g = (e^epsilon - 1) / (e^epsilon + C - 1). The counts of N reports are multinomial, whatever voters hold
        and however they were sampled.
        """
        counts = reduce(np.add, tallies)
        total = float(counts.sum())
        said = counts.sum(axis=(0, 1))[1:].reshape(-1, 2).sum(axis=1)
        floor, gain = self._odds(epsilon)
        sizes = (said - 2 * floor * total) / gain
        deviations = np.sqrt(said * (1 - said / total)) / gain
        found = groups_by_counts(self.grouping.labels, sizes.tolist(), deviations.tolist(), smallest)
        return [self._estimate(group, counts, settings, gain) for group in found]

    def _estimate(
        self, group: NoisyGroup, counts: FloatArray, settings: MechanismSettings, gain: float
    ) -> GroupEstimate:
        total = float(counts.sum())
        share = group.voters / total
        plus, minus = (counts[:, :, 1 + side :: 2][:, :, list(group.members)].sum(axis=2) for side in (0, 1))
        reports = counts.sum(axis=2)
        told, told_variance = _mean(plus[_LENGTH].sum(), minus[_LENGTH].sum(), reports[_LENGTH].sum(), share, gain)
        three = zip(*(counted[_DIRECTION].tolist() for counted in (plus, minus, reports)), strict=True)
        along = [_mean(more, less, said, share, gain) for more, less, said in three]
        means, variances = np.array(along).T
        means = AxisMeans(
            means,
            variances,
            np.zeros(len(means)),
            np.zeros((len(means), len(means))),
            (1 + told) / 2,
            told_variance / 4,
            max(round(group.voters), 1),
            [1],
        )
        found = estimate_from_means(means, measured_design(settings.study).rotated, settings)
        return GroupEstimate(group, less_sure_of_size(found, settings.study, group.deviation / group.voters))

    def _odds(self, epsilon: Epsilon) -> tuple[float, float]:
        """Return the probability of reporting an answer that nobody holds, and the increase if everybody holds it."""
        spread = math.exp(epsilon.value) + self.answers - 1
        return 1 / spread, math.expm1(epsilon.value) / spread

    def count_deviation(self, voters: int, epsilon: Epsilon) -> float:
        """Return the standard deviation of the estimated size of a group, if all groups have the same size."""
        floor, gain = self._odds(epsilon)
        said = gain / len(self.grouping.labels) + 2 * floor
        return math.sqrt(voters * said * (1 - said)) / gain

    def fewest(self, voters: int, loss: Epsilon) -> float:
        """Return the smallest estimated size at which a group counts as non-empty."""
        return fewest_voters(self.count_deviation(voters, loss))

    def what_is_left(self, loss: Epsilon) -> str | None:
        """Return in words how much the group's part in a report leaves of the information."""
        return f"a group tells about as much as one of {self.worth(loss):.0%} of its size whose members are known"

    def worth(self, epsilon: Epsilon) -> float:
        """Return the effective size of a group, as a fraction of its size if its members were known.

        With known members a bit is flipped with probability 1 / (1 + e^epsilon), and the mean of n voters' bits has the
        variance 1 / (n tanh(epsilon / 2)^2). Here, for n of N voters, it is N (g n / N + 2 / (e^epsilon + C - 1)) /
        (g n)^2.
        """
        floor, gain = self._odds(epsilon)
        share = 1 / len(self.grouping.labels)
        return share * gain**2 / ((gain * share + 2 * floor) * math.tanh(epsilon.value / 2) ** 2)

    def expected_noise(self, settings: MechanismSettings, voters: int, loss: Epsilon) -> CoinSum:
        """Return the noise of one group's estimate, if all have the same size and the crowd is indifferent."""
        design = measured_design(settings.study).rotated
        k = design.directions
        group = voters / len(self.grouping.labels) * self.worth(loss) * math.tanh(loss.value / 2) ** 2
        errors = np.eye(k) * k / (group * (1 - 1 / LENGTH_ONE_IN))
        return carried_coins(design, gain_of_whole(whole_ballots(settings.study)), errors)


def _mean(plus: float, minus: float, reports: float, share: float, gain: float) -> tuple[float, float]:
    """Return the mean bit of a group that is a share of those who reported, and its variance."""
    if not reports > 0:
        return 0.0, UNHEARD
    voters = reports * share
    variance = (plus + minus - (plus - minus) ** 2 / reports) / (gain * voters) ** 2
    return (plus - minus) / (gain * voters), max(variance, 1 / voters**2)
