"""A poll through a relay, planned: which local epsilon and which batches keep a promise, and what they predict."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from crowdveil.errors import CrowdveilError, OutOfReach
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import paradigm
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.planning.forecast import AGREEMENT, Forecast, forecast
from crowdveil.privacy.relayed import DEFAULT_DELTA, DEFAULT_HONEST, MECHANISM, RelayedPromise
from crowdveil.study.study import Study

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
    if voters < 2:
        raise CrowdveilError(f"a crowd has at least two voters, got {voters}")
    if not epsilon > 0:
        raise CrowdveilError(f"the epsilon wished for must be above 0, got {epsilon:g}")
    plans = []
    for parts in BATCHES_TRIED:
        batch = voters // parts
        if batch >= 2 and (promise := largest_promise(study, batch, epsilon, delta, honest)) is not None:
            foretold = forecast(study, paradigm("vldp"), voters, study.drawing.dilemmas, promise.local, agreement)
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


def relayed_bits(study: Study, local: Epsilon) -> int:
    """Return how many bits a report has at this epsilon."""
    return DISTRIBUTED[MECHANISM].report_size(study, local) or 1


@lru_cache(maxsize=4096)
def _promise(local: Epsilon, bits: int, batch: int, delta: float, honest: float) -> RelayedPromise:
    return RelayedPromise.of_smallest(local, bits, batch, delta, honest)
