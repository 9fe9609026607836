"""The claims of Section 4 that an experiment can check, and those of Sections 5.1 (synthetic data) and 5.2 (real data).

Sentences of both sections that make the same claim are checked by the same measurement: on synthetic data by the
accuracy, on real data by two truths.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crowdveil.evaluation.paper import plan
from crowdveil.evaluation.paper.experiments import (
    ALGORITHM_1,
    ALGORITHM_2,
    GAMMAS,
    PERSONAL_VARIANTS,
    PRINTED,
    RAW_PRINTED,
    WITHIN,
    WITHOUT_MAXIMUM,
    EpsilonSweep,
    PersonalEpsilonSweep,
)
from crowdveil.evaluation.paper.headline import no_privacy_claims
from crowdveil.evaluation.paper.plan import PRIVATE, SHORT, THIRD
from crowdveil.evaluation.paper.verdicts import (
    Claim,
    ClaimPart,
    JudgedResults,
    advantage,
    certainly_below_zero,
    curves,
    joined,
    steps_down,
)
from crowdveil.evaluation.toolkit.crowds import MoralMachineSource, SyntheticSource
from crowdveil.evaluation.toolkit.scores import Interval, mean
from crowdveil.evaluation.toolkit.sweep import Results

PERSONAL = tuple(variant.name for variant in PERSONAL_VARIANTS)
MUCH = 0.05
HIGH = 0.8


def all_claims(results: Results, data: MoralMachineSource | None) -> list[Claim]:
    """Check every claim of the paper; those about real data only if there is a file."""
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
    """Check every sentence of Section 5.1 that makes a claim."""
    judged = JudgedResults(results, ("accuracy",))
    compared = [plan.synthetic(n) for n in plan.VOTERS]
    panels = {
        panel: [plan.personal(SyntheticSource(), n, panel) for n in plan.PERSONAL_VOTERS]
        for panel in ("f_C", *_SYMBOLS)
    }
    few, many = ([plan.synthetic(n, records) for records in plan.RECORDS_GRID] for n in plan.VOTERS)
    short, long = ([plan.synthetic(n, records) for n in plan.VOTERS] for records in (20, 100))
    fewest, most = (
        [plan.personal(SyntheticSource(), n, panel) for panel in _SYMBOLS]
        for n in (min(plan.PERSONAL_VOTERS), max(plan.PERSONAL_VOTERS))
    )
    return [
        Claim(
            "high-accuracy",
            "5.1, Figures 1-3",
            "“high accuracies” of Algorithms 1, 2 and 3",
            judged.parts(
                "{series}: accuracy at ε = 1, N = n = 100",
                PRIVATE,
                lambda s, t: mean(results.curve(plan.synthetic(100, 100), s, t).at(1.0)),
                above=HIGH,
            ),
            f"“High” is read as {HIGH:g} or more at ε = 1 in the paper's easiest setting; 0.5 is a coin.",
        ),
        Claim(
            "epsilon",
            "5.1, Figures 1-3",
            "“a smaller ε will lead to a lower accuracy”",
            _rises_step_by_step(judged, plan.all_synthetic()),
            "Less noise, more accuracy. As printed, Algorithm 3 takes the stationary point of a quadratic without a "
            "maximum: at every ε it points where the noise nearly cancels the curvature.",
        ),
        Claim(
            "more-voters",
            "5.1, Figures 1-3",
            "“a larger N leads to better accuracy”",
            judged.higher("{series}: N = 100 minus N = 50, mean over ε and n", PRIVATE, many, few),
            "The noise of the mean shrinks as 1/N (Algorithm 1) or 1/√N (Algorithms 2 and 3). A mean of stationary "
            "points has no such law: a few of them are very long.",
        ),
        Claim(
            "more-records",
            "5.1, Figures 1-3",
            "“a larger n leads to better accuracy”",
            judged.higher("{series}: n = 100 minus n = 20, mean over ε and N", PRIVATE, long, short),
            "Noise in Algorithms 1 and 2 does not depend on n: more records only sharpen each voter's estimate, which "
            "the bound B = 2 limits. In Algorithm 3 the objective grows with n and the noise does not.",
        ),
        Claim(
            "first-is-best",
            "5.1, Figure 4",
            "“Algorithm 1 outperforms the other two”",
            judged.trails(_FIRST_MINUS, (ALGORITHM_2, *THIRD), compared, ALGORITHM_1),
            "Algorithm 1 trusts the aggregator and adds noise once; the others add it N times.",
        ),
        Claim(
            "second-is-worst",
            "5.1, Figure 4",
            "“both Algorithms 1 and 3 have much better accuracy than Algorithm 2”",
            judged.leads(_MINUS_SECOND, (ALGORITHM_1, *THIRD), compared, ALGORITHM_2, above=MUCH),
            f"“Much” is read as {MUCH:g} or more on average over the paper's ε. Only with records that are not scaled, "
            "which protects nobody, does Algorithm 3 lie where the paper has it.",
        ),
        Claim(
            "functional-beats-laplace",
            "5.1, Figure 4",
            "“superiority of functional mechanism over Laplace” for RLDP",
            _third_minus_second(judged, compared),
            "With the repair, and only with it, the functional mechanism is better once ε is large enough to see "
            "anything.",
        ),
        *(
            Claim(
                f"dimension-{algorithm}",
                "5.1, Figure 5 (and 4.2)",
                f"“The accuracy of Algorithm {algorithm} decreases with d”",
                _falls_with_dimension(judged, series),
                why,
            )
            for algorithm, series, why in ((1, (ALGORITHM_1,), _WHY_DIMENSION_1), (3, THIRD, _WHY_DIMENSION_3))
        ),
        Claim(
            "conservative-fraction",
            "5.1, Figure 6(a)",
            "“the accuracy will be reduced when increasing f_C”",
            judged.rises("{series}: f_C = 0.6 minus f_C = 0.1", PERSONAL, panels["f_C"], above=-math.inf, below=0),
            _WHY_PERSONAL,
        ),
        Claim(
            "personal-eps_C",
            "5.1, Figure 6(b)",
            "“larger ε_C induces better accuracy”",
            _rises_with_personal_epsilon(judged, panels["eps_C"]),
            _WHY_PERSONAL,
        ),
        Claim(
            "personal-eps_M",
            "5.1, Figure 6(c)",
            "“larger ε_M leads to better accuracy”",
            _rises_with_personal_epsilon(judged, panels["eps_M"]),
            _WHY_PERSONAL,
        ),
        Claim(
            "personal-voters",
            "5.1, Figures 6(b), 6(c)",
            "“larger … N will induce better accuracy”",
            judged.higher("{series}: N = 200 minus N = 50", PERSONAL, most, fewest),
            "A mean over more voters carries less noise, once each voter's estimate carries some signal.",
        ),
        Claim(
            "personal-panels",
            "5.1, Figure 6",
            "“the accuracy of Figure 6(b) is higher than that of Figure 6(c)”",
            judged.parts(
                "{series}: mean of panel (b) minus mean of panel (c)",
                PERSONAL,
                lambda s, t: advantage(*(curves(results, panels[panel], s, t) for panel in ("eps_C", "eps_M"))),
                above=0,
            ),
            "In (c) the conservative voters' epsilons begin at 0.01 throughout.",
        ),
        Claim(
            "norm-bound",
            "5.1, Figure 7",
            "“relatively higher when norm bound around 2 or 3”",
            _around_two_or_three(judged),
            "Noise and preference scale with B alike until B is so large that it no longer binds: the accuracy is "
            "nearly flat in B.",
        ),
    ]


def real_claims(results: Results, data: MoralMachineSource) -> list[Claim]:
    """Check every sentence of Section 5.2 that makes a claim."""
    judged = JudgedResults(results, ("agreement", "predicted"))
    where = [plan.real(data, n) for n in plan.REAL_VOTERS]
    compared = plan.real(data, plan.REAL_COMPARISON_VOTERS)
    few, many = ([plan.real(data, n)] for n in (min(plan.REAL_VOTERS), max(plan.REAL_VOTERS)))

    def behind(series: str, truth: str) -> Interval:
        lead = results.curve(compared, series, truth).values - results.curve(compared, ALGORITHM_2, truth).values
        return certainly_below_zero(lead.T)

    return [
        Claim(
            "real-epsilon",
            "5.2, Figure 8(a)-(c)",
            "“larger ε will induce better accuracy”",
            judged.rises(_RISE, PRIVATE, where),
            "As on synthetic data.",
        ),
        Claim(
            "real-voters",
            "5.2, Figure 8(a)-(c)",
            "“larger N … will induce better accuracy”",
            judged.higher("{series}{truth}: N = 200 minus N = 50, mean over ε", PRIVATE, many, few),
            "As on synthetic data.",
        ),
        Claim(
            "real-first-is-best",
            "5.2, Figure 8(d)",
            "“Algorithm 1 relatively outperforms Algorithms 2 and 3”",
            judged.trails(_FIRST_MINUS, (ALGORITHM_2, *THIRD), [compared], ALGORITHM_1),
            "Algorithm 1 adds noise once, the others once per voter.",
        ),
        Claim(
            "real-second-is-lowest",
            "5.2, Figure 8(d)",
            "“Algorithm 2 has the lowest accuracy in all cases”",
            judged.parts(
                "number of ε at which Algorithm 2 is certainly above {series}{truth}",
                (ALGORITHM_1, *THIRD),
                behind,
                below=0.5,
            ),
            "As printed, Algorithm 3 stays a coin while Algorithm 2 rises with ε.",
        ),
        Claim(
            "real-functional-beats-laplace",
            "5.2, Figure 8(d)",
            "“superiority of functional mechanism over Laplace” for RLDP",
            judged.leads(_MINUS_SECOND, THIRD, [compared], ALGORITHM_2),
            "With about 11 records and 299 noisy coefficients a voter, nothing of the objective is left.",
        ),
        *(
            Claim(
                f"real-personal-{panel}",
                f"5.2, Figure 9({letter})",
                f"“larger {_SYMBOLS[panel]} … will lead to higher accuracy”",
                _rises_with_personal_epsilon(judged, [plan.personal(data, plan.NO_PRIVACY_REAL_VOTERS, panel)]),
                "As on synthetic data: at these epsilons a private Algorithm 3 decides little better than a coin.",
            )
            for panel, letter in zip(_SYMBOLS, "ab", strict=True)
        ),
    ]


_RISE = "{series}{truth}: rise from ε = 0.01 to 10"
_FIRST_MINUS = "Algorithm 1 minus {series}{truth}, mean over ε"
_MINUS_SECOND = "{series} minus Algorithm 2{truth}, mean over ε"
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
        tuple(ClaimPart(f"{what} within α at γ = {g:g}", mean(curve.at(g)), above=1 - g) for g in GAMMAS),
        "The bound is a union bound; the exact probability is (1 − γ/d)^d, which is always a little more than 1 − γ.",
    )


def _maximum(results: Results) -> Claim:
    def part(series: str, what: str, counts: bool) -> ClaimPart:
        found = curves(results, plan.all_synthetic(), series, WITHOUT_MAXIMUM)
        at_ten = joined(curve.at(10.0) for curve in found)
        return ClaimPart(f"{what}: voters without a maximum at ε = 10", mean(at_ten), below=0.05, counts=counts)

    return Claim(
        "maximum-exists",
        "4.4, Algorithm 3",
        "β* = argmax of the noisy objective",
        (part(PRINTED.name, "as printed", True), part(RAW_PRINTED.name, "NOT PRIVATE, records not scaled", False)),
        "Records of length at most 1 curve the objective by less than the noise added to its coefficients: the noisy "
        "quadratic opens upwards in some direction, and has no maximum. “As printed” shows its stationary point "
        "instead. The repair is that of Zhang et al. 2012: regularise, drop directions that open upwards, project.",
    )


def _rises_step_by_step(judged: JudgedResults, where: Sequence[EpsilonSweep]) -> tuple[ClaimPart, ...]:
    """Measure whether curves end higher than they begin; the number of steps that go down is context."""
    measured: list[ClaimPart] = []
    for series in PRIVATE:
        down = steps_down(curves(judged.results, where, series, *judged.truths))
        measured += judged.rises(_RISE, (series,), where)
        measured.append(ClaimPart(f"{SHORT[series]}: steps that certainly go down", down, below=0.5, counts=False))
    return tuple(measured)


def _rises_with_personal_epsilon(judged: JudgedResults, where: Sequence[PersonalEpsilonSweep]) -> tuple[ClaimPart, ...]:
    first, *_, last = (point for point, _ in where[0].settings)
    return judged.rises(f"{{series}}{{truth}}: rise from {first:g} to {last:g}", PERSONAL, where)


def _third_minus_second(judged: JudgedResults, where: Sequence[EpsilonSweep]) -> tuple[ClaimPart, ...]:
    second = curves(judged.results, where, ALGORITHM_2, *judged.truths)
    measured: list[ClaimPart] = []
    for series in THIRD:
        third = curves(judged.results, where, series, *judged.truths)
        for epsilon in (1.0, 10.0):
            gain = mean(joined(a.at(epsilon) - b.at(epsilon) for a, b in zip(third, second, strict=True)))
            label = f"{SHORT[series]} minus Algorithm 2 at ε = {epsilon:g}"
            measured.append(ClaimPart(label, gain, above=0, counts=series in PRIVATE))
    return tuple(measured)


def _falls_with_dimension(judged: JudgedResults, series: tuple[str, ...]) -> tuple[ClaimPart, ...]:
    low = min(plan.FEATURES_GRID)
    high = max(plan.FEATURES_GRID)
    words = f"{{series}}: d = {high} minus d = {low}, mean over ε = 0.1, 1, 10"
    return judged.higher(words, series, [plan.dimension(high)], [plan.dimension(low)], above=-math.inf, below=0)


def _around_two_or_three(judged: JudgedResults) -> tuple[ClaimPart, ...]:
    bounds = np.array(plan.BOUNDS_GRID)
    measured: list[ClaimPart] = []
    for series in (ALGORITHM_1, ALGORITHM_2):
        found = curves(judged.results, [plan.norm_bounds(n) for n in plan.VOTERS], series, *judged.truths)
        around = [curve.where(np.isin(bounds, (2, 3))) for curve in found]
        for words, others in (("smaller", bounds < 2), ("larger", bounds > 3)):
            gain = advantage(around, [curve.where(others) for curve in found])
            measured.append(ClaimPart(f"{SHORT[series]}: B = 2 and 3 minus {words} B, ε = 0.1", gain, above=0))
    return tuple(measured)
