"""What a mechanism is: exact answers go in, and only what is private comes out.

A central mechanism first measures (exact integers, never published), then adds noise once. A distributed one
turns each voter's records into a report on that voter's device; whoever collects the reports sees nothing
else. Both end in an ``Estimate``, of which every part may be published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.ballots import Ballots, BallotSource
from crowdveil.engines.batches import Tally, add_up
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.level_sums import LevelSums
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study

R = TypeVar("R")

Sensitivity = Literal["tight", "paper"]


@dataclass(frozen=True)
class Settings:
    """The public choices that a mechanism runs with, all made before any answer is looked at."""

    study: Study
    norm_bound: float
    repair: bool = True
    """Algorithm 3 only: regularise and trim the noisy quadratic, without which it has no maximum."""
    sensitivity: Sensitivity = "tight"
    """Algorithm 3 only: the tighter of the two proved sensitivities, or the paper's."""
    equal_votes: bool = False
    """Distributed mechanisms only: every voter counts the same, as in the paper, however noisy the report."""
    robust: float = 0.0
    """Reports with unbounded noise only: the share at each end of each coordinate that is pulled in (``robust``)."""


@dataclass(frozen=True)
class Estimate:
    """The society's parameter as a mechanism lets it out, with the law of its noise."""

    parameter: FloatArray
    noise: NoiseDistribution
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else may be said in public: computed from private output or public settings only."""


@dataclass(frozen=True)
class Measurement:
    """Exact integers about the crowd. Private: nothing here may leave without noise."""

    total: IntArray
    voters: int
    records: int
    shown: FloatArray | None = None
    """Answer level only: the dilemmas that were shown (X - Z of either side). They are public there."""


def measured(source: BallotSource, tally: Tally) -> Measurement:
    """Add up a tally over the crowd, with the numbers of voters and records. The engine cannot change a bit of it."""
    voters, records, *total = add_up(source, partial(_with_counts, tally)).tolist()
    return Measurement(np.array(total, np.int64), voters, records)


def _with_counts(tally: Tally, ballots: Ballots) -> IntArray:
    return np.concatenate([[ballots.voters, ballots.records], tally(ballots)])


class CentralMechanism(Protocol):
    """Noise is added once, by a trusted aggregator."""

    @property
    def name(self) -> str:
        """Return the name in releases and on the command line."""

    @property
    def title(self) -> str:
        """Say in a few words what it does."""

    @property
    def paradigms(self) -> tuple[str, ...]:
        """Return the paradigms that it serves."""

    def measure(self, source: BallotSource, settings: Settings, epsilon: Epsilon) -> Measurement:
        """Compute the exact integers that noise will be added to."""

    def release(self, measurement: Measurement, settings: Settings, epsilon: Epsilon, noise: Noise) -> Estimate:
        """Add the noise. The only place where it enters."""

    def expected_noise(self, settings: Settings, epsilons: Epsilons) -> NoiseDistribution | None:
        """Say what noise the society would carry, before anything is spent; None if nothing simple is known."""


class DistributedMechanism(Protocol[R]):
    """Noise is added by each voter's device. R is what the devices of some voters send."""

    @property
    def name(self) -> str:
        """Return the name in releases and on the command line."""

    @property
    def title(self) -> str:
        """Say in a few words what it does."""

    @property
    def paradigms(self) -> tuple[str, ...]:
        """Return the paradigms that it serves."""

    def report(self, ballots: Ballots, settings: Settings, epsilons: Epsilons, noise: Noise) -> R:
        """Make the reports of these voters, with the epsilon of each. The only place where noise enters."""

    def acceptable(self, reports: R, settings: Settings) -> BoolArray:
        """Say for each voter whether an honest device could have made the report; others are to be refused."""

    def condense(self, reports: R, settings: Settings) -> R | LevelSums:
        """Return what the aggregate needs of these reports: their sums, where sums are enough."""

    def aggregate(self, reports: Iterable[R | LevelSums], settings: Settings) -> Estimate:
        """Estimate the society from reports alone, condensed or not."""

    def expected_noise(self, settings: Settings, epsilons: Epsilons) -> NoiseDistribution | None:
        """Say what noise the society would carry, before anything is spent; None if nothing simple is known."""


@dataclass(frozen=True)
class Reports:
    """What most devices send: one row of integers a voter, and the epsilon it was made with."""

    epsilons: Epsilons
    values: IntArray
