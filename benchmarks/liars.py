"""How far a few lying voters move a distributed release: the worst reports that are still accepted.

Each liar sends the most extreme report that an aggregator accepts, in the direction against the crowd. Shown is the
accuracy (share of test pairs on which the release and the true society agree, with its 95 % interval) without liars,
with 1 % of them, and both again with a robust mean, for mechanisms whose reports need one.

    python benchmarks/liars.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from crowdveil.estimation.design import public_design
from crowdveil.estimation.record_axes import record_axes
from crowdveil.evaluation.toolkit.scores import mean
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.one_bit import BitReports
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.mechanisms.reports import Reports
from crowdveil.privacy.mechanisms.score_release import ScoreReports
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.sources.simulated import synthetic_crowd

VOTERS, RECORDS, FEATURES, CROWDS = 2000, 50, 10, 20
LIARS, ROBUST, EPSILON = 0.01, 0.02, 1
Lie = Callable[[Any, np.ndarray, int, MechanismSettings], Any]


def farthest(accepted: Callable[[int], bool]) -> int:
    """Return the largest number that is accepted, by bisection."""
    low, high = 0, 2**60
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepted(middle) else (low, middle)
    return low


def lie_about_preferences(reports: Reports, against: np.ndarray, liars: int, settings: MechanismSettings) -> Reports:
    """Send the farthest accepted number in every coordinate (Algorithm 2)."""
    mechanism, values = DISTRIBUTED["algorithm-2"], reports.values.copy()
    one = Reports(reports.epsilons[:1], np.zeros((1, FEATURES), np.int64))
    far = farthest(lambda x: bool(mechanism.acceptable(replace(one, values=one.values + x), settings)[0]))
    values[:liars] = np.sign(against).astype(np.int64) * far
    return replace(reports, values=values)


def lie_about_coefficients(reports: Reports, against: np.ndarray, liars: int, settings: MechanismSettings) -> Reports:
    """Send an objective without curvature that rises steeply: its maximum is a corner of the ball (Algorithm 3)."""
    values, strongest = reports.values.copy(), int(np.argmax(np.abs(against)))
    values[:liars] = 0
    values[:liars, strongest] = np.sign(against[strongest]) * 2**50
    return replace(reports, values=values)


def lie_about_slopes(reports: Reports, against: np.ndarray, liars: int, settings: MechanismSettings) -> Reports:
    """Send the steepest accepted slope in every coordinate (Algorithm 3 with public dilemmas)."""
    mechanism, values = DISTRIBUTED["algorithm-3-choices"], reports.values.copy()
    for voter in range(liars):
        one = Reports(reports.epsilons[:1], values[voter : voter + 1].copy())

        def steep(x: int, one: Reports = one) -> Reports:
            slopes = one.values.copy()
            slopes[:, :FEATURES] = np.sign(against) * x
            return replace(one, values=slopes)

        far = farthest(lambda x, steep=steep: bool(mechanism.acceptable(steep(x), settings)[0]))
        values[voter] = steep(far).values
    return replace(reports, values=values)


def lie_with_bits(reports: BitReports, against: np.ndarray, liars: int, settings: MechanismSettings) -> BitReports:
    """Speak of direction only, and of the axes that matter most, all of them against the crowd (one bit, or a few)."""
    bits, kinds = reports.bits.copy(), reports.kinds.copy()
    along = np.linalg.lstsq(public_design(settings.study).basis, against)[0]
    strongest = np.argsort(-np.abs(along))[: int(np.abs(bits[0]).sum())]
    bits[:liars], kinds[:liars] = 0, 0
    bits[:liars, strongest] = np.sign(along[strongest])
    return replace(reports, bits=bits, kinds=kinds)


def lie_with_signs(reports: Reports, against: np.ndarray, liars: int, settings: MechanismSettings) -> Reports:
    """Send the right number of signs, on the coordinates that matter most (subset selection)."""
    values = reports.values.copy()
    size = int(np.abs(values[0]).sum())
    worst = np.zeros(FEATURES, np.int64)
    strongest = np.argsort(-np.abs(against))[:size]
    worst[strongest] = np.sign(against[strongest])
    values[:liars] = worst
    return replace(reports, values=values)


def lie_about_scores(
    reports: ScoreReports, against: np.ndarray, liars: int, settings: MechanismSettings
) -> ScoreReports:
    """Send the farthest accepted score in every coordinate that is asked for."""
    mechanism, values = DISTRIBUTED["score"], reports.values.copy()
    direction = np.sign(np.linalg.lstsq(record_axes(settings.study).axes.astype(float), against)[0]).astype(np.int64)
    one = ScoreReports(reports.epsilons[:1], reports.counts[:1], reports.reported[:1], 0 * reports.values[:1])
    far = farthest(
        lambda x: bool(mechanism.acceptable(replace(one, values=one.reported.astype(np.int64) * x), settings)[0])
    )
    values[:liars] = reports.reported[:liars] * direction * far
    return replace(reports, values=values)


def lie_in_choices(reports: Any, against: np.ndarray, liars: int, settings: MechanismSettings) -> Any:
    """Choose against the crowd in every dilemma (randomised response, of all choices or of a few)."""
    choices = reports.choices.copy()
    end = reports.offsets[liars]
    choices[:end] = np.where(reports.dilemmas[:end] @ against >= 0, 1, -1)
    return replace(reports, choices=choices)


ATTACKS: dict[str, Lie] = {
    "algorithm-2": lie_about_preferences,
    "one-bit": lie_with_bits,
    "subset-selection": lie_with_signs,
    "algorithm-3": lie_about_coefficients,
    "score": lie_about_scores,
    "algorithm-3-choices": lie_about_slopes,
    "randomised-response": lie_in_choices,
    "one-choice": lie_in_choices,
}


def main() -> None:
    rng = np.random.default_rng(1)
    pairs = rng.normal(size=(4000, FEATURES))
    epsilons = Epsilons.same(EPSILON, VOTERS)
    results: dict[tuple[str, str], list[float]] = {}
    for run in range(CROWDS):
        crowd = synthetic_crowd(VOTERS, RECORDS, FEATURES, rng)
        plain = MechanismSettings(crowd.ballots.study, 2.0, drawn=True)  # a poll, which draws its dilemmas
        for name, lie in ATTACKS.items():
            mechanism = DISTRIBUTED[name]
            honest = mechanism.report(crowd.ballots, plain, epsilons, FloatNoiseForExperiments(run))
            lied = lie(honest, -crowd.social, round(LIARS * VOTERS), plain)
            assert mechanism.acceptable(lied, plain).all()
            cases = {"honest": (honest, plain), "1 % liars": (lied, plain)}
            if name in ("algorithm-2", "score"):
                robust = replace(plain, robust=ROBUST)
                cases |= {"honest, robust": (honest, robust), "1 % liars, robust": (lied, robust)}
            for case, (reports, settings) in cases.items():
                found = mechanism.aggregate([reports], settings).parameter
                agree = float(np.mean(np.sign(pairs @ found) == np.sign(pairs @ crowd.social)))
                results.setdefault((name, case), []).append(agree)
    columns = ("honest", "1 % liars", "honest, robust", "1 % liars, robust")
    print(f"accuracy, N={VOTERS}, n={RECORDS}, d={FEATURES}, epsilon=1, means of {CROWDS} crowds; robust = {ROBUST}")
    print(f"{'mechanism':22}" + "".join(f"{c:>24}" for c in columns))
    for name in ATTACKS:
        cells = [results.get((name, c)) for c in columns]
        print(
            f"{name:22}" + "".join(f"{'bounded already' if v is None else str(mean(np.array(v))):>24}" for v in cells)
        )


if __name__ == "__main__":
    main()
