"""What host and relay see of reports that go through a relay, each put on trial by itself.

The reports are those of the mechanism, written and padded by the protocol and put into the order that the relay draws.
Encryption is left out: what it hides is its own theorem, and what it does not hide, the length, is what is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.attack import Rows, Score
from crowdveil.audit.trial import Point
from crowdveil.ballots.ballots import Ballots
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.one_bit import BitReports, OneBit
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.shuffling import amplified_epsilon
from crowdveil.protocol.relay import padded, shuffled
from crowdveil.protocol.report import write_reports
from crowdveil.study.plain_data import canonical_json

DELTAS = (0.01, 0.05, 0.1)
"""Where on the curve: large deltas, since an event that is rarer than delta proves nothing."""
NOTHING = 1e-6
"""The epsilon of a promise to tell nothing, as far as an audit tells it from none."""

Order = Callable[[Sequence[Any]], Sequence[Any]]
Write = Callable[[Mapping[str, Any]], bytes]
_REPORTS_AT_ONCE = 200_000


def keep_order(reports: Sequence[Any]) -> Sequence[Any]:
    """Hand reports over in the order in which they came: a mistake."""
    return reports


def without_padding(report: Mapping[str, Any]) -> bytes:
    """Write a report as long as it happens to be: a mistake."""
    return canonical_json(report).encode()


@dataclass(frozen=True)
class _Crowd:
    """Voters who all answer against everything, but for the first, who may answer for everything."""

    settings: Settings
    local: Epsilon

    name = OneBit.name
    paradigm = "vldp"
    neighbours = "one voter loud on one side or the other, all others on one"
    reach = None

    def noise_p_value(self, rows: Rows) -> None:
        """Return None: no noise is added."""

    def same_release(self) -> bool:
        """Return True: the rows are all that leaves."""
        return True

    def _codes(self, left: bool, crowds: int, voters: int) -> IntArray:
        """Let crowds report, and number what each voter says: a row a crowd, a column a voter."""
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
        """Return how much likelier each numbered report is of the first voter on the left than of the others."""
        up = math.exp(self.local.value)
        of_axis = [1 / up, up, 1.0, 1.0]  # a direction bit -1 or +1; a length bit says nothing of which side
        return np.tile(of_axis, self.settings.study.dimension)


@dataclass(frozen=True)
class HostsView(_Crowd):
    """A batch as its host sees it, in the order in which it came."""

    voters: int
    claimed_voters: int
    """The size of a batch that the bound is for."""
    order: Order = shuffled

    @property
    def remark(self) -> str:
        """Who is in the batch."""
        return f"through a relay, {self.voters} voters of epsilon {self.local}: the host's view"

    @property
    def promised(self) -> Sequence[Point]:
        """The bound for one-bit reports, at some deltas."""
        bounds = [
            (amplified_epsilon(self.local.value, self.claimed_voters, delta, one_bit=True), delta) for delta in DELTAS
        ]
        return [Point(epsilon, delta) for epsilon, delta in bounds if epsilon > 0]

    def sample(self, left: bool, draws: int) -> Rows:
        """Hand batch after batch over."""
        at_once = max(1, _REPORTS_AT_ONCE // self.voters)
        sizes = [min(at_once, draws - start) for start in range(0, draws, at_once)]
        batches = (batch for size in sizes for batch in self._codes(left, size, self.voters).tolist())
        return np.array([self.order(batch) for batch in batches], np.int64)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the likelihood ratios of a batch in no order, and of a batch whose first report is the voter's."""
        chances = self._chances()
        return [lambda rows: chances[rows].mean(axis=1), lambda rows: np.asarray(chances[rows[:, 0]])]


@dataclass(frozen=True)
class RelaysView(_Crowd):
    """A sealed report as the relay sees it: by its length."""

    write: Write = padded

    remark = "through a relay: the relay's view, that is lengths"

    @property
    def promised(self) -> Sequence[Point]:
        """The promise that it tells nothing."""
        return [Point(NOTHING)]

    def sample(self, left: bool, draws: int) -> Rows:
        """Write the first voter's report again and again, and look how long it is."""
        codes = self._codes(left, draws, 1)[:, 0]
        lengths = {code: len(self.write(self._report(code))) for code in np.unique(codes).tolist()}
        return np.array([[lengths[code]] for code in codes.tolist()], np.int64)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the length itself."""
        return [lambda rows: np.asarray(rows[:, 0], np.float64)]
