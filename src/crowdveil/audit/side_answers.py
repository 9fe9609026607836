"""Answers beside the sides chosen, on trial: "neither", and the second answer to a dilemma that is asked twice.

They leave as a bit in place of a report, as one answer among three, or as the noisy count or share of a crowd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.audit.attack import Rows, Score
from crowdveil.audit.trial import Point
from crowdveil.ballots.ballots import Ballots
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.randomised_response import RandomisedResponse, ThreeWayResponse
from crowdveil.privacy.mechanisms.reliability import alike_bits, answered_alike, distributed_reliability
from crowdveil.privacy.mechanisms.shares import indifference_bits, indifferent_by_voter, noisy_totals
from crowdveil.privacy.mechanisms.side_bits import WithSideBits
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study


@dataclass(frozen=True)
class SideAnswerPromise:
    """Two ballots of one voter that differ in such an answer."""

    name: str
    paradigm: str
    remark: str
    neighbours: str
    settings: Settings
    epsilon: Epsilon
    noise: Noise
    ballot: Callable[[Study, bool], Ballots]
    """The one ballot, or the other."""
    report: Callable[[Ballots, SideAnswerPromise, int], Rows]
    """What leaves of a ballot, so many times."""

    reach = None

    @property
    def promised(self) -> Sequence[Point]:
        """The epsilon."""
        return [Point(self.epsilon.value)]

    def sample(self, left: bool, draws: int) -> Rows:
        """Report again and again."""
        return self.report(self.ballot(self.settings.study, left), self, draws)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the size of what leaves: the larger, the more it speaks for the one. Single answers are learned."""
        return [lambda rows: rows[:, 0].astype(np.float64)]

    def noise_p_value(self, rows: Rows) -> None:
        """Return None: the laws of coins and noise are tested elsewhere."""

    def same_release(self) -> bool:
        """Return True: the rows are all that leaves."""
        return True


def neither_or_a_side(study: Study, neither: bool) -> Ballots:
    """Return a ballot of which all answers are neither, or one side."""
    records = study.drawing.dilemmas
    choices = np.full(records, 0 if neither else 1, np.int8)
    return Ballots(study, np.array([0, records]), _shown(study), choices)


def alike_or_not(study: Study, alike: bool) -> Ballots:
    """Return a ballot whose voter answered alike, or did not."""
    records = study.drawing.dilemmas
    told = np.array([1 if alike else -1], np.int8)
    return Ballots(study, np.array([0, records]), _shown(study), np.ones(records, np.int8), alike=told)


def _shown(study: Study) -> FloatArray:
    return np.random.default_rng(0).normal(0.0, 1.0, (study.drawing.dilemmas, study.dimension))


def indifference_bit(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Say whether neither side was chosen in one of the records."""
    epsilons = Epsilons.same(promise.epsilon, draws)
    return indifference_bits(_copies(ballots, draws), epsilons, promise.noise).reshape(-1, 1)


def answer_among_three(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Report one of three answers."""
    one = Ballots(ballots.study, np.array([0, 1]), ballots.dilemmas[:1], ballots.choices[:1])
    epsilons = Epsilons.same(promise.epsilon, draws)
    said = ThreeWayResponse().report(_copies(one, draws), promise.settings, epsilons, promise.noise).choices
    rows: Rows = np.asarray(said, np.int64)
    return rows.reshape(-1, 1)


def indifferent_share(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Release the share of a crowd whose others are decided, in steps."""
    total = int(indifferent_by_voter(ballots)[0])
    return noisy_totals(total, promise.epsilon, promise.noise, draws).reshape(-1, 1)


def alike_bit(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Say whether the voter answered alike."""
    return alike_bits(_copies(ballots, draws), Epsilons.same(promise.epsilon, draws), promise.noise).reshape(-1, 1)


def alike_count(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Release how many of a crowd answered alike, of which the others did not, in steps."""
    return noisy_totals(int(answered_alike(ballots)[0]), promise.epsilon, promise.noise, draws).reshape(-1, 1)


def report_on_a_repeat(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Report by randomised response, or say the bit: whether it is one, and which, is looked at."""
    return _side_rows(distributed_reliability(RandomisedResponse()), ballots, promise, draws)


def bit_where_answers_differ(ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    """Make a mistake on purpose: whoever did not answer alike says the bit more often."""
    rows = _side_rows(distributed_reliability(RandomisedResponse()), ballots, promise, draws)
    other = _side_rows(distributed_reliability(RandomisedResponse()), ballots, promise, draws)
    return np.where((rows[:, :1] == 0) & (answered_alike(ballots)[0] == 0), other, rows)


def _side_rows(mechanism: WithSideBits, ballots: Ballots, promise: SideAnswerPromise, draws: int) -> Rows:
    epsilons = Epsilons.same(promise.epsilon, draws)
    made = mechanism.report(_copies(ballots, draws), promise.settings, epsilons, promise.noise)
    rows: Rows = np.column_stack([made.bits != 0, made.bits]).astype(np.int64)
    return rows


def _copies(ballots: Ballots, draws: int) -> Ballots:
    return ballots.take(np.zeros(draws, np.int64))
