"""A mechanism: exact records go in, and only what is private comes out.

A central mechanism first measures (exact integers, never published), then adds noise once. A distributed one turns each
voter's records into a report on that voter's device; whoever collects the reports sees nothing else. Both end in an
``Estimate``, of which every field may be published.

All there is to know about a mechanism stands on its class: whoever adds one writes a file, and a line in the registry.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.engines.batches import Tally, add_up
from crowdveil.estimation.design import Design, PublicDilemmas
from crowdveil.estimation.prior import rest_deviation
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.reports import LevelSums, R, WireFormat
from crowdveil.privacy.mechanisms.scores import Scoring
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.noise.source import Noise
from crowdveil.privacy.side_answers import Indifference, Reliability
from crowdveil.privacy.unknown import Unknown
from crowdveil.study.study import Study

L = TypeVar("L", contravariant=True)
N = TypeVar("N", contravariant=True)

Sensitivity = Literal["tight", "paper"]


class Estimand(StrEnum):
    """The quantity that a mechanism estimates."""

    SOCIETY = "society"
    """The mean of the voters' bounded fits: the paper's society."""
    PREFERENCE = "preference"
    """The one preference that explains what the crowd chose."""
    EFFECTS = "effects"
    """How often the side with more of a factor was preferred, less how often the other was."""


class Loss(StrEnum):
    """The unit of a privacy loss."""

    EPSILON = "epsilon"
    """Of pure differential privacy, an ``Epsilon``."""
    RHO = "rho"
    """Of zero-concentrated differential privacy, a ``Fraction``."""


@dataclass(frozen=True)
class Settings:
    """The public choices that a mechanism is used with, all made before any record is looked at."""

    study: Study
    norm_bound: float
    repair: bool = True
    """Regularise and trim a noisy quadratic, without which it has no maximum."""
    sensitivity: Sensitivity = "tight"
    """The tighter of the two proved sensitivities of an objective function, or the paper's."""
    equal_votes: bool = False
    """Every voter counts the same, as in the paper, however noisy the report."""
    robust: float = 0.0
    """Share of the reports with unbounded noise that is pulled in, at each end of each coordinate (``reports``)."""
    drawn: bool = False
    """The study's own generator drew the dilemmas, as in a poll: nothing about them is in doubt."""
    design: PublicDilemmas | None = None
    """Dilemmas that are public, in place of what is guessed of those of secret records."""


OPTIONS: Mapping[str, Any] = {
    "repair": True,
    "sensitivity": "tight",
    "equal_votes": False,
    "robust": 0.0,
    "design": None,
}
"""The settings that some mechanisms know and others do not, with the value that is none."""


@dataclass(frozen=True)
class Estimate:
    """The parameter as a mechanism lets it out, with the law of its noise (over the features)."""

    parameter: FloatArray
    noise: NoiseDistribution
    facts: Mapping[str, Any] = field(default_factory=dict)
    """More that may be said in public: computed from private output or public settings only."""
    unknown: Unknown | None = None
    """Of a crowd's preference, all else that is not known; None for the paper's society."""
    indifference: Indifference | None = None
    """The crowd's threshold, in a study that allows a third answer."""
    reliability: Reliability | None = None
    """The share of people who answer alike, in a study that asks one dilemma twice."""


def unknown_along(
    design: Design,
    *,
    mean: FloatArray,
    covariance: FloatArray,
    center: FloatArray,
    sampling: FloatArray,
    doubt: FloatArray,
    freedom: int | None = None,
    records: float | None = None,
    turn: float = 0.0,
    size: float = 0.0,
) -> Unknown:
    """Say what is known along the axes of a design; the directions it leaves out keep their prior.

    That is the prior of a population. A crowd of so many records (or at least so many) has a rest of its own, even if
    the population has none: records without a preference tell one along an axis to a variance of pi / 2 over their
    number less those of the directions, and with margins of the usual size to about twice that. In its dilemmas the
    rest goes a little with the factors, so that fitting these alone finds something else. In simulated crowds of 200 to
    6,500 records (tests/statistics/crowd_rest.py) the two deviations are 1.2 to 1.8 over the root of that number, and
    up to 11 over the number.
    """
    left_out = design.rest_basis.shape[1]
    prior = rest_deviation(left_out)
    stretch, shift = 1.0, 0.0
    if records is not None and left_out:
        telling = max(records - design.directions - left_out - 1, 1)
        stretch = math.sqrt(1 + _DRAWN_VARIANCE / telling / prior**2)
        shift = _DRAWN_SHIFT / telling
    basis, rest = design.basis, design.rest_basis * prior
    return Unknown(
        basis,
        rest,
        mean,
        covariance,
        center,
        sampling,
        doubt,
        freedom,
        drawn_rest=stretch,
        drawn_shift=shift,
        left_out=design.left_out,
        turn=turn,
        size=size,
    )


