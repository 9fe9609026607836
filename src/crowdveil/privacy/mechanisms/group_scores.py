"""Preferences of groups (VLCP): Fisher scoring in each group, with a noisy count of its voters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.engines.batches import add_up
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import LEAST_MICRO, Epsilon, Epsilons, PrivacyMeasure
from crowdveil.privacy.mechanisms.fisher_scoring import VoterScore
from crowdveil.privacy.mechanisms.group_mechanism import (
    GroupEstimate,
    Grouping,
    GroupSource,
    NoisyGroup,
    fewest_voters,
    groups_by_counts,
    less_sure_of_size,
)
from crowdveil.privacy.mechanisms.mechanism import Estimand, Measurement, MechanismSettings
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.noise.source import Noise

COUNTS_ONE_IN = 10
"""One part of epsilon in this many is spent on the numbers of voters."""
COUNTS_REACH = 2
"""l1 sensitivity of the groups' numbers of voters to replacing a voter."""


@dataclass(frozen=True)
class GroupScores:
    """Noisy numbers of voters in groups, and ``VoterScore`` in each group as if it had that many voters.

    A part epsilon_c of epsilon is spent on Laplace noise on the numbers of voters. These numbers alone determine which
    small groups are merged, and how each group plans its steps and turns sums into means. The rest, epsilon_s, is spent
    in each group. A voter whose group is not known is not counted.

    Theorem. With independent noise in all groups, this is (epsilon_c + epsilon_s)-differentially private for VLCP,
    including what a voter said about herself: a neighbour may belong to another group.

    Proof. Replacing a voter moves the number of voters by at most 1 in the group she leaves and by at most 1 in the one
    she enters, so Laplace noise of scale 2 / epsilon_c is epsilon_c-differentially private. Given the noisy numbers,
    the groups and their assumed sizes are public. A voter adds to each coordinate of a step's sum an integer of at most
    SCORE_STEPS in absolute value (``fisher_sums``), and the noise of a group's step t, with epsilon_t, is calibrated to
    2 SCORE_STEPS. If she stays in her group, its sums move by at most that, and its steps lose the sum of the
    epsilon_t, which is epsilon_s. If she moves from one group to another, the sums of each move by at most SCORE_STEPS.
    Probabilities then change by a factor of at most exp(epsilon_t / 2) in a step, and of at most exp(epsilon_s / 2) in
    all steps of a group. The two groups' noises are independent, so together they lose epsilon_s. Steps and counts
    compose adaptively.

    So the noise in a group is no larger than if its members were public: only the counts cost extra.
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
    takes = PrivacyMeasure.EPSILON

    def prepare(
        self, source: BallotSource, settings: MechanismSettings, loss: Epsilon, noise: Noise, smallest: int = 0
    ) -> Callable[[], list[GroupEstimate]]:
        """Count the voters, and return a function that releases."""
        measured = self.measure(source, settings, loss)
        return lambda: self.release(measured, settings, loss, noise, smallest)

    def measure(self, source: BallotSource, settings: MechanismSettings, loss: Epsilon) -> Measurement:
        """Count the voters of each group. Scores are summed later, once the noisy counts are known."""
        counted = add_up(source, self._tally)
        return Measurement(counted[1:], int(counted[0]), 0, source)

    def release(
        self, measurement: Measurement, settings: MechanismSettings, loss: Epsilon, noise: Noise, smallest: int = 0
    ) -> list[GroupEstimate]:
        """Add noise to the counts, merge groups with small noisy counts, and score each resulting group."""
        assert measurement.source is not None
        of_counts, of_scores = split(loss)
        counts = measurement.total + self.draw(noise, of_counts, 1)[0]
        deviation = self.count_deviation(loss)
        found = groups_by_counts(self.grouping.labels, counts.tolist(), [deviation] * len(counts), smallest)
        return [self._scored(group, measurement.source, settings, of_scores, noise) for group in found]

    def draw(self, noise: Noise, epsilon: Epsilon, times: int) -> IntArray:
        """Draw the noise of all counts ``times`` times, one row each."""
        return noise.laplace(COUNTS_REACH, Epsilons.same(epsilon, times), len(self.grouping.labels))

    def scores(
        self, group: NoisyGroup, source: BallotSource, settings: MechanismSettings, epsilon: Epsilon
    ) -> Measurement:
        """Sum the first step's scores of a group, taking its noisy count as its number of voters."""
        voters = max(round(group.voters), 1)
        members = GroupSource(source, self.grouping, group.members, voters)
        return replace(VoterScore().measure(members, settings, epsilon), voters=voters)

    def _scored(
        self, group: NoisyGroup, source: BallotSource, settings: MechanismSettings, epsilon: Epsilon, noise: Noise
    ) -> GroupEstimate:
        measured = self.scores(group, source, settings, epsilon)
        found = VoterScore().release(measured, settings, epsilon, noise)
        return GroupEstimate(group, less_sure_of_size(found, settings.study, group.deviation / group.voters))

    @staticmethod
    def count_deviation(loss: Epsilon) -> float:
        """Return the standard deviation of the noise in a number of voters."""
        return math.sqrt(2) * COUNTS_REACH / split(loss)[0].value

    def fewest(self, voters: int, loss: Epsilon) -> float:
        """Return the smallest noisy count at which a group counts as non-empty, whatever the number of voters."""
        return fewest_voters(self.count_deviation(loss))

    def what_is_left(self, loss: Epsilon) -> str | None:
        """Return None: a trusted aggregator knows the groups."""
        return None

    def expected_noise(self, settings: MechanismSettings, voters: int, loss: Epsilon) -> NoiseDistribution:
        """Return the noise of one group's estimate, if all have the same size."""
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
