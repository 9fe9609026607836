"""The claims of Section 5.1 about personal epsilons."""

from __future__ import annotations

from crowdveil.evaluation.paper import plan, settings
from crowdveil.evaluation.paper.across_personal_epsilons import PERSONAL_VARIANTS
from crowdveil.evaluation.paper.claim import Claim, Part, advantage, between, curves, private, rise
from crowdveil.evaluation.paper.crowds import Synthetic
from crowdveil.evaluation.paper.panels import SHORT
from crowdveil.evaluation.paper.results import Results

ACCURACY = "accuracy"
_WHY_PERSONAL = (
    "Every voter counts the same however noisy, so that what conservative voters report decides. At these ε a private "
    "Algorithm 3 is close to a coin whatever the groups are, and there is little to see."
)


def personal_claims(results: Results) -> list[Claim]:
    """Every sentence about Figure 6."""
    return [
        _fraction(results),
        _personal(results, "eps_C", "larger ε_C induces better accuracy"),
        _personal(results, "eps_M", "larger ε_M leads to better accuracy"),
        _voters(results),
        _panels(results),
    ]


def _fraction(results: Results) -> Claim:
    where = [plan.personal(Synthetic(), n, "f_C") for n in settings.PERSONAL_VOTERS]
    return Claim(
        "conservative-fraction",
        "5.1, Figure 6(a)",
        "“the accuracy will be reduced when increasing f_C”",
        tuple(
            Part(
                f"{SHORT[v.name]}: f_C = 0.6 minus f_C = 0.1",
                rise(curves(results, where, v.name, ACCURACY)),
                below=0,
                counts=private(v.name),
            )
            for v in PERSONAL_VARIANTS
        ),
        _WHY_PERSONAL,
    )


def _personal(results: Results, panel: str, quote: str) -> Claim:
    where = [plan.personal(Synthetic(), n, panel) for n in settings.PERSONAL_VOTERS]
    ends = [point for point, _ in plan.PANELS[panel]]
    return Claim(
        f"personal-{panel}",
        "5.1, Figure 6(b)" if panel == "eps_C" else "5.1, Figure 6(c)",
        f"“{quote}”",
        tuple(
            Part(
                f"{SHORT[v.name]}: rise from {ends[0]:g} to {ends[-1]:g}",
                rise(curves(results, where, v.name, ACCURACY)),
                above=0,
                counts=private(v.name),
            )
            for v in PERSONAL_VARIANTS
        ),
        _WHY_PERSONAL,
    )


def _voters(results: Results) -> Claim:
    few, many = (
        [plan.personal(Synthetic(), n, panel) for panel in ("eps_C", "eps_M")]
        for n in (min(settings.PERSONAL_VOTERS), max(settings.PERSONAL_VOTERS))
    )
    return Claim(
        "personal-voters",
        "5.1, Figures 6(b), 6(c)",
        "“larger … N will induce better accuracy”",
        tuple(
            Part(
                f"{SHORT[v.name]}: N = 200 minus N = 50",
                between(results, many, few, v.name, ACCURACY),
                above=0,
                counts=private(v.name),
            )
            for v in PERSONAL_VARIANTS
        ),
        "A mean over more voters carries less noise, once each voter's estimate carries some signal.",
    )


def _panels(results: Results) -> Claim:
    wide, narrow = (
        [plan.personal(Synthetic(), n, panel) for n in settings.PERSONAL_VOTERS] for panel in ("eps_C", "eps_M")
    )
    return Claim(
        "personal-panels",
        "5.1, Figure 6",
        "“the accuracy of Figure 6(b) is higher than that of Figure 6(c)”",
        tuple(
            Part(
                f"{SHORT[v.name]}: mean of panel (b) minus mean of panel (c)",
                advantage(curves(results, wide, v.name, ACCURACY), curves(results, narrow, v.name, ACCURACY)),
                above=0,
                counts=private(v.name),
            )
            for v in PERSONAL_VARIANTS
        ),
        "In (c) the conservative voters' epsilons begin at 0.01 throughout.",
    )
