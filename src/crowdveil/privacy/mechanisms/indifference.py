"""A third answer beside any mechanism that estimates a preference: a share of its budget, or of its reports, for tau.

The mechanism itself sees choices that a fair coin has completed, which is what people ask for who answer "toss a coin".
From completed choices it finds a preference that is shrunk; the share of indifferent choices tells the threshold and,
with it, by how much (``estimation.threshold``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots import Ballots, BallotSource
from crowdveil.engines.completed import completed, completed_ballots
from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.estimation.design import public_design
from crowdveil.estimation.threshold import fit_threshold
from crowdveil.privacy.epsilon import LEAST_MICRO, Epsilon, Epsilons
from crowdveil.privacy.indifference import Indifference
from crowdveil.privacy.mechanisms.mechanism import (
    CentralMechanism,
    DistributedMechanism,
    Estimand,
    Estimate,
    Measurement,
    Settings,
    measured,
)
from crowdveil.privacy.mechanisms.reports import WireFormat, epsilons_of
from crowdveil.privacy.mechanisms.scores import Scoring
from crowdveil.privacy.mechanisms.shares import (
    BitSums,
    NoisyShare,
    indifference_bits,
    indifferent_by_record,
    indifferent_by_voter,
    noisy_share,
)
from crowdveil.privacy.noise.distribution import Coins, CubeNoise, NoiseDistribution, Spread
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.unknown import Unknown
from crowdveil.study.study import Study

BUDGET_ONE_IN = 10
"""Of a central budget, one part in so many buys the share of indifferent choices."""
REPORTS_ONE_IN = 5
"""One report in so many is about indifference, by a draw that does not look at the answers."""
_STRETCH_REACH = 2.0
"""As doubt, so many deviations of what is not known of the stretch."""


def with_threshold(estimate: Estimate, settings: Settings, share: NoisyShare) -> Estimate:
    """Stretch the preference of completed choices to the crowd's own, and tell its threshold."""
    unknown = estimate.unknown
    assert unknown is not None  # of a preference
    design = public_design(settings.study)
    shown = (design if settings.design is None else settings.design.in_place_of(design)).differences
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


def _size_doubt(unknown: Unknown, shown: FloatArray) -> float:
    """Return the deviation of what is not known of the size of margins, relative to it; a bound counts as two."""
    along = shown @ unknown.basis
    margins = along @ unknown.mean
    square = float(margins @ margins)
    if not square > 0:
        return 0.0
    slope = along.T @ margins / square
    variance = float(slope @ (unknown.covariance + np.diag(unknown.doubt**2) / 4) @ slope)
    return min(math.sqrt(variance), 1.0)


def _stretched(noise: NoiseDistribution, factor: float) -> NoiseDistribution:
    match noise:
        case CubeNoise():
            return replace(noise, gain=_scaled(noise.gain, factor))
        case Coins() | Spread():
            return replace(noise, covariance=_scaled(noise.covariance, factor**2))
        case _:
            raise TypeError(f"no preference carries {type(noise).__name__}")


def _scaled(matrix: tuple[tuple[float, ...], ...], factor: float) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(factor * value for value in row) for row in matrix)


def _stretched_unknown(unknown: Unknown, factor: float, deviation: float) -> Unknown:
    """Stretch all that is known and not known, and add what is not known of the stretch itself."""
    doubt: FloatArray = factor * unknown.doubt + _STRETCH_REACH * deviation * np.abs(unknown.center)
    return replace(
        unknown,
        mean=factor * unknown.mean,
        covariance=factor**2 * unknown.covariance + deviation**2 * np.outer(unknown.mean, unknown.mean),
        center=factor * unknown.center,
        sampling=factor**2 * unknown.sampling,
        doubt=doubt,
    )


class _Described:
    """The description of the mechanism that does the work."""

    def __init__(self, inner: CentralMechanism[Any, Any] | DistributedMechanism[Any]) -> None:
        self.name, self.title, self.words = inner.name, inner.title, inner.words
        self.paradigms, self.papers, self.options = inner.paradigms, inner.papers, inner.options
        self.estimates = Estimand.PREFERENCE


@dataclass(frozen=True)
class _Measured(Measurement):
    """What the mechanism measures of completed choices, and the sum of shares."""

    share_total: int = 0
    inner: Measurement | None = None


