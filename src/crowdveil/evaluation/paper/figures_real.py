"""The figures on Moral Machine data, the paper's 8 and 9, and the ratio to no privacy, its 10."""

from __future__ import annotations

from crowdveil.evaluation.paper import plan, settings
from crowdveil.evaluation.paper.across_epsilons import ALGORITHM_1, ALGORITHM_2, NO_PRIVACY
from crowdveil.evaluation.paper.across_personal_epsilons import PERSONAL_VARIANTS
from crowdveil.evaluation.paper.baselines import UNBOUNDED
from crowdveil.evaluation.paper.crowds import MoralMachine
from crowdveil.evaluation.paper.figure_words import BESIDE_THE_PAPER
from crowdveil.evaluation.paper.panels import (
    ALGORITHM_LOOKS,
    EPSILON,
    SERIES,
    SHORT,
    STEPS,
    THIRD,
    FigurePlan,
    Panel,
    all_series,
    level,
    line,
    ratio_line,
)
from crowdveil.evaluation.paper.results import Results

TRUTHS = {"agreement": "agrees with all voters' society", "predicted": "people's answers predicted"}


def real_figures(data: MoralMachine) -> list[FigurePlan]:
    """Figures 8 and 9."""
    return [_each(data), _comparison(data), _personal(data)]


def _each(data: MoralMachine) -> FigurePlan:
    def panels(results: Results) -> list[Panel]:
        return [
            Panel(
                SHORT[one],
                EPSILON,
                words,
                tuple(
                    line(f"N = {voters}", look, results.curve(plan.real(data, voters), one, truth))
                    for look, voters in zip(STEPS, settings.REAL_VOTERS, strict=True)
                ),
                log_x=True,
            )
            for one in (ALGORITHM_1, ALGORITHM_2, *THIRD)
            for truth, words in TRUTHS.items()
        ]

    experiments = tuple(plan.real(data, voters) for voters in settings.REAL_VOTERS)
    title, name = "Each algorithm on Moral Machine data, by two truths", "moral-machine"
    return FigurePlan(name, title, "Figure 8(a)-(c)", 2, experiments, panels, BESIDE_THE_PAPER[name])


def _comparison(data: MoralMachine) -> FigurePlan:
    compared = plan.real(data, settings.REAL_COMPARISON_VOTERS)

    def panels(results: Results) -> list[Panel]:
        return [
            Panel(
                f"N = {settings.REAL_COMPARISON_VOTERS}",
                EPSILON,
                words,
                all_series(results, compared, truth),
                log_x=True,
                level=("no privacy (B = 2)", level(results, compared, truth)),
            )
            for truth, words in TRUTHS.items()
        ]

    title, name = "The three algorithms compared on Moral Machine data, by two truths", "moral-machine-comparison"
    return FigurePlan(name, title, "Figure 8(d)", 2, (compared,), panels, BESIDE_THE_PAPER[name])


def _personal(data: MoralMachine) -> FigurePlan:
    labels = {"eps_C": "ε_C (ε_M = 0.5)", "eps_M": "ε_M (ε_C = 0.01)"}
    voters = settings.NO_PRIVACY_REAL_VOTERS

    def panels(results: Results) -> list[Panel]:
        return [
            Panel(
                f"N = {voters}",
                label,
                words,
                tuple(
                    line(
                        SHORT[v.name],
                        ALGORITHM_LOOKS[v.name],
                        results.curve(plan.personal(data, voters, panel), v.name, truth),
                    )
                    for v in PERSONAL_VARIANTS
                ),
            )
            for truth, words in TRUTHS.items()
            for panel, label in labels.items()
        ]

    experiments = tuple(plan.personal(data, voters, panel) for panel in labels)
    title, name = "Algorithm 3 with personal epsilons on Moral Machine data", "moral-machine-personal-epsilons"
    return FigurePlan(name, title, "Figure 9", 2, experiments, panels, BESIDE_THE_PAPER[name])


def no_privacy_figure(data: MoralMachine | None) -> FigurePlan:
    """Figure 10; without real data, its synthetic half."""
    made_up = plan.synthetic(settings.NO_PRIVACY_VOTERS, settings.NO_PRIVACY_RECORDS)
    free = plan.baselines(settings.NO_PRIVACY_VOTERS, settings.NO_PRIVACY_RECORDS)
    sampled = None if data is None else plan.real(data, settings.NO_PRIVACY_REAL_VOTERS)
    where = f"N = {settings.NO_PRIVACY_VOTERS}, n = {settings.NO_PRIVACY_RECORDS}"

    def panels(results: Results) -> list[Panel]:
        shown = [
            (
                f"synthetic, {where}, to bounded fits",
                made_up,
                "accuracy",
                results.curve(made_up, NO_PRIVACY, "accuracy"),
            ),
            (f"synthetic, {where}, to unbounded fits", made_up, "accuracy", results.curve(free, UNBOUNDED, "accuracy")),
        ]
        if sampled is not None:
            real = f"Moral Machine, N = {settings.NO_PRIVACY_REAL_VOTERS}"
            shown += [
                (f"{real}: {words}", sampled, truth, results.curve(sampled, NO_PRIVACY, truth))
                for truth, words in TRUTHS.items()
            ]
        return [
            Panel(
                title,
                EPSILON,
                "ratio to no privacy",
                tuple(
                    ratio_line(
                        SHORT[one],
                        ALGORITHM_LOOKS[one],
                        results.curve(experiment, one, truth),
                        baseline.only,
                    )
                    for one in SERIES
                ),
                log_x=True,
                marks=((0.3, 0.8), (1.0, 0.9)),
            )
            for title, experiment, truth, baseline in shown
        ]

    experiments = (made_up, free) if sampled is None else (made_up, free, sampled)
    title, name = "Accuracy relative to no privacy (stars: where the paper says its curves are)", "compare-no-privacy"
    return FigurePlan(name, title, "Figure 10", 2, experiments, panels, BESIDE_THE_PAPER[name])
