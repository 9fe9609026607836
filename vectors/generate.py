"""Write the test vectors: small cases in JSON that an implementation in any language must meet.

A vector is what must be the same everywhere: the integers before the noise, the probabilities of the noise (as
floor(2^64 p)), and whole reports whose randomness is scripted.

    python -m vectors.generate
"""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from vectors.scripted_reports import few_axes, repeats, repeats_of_three, scripted_reports, third_answer

from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.clipped_ballots import told_length
from crowdveil.estimation.dilemmas import oriented
from crowdveil.estimation.record_axes import record_axes
from crowdveil.estimation.society import fit_voters
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.grid import STEPS, coefficient_steps, papers_delta, sum_of_preferences, tight_delta, to_steps
from crowdveil.privacy.mechanisms.about_you import keep_odds
from crowdveil.privacy.mechanisms.algorithm3 import RECORD_STEPS, linear_sensitivity, objective_coefficients
from crowdveil.privacy.mechanisms.integer_scores import RECORD_CLIP, RECORD_SENSITIVITY, record_scores
from crowdveil.privacy.mechanisms.one_bit import BitKind, bits_to_report, exact_bits, public_clip
from crowdveil.privacy.mechanisms.randomised_response import FLIP, choices_to_report
from crowdveil.privacy.mechanisms.subset_selection import among_odds, subset_size
from crowdveil.privacy.noise.coins import Coin, LaplaceCoins
from crowdveil.privacy.noise.cube_noise import Shift, eulerian_numbers
from crowdveil.privacy.noise.source import exact_scale
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study, synthetic_study

FOLDER = Path(__file__).parent
EPSILONS = (100_000, 300_000, 1_000_000, 2_500_000, 10_000_000)


def grid() -> dict[str, Any]:
    """A preference in the ball becomes whole steps: truncated toward zero, the excess off the largest."""
    cases = [[0.5, -0.25, 0.0], [1.0, -1.0, 0.0], [1e-12, 0.0, 2.0], [0.75, -0.75, 0.75], [-2.0, 1e-9, 0.0]]
    cases += [[-3.0, 0.0, 5.0], [1.9, -0.2, -0.2], [2 / 3, -2 / 3, 2 / 3], [0.1, 0.7, -1.2]]
    steps = to_steps(np.array(cases), 2.0)
    return {"norm_bound": 2.0, "steps_per_bound": STEPS, "cases": _pairs("values", cases, "steps", steps)}


def fit() -> dict[str, Any]:
    """The most likely preference in the ball, within a few grid steps."""
    rng = np.random.default_rng(1)
    cases = [(synthetic_study(4), rng.integers(-2, 3, (n, 4)).astype(float)) for n in (1, 3, 6, 13)]
    for study in (load_study("moral-machine"), load_study("kidney")):
        cases.append((study, next(simulated_batches(study, 1, rng)).differences.astype(float)))
    cases.append((synthetic_study(30), np.round(rng.standard_normal((12, 30)))))
    fits = [
        fit_voters(Ballots.from_differences(study, np.array([0, len(c)]), c), 2.0).values[0].tolist()
        for study, c in cases
    ]
    pairs = [{"differences": c.tolist(), "preference": f} for (_, c), f in zip(cases, fits, strict=True)]
    return {"norm_bound": 2.0, "tolerance": 1e-7, "cases": pairs}


def coefficients() -> dict[str, Any]:
    """Algorithm 3: the integer coefficients of one record, d linear ones and the upper triangle by rows."""
    cases = [[3.0, -4.0, 0.0], [0.3, 0.1, -0.2], [30.0, 40.0, 0.0], [0.0, 0.0, 0.0], [-1.0, -1.0, -1.0]]
    exact = [objective_coefficients(np.array([c]), np.array([0, 1]), 5.0)[0] for c in cases]
    together = objective_coefficients(np.array(cases), np.array([0, len(cases)]), 5.0)[0]
    return {
        "record_bound": 5.0,
        "record_steps": RECORD_STEPS,
        "coefficient_steps": STEPS,
        "sensitivity": {
            str(d): {
                "paper": coefficient_steps(d, papers_delta(d)),
                "tight": coefficient_steps(d, tight_delta(d)),
                "linear": linear_sensitivity(d),
            }
            for d in range(1, 31)
        },
        "cases": _pairs("record", cases, "coefficients", np.array(exact)),
        "all_records_together": together.tolist(),
    }


