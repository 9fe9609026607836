"""What is attacked: a mechanism at an epsilon, run for one voter (alone or in a small crowd) again and again.

Everything goes through the mechanism's own code. A distributed mechanism makes reports for thousands of copies of the
voter. A central one measures the crowd; its release is then known to be a function of the noisy sum alone
(``same_release`` checks that, bit for bit), so the noisy sum, from which everything else follows, is what is drawn
thousands of times: with the noise that the release asked for. To see the sum is more than to see the release, so an
attack that fails here fails there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.attack import Rows, Score
from crowdveil.audit.noiseless import Asked, Kind, ReplayedNoise, SilentNoise
from crowdveil.ballots import Ballots
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import Paradigm
from crowdveil.privacy.mechanisms.mechanism import (
    CentralMechanism,
    DistributedMechanism,
    Estimate,
    Measurement,
    Reports,
    Settings,
)
from crowdveil.privacy.mechanisms.randomised_response import ChoiceReports
from crowdveil.privacy.mechanisms.score import ScoreReports
from crowdveil.privacy.noise.bulk_noise import BulkNoise
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.sensitivity import sum_of_preferences

_OTHERS = 2
_COPIES_AT_ONCE = 50_000
_COPIES_TO_SEE_ALL = 64


class Subject(Protocol):
    """A mechanism with its settings, and one voter's records left open."""

    def __hash__(self) -> int:
        """Searches are remembered by their subject."""

    @property
    def name(self) -> str:
        """The mechanism's name."""

    @property
    def remark(self) -> str:
        """What is special about how it is run here."""

    @property
    def paradigm(self) -> Paradigm:
        """Who is promised what."""

    @property
    def settings(self) -> Settings:
        """The public choices."""

    @property
    def epsilon(self) -> Epsilon:
        """The promise."""

    def asked(self, records: FloatArray) -> Asked | None:
        """Return the additive noise that is asked for with these records; None if there is none."""

    def exact(self, records: FloatArray) -> IntArray:
        """Return what neighbours are told apart by: the integers to which noise is added, in general."""

    def sample(self, records: FloatArray, draws: int, noise: Noise) -> Rows:
        """Run it again and again; each row is everything that leaves one run."""

    def noisy(self, rows: Rows) -> tuple[IntArray, IntArray]:
        """Of these rows, return the noisy integers and a mask (1 where there is noise, 0 where nothing is said)."""

    def same_release(self, left: FloatArray, right: FloatArray) -> bool:
        """Check that neighbours with equal noisy integers lead to equal releases, bit for bit."""


@dataclass(frozen=True)
class Central:
    """A central mechanism on a crowd of three, of whom one is in question."""

    mechanism: CentralMechanism
    paradigm: Paradigm
    settings: Settings
    epsilon: Epsilon
    remark: str = ""

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.mechanism.name

    def asked(self, records: FloatArray) -> Asked | None:
        """Return the noise that the release asks for."""
        silent = SilentNoise()
        self._release(self._measure(records), silent)
        (asked,) = silent.asked
        return asked

    def exact(self, records: FloatArray) -> IntArray:
        """Return the crowd's exact sum."""
        return self._measure(records).total

    def sample(self, records: FloatArray, draws: int, noise: Noise) -> Rows:
        """Draw noisy sums."""
        asked = self.asked(records)
        assert asked is not None
        return self.exact(records) + asked.draw(noise, draws)

    def noisy(self, rows: Rows) -> tuple[IntArray, IntArray]:
        """All of it is noisy."""
        return rows, np.ones_like(rows)

    def same_release(self, left: FloatArray, right: FloatArray) -> bool:
        """Release both sides with noise that makes the noisy sums equal."""
        asked, ours, theirs = self.asked(left), self._measure(left), self._measure(right)
        if asked is None or asked != self.asked(right):
            return False
        drawn = asked.draw(BulkNoise(), 1)
        one = self._release(ours, ReplayedNoise(drawn))
        other = self._release(theirs, ReplayedNoise(drawn + ours.total - theirs.total))
        return (
            one.parameter.tobytes() == other.parameter.tobytes()
            and one.noise.as_dict() == other.noise.as_dict()
            and one.facts == other.facts
        )

    def with_voter(self, records: FloatArray) -> Ballots:
        """Return the crowd in which the one in question has these records."""
        study = self.settings.study
        others = np.random.default_rng(0).normal(0.0, 1.0, (_OTHERS * study.drawing.dilemmas, study.dimension))
        offsets = np.cumsum([0, len(records)] + [study.drawing.dilemmas] * _OTHERS)
        return Ballots.from_differences(study, offsets, np.concatenate([records, others]))

    def _measure(self, records: FloatArray) -> Measurement:
        return self.mechanism.measure(self.with_voter(records), self.settings, self.epsilon)

    def _release(self, measurement: Measurement, noise: Noise) -> Estimate:
        return self.mechanism.release(measurement, self.settings, self.epsilon, noise)


