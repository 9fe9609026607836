"""The whole audit: all promises, all mistakes, the samplers and the floating-point trap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from crowdveil.audit.approximate import try_curve
from crowdveil.audit.bounds import JUDGED, SHOWN
from crowdveil.audit.float_grid import last_bits_trial
from crowdveil.audit.noise_laws import FALSE_ALARM, LawTest, all_kinds, laplace_only
from crowdveil.audit.targets import CurveTarget, Target, curves, mistakes, promises
from crowdveil.audit.trial import Trial, put_on_trial
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms.registry import CENTRAL, DISTRIBUTED, GAUSSIAN_MEAN
from crowdveil.privacy.noise.bulk_noise import BulkNoise
from crowdveil.privacy.noise.opendp_noise import OpenDPNoise

FEWEST_DRAWS = 20_000
"""With fewer, a mistake that takes a factor of sqrt 2 off the noise might be missed."""
MOST_DRAWS = 1_000_000
MOST_FOR_MISTAKES = Epsilon("1")
"""Mistakes are made at an epsilon of at most this: a few 10,000 outputs cannot prove an epsilon above 7 or so."""
MOST_FOR_SLOW_TESTS = 50_000


@dataclass(frozen=True)
class Order:
    """What to audit, and how hard to try."""

    epsilon: Epsilon
    draws: int
    """Outputs of each side; as many again serve to choose the event."""
    restarts: int
    rounds: int
    mechanism: str | None = None
    """None: all of them, and the noise itself."""

    def __post_init__(self) -> None:
        if not FEWEST_DRAWS <= self.draws <= MOST_DRAWS:
            raise CrowdveilError(f"an audit needs {FEWEST_DRAWS} to {MOST_DRAWS} draws, got {self.draws}")
        known = [*CENTRAL, *DISTRIBUTED, GAUSSIAN_MEAN.name]
        if self.mechanism is not None and self.mechanism not in known:
            raise CrowdveilError(f"there is no mechanism {self.mechanism!r}: choose one of {', '.join(known)}")

    @classmethod
    def thorough(cls, epsilon: Epsilon, draws: int | None = None, mechanism: str | None = None) -> Order:
        """Try hard: a few minutes."""
        return cls(epsilon, 200_000 if draws is None else draws, 12, 600, mechanism)

    @classmethod
    def quick(cls, epsilon: Epsilon, draws: int | None = None, mechanism: str | None = None) -> Order:
        """Try as hard as half a minute allows."""
        return cls(epsilon, FEWEST_DRAWS if draws is None else draws, 3, 150, mechanism)


@dataclass(frozen=True)
class Audit:
    """All that was tried, and what came of it."""

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


def pieces(order: Order) -> list[Callable[[], Iterator[Trial | LawTest]]]:
    """Return what there is to do, piece by piece, in the order in which it is shown."""

    def wanted(target: Target | CurveTarget) -> bool:
        return order.mechanism in (None, target.subject.name)

    def of(target: Target) -> Callable[[], Iterator[Trial]]:
        return lambda: iter([_try(target, order)])

    def of_curve(target: CurveTarget) -> Callable[[], Iterator[Trial]]:
        return lambda: iter([try_curve(target.subject, some, target.bug)])

    some, harmful = min(order.draws, MOST_FOR_SLOW_TESTS), min(order.epsilon, MOST_FOR_MISTAKES)
    todo: list[Callable[[], Iterator[Trial | LawTest]]] = [
        of(target) for target in promises(order.epsilon) if wanted(target)
    ]
    if order.mechanism is None:
        todo.append(lambda: iter([last_bits_trial(order.epsilon, some, on_the_grid=True)]))
    todo += [of(target) for target in mistakes(harmful) if wanted(target)]
    # OpenDP draws Gaussian noise one number at a time, and a shuffled crowd is many reports for one output.
    search = order.restarts, order.rounds
    todo += [of_curve(target) for target in curves(harmful, search) if wanted(target)]
    if order.mechanism is None:
        todo.append(lambda: iter([last_bits_trial(harmful, some, on_the_grid=False)]))
        todo.append(lambda: all_kinds(BulkNoise(), "bulk", order.draws))
        todo.append(lambda: laplace_only(OpenDPNoise(), "OpenDP", some))
    return todo


def audit(order: Order, tell: Callable[[int], None] = lambda done: None) -> Audit:
    """Do everything; ``tell`` is called after every piece."""
    results = list[Trial | LawTest]()
    for piece in pieces(order):
        results.extend(piece())
        tell(1)
    trials = tuple(result for result in results if isinstance(result, Trial))
    return Audit(order, trials, tuple(result for result in results if isinstance(result, LawTest)))


def _try(target: Target, order: Order) -> Trial:
    pair = target.neighbours(target.subject, order.restarts, order.rounds)
    return put_on_trial(target.subject, pair, target.noise(), order.draws, target.bug)