def scores() -> dict[str, Any]:
    """A record's integer scores: its values in whole steps (halves upwards), times integer axes, clipped."""
    study = synthetic_study(2)
    axes = record_axes(study)
    cases = [[1.0, 0.0], [0.1, 0.3], [-3.0, 2.0], [0.0, 0.0], [2**-11, -(2**-11)], [-0.2, 0.6]]
    records = [Ballots.from_differences(study, np.array([0, 1]), np.array([case])) for case in cases]
    exact = np.array([record_scores(record, study)[0] for record in records])
    return {
        "axes": axes.axes.tolist(),
        "units": axes.design.units.tolist(),
        "clip": RECORD_CLIP,
        "sensitivity": RECORD_SENSITIVITY,
        "cases": _pairs("record", cases, "scores", exact),
        "all_records_together": exact.sum(axis=0).tolist(),
    }


def laplace() -> dict[str, Any]:
    """The coins of the discrete Laplace noise on a preference: nonzero, tail, then the binary digits."""
    cases = []
    for micro in EPSILONS:
        coins = LaplaceCoins.of_scale(exact_scale(sum_of_preferences(), micro))
        floors = [str(floor) for floor in coins.floors(64)]
        cases.append({"epsilon_micro": micro, "digits": coins.digits, "floor_of_2_to_64_p": floors})
    laws = [{"scale": [1, 2], "floor_of_2_to_64_p": _laplace_law("0.5")}]
    laws += [{"scale": [2, 1], "floor_of_2_to_64_p": _laplace_law("2")}]
    return {"sensitivity": sum_of_preferences(), "cases": cases, "laws": laws}


def cube() -> dict[str, Any]:
    """Noise on the cube: the thresholds P(K <= k) of the radius' shift at a scale t (a fraction), and the probability
    of every single x with max_j |x_j| = 0, 1, 2, ...
    """
    cases = []
    for d, scale in product((1, 2, 3, 10, 23), (Fraction(1, 2), Fraction(3), Fraction(2**21), Fraction(2**42, 3))):
        floors = [str(floor) for floor in Shift(d, scale).floors(64)]
        cases.append({"dimension": d, "scale": [scale.numerator, scale.denominator], "floor_of_2_to_64_p": floors})
    laws = [
        {"dimension": d, "scale": [t, 1], "floor_of_2_to_64_p": _cube_law(d, t)} for d, t in product((1, 2, 3), (1, 2))
    ]
    return {"cases": cases, "laws": laws}


def about() -> dict[str, Any]:
    """The coin that keeps the true one of k options; if it fails, each other one is as likely."""
    cases = [
        {"options": k, "epsilon_micro": m, "floor_of_2_to_64_p": str(Coin(keep_odds(k), m).floors(64)[0])}
        for k, m in product((2, 3, 9), EPSILONS)
    ]
    return {"cases": cases}


def report_ids() -> dict[str, Any]:
    """Under which id the report of a ballot token is stored: 16 bytes of SHA-256, in hexadecimal digits."""
    tokens = ["AAAAAAAAAAAAAAAAAAAAAA", "-_0123456789abcdefghij", "x" * 43, "x" * 44, "x" * 52]
    ids = [hashlib.sha256(f"crowdveil report {token}".encode()).hexdigest()[:32] for token in tokens]
    return {"cases": [{"token": token, "id": name} for token, name in zip(tokens, ids, strict=True)]}


def subset_selection() -> dict[str, Any]:
    """How many signs a report has, and the coin that puts the corner's place among them."""
    cases = []
    for d, micro in product((1, 2, 5, 10, 23), EPSILONS):
        k = subset_size(d, micro / 1e6)
        coin = Coin(among_odds(d, k), micro)
        cases.append({"features": d, "epsilon_micro": micro, "signs": k, "floor_of_2_to_64_p": str(coin.floors(64)[0])})
    return {"cases": cases}


