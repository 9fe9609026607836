"""The figures on synthetic data: the paper's 1 to 7, and one that explains its third."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from crowdveil.evaluation.paper import plan, settings
from crowdveil.evaluation.paper.across_epsilons import ALGORITHM_1, ALGORITHM_2, NO_PRIVACY, WITHOUT_MAXIMUM
from crowdveil.evaluation.paper.across_personal_epsilons import PERSONAL_VARIANTS
from crowdveil.evaluation.paper.crowds import RECORDS, Synthetic
from crowdveil.evaluation.paper.curves import PRINTED, RAW_PRINTED
from crowdveil.evaluation.paper.figure_words import BESIDE_THE_PAPER
from crowdveil.evaluation.paper.panels import (
    ALGORITHM_LOOKS,
    EPSILON,
    SHORT,
    STEPS,
    THIRD,
    FigurePlan,
    Look,
    Panel,
    all_series,
    level,
    line,
)
from crowdveil.evaluation.paper.results import Curve, Results

ACCURACY = "accuracy"


def synthetic_figures() -> list[FigurePlan]:
    """Figures 1 to 7."""
    return [
        _algorithm("algorithm-1", "Figure 1", (ALGORITHM_1,)),
        _algorithm("algorithm-2", "Figure 2", (ALGORITHM_2,)),
        _algorithm("algorithm-3", "Figure 3", THIRD),
        _comparison(),
        _dimension(),
        _personal(),
        _norm_bound(),
    ]


def _algorithm(name: str, paper: str, series: tuple[str, ...]) -> FigurePlan:
    def panels(results: Results) -> list[Panel]:
        return [
            Panel(
                f"{SHORT[one]}, N = {voters}",
                EPSILON,
                ACCURACY,
                tuple(
                    line(f"n = {records}", look, results.curve(plan.synthetic(voters, records), one, "accuracy"))
                    for look, records in zip(STEPS, settings.RECORDS_GRID, strict=False)
                ),
                log_x=True,
            )
            for one in series
            for voters in settings.VOTERS
        ]

    title = f"{SHORT[series[0]].split(',')[0]}: accuracy against ε on synthetic data"
    return FigurePlan(name, title, paper, 2, tuple(plan.all_synthetic()), panels, BESIDE_THE_PAPER[name])


def _comparison() -> FigurePlan:
    def panels(results: Results) -> list[Panel]:
        return [
            Panel(
                f"N = {voters}, n = {RECORDS}",
                EPSILON,
                ACCURACY,
                all_series(results, plan.synthetic(voters), "accuracy"),
                log_x=True,
                level=("no privacy (B = 2)", level(results, plan.synthetic(voters), "accuracy")),
            )
            for voters in settings.VOTERS
        ]

    experiments = tuple(plan.synthetic(voters) for voters in settings.VOTERS)
    title, name = "The three algorithms compared on synthetic data", "compare-algorithms"
    return FigurePlan(name, title, "Figure 4", 2, experiments, panels, BESIDE_THE_PAPER[name])


def _dimension() -> FigurePlan:
    def panels(results: Results) -> list[Panel]:
        made = []
        for one in (ALGORITHM_1, ALGORITHM_2, *THIRD):
            curves = [results.curve(plan.dimension(d), one, "accuracy") for d in settings.FEATURES_GRID]
            lines = tuple(
                line(f"ε = {epsilon:g}", look, _across([curve.at(epsilon) for curve in curves], settings.FEATURES_GRID))
                for look, epsilon in zip(STEPS, settings.DIMENSION_EPSILONS, strict=False)
            )
            title = f"{SHORT[one]}, N = {settings.DIMENSION_VOTERS}"
            made.append(Panel(title, "number of features d", ACCURACY, lines))
        return made

    experiments = tuple(plan.dimension(d) for d in settings.FEATURES_GRID)
    title, name = "Accuracy against the dimension d on synthetic data", "dimension"
    return FigurePlan(name, title, "Figure 5", 3, experiments, panels, BESIDE_THE_PAPER[name])


def _personal() -> FigurePlan:
    source = Synthetic()
    labels = {"f_C": "fraction f_C", "eps_C": "ε_C (ε_M = 0.5)", "eps_M": "ε_M (ε_C = 0.01)"}

    def panels(results: Results) -> list[Panel]:
        return [
            Panel(
                SHORT[variant.name],
                labels[panel],
                ACCURACY,
                tuple(
                    line(
                        f"N = {voters}",
                        look,
                        results.curve(plan.personal(source, voters, panel), variant.name, "accuracy"),
                    )
                    for look, voters in zip(STEPS, settings.PERSONAL_VOTERS, strict=False)
                ),
            )
            for variant in PERSONAL_VARIANTS
            for panel in plan.PANELS
        ]

    experiments = tuple(plan.personal(source, n, panel) for panel in plan.PANELS for n in settings.PERSONAL_VOTERS)
    title, name = "Algorithm 3 with personal epsilons on synthetic data", "personal-epsilons"
    return FigurePlan(name, title, "Figure 6", 3, experiments, panels, BESIDE_THE_PAPER[name])


def _norm_bound() -> FigurePlan:
    def panels(results: Results) -> list[Panel]:
        made = []
        for voters in settings.VOTERS:
            experiment = plan.norm_bounds(voters)
            lines = [
                line(SHORT[one], ALGORITHM_LOOKS[one], results.curve(experiment, one, "accuracy"))
                for one in (ALGORITHM_1, ALGORITHM_2)
            ]
            exact = results.curve(experiment, NO_PRIVACY, "accuracy")
            lines.append(line("no privacy", Look("#444444", ".", "--"), exact))
            title = f"N = {voters}, n = {RECORDS}, ε = {settings.BOUNDS_EPSILON:g}"
            made.append(Panel(title, "norm bound B", ACCURACY, tuple(lines)))
        return made

    experiments = tuple(plan.norm_bounds(voters) for voters in settings.VOTERS)
    title, name = "Accuracy against the norm bound B", "norm-bound"
    return FigurePlan(name, title, "Figure 7", 2, experiments, panels, BESIDE_THE_PAPER[name])


def maximum_figure() -> FigurePlan:
    """Where the maximum that Algorithm 3 takes exists at all."""

    def panels(results: Results) -> list[Panel]:
        return [
            Panel(
                SHORT[one],
                EPSILON,
                "voters without a maximum",
                tuple(
                    line(f"n = {records}", look, results.curve(plan.synthetic(100, records), one, WITHOUT_MAXIMUM))
                    for look, records in zip(STEPS, settings.RECORDS_GRID, strict=False)
                ),
                log_x=True,
            )
            for one in (PRINTED.name, RAW_PRINTED.name)
        ]

    experiments = tuple(plan.synthetic(100, records) for records in settings.RECORDS_GRID)
    title, name = "Algorithm 3: the share of voters whose noisy objective has no maximum", "algorithm-3-maximum"
    return FigurePlan(name, title, "not in the paper", 2, experiments, panels, BESIDE_THE_PAPER[name])


def _across(values: Iterable[np.ndarray[tuple[int, ...], np.dtype[np.float64]]], points: tuple[int, ...]) -> Curve:
    """Join one point each of several experiments into a curve along what they differ in."""
    return Curve(tuple(map(float, points)), np.stack(list(values), axis=1))
