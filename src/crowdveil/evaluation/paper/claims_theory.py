"""Claims of Section 4 that an experiment can check."""

from __future__ import annotations

from crowdveil.evaluation.paper import plan
from crowdveil.evaluation.paper.across_epsilons import ALGORITHM_1, ALGORITHM_2, WITHOUT_MAXIMUM
from crowdveil.evaluation.paper.claim import Claim, Part, curves, joined
from crowdveil.evaluation.paper.curves import PRINTED, RAW_PRINTED
from crowdveil.evaluation.paper.intervals import mean
from crowdveil.evaluation.paper.results import Results
from crowdveil.evaluation.paper.theorems import GAMMAS, WITHIN


def theory_claims(results: Results) -> list[Claim]:
    """Theorems 2 and 4, and the maximum that Algorithm 3 takes."""
    return [
        _theorem(results, "theorem-2", "4.2, Theorem 2", ALGORITHM_1, "the released mean"),
        _theorem(results, "theorem-4", "4.3, Theorem 4", ALGORITHM_2, "a voter's report"),
        _maximum(results),
    ]


def _theorem(results: Results, name: str, section: str, series: str, what: str) -> Claim:
    curve = results.curve(plan.theorems(), series, WITHIN)
    return Claim(
        name,
        section,
        "the error is at most α with probability at least 1 − γ",
        tuple(Part(f"{what} within α at γ = {g:g}", mean(curve.at(g)), above=1 - g) for g in GAMMAS),
        "The bound is a union bound; the exact probability is (1 − γ/d)^d, which is always a little more than 1 − γ.",
    )


def _maximum(results: Results) -> Claim:
    def part(series: str, what: str, counts: bool) -> Part:
        found = curves(results, plan.all_synthetic(), series, WITHOUT_MAXIMUM)
        at_ten = joined(curve.at(10.0) for curve in found)
        return Part(f"{what}: voters without a maximum at ε = 10", mean(at_ten), below=0.05, counts=counts)

    return Claim(
        "maximum-exists",
        "4.4, Algorithm 3",
        "β* = argmax of the noisy objective",
        (part(PRINTED.name, "as printed", True), part(RAW_PRINTED.name, "NOT PRIVATE, records not scaled", False)),
        "Records of length at most 1 curve the objective by less than the noise added to its coefficients: the noisy "
        "quadratic opens upwards in some direction, and has no maximum. “As printed” shows its stationary point instead. "
        "The repair is that of Zhang et al. 2012: regularise, drop directions that open upwards, project.",
    )
