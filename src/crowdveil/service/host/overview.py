"""A host's view of a poll: its state, who took part, and how good the reports are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date

from markupsafe import Markup
from starlette.responses import Response

from crowdveil.pages.plain_words import paradigm_title, protected_words, trusted_words
from crowdveil.privacy.amount import NOTHING, Amount
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.protocol.description import relayed_promise
from crowdveil.protocol.polls import Level, State
from crowdveil.service.host.about_tally import about_tallies, attention_tally
from crowdveil.service.host.chart import Day, participation_chart, without_gaps
from crowdveil.service.host.request import HostRequest
from crowdveil.service.poll import HostedPoll
from crowdveil.service.public.result import Result, read_result
from crowdveil.service.public.words import words_of
from crowdveil.service.store.polls import PollStatus
from crowdveil.service.store.steps import OPENED, STARTED
from crowdveil.service.store.submissions import DayCount
from crowdveil.study.translations import OWN_LANGUAGE

STATE_WORDS = {
    State.OPEN: "open",
    State.CLOSED: "closed",
    State.NOT_OPEN_YET: "not open yet",
    State.FULL: "full",
}

REASONS = {
    "malformed": "not a report at all: another program, or a broken one",
    "wrong-study": "made for another study, or an old copy of the page",
    "wrong-mechanism": "made by another mechanism than the poll's",
    "wrong-epsilon": "with an epsilon that the poll does not offer",
    "wrong-size": "with more or fewer numbers than a report of this study has",
    "out-of-range": "with numbers that no honest device draws: somebody tried to count for more than one",
    "wrong-place": "exact answers where noisy reports belong, or the other way round",
    "wrong-about": "with an answer to an about-you question that was not offered",
    "different-report": "a second, different vote with the same token",
    "unknown-ballot": "without a link of this poll",
    "withdrawn": "with a token that was withdrawn",
    "closed": "after the poll had closed",
    "not-open-yet": "before the poll opened",
    "full": "after the quota was reached",
    "too-large": "longer than any report is",
    "missing-ballot": "without a ballot token",
    "bad-ballot": "with something that is no ballot token",
    "unreadable": "sealed to another key, or for other terms than the poll's",
    "replayed": "sealed reports that had been taken before",
    "too-many-requests": "too often from one place",
}


@dataclass(frozen=True)
class LevelShare:
    """How many voters chose a level of privacy."""

    level: Level
    voters: int
    share: float


@dataclass(frozen=True)
class Refusal:
    """How often something was refused, and what that means."""

    reason: str
    meaning: str
    times: int


@dataclass(frozen=True)
class FunnelStep:
    """How many came so far."""

    words: str
    people: int
    share: float
    """Of those who opened the page, or of whoever is most."""


@dataclass(frozen=True)
class Live:
    """The numbers that change while voters take part."""

    status: PollStatus
    state: str
    days: tuple[Day, ...]
    chart: Markup
    levels: tuple[LevelShare, ...]
    refusals: tuple[Refusal, ...]
    funnel: tuple[FunnelStep, ...]
    """Empty where nothing is counted: in a poll with a relay."""

    @property
    def remaining(self) -> Amount:
        """The rest of a central poll's budget."""
        budget = self.status.poll.budget
        return NOTHING if budget is None else Amount.of(str(budget)) - self.status.spent

    @property
    def refused(self) -> int:
        """How many were refused altogether."""
        return sum(refusal.times for refusal in self.refusals)


def live(request: HostRequest, status: PollStatus) -> Live:
    """Gather what changes."""
    poll = status.poll
    participation = request.store.submissions
    counted = participation.by_day(poll.name)
    days = without_gaps(_days(poll, counted))
    refused: Counter[str] = Counter()
    for refusal in participation.refusals(poll.name):
        refused[refusal.reason] += refusal.times
    return Live(
        status=status,
        state=_state(request, status),
        days=tuple(days),
        chart=participation_chart(days, [level.name for level in poll.levels]),
        levels=_levels(poll, counted),
        funnel=_funnel(request, status),
        refusals=tuple(Refusal(r, REASONS.get(r, "for another reason"), n) for r, n in refused.most_common()),
    )


def polls_page(request: HostRequest) -> Response:
    """List the polls."""
    polls = [(one, _state(request, one)) for one in request.store.polls.all()]
    has_password = request.store.hosts.has_password(str(request.host))
    return request.show("polls.html", polls=polls, has_password=has_password, protected_words=protected_words)


def poll_page(request: HostRequest) -> Response:
    """Show one poll."""
    status = request.poll_status()
    paradigm = status.poll.paradigm
    said = request.store.submissions.about_counts(status.poll.name)
    return request.show(
        "poll.html",
        status=status,
        poll=status.poll,
        tab="overview",
        pilots=request.store.submissions.pilots(status.poll.name),
        live=live(request, status),
        result=_result(request, status),
        tallies=about_tallies(status.poll, said),
        attention=attention_tally(status.poll, said),
        account=request.store.releases.account(status.poll.name),
        batches=request.store.batches.sizes(status.poll.name),
        relayed=None if status.poll.relay is None else relayed_promise(status.poll),
        promise=(paradigm_title(paradigm), protected_words(paradigm), trusted_words(paradigm)),
    )


def _result(request: HostRequest, status: PollStatus) -> Result | None:
    """Return what the release that decisions use says, in words."""
    stored = None if status.current_release is None else request.store.releases.get(status.current_release)
    return None if stored is None else read_result(stored.read(), words_of(OWN_LANGUAGE))


def live_part(request: HostRequest) -> Response:
    """Show what changes, for the page to put in place of what it shows."""
    status = request.poll_status()
    return request.show("live.html", poll=status.poll, live=live(request, status))


def close_poll(request: HostRequest) -> Response:
    """Take no more answers."""
    name = request.poll_status().poll.name
    request.store.polls.close(name)
    return request.go(f"/polls/{name}")


def open_poll(request: HostRequest) -> Response:
    """Take answers again."""
    name = request.poll_status().poll.name
    request.store.polls.reopen(name)
    return request.go(f"/polls/{name}")


def _funnel(request: HostRequest, status: PollStatus) -> tuple[FunnelStep, ...]:
    if status.poll.relay is not None:
        return ()
    reached = request.store.steps.reached(status.poll.name, request.pages.today())
    counted = {
        "opened the page": reached[OPENED],
        "started the dilemmas": reached[STARTED],
        "sent their answers" if not status.poll.distributed else "sent a report": status.participants,
    }
    most = max(*counted.values(), 1)
    return tuple(FunnelStep(words, people, people / most) for words, people in counted.items())


def _state(request: HostRequest, status: PollStatus) -> str:
    if status.archived:
        return "archived"
    return "on trial" if status.pilot else STATE_WORDS[status.state(request.pages.today())]


def _days(poll: HostedPoll, counted: list[DayCount]) -> list[Day]:
    by_day: dict[date, Counter[Epsilon | None]] = {}
    for one in counted:
        by_day.setdefault(one.day, Counter())[one.epsilon] += one.participants
    levels = [level.epsilon if poll.distributed else None for level in poll.levels]
    return [Day(day, tuple(by_day[day][level] for level in levels)) for day in sorted(by_day)]


def _levels(poll: HostedPoll, counted: list[DayCount]) -> tuple[LevelShare, ...]:
    if not poll.distributed:
        return ()
    chosen: Counter[Epsilon | None] = Counter()
    for one in counted:
        chosen[one.epsilon] += one.participants
    everybody = max(chosen.total(), 1)
    return tuple(LevelShare(level, chosen[level.epsilon], chosen[level.epsilon] / everybody) for level in poll.levels)
