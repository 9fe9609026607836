"""How often intervals of effects, and of differences between groups, hold what is true of simulated people.

`python tests/statistics/effect_coverage.py` measures the whole sweep, into docs/sweeps.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtr
from tables import write_table

from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import Categories
from crowdveil.estimation.effects import pair_signs
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.publish.effects import effects_for_experiments
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_typed

STUDY = load_study("moral-machine")
GROUPS = ("one", "other")
CELLS = ((0.3, 400), (1, 100), (1, 400), (1, 3000), (3, 400))
HEADER = ("paradigm", "ε", "voters", "groups differ", "crowds", "effects", "differences", "told though none is")
LEAN = np.array([feature.lean for feature in STUDY.features])
SPREAD = 0.3
"""Of the voters' own preferences: one person's answers are alike."""


@dataclass(frozen=True)
class Coverage:
    """Shares of intervals that hold the truth, and how many there were of each."""

    effects: float
    differences: float
    false_findings: float
    """Of factors in which the groups do not differ, the share in which a difference was told."""
    findings: int
    """How many differences were told."""
    intervals: int


def shift(differ):
    """Return what the second group prefers more or less than the first: women, and people over pets."""
    moved = np.zeros(STUDY.dimension)
    if differ:
        for name, by in (("woman", 0.3), ("girl", 0.3), ("dog", 0.3), ("cat", 0.3)):
            moved[STUDY.feature_names.index(name)] = by
    return moved


def people(voters, rng, differ, shortest=1):
    """Return ballots of voters of two groups, of any length from ``shortest`` to the whole."""
    groups = rng.integers(2, size=voters)
    left, right, (labels, codes) = draw_typed(STUDY, voters, rng)
    each = STUDY.drawing.dilemmas
    own = rng.normal(LEAN + groups[:, None] * shift(differ), SPREAD)
    differences = (left.astype(float) - right) / STUDY.units
    worth = np.einsum("ij,ij->i", differences, np.repeat(own, each, axis=0))
    choices = np.where(worth + rng.standard_normal(len(worth)) > 0, 1, -1).astype(np.int8)
    lengths = rng.integers(shortest, each + 1, voters)
    kept = (np.arange(each) < lengths[:, None]).reshape(-1)
    return Ballots(
        STUDY,
        np.concatenate([[0], np.cumsum(lengths)]),
        differences[kept],
        choices[kept],
        scenarios=Categories(labels, codes[kept].astype(np.int16)),
        about={"group": Categories(GROUPS, groups.astype(np.int16))},
    )


@cache
def truth(differ, voters=10_000):
    """Return the effects of each group (rows): the mean over dilemmas of the share who prefer the side with more.

    Preferences around b with spread s choose the first side with probability Phi(b.v / sqrt(1 + s^2 |v|^2)).
    """
    left, right, (labels, codes) = draw_typed(STUDY, voters, np.random.default_rng(99))
    differences = (left.astype(float) - right) / STUDY.units
    signs = pair_signs(STUDY, differences, Categories(labels, codes.astype(np.int16)))
    size = np.sqrt(1 + SPREAD**2 * (differences**2).sum(axis=1))
    shares = [2 * ndtr(differences @ (LEAN + g * shift(differ)) / size) - 1 for g in range(2)]
    return np.array([[(s * share)[s != 0].mean() for s in signs.T] for share in shares])


def coverage(paradigm, epsilon, voters, crowds, *, differ=True, seed=1):
    """Release the effects of simulated crowds by group, and count."""
    true = truth(differ)
    held, apart, told = [], [], []
    for number in range(crowds):
        rng = np.random.default_rng([seed, number])
        made = effects_for_experiments(people(voters, rng, differ), paradigm, epsilon=epsilon, seed=number, by="group")
        for g, group in enumerate(made.effects.groups):
            held += [one.low <= true[g, k] <= one.high for k, one in enumerate(group.effects)]
        for k, one in enumerate(made.effects.differences):
            gap = true[0, k] - true[1, k]
            apart.append(one.low <= gap <= one.high)
            told.append(one.told_apart)
    false = 0.0 if differ else float(np.mean(told))
    return Coverage(float(np.mean(held)), float(np.mean(apart)), false, sum(told), len(held))


def measure(paradigm, epsilon, voters, *, differ):
    """Measure a cell of the sweep, and write its row into the docs."""
    crowds = 200 if voters < 1000 else 60
    found = coverage(paradigm, epsilon, voters, crowds, differ=differ, seed=2)
    shares = (f"{found.effects:.3f}", f"{found.differences:.3f}", "" if differ else f"{found.false_findings:.3f}")
    row = (paradigm, epsilon, voters, "yes" if differ else "no", crowds, *shares)
    write_table("sweeps.md", "effects", HEADER, [row], "make test-slow", keys=4)
    return found


if __name__ == "__main__":
    for paradigm in PARADIGMS:
        for epsilon, voters in CELLS:
            for differ in (True, False):
                print(paradigm, epsilon, voters, differ, measure(paradigm, epsilon, voters, differ=differ), flush=True)
