"""Effects with distributed noise (VLDP, RLDP, ALDP): the reports of devices, and the estimation of effects from them.

A device draws one factor independently of the answers and reports about that one. If only choices are protected, the
dilemmas are public, and every choice is reported by randomised response (``RandomisedResponse``, whose reports a poll
may hold already).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.ballots.columns import Categories
from crowdveil.estimation.effects import (
    MOMENTS,
    NOISE,
    REPORTS,
    added_by_group,
    counts_of_voters,
    moments,
    pair_signs,
    ratio_of,
)
from crowdveil.estimation.ratios import Ratio
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.about_you import AboutYou
from crowdveil.privacy.mechanisms.devices import device_sums
from crowdveil.privacy.mechanisms.effect_counts import GroupCounts, PublicCrowd
from crowdveil.privacy.mechanisms.group_mechanism import Grouping
from crowdveil.privacy.mechanisms.integer_scores import cube_variance
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.randomised_response import ChoiceReports, RandomisedResponse
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study

COUNT_STEPS = 2**20
"""Grid steps of one pair in a report of counts."""


@dataclass(frozen=True)
class FactorReports:
    """Reports about one factor each: the factor, and some integers."""

    epsilons: Epsilons
    factors: IntArray
    values: IntArray
    """One row per voter."""
    of: int
    """Number of factors."""
    codes: IntArray | None = None
    """The voter's group, if it is not protected; -1 if it is not known."""

    def rows(self) -> IntArray:
        """Return all that leaves the devices, one row per voter: public columns, a mask of the values, the values."""
        voters, each = self.values.shape
        mask = np.repeat(self.factors[:, None] == np.arange(self.of), each, axis=1).astype(np.int64)
        codes = np.zeros(voters, np.int64) if self.codes is None else self.codes
        return np.column_stack([self.epsilons.micro, codes, mask, mask * np.tile(self.values, self.of)])


