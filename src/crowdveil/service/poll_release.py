"""Releases and effects of a poll: a preview of their cost and accuracy, and their making.

Central polls are charged before noise is drawn. Distributed polls are not charged: the noise is already in the reports.

Effects are about everybody, or grouped by a question about voters. In a distributed poll they are computed from the
reports: by counting if these are choices after coin tosses, through the estimated preference if they are bits or
scores. Voters' answers about themselves are exact in central polls. In distributed polls they went through randomised
response, and groups are corrected for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from crowdveil.effect_release import EffectsRelease
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import NOTHING, Amount, Epsilon, Epsilons
from crowdveil.privacy.mechanisms.registry import budget_parts, distributed
from crowdveil.privacy.noise.distribution import NoiseDistribution
from crowdveil.privacy.uncertainty import ERROR_BAR
from crowdveil.protocol.description import relayed_promise
from crowdveil.publish.effects import charged_effects
from crowdveil.publish.effects_request import EffectsPreview, preview_effects
from crowdveil.publish.gather import (
    ReportedGroups,
    check_implied,
    effects_counted,
    effects_from_reports,
    implied_from_reports,
    release_from_reports,
)
from crowdveil.publish.release import charged_release
from crowdveil.publish.request import FEWEST_VOTERS, Request, preview_request
from crowdveil.releases import Release
from crowdveil.service.poll import HostedPoll, group_labels, group_of, grouping_questions
from crowdveil.service.store.batches import batch_of
from crowdveil.service.store.releases import StoredEffects, StoredRelease
from crowdveil.service.store.store import Store
from crowdveil.service.store.submissions import StoredReport

CountCallback = Callable[[int], None]


@dataclass(frozen=True)
class PollPreview:
    """The cost of a release or of effects. Nothing is spent, and nothing here is computed from a record."""

    poll: str
    voters: int
    cost: Amount
    """The amount that would be spent; nothing for a distributed poll."""
    remaining: Amount | None
    """The rest of a central poll's budget before the release."""

    @property
    def affordable(self) -> bool:
        """Whether the budget covers it."""
        return self.remaining is None or self.cost <= self.remaining


@dataclass(frozen=True)
class ReleasePreview(PollPreview):
    """The cost of a release, and the noise it would have."""

    mechanism: str
    noise: NoiseDistribution | None
    """The noise that the society would have, if it is known beforehand."""
    split: Mapping[str, float]
    """The parts of a central epsilon, or of the reports, and what each part is used for."""

    @property
    def error_bar(self) -> float | None:
        """The most that the noise would move any coordinate, with 95 % probability each."""
        return None if self.noise is None else float(np.max(self.noise.half_widths(ERROR_BAR)))


@dataclass(frozen=True)
class PollEffectsPreview(PollPreview):
    """The cost of effects, and their expected error."""

    by: str | None
    half_width: float | None
    """The 95 % error of the least certain effect, in each group if all are equally large; None if not yet known."""


def preview_release(store: Store, name: str, epsilon: Epsilon | None = None) -> ReleasePreview:
    """Preview a release; ``epsilon`` is the amount that a central one would spend."""
    poll = store.polls.known(name)
    if poll.distributed:
        epsilons = _epsilons(store, poll)
        noise = distributed(poll.mechanism, poll.study).expected_noise(poll.settings, epsilons)
        split = budget_parts(poll.mechanism, poll.study, None)
        return ReleasePreview(name, len(epsilons), NOTHING, None, poll.mechanism, noise, split)
    spend = _spending(poll, epsilon)
    prepared = preview_request(store.submissions.crowd(name), _request(poll, spend))
    return ReleasePreview(
        name,
        prepared.dataset.voters,
        Amount.of(str(spend)),
        _remaining(store, poll),
        poll.mechanism,
        prepared.expected_noise,
        prepared.split,
    )


def make_release(
    store: Store,
    name: str,
    today: date,
    epsilon: Epsilon | None = None,
    tell: CountCallback | None = None,
    spent_before: Amount | None = None,
) -> StoredRelease:
    """Make a release and store it; a central one spends ``epsilon`` of the poll's budget, before noise is drawn.

    ``tell`` is called with the number of voters read so far. If ``spent_before`` is given and another amount has been
    spent, nothing is made.
    """
    poll = store.polls.known(name)
    if poll.distributed:
        _check_free(poll, epsilon)
        return store.releases.put(name, _release_from_reports(store, poll, tell), today)
    spend = _spending(poll, epsilon)
    release = charged_release(
        store.submissions.crowd(name, tell), _request(poll, spend), store.releases.ledger(name, today, spent_before)
    )
    return store.releases.put(name, release, today)


def _request(poll: HostedPoll, epsilon: Epsilon) -> Request:
    return Request(poll.paradigm, epsilon, poll.mechanism, public_selection=poll.public_selection)


def _spending(poll: HostedPoll, epsilon: Epsilon | None) -> Epsilon:
    if epsilon is None:
        raise CrowdveilError(f"say how much of the budget of poll {poll.name} may be spent on this: an epsilon")
    return epsilon