def one_bit() -> dict[str, Any]:
    """How many bits a report has; where mean scores are clipped; and what a bit says before it may be turned over, by
    the number n of records, the sum S of their scores, and an integer drawn below 2 n c.
    """
    sizes = [
        {"axes": k, "epsilon_micro": m, "bits": bits_to_report(k, Epsilon.of_millionths(m))}
        for k, m in product((1, 4, 9, 23), EPSILONS)
    ]
    clips = [{"dilemmas": n, "clip": public_clip(synthetic_study(2, n))} for n in (1, 5, 13, 100)]
    clip = 165_330
    cases = []
    for n in (1, 2, 3, 13, 15, 16, 40):
        reach, (above, below) = n * clip, (int(part) for part in told_length(np.array(n)))
        told = 2 * reach * above // below
        scored = [(s, reach + s + d) for s in (-2 * reach, -7, 0, reach // 2, reach) for d in (-1, 0)]
        drawn = [(0, told - 1), (0, told), (0, told + 1), (0, 2 * reach - 1)]
        cases += [
            {
                "records": n,
                "score": s,
                "drawn": u,
                **{
                    kind.value: int(
                        exact_bits(
                            np.array([[s]]), np.array([n]), clip, np.array([kind is BitKind.LENGTH]), np.array([[u]])
                        )[0, 0]
                    )
                    for kind in BitKind
                },
            }
            for s, u in [*scored, *drawn]
            if 0 <= u < 2 * reach
        ]
    return {"sizes": sizes, "clips": clips, "clip": clip, "cases": cases}


def randomised_response() -> dict[str, Any]:
    """The coin that turns a choice over, how a record splits into dilemma and choice, and how many to report."""
    flips = [{"epsilon_micro": m, "floor_of_2_to_64_p": str(Coin(FLIP, m).floors(64)[0])} for m in EPSILONS]
    records = np.array([[0, -2, 1], [3, 0, 0], [0, 0, 0], [0, 0, -1], [-0.5, 0.0, 0.25], [-0.0, 1.5, -0.0]])
    split = oriented(Ballots.from_differences(load_study("synthetic-3"), np.array([0, len(records)]), records))
    splits = [
        {"record": r, "dilemma": v, "choice": a}
        for r, v, a in zip(records.tolist(), split[0].tolist(), split[1].tolist(), strict=True)
    ]
    sizes = [
        {
            "choices": n,
            "epsilon_micro": m,
            "report": int(choices_to_report(np.array([n]), Epsilons.of_millionths([m]))[0]),
        }
        for n, m in product((1, 5, 13), EPSILONS)
    ]
    return {"flips": flips, "splits": splits, "one_choice": sizes}


def _laplace_law(scale: str) -> list[str]:
    """P(X = x) = (1 - q) / (1 + q) q^|x| for x = 0, ..., 5."""
    with localcontext(prec=60):
        q = (-1 / Decimal(scale)).exp()
        return [str(int((1 - q) / (1 + q) * q**x * 2**64)) for x in range(6)]


def _cube_law(dimension: int, scale: int) -> list[str]:
    """P(X = x) = (1 - q)^d / A_d(q) q^|x| for |x| = 0, ..., 5, in the words of ``cube_noise``."""
    with localcontext(prec=60):
        q = (-1 / Decimal(scale)).exp()
        total = sum(number * q**k for k, number in enumerate(eulerian_numbers(dimension))) / (1 - q) ** dimension
        return [str(int(q**x / total * 2**64)) for x in range(6)]


def _pairs(given: str, cases: list[Any], wanted: str, results: np.ndarray) -> list[dict[str, Any]]:
    return [{given: case, wanted: result} for case, result in zip(cases, results.tolist(), strict=True)]


VECTORS = (
    grid,
    fit,
    coefficients,
    scores,
    laplace,
    cube,
    one_bit,
    subset_selection,
    randomised_response,
    about,
    report_ids,
    scripted_reports,
    few_axes,
    third_answer,
    repeats,
    repeats_of_three,
)


def main() -> None:
    """Write one file per vector, with its meaning in it."""
    for make in VECTORS:
        content = {"meaning": make.__doc__, **make()}
        path = FOLDER / f"{make.__name__.replace('_', '-')}.json"
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
