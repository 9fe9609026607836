"""A bit about a side question, which some devices report in place of the mechanism's report.

Theorem. If the mechanism's reports and the bits are each epsilon-differentially private, so are reports of either kind.

Proof. The kind of a report is drawn independently of the answers, so it has the same distribution for neighbours. Given
the kind, the report is epsilon-differentially private.

Whether any report is the mechanism's depends on the kinds alone. So reports that are drawn until one is are as private.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from crowdveil.arrays import BoolArray, IntArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.expected_errors import ExpectedErrors
from crowdveil.privacy.mechanisms.integer_scores import ScoringParameters
from crowdveil.privacy.mechanisms.mechanism import (
    DistributedMechanism,
    Estimate,
    MechanismDescription,
    MechanismSettings,
)
from crowdveil.privacy.mechanisms.reports import WireFormat, epsilons_of
from crowdveil.privacy.mechanisms.shares import BitSums, NoisyShare
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study


class NoPreferenceYet(CrowdveilError):
    """All reports are about side questions."""


class SideQuestion(Protocol):
    """The question that the bits are about."""

    @property
    def field(self) -> str:
        """The field of a report that holds the bit."""

    @property
    def topic(self) -> str:
        """The topic of the question, in one word."""

    @property
    def one_in(self) -> int:
        """One report in this many is a bit about the question."""

    def bits(self, ballots: Ballots, epsilons: Epsilons, noise: Noise) -> IntArray:
        """Return a private bit, +1 or -1, for each voter."""

    def rest(self, ballots: Ballots, noise: Noise) -> Ballots:
        """Return the ballots of the other voters, as the mechanism sees them."""

    def told(self, estimate: Estimate, settings: MechanismSettings, share: NoisyShare) -> Estimate:
        """Return the estimate with the answer to the question added."""


@dataclass(frozen=True)
class SideReports:
    """Reports of devices: some are bits about a side question, the others are the mechanism's."""

    epsilons: Epsilons
    bits: IntArray
    """+1 or -1 for a report that is a bit, 0 for the others."""
    inner: Any
    """The mechanism's reports, in the voters' order; None if there are none."""

    def rows(self) -> IntArray:
        """Return all that leaves the devices, one row per voter: the epsilon, whether a bit, the bit, the rest."""
        about = self.bits != 0
        inner = np.zeros((len(about), 0), np.int64) if self.inner is None else self.inner.rows()
        rest = np.zeros((len(about), inner.shape[1]), np.int64)
        rest[~about] = inner
        return np.column_stack([self.epsilons.micro, about.astype(np.int64), self.bits, rest])


@dataclass(frozen=True)
class SideFormat:
    """The wire format: ``preference`` holds the mechanism's report, or the question's field a bit; one is null."""

    inner: WireFormat[Any]
    field: str

    @property
    def fields(self) -> frozenset[str]:
        """The two fields."""
        return frozenset({"preference", self.field})

    def write(self, reports: SideReports) -> Iterable[dict[str, Any]]:
        """Return the fields of each voter's report."""
        others = iter(() if reports.inner is None else self.inner.write(reports.inner))
        for bit in reports.bits.tolist():
            yield {"preference": None if bit else next(others), self.field: bit or None}

    def check(self, body: Mapping[str, Any], study: Study) -> None:
        """Refuse reports with both fields or none, an invalid bit, or an invalid report of the mechanism."""
        given, bit = body["preference"], body[self.field]
        if (given is None) == (bit is None):
            raise Refusal(Reason.MALFORMED, f"a report has either preference or {self.field}; the other is null")
        if bit is not None:
            if type(bit) is not int or bit not in (1, -1):
                raise Refusal(Reason.OUT_OF_RANGE, f"{self.field} is 1 or -1")
            return
        if not isinstance(given, Mapping) or set(given) != self.inner.fields:
            raise Refusal(Reason.MALFORMED, f"preference is an object with {', '.join(sorted(self.inner.fields))}")
        self.inner.check({**body, **given}, study)

    def read(self, bodies: Sequence[Mapping[str, Any]], study: Study) -> SideReports:
        """Gather the reports."""
        bits = np.array([body[self.field] or 0 for body in bodies], np.int64)
        others = [{**body, **body["preference"]} for body in bodies if body["preference"] is not None]
        return SideReports(epsilons_of(bodies), bits, self.inner.read(others, study) if others else None)


