"""Effects of a poll, for everybody or by a question about voters: look first at the cost, then make them.

Central polls are charged before noise is drawn. In distributed polls they are read from the reports, and cost nothing:
from choices after coin tosses by counting, from bits and scores by the preference that they tell. What voters said of
themselves is exact in central polls; elsewhere it came through randomised response, and groups are corrected for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from crowdveil.effect_release import EffectsRelease
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import NOTHING, Amount, Epsilon
from crowdveil.privacy.mechanisms.randomised_response import RandomisedResponse
from crowdveil.publish.effects import charged_effects
from crowdveil.publish.effects_request import EffectsPreview, preview_effects
from crowdveil.publish.gather import ReportedGroups, check_implied, effects_from_reports, implied_from_reports
from crowdveil.publish.request import FEWEST_VOTERS
from crowdveil.service.groupings import group_labels, group_of, grouping_questions
from crowdveil.service.poll import HostedPoll
from crowdveil.service.poll_release import Tell
from crowdveil.service.store.effects import StoredEffects
from crowdveil.service.store.store import Store
from crowdveil.service.store.submissions import StoredReport


@dataclass(frozen=True)
class PollEffectsPreview:
    """The cost of effects, and how far they may be off. Nothing is spent, and nothing here came from a record."""

    poll: str
    by: str | None
    voters: int
    cost: Amount
    """Nothing for a distributed poll."""
    remaining: Amount | None
    """The rest of a central poll's budget before them."""
    half_width: float | None
    """How far the least certain effect may be off with 95 %, in each group if all are as large; None: not known yet."""

    @property
    def affordable(self) -> bool:
        """Whether the budget covers them."""
        return self.remaining is None or self.cost <= self.remaining


def why_not(poll: HostedPoll, *, grouped: bool) -> str | None:
    """Say why a poll's reports tell no effects, or none of groups; None if they do."""
    if grouped and not grouping_questions(poll):
        return "no question about voters has one answer of a few that are public"
    if not poll.distributed or _counted(poll):
        return None
    try:
        check_implied(poll.terms, grouped=grouped)
    except CrowdveilError as error:
        return str(error)
    return None


def preview_poll_effects(store: Store, name: str, by: str | None, epsilon: Epsilon | None) -> PollEffectsPreview:
    """Preview effects; ``epsilon`` is what a central poll would spend on them."""
    poll = store.polls.known(name)
    _check(poll, by)
    if poll.distributed:
        voters = sum(day.participants for day in store.submissions.by_day(name))
        if voters < FEWEST_VOTERS:
            raise CrowdveilError(f"effects need at least {FEWEST_VOTERS} voters, and poll {name} has {voters}")
        return PollEffectsPreview(name, by, voters, NOTHING, None, None)
    asked = _asked(store, poll, by, epsilon, None)[1]
    account = store.releases.account(name)
    return PollEffectsPreview(
        name,
        by,
        asked.guarantee.voters,
        asked.charge.epsilon,
        None if account is None else account.remaining,
        float(asked.expected_half_widths.max()),
    )


def make_effects(
    store: Store,
    name: str,
    today: date,
    by: str | None = None,
    epsilon: Epsilon | None = None,
    tell: Tell | None = None,
) -> StoredEffects:
    """Make effects and store them; a central poll spends ``epsilon`` of its budget, before noise is drawn.

    ``by`` is the id of a question about voters; ``tell`` hears how many voters have been read.
    """
    poll = store.polls.known(name)
    _check(poll, by)
    if poll.distributed:
        if epsilon is not None:
            raise CrowdveilError(f"poll {name} is distributed: its voters chose their epsilons, and effects spend none")
        return store.effects.put(name, _from_reports(store, poll, by, tell), today)
    ballots, asked = _asked(store, poll, by, epsilon, tell)
    return store.effects.put(name, charged_effects(ballots, asked, store.releases.ledger(name, today)), today)


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
    """Whether effects are counted in the reports themselves, which then name their dilemmas."""
    return poll.mechanism == RandomisedResponse.name and poll.study.indifference is None


def _asked(
    store: Store, poll: HostedPoll, by: str | None, epsilon: Epsilon | None, tell: Tell | None
) -> tuple[Any, EffectsPreview]:
    if epsilon is None:
        raise CrowdveilError(f"say how much of the budget of poll {poll.name} the effects may spend: an epsilon")
    ballots = store.submissions.crowd(poll.name, tell)
    selection = poll.public_selection
    return ballots, preview_effects(
        ballots, poll.paradigm, epsilon=epsilon, by=by, one_record_each=True, public_selection=selection
    )


def _from_reports(store: Store, poll: HostedPoll, by: str | None, tell: Tell | None) -> EffectsRelease:
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
