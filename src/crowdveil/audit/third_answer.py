"""The third answer on trial: the bit about indifference, an answer among three, and the noisy share of a crowd."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from crowdveil.audit.attack import Rows, Score
from crowdveil.audit.trial import Point
from crowdveil.ballots import Ballots
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.shares import STEPS, indifference_bits, indifferent_by_voter, noisy_share
from crowdveil.privacy.mechanisms.three_way_response import ThreeWayResponse
from crowdveil.privacy.noise.source import Noise

_OTHERS = 2


@dataclass(frozen=True)
class ThirdAnswerPromise:
    """Two ballots of one voter, of which the one has "neither" where the other has a side."""

    name: str
    paradigm: str
    remark: str
    settings: Settings
    epsilon: Epsilon
    noise: Noise
    report: Callable[[Ballots, ThirdAnswerPromise, int], Rows]
    """What leaves of a ballot, so many times."""

    neighbours = "neither against a side: nothing is further apart"
    reach = None

    @property
    def promised(self) -> Sequence[Point]:
        """The epsilon."""
        return [Point(self.epsilon.value)]

    def sample(self, left: bool, draws: int) -> Rows:
        """Report again and again."""
        study = self.settings.study
        records = study.drawing.dilemmas
        shown = np.random.default_rng(0).normal(0.0, 1.0, (records, study.dimension))
        choices = np.full(records, 0 if left else 1, np.int8)
        return self.report(Ballots(study, np.array([0, records]), shown, choices), self, draws)

    def scores(self, train: tuple[Rows, Rows]) -> Sequence[Score]:
        """Return the size of what leaves: the larger, the more indifferent. Single answers are learned besides."""
        return [lambda rows: rows[:, 0].astype(np.float64)]

    def noise_p_value(self, rows: Rows) -> None:
        """Return None: the laws of coins and noise are tested elsewhere."""

    def same_release(self) -> bool:
        """Return True: the rows are all that leaves."""
        return True


def bit(ballots: Ballots, promise: ThirdAnswerPromise, draws: int) -> Rows:
    """Say whether neither side was chosen in one of the records."""
    copies = ballots.take(np.zeros(draws, np.int64))
    return indifference_bits(copies, Epsilons.same(promise.epsilon, draws), promise.noise).reshape(-1, 1)


def answer(ballots: Ballots, promise: ThirdAnswerPromise, draws: int) -> Rows:
    """Report one of three answers."""
    one = Ballots(ballots.study, np.array([0, 1]), ballots.dilemmas[:1], ballots.choices[:1])
    copies = one.take(np.zeros(draws, np.int64))
    epsilons = Epsilons.same(promise.epsilon, draws)
    said = ThreeWayResponse().report(copies, promise.settings, epsilons, promise.noise).choices
    rows: Rows = np.asarray(said, np.int64)
    return rows.reshape(-1, 1)


def share(ballots: Ballots, promise: ThirdAnswerPromise, draws: int) -> Rows:
    """Release the share of a crowd of three, whose others are decided, in steps."""
    voters = 1 + _OTHERS
    total = int(indifferent_by_voter(ballots)[0])
    released = [noisy_share(total, voters, voters, promise.epsilon, promise.noise).value for _ in range(draws)]
    steps: Rows = np.rint(np.array(released) * (STEPS * voters)).astype(np.int64)
    return steps.reshape(-1, 1)