class CentralIndifference(_Described):
    """A central mechanism on completed choices, with a part of its epsilon spent on the share of indifferent ones.

    Theorem. Where the mechanism is epsilon-differentially private for any epsilon, this is too, for the same unit.

    Proof. A record is completed by a public coin of its place, so neighbours stay neighbours, and what the mechanism
    releases with epsilon - epsilon_s is private for them. The share is epsilon_s-differentially private (``shares``).
    Losses add up. Stretch and threshold are computed from the two (post-processing).
    """

    def __init__(self, inner: CentralMechanism[Any, Any]) -> None:
        super().__init__(inner)
        self.takes = inner.takes
        self._inner = inner
        self._by_voter = "vlcp" in inner.paradigms

    def measure(self, source: BallotSource, settings: Settings, loss: Epsilon) -> Measurement:
        """Measure the completed choices, and add up the shares."""
        inner = self._inner.measure(completed(source), settings, preference_part(loss))
        tally = indifferent_by_voter if self._by_voter else indifferent_by_record
        counted = measured(source, tally)
        return _Measured(inner.total, counted.voters, counted.records, share_total=int(counted.total[0]), inner=inner)

    def release(self, measurement: Measurement, settings: Settings, loss: Epsilon, noise: Noise) -> Estimate:
        """Release the preference, then the share."""
        assert isinstance(measurement, _Measured)
        spent, kept = _split(loss)
        estimate = self._inner.release(cast(Measurement, measurement.inner), settings, spent, noise)
        units = measurement.voters if self._by_voter else measurement.records
        share = noisy_share(measurement.share_total, units, measurement.voters, kept, noise)
        return with_threshold(estimate, settings, share)

    def expected_noise(self, settings: Settings, voters: int, loss: Epsilon) -> NoiseDistribution:
        """Return the noise of the mechanism itself: how far it will be stretched is not known before."""
        return self._inner.expected_noise(settings, voters, _split(loss)[0])


def preference_part(loss: Epsilon) -> Epsilon:
    """Return the part of a central budget that is left for the preference."""
    return _split(loss)[0]


def _split(loss: Epsilon) -> tuple[Epsilon, Epsilon]:
    """Return the parts for the preference and for the share."""
    part = loss.micro // BUDGET_ONE_IN
    if part < LEAST_MICRO:
        raise CrowdveilError(
            f"an epsilon of {loss} is too small to be shared between a preference and a threshold: use at least "
            f"{Epsilon.of_millionths(LEAST_MICRO * BUDGET_ONE_IN)}"
        )
    return Epsilon.of_millionths(loss.micro - part), Epsilon.of_millionths(part)


@dataclass(frozen=True)
class ThirdAnswerReports:
    """Reports of devices, of which some are about indifference and the others about the preference."""

    epsilons: Epsilons
    bits: IntArray
    """+1 or -1 in a report about indifference, 0 in the others."""
    inner: Any
    """The others, in the voters' order; None if there are none."""

    def rows(self) -> IntArray:
        """Lay out all that leaves, a row a voter: the epsilon, whether it is about indifference, the bit, the rest."""
        about = self.bits != 0
        inner = np.zeros((len(about), 0), np.int64) if self.inner is None else self.inner.rows()
        rest = np.zeros((len(about), inner.shape[1]), np.int64)
        rest[~about] = inner
        return np.column_stack([self.epsilons.micro, about.astype(np.int64), self.bits, rest])


@dataclass(frozen=True)
class _Condensed:
    bits: BitSums
    inner: Any


@dataclass(frozen=True)
class ThirdAnswerWire:
    """The wire format: ``preference`` has what the mechanism reports, or ``indifferent`` a bit; the other is null."""

    inner: WireFormat[Any]

    fields = frozenset({"preference", "indifferent"})

    def write(self, reports: ThirdAnswerReports) -> Iterable[dict[str, Any]]:
        """Return what each voter reports."""
        others = iter(() if reports.inner is None else self.inner.write(reports.inner))
        for bit in reports.bits.tolist():
            yield {"preference": None if bit else next(others), "indifferent": bit or None}

    def check(self, body: Mapping[str, Any], study: Study) -> None:
        """Refuse both or none, another bit, and what is no report of the mechanism."""
        given, bit = body["preference"], body["indifferent"]
        if (given is None) == (bit is None):
            raise Refusal(Reason.MALFORMED, "a report has either preference or indifferent; the other is null")
        if bit is not None:
            if type(bit) is not int or bit not in (1, -1):
                raise Refusal(Reason.OUT_OF_RANGE, "indifferent is 1 or -1")
            return
        if not isinstance(given, Mapping) or set(given) != self.inner.fields:
            raise Refusal(Reason.MALFORMED, f"preference is an object with {', '.join(sorted(self.inner.fields))}")
        self.inner.check({**body, **given}, study)

    def read(self, bodies: Sequence[Mapping[str, Any]], study: Study) -> ThirdAnswerReports:
        """Gather the reports."""
        bits = np.array([body["indifferent"] or 0 for body in bodies], np.int64)
        others = [{**body, **body["preference"]} for body in bodies if body["preference"] is not None]
        return ThirdAnswerReports(epsilons_of(bodies), bits, self.inner.read(others, study) if others else None)