_DRAWN_VARIANCE = math.pi
"""Of a crowd's preference along an axis, times its records."""
_DRAWN_SHIFT = 45.0
"""Four deviations of the shift, times the records: as far as nine axes reach together in 99 of 100 crowds."""


@dataclass(frozen=True)
class Measurement:
    """Exact integers about the crowd. Private: nothing here may leave without noise."""

    total: IntArray
    voters: int
    records: int
    source: BallotSource | None = None
    """The crowd itself, where later steps look at it again."""
    design: Design | None = None
    """The dilemmas and axes that it is looked at with."""
    squared_lengths: int = 0
    """The squares of the numbers of voters' records, added up."""


def measured(source: BallotSource, tally: Tally) -> Measurement:
    """Add up a tally over the crowd, with the numbers of voters and records. The engine cannot change a bit of it."""
    voters, records, *total = add_up(source, partial(_with_counts, tally)).tolist()
    return Measurement(np.array(total, np.int64), voters, records)


def _with_counts(tally: Tally, ballots: Ballots) -> IntArray:
    return np.concatenate([[ballots.voters, ballots.records], tally(ballots)])


class Mechanism(Protocol):
    """The description of any mechanism."""

    @property
    def name(self) -> str:
        """Its name in releases and on the command line."""

    @property
    def title(self) -> str:
        """A few words of the trade."""

    @property
    def words(self) -> str:
        """Words for everybody: "noise, added once, to ..."."""

    @property
    def paradigms(self) -> tuple[str, ...]:
        """The paradigms that it serves."""

    @property
    def papers(self) -> tuple[str, ...]:
        """The paradigms for which it is the paper's mechanism."""

    @property
    def options(self) -> tuple[str, ...]:
        """Which of the ``OPTIONS`` it knows."""


class CentralMechanism(Mechanism, Protocol[L, N]):
    """Noise is added once, by a trusted aggregator. L is the privacy loss that it takes, N its source of noise."""

    @property
    def takes(self) -> Loss:
        """The unit of its privacy loss."""

    @property
    def estimates(self) -> Estimand:
        """The quantity that it estimates."""

    def measure(self, source: BallotSource, settings: Settings, loss: L) -> Measurement:
        """Compute the exact integers that noise will be added to."""

    def release(self, measurement: Measurement, settings: Settings, loss: L, noise: N) -> Estimate:
        """Add the noise. The only place where it enters."""

    def expected_noise(self, settings: Settings, voters: int, loss: L) -> NoiseDistribution:
        """Return the noise that the society would carry, before anything is spent."""


class DistributedMechanism(Mechanism, Protocol[R]):
    """Noise is added by each voter's device. R is what the devices of some voters send."""

    @property
    def estimates(self) -> Estimand:
        """The quantity that it estimates."""

    @property
    def wire(self) -> WireFormat[R]:
        """The wire format of its reports."""

    def scoring(self, study: Study) -> Scoring | None:
        """Return what a device needs to score records, where the mechanism does that."""

    @property
    def tosses_coins(self) -> bool:
        """Whether a device turns choices over by coin tosses, rather than adding noise or drawing signs."""

    def report_size(self, study: Study, epsilon: Epsilon) -> int | None:
        """Return how many coordinates, signs or choices a report has, where the mechanism chooses; else None."""

    def report(self, ballots: Ballots, settings: Settings, epsilons: Epsilons, noise: Noise) -> R:
        """Make the reports of these voters, with the epsilon of each. The only place where noise enters."""

    def acceptable(self, reports: R, settings: Settings) -> BoolArray:
        """Tell for each voter whether an honest device could have made the report; others are to be refused."""

    def condense(self, reports: R, settings: Settings) -> R | LevelSums:
        """Return what the aggregate needs of these reports: their sums, where sums are enough."""

    def aggregate(self, reports: Iterable[R | LevelSums], settings: Settings) -> Estimate:
        """Estimate the society from reports alone, condensed or not."""

    def expected_noise(self, settings: Settings, epsilons: Epsilons) -> NoiseDistribution | None:
        """Return the noise that the society would carry, before any report; None if nothing simple is known."""
