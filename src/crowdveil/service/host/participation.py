"""Participation in a poll, in numbers and a picture: by day, by level of privacy, what was refused, who took part.

Voters' answers about themselves are counted, and corrected for the coin tosses of their devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate

from markupsafe import Markup

from crowdveil.errors import plural
from crowdveil.privacy.epsilon import NOTHING, Amount, Epsilon
from crowdveil.privacy.mechanisms.about_you import MeanAnswer, OptionShare, corrected_mean, corrected_shares
from crowdveil.protocol.polls import Level, PollState
from crowdveil.protocol.questions import Answer, Question, QuestionKind, host_words
from crowdveil.protocol.submission import VoterStep
from crowdveil.service.host.request import HostRequest
from crowdveil.service.poll import HostedPoll
from crowdveil.service.store.polls import OPENED, STARTED, PollStatus
from crowdveil.service.store.submissions import DayCount

STATE_WORDS = {
    PollState.OPEN: "open",
    PollState.CLOSED: "closed",
    PollState.NOT_OPEN_YET: "not open yet",
    PollState.FULL: "full",
}

REASONS = {
    "malformed": "not a report at all: another program, or a broken one",
    "wrong-study": "made for another study, or an old copy of the page",
    "wrong-mechanism": "made by a mechanism other than the poll's",
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
    "bad-ballot": "with something that is not a ballot token",
    "unreadable": "sealed to another key, or for other terms than the poll's",
    "replayed": "sealed reports that had been stored before",
    "too-many-requests": "too often from one place",
}

MOST_DAYS = 60
WIDTHS = {"wide": 640.0, "narrow": 320.0}
"""Widths of the picture. The narrow one is for phones: its letters are as large as those of the wide one."""
HEIGHT = 200.0
LEFT, RIGHT, TOP, BOTTOM = 44.0, 4.0, 12.0, 26.0
LABEL_WIDTH = 56.0
MOST_ROWS = 25
"""Maximum number of rows: for a number with more ranges, only the mean is shown."""

CountedAnswers = list[tuple[Mapping[str, Answer], int]]


@dataclass(frozen=True)
class Day:
    """The number of participants on a day, at each level in order."""

    day: date
    counts: tuple[int, ...]

    @property
    def total(self) -> int:
        """The sum over all levels."""
        return sum(self.counts)


def without_gaps(days: Sequence[Day]) -> list[Day]:
    """Add the days on which nobody took part, and keep only the latest ``MOST_DAYS``."""
    if not days:
        return []
    counted = {one.day: one for one in days}
    nobody = (0,) * len(days[0].counts)
    length = min((days[-1].day - days[0].day).days + 1, MOST_DAYS)
    every = (days[-1].day - timedelta(days=back) for back in reversed(range(length)))
    return [counted.get(day, Day(day, nobody)) for day in every]


@dataclass(frozen=True)
class LevelShare:
    """The number and share of voters who chose a level of privacy."""

    level: Level
    voters: int
    share: float


@dataclass(frozen=True)
class RefusalRow:
    """The number of refusals for one reason, and its meaning."""

    reason: str
    meaning: str
    times: int


@dataclass(frozen=True)
class FunnelStep:
    """The number of people who reached a step."""

    words: str
    people: int
    """Includes people who reached a later step: programs vote without a page, and a count may be lost."""
    share: float
    """Share of the people who opened the page."""
    stopped: int
    """The number of people who reached the previous step but not this one."""


@dataclass(frozen=True)
class PollActivity:
    """The numbers that change while voters take part."""

    status: PollStatus
    state: str
    days: tuple[Day, ...]
    chart: Markup
    levels: tuple[LevelShare, ...]
    refusals: tuple[RefusalRow, ...]
    funnel: tuple[FunnelStep, ...]
    """The steps; empty for a poll with a relay, where they are not counted."""

    @property
    def remaining(self) -> Amount:
        """The rest of a central poll's budget."""
        budget = self.status.poll.budget
        return NOTHING if budget is None else Amount.of(str(budget)) - self.status.spent

    @property
    def refused(self) -> int:
        """The total number of refusals."""
        return sum(refusal.times for refusal in self.refusals)