class DistributedIndifference(_Described):
    """A distributed mechanism on completed choices, in place of which one report in five is a bit about indifference.

    Theorem. Where the mechanism's reports are epsilon-differentially private, these are, too, for the same unit.

    Proof. Whether a report is about indifference is drawn without looking at the answers. If it is, it is
    epsilon-differentially private for all that the voter answered (``shares``). If not, the device tosses a coin for
    every record, which decides where neither side was chosen: for any coins, neighbours stay neighbours, and the
    mechanism's report is private for them; so it is on average over the coins.
    """

    def __init__(self, inner: DistributedMechanism[Any]) -> None:
        super().__init__(inner)
        self._inner = inner
        self.tosses_coins = inner.tosses_coins
        self.wire = ThirdAnswerWire(inner.wire)

    def scoring(self, study: Study) -> Scoring | None:
        """Return what the mechanism needs."""
        return self._inner.scoring(study)

    def report_size(self, study: Study, epsilon: Epsilon) -> int | None:
        """Return the size of a report of the mechanism."""
        return self._inner.report_size(study, epsilon)

    def report(self, ballots: Ballots, settings: Settings, epsilons: Epsilons, noise: Noise) -> ThirdAnswerReports:
        """Draw what each report is about; then say the bit, or toss the coins and let the mechanism report."""
        about = noise.uniform(REPORTS_ONE_IN, ballots.voters, 1)[:, 0] == 0
        bits, inner = np.zeros(ballots.voters, np.int64), None
        asked, others = np.flatnonzero(about), np.flatnonzero(~about)
        if len(asked):
            bits[asked] = indifference_bits(ballots.take(asked), epsilons[asked], noise)
        if len(others):
            rest = ballots.take(others)
            coins = noise.uniform(2, rest.records, 1)[:, 0] == 1
            inner = self._inner.report(completed_ballots(rest, coins), settings, epsilons[others], noise)
        return ThirdAnswerReports(epsilons, bits, inner)

    def acceptable(self, reports: ThirdAnswerReports, settings: Settings) -> BoolArray:
        """Refuse what the mechanism refuses, and what is not a bit."""
        good = np.abs(reports.bits) <= 1
        if reports.inner is not None:
            good[reports.bits == 0] &= self._inner.acceptable(reports.inner, settings)
        return np.asarray(good)

    def condense(self, reports: ThirdAnswerReports, settings: Settings) -> Any:
        """Add up the bits, and condense the rest as the mechanism does."""
        about = np.flatnonzero(reports.bits)
        inner = None if reports.inner is None else self._inner.condense(reports.inner, settings)
        return _Condensed(BitSums.of(reports.epsilons[about], reports.bits[about]), inner)

    def aggregate(self, reports: Iterable[Any], settings: Settings) -> Estimate:
        """Estimate the preference from the reports about it, and the threshold from the others."""
        parts = [one if isinstance(one, _Condensed) else self.condense(one, settings) for one in reports]
        bits = sum((part.bits for part in parts), BitSums())
        inner = [part.inner for part in parts if part.inner is not None]
        if not inner:
            raise CrowdveilError("all reports so far are about indifference, and none about the preference: wait")
        estimate = self._inner.aggregate(inner, settings)
        # Without a bit, nothing is known of the share but that it is one.
        share = bits.share(settings.equal_votes) if bits.voters else NoisyShare(0.5, 1.0)
        facts = {**estimate.facts, "reports_about_indifference": bits.voters}
        return with_threshold(replace(estimate, facts=facts), settings, share)

    def expected_noise(self, settings: Settings, epsilons: Epsilons) -> NoiseDistribution | None:
        """Return the noise of the mechanism from four voters in five, before it is stretched."""
        speaking = np.flatnonzero(np.arange(len(epsilons)) % REPORTS_ONE_IN != 0)
        return self._inner.expected_noise(settings, epsilons[speaking] if len(speaking) else epsilons)
