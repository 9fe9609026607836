"""Promises on trial, each with two neighbours: pure and Gaussian noise, and reports that are shuffled or relayed.

Relayed reports are those of the mechanism, written and padded by the protocol and put in the order that the relay
draws. The views of the host and of the relay are tried separately. Encryption is left out: what it hides is covered by
its own theorem, and the one thing that it does not hide, the length, is tested here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.laws import fit_of, gaussian_fit
from crowdveil.audit.neighbours import Neighbours
from crowdveil.audit.setups import CentralSetup, Setup, likelihood, same_estimate
from crowdveil.audit.trial import PrivacyPoint, Rows, RowSubject, Score
from crowdveil.ballots.ballots import Ballots
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.algorithm1 import GaussianMean
from crowdveil.privacy.mechanisms.mechanism import Estimate, MechanismSettings
from crowdveil.privacy.mechanisms.one_bit import BitReports, OneBit
from crowdveil.privacy.mechanisms.subset_selection import SubsetSelection
from crowdveil.privacy.noise.exact_noise import BulkNoise, GaussianNoise, gaussian_variance
from crowdveil.privacy.noise.experimental_noise import (
    GaussianRequest,
    NoiseLaw,
    NoiseRequest,
    ReplayedNoise,
    SilentNoise,
)
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.shuffling import amplified_epsilon
from crowdveil.privacy.zcdp import epsilon_of
from crowdveil.protocol.relay import padded, shuffled
from crowdveil.protocol.report import write_reports
from crowdveil.study.plain_data import canonical_json

GAUSSIAN_DELTAS = (0.001, 0.01, 0.05)
"""Points on the curve. Deltas are large because an event that is rarer than delta proves nothing."""
SHUFFLED_DELTAS = (0.01, 0.05, 0.1)
_ROWS_FOR_THE_LAW = 20_000
_REPORTS_AT_ONCE = 1_000_000
NOTHING = 1e-6
"""Epsilon of a promise to reveal nothing: an audit cannot distinguish it from 0."""
Reordering = Callable[[Sequence[Any]], Sequence[Any]]
ReportWriter = Callable[[Mapping[str, Any]], bytes]
_WRITTEN_AT_ONCE = 200_000


@dataclass(frozen=True)
class PurePromise:
    """A mechanism's epsilon, on two neighbours, with one noise source."""

    setup: Setup
    pair: Neighbours
    noise: Noise

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.setup.name

    @property
    def remark(self) -> str:
        """How the mechanism is used here, if in a special way."""
        return self.setup.remark

    @property
    def paradigm(self) -> str:
        """Who is promised what."""
        return self.setup.paradigm.name

    @property
    def promised(self) -> Sequence[PrivacyPoint]:
        """The epsilon."""
        return [PrivacyPoint(self.setup.epsilon.value)]

    @property
    def neighbours(self) -> str:
        """How the neighbours were found."""
        return self.pair.how

    @property
    def reach(self) -> Fraction | None:
        """Their distance, as a share of what the noise covers."""
        return self.pair.reach

    def sample(self, left: bool, draws: int) -> Rows:
        """Run the mechanism for one of the two voters again and again."""
        return self.setup.sample(self.pair.left if left else self.pair.right, draws, self.noise)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the likelihood ratios for the known laws of noise.

        Noise of another kind than was requested is one of the mistakes that an attack should detect.
        """
        if self._request is None:
            return []
        return [likelihood(self.setup, kind, self.pair.left, self.pair.right) for kind in NoiseLaw]

    def noise_p_value(self, rows: Rows) -> float | None:
        """Compare the noise in the outputs with what was requested: its number of columns and its law."""
        if self._request is None:
            return None
        said, mask = self.setup.noisy(rows[:_ROWS_FOR_THE_LAW])
        drawn = (said - self.setup.exact(self.pair.left))[mask.astype(bool)].reshape(len(said), -1)
        drawn = drawn[:, drawn.any(axis=0)]
        return fit_of(self._request, drawn) if drawn.shape[1] == self._request.columns else 0.0

    def same_release(self) -> bool:
        """Check that neighbours with equal noisy integers lead to equal releases."""
        return self.setup.same_release(self.pair.left, self.pair.right)

    @cached_property
    def _request(self) -> NoiseRequest | None:
        return self.setup.request(self.pair.left)


@dataclass(frozen=True)
class GaussianPromise:
    """The Gaussian mean on a crowd of three: rho-zCDP, attacked through the (epsilon, delta) that follow from its rho.

    It adds its noise to the same sum as Algorithm 1, so the worst neighbours are the same.
    """

    crowd: CentralSetup
    """Algorithm 1 on that crowd."""
    pair: Neighbours
    """The worst neighbours for Algorithm 1."""
    rho: Fraction
    noise: GaussianNoise
    mechanism: GaussianMean = field(default_factory=GaussianMean)

    neighbours = "as for algorithm-1, whose sum it is"

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.mechanism.name

    @property
    def remark(self) -> str:
        """The rho from which the curve follows."""
        return f"rho = {float(self.rho):.3g}"

    @property
    def paradigm(self) -> str:
        """Who is promised what."""
        return self.crowd.paradigm.name

    @property
    def promised(self) -> Sequence[PrivacyPoint]:
        """Points of the curve that rho-zCDP implies."""
        return [PrivacyPoint(epsilon_of(float(self.rho), delta), delta) for delta in GAUSSIAN_DELTAS]

    @property
    def reach(self) -> float:
        """The l2 distance of the sums, as a share of the sensitivity that the noise was requested to cover."""
        return math.hypot(*(self._sum(True) - self._sum(False)).tolist()) / self._request.sensitivity

    def sample(self, left: bool, draws: int) -> Rows:
        """Draw noisy sums, with the noise that the release requests."""
        asked = self._request
        drawn = self.noise.gaussian(asked.sensitivity, asked.rho, draws * asked.columns)
        return self._sum(left) + drawn.reshape(draws, asked.columns)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the likelihood ratio of two Gaussian laws of one shape: the position along the line between them."""
        along = (self._sum(True) - self._sum(False)).astype(np.float64)
        return [lambda rows: np.asarray(rows @ along, np.float64)]

    def noise_p_value(self, rows: Rows) -> float:
        """Compare the noise with the requested law."""
        variance = gaussian_variance(self._request.sensitivity, self._request.rho)
        return gaussian_fit(rows - self._sum(True), math.sqrt(variance))

    def same_release(self) -> bool:
        """Release both sides with noise that makes the noisy sums equal."""
        asked = self._request
        drawn = self.noise.gaussian(asked.sensitivity, asked.rho, asked.columns)
        one = self._release(self.pair.left, ReplayedNoise(drawn))
        other = self._release(self.pair.right, ReplayedNoise(drawn + self._sum(True) - self._sum(False)))
        return same_estimate(one, other)

    @cached_property
    def _request(self) -> GaussianRequest:
        silent = SilentNoise()
        self._release(self.pair.left, silent)
        (request,) = silent.gaussian_requests
        return request

    def _sum(self, left: bool) -> IntArray:
        return self.crowd.exact(self.pair.left if left else self.pair.right)

    def _release(self, records: FloatArray, noise: GaussianNoise) -> Estimate:
        settings = self.crowd.settings
        measured = self.mechanism.measure(self.crowd.with_voter(records), settings, self.rho)
        return self.mechanism.release(measured, settings, self.rho, noise)


