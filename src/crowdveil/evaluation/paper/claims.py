"""The claims of Section 4 that an experiment can check, and those of Sections 5.1 (synthetic data) and 5.2 (real data).

Sentences of both sections that claim the same are checked by the same function: on synthetic data by the accuracy, on
real data by two truths.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crowdveil.evaluation.paper import plan
from crowdveil.evaluation.paper.algorithms import PRINTED, RAW_PRINTED
from crowdveil.evaluation.paper.claim import (
    Claim,
    Part,
    advantage,
    between,
    certainly_below_zero,
    curves,
    joined,
    parts,
    rise,
    steps_down,
)
from crowdveil.evaluation.paper.experiments import (
    ALGORITHM_1,
    ALGORITHM_2,
    GAMMAS,
    PERSONAL_VARIANTS,
    WITHIN,
    WITHOUT_MAXIMUM,
    AcrossEpsilons,
    AcrossPersonalEpsilons,
)
from crowdveil.evaluation.paper.headline import no_privacy_claims
from crowdveil.evaluation.paper.plan import PRIVATE, SHORT, THIRD
from crowdveil.evaluation.toolkit.accuracy import Interval, mean
from crowdveil.evaluation.toolkit.crowds import MoralMachine, Synthetic
from crowdveil.evaluation.toolkit.sweep import Experiment, Results

ACCURACY = ("accuracy",)
TRUTHS = ("agreement", "predicted")
PERSONAL = tuple(variant.name for variant in PERSONAL_VARIANTS)
MUCH = 0.05
HIGH = 0.8


def all_claims(results: Results, data: MoralMachine | None) -> list[Claim]:
    """Check every claim of the paper; those about real data only where there is some."""
    return [
        *theory_claims(results),
        *synthetic_claims(results),
        *([] if data is None else real_claims(results, data)),
        *no_privacy_claims(results, data),
    ]


def theory_claims(results: Results) -> list[Claim]:
    """Check Theorems 2 and 4, and the maximum that Algorithm 3 takes."""
    return [
        _theorem(results, "theorem-2", "4.2, Theorem 2", ALGORITHM_1, "the released mean"),
        _theorem(results, "theorem-4", "4.3, Theorem 4", ALGORITHM_2, "a voter's report"),
        _maximum(results),
    ]


def synthetic_claims(results: Results) -> list[Claim]:
    """Check every sentence of Section 5.1 that claims something."""
    compared = [plan.synthetic(n) for n in plan.VOTERS]
    panels = {
        panel: [plan.personal(Synthetic(), n, panel) for n in plan.PERSONAL_VOTERS] for panel in ("f_C", *_SYMBOLS)
    }
    few, many = ([plan.synthetic(n, records) for records in plan.RECORDS_GRID] for n in plan.VOTERS)
    short, long = ([plan.synthetic(n, records) for n in plan.VOTERS] for records in (20, 100))
    fewest, most = (
        [plan.personal(Synthetic(), n, panel) for panel in _SYMBOLS]
        for n in (min(plan.PERSONAL_VOTERS), max(plan.PERSONAL_VOTERS))
    )

    def higher(name: str, section: str, quote: str, words: str, groups: _Groups, series: _Series, why: str) -> Claim:
        return _higher(results, name, section, quote, words, groups, series, ACCURACY, why)

    return [
        _high(results),
        _rises_with_epsilon(
            results,
            "epsilon",
            "5.1, Figures 1-3",
            "“a smaller ε will lead to a lower accuracy”",
            plan.all_synthetic(),
            ACCURACY,
            "Less noise, more accuracy. As printed, Algorithm 3 takes the stationary point of a quadratic without a "
            "maximum: at every ε it points where the noise nearly cancels the curvature.",
        ),
        higher(
            "more-voters",
            "5.1, Figures 1-3",
            "“a larger N leads to better accuracy”",
            "{series}: N = 100 minus N = 50, mean over ε and n",
            (many, few),
            PRIVATE,
            "The noise of the mean shrinks as 1/N (Algorithm 1) or 1/√N (Algorithms 2 and 3). A mean of stationary "
            "points has no such law: a few of them are very long.",
        ),
        higher(
            "more-records",
            "5.1, Figures 1-3",
            "“a larger n leads to better accuracy”",
            "{series}: n = 100 minus n = 20, mean over ε and N",
            (long, short),
            PRIVATE,
            "Noise in Algorithms 1 and 2 does not depend on n: more records only sharpen each voter's estimate, which "
            "the bound B = 2 limits. In Algorithm 3 the objective grows with n and the noise does not.",
        ),
        _first_is_best(
            results,
            "first-is-best",
            "5.1, Figure 4",
            "“Algorithm 1 outperforms the other two”",
            compared,
            ACCURACY,
            "Algorithm 1 trusts the aggregator and adds noise once; the others add it N times.",
        ),
        _second_is_worst(results, compared),
        _functional_beats_laplace(results, compared),
        _falls_with_dimension(results, 1, (ALGORITHM_1,), _WHY_DIMENSION_1),
        _falls_with_dimension(results, 3, THIRD, _WHY_DIMENSION_3),
        Claim(
            "conservative-fraction",
            "5.1, Figure 6(a)",
            "“the accuracy will be reduced when increasing f_C”",
            parts(
                "{series}: f_C = 0.6 minus f_C = 0.1",
                PERSONAL,
                ACCURACY,
                lambda s, t: rise(curves(results, panels["f_C"], s, t)),
                below=0,
            ),
            _WHY_PERSONAL,
        ),
        _rises_with_personal_epsilon(
            results,
            "personal-eps_C",
            "5.1, Figure 6(b)",
            "“larger ε_C induces better accuracy”",
            panels["eps_C"],
            ACCURACY,
            _WHY_PERSONAL,
        ),
        _rises_with_personal_epsilon(
            results,
            "personal-eps_M",
            "5.1, Figure 6(c)",
            "“larger ε_M leads to better accuracy”",
            panels["eps_M"],
            ACCURACY,
            _WHY_PERSONAL,
        ),
        higher(
            "personal-voters",
            "5.1, Figures 6(b), 6(c)",
            "“larger … N will induce better accuracy”",
            "{series}: N = 200 minus N = 50",
            (most, fewest),
            PERSONAL,
            "A mean over more voters carries less noise, once each voter's estimate carries some signal.",
        ),
        _higher_panel(results, panels["eps_C"], panels["eps_M"]),
        _norm_bound(results),
    ]


def real_claims(results: Results, data: MoralMachine) -> list[Claim]:
    """Check every sentence of Section 5.2 that claims something."""
    where = [plan.real(data, n) for n in plan.REAL_VOTERS]
    compared = [plan.real(data, plan.REAL_COMPARISON_VOTERS)]
    few, many = ([plan.real(data, n)] for n in (min(plan.REAL_VOTERS), max(plan.REAL_VOTERS)))
    return [
        _rises_with_epsilon(
            results,
            "real-epsilon",
            "5.2, Figure 8(a)-(c)",
            "“larger ε will induce better accuracy”",
            where,
            TRUTHS,
            "As on synthetic data.",
        ),
        _higher(
            results,
            "real-voters",
            "5.2, Figure 8(a)-(c)",
            "“larger N … will induce better accuracy”",
            "{series}{truth}: N = 200 minus N = 50, mean over ε",
            (many, few),
            PRIVATE,
            TRUTHS,
            "As on synthetic data.",
        ),
        _first_is_best(
            results,
            "real-first-is-best",
            "5.2, Figure 8(d)",
            "“Algorithm 1 relatively outperforms Algorithms 2 and 3”",
            compared,
            TRUTHS,
            "Algorithm 1 adds noise once, the others once per voter.",
        ),
        _second_is_lowest(results, compared[0]),
        Claim(
            "real-functional-beats-laplace",
            "5.2, Figure 8(d)",
            "“superiority of functional mechanism over Laplace” for RLDP",
            _lead_over_second(results, compared, THIRD, TRUTHS),
            "With about 11 records and 299 noisy coefficients a voter, nothing of the objective is left.",
        ),
        *(
            _rises_with_personal_epsilon(
                results,
                f"real-personal-{panel}",
                f"5.2, Figure 9({letter})",
                f"“larger {_SYMBOLS[panel]} … will lead to higher accuracy”",
                [plan.personal(data, plan.NO_PRIVACY_REAL_VOTERS, panel)],
                TRUTHS,
                "As on synthetic data: at these epsilons a private Algorithm 3 decides little better than a coin.",
            )
            for panel, letter in zip(_SYMBOLS, "ab", strict=True)
        ),
    ]


_Groups = tuple[Sequence[Experiment], Sequence[Experiment]]
_Series = tuple[str, ...]
_SYMBOLS = {"eps_C": "ε_C", "eps_M": "ε_M"}
_WHY_PERSONAL = (
    "Every voter counts the same however noisy, so that what conservative voters report decides. At these ε a private "
    "Algorithm 3 is close to a coin whatever the groups are, and there is little to see."
)
_WHY_DIMENSION_1 = (
    "The noise of each coordinate does not depend on d, but the preference inside ‖β‖₁ ≤ B is spread over more of them."
)
_WHY_DIMENSION_3 = (
    "The sensitivity grows with d, and so does the number of noisy coefficients. As printed there is nothing to lose."
)


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
        "quadratic opens upwards in some direction, and has no maximum. “As printed” shows its stationary point "
        "instead. The repair is that of Zhang et al. 2012: regularise, drop directions that open upwards, project.",
    )


def _high(results: Results) -> Claim:
    easiest = plan.synthetic(100, 100)
    return Claim(
        "high-accuracy",
        "5.1, Figures 1-3",
        "“high accuracies” of Algorithms 1, 2 and 3",
        parts(
            "{series}: accuracy at ε = 1, N = n = 100",
            PRIVATE,
            ACCURACY,
            lambda s, t: mean(results.curve(easiest, s, t).at(1.0)),
            above=HIGH,
        ),
        f"“High” is read as {HIGH:g} or more at ε = 1 in the paper's easiest setting; 0.5 is a coin.",
    )


def _rises_with_epsilon(
    results: Results, name: str, section: str, quote: str, where: Sequence[AcrossEpsilons], truths: _Series, why: str
) -> Claim:
    """Check that curves end higher than they begin; how many of their steps go down is context."""
    measured: list[Part] = []
    for series in PRIVATE:
        measured += parts(
            "{series}{truth}: rise from ε = 0.01 to 10",
            (series,),
            truths,
            lambda s, t: rise(curves(results, where, s, t)),
            above=0,
        )
        if truths == ACCURACY:
            down = steps_down(curves(results, where, series, *truths))
            measured.append(Part(f"{SHORT[series]}: steps that certainly go down", down, below=0.5, counts=False))
    return Claim(name, section, quote, tuple(measured), why)


def _rises_with_personal_epsilon(
    results: Results,
    name: str,
    section: str,
    quote: str,
    where: Sequence[AcrossPersonalEpsilons],
    truths: _Series,
    why: str,
) -> Claim:
    first, *_, last = (point for point, _ in where[0].settings)
    return Claim(
        name,
        section,
        quote,
        parts(
            f"{{series}}{{truth}}: rise from {first:g} to {last:g}",
            PERSONAL,
            truths,
            lambda s, t: rise(curves(results, where, s, t)),
            above=0,
        ),
        why,
    )


def _higher(
    results: Results,
    name: str,
    section: str,
    quote: str,
    words: str,
    groups: _Groups,
    series: _Series,
    truths: _Series,
    why: str,
) -> Claim:
    """Check that series lie higher in the first group of experiments than in the second, which has other crowds."""
    found = parts(words, series, truths, lambda s, t: between(results, *groups, s, t), above=0)
    return Claim(name, section, quote, found, why)


def _first_is_best(
    results: Results, name: str, section: str, quote: str, where: Sequence[AcrossEpsilons], truths: _Series, why: str
) -> Claim:
    def lead(series: str, truth: str) -> Interval:
        return advantage(curves(results, where, ALGORITHM_1, truth), curves(results, where, series, truth))

    others = (ALGORITHM_2, *THIRD)
    found = parts("Algorithm 1 minus {series}{truth}, mean over ε", others, truths, lead, above=0)
    return Claim(name, section, quote, found, why)


def _lead_over_second(
    results: Results, where: Sequence[AcrossEpsilons], series: _Series, truths: _Series, above: float = 0
) -> tuple[Part, ...]:
    def lead(one: str, truth: str) -> Interval:
        return advantage(curves(results, where, one, truth), curves(results, where, ALGORITHM_2, truth))

    return parts("{series} minus Algorithm 2{truth}, mean over ε", series, truths, lead, above=above)


def _second_is_worst(results: Results, where: Sequence[AcrossEpsilons]) -> Claim:
    return Claim(
        "second-is-worst",
        "5.1, Figure 4",
        "“both Algorithms 1 and 3 have much better accuracy than Algorithm 2”",
        _lead_over_second(results, where, (ALGORITHM_1, *THIRD), ACCURACY, above=MUCH),
        f"“Much” is read as {MUCH:g} or more on average over the paper's ε. Only with records that are not scaled, "
        "which protects nobody, does Algorithm 3 lie where the paper has it.",
    )


def _second_is_lowest(results: Results, where: AcrossEpsilons) -> Claim:
    def behind(series: str, truth: str) -> Interval:
        lead = results.curve(where, series, truth).values - results.curve(where, ALGORITHM_2, truth).values
        return certainly_below_zero(lead.T)

    return Claim(
        "real-second-is-lowest",
        "5.2, Figure 8(d)",
        "“Algorithm 2 has the lowest accuracy in all cases”",
        parts(
            "number of ε at which Algorithm 2 is certainly above {series}{truth}",
            (ALGORITHM_1, *THIRD),
            TRUTHS,
            behind,
            below=0.5,
        ),
        "As printed, Algorithm 3 stays a coin while Algorithm 2 rises with ε.",
    )


def _functional_beats_laplace(results: Results, where: Sequence[AcrossEpsilons]) -> Claim:
    second = curves(results, where, ALGORITHM_2, *ACCURACY)
    measured: list[Part] = []
    for series in THIRD:
        third = curves(results, where, series, *ACCURACY)
        for epsilon in (1.0, 10.0):
            gain = mean(joined(a.at(epsilon) - b.at(epsilon) for a, b in zip(third, second, strict=True)))
            label = f"{SHORT[series]} minus Algorithm 2 at ε = {epsilon:g}"
            measured.append(Part(label, gain, above=0, counts=series in PRIVATE))
    return Claim(
        "functional-beats-laplace",
        "5.1, Figure 4",
        "“superiority of functional mechanism over Laplace” for RLDP",
        tuple(measured),
        "With the repair, and only with it, the functional mechanism is better once ε is large enough to see anything.",
    )


def _falls_with_dimension(results: Results, algorithm: int, series: _Series, why: str) -> Claim:
    low, high = min(plan.FEATURES_GRID), max(plan.FEATURES_GRID)
    return Claim(
        f"dimension-{algorithm}",
        "5.1, Figure 5 (and 4.2)",
        f"“The accuracy of Algorithm {algorithm} decreases with d”",
        parts(
            f"{{series}}: d = {high} minus d = {low}, mean over ε = 0.1, 1, 10",
            series,
            ACCURACY,
            lambda s, t: between(results, [plan.dimension(high)], [plan.dimension(low)], s, t),
            below=0,
        ),
        why,
    )


def _higher_panel(
    results: Results, wide: Sequence[AcrossPersonalEpsilons], narrow: Sequence[AcrossPersonalEpsilons]
) -> Claim:
    return Claim(
        "personal-panels",
        "5.1, Figure 6",
        "“the accuracy of Figure 6(b) is higher than that of Figure 6(c)”",
        parts(
            "{series}: mean of panel (b) minus mean of panel (c)",
            PERSONAL,
            ACCURACY,
            lambda s, t: advantage(curves(results, wide, s, t), curves(results, narrow, s, t)),
            above=0,
        ),
        "In (c) the conservative voters' epsilons begin at 0.01 throughout.",
    )


def _norm_bound(results: Results) -> Claim:
    bounds = np.array(plan.BOUNDS_GRID)
    measured: list[Part] = []
    for series in (ALGORITHM_1, ALGORITHM_2):
        found = curves(results, [plan.norm_bounds(n) for n in plan.VOTERS], series, *ACCURACY)
        around = [curve.where(np.isin(bounds, (2, 3))) for curve in found]
        for words, others in (("smaller", bounds < 2), ("larger", bounds > 3)):
            gain = advantage(around, [curve.where(others) for curve in found])
            measured.append(Part(f"{SHORT[series]}: B = 2 and 3 minus {words} B, ε = 0.1", gain, above=0))
    return Claim(
        "norm-bound",
        "5.1, Figure 7",
        "“relatively higher when norm bound around 2 or 3”",
        tuple(measured),
        "Noise and preference scale with B alike until B is so large that it no longer binds: the accuracy is nearly "
        "flat in B.",
    )