@dataclass(frozen=True)
class Distributed:
    """A distributed mechanism on one voter's device."""

    mechanism: DistributedMechanism[Any]
    paradigm: Paradigm
    settings: Settings
    epsilon: Epsilon
    hidden: Callable[[Ballots, Settings], IntArray] | None = None
    """What the report hides, a row a voter, for a mechanism that adds no noise to it."""
    remark: str = ""

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.mechanism.name

    def asked(self, records: FloatArray) -> Asked | None:
        """Return the noise that the device asks for."""
        silent = SilentNoise()
        self._report(records, 1, silent)
        return silent.asked[0] if silent.asked else None

    def exact(self, records: FloatArray) -> IntArray:
        """Return the device's exact integers, from a report without noise."""
        if self.hidden is not None:
            return np.asarray(self.hidden(_copies(records, 1, self.settings), self.settings)[0])
        said, mask = self.noisy(_rows(self._report(records, 1, SilentNoise())))
        if not mask.all():  # each report tells a part only
            said, mask = self.noisy(_rows(self._report(records, _COPIES_TO_SEE_ALL, SilentNoise())))
        return np.asarray(said[mask.argmax(axis=0), np.arange(said.shape[1])])

    def sample(self, records: FloatArray, draws: int, noise: Noise) -> Rows:
        """Make reports."""
        batches = [min(_COPIES_AT_ONCE, draws - done) for done in range(0, draws, _COPIES_AT_ONCE)]
        return np.concatenate([_rows(self._report(records, size, noise)) for size in batches])

    def noisy(self, rows: Rows) -> tuple[IntArray, IntArray]:
        """Split the rows as ``_rows`` puts them together."""
        half = (rows.shape[1] - _PUBLIC) // 2
        return rows[:, _PUBLIC + half :], rows[:, _PUBLIC : _PUBLIC + half]

    def same_release(self, left: FloatArray, right: FloatArray) -> bool:
        """Check that both ask for the same noise. For the rest, the rows hold all that leaves."""
        return self.asked(left) == self.asked(right)

    def _report(self, records: FloatArray, copies: int, noise: Noise) -> Any:
        epsilons = Epsilons.same(self.epsilon, copies)
        return self.mechanism.report(_copies(records, copies, self.settings), self.settings, epsilons, noise)


def claimed_distance(subject: Subject, records: FloatArray) -> tuple[Kind, int]:
    """Return how far apart neighbours may be for the promise to hold, and in which norm."""
    asked = subject.asked(records)
    return (asked.kind, asked.sensitivity) if asked is not None else (Kind.LAPLACE, sum_of_preferences())


def likelihood(subject: Subject, kind: Kind, left: FloatArray, right: FloatArray) -> Score:
    """The best score against additive noise of this kind: how much nearer an output is to left than to right.

    The logarithm of the ratio of the two likelihoods is this times epsilon / sensitivity. It is kept in integers: for
    many outputs (half of them, at best) it is as large as it can be, and such an atom must not be spread by rounding.
    """
    ours, theirs = subject.exact(left), subject.exact(right)

    def score(rows: Rows) -> FloatArray:
        said, mask = subject.noisy(rows)
        return (kind.distance((said - theirs) * mask) - kind.distance((said - ours) * mask)).astype(np.float64)

    return score


_PUBLIC = 2


def _rows(reports: Any) -> Rows:
    """Lay out all that some devices send, bit for bit: two public numbers each, then a mask, then values."""
    match reports:
        case Reports(epsilons, values):
            return np.column_stack([epsilons.micro, np.zeros(len(values), np.int64), np.ones_like(values), values])
        case ScoreReports(epsilons, counts, reported, values):
            return np.column_stack([epsilons.micro, counts, reported.astype(np.int64), values])
        case ChoiceReports(epsilons, offsets, dilemmas, choices):
            # A float is taken by its bits: even the sign of a zero is something that leaves.
            bits = dilemmas.view(np.int64) if dilemmas.dtype == np.float64 else dilemmas.astype(np.int64)
            voters = len(epsilons)
            return np.column_stack(
                [epsilons.micro, np.diff(offsets), bits.reshape(voters, -1), choices.reshape(voters, -1)]
            )
        case _:
            raise TypeError(f"the audit cannot read a report of type {type(reports).__name__}")


def _copies(records: FloatArray, copies: int, settings: Settings) -> Ballots:
    return Ballots.from_differences(settings.study, np.arange(copies + 1) * len(records), np.tile(records, (copies, 1)))