@dataclass(frozen=True)
class _SideSums:
    bits: BitSums
    inner: Any


class BitMixture(MechanismDescription):
    """The mixture of a distributed mechanism's reports with bits. The module docstring has the proof."""

    fits_once = False
    relayable = False
    by_group = False
    counts_effects = False

    def __init__(self, inner: DistributedMechanism[Any], question: SideQuestion) -> None:
        super().__init__(inner)
        self.tosses_coins = inner.tosses_coins
        self.wire = SideFormat(inner.wire, question.field)
        self.inner = inner
        self._question = question

    def scoring(self, study: Study) -> ScoringParameters | None:
        """Return the mechanism's scoring."""
        return self.inner.scoring(study)

    def report_size(self, study: Study, epsilon: Epsilon) -> int | None:
        """Return the size of the mechanism's reports."""
        return self.inner.report_size(study, epsilon)

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> SideReports:
        """Draw the kind of each report, then report the bit or let the mechanism report."""
        about = noise.uniform(self._question.one_in, ballots.voters, 1)[:, 0] == 0
        bits = np.zeros(ballots.voters, np.int64)
        inner = None
        asked, others = np.flatnonzero(about), np.flatnonzero(~about)
        if len(asked):
            bits[asked] = self._question.bits(ballots.take(asked), epsilons[asked], noise)
        if len(others):
            rest = self._question.rest(ballots.take(others), noise)
            inner = self.inner.report(rest, settings, epsilons[others], noise)
        return SideReports(epsilons, bits, inner)

    def acceptable(self, reports: SideReports, settings: MechanismSettings) -> BoolArray:
        """Refuse what the mechanism refuses, and invalid bits."""
        good = np.abs(reports.bits) <= 1
        if reports.inner is not None:
            good[reports.bits == 0] &= self.inner.acceptable(reports.inner, settings)
        return np.asarray(good)

    def condense(self, reports: SideReports, settings: MechanismSettings) -> Any:
        """Sum the bits, and condense the rest as the mechanism does."""
        about = np.flatnonzero(reports.bits)
        inner = None if reports.inner is None else self.inner.condense(reports.inner, settings)
        return _SideSums(BitSums.of(reports.epsilons[about], reports.bits[about]), inner)

    def aggregate(self, reports: Iterable[Any], settings: MechanismSettings) -> Estimate:
        """Estimate the preference from the reports about it, and the share from the bits."""
        parts = [one if isinstance(one, _SideSums) else self.condense(one, settings) for one in reports]
        bits = sum((part.bits for part in parts), BitSums())
        inner = [part.inner for part in parts if part.inner is not None]
        topic = self._question.topic
        if not inner:
            raise NoPreferenceYet(f"all reports so far are about {topic}, and none about the preference: wait")
        estimate = self.inner.aggregate(inner, settings)
        # Without any bits, all that is known of the share is that it lies in [0, 1].
        share = bits.share(settings.equal_votes) if bits.voters else NoisyShare(0.5, 1.0)
        facts = {**estimate.facts, f"reports_about_{topic}": bits.voters}
        return self._question.told(replace(estimate, facts=facts), settings, share)

    def expected_noise(self, settings: MechanismSettings, epsilons: Epsilons) -> NoiseDistribution | None:
        """Return the noise of the mechanism, given the voters who report by it."""
        speaking = np.flatnonzero(np.arange(len(epsilons)) % self._question.one_in != 0)
        return self.inner.expected_noise(settings, epsilons[speaking] if len(speaking) else epsilons)

    def expected_errors(
        self, settings: MechanismSettings, voters: int, records: int, epsilon: Epsilon
    ) -> ExpectedErrors | None:
        """Return the errors of the mechanism, given the voters who report by it."""
        speaking = max(voters - voters // self._question.one_in, 1)
        return self.inner.expected_errors(settings, speaking, records, epsilon)
