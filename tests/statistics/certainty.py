"""How often a choice is wrong and certain, on the dilemmas where that happens most.

python tests/statistics/certainty.py MECHANISM VOTERS RECORDS EPSILON DRAWS        a row of docs/sweeps.md
python tests/statistics/certainty.py MECHANISM VOTERS RECORDS EPSILON DRAWS STUDY  of another study, printed

MECHANISM may be 'score --along features'.
"""

from __future__ import annotations

import sys

import numpy as np
from populations import release, usual_population
from tables import write_table

from crowdveil.ballots.ballots import Ballots
from crowdveil.decision import crowd_certainty
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.study.bundled import load_study
from crowdveil.study.drawing import draw_dilemmas

CERTAINTIES = (0.9, 0.95, 0.99)
HEADER = ("mechanism", "voters", "answers", "ε", "draws", *(f"wrong at {least}" for least in CERTAINTIES))
_WORST = 5
"""Dilemmas that are judged on fresh draws."""


def wrong_and_certain(
    mechanism: str, ballots: Ballots, epsilon: Epsilon, dilemmas: np.ndarray, draws: int, seed: int
) -> np.ndarray:
    """Return, for each certainty (rows) and dilemma, how often a choice against the crowd was as certain.

    The crowd is fixed, and its preference over all features is exact; only the noise is fresh. Where the ranking and
    the unshrunk estimate differ nothing is certain, as in a decision.
    """
    by_record = mechanism.split()[0] not in ("voter-score", "one-bit")
    truth = crowd_preference(ballots, weighting="choices" if by_record else "voters").preference
    count = np.zeros((len(CERTAINTIES), len(dilemmas)))
    for number in range(draws):
        made = release(mechanism, ballots, epsilon, seed * 10_000 + number)
        for column, dilemma in enumerate(dilemmas):
            side = dilemma if dilemma @ made.parameter >= 0 else -dilemma
            if side @ truth < 0:
                certainty = crowd_certainty(made, side)
                count[:, column] += [certainty >= least for least in CERTAINTIES]
    return count / draws


def worst_dilemmas(
    mechanism: str, ballots: Ballots, epsilon: Epsilon, draws: int, seed: int, candidates: int = 300
) -> tuple[np.ndarray, np.ndarray]:
    """Search the dilemmas that go wrong most on some draws, and judge them on as many others.

    Half of the candidates are the study's own; the others differ in any two features, whatever the factors are.
    """
    study, rng = ballots.study, np.random.default_rng(seed)
    left, right = draw_dilemmas(study, -(-candidates // study.drawing.dilemmas), rng)
    single = np.eye(study.dimension) / study.units
    pairs = np.array([single[i] - single[j] for i in range(study.dimension) for j in range(i)])
    pool = np.concatenate([(left - right)[: candidates // 2] / study.units, rng.permutation(pairs)[: candidates // 2]])
    found = wrong_and_certain(mechanism, ballots, epsilon, pool, draws, seed)
    worst = pool[np.argsort(-found[0], kind="stable")[:_WORST]]
    return worst, wrong_and_certain(mechanism, ballots, epsilon, worst, draws, seed + 1)


def judge(mechanism: str, study: str, voters: int, records: int, epsilon: Epsilon, draws: int) -> np.ndarray:
    """Return how often each of the worst dilemmas goes wrong (``worst_dilemmas``), of a crowd of so many voters."""
    crowd = usual_population(load_study(study), 0.5).crowd(voters, records, np.random.default_rng(voters))
    return worst_dilemmas(mechanism, crowd, epsilon, draws, 3)[1]


def measure(mechanism: str, voters: int, records: int, epsilon: Epsilon, draws: int) -> np.ndarray:
    """Judge a mechanism on a crowd of so many voters, and write the worst of its dilemmas into the docs."""
    judged = judge(mechanism, "moral-machine", voters, records, epsilon, draws)
    shares = [f"{share:.3f}" for share in judged.max(axis=1)]
    row = (mechanism, voters, records, epsilon, draws, *shares)
    write_table("sweeps.md", "certainty", HEADER, [row], "make test-slow", keys=4)
    return judged


def main(mechanism: str, voters: str, records: str, epsilon: str, draws: str, study: str | None = None) -> None:
    """Judge a mechanism on a crowd."""
    if study is None:
        measure(mechanism, int(voters), int(records), Epsilon(epsilon), int(draws))
    else:
        print(judge(mechanism, study, int(voters), int(records), Epsilon(epsilon), int(draws)).max(axis=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
