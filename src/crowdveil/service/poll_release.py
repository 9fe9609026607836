"""Make a release of a poll: look first at what it would cost and tell, then make it.

Central polls are charged before noise is drawn. Distributed polls cost nothing: the noise is in the reports already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import NOTHING, Amount, Epsilon, Epsilons
from crowdveil.privacy.mechanisms.registry import budget_parts, distributed
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.unknown import ERROR_BAR
from crowdveil.protocol.description import relayed_promise
from crowdveil.publish.gather import release_from_reports
from crowdveil.publish.release import charged_release
from crowdveil.publish.request import FEWEST_VOTERS, Request, preview_request
from crowdveil.releases import Release
from crowdveil.service.poll import HostedPoll
from crowdveil.service.store.batches import batch_of
from crowdveil.service.store.releases import StoredRelease
from crowdveil.service.store.store import Store

Tell = Callable[[int], None]


@dataclass(frozen=True)
class ReleasePreview:
    """The cost of a release and the noise it would carry. Nothing is spent, and nothing here came from a record."""

    poll: str
    voters: int
    mechanism: str
    cost: Amount
    """Nothing for a distributed poll."""
    remaining: Amount | None
    """The rest of a central poll's budget before it."""
    noise: NoiseDistribution | None
    """The noise that the society would carry, where it is known beforehand."""
    split: Mapping[str, float]
    """The parts of a central epsilon, or of the reports, and what each of them buys."""

    @property
    def affordable(self) -> bool:
        """Whether the budget covers it."""
        return self.remaining is None or self.cost <= self.remaining

    @property
    def error_bar(self) -> float | None:
        """How far the noise would move any coordinate at most, with 95 % probability each."""
        return None if self.noise is None else float(np.max(self.noise.half_widths(ERROR_BAR)))


def preview_release(store: Store, name: str, epsilon: Epsilon | None = None) -> ReleasePreview:
    """Preview a release; ``epsilon`` is what a central one would spend."""
    poll = store.polls.known(name)
    if poll.distributed:
        epsilons = _epsilons(store, poll)
        noise = distributed(poll.mechanism, poll.study).expected_noise(poll.settings, epsilons)
        split = budget_parts(poll.mechanism, poll.study, None)
        return ReleasePreview(name, len(epsilons), poll.mechanism, NOTHING, None, noise, split)
    spend = _spending(poll, epsilon)
    account = store.releases.account(name)
    prepared = preview_request(store.submissions.crowd(name), _request(poll, spend))
    remaining = None if account is None else account.remaining
    return ReleasePreview(
        name,
        prepared.dataset.voters,
        poll.mechanism,
        Amount.of(str(spend)),
        remaining,
        prepared.expected_noise,
        prepared.split,
    )


def make_release(
    store: Store, name: str, today: date, epsilon: Epsilon | None = None, tell: Tell | None = None
) -> StoredRelease:
    """Make a release and store it; a central one spends ``epsilon`` of the poll's budget, before noise is drawn.

    ``tell`` hears how many voters have been read.
    """
    poll = store.polls.known(name)
    if poll.distributed:
        if epsilon is not None:
            raise CrowdveilError(
                f"poll {name} is distributed: its voters chose their epsilons, and a release spends none"
            )
        return store.releases.put(name, _from_reports(store, poll, tell), today, None)
    spend = _spending(poll, epsilon)
    release = charged_release(
        store.submissions.crowd(name, tell), _request(poll, spend), store.releases.ledger(name, today)
    )
    return store.releases.put(name, release, today, None if release.ledger is None else release.ledger["entry"])


def _request(poll: HostedPoll, epsilon: Epsilon) -> Request:
    return Request(poll.paradigm, epsilon, poll.mechanism, public_selection=poll.public_selection)


def _spending(poll: HostedPoll, epsilon: Epsilon | None) -> Epsilon:
    if epsilon is None:
        raise CrowdveilError(f"say how much of the budget of poll {poll.name} the release may spend: an epsilon")
    return epsilon


def _from_reports(store: Store, poll: HostedPoll, tell: Tell | None) -> Release:
    """Make a release from the reports as they are at one moment; behind a relay, with the promise of its batches.

    The promise is computed from how many reports of each batch are in this release, and nothing else.
    """
    sizes: Counter[str] = Counter()

    def bodies() -> Iterator[Sequence[Mapping[str, Any]]]:
        for reports in store.submissions.reports(poll.name):
            sizes.update(batch_of(report.id) for report in reports)
            yield [report.body for report in reports]
            if tell is not None:
                tell(sizes.total())

    release = release_from_reports(bodies(), poll.paradigm, poll.terms)
    if poll.relay is None:
        return release
    smallest = relayed_promise(poll)
    arrived = replace(smallest, batches=tuple(sizes.values()))
    return replace(release, facts={**release.facts, "relayed": arrived.as_dict()})


def _epsilons(store: Store, poll: HostedPoll) -> Epsilons:
    counted = [(day.epsilon, day.participants) for day in store.submissions.by_day(poll.name) if day.epsilon]
    levels = Epsilons.of(epsilon for epsilon, _ in counted)
    epsilons = levels.repeat(np.array([participants for _, participants in counted], np.int64))
    if len(epsilons) < FEWEST_VOTERS:
        raise CrowdveilError(
            f"a release needs at least {FEWEST_VOTERS} voters, and poll {poll.name} has {len(epsilons)}"
        )
    return epsilons
