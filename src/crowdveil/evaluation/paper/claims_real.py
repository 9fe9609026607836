"""The claims of Section 5.2, on Moral Machine data, by two truths."""

from __future__ import annotations

import numpy as np

from crowdveil.evaluation.paper import plan, settings
from crowdveil.evaluation.paper.across_epsilons import ALGORITHM_1, ALGORITHM_2
from crowdveil.evaluation.paper.across_personal_epsilons import PERSONAL_VARIANTS
from crowdveil.evaluation.paper.claim import PRIVATE, Claim, Part, advantage, curves, joined, private, rise
from crowdveil.evaluation.paper.crowds import MoralMachine
from crowdveil.evaluation.paper.intervals import Interval, difference, mean
from crowdveil.evaluation.paper.panels import SHORT, THIRD
from crowdveil.evaluation.paper.results import Results

TRUTHS = ("agreement", "predicted")


def real_claims(results: Results, data: MoralMachine) -> list[Claim]:
    """Every sentence of Section 5.2 that claims something."""
    return [
        _epsilon(results, data),
        _voters(results, data),
        _first_best(results, data),
        _second_lowest(results, data),
        _functional(results, data),
        _personal(results, data, "eps_C"),
        _personal(results, data, "eps_M"),
    ]


def _epsilon(results: Results, data: MoralMachine) -> Claim:
    where = [plan.real(data, n) for n in settings.REAL_VOTERS]
    return Claim(
        "real-epsilon",
        "5.2, Figure 8(a)-(c)",
        "“larger ε will induce better accuracy”",
        tuple(
            Part(f"{SHORT[s]}, {t}: rise from ε = 0.01 to 10", rise(curves(results, where, s, t)), above=0)
            for s in PRIVATE
            for t in TRUTHS
        ),
        "As on synthetic data.",
    )


def _voters(results: Results, data: MoralMachine) -> Claim:
    few, many = (plan.real(data, n) for n in (min(settings.REAL_VOTERS), max(settings.REAL_VOTERS)))
    return Claim(
        "real-voters",
        "5.2, Figure 8(a)-(c)",
        "“larger N … will induce better accuracy”",
        tuple(
            Part(
                f"{SHORT[s]}, {t}: N = 200 minus N = 50, mean over ε",
                difference(results.curve(many, s, t).overall, results.curve(few, s, t).overall),
                above=0,
            )
            for s in PRIVATE
            for t in TRUTHS
        ),
        "As on synthetic data.",
    )


def _first_best(results: Results, data: MoralMachine) -> Claim:
    where = [plan.real(data, settings.REAL_COMPARISON_VOTERS)]
    return Claim(
        "real-first-is-best",
        "5.2, Figure 8(d)",
        "“Algorithm 1 relatively outperforms Algorithms 2 and 3”",
        tuple(
            Part(
                f"Algorithm 1 minus {SHORT[s]}, {t}, mean over ε",
                advantage(curves(results, where, ALGORITHM_1, t), curves(results, where, s, t)),
                above=0,
                counts=private(s),
            )
            for s in (ALGORITHM_2, *THIRD)
            for t in TRUTHS
        ),
        "Algorithm 1 adds noise once, the others once per voter.",
    )


def _second_lowest(results: Results, data: MoralMachine) -> Claim:
    where = plan.real(data, settings.REAL_COMPARISON_VOTERS)
    parts = []
    for series in (ALGORITHM_1, *THIRD):
        for truth in TRUTHS:
            lead = results.curve(where, series, truth).values - results.curve(where, ALGORITHM_2, truth).values
            level = 1 - 0.05 / lead.shape[1]
            count = float(sum(mean(column, confidence=level).high < 0 for column in np.transpose(lead)))
            label = f"number of ε at which Algorithm 2 is certainly above {SHORT[series]}, {truth}"
            parts.append(Part(label, Interval(count, count, count), below=0.5, counts=private(series)))
    return Claim(
        "real-second-is-lowest",
        "5.2, Figure 8(d)",
        "“Algorithm 2 has the lowest accuracy in all cases”",
        tuple(parts),
        "As printed, Algorithm 3 stays a coin while Algorithm 2 rises with ε.",
    )


def _functional(results: Results, data: MoralMachine) -> Claim:
    where = [plan.real(data, settings.REAL_COMPARISON_VOTERS)]
    parts = []
    for series in THIRD:
        for truth in TRUTHS:
            pairs = zip(curves(results, where, series, truth), curves(results, where, ALGORITHM_2, truth), strict=True)
            gain = mean(joined(a.overall - b.overall for a, b in pairs))
            label = f"{SHORT[series]} minus Algorithm 2, {truth}, mean over ε"
            parts.append(Part(label, gain, above=0, counts=private(series)))
    return Claim(
        "real-functional-beats-laplace",
        "5.2, Figure 8(d)",
        "“superiority of functional mechanism over Laplace” for RLDP",
        tuple(parts),
        "With about 11 answers and 299 noisy coefficients a voter, nothing of the objective is left.",
    )


def _personal(results: Results, data: MoralMachine, panel: str) -> Claim:
    where = [plan.personal(data, settings.NO_PRIVACY_REAL_VOTERS, panel)]
    symbol = "ε_C" if panel == "eps_C" else "ε_M"
    ends = [point for point, _ in plan.PANELS[panel]]
    return Claim(
        f"real-personal-{panel}",
        "5.2, Figure 9(a)" if panel == "eps_C" else "5.2, Figure 9(b)",
        f"“larger {symbol} … will lead to higher accuracy”",
        tuple(
            Part(
                f"{SHORT[v.name]}, {t}: rise from {ends[0]:g} to {ends[-1]:g}",
                rise(curves(results, where, v.name, t)),
                above=0,
                counts=private(v.name),
            )
            for v in PERSONAL_VARIANTS
            for t in TRUTHS
        ),
        "As on synthetic data: at these epsilons a private Algorithm 3 decides little better than a coin.",
    )
