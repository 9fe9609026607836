"""The set-up of an attack: a mechanism at an epsilon, used for one voter (alone or in a small crowd) again and again.

Everything goes through the mechanism's own code. A distributed mechanism makes reports for thousands of copies of the
voter. A central one measures the crowd. Its release is a function of the noisy sum alone, which ``same_release`` checks
bit for bit. So only the noisy sum is drawn thousands of times, with the noise that the release requested. The sum
reveals more than the release does, so an attack that fails here also fails there.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing.connection import Connection
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.audit.trial import Rows, Score
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.design import public_design
from crowdveil.estimation.scoring_step import ScoringStep
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.grid import sum_of_preferences
from crowdveil.privacy.guarantee import Paradigm
from crowdveil.privacy.mechanisms.effect_counts import EffectCounts
from crowdveil.privacy.mechanisms.fisher_sums import SENSITIVITY, step_sums
from crowdveil.privacy.mechanisms.mechanism import CentralMechanism, Estimate, Measurement, MechanismSettings
from crowdveil.privacy.mechanisms.reports import PUBLIC_COLUMNS
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.noise.experimental_noise import NoiseLaw, NoiseRequest, ReplayedNoise, SilentNoise
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study

_OTHERS = 2
_COPIES_AT_ONCE = 50_000
_COPIES_TO_SEE_ALL = 64
_START = 1.5
"""Preference, along the last axis, from which a later step starts: a voter who chooses against it has a large score."""
_SCATTER = 0.25
_DEVIATIONS = 2.0
_DILEMMAS = 2_000


class Setup(Protocol):
    """A mechanism with its settings, for any records of one voter."""

    def __hash__(self) -> int:
        """Return the hash by which searches are cached."""

    @property
    def name(self) -> str:
        """The mechanism's name."""

    @property
    def remark(self) -> str:
        """How the mechanism is used here, if in a special way."""

    @property
    def paradigm(self) -> Paradigm:
        """Who is promised what."""

    @property
    def settings(self) -> MechanismSettings:
        """The public settings."""

    @property
    def epsilon(self) -> Epsilon:
        """The promise."""

    def request(self, records: FloatArray) -> NoiseRequest | None:
        """Return the additive noise that is requested for these records; None if there is none."""

    def exact(self, records: FloatArray) -> IntArray:
        """Return what distinguishes neighbours: usually the integers to which noise is added."""

    def sample(self, records: FloatArray, draws: int, noise: Noise) -> Rows:
        """Run the mechanism again and again; each row is everything that is output at once."""

    def noisy(self, rows: Rows) -> tuple[IntArray, IntArray]:
        """Return the noisy integers in these rows and a mask (1 where there is noise, 0 where nothing is reported)."""

    def same_release(self, left: FloatArray, right: FloatArray) -> bool:
        """Check that neighbours with equal noisy integers lead to equal releases, bit for bit."""


@dataclass(frozen=True)
class CentralSetup:
    """A central mechanism on a crowd of three, one of whom is attacked."""

    mechanism: CentralMechanism[Any, Any] | EffectCounts
    paradigm: Paradigm
    settings: MechanismSettings
    epsilon: Epsilon
    remark: str = ""

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.mechanism.name

    def request(self, records: FloatArray) -> NoiseRequest:
        """Return the noise that the release requests."""
        silent = SilentNoise()
        self._release(self._measure(records), silent)
        (request,) = silent.requests
        return request

    def exact(self, records: FloatArray) -> IntArray:
        """Return the crowd's exact sum."""
        return self._measure(records).total

    def sample(self, records: FloatArray, draws: int, noise: Noise) -> Rows:
        """Draw noisy sums."""
        return self.exact(records) + self.request(records).draw(noise, draws)

    def noisy(self, rows: Rows) -> tuple[IntArray, IntArray]:
        """Return everything: every number is noisy."""
        return rows, np.ones_like(rows)

    def same_release(self, left: FloatArray, right: FloatArray) -> bool:
        """Release both sides with noise that makes the noisy sums equal."""
        request = self.request(left)
        ours = self._measure(left)
        theirs = self._measure(right)
        if request != self.request(right):
            return False
        drawn = request.draw(BulkNoise(), 1)
        one = self._release(ours, ReplayedNoise(drawn))
        other = self._release(theirs, ReplayedNoise(drawn + ours.total - theirs.total))
        return same_estimate(one, other)

    def with_voter(self, records: FloatArray) -> Ballots:
        """Return the crowd in which the attacked voter has these records."""
        study = self.settings.study
        others = np.random.default_rng(0).normal(0.0, 1.0, (_OTHERS * study.drawing.dilemmas, study.dimension))
        offsets = np.cumsum([0, len(records)] + [study.drawing.dilemmas] * _OTHERS)
        return Ballots.from_differences(study, offsets, np.concatenate([records, others]))

    def _measure(self, records: FloatArray) -> Measurement:
        return self.mechanism.measure(self.with_voter(records), self.settings, self.epsilon)

    def _release(self, measurement: Measurement, noise: Noise) -> Estimate:
        return self.mechanism.release(measurement, self.settings, self.epsilon, noise)


