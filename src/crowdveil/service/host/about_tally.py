"""What voters said of themselves, counted and corrected for the coin tosses of their devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from crowdveil.privacy.mechanisms.about_you import OptionShare, corrected_shares
from crowdveil.service.poll import HostedPoll


@dataclass(frozen=True)
class QuestionTally:
    """An about-you question: who answered, and what share of them holds each option."""

    question: str
    answered: int
    options: tuple[tuple[str, OptionShare], ...]

    @property
    def told(self) -> bool:
        """Whether the answers tell anything: some option's interval is narrower than the whole range."""
        return any(share.high - share.low < 1 for _, share in self.options)


def about_tallies(poll: HostedPoll, counted: Iterable[tuple[Mapping[str, str], int]]) -> tuple[QuestionTally, ...]:
    """Tally a poll's about-you questions, given each combination of answers and how often it came.

    In a distributed poll the answers came through randomised response, and shares are corrected for it.
    """
    combinations = list(counted)
    found = []
    for question in poll.questions:
        reported = {option.id: 0 for option in question.options}
        for about, times in combinations:
            if question.id in about:
                reported[about[question.id]] += times
        shares = corrected_shares(list(reported.values()), poll.about_epsilon)
        words = [next(iter(option.text.values())) for option in question.options]
        found.append(
            QuestionTally(
                next(iter(question.text.values())), sum(reported.values()), tuple(zip(words, shares, strict=True))
            )
        )
    return tuple(found)
