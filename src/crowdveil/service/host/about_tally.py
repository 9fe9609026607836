"""What voters said of themselves, counted and corrected for the coin tosses of their devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.about_you import MeanAnswer, OptionShare, corrected_mean, corrected_shares
from crowdveil.protocol.questions import Answer, Question, QuestionKind, host_words
from crowdveil.service.poll import HostedPoll

MOST_ROWS = 25
"""A number with more ranges is told by its mean alone."""

Counted = list[tuple[Mapping[str, Answer], int]]


@dataclass(frozen=True)
class QuestionTally:
    """An about-you question: who answered, and what share of them holds each option."""

    question: str
    answered: int
    options: tuple[tuple[str, OptionShare], ...]
    mean: MeanAnswer | None = None
    """Of a number or a scale."""
    words: bool = False
    """Whether it was answered in free text."""

    @property
    def told(self) -> bool:
        """Whether the answers tell anything: some option's interval is narrower than the whole range."""
        return any(share.high - share.low < 1 for _, share in self.options)


@dataclass(frozen=True)
class AttentionTally:
    """How many voters passed all attention checks of a central poll."""

    checks: int
    passed: int
    voters: int
    left_out: bool


def about_tallies(poll: HostedPoll, counted: Iterable[tuple[Mapping[str, Answer], int]]) -> tuple[QuestionTally, ...]:
    """Tally a poll's about-you questions, given each combination of answers and how often it came.

    In a distributed poll the answers came through randomised response, and shares are corrected for it.
    """
    combinations = list(counted)
    return tuple(_tally(question, combinations, poll.about_epsilon) for question in poll.sent_questions)


def attention_tally(poll: HostedPoll, counted: Iterable[tuple[Mapping[str, Answer], int]]) -> AttentionTally | None:
    """Count who passed the attention checks; None where there are none or the devices judged them."""
    if poll.attention is None or poll.distributed:
        return None
    combinations = list(counted)
    passed = sum(times for about, times in combinations if not poll.failed_checks(about))
    return AttentionTally(
        poll.attention.checks, passed, sum(times for _, times in combinations), poll.attention.left_out
    )


def _tally(question: Question, combinations: Counted, epsilon: Epsilon | None) -> QuestionTally:
    said = [(about[question.id], times) for about, times in combinations if question.id in about]
    title, answered = host_words(question.text), sum(times for _, times in said)
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
        mean, names = None, [host_words(option.text) for option in question.options]
    return QuestionTally(title, answered, tuple(zip(names, corrected_shares(reported, epsilon), strict=True)), mean)


def _several(
    question: Question, said: list[tuple[Answer, int]], epsilon: Epsilon | None
) -> tuple[tuple[str, OptionShare], ...]:
    """Return the share of each option by itself; of a noisy answer, among those who were asked about it by chance."""
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
