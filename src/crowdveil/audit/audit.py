"""The whole audit: all promises, all mistakes, the samplers and the floating-point trap."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from crowdveil.audit.attack import JUDGED, SHOWN
from crowdveil.audit.laws import FALSE_ALARM, LawTest, all_kinds, laplace_only
from crowdveil.audit.neighbours import Effort
from crowdveil.audit.targets import Target, mistakes, promises
from crowdveil.audit.trial import Trial, put_on_trial
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.registry import ALL
from crowdveil.privacy.noise.exact_noise import BulkNoise, OpenDPNoise

FEWEST_DRAWS = 20_000
"""With fewer, a mistake that takes a factor of sqrt 2 off the noise might be missed."""
MOST_DRAWS = 1_000_000
MOST_SLOW_DRAWS = 50_000
MOST_FOR_MISTAKES = Epsilon("1")
"""Mistakes are made at an epsilon of at most this: a few 10,000 outputs cannot prove an epsilon above 7 or so."""


@dataclass(frozen=True)
class Order:
    """The mechanisms to audit, and how hard to try."""

    epsilon: Epsilon
    draws: int
    """Outputs of each side; as many again serve to choose the event."""
    effort: Effort
    mechanism: str | None = None
    """None: all of them, and the noise itself."""

    def __post_init__(self) -> None:
        if not FEWEST_DRAWS <= self.draws <= MOST_DRAWS:
            raise CrowdveilError(f"an audit needs {FEWEST_DRAWS} to {MOST_DRAWS} draws, got {self.draws}")
        if self.mechanism is not None and self.mechanism not in ALL:
            raise CrowdveilError(f"there is no mechanism {self.mechanism!r}: choose one of {', '.join(ALL)}")

    @classmethod
    def thorough(cls, epsilon: Epsilon, draws: int | None = None, mechanism: str | None = None) -> Order:
        """Try hard: a few minutes."""
        return cls(epsilon, 200_000 if draws is None else draws, Effort(restarts=12, rounds=600), mechanism)

    @classmethod
    def quick(cls, epsilon: Epsilon, draws: int | None = None, mechanism: str | None = None) -> Order:
        """Try as hard as half a minute allows."""
        return cls(epsilon, FEWEST_DRAWS if draws is None else draws, Effort(restarts=3, rounds=150), mechanism)

    @property
    def slow_draws(self) -> int:
        """Outputs of each side where they are drawn one at a time, by OpenDP.

        Of 20,000 draws these are 10,000: enough for the attack to prove that Gaussian noise has half the deviation,
        unless luck is six standard deviations against it.
        """
        return min(self.draws // 2, MOST_SLOW_DRAWS)


@dataclass(frozen=True)
class Audit:
    """All trials, and what came of them."""

    order: Order
    trials: tuple[Trial, ...]
    laws: tuple[LawTest, ...]

    @property
    def promises(self) -> tuple[Trial, ...]:
        """The trials of what we promise."""
        return tuple(trial for trial in self.trials if trial.bug is None)

    @property
    def bugs(self) -> tuple[Trial, ...]:
        """The trials of mistakes made on purpose."""
        return tuple(trial for trial in self.trials if trial.bug is not None)

    @property
    def clean(self) -> bool:
        """Whether every promise held, every mistake was caught and all noise follows its law."""
        return all(trial.as_it_should_be for trial in self.trials) and all(test.passed for test in self.laws)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "clean": self.clean,
            "epsilon": self.order.epsilon.value,
            "draws": self.order.draws,
            "confidence": 1 - SHOWN,
            "false_alarm": {"per_bound": JUDGED, "per_law_test": FALSE_ALARM},
            "promises": [trial.as_dict() for trial in self.promises],
            "bugs": [trial.as_dict() for trial in self.bugs],
            "noise": [test.as_dict() for test in self.laws],
        }


Task = Callable[[], Iterable[Trial | LawTest]]


def tasks(order: Order) -> list[Task]:
    """List what there is to do, in the order in which it is shown."""
    targets = promises(order.epsilon) + mistakes(min(order.epsilon, MOST_FOR_MISTAKES))
    todo = [_trial(target, order) for target in targets if order.mechanism in (None, target.mechanism)]
    if order.mechanism is None:
        todo.append(lambda: all_kinds(BulkNoise(), "bulk", order.draws))
        todo.append(lambda: laplace_only(OpenDPNoise(), "OpenDP", order.slow_draws))
    return todo


def audit(order: Order, tell: Callable[[int], None] = lambda done: None) -> Audit:
    """Do everything; ``tell`` is called after every task."""
    results = list[Trial | LawTest]()
    for task in tasks(order):
        results.extend(task())
        tell(1)
    trials = tuple(result for result in results if isinstance(result, Trial))
    return Audit(order, trials, tuple(result for result in results if isinstance(result, LawTest)))


def _trial(target: Target, order: Order) -> Task:
    draws = order.slow_draws if target.slow else order.draws
    return lambda: [put_on_trial(target.subject(order.effort), draws, target.bug)]