def poll_activity(request: HostRequest, status: PollStatus) -> PollActivity:
    """Gather the numbers that change while voters take part."""
    poll = status.poll
    participation = request.store.submissions
    counted = participation.by_day(poll.name)
    days = without_gaps(_days(poll, counted))
    refused: Counter[str] = Counter()
    for refusal in participation.refusals(poll.name):
        refused[refusal.reason] += refusal.times
    return PollActivity(
        status=status,
        state=state_words(request, status),
        days=tuple(days),
        chart=participation_chart(days, [level.name for level in poll.levels]),
        levels=_levels(poll, counted),
        funnel=_funnel(request, status),
        refusals=tuple(RefusalRow(r, REASONS.get(r, "for another reason"), n) for r, n in refused.most_common()),
    )


def _funnel(request: HostRequest, status: PollStatus) -> tuple[FunnelStep, ...]:
    if status.poll.relay is not None:
        return ()
    reached = request.store.steps.reached(status.poll.name, request.pages.today())
    counted = {
        "opened the page": reached[OPENED],
        "started the dilemmas": reached[STARTED],
        "answered half of them": reached[VoterStep.HALF],
        "answered all of them": reached[VoterStep.ALL],
        "came to the last page": reached[VoterStep.REVIEW],
        "sent their answers" if not status.poll.distributed else "sent a report": status.participants,
    }
    people = list(accumulate(reversed(counted.values()), max))[::-1]
    most = max(people[0], 1)
    return tuple(
        FunnelStep(words, here, here / most, before - here)
        for words, here, before in zip(counted, people, [people[0], *people], strict=False)
    )


def state_words(request: HostRequest, status: PollStatus) -> str:
    """Return the state of a poll today, in words."""
    if status.archived:
        return "archived"
    state = status.state(request.pages.today())
    return "on trial" if status.pilot and state is PollState.OPEN else STATE_WORDS[state]


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


def participation_chart(days: Sequence[Day], levels: Sequence[str]) -> Markup:
    """Draw a bar for each day, with the levels stacked, for wide and for narrow screens.

    The table beside it shows the same numbers.
    """
    voters = sum(one.total for one in days)
    when = f"{voters:,} {plural(voters, 'voter')} on {len(days)} {plural(len(days), 'day')}"
    said = f"{when}, by level of privacy: {', '.join(levels)}"
    return Markup("").join(
        Markup(
            '<div class="{0}"><svg class="chart" viewBox="0 0 {1:g} {2:g}" role="img" aria-labelledby="chart-{0}">'
        ).format(name, width, HEIGHT)
        + Markup('<title id="chart-{}">{}</title>').format(name, said)
        + Markup(_drawn(days, width))
        + Markup("</svg></div>")
        for name, width in WIDTHS.items()
    )


