"""What a host sees of a poll: its state, who took part, and how good the reports are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date

from markupsafe import Markup
from starlette.responses import Response

from crowdveil.pages.plain_words import paradigm_title, protected_words, trusted_words
from crowdveil.service.host.chart import Day, participation_chart, without_gaps
from crowdveil.service.host.visit import Visit
from crowdveil.service.poll import Poll, State
from crowdveil.service.store.participation import DayCount
from crowdveil.service.store.polls import Standing

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
    "too-many-requests": "too often from one place",
}


@dataclass(frozen=True)
class LevelShare:
    """How many voters chose a level of privacy."""

    name: str
    epsilon_micro: int
    voters: int
    share: float


@dataclass(frozen=True)
class Refusal:
    """How often something was refused, and what that means."""

    reason: str
    meaning: str
    times: int


@dataclass(frozen=True)
class Live:
    """What changes while voters take part."""

    standing: Standing
    state: str
    days: tuple[Day, ...]
    chart: Markup
    levels: tuple[LevelShare, ...]
    refusals: tuple[Refusal, ...]

    @property
    def refused(self) -> int:
        """How many were refused altogether."""
        return sum(refusal.times for refusal in self.refusals)


def live(visit: Visit, standing: Standing) -> Live:
    """Gather what changes."""
    poll, participation = standing.poll, visit.store.participation
    counted = participation.by_day(poll.name)
    days = without_gaps(_days(poll, counted))
    refused: Counter[str] = Counter()
    for refusal in participation.refusals(poll.name):
        refused[refusal.reason] += refusal.times
    return Live(
        standing=standing,
        state=STATE_WORDS[standing.state(visit.desk.today())],
        days=tuple(days),
        chart=participation_chart(days, [level.name for level in poll.levels]),
        levels=_levels(poll, counted),
        refusals=tuple(Refusal(r, REASONS.get(r, "for another reason"), n) for r, n in refused.most_common()),
    )


def polls_page(visit: Visit) -> Response:
    """List the polls."""
    polls = [(one, STATE_WORDS[one.state(visit.desk.today())]) for one in visit.store.polls.all()]
    has_password = visit.store.hosts.has_password(str(visit.host))
    return visit.show("polls.html", polls=polls, has_password=has_password, protected_words=protected_words)


def poll_page(visit: Visit) -> Response:
    """Show one poll."""
    standing = visit.standing()
    paradigm = standing.poll.paradigm
    return visit.show(
        "poll.html",
        standing=standing,
        poll=standing.poll,
        tab="overview",
        live=live(visit, standing),
        account=visit.store.releases.account(standing.poll.name),
        promise=(paradigm_title(paradigm), protected_words(paradigm), trusted_words(paradigm)),
    )


def live_part(visit: Visit) -> Response:
    """Show what changes, for the page to put in place of what it shows."""
    standing = visit.standing()
    return visit.show("live.html", poll=standing.poll, live=live(visit, standing))


def close_poll(visit: Visit) -> Response:
    """Take no more answers."""
    name = visit.standing().poll.name
    visit.store.polls.close(name)
    return visit.go(f"/polls/{name}")


def open_poll(visit: Visit) -> Response:
    """Take answers again."""
    name = visit.standing().poll.name
    visit.store.polls.reopen(name)
    return visit.go(f"/polls/{name}")


def _days(poll: Poll, counted: list[DayCount]) -> list[Day]:
    by_day: dict[date, Counter[int | None]] = {}
    for one in counted:
        by_day.setdefault(one.day, Counter())[one.epsilon_micro] += one.participants
    levels = [level.epsilon.micro if poll.distributed else None for level in poll.levels]
    return [Day(day, tuple(by_day[day][level] for level in levels)) for day in sorted(by_day)]


def _levels(poll: Poll, counted: list[DayCount]) -> tuple[LevelShare, ...]:
    if not poll.distributed:
        return ()
    chosen: Counter[int | None] = Counter()
    for one in counted:
        chosen[one.epsilon_micro] += one.participants
    everybody = max(chosen.total(), 1)
    return tuple(
        LevelShare(
            level.name, level.epsilon.micro, chosen[level.epsilon.micro], chosen[level.epsilon.micro] / everybody
        )
        for level in poll.levels
    )