class Reporter(Protocol):
    """The mechanism that a voter's device runs."""

    @property
    def name(self) -> str:
        """The mechanism's name."""

    def report(self, ballots: Ballots, settings: MechanismSettings, epsilons: Epsilons, noise: Noise) -> Any:
        """Make the reports of these voters."""


@dataclass(frozen=True)
class DistributedSetup:
    """A distributed mechanism on one voter's device."""

    mechanism: Reporter
    paradigm: Paradigm
    settings: MechanismSettings
    epsilon: Epsilon
    hidden: Callable[[Ballots, MechanismSettings], IntArray] | None = None
    """The integers that the report hides, one row per voter, for a mechanism that adds no noise to them."""
    remark: str = ""

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.mechanism.name

    def request(self, records: FloatArray) -> NoiseRequest | None:
        """Return the noise that the device requests."""
        silent = SilentNoise()
        self._report(records, 1, silent)
        return silent.requests[0] if silent.requests else None

    def exact(self, records: FloatArray) -> IntArray:
        """Return the device's exact integers, from a report without noise."""
        if self.hidden is not None:
            return np.asarray(self.hidden(_copies(records, 1, self.settings), self.settings)[0])
        said, mask = self.noisy(self._report(records, 1, SilentNoise()))
        if not mask.all():  # each report contains only some of them
            said, mask = self.noisy(self._report(records, _COPIES_TO_SEE_ALL, SilentNoise()))
        return np.asarray(said[mask.argmax(axis=0), np.arange(said.shape[1])])

    def sample(self, records: FloatArray, draws: int, noise: Noise) -> Rows:
        """Make reports."""
        sizes = [min(_COPIES_AT_ONCE, draws - done) for done in range(0, draws, _COPIES_AT_ONCE)]
        return np.concatenate([self._report(records, size, noise) for size in sizes])

    def noisy(self, rows: Rows) -> tuple[IntArray, IntArray]:
        """Split the rows into their parts."""
        half = (rows.shape[1] - PUBLIC_COLUMNS) // 2
        return rows[:, PUBLIC_COLUMNS + half :], rows[:, PUBLIC_COLUMNS : PUBLIC_COLUMNS + half]

    def same_release(self, left: FloatArray, right: FloatArray) -> bool:
        """Check that both request the same noise. Otherwise, the rows contain everything that leaves the device."""
        return self.request(left) == self.request(right)

    def _report(self, records: FloatArray, copies: int, noise: Noise) -> Rows:
        epsilons = Epsilons.same(self.epsilon, copies)
        reports = self.mechanism.report(_copies(records, copies, self.settings), self.settings, epsilons, noise)
        rows: IntArray = reports.rows()
        return rows


S = TypeVar("S", CentralSetup, DistributedSetup)


@dataclass(frozen=True)
class _WrappedSetup(Generic[S]):
    """A mechanism that is used in a special way; everything else is unchanged."""

    inner: S

    @property
    def name(self) -> str:
        """The mechanism's name."""
        return self.inner.name

    @property
    def paradigm(self) -> Paradigm:
        """Who is promised what."""
        return self.inner.paradigm

    @property
    def settings(self) -> MechanismSettings:
        """The public settings."""
        return self.inner.settings

    @property
    def epsilon(self) -> Epsilon:
        """The promise."""
        return self.inner.epsilon