def _drawn(days: Sequence[Day], width: float) -> str:
    highest = nice_ceiling(max((one.total for one in days), default=0))
    step = (width - LEFT - RIGHT) / max(len(days), 1)
    bar = min(step * 0.8, 48.0)
    parts = [_scale(highest, width)]
    for place, one in enumerate(days):
        x = LEFT + (place + 0.5) * step - bar / 2
        top = HEIGHT - BOTTOM
        for level, count in enumerate(one.counts):
            height = count / highest * (HEIGHT - TOP - BOTTOM)
            top -= height
            if count:
                shape = f'x="{x:.1f}" y="{top:.1f}" width="{bar:.1f}" height="{height:.1f}"'
                parts.append(f'<rect class="level-{level + 1}" {shape}/>')
    labels = labelled(len(days), most=int((width - LEFT - RIGHT) // LABEL_WIDTH))
    return "".join([*parts, *(_day_label(days[place].day, LEFT + (place + 0.5) * step) for place in labels)])


def nice_ceiling(largest: int) -> int:
    """Return the smallest of 4, 8, 10, 20, 40, 80, 100 ... that is at least a number: its quarters are easy to read.

    >>> [nice_ceiling(n) for n in (0, 4, 5, 11, 81, 801)]
    [4, 4, 8, 20, 100, 1000]
    """
    power = 1
    while True:
        for factor in (4, 8, 10, 20):
            if factor * power >= largest:
                return factor * power
        power *= 10


def labelled(days: int, most: int) -> list[int]:
    """Return the indices of the days with a label: the last, and others evenly spaced, at most ``most``.

    >>> labelled(3, 5), labelled(10, 4)
    ([0, 1, 2], [0, 3, 6, 9])
    """
    return list(range(days - 1, -1, -max(1, -(-days // most))))[::-1]


def _scale(highest: int, width: float) -> str:
    lines = []
    for quarter in (0, 2, 4):
        y = HEIGHT - BOTTOM - quarter / 4 * (HEIGHT - TOP - BOTTOM)
        lines.append(f'<line class="rule" x1="{LEFT:g}" x2="{width - RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<text class="end" x="{LEFT - 8:g}" y="{y + 4:.1f}">{highest * quarter // 4:,}</text>')
    return "".join(lines)


def _day_label(day: date, x: float) -> str:
    return f'<text class="middle" x="{x:.1f}" y="{HEIGHT - 6:g}">{day.day} {day:%b}</text>'


@dataclass(frozen=True)
class QuestionTally:
    """An about-you question: how many answered, and the share of each option."""

    question: str
    answered: int
    options: tuple[tuple[str, OptionShare], ...]
    mean: MeanAnswer | None = None
    """The mean of a number or a scale."""
    words: bool = False
    """Whether it was answered in free text."""

    @property
    def told(self) -> bool:
        """Whether the answers show anything: some option's interval is narrower than the whole range."""
        return any(share.high - share.low < 1 for _, share in self.options)


@dataclass(frozen=True)
class AttentionTally:
    """The number of voters who passed all attention checks of a central poll."""

    checks: int
    passed: int
    voters: int
    left_out: bool


def about_tallies(poll: HostedPoll, counted: Iterable[tuple[Mapping[str, Answer], int]]) -> tuple[QuestionTally, ...]:
    """Tally a poll's about-you questions, given each combination of answers and how often it occurs.

    In a distributed poll the answers went through randomised response, and shares are corrected for it.
    """
    combinations = list(counted)
    return tuple(_tally(question, combinations, poll.about_epsilon) for question in poll.sent_questions)


def attention_tally(poll: HostedPoll, counted: Iterable[tuple[Mapping[str, Answer], int]]) -> AttentionTally | None:
    """Count the voters who passed the attention checks; None if there are no checks or the devices judged them."""
    if poll.attention is None or poll.distributed:
        return None
    combinations = list(counted)
    passed = sum(times for about, times in combinations if not poll.failed_checks(about))
    return AttentionTally(
        poll.attention.checks, passed, sum(times for _, times in combinations), poll.attention.left_out
    )


def _tally(question: Question, combinations: CountedAnswers, epsilon: Epsilon | None) -> QuestionTally:
    said = [(about[question.id], times) for about, times in combinations if question.id in about]
    title = host_words(question.text)
    answered = sum(times for _, times in said)
    if question.kind is QuestionKind.TEXT:
        return QuestionTally(title, answered, (), words=True)
    if question.kind is QuestionKind.SEVERAL:
        return QuestionTally(title, answered, _several(question, said, epsilon))
    counts: Counter[object] = Counter()
    for answer, times in said:
        counts[answer] += times
    reported = [counts[level] for level in question.levels]
    if isinstance(question.levels, range):
        mean = corrected_mean(question.levels, reported, epsilon)
        names = [_range_words(question, level) for level in question.levels]
        if len(names) > MOST_ROWS:
            return QuestionTally(title, answered, (), mean)
    else:
        mean = None
        names = [host_words(option.text) for option in question.options]
    return QuestionTally(title, answered, tuple(zip(names, corrected_shares(reported, epsilon), strict=True)), mean)


def _several(
    question: Question, said: list[tuple[Answer, int]], epsilon: Epsilon | None
) -> tuple[tuple[str, OptionShare], ...]:
    """Return the share of each option; for noisy answers, among the voters whose device drew that option."""
    found = []
    for option in question.options:
        yes = sum(n for answer, n in said if isinstance(answer, list | dict) and _ticked(answer, option.id))
        asked = sum(n for answer, n in said if not isinstance(answer, dict) or option.id in answer)
        found.append((host_words(option.text), corrected_shares([yes, asked - yes], epsilon)[0]))
    return tuple(found)


def _ticked(answer: list[str] | dict[str, bool], option: str) -> bool:
    return answer.get(option, False) if isinstance(answer, dict) else option in answer


def _range_words(question: Question, level: int) -> str:
    words = question.range_words(level)
    if question.ends is None or level not in (question.low, question.high):
        return words
    return f"{words} ({host_words(question.ends[level == question.high])})"
