"""Plan a release or a poll: forecast it from public numbers, or find the least number that reaches a goal.

For a poll through a relay, find the local epsilon and the batches that keep a promise, and forecast their accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from crowdveil.errors import CrowdveilError, OutOfReach, check_certainty, check_whole, is_number, shown
from crowdveil.estimation.dilemmas import GENERATOR
from crowdveil.privacy.epsilon import Epsilon, EpsilonLike
from crowdveil.privacy.guarantee import Paradigm, paradigm
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED, RELAYED
from crowdveil.privacy.planning.forecast import AGREEMENT, Forecast, forecast
from crowdveil.privacy.shuffling import DEFAULT_DELTA, DEFAULT_HONEST, RelayedPromise
from crowdveil.sources.simulated import MOST_VOTERS
from crowdveil.study.bundled import find_study
from crowdveil.study.study import Study

TYPICAL = 0.5
"""Default share of the study's dilemmas to decide: half, so that the typical dilemma is decided."""
_MOST_VOTERS = 10**8
_MOST_RECORDS = 1000
_LARGEST_EPSILON = 20.0
_SMALLEST_EPSILON = 0.001


@dataclass(frozen=True)
class Goal:
    """The required quality of a release: all given conditions must hold."""

    predicted: float | None = None
    bar: float | None = None
    decided: float | None = None

    @property
    def given(self) -> bool:
        """Whether any condition is given."""
        return (self.predicted, self.bar, self.decided) != (None, None, None)

    def check(self, agreement: float) -> None:
        """Refuse what no release could reach."""
        if self.predicted is not None and not (is_number(self.predicted) and 0.5 < self.predicted < agreement):
            raise CrowdveilError(
                f"the share predicted must be between 0.5 and the agreement {agreement:g}, got {shown(self.predicted)}"
            )
        if self.bar is not None and not (is_number(self.bar) and 0 < self.bar < math.inf):
            raise CrowdveilError(f"the widest bar allowed must be a positive number, got {shown(self.bar)}")
        if self.decided is not None and not (is_number(self.decided) and 0 < self.decided < 1):
            raise CrowdveilError(f"the share of dilemmas decided must be between 0 and 1, got {shown(self.decided)}")

    def reached(self, foretold: Forecast) -> bool:
        """Whether a forecast meets the goal."""
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
    records: int | None = None,
    epsilon: EpsilonLike | None = None,
    agreement: float = AGREEMENT,
    certainty: float = 0.9,
    predicted: float | None = None,
    bar: float | None = None,
    decided: float | None = None,
    design: str | None = None,
) -> Forecast:
    """Forecast a release by the recommended mechanism, before there is any data.

    Leave out ``voters`` or ``epsilon``, and the smallest that reaches the goal is found; with both of them and a goal,
    the number of ``records`` of each voter is (otherwise it is the study's number of dilemmas). The goal is a share of
    people's choices ``predicted``, the widest ``bar`` of a factor, or a share of the study's dilemmas ``decided`` with
    the ``certainty``; half of them, if nothing is said. ``agreement`` is the share of choices that the crowd's
    preference would predict if it were known exactly. The forecast is of a file whose dilemmas anybody may have drawn;
    with the ``design`` "study", of a poll, or of a file whose dilemmas the study's generator drew.
    """
    if design is not None and not (isinstance(design, str) and design == GENERATOR):
        raise CrowdveilError(f"the design is {shown(design)}: use {GENERATOR!r}, or leave it out")
    about = find_study(study)
    served = find_paradigm(paradigm)
    goal = Goal(predicted, bar, decided)
    _check(voters, records, agreement, certainty)
    goal.check(agreement)
    if voters is None and epsilon is None:
        raise CrowdveilError("give the voters, or epsilon, or both: of the two, one can be found")
    given_epsilon = None if epsilon is None else Epsilon(epsilon)
    asked = about.drawing.dilemmas if records is None else records

    def foretell(voters: int, records: int, epsilon: Epsilon) -> Forecast:
        return forecast(about, served, voters, records, epsilon, agreement, certainty, drawn=design == GENERATOR)

    wanted = goal if goal.given else Goal(decided=TYPICAL)
    if voters is None:
        assert given_epsilon is not None
        found = given_epsilon
        return _least("voters", lambda n: foretell(n, asked, found), 2, _MOST_VOTERS, wanted)
    if given_epsilon is None:
        return _least_epsilon(lambda e: foretell(voters, asked, e), wanted)
    if not goal.given:
        return foretell(voters, asked, given_epsilon)
    if records is not None:
        raise CrowdveilError("voters, records, epsilon and a goal are all given: leave one out, and it is found")
    return _least("records", lambda n: foretell(voters, n, given_epsilon), 1, _MOST_RECORDS, goal)


