"""The devices of a crowd whose ballots are in one place: the holder makes the reports as each device would."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from crowdveil.ballots.ballots import Ballots, BallotSource
from crowdveil.engines.batches import map_batches
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.noise.source import Noise

S = TypeVar("S")


def device_sums(
    source: BallotSource,
    report: Callable[[Ballots, MechanismSettings, Epsilons, Noise], Any],
    add_up: Callable[[Any, MechanismSettings], S],
    settings: MechanismSettings,
    epsilons: Epsilon | Epsilons,
    noise: Noise,
) -> Iterator[S]:
    """Let the devices of all voters report, batch by batch, and add up the reports of each batch."""
    devices = _Devices(report, add_up, settings, epsilons, noise)
    return map_batches(source, devices) if noise.exact else _one_by_one(source, devices)


def _one_by_one(source: BallotSource, devices: _Devices[S]) -> Iterator[S]:
    """Make the reports in a fixed order, so that a seeded generator draws the same numbers again."""
    before = 0
    for batch in source.batches():
        yield devices(batch, before)
        before += batch.voters


@dataclass(frozen=True)
class _Devices(Generic[S]):
    """The devices of the voters in a batch, which draw from the operating system of whichever machine processes it."""

    report: Callable[[Ballots, MechanismSettings, Epsilons, Noise], Any]
    add_up: Callable[[Any, MechanismSettings], S]
    settings: MechanismSettings
    epsilons: Epsilon | Epsilons
    """One for all voters, or one per voter."""
    noise: Noise

    def __call__(self, ballots: Ballots, before: int) -> S:
        if isinstance(self.epsilons, Epsilons):
            epsilons = self.epsilons[before : before + ballots.voters]
        else:
            epsilons = Epsilons.same(self.epsilons, ballots.voters)
        return self.add_up(self.report(ballots, self.settings, epsilons, self.noise), self.settings)