def _check_free(poll: HostedPoll, epsilon: Epsilon | None) -> None:
    if epsilon is not None:
        raise CrowdveilError(
            f"poll {poll.name} is distributed: its voters chose their epsilons, and this spends none: give no epsilon"
        )


def _check_enough(poll: HostedPoll, voters: int) -> None:
    if voters < FEWEST_VOTERS:
        raise CrowdveilError(
            f"a release or effects need at least {FEWEST_VOTERS} voters, and poll {poll.name} has {voters}"
        )


def _remaining(store: Store, poll: HostedPoll) -> Amount | None:
    account = store.releases.account(poll.name)
    return None if account is None else account.remaining


def _release_from_reports(store: Store, poll: HostedPoll, tell: CountCallback | None) -> Release:
    """Make a release from the reports stored at one moment; behind a relay, with the promise of its batches.

    The promise depends only on the number of reports of each batch in this release.
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
    levels = Epsilons(epsilon for epsilon, _ in counted)
    epsilons = levels.repeat(np.array([participants for _, participants in counted], np.int64))
    _check_enough(poll, len(epsilons))
    return epsilons


def why_not(poll: HostedPoll, *, grouped: bool) -> str | None:
    """Return the reason why a poll cannot have effects, or effects of groups; None if it can."""
    if grouped and not grouping_questions(poll):
        return "no question about voters asks for one of a few public answers"
    if not poll.distributed or _counted(poll):
        return None
    try:
        check_implied(poll.terms, grouped=grouped)
    except CrowdveilError as error:
        return str(error)
    return None


def preview_poll_effects(store: Store, name: str, by: str | None, epsilon: Epsilon | None) -> PollEffectsPreview:
    """Preview effects; ``epsilon`` is the amount that a central poll would spend on them."""
    poll = store.polls.known(name)
    _check(poll, by)
    if poll.distributed:
        voters = sum(day.participants for day in store.submissions.by_day(name))
        _check_enough(poll, voters)
        return PollEffectsPreview(name, voters, NOTHING, None, by, None)
    asked = _asked(store, poll, by, epsilon, None)[1]
    half_width = float(asked.expected_half_widths.max())
    return PollEffectsPreview(
        name, asked.guarantee.voters, asked.charge.epsilon, _remaining(store, poll), by, half_width
    )


def make_effects(
    store: Store,
    name: str,
    today: date,
    by: str | None = None,
    epsilon: Epsilon | None = None,
    tell: CountCallback | None = None,
    spent_before: Amount | None = None,
) -> StoredEffects:
    """Make effects and store them; a central poll spends ``epsilon`` of its budget, before noise is drawn.

    ``by`` is the id of a question about voters; the rest is as for ``make_release``.
    """
    poll = store.polls.known(name)
    _check(poll, by)
    if poll.distributed:
        _check_free(poll, epsilon)
        return store.effects.put(name, _effects_from_reports(store, poll, by, tell), today)
    ballots, asked = _asked(store, poll, by, epsilon, tell)
    ledger = store.releases.ledger(name, today, spent_before)
    return store.effects.put(name, charged_effects(ballots, asked, ledger), today)


def _check(poll: HostedPoll, by: str | None) -> None:
    known = [question.id for question in grouping_questions(poll)]
    if by is not None and by not in known:
        raise CrowdveilError(
            f"poll {poll.name} has no question {by!r} that makes groups: those that do are {', '.join(known) or 'none'}"
        )
    reason = why_not(poll, grouped=by is not None)
    if reason is not None:
        raise CrowdveilError(reason)


def _counted(poll: HostedPoll) -> bool:
    """Return whether effects are counted directly from the reports, which then name their dilemmas."""
    return effects_counted(poll.mechanism, poll.study)


def _asked(
    store: Store, poll: HostedPoll, by: str | None, epsilon: Epsilon | None, tell: CountCallback | None
) -> tuple[Any, EffectsPreview]:
    spend = _spending(poll, epsilon)
    ballots = store.submissions.crowd(poll.name, tell)
    selection = poll.public_selection
    return ballots, preview_effects(
        ballots, poll.paradigm, epsilon=spend, by=by, one_record_each=True, public_selection=selection
    )


def _effects_from_reports(store: Store, poll: HostedPoll, by: str | None, tell: CountCallback | None) -> EffectsRelease:
    question = next((one for one in grouping_questions(poll) if one.id == by), None)

    def group(report: StoredReport) -> dict[str, str]:
        found = None if question is None else group_of(question, report.about)
        return {} if question is None or found is None else {question.id: found}

    def batches() -> Iterator[Sequence[tuple[Mapping[str, Any], Mapping[str, str]]]]:
        read = 0
        for reports in store.submissions.reports(poll.name):
            yield [(report.body, group(report)) for report in reports]
            read += len(reports)
            if tell is not None:
                tell(read)

    groups = None
    if question is not None:
        assert poll.about_epsilon is not None  # a distributed poll with questions has one
        groups = ReportedGroups(question.id, group_labels(question), poll.about_epsilon)
    if _counted(poll):
        return effects_from_reports(batches(), poll.terms, groups)
    return implied_from_reports(batches(), poll.paradigm, poll.terms, groups)
