"""Preferences of groups (VLCP): Fisher scoring in each, with as many voters as a noisy count tells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.engines.batches import add_up
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import LEAST_MICRO, Epsilon, Epsilons
from crowdveil.privacy.mechanisms.fisher_scoring import VoterScore
from crowdveil.privacy.mechanisms.grouping import (
    GroupEstimate,
    Grouping,
    GroupOf,
    NoisyGroup,
    fewest_voters,
    groups_by_counts,
    less_sure_of_size,
)
from crowdveil.privacy.mechanisms.mechanism import Estimand, Loss, Measurement, Settings
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.noise.source import Noise

COUNTS_ONE_IN = 10
"""Of epsilon, one part in so many buys the numbers of voters."""
COUNTS_REACH = 2
"""By so much a voter who is replaced moves the numbers of voters of all groups, added up."""


@dataclass(frozen=True)
class GroupScores:
    """Noisy numbers of voters in groups, and ``VoterScore`` in each group as if it had that many.

    A part epsilon_c of epsilon is spent on Laplace noise on the numbers of voters. By these numbers alone small groups
    are merged, and every group plans its steps and turns sums into means. The rest, epsilon_s, is spent in each group.
    A voter whose group is not known is counted nowhere.

    Theorem. With independent noise in all groups, this is (epsilon_c + epsilon_s)-differentially private for VLCP, what
    a voter said of herself included: she may leave one group and enter another.

    Proof. The numbers of voters move by at most 1 in the group that is left and by 1 in the one that is entered, so
    Laplace noise of scale 2 / epsilon_c is epsilon_c-differentially private. Given the noisy numbers, which groups
    there are, and what each takes for the number of its voters, is public. A voter adds to each coordinate of a step's
    sum an integer of at most SCORE_STEPS in size (``score_sums``), and the noise of a group's step t, with epsilon_t,
    is for 2 SCORE_STEPS. If she stays in her group, its sums move by at most that, and its steps lose the sum of the
    epsilon_t, which is epsilon_s. If she leaves one group and enters another, the sums of either move by at most
    SCORE_STEPS: probabilities change by at most exp(epsilon_t / 2) in a step, and by exp(epsilon_s / 2) in all steps of
    a group; the noises of the two are independent, and together lose epsilon_s. Steps and counts compose adaptively.

    So the noise of a group is not larger than if its members were known: what is paid for the secret is the count.
    """

    grouping: Grouping

    name = "group-scores"
    title = "Fisher scoring in each group, with noisy numbers of voters"
    words = (
        "noise, added once, to the numbers of voters in groups and, at each of a few steps, to sums of the scores of "
        "each group's voters"
    )
    paradigms = ("vlcp",)
    papers = ()
    options = VoterScore.options
    estimates = Estimand.PREFERENCE
    takes = Loss.EPSILON

    def measure(self, source: BallotSource, settings: Settings, loss: Epsilon) -> Measurement:
        """Count the voters of each group; their scores are looked at when it is known how many they seem to be."""
        counted = add_up(source, self._tally)
        return Measurement(counted[1:], int(counted[0]), 0, source)

    def release(
        self, measurement: Measurement, settings: Settings, loss: Epsilon, noise: Noise, smallest: int = 0
    ) -> list[GroupEstimate]:
        """Add the noise to the counts, merge what is small by them, and score each group that is left."""
        assert measurement.source is not None
        of_counts, of_scores = split(loss)
        counts = measurement.total + self.draw(noise, of_counts, 1)[0]
        deviation = self.count_deviation(loss)
        found = groups_by_counts(self.grouping.labels, counts.tolist(), [deviation] * len(counts), smallest)
        return [self._scored(group, measurement.source, settings, of_scores, noise) for group in found]

    def draw(self, noise: Noise, epsilon: Epsilon, times: int) -> IntArray:
        """Draw the noise of all counts so many times, a row each."""
        return noise.laplace(COUNTS_REACH, Epsilons.same(epsilon, times), len(self.grouping.labels))

    def scores(self, group: NoisyGroup, source: BallotSource, settings: Settings, epsilon: Epsilon) -> Measurement:
        """Add up the first step's scores of a group, as if it had as many voters as its noisy count says."""
        voters = max(round(group.voters), 1)
        members = GroupOf(source, self.grouping, group.members, voters)
        return replace(VoterScore().measure(members, settings, epsilon), voters=voters)

    def _scored(
        self, group: NoisyGroup, source: BallotSource, settings: Settings, epsilon: Epsilon, noise: Noise
    ) -> GroupEstimate:
        measured = self.scores(group, source, settings, epsilon)
        found = VoterScore().release(measured, settings, epsilon, noise)
        return GroupEstimate(group, less_sure_of_size(found, settings.study, group.deviation / group.voters))

    @staticmethod
    def count_deviation(loss: Epsilon) -> float:
        """Return the deviation of the noise in a number of voters."""
        return math.sqrt(2) * COUNTS_REACH / split(loss)[0].value

    def fewest(self, loss: Epsilon) -> float:
        """Return how many voters a group needs to be told from none."""
        return fewest_voters(self.count_deviation(loss))

    def expected_noise(self, settings: Settings, voters: int, loss: Epsilon) -> NoiseDistribution:
        """Return the noise of one of several groups of the same size."""
        return VoterScore().expected_noise(settings, max(voters // len(self.grouping.labels), 1), split(loss)[1])

    def _tally(self, ballots: Ballots) -> IntArray:
        codes = self.grouping.codes(ballots)
        counts = np.bincount(codes[codes >= 0], minlength=len(self.grouping.labels))
        return np.concatenate([[ballots.voters], counts]).astype(np.int64)


def split(loss: Epsilon) -> tuple[Epsilon, Epsilon]:
    """Return the parts of epsilon for the counts and for the scores."""
    part = loss.micro // COUNTS_ONE_IN
    if part < LEAST_MICRO:
        raise CrowdveilError(
            f"an epsilon of {loss} is too small to be shared between counts and scores of groups: use at least "
            f"{Epsilon.of_millionths(LEAST_MICRO * COUNTS_ONE_IN)}"
        )
    return Epsilon.of_millionths(part), Epsilon.of_millionths(loss.micro - part)