@dataclass(frozen=True)
class ForkedSetup(_WrappedSetup[DistributedSetup]):
    """Two worker processes, forked from one, whose noise must be independent.

    One makes the voter's report, the other that of somebody whose records are known. Whoever knows the records behind a
    report knows its noise. If the voter's report had the same noise, it could be subtracted.
    """

    known: tuple[tuple[float, ...], ...]
    """The records of the other voter."""

    remark = "in forked workers"

    def request(self, records: FloatArray) -> NoiseRequest | None:
        """Return the noise that the voter's worker requests."""
        return self.inner.request(records)

    def exact(self, records: FloatArray) -> IntArray:
        """Return the voter's exact integers."""
        return self.inner.exact(records)

    def sample(self, records: FloatArray, draws: int, noise: Noise) -> Rows:
        """Let both workers report, with a noise source that they inherit."""
        workers = [partial(self.inner.sample, voter, draws, noise) for voter in (np.array(self.known), records)]
        return np.concatenate(_in_children(workers), axis=1)

    def noisy(self, rows: Rows) -> tuple[IntArray, IntArray]:
        """Split the second half: the voter's own report."""
        return self.inner.noisy(rows[:, rows.shape[1] // 2 :])

    def same_release(self, left: FloatArray, right: FloatArray) -> bool:
        """Check the voter's worker."""
        return self.inner.same_release(left, right)


@dataclass(frozen=True)
class LaterStepSetup(_WrappedSetup[CentralSetup]):
    """A later step of Fisher scoring: its sum of scores at a fixed preference, with its noise.

    The starting point of a step depends on earlier releases, which an attacker knows. So each step has to keep its
    share of epsilon at every starting point; here it starts where scores are as large as possible.
    """

    by_voter: bool

    remark = "a later step"

    def request(self, records: FloatArray) -> NoiseRequest:
        """Return the noise of a step: for sums of scores and their scatter."""
        return NoiseRequest(NoiseLaw.CUBE, SENSITIVITY, self.epsilon, public_design(self.settings.study).directions + 1)

    def exact(self, records: FloatArray) -> IntArray:
        """Return the crowd's exact sums."""
        study = self.settings.study
        mixed = public_design(study).mixed_basis
        return step_sums(mixed, _step(study, self.by_voter), self.by_voter, True, self.inner.with_voter(records))

    def sample(self, records: FloatArray, draws: int, noise: Noise) -> Rows:
        """Draw noisy sums."""
        return self.exact(records) + self.request(records).draw(noise, draws)

    def noisy(self, rows: Rows) -> tuple[IntArray, IntArray]:
        """Return everything: every number is noisy."""
        return self.inner.noisy(rows)

    def same_release(self, left: FloatArray, right: FloatArray) -> bool:
        """Check that both request the same noise: the rows contain all outputs of a step."""
        return self.request(left) == self.request(right)


def can_fork() -> bool:
    """Whether this system can fork processes."""
    return "fork" in multiprocessing.get_all_start_methods()


def same_estimate(one: Estimate, other: Estimate) -> bool:
    """Compare everything that a release publishes of an estimate, bit for bit."""
    return (
        one.parameter.tobytes() == other.parameter.tobytes()
        and one.noise.as_dict() == other.noise.as_dict()
        and one.facts == other.facts
        and (one.unknown and one.unknown.as_dict()) == (other.unknown and other.unknown.as_dict())
    )


def claimed_distance(setup: Setup, records: FloatArray) -> tuple[NoiseLaw, int]:
    """Return the largest distance of neighbours for which the promise holds, and its norm."""
    request = setup.request(records)
    return (request.kind, request.sensitivity) if request is not None else (NoiseLaw.LAPLACE, sum_of_preferences())


def likelihood(setup: Setup, kind: NoiseLaw, left: FloatArray, right: FloatArray) -> Score:
    """The best score against additive noise of this kind: how much nearer an output is to left than to right.

    The log-likelihood ratio is this times epsilon / sensitivity. The score is kept in integers: for many outputs (half
    of them, at best) it takes its largest possible value, and rounding must not split such an atom.
    """
    ours, theirs = setup.exact(left), setup.exact(right)

    def score(rows: Rows) -> FloatArray:
        said, mask = setup.noisy(rows)
        return (kind.distance((said - theirs) * mask) - kind.distance((said - ours) * mask)).astype(np.float64)

    return score


def _copies(records: FloatArray, copies: int, settings: MechanismSettings) -> Ballots:
    return Ballots.from_differences(settings.study, np.arange(copies + 1) * len(records), np.tile(records, (copies, 1)))


def _in_children(tasks: Sequence[Callable[[], Rows]]) -> list[Rows]:
    """Fork a child for every task, one after the other, from the same state of this process."""
    context = multiprocessing.get_context("fork")
    made = []
    for task in tasks:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_send, args=(task, theirs))
        child.start()
        theirs.close()
        try:
            shape = ours.recv()
            data = ours.recv_bytes()
        except EOFError:
            raise RuntimeError("a forked worker of the audit died") from None
        child.join()
        made.append(np.frombuffer(data, np.int64).reshape(shape))
    return made


def _send(task: Callable[[], Rows], to: Connection) -> None:
    rows = np.ascontiguousarray(task(), np.int64)
    to.send(rows.shape)
    to.send_bytes(rows.tobytes())
    to.close()


@lru_cache(maxsize=8)
def _step(study: Study, by_voter: bool) -> ScoringStep:
    sample = public_design(study).sample.head(_DILEMMAS)
    start = np.zeros(sample.along.shape[1])
    start[-1] = _START
    return ScoringStep.at(start, sample, _SCATTER if by_voter else None, _DEVIATIONS)
