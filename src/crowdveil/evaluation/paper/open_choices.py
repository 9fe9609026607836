"""Choices that the paper leaves open, what was chosen, and how much it matters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdveil.evaluation.paper import plan
from crowdveil.evaluation.paper.algorithms import REPAIRED
from crowdveil.evaluation.paper.experiments import ALGORITHM_1, NO_PRIVACY, SEPARABLE, UNBOUNDED
from crowdveil.evaluation.toolkit.accuracy import half_width, mean
from crowdveil.evaluation.toolkit.crowds import TEST_PAIRS, MoralMachine
from crowdveil.evaluation.toolkit.sweep import Results


@dataclass(frozen=True)
class OpenChoice:
    """One thing that the paper does not say."""

    question: str
    chosen: str
    matters: str


def open_choices(results: Results, data: MoralMachine | None) -> list[OpenChoice]:
    """Return every open choice with its measured weight."""
    return [
        _truth(results),
        _test_pairs(results),
        _runs(results),
        _baseline(results),
        _record_bound(results),
        OpenChoice(
            "Which n in Figures 1 to 3, which N in Figure 6, which ε and N in Figure 5",
            f"n = {_listed(plan.RECORDS_GRID)}; N = {_listed(plan.PERSONAL_VOTERS)}; "
            f"ε = {_listed(plan.DIMENSION_EPSILONS)} with N = {plan.DIMENSION_VOTERS}",
            "Each is a line of its own in the figure.",
        ),
        *([] if data is None else [_real_truth(results, data)]),
    ]


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _truth(results: Results) -> OpenChoice:
    where = plan.synthetic(plan.NO_PRIVACY_VOTERS, plan.NO_PRIVACY_RECORDS)
    said = []
    for measure, words in (
        ("accuracy", "m"),
        ("against the mean of the drawn preferences", "the mean of the drawn β_i"),
        ("against the crowd without privacy", "the same crowd without privacy"),
    ):
        exact = results.curve(where, NO_PRIVACY, measure).only.mean()
        private = results.curve(where, ALGORITHM_1, measure).at(1.0).mean()
        said.append(f"against {words}: {exact:.3f} without privacy, {private:.3f} for Algorithm 1 at ε = 1")
    return OpenChoice(
        "What the “true parameter” of a synthetic crowd is", "m, which generated the crowd", "; ".join(said) + "."
    )


def _test_pairs(results: Results) -> OpenChoice:
    where = plan.synthetic(plan.NO_PRIVACY_VOTERS, plan.NO_PRIVACY_RECORDS)
    sampled, exact = (
        results.curve(where, ALGORITHM_1, measure).values for measure in ("accuracy", "accuracy on all pairs")
    )
    apart = float(np.abs(sampled.mean(axis=0) - exact.mean(axis=0)).max())
    return OpenChoice(
        "How many test pairs",
        f"{TEST_PAIRS:,} fresh Gaussian pairs for each crowd",
        "Infinitely many have a closed form, 1 − angle/π. It moves a crowd's accuracy by "
        f"{np.std(sampled - exact):.4f} (standard deviation) and no point of a curve by more than {apart:.4f}.",
    )


def _runs(results: Results) -> OpenChoice:
    curve = results.curve(plan.synthetic(50), ALGORITHM_1, "accuracy")
    crowds = len(curve.values)
    wide = half_width(curve.values)
    spread = float(curve.values.std(axis=0, ddof=1).max())
    return OpenChoice(
        "How many runs are averaged",
        f"{crowds} crowds, each with data and noise of its own",
        f"Half of a 95 % band is at most {float(wide.max()):.4f} (Algorithm 1, N = n = 50); a single run is off by up "
        f"to {spread:.3f} (standard deviation).",
    )


def _baseline(results: Results) -> OpenChoice:
    said = []
    for voters, records in ((50, 20), (50, 50), (50, 100)):
        where = plan.baselines(voters, records)
        share = results.curve(where, UNBOUNDED, SEPARABLE).only.mean()
        bounded = results.curve(where, NO_PRIVACY, "accuracy").only.mean()
        free = results.curve(where, UNBOUNDED, "accuracy").only
        others = "nobody has one" if np.isnan(free).all() else f"of the others {np.nanmean(free):.3f}"
        said.append(f"n = {records}: {share:.1%} of voters have none; mean of bounded fits {bounded:.3f}, {others}")
    return OpenChoice(
        "What to do with voters who have no unbounded estimate",
        "the mean of bounded fits (B = 2) is the baseline; beside it, the mean over voters who have an unbounded one",
        "N = 50. " + "; ".join(said) + ".",
    )


def _record_bound(results: Results) -> OpenChoice:
    curve = results.curve(plan.record_bounds(), REPAIRED.name, "accuracy")
    said = ", ".join(f"{mean(curve.at(p)).estimate:.3f} at {p:g}" for p in curve.points)
    return OpenChoice(
        "How records are scaled for Algorithm 3 (‖V‖ ≤ 1)",
        "by a public bound that fewer than one in 1,000 exceeds (8.0 at d = 10), the few longer ones cut; “records "
        "cut” is the other extreme, a bound of 1 that cuts nearly all",
        f"A smaller bound cuts more records, and keeps more of the rest: accuracy of the repaired algorithm at ε = 1, "
        f"N = 100, n = 50 is {said}.",
    )


def _real_truth(results: Results, data: MoralMachine) -> OpenChoice:
    where = plan.real(data, plan.NO_PRIVACY_REAL_VOTERS)
    agreement, predicted = (results.curve(where, NO_PRIVACY, t).only.mean() for t in ("agreement", "predicted"))
    return OpenChoice(
        "What the truth is on real data",
        "two, side by side, on the dilemmas of everybody who is not in the crowd: what the society of all voters "
        "(mean of fits, B = 2) chooses, and what each person chose",
        f"Without privacy, 200 voters agree with the society of all on {agreement:.3f}, and predict {predicted:.3f} of "
        "people's choices: two different qualities.",
    )
