"""Certainty and bars of crowds that factors explain badly: the directions left out matter more than their prior says.

python tests/statistics/large_rest.py MECHANISM VOTERS RECORDS EPSILON TIMES LOUDER DRAWS        a row of docs/sweeps.md
python tests/statistics/large_rest.py BALLOTS        how many times the prior it is in a crowd that is known

The directions left out move a margin by TIMES what their prior says, the factors by LOUDER than they usually do.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from certainty import CERTAINTIES, wrong_and_certain
from populations import coverage, release, usual_population
from tables import write_table

from crowdveil.ballots.ballot_file import read_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.decision import crowd_certainty
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import public_design
from crowdveil.estimation.prior import rest_deviation
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_dilemmas
from crowdveil.study.study import Study

HEADER = (
    "mechanism",
    "voters",
    "answers",
    "ε",
    "times the prior",
    "louder",
    "draws",
    *(f"wrong at {least}" for least in CERTAINTIES),
    "covered, worst",
    "covered, all",
    "certain",
)
_SESSIONS, _CANDIDATES, _WORST, _JUDGED = 1000, 200, 5, 100


def drawn(study: Study, sessions: int, seed: int) -> np.ndarray:
    """Draw dilemmas of the study, in model units."""
    left, right = draw_dilemmas(study, sessions, np.random.default_rng(seed))
    return (left - right) / study.units


def contrary_dilemmas(ballots: Ballots) -> np.ndarray:
    """Return those dilemmas in which a crowd is against what its factors alone say, and these say it most loudly.

    Loud is a margin against the length of the difference in the directions left out. They are searched among
    13,000 of the study's own and all pairs of single features.
    """
    study, design = ballots.study, public_design(ballots.study)
    single = np.eye(study.dimension) / study.units
    pairs = np.array([single[i] - single[j] for i in range(study.dimension) for j in range(i)])
    pool = np.concatenate([drawn(study, _SESSIONS, 11), pairs])
    preference = crowd_preference(ballots, weighting="choices").preference
    along = np.linalg.lstsq(design.whole.basis, preference, rcond=None)[0][: design.directions]
    by_factors, left_out = pool @ design.basis @ along, np.linalg.norm(pool @ design.rest_basis, axis=1)
    contrary = (by_factors * (pool @ preference) < 0) & (left_out > 0)
    loudness = np.where(contrary, np.abs(by_factors) / np.where(left_out > 0, left_out, 1.0), 0.0)
    return np.asarray(pool[np.argsort(-loudness)[: min(_CANDIDATES, int(contrary.sum()))]])


def times_the_prior(path: str) -> float:
    """Return the size of the directions left out in a crowd's exact preference, against that of the prior."""
    ballots = read_ballots(path).decided()
    design = public_design(ballots.study)
    preference = crowd_preference(ballots, weighting="choices").preference
    rest = np.linalg.lstsq(design.whole.basis, preference, rcond=None)[0][design.directions :]
    return float(np.linalg.norm(rest) / (rest_deviation(len(rest)) * np.sqrt(len(rest))))


def measure(
    mechanism: str, voters: int, records: int, epsilon: Epsilon, times: float, louder: float, draws: int
) -> None:
    """Judge certainty on a fixed crowd and bars on as many fresh ones, and write both into the docs."""
    usual = usual_population(load_study("moral-machine"), 0.5, times)
    population = replace(usual, gamma=louder * usual.gamma)
    crowd = population.crowd(voters, records, np.random.default_rng(voters))
    pool = contrary_dilemmas(crowd)
    searched = wrong_and_certain(mechanism, crowd, epsilon, pool, draws, 3)
    worst = pool[np.argsort(-searched[0], kind="stable")[:_WORST]]
    judged = wrong_and_certain(mechanism, crowd, epsilon, worst, draws, 4)
    made = release(mechanism, crowd, epsilon, 5)
    sides = [x if x @ made.parameter >= 0 else -x for x in drawn(crowd.study, 10, 12)[:_JUDGED]]
    certain = np.mean([crowd_certainty(made, side) >= CERTAINTIES[0] for side in sides])
    found = coverage(mechanism, population, voters, records, epsilon, draws, seed=4)
    shares = [f"{share:.3f}" for share in (*judged.max(axis=1), found.covered.min(), found.covered.mean())]
    row = (mechanism, voters, records, epsilon, f"{times:g}", f"{louder:g}", draws, *shares, f"{certain:.2f}")
    command = "python tests/statistics/large_rest.py MECHANISM VOTERS RECORDS EPSILON TIMES LOUDER DRAWS"
    write_table("sweeps.md", "rest", HEADER, [row], command, keys=6)
    print(*row, flush=True)


def main(first: str, *setting: str) -> None:
    """Judge a mechanism, or look at a file."""
    if not setting:
        print(f"{times_the_prior(first):.2f}")
        return
    voters, records, epsilon, times, louder, draws = setting
    measure(first, int(voters), int(records), Epsilon(epsilon), float(times), float(louder), int(draws))


if __name__ == "__main__":
    main(*sys.argv[1:])