@dataclass(frozen=True)
class FactorAnswer:
    """One answer along one factor together with the voter's group, by randomised response.

    A device draws one of the factors and, if the voter has pairs that are a contrast of it, one of these. It reports
    which side she preferred there, together with her group, as one of 1 + 2 G options (none; or a group and a side),
    by ``AboutYou``.

    Theorem. The report is epsilon-differentially private for the whole voter (VLDP), including what she said about
    herself.

    Proof. The factor is drawn independently of the voter's data. Given it and the pairs drawn from any two voters, each
    of the 1 + 2 G options is at most e^epsilon times as likely for one as for the other (``AboutYou``). Averaging over
    the pairs preserves this.
    """

    grouping: Grouping | None = None

    name = "factor-answer"
    title = "Randomised response on one answer along one factor"
    words = "coin tosses, by which each voter's device may report another answer along one factor than the true one"
    paradigms = ("vldp",)
    papers = ()
    options = ()

    @property
    def answers(self) -> int:
        """The number of possible answers, 1 + 2 G."""
        return 1 + 2 * _groups(self.grouping)

    def prepare(
        self, source: BallotSource, settings: MechanismSettings, loss: Epsilon, noise: Noise
    ) -> Callable[[], list[GroupCounts]]:
        """Return a function that lets the devices report, and computes the effects."""
        return partial(_reported_effects, self, source, settings, loss, noise)

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> FactorReports:
        """Draw a factor and a pair for each voter, and report the answer."""
        plus, minus = counts_of_voters(ballots)
        drawn = noise.uniform(plus.shape[1], ballots.voters, 1)[:, 0]
        rows = np.arange(ballots.voters)
        pro, pairs = plus[rows, drawn], (plus + minus)[rows, drawn]
        codes = np.zeros(ballots.voters, np.int64) if self.grouping is None else self.grouping.codes(ballots)
        place = np.zeros(ballots.voters, np.int64)
        for size in np.unique(pairs[pairs > 0]).tolist():  # a fair draw among each voter's own pairs
            these = np.flatnonzero(pairs == size)
            place[these] = noise.uniform(size, len(these), 1)[:, 0]
        truths = np.where((pairs > 0) & (codes >= 0), 1 + 2 * codes + (place >= pro), 0)
        said = AboutYou().report(truths, self.answers, epsilons, noise)
        return FactorReports(epsilons, drawn, said[:, None], plus.shape[1])

    def tally(self, reports: FactorReports, settings: MechanismSettings) -> FloatArray:
        """Count the reported options for each factor."""
        factors = len(settings.study.factors)
        places = reports.factors * self.answers + reports.values[:, 0]
        counts = np.bincount(places, minlength=factors * self.answers).reshape(factors, self.answers)
        return counts.astype(np.float64)

    def ratios(self, tallies: Iterable[FloatArray], settings: MechanismSettings, epsilon: Epsilon) -> list[GroupCounts]:
        """Estimate the effects from the counts, corrected for the randomisation.

        If x of N voters hold one of C options, the expected number of reports of it is g x + N / (e^epsilon + C - 1)
        with g = (e^epsilon - 1) / (e^epsilon + C - 1). The counts of N reports are multinomial, whatever voters hold
        and however they were sampled; this covers noise and sampling together.
        """
        counts = reduce(np.add, tallies)
        spread = float(np.exp(epsilon.value)) + self.answers - 1
        gain = float(np.expm1(epsilon.value)) / spread
        reports = counts.sum(axis=1)
        held = (counts - reports[:, None] / spread) / gain
        groups = []
        for g in range((self.answers - 1) // 2):
            ratios = []
            for k, total in enumerate(np.maximum(reports, 1.0).tolist()):
                said = counts[k, 1 + 2 * g : 3 + 2 * g]
                covariance = (np.diag(said) - np.outer(said, said) / total) / gain**2
                along = np.array([[1.0, -1.0], [1.0, 1.0]])
                (a, b), (_, c) = along @ covariance @ along.T
                pro, con = held[k, 1 + 2 * g], held[k, 2 + 2 * g]
                ratios.append(Ratio(pro - con, pro + con, a, c, b, 0.0))
            groups.append(GroupCounts(tuple(ratios), None))
        return groups

    def expected_variances(self, crowd: PublicCrowd, voters: int, loss: Epsilon) -> FloatArray:
        """Return the variance of each effect, from the numbers of reports that say either side."""
        factors = len(crowd.heard)
        pairs = crowd.heard / factors / _groups(self.grouping)
        spread = np.exp(loss.value) + self.answers - 1
        gain = np.expm1(loss.value)
        said = 2 * voters / factors / spread + pairs * gain / spread
        return np.asarray(said * (spread / gain) ** 2 / pairs**2, np.float64)


@dataclass(frozen=True)
class FactorCounts:
    """One voter's counts along one factor, with cube noise.

    Theorem. A report is epsilon-differentially private for every record of the voter (RLDP).

    Proof. The factor is drawn independently of the records. For it the device counts the pairs in which the voter
    preferred the side with more, and those in which she preferred the other, in steps of 1 / COUNT_STEPS. Replacing a
    record removes it from at most one of the two counts and adds it to at most one, so each moves by at most
    COUNT_STEPS: the theorem of ``cube_noise``. A voter's group is sent in the clear: it is not part of a record.
    """

    grouping: Grouping | None = None

    name = "factor-counts"
    title = "Noisy counts of one voter's answers along one factor"
    words = "noise that each voter's device adds to how often the voter preferred which side along one factor"
    paradigms = ("rldp",)
    papers = ()
    options = ()

    def prepare(
        self, source: BallotSource, settings: MechanismSettings, loss: Epsilon, noise: Noise
    ) -> Callable[[], list[GroupCounts]]:
        """Return a function that lets the devices report, and computes the effects."""
        return partial(_reported_effects, self, source, settings, loss, noise)

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> FactorReports:
        """Draw a factor for each voter, count, and add the noise."""
        counts = np.stack(counts_of_voters(ballots), axis=2)
        drawn = noise.uniform(counts.shape[1], ballots.voters, 1)[:, 0]
        exact = counts[np.arange(ballots.voters), drawn] * COUNT_STEPS
        codes = None if self.grouping is None else self.grouping.codes(ballots)
        return FactorReports(epsilons, drawn, exact + noise.cube(COUNT_STEPS, epsilons, 2), counts.shape[1], codes)

    def tally(self, reports: FactorReports, settings: MechanismSettings) -> FloatArray:
        """Add up the moments of the reports, by group and factor."""
        factors = len(settings.study.factors)
        plus, minus = reports.values.T / COUNT_STEPS
        told = np.zeros((len(plus), factors, MOMENTS))
        told[np.arange(len(plus)), reports.factors] = moments(plus - minus, plus + minus, np.zeros(len(plus)))
        codes = np.zeros(len(plus), np.int64) if reports.codes is None else reports.codes
        return added_by_group(told, codes, _groups(self.grouping))

    def noise_variance(self, epsilon: Epsilon) -> float:
        """Return the variance that the noise of one report adds to the numerator of an effect."""
        return 2 * cube_variance(1.0, epsilon.value, 2)

    def expected_variances(self, crowd: PublicCrowd, voters: int, loss: Epsilon) -> FloatArray:
        """Return the variance of each effect, from the noise and the scatter of the reports about its factor."""
        factors = len(crowd.pairs)
        groups = _groups(self.grouping)
        pairs = crowd.pairs / groups
        noise = voters / factors / groups * self.noise_variance(loss)
        return np.asarray((noise + pairs / factors) / (pairs / factors) ** 2, np.float64)

    def ratios(self, tallies: Iterable[FloatArray], settings: MechanismSettings, epsilon: Epsilon) -> list[GroupCounts]:
        """Read the effects from the moments."""
        variance = self.noise_variance(epsilon)

        def ratio(added: FloatArray) -> Ratio:
            noise = variance * float(added[REPORTS])
            return ratio_of(added, noise, noise)

        return [
            GroupCounts(tuple(map(ratio, group)), float(group[:, REPORTS].sum())) for group in reduce(np.add, tallies)
        ]


@dataclass(frozen=True)
class FlippedChoiceEffects:
    """All choices by randomised response, as ``RandomisedResponse`` reports them (ALDP): effects cost nothing more.

    A choice y = +1 or -1 is reported as y with probability 1 / (1 + e^-epsilon), so its mean is y tanh(epsilon / 2).
    """

    grouping: Grouping | None = None

    name = RandomisedResponse.name
    title = RandomisedResponse.title
    words = RandomisedResponse.words

    def prepare(
        self, source: BallotSource, settings: MechanismSettings, loss: Epsilon, noise: Noise
    ) -> Callable[[], list[GroupCounts]]:
        """Return a function that lets the devices report, and computes the effects."""
        return partial(_reported_effects, self, source, settings, loss, noise)

    def report(
        self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise
    ) -> GroupedChoiceReports:
        """Flip the choices. The types of scenarios, the dilemmas and the groups of voters are public."""
        codes = np.zeros(ballots.voters, np.int64) if self.grouping is None else self.grouping.codes(ballots)
        reports = RandomisedResponse().report(ballots, settings, epsilons, noise)
        return GroupedChoiceReports(reports, ballots.scenarios, codes)

    def tally(self, reports: GroupedChoiceReports, settings: MechanismSettings) -> FloatArray:
        """Add up the moments of the reports, by group and factor."""
        return added_by_group(flipped_moments(reports, settings.study), reports.codes, _groups(self.grouping))

    def ratios(self, tallies: Iterable[FloatArray], settings: MechanismSettings, epsilon: Epsilon) -> list[GroupCounts]:
        """Read the effects from the moments."""
        return [
            GroupCounts(tuple(ratio_of(added, float(added[NOISE])) for added in group), None)
            for group in reduce(np.add, tallies)
        ]

    def expected_variances(self, crowd: PublicCrowd, voters: int, loss: Epsilon) -> FloatArray:
        """Return the variance of each effect, from that of a flipped choice."""
        pairs = crowd.pairs / _groups(self.grouping)
        return np.asarray((1 + 1 / np.sinh(loss.value / 2) ** 2) / pairs, np.float64)


def _groups(grouping: Grouping | None) -> int:
    """Return the number of groups."""
    return 1 if grouping is None else len(grouping.labels)


def _reported_effects(
    mechanism: FactorAnswer | FactorCounts | FlippedChoiceEffects,
    source: BallotSource,
    settings: MechanismSettings,
    loss: Epsilon,
    noise: Noise,
) -> list[GroupCounts]:
    tallies = device_sums(source, mechanism.report, mechanism.tally, settings, loss, noise)
    return mechanism.ratios(tallies, settings, loss)


@dataclass(frozen=True)
class GroupedChoiceReports:
    """Flipped choices, with the public data beside them."""

    reports: ChoiceReports
    scenarios: Categories | None
    codes: IntArray


def flipped_moments(reports: GroupedChoiceReports, study: Study) -> FloatArray:
    """Return the moments of each voter's choices along each factor, corrected for the flips."""
    said = reports.reports
    kept = np.tanh(said.epsilons.values / 2)[:, None]
    signs = pair_signs(study, said.dilemmas, reports.scenarios)
    starts = said.offsets[:-1]
    pairs = np.add.reduceat(signs != 0, starts, axis=0, dtype=np.float64)
    differences = np.add.reduceat(signs * said.choices[:, None], starts, axis=0, dtype=np.float64) / kept
    return moments(differences, pairs, pairs * (1 - kept**2) / kept**2)
