"""What reaches the paper's headline: its two thresholds, asked of the recommended mechanism of every paradigm."""

from __future__ import annotations

from crowdveil.evaluation.paper import plan
from crowdveil.evaluation.paper.across_epsilons import ALGORITHM_1, ALGORITHM_2, NO_PRIVACY, AcrossEpsilons
from crowdveil.evaluation.paper.claim import Claim, Part
from crowdveil.evaluation.paper.crowds import MoralMachine, Synthetic
from crowdveil.evaluation.paper.curves import REPAIRED
from crowdveil.evaluation.paper.experiment import Experiment
from crowdveil.evaluation.paper.intervals import ratio
from crowdveil.evaluation.paper.panels import SHORT
from crowdveil.evaluation.paper.results import Results
from crowdveil.privacy.guarantee import PARADIGMS, Paradigm

PAPERS = {
    "vlcp": ALGORITHM_1,
    "rlcp": ALGORITHM_1,
    "vldp": ALGORITHM_2,
    "rldp": REPAIRED.name,
    "alcp": ALGORITHM_1,
    "aldp": REPAIRED.name,
}
"""The paper's series for each paradigm. It has none for answers, but what protects a record protects its answer."""
THRESHOLDS = ((0.3, 0.5, 0.8), (1.0, 2.0, 0.9))
"""Beyond which epsilon, the nearest one of the grid beyond it, and which share of the accuracy without privacy."""
HEADLINE = "above 80 % of the accuracy without privacy at ε > 0.3, above 90 % at ε > 1"


def reached(results: Results, data: MoralMachine | None) -> list[Claim]:
    """Ask each paradigm's recommended mechanism for what the paper promises of its own."""
    return [_headline(results, where, paradigm) for where in plan.headline(data) for paradigm in PARADIGMS.values()]


def truths(where: AcrossEpsilons) -> dict[str, str]:
    """Return what the thresholds are asked by, in words: m on synthetic crowds, both truths on real ones."""
    if isinstance(where.source, Synthetic):
        return {"accuracy": "accuracy"}
    return {"agreement": "agreement with the society of all voters", "predicted": "people's answers predicted"}


def _headline(results: Results, where: AcrossEpsilons, paradigm: Paradigm) -> Claim:
    kind = "synthetic" if isinstance(where.source, Synthetic) else "real"
    ours, papers = plan.recommended(where), PAPERS[paradigm.name]

    def part(of: Experiment, series: str, truth: str, epsilon: float, wanted: float, counts: bool) -> Part:
        share = ratio(results.curve(of, series, truth).at(epsilon), results.curve(where, NO_PRIVACY, truth).only)
        who = "recommended" if of is ours else SHORT[series]
        return Part(f"{who}, {truth}: ratio at ε = {epsilon:g}", share, above=wanted, counts=counts)

    parts = []
    for truth in truths(where):
        for edge, first, wanted in THRESHOLDS:
            parts.append(part(ours, paradigm.name, truth, first, wanted, True))
            parts.append(part(ours, paradigm.name, truth, edge, wanted, False))
            parts.append(part(where, papers, truth, first, wanted, False))
    return Claim(
        f"reached-{kind}-{paradigm.name}",
        f"{paradigm.name.upper()}, {kind}",
        f"{HEADLINE} (N = {where.voters})",
        tuple(parts),
        WHY[paradigm.name] + (_WHY_REAL if kind == "real" and paradigm.name != "vldp" else ""),
    )


WHY = {
    "vlcp": "voter-score, and algorithm-1 where ballots are long and Nε is large, or short and Nε is small. The "
    "noise that hides one voter of N shrinks with Nε: with few voters a small ε hides the crowd as well.",
    "rlcp": "pooled-score. What has to be hidden is one record of all voters' records, not one voter.",
    "vldp": "subset-selection, whose error is the least that any purely private report of a corner of the ball has. Every "
    "voter's whole ballot is hidden from everybody: only more voters help.",
    "rldp": "score. Each voter hides one record among her own, so that many records per voter help; the Moral Machine's "
    "voters have about 11, against 23 features.",
    "alcp": "pooled-choices. The dilemmas shown are public here, and one answer among all has to be hidden.",
    "aldp": "randomised-response, and score where it tells more. The dilemmas shown are public here.",
}
"""Which mechanism it is, and what decides how far it comes."""
_WHY_REAL = (
    " Mechanisms of scores and answers fit one preference to everybody, which predicts people better than the paper's "
    "society, the mean of bounded fits, does, and so agrees with that society less, with or without noise. Of "
    "predictions even a coin has 0.75 of what there is without privacy."
)
