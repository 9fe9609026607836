"""Releases of crowds who were asked trade-offs, where a side that is better in one respect is worse in another.

python tests/statistics/trade_offs.py MECHANISM VOTERS RECORDS EPSILON RELEASES [blind]        rows of docs/knowledge.md

The dilemmas are those of the study's generator of the paper's synthetic crowds with three features; of those in which
what speaks for a side by the crowd's preference is more than usual, three in four are not asked. So features go
together (correlations of 0.17 to 0.24), and the crowd's preference shows less of itself than in the generator's
dilemmas.
Covered is the share of 95 % intervals that hold the population's value; size is that of the unshrunk estimate, and of
the mean that probabilities are made from, relative to that value. With "blind", a trusted aggregator's release measures
mean squares along the axes only, and supposes no products.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from typing import Any
from unittest import mock

import numpy as np
from populations import probit_of, release
from scipy.special import ndtr

from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation import dilemma_moments
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms import fisher_scoring
from crowdveil.privacy.mechanisms.fisher_plan import FisherPlan
from crowdveil.study.bundled import synthetic_study
from crowdveil.study.drawing import draw_dilemmas

STUDY = synthetic_study(3, 13)
PREFERENCE = np.array([0.45, -0.4, 0.35])
_SPREAD, _SELDOM = 0.15, 0.25


class TradeOffs:
    """Voters who differ by a fifth of what they have in common."""

    def dilemmas(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw dilemmas (differences), in no order."""
        left, right = draw_dilemmas(STUDY, -(-4 * count // STUDY.drawing.dilemmas), rng)
        drawn = (left - right).astype(np.float64)
        speaks = np.square(drawn @ PREFERENCE) > np.square(drawn).sum(axis=1) * np.square(PREFERENCE).sum() / 3
        return drawn[rng.random(len(drawn)) < np.where(speaks, _SELDOM, 1.0)][:count]

    @cached_property
    def value(self) -> np.ndarray:
        """The pooled probit over these dilemmas."""
        x = self.dilemmas(200_000, np.random.default_rng(1))
        return probit_of(x, ndtr(x @ PREFERENCE / np.sqrt(1 + _SPREAD**2 * np.square(x).sum(axis=1))))

    def crowd(self, voters: int, records: int, rng: np.random.Generator) -> Ballots:
        """Draw voters with so many dilemmas each."""
        x = self.dilemmas(voters * records, rng)
        own = np.repeat(PREFERENCE + _SPREAD * rng.standard_normal((voters, 3)), records, axis=0)
        choices = np.where((x * own).sum(axis=1) + rng.standard_normal(len(x)) > 0, 1, -1)
        return Ballots.from_differences(STUDY, np.arange(voters + 1) * records, x * choices[:, None])


def measure(mechanism: str, voters: int, records: int, epsilon: Epsilon, releases: int) -> tuple[np.ndarray, ...]:
    """Return which intervals covered, and the sizes of the unshrunk estimate and of the mean, by release."""
    people = TradeOffs()
    truth, covered, sizes = people.value, [], []
    for number in range(releases):
        crowd = people.crowd(voters, records, np.random.default_rng([voters, records, number]))
        made = release(mechanism, crowd, epsilon, number, drawn=False)
        assert made.unknown is not None
        low, high = made.factor_intervals.T
        value = made.study.factor_map @ truth
        covered.append((low <= value) & (value <= high))
        both = (made.unknown.basis @ along for along in (made.unknown.center, made.unknown.mean))
        sizes.append([float(one @ truth / (truth @ truth)) for one in both])
    return np.array(covered), np.array(sizes)


def main(mechanism: str, voters: str, records: str, epsilon: str, releases: str, blind: str = "") -> None:
    """Print a row."""
    planned = FisherPlan.of

    def nothing_ahead(*given: Any, **named: Any) -> FisherPlan:
        return replace(planned(*given, **named), products=False, ahead=False)

    with ExitStack() as patches:
        if blind == "blind":
            patches.enter_context(mock.patch.object(FisherPlan, "of", nothing_ahead))
            for module in (dilemma_moments, fisher_scoring):
                patches.enter_context(mock.patch.object(module, "product_deviation", return_value=0.0))
        covered, sizes = measure(mechanism, int(voters), int(records), Epsilon(epsilon), int(releases))
    shares = f"{covered.mean(axis=0).min():.3f} | {covered.mean():.3f}"
    told = " | ".join(f"{size:.3f}" for size in sizes.mean(axis=0))
    print(f"| `{mechanism}` | {voters} | {records} | {epsilon} | {releases} | {shares} | {told} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
