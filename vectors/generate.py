"""Write the test vectors: small cases in JSON that an implementation in any language must meet.

Everything random is left out: a vector is what must be the same everywhere, the integers before the noise and the
probabilities of the noise (as floor(2^64 p)).

    python vectors/generate.py
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from veil.ballots import Ballots
from veil.preference.design import CLIP, Design
from veil.preference.fit import fit_voters
from veil.privacy.grid import STEPS, to_steps
from veil.privacy.laplace_coins import LaplaceCoins
from veil.privacy.mechanisms.algorithm3 import RECORD_STEPS, objective_coefficients
from veil.privacy.mechanisms.randomised_response import FLIP, answers_to_report, oriented
from veil.privacy.mechanisms.scores import RECORD_SENSITIVITY, SCORE_STEPS, record_scores
from veil.privacy.mechanisms.subset_selection import subset_size
from veil.privacy.noise import exact_scale
from veil.privacy.odds import Coin, Odds
from veil.privacy.sensitivity import coefficient_steps, papers_delta, sum_of_preferences, tight_delta
from veil.studies import load_study, synthetic_study

FOLDER = Path(__file__).parent
EPSILONS = (100_000, 300_000, 1_000_000, 2_500_000, 10_000_000)


def grid() -> dict[str, Any]:
    """A preference in the ball becomes whole steps: truncated toward zero, the excess off the largest."""
    cases = [[0.5, -0.25, 0.0], [1.0, -1.0, 0.0], [1e-12, 0.0, 2.0], [0.75, -0.75, 0.75], [-2.0, 1e-9, 0.0]]
    steps = to_steps(np.array(cases), 2.0)
    return {"norm_bound": 2.0, "steps_per_bound": STEPS, "cases": _pairs("values", cases, "steps", steps)}


def fit() -> dict[str, Any]:
    """The most likely preference in the ball, within a few grid steps."""
    rng = np.random.default_rng(1)
    cases = [rng.integers(-2, 3, (n, 4)).astype(float).tolist() for n in (1, 3, 6, 13)]
    study = synthetic_study(4)
    fits = [fit_voters(Ballots(study, np.array([0, len(c)]), np.array(c)), 2.0).values[0] for c in cases]
    return {"norm_bound": 2.0, "tolerance": 1e-7, "cases": _pairs("differences", cases, "preference", np.array(fits))}


def coefficients() -> dict[str, Any]:
    """Algorithm 3: the integer coefficients of one record, d linear ones and the upper triangle by rows."""
    cases = [[3.0, -4.0, 0.0], [0.3, 0.1, -0.2], [30.0, 40.0, 0.0], [0.0, 0.0, 0.0], [-1.0, -1.0, -1.0]]
    exact = [objective_coefficients(np.array([c]), np.array([0, 1]), 5.0)[0] for c in cases]
    return {
        "record_bound": 5.0,
        "record_steps": RECORD_STEPS,
        "coefficient_steps": STEPS,
        "sensitivity": {
            str(d): {
                "paper": coefficient_steps(d, papers_delta(d)),
                "tight": coefficient_steps(d, tight_delta(d)),
            }
            for d in (1, 3, 10, 23)
        },
        "cases": _pairs("record", cases, "coefficients", np.array(exact)),
    }


def scores() -> dict[str, Any]:
    """A record's integer scores along given axes: clipped, truncated toward zero."""
    axes = [[0.5, 0.25], [-0.5, 0.25]]
    cases = [[1.0, 0.0], [0.1, 0.3], [-3.0, 2.0], [0.0, 0.0]]
    design = Design(np.array(cases), np.array(axes))
    study = synthetic_study(2)
    exact = record_scores(Ballots(study, np.array([0, len(cases)]), np.array(cases)), design)
    return {
        "axes": axes,
        "clip": CLIP,
        "score_steps": SCORE_STEPS,
        "sensitivity": RECORD_SENSITIVITY,
        "cases": _pairs("record", cases, "scores", exact),
    }


def laplace() -> dict[str, Any]:
    """The coins of the discrete Laplace noise on a preference: nonzero, tail, then the binary digits."""
    cases = []
    for micro in EPSILONS:
        coins = LaplaceCoins.of_scale(exact_scale(sum_of_preferences(), micro))
        floors = [str(floor) for floor in coins.floors(64)]
        cases.append({"epsilon_micro": micro, "digits": coins.digits, "floor_of_2_to_64_p": floors})
    return {"sensitivity": sum_of_preferences(), "cases": cases}


def subset_selection() -> dict[str, Any]:
    """How many signs a report has, and the coin that puts the corner's place among them."""
    cases = []
    for d, micro in product((1, 2, 5, 10, 23), EPSILONS):
        k = subset_size(d, micro)
        coin = Coin(Odds(k, k, k, 2 * d - k), micro)
        cases.append({"features": d, "epsilon_micro": micro, "signs": k, "floor_of_2_to_64_p": str(coin.floors(64)[0])})
    return {"cases": cases}


def randomised_response() -> dict[str, Any]:
    """The coin that turns an answer over, how a record splits into dilemma and answer, and how many to report."""
    flips = [{"epsilon_micro": m, "floor_of_2_to_64_p": str(Coin(FLIP, m).floors(64)[0])} for m in EPSILONS]
    records = np.array([[0, -2, 1], [3, 0, 0], [0, 0, 0], [0, 0, -1]], np.int8)
    split = oriented(Ballots(load_study("synthetic-3"), np.array([0, 4]), records))
    splits = [
        {"record": r, "dilemma": v, "answer": a}
        for r, v, a in zip(records.tolist(), split[0].tolist(), split[1].tolist(), strict=True)
    ]
    sizes = [
        {"answers": n, "epsilon_micro": m, "report": int(answers_to_report(np.array([n]), np.array([m]))[0])}
        for n, m in product((1, 5, 13), EPSILONS)
    ]
    return {"flips": flips, "splits": splits, "one_answer": sizes}


def _pairs(given: str, cases: list[Any], wanted: str, results: np.ndarray) -> list[dict[str, Any]]:
    return [{given: case, wanted: result} for case, result in zip(cases, results.tolist(), strict=True)]


VECTORS = (grid, fit, coefficients, scores, laplace, subset_selection, randomised_response)


def main() -> None:
    """Write one file per vector, with its meaning in it."""
    for make in VECTORS:
        content = {"meaning": make.__doc__, **make()}
        path = FOLDER / f"{make.__name__.replace('_', '-')}.json"
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