def _check(voters: int | None, records: int | None, agreement: float, certainty: float) -> None:
    if voters is not None:
        check_whole(voters, "the number of voters", 2, MOST_VOTERS)
    if records is not None:
        check_whole(records, "the number of records", 1, MOST_VOTERS)
    if not (is_number(agreement) and 0.5 < agreement < 1):
        raise CrowdveilError(f"the agreement must be between 0.5 and 1, got {shown(agreement)}")
    check_certainty(certainty)


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

    Climb by thirds, then bisect the last interval. More of anything makes a release better, except for small setbacks
    where a mechanism begins to measure more.
    """
    failed = low - 1
    number = low
    while not goal.reached(best := foretell(number)):
        if number == high:
            what = name if name == "epsilon" else f"number of {name}"
            raise OutOfReach(
                f"no {what} up to {getattr(best, name):,.9g} reaches it: then {best.predicted:.1%} are predicted, "
                f"{best.decided:.0%} decided, and the widest bar is {best.widest:.2g}; ask for less, or give more"
            )
        failed, number = number, min(number + max(number // 3, 1), high)
    while number - failed > 1:
        middle = (number + failed) // 2
        if goal.reached(tried := foretell(middle)):
            best = tried
            number = middle
        else:
            failed = middle
    return best


BATCHES_TRIED = (1, 2, 4, 10)
"""The expected voters in one batch, in two, in four, in ten."""
_STEP = 0.05
_LARGEST = 8.0


@dataclass(frozen=True)
class RelayPlan:
    """One way to run a poll through a relay."""

    batch: int
    """The least number of reports in a batch: with fewer voters than this, nothing is released."""
    promise: RelayedPromise
    foretold: Forecast

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "batch": self.batch,
            "local_epsilon": self.promise.local.value,
            "epsilon": self.promise.epsilon,
            "delta": self.promise.delta,
            "honest": self.promise.honest,
            "predicted": self.foretold.predicted,
            "decided": self.foretold.decided,
        }


def plan_relay(
    study: Study,
    voters: int,
    epsilon: float,
    delta: float = DEFAULT_DELTA,
    honest: float = DEFAULT_HONEST,
    agreement: float = AGREEMENT,
) -> list[RelayPlan]:
    """Return the best plan for each of some batch sizes, largest batch first.

    The promise is that of the smallest batch that may be handed over; a larger local epsilon predicts better.
    """
    check_whole(voters, "the number of voters", 2, MOST_VOTERS)
    if not epsilon > 0:
        raise CrowdveilError(f"the epsilon wished for must be above 0, got {epsilon:g}")
    plans = []
    for parts in BATCHES_TRIED:
        batch = voters // parts
        if batch >= 2 and (promise := largest_promise(study, batch, epsilon, delta, honest)) is not None:
            foretold = forecast(
                study, paradigm("vldp"), voters, study.drawing.dilemmas, promise.local, agreement, drawn=True
            )
            plans.append(RelayPlan(batch, promise, foretold))
    if not plans:
        raise OutOfReach(f"{voters:,} voters cannot hide each other so well (epsilon {epsilon:g}): allow a larger one")
    return plans


def largest_promise(study: Study, batch: int, epsilon: float, delta: float, honest: float) -> RelayedPromise | None:
    """Return the promise of the largest local epsilon that keeps the wished one, None if none does.

    The amplified epsilon grows with the local one, but jumps up where a report begins to have two bits; beyond the jump
    it only grows. So the first local epsilon from above that keeps the wish is looked for, within each number of bits.
    """
    steps = [Epsilon(round(_STEP * k, 2)) for k in range(1, round(_LARGEST / _STEP) + 1)]
    best: RelayedPromise | None = None
    for bits in {relayed_bits(study, local) for local in steps}:
        ladder = [local for local in steps if relayed_bits(study, local) == bits]
        low = -1
        high = len(ladder)
        while high - low > 1:
            middle = (low + high) // 2
            kept = _promise(ladder[middle], bits, batch, delta, honest).epsilon <= epsilon
            low, high = (middle, high) if kept else (low, middle)
        if low >= 0 and (best is None or ladder[low] > best.local):
            best = _promise(ladder[low], bits, batch, delta, honest)
    return best


def relayed_bits(study: Study, local: Epsilon, mechanism: str = RELAYED) -> int:
    """Return the number of bits in a report at this epsilon."""
    return DISTRIBUTED[mechanism].report_size(study, local) or 1


@lru_cache(maxsize=4096)
def _promise(local: Epsilon, bits: int, batch: int, delta: float, honest: float) -> RelayedPromise:
    return RelayedPromise.of_smallest(local, bits, batch, delta, honest)
