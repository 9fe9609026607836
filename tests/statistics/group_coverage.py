"""How often intervals of secret groups' preferences, and of what differs between them, hold what is true of people.

`python tests/statistics/group_coverage.py 60` measures the whole sweep, into docs/sweeps.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

import numpy as np
from populations import Population, usual_population
from tables import write_table

from crowdveil.ballots.ballots import Ballots, concatenate
from crowdveil.ballots.columns import CODE, Categories
from crowdveil.estimation.design import public_design
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.publish.groups import experiment_protected_groups, preference_differences, preview_groups
from crowdveil.publish.request import Request
from crowdveil.study.bundled import load_study

STUDY = load_study("moral-machine")
LABELS = ("one", "other")
CELLS = (("vlcp", "0.5", 2000), ("vlcp", "1", 400), ("vlcp", "1", 3000), ("vlcp", "3", 3000))
CELLS += (("vldp", "1", 3000), ("vldp", "3", 3000), ("vldp", "3", 30000))
HEADER = ("paradigm", "ε", "voters", "groups differ", "crowds", "preferences", "differences", "told though none is")


@dataclass(frozen=True)
class Coverage:
    """Shares of intervals that hold the truth, and of differences that were told where there is none."""

    preferences: float
    differences: float
    false_findings: float


def populations(differ: bool) -> tuple[Population, Population]:
    """Return the people of the two groups; they may prefer differently along two axes."""
    one = usual_population(STUDY, 0.3)
    if not differ:
        return one, one
    moved = one.gamma.copy()
    moved[1] -= 0.25
    moved[4] += 0.25
    return one, replace(one, gamma=moved)


def people(both: tuple[Population, Population], voters: int, rng: np.random.Generator) -> Ballots:
    """Draw voters of whom two in five are in the first group."""
    first = voters * 2 // 5
    crowds = [
        replace(
            one.crowd(count, int(rng.integers(4, 14)), rng),
            about={"group": Categories(LABELS, np.full(count, place, CODE))},
        )
        for place, (one, count) in enumerate(zip(both, (first, voters - first), strict=True))
    ]
    return concatenate(STUDY, crowds)


def coverage(paradigm: str, epsilon: str, voters: int, crowds: int, *, differ: bool, seed: int) -> Coverage:
    """Release the preferences of simulated crowds by secret group, and count."""
    both = populations(differ)
    true = [STUDY.factor_map @ public_design(STUDY).basis @ one.value for one in both]
    held, apart, told = [], [], []
    for number in range(crowds):
        ballots = people(both, voters, np.random.default_rng([seed, number]))
        asked = preview_groups(ballots, "group", Request(find_paradigm(paradigm), Epsilon(epsilon)))
        made = experiment_protected_groups(ballots, asked, seed * 10_000 + number).releases
        for label, release in made.items():
            low, high = release.factor_intervals.T
            held.append((low <= true[LABELS.index(label)]) & (true[LABELS.index(label)] <= high))
        for k, one in enumerate(preference_differences(made)):
            apart.append(one.low <= true[0][k] - true[1][k] <= one.high)
            told.append(one.told_apart)
    return Coverage(float(np.mean(held)), float(np.mean(apart)), 0.0 if differ else float(np.mean(told)))


def measure(paradigm: str, epsilon: str, voters: int, crowds: int, *, differ: bool) -> Coverage:
    """Measure a cell of the sweep, and write its row into the docs."""
    found = coverage(paradigm, epsilon, voters, crowds, differ=differ, seed=2)
    shares = (f"{found.preferences:.3f}", f"{found.differences:.3f}", "" if differ else f"{found.false_findings:.3f}")
    row = (paradigm, epsilon, voters, "yes" if differ else "no", crowds, *shares)
    write_table("sweeps.md", "groups", HEADER, [row], "make test-slow", keys=4)
    return found


if __name__ == "__main__":
    for cell in CELLS:
        for differ in (True, False):
            print(*cell, differ, measure(*cell, int(sys.argv[1]), differ=differ), flush=True)
