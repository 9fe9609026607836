"""Certainty and bars of crowds that factors explain badly: the directions left out matter more than their prior says.

python tests/statistics/large_rest.py MECHANISM VOTERS RECORDS EPSILON TIMES DRAWS        a row of docs/sweeps.md
python tests/statistics/large_rest.py BALLOTS        how many times the prior it is in a crowd that is known
"""

from __future__ import annotations

import sys

import numpy as np
from certainty import CERTAINTIES, worst_dilemmas
from populations import coverage, usual_population
from tables import write_table

from crowdveil.ballots.file import read_ballots
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import public_design
from crowdveil.estimation.prior import rest_deviation
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.study.bundled import load_study

HEADER = (
    "mechanism",
    "voters",
    "answers",
    "ε",
    "times the prior",
    "draws",
    *(f"wrong at {least}" for least in CERTAINTIES),
    "covered, worst",
    "covered, all",
)


def times_the_prior(path: str) -> float:
    """Return the size of the directions left out in a crowd's exact preference, against that of the prior."""
    ballots = read_ballots(path).decided()
    design = public_design(ballots.study)
    preference = crowd_preference(ballots, weighting="choices").preference
    rest = np.linalg.lstsq(design.whole.basis, preference, rcond=None)[0][design.directions :]
    return float(np.linalg.norm(rest) / (rest_deviation(len(rest)) * np.sqrt(len(rest))))


def measure(mechanism: str, voters: int, records: int, epsilon: Epsilon, times: float, draws: int) -> None:
    """Judge certainty on a fixed crowd and bars on as many fresh ones, and write both into the docs."""
    population = usual_population(load_study("moral-machine"), 0.5, times)
    crowd = population.crowd(voters, records, np.random.default_rng(voters))
    _, judged = worst_dilemmas(mechanism, crowd, epsilon, draws, 3)
    found = coverage(mechanism, population, voters, records, epsilon, draws, seed=4)
    shares = [f"{share:.3f}" for share in (*judged.max(axis=1), found.covered.min(), found.covered.mean())]
    row = (mechanism, voters, records, epsilon, f"{times:g}", draws, *shares)
    command = "python tests/statistics/large_rest.py MECHANISM VOTERS RECORDS EPSILON TIMES DRAWS"
    write_table("sweeps.md", "rest", HEADER, [row], command, keys=5)
    print(*row, flush=True)


def main(first: str, *setting: str) -> None:
    """Judge a mechanism, or look at a file."""
    if not setting:
        print(f"{times_the_prior(first):.2f}")
        return
    voters, records, epsilon, times, draws = setting
    measure(first, int(voters), int(records), Epsilon(epsilon), float(times), int(draws))


if __name__ == "__main__":
    main(*sys.argv[1:])
