"""plan(study, paradigm, ...): foretell a release, or find the number that it needs to be good enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from crowdveil.arguments import check_whole
from crowdveil.errors import CrowdveilError, OutOfReach
from crowdveil.privacy.epsilon import Epsilon, EpsilonLike
from crowdveil.privacy.guarantee import Paradigm
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.privacy.planning.forecast import AGREEMENT, Forecast, forecast
from crowdveil.study.bundled import find_study
from crowdveil.study.study import Study

TYPICAL = 0.5
"""The typical dilemma is decided where half of the study's dilemmas are."""
_MOST_VOTERS = 10**8
_MOST_ANSWERS = 1000
_LARGEST_EPSILON = 20.0
_SMALLEST_EPSILON = 0.001


@dataclass(frozen=True)
class Goal:
    """When a release is good enough: all that is asked for holds."""

    predicted: float | None = None
    bar: float | None = None
    decided: float | None = None

    @property
    def given(self) -> bool:
        """Whether anything is asked for."""
        return (self.predicted, self.bar, self.decided) != (None, None, None)

    def check(self, agreement: float) -> None:
        """Refuse what no release could reach."""
        if self.predicted is not None and not 0.5 < self.predicted < agreement:
            raise CrowdveilError(
                f"the share predicted must be between 0.5 and the agreement {agreement:g}, got {self.predicted:g}"
            )
        if self.bar is not None and not 0 < self.bar < math.inf:
            raise CrowdveilError(f"the widest bar allowed must be a positive number, got {self.bar:g}")
        if self.decided is not None and not 0 < self.decided < 1:
            raise CrowdveilError(f"the share of dilemmas decided must be between 0 and 1, got {self.decided:g}")

    def reached(self, foretold: Forecast) -> bool:
        """Whether a release would do."""
        return (
            (self.predicted is None or foretold.predicted >= self.predicted)
            and (self.bar is None or foretold.widest <= self.bar)
            and (self.decided is None or foretold.decided >= self.decided)
        )


def plan(
    study: str | Study,
    paradigm: str | Paradigm,
    *,
    voters: int | None = None,
    answers: int | None = None,
    epsilon: EpsilonLike | None = None,
    agreement: float = AGREEMENT,
    certainty: float = 0.9,
    predicted: float | None = None,
    bar: float | None = None,
    decided: float | None = None,
) -> Forecast:
    """Foretell a release by the recommended mechanism, before there is any data.

    Leave out ``voters`` or ``epsilon``, and the smallest that reaches the goal is found; with both of them and a goal,
    the number of ``answers`` of each voter is (otherwise it is the study's number of dilemmas). The goal is a share of
    people's answers ``predicted``, the widest ``bar`` of a factor, or a share of the study's dilemmas ``decided`` with
    the ``certainty``; half of them, if nothing is said. ``agreement`` is the share of answers that the crowd's
    preference would predict if it were known exactly.
    """
    about = find_study(study)
    served = find_paradigm(paradigm)
    goal = Goal(predicted, bar, decided)
    _check(voters, answers, agreement, certainty)
    goal.check(agreement)
    if voters is None and epsilon is None:
        raise CrowdveilError("give the voters, or epsilon, or both: of the two, one can be found")
    given_epsilon = None if epsilon is None else Epsilon(epsilon)
    asked = about.drawing.dilemmas if answers is None else answers

    def foretell(voters: int, answers: int, epsilon: Epsilon) -> Forecast:
        return forecast(about, served, voters, answers, epsilon, agreement, certainty)

    wanted = goal if goal.given else Goal(decided=TYPICAL)
    if voters is None:
        assert given_epsilon is not None
        found = given_epsilon
        return _least("voters", lambda n: foretell(n, asked, found), 2, _MOST_VOTERS, wanted)
    if given_epsilon is None:
        return _least_epsilon(lambda e: foretell(voters, asked, e), wanted)
    if not goal.given:
        return foretell(voters, asked, given_epsilon)
    if answers is not None:
        raise CrowdveilError("voters, answers, epsilon and a goal are all given: leave one out, and it is found")
    return _least("answers", lambda n: foretell(voters, n, given_epsilon), 1, _MOST_ANSWERS, goal)


def _check(voters: int | None, answers: int | None, agreement: float, certainty: float) -> None:
    if voters is not None:
        check_whole(voters, "the number of voters", 2)
    if answers is not None:
        check_whole(answers, "the number of answers", 1)
    if not 0.5 < agreement < 1:
        raise CrowdveilError(f"the agreement must be between 0.5 and 1, got {agreement:g}")
    if not 0.5 <= certainty < 1:
        raise CrowdveilError(f"the certainty asked for must be at least 0.5 and below 1, got {certainty:g}")


def _least_epsilon(foretell: Callable[[Epsilon], Forecast], goal: Goal) -> Forecast:
    """Look for the smallest epsilon among those of two digits."""
    ladder = [
        Epsilon(f"{digits}e{power}")
        for power in range(-4, 1)
        for digits in range(10, 100)
        if _SMALLEST_EPSILON <= digits * 10.0**power <= _LARGEST_EPSILON
    ]
    return _least("epsilon", lambda place: foretell(ladder[place]), 0, len(ladder) - 1, goal)


def _least(name: str, foretell: Callable[[int], Forecast], low: int, high: int, goal: Goal) -> Forecast:
    """Find the least number that reaches the goal.

    Climb by thirds, then halve the last interval: a release with more of anything is better, but for small steps back
    where a mechanism begins to look at more.
    """
    failed = low - 1
    number = low
    while not goal.reached(best := foretell(number)):
        if number == high:
            raise OutOfReach(
                f"no {name} up to {_shown(name, best)} reaches it: then {best.predicted:.1%} are predicted, "
                f"{best.decided:.0%} decided, and the widest bar is {best.widest:.2g}; ask for less, or give more"
            )
        failed, number = number, min(number + max(number // 3, 1), high)
    while number - failed > 1:
        middle = (number + failed) // 2
        if goal.reached(tried := foretell(middle)):
            best, number = tried, middle
        else:
            failed = middle
    return best


def _shown(name: str, foretold: Forecast) -> str:
    return f"{getattr(foretold, name):,g}"