@dataclass(frozen=True)
class ShuffledPromise(RowSubject):
    """Reports of signed subset selection that are shuffled before anybody sees them.

    The crowd is small, since in a large one no attack sees anything. All voters are known except one, who holds one of
    two corners of the ball. A shuffler reveals how often each report was sent, which is what the attack sees. The
    promise is the computed bound.
    """

    settings: MechanismSettings
    local: Epsilon
    """The promise of each report by itself."""
    voters: int
    others: tuple[int, int]
    """The corner (feature, sign) that all other voters hold. The voter in question holds (0, 1) or (0, -1)."""
    claimed_voters: int | None = None
    """A mistake: the bound for a crowd of another size."""
    forget_delta: bool = False
    """A mistake: the bound is taken as a pure epsilon."""
    shuffle: bool = True
    """If False, a mistake: the reports are passed on in the order of their voters."""

    name = SubsetSelection.name
    paradigm = "vldp"
    neighbours = "opposite corners, all others at one"

    @property
    def remark(self) -> str:
        """Who is shuffled."""
        features = self.settings.study.dimension
        return f"shuffled, {self.voters} voters, d = {features}" + (" (randomised response)" if features == 1 else "")

    @property
    def promised(self) -> Sequence[PrivacyPoint]:
        """The computed bound, at several deltas."""
        voters = self.voters if self.claimed_voters is None else self.claimed_voters
        bounds = [(amplified_epsilon(self.local.value, voters, delta), delta) for delta in SHUFFLED_DELTAS]
        return [PrivacyPoint(epsilon, 0.0 if self.forget_delta else delta) for epsilon, delta in bounds if epsilon > 0]

    def sample(self, left: bool, draws: int) -> Rows:
        """Let the crowd report repeatedly, and count the reports (or keep the first voter's, if not shuffled)."""
        at_once = max(1, _REPORTS_AT_ONCE // self.voters)
        sizes = [min(at_once, draws - start) for start in range(0, draws, at_once)]
        return np.concatenate([self._crowds(left, size) for size in sizes])

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the likelihood ratio of two shuffled crowds.

        Let P be the law of the report in question and Q that of all others. Then the shuffled reports r_1, ..., r_N are
        sum_i P(r_i) / Q(r_i) / N times as likely as if everybody's law were Q.
        """
        if not self.shuffle:
            return []
        others = self._law(*self.others)
        left, right = self._law(0, 1) / others, self._law(0, -1) / others
        return [lambda rows: np.asarray(np.log(rows @ left) - np.log(rows @ right))]

    def _crowds(self, left: bool, crowds: int) -> IntArray:
        d = self.settings.study.dimension
        held = np.zeros((crowds, self.voters, d))
        held[:, :, self.others[0]] = self.others[1] * self.settings.norm_bound
        held[:, 0] = 0.0
        held[:, 0, 0] = self.settings.norm_bound if left else -self.settings.norm_bound
        epsilons = Epsilons.same(self.local, crowds * self.voters)
        reports = SubsetSelection().perturb_fits(held.reshape(-1, d), self.settings, epsilons, BulkNoise())
        if not self.shuffle:
            return np.asarray(reports.values.reshape(crowds, self.voters, d)[:, 0])
        codes = _codes(reports.values) + np.repeat(np.arange(crowds) * 3**d, self.voters)
        return np.bincount(codes, minlength=crowds * 3**d).reshape(crowds, 3**d)

    def _law(self, feature: int, sign: int) -> FloatArray:
        """Return the probability of each possible report for a corner, up to a factor: e^epsilon or 1 (theorem)."""
        d = self.settings.study.dimension
        possible = np.stack(np.meshgrid(*[(-1, 0, 1)] * d, indexing="ij"), axis=-1).reshape(-1, d)
        law = np.empty(3**d)
        law[_codes(possible)] = np.where(possible[:, feature] == sign, math.exp(self.local.value), 1.0)
        return law


def _codes(reports: IntArray) -> IntArray:
    """Number the reports of signs and zeros."""
    return np.asarray((reports + 1) @ 3 ** np.arange(reports.shape[1]))


def keep_order(reports: Sequence[Any]) -> Sequence[Any]:
    """Return reports in the order of arrival: a mistake."""
    return reports


def without_padding(report: Mapping[str, Any]) -> bytes:
    """Write a report without padding its length: a mistake."""
    return canonical_json(report).encode()


@dataclass(frozen=True)
class _RelayedCrowd(RowSubject):
    """Voters who all answer against everything, except the first, who may answer for everything."""

    settings: MechanismSettings
    local: Epsilon

    name = OneBit.name
    paradigm = "vldp"
    neighbours = "one voter loud on one side or the other, all others on one"

    def _codes(self, left: bool, crowds: int, voters: int) -> IntArray:
        """Let crowds report, and number what each voter reports: one row per crowd, one column per voter."""
        study = self.settings.study
        loud = -np.ones((crowds, voters, study.drawing.dilemmas, study.dimension))
        loud[:, 0] *= -1 if left else 1
        offsets = np.arange(crowds * voters + 1) * study.drawing.dilemmas
        ballots = Ballots.from_differences(study, offsets, 3.0 * loud.reshape(-1, study.dimension))
        epsilons = Epsilons.same(self.local, crowds * voters)
        reports = OneBit().report(ballots, self.settings, epsilons, BulkNoise())
        axes = np.abs(reports.bits).argmax(axis=1)
        bits = reports.bits.sum(axis=1)
        return np.asarray((4 * axes + 2 * reports.kinds + (bits > 0)).reshape(crowds, voters))

    def _report(self, code: int) -> dict[str, Any]:
        """Write the report with this number."""
        bits = np.zeros((1, code // 4 + 1), np.int64)
        bits[0, code // 4] = 1 if code % 2 else -1
        epsilons = Epsilons.same(self.local, 1)
        reports = BitReports(epsilons, np.array([code % 4 // 2]), bits)
        return write_reports(OneBit.name, self.settings.study, epsilons, reports)[0]

    def _chances(self) -> FloatArray:
        """Return how much likelier each numbered report is from the first voter on the left than from the others."""
        up = math.exp(self.local.value)
        of_axis = [1 / up, up, 1.0, 1.0]  # a direction bit -1 or +1; a length bit does not depend on the side
        return np.tile(of_axis, self.settings.study.dimension)


@dataclass(frozen=True)
class HostView(_RelayedCrowd):
    """A batch as its host sees it, in the order in which it arrived."""

    voters: int
    claimed_voters: int
    """The size of the batch for which the bound holds."""
    order: Reordering = shuffled

    @property
    def remark(self) -> str:
        """Who is in the batch."""
        return f"through a relay, {self.voters} voters of epsilon {self.local}: the host's view"

    @property
    def promised(self) -> Sequence[PrivacyPoint]:
        """The bound for one-bit reports, at several deltas."""
        bounds = [
            (amplified_epsilon(self.local.value, self.claimed_voters, delta, one_bit=True), delta)
            for delta in SHUFFLED_DELTAS
        ]
        return [PrivacyPoint(epsilon, delta) for epsilon, delta in bounds if epsilon > 0]

    def sample(self, left: bool, draws: int) -> Rows:
        """Deliver batch after batch."""
        at_once = max(1, _WRITTEN_AT_ONCE // self.voters)
        sizes = [min(at_once, draws - start) for start in range(0, draws, at_once)]
        batches = (batch for size in sizes for batch in self._codes(left, size, self.voters).tolist())
        return np.array([self.order(batch) for batch in batches], np.int64)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the likelihood ratios of an unordered batch, and of a batch whose first report is the voter's."""
        chances = self._chances()
        return [lambda rows: chances[rows].mean(axis=1), lambda rows: np.asarray(chances[rows[:, 0]])]


@dataclass(frozen=True)
class RelayView(_RelayedCrowd):
    """A sealed report as the relay sees it: by its length."""

    write: ReportWriter = padded

    remark = "through a relay: the relay's view, that is lengths"

    @property
    def promised(self) -> Sequence[PrivacyPoint]:
        """The promise to reveal nothing."""
        return [PrivacyPoint(NOTHING)]

    def sample(self, left: bool, draws: int) -> Rows:
        """Write the first voter's report again and again, and measure its length."""
        codes = self._codes(left, draws, 1)[:, 0]
        lengths = {code: len(self.write(self._report(code))) for code in np.unique(codes).tolist()}
        return np.array([[lengths[code]] for code in codes.tolist()], np.int64)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the length itself."""
        return [lambda rows: np.asarray(rows[:, 0], np.float64)]
