"""Every figure by name: the paper's ten, one that explains its third, and those of the recommended mechanisms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from crowdveil.errors import CrowdveilError
from crowdveil.evaluation.paper import plan
from crowdveil.evaluation.paper.experiments import (
    ALGORITHM_1,
    ALGORITHM_2,
    CUT,
    NO_PRIVACY,
    PERSONAL_VARIANTS,
    PRINTED,
    RAW_PRINTED,
    RAW_REPAIRED,
    REPAIRED,
    UNBOUNDED,
    WITHOUT_MAXIMUM,
    EpsilonSweep,
)
from crowdveil.evaluation.paper.headline import PAPERS_SERIES, THRESHOLDS, truths
from crowdveil.evaluation.paper.plan import BESIDE_THE_PAPER, SHORT, THIRD
from crowdveil.evaluation.toolkit.crowds import RECORDS, MoralMachineSource, SyntheticSource
from crowdveil.evaluation.toolkit.plotting import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    STEPS,
    FigurePlan,
    Line,
    LineStyle,
    Panel,
    line,
    ratio_line,
)
from crowdveil.evaluation.toolkit.sweep import Curve, Experiment, Results
from crowdveil.privacy.guarantee import PARADIGMS

FIGURE_NAMES = tuple(BESIDE_THE_PAPER)
NEED_DATA = tuple(name for name in FIGURE_NAMES if name.startswith("moral-machine"))

ACCURACY = "accuracy"
TRUTHS = {"agreement": "agrees with all voters' society", "predicted": "people's choices predicted"}
EPSILON = "privacy parameter ε"
_PERSONAL_LABELS = {"f_C": "fraction f_C", "eps_C": "ε_C (ε_M = 0.5)", "eps_M": "ε_M (ε_C = 0.01)"}
_LOOKS = {
    ALGORITHM_1: LineStyle(BLUE, "o"),
    ALGORITHM_2: LineStyle(ORANGE, "s"),
    PRINTED.name: LineStyle(PURPLE, "v"),
    REPAIRED.name: LineStyle(GREEN, "^"),
    CUT.name: LineStyle(SKY, "D"),
    RAW_PRINTED.name: LineStyle(GREY, "x", ":"),
    RAW_REPAIRED.name: LineStyle(GREY, "+", "--"),
}
_MARKS = tuple((edge, wanted) for edge, _, wanted in THRESHOLDS)


def figures(data: MoralMachineSource | None) -> dict[str, FigurePlan]:
    """Return the figures in the order of their names; those on real data only if there is a file."""
    synthetic, *real = plan.headline(data)
    plans = [
        _algorithm("algorithm-1", "Figure 1", (ALGORITHM_1,)),
        _algorithm("algorithm-2", "Figure 2", (ALGORITHM_2,)),
        _algorithm("algorithm-3", "Figure 3", THIRD),
        _comparison(),
        _dimension(),
        _personal(),
        _norm_bound(),
        *([] if data is None else [_real(data), _real_comparison(data), _real_personal(data)]),
        _no_privacy(synthetic, real),
        _maximum(),
        _recommended("recommended", "on synthetic data", synthetic),
        *(_recommended("moral-machine-recommended", "on Moral Machine data, by two truths", one) for one in real),
    ]
    return {one.name: one for one in plans}


def check_figure_name(name: str) -> None:
    """Refuse an unknown name of a figure."""
    if name not in FIGURE_NAMES:
        raise CrowdveilError(f"there is no figure {name!r}: choose one of {', '.join(FIGURE_NAMES)}")


def _figure(
    name: str,
    title: str,
    paper: str,
    columns: int,
    experiments: Iterable[Experiment],
    panels: Callable[[Results], list[Panel]],
) -> FigurePlan:
    return FigurePlan(name, title, paper, columns, tuple(experiments), panels, BESIDE_THE_PAPER[name])


def _steps(labels: Iterable[str], curves: Iterable[Curve]) -> tuple[Line, ...]:
    """Return lines that differ by a number."""
    return tuple(line(label, style, curve) for label, style, curve in zip(labels, STEPS, curves, strict=False))


def _by_records(results: Results, voters: int, series: str, measure: str) -> tuple[Line, ...]:
    return _steps(
        [f"n = {records}" for records in plan.RECORDS_GRID],
        [results.curve(plan.synthetic(voters, records), series, measure) for records in plan.RECORDS_GRID],
    )


def _by_series(results: Results, experiment: Experiment, series: Iterable[str], measure: str) -> tuple[Line, ...]:
    return tuple(line(SHORT[one], _LOOKS[one], results.curve(experiment, one, measure)) for one in series)


def _all_series(results: Results, experiment: EpsilonSweep, title: str, measure: str, words: str) -> Panel:
    """Return a panel with every algorithm on the same crowds, and their level without privacy."""
    level = float(results.curve(experiment, NO_PRIVACY, measure).only.mean())
    lines = _by_series(results, experiment, SHORT, measure)
    return Panel(title, EPSILON, words, lines, log_x=True, level=("no privacy (B = 2)", level))


def _algorithm(name: str, paper: str, series: tuple[str, ...]) -> FigurePlan:
    def panels(results: Results) -> list[Panel]:
        return [
            Panel(
                f"{SHORT[one]}, N = {voters}",
                EPSILON,
                ACCURACY,
                _by_records(results, voters, one, ACCURACY),
                log_x=True,
            )
            for one in series
            for voters in plan.VOTERS
        ]

    title = f"{SHORT[series[0]].split(',')[0]}: accuracy against ε on synthetic data"
    return _figure(name, title, paper, 2, plan.all_synthetic(), panels)


def _comparison() -> FigurePlan:
    experiments = [plan.synthetic(voters) for voters in plan.VOTERS]

    def panels(results: Results) -> list[Panel]:
        return [
            _all_series(results, one, f"N = {one.voters}, n = {RECORDS}", ACCURACY, ACCURACY) for one in experiments
        ]

    title = "The three algorithms compared on synthetic data"
    return _figure("compare-algorithms", title, "Figure 4", 2, experiments, panels)


def _dimension() -> FigurePlan:
    experiments = [plan.dimension(d) for d in plan.FEATURES_GRID]

    def panels(results: Results) -> list[Panel]:
        made = []
        for one in (ALGORITHM_1, ALGORITHM_2, *THIRD):
            curves = [results.curve(experiment, one, ACCURACY) for experiment in experiments]
            across = [
                Curve(tuple(map(float, plan.FEATURES_GRID)), np.stack([c.at(epsilon) for c in curves], axis=1))
                for epsilon in plan.DIMENSION_EPSILONS
            ]
            lines = _steps([f"ε = {epsilon:g}" for epsilon in plan.DIMENSION_EPSILONS], across)
            title = f"{SHORT[one]}, N = {plan.DIMENSION_VOTERS}"
            made.append(Panel(title, "number of features d", ACCURACY, lines))
        return made

    title = "Accuracy against the dimension d on synthetic data"
    return _figure("dimension", title, "Figure 5", 3, experiments, panels)


def _personal() -> FigurePlan:
    experiments = {
        panel: [plan.personal(SyntheticSource(), n, panel) for n in plan.PERSONAL_VOTERS] for panel in plan.PANELS
    }

    def panels(results: Results) -> list[Panel]:
        return [
            Panel(
                SHORT[variant.name],
                _PERSONAL_LABELS[panel],
                ACCURACY,
                _steps(
                    [f"N = {one.voters}" for one in where],
                    [results.curve(one, variant.name, ACCURACY) for one in where],
                ),
            )
            for variant in PERSONAL_VARIANTS
            for panel, where in experiments.items()
        ]

    everything = [one for where in experiments.values() for one in where]
    title = "Algorithm 3 with personal epsilons on synthetic data"
    return _figure("personal-epsilons", title, "Figure 6", 3, everything, panels)


def _norm_bound() -> FigurePlan:
    experiments = [plan.norm_bounds(voters) for voters in plan.VOTERS]

    def panels(results: Results) -> list[Panel]:
        made = []
        for one in experiments:
            exact = line("no privacy", LineStyle("#444444", ".", "--"), results.curve(one, NO_PRIVACY, ACCURACY))
            lines = (*_by_series(results, one, (ALGORITHM_1, ALGORITHM_2), ACCURACY), exact)
            title = f"N = {one.voters}, n = {RECORDS}, ε = {plan.BOUNDS_EPSILON:g}"
            made.append(Panel(title, "norm bound B", ACCURACY, lines))
        return made

    return _figure("norm-bound", "Accuracy against the norm bound B", "Figure 7", 2, experiments, panels)


def _real(data: MoralMachineSource) -> FigurePlan:
    experiments = [plan.real(data, voters) for voters in plan.REAL_VOTERS]

    def panels(results: Results) -> list[Panel]:
        return [
            Panel(
                SHORT[series],
                EPSILON,
                words,
                _steps(
                    [f"N = {one.voters}" for one in experiments],
                    [results.curve(one, series, truth) for one in experiments],
                ),
                log_x=True,
            )
            for series in (ALGORITHM_1, ALGORITHM_2, *THIRD)
            for truth, words in TRUTHS.items()
        ]

    title = "Each algorithm on Moral Machine data, by two truths"
    return _figure("moral-machine", title, "Figure 8(a)-(c)", 2, experiments, panels)


def _real_comparison(data: MoralMachineSource) -> FigurePlan:
    compared = plan.real(data, plan.REAL_COMPARISON_VOTERS)

    def panels(results: Results) -> list[Panel]:
        return [
            _all_series(results, compared, f"N = {compared.voters}", truth, words) for truth, words in TRUTHS.items()
        ]

    title = "The three algorithms compared on Moral Machine data, by two truths"
    return _figure("moral-machine-comparison", title, "Figure 8(d)", 2, [compared], panels)


def _real_personal(data: MoralMachineSource) -> FigurePlan:
    experiments = {panel: plan.personal(data, plan.NO_PRIVACY_REAL_VOTERS, panel) for panel in ("eps_C", "eps_M")}

    def panels(results: Results) -> list[Panel]:
        variants = [variant.name for variant in PERSONAL_VARIANTS]
        return [
            Panel(f"N = {one.voters}", _PERSONAL_LABELS[panel], words, _by_series(results, one, variants, truth))
            for truth, words in TRUTHS.items()
            for panel, one in experiments.items()
        ]

    title = "Algorithm 3 with personal epsilons on Moral Machine data"
    return _figure("moral-machine-personal-epsilons", title, "Figure 9", 2, experiments.values(), panels)


def _no_privacy(synthetic: EpsilonSweep, real: Sequence[EpsilonSweep]) -> FigurePlan:
    """Plan Figure 10; without real data, only its synthetic half."""
    unbounded = plan.baselines(plan.NO_PRIVACY_VOTERS, plan.NO_PRIVACY_RECORDS)

    def panel(title: str, results: Results, of: EpsilonSweep, truth: str, baseline: Curve) -> Panel:
        lines = tuple(
            ratio_line(SHORT[one], _LOOKS[one], results.curve(of, one, truth), baseline.only) for one in SHORT
        )
        return Panel(title, EPSILON, "ratio to no privacy", lines, log_x=True, marks=_MARKS)

    def panels(results: Results) -> list[Panel]:
        where = f"synthetic, N = {plan.NO_PRIVACY_VOTERS}, n = {plan.NO_PRIVACY_RECORDS}"
        bounded = results.curve(synthetic, NO_PRIVACY, ACCURACY)
        free = results.curve(unbounded, UNBOUNDED, ACCURACY)
        return [
            panel(f"{where}, to bounded fits", results, synthetic, ACCURACY, bounded),
            panel(f"{where}, to unbounded fits", results, synthetic, ACCURACY, free),
            *(
                panel(
                    f"Moral Machine, N = {one.voters}: {words}",
                    results,
                    one,
                    truth,
                    results.curve(one, NO_PRIVACY, truth),
                )
                for one in real
                for truth, words in TRUTHS.items()
            ),
        ]

    title = "Accuracy relative to no privacy (stars: where the paper says its curves are)"
    return _figure("compare-no-privacy", title, "Figure 10", 2, [synthetic, unbounded, *real], panels)


def _maximum() -> FigurePlan:
    """Show where the maximum that Algorithm 3 takes exists."""

    def panels(results: Results) -> list[Panel]:
        return [
            Panel(
                SHORT[one],
                EPSILON,
                "voters without a maximum",
                _by_records(results, 100, one, WITHOUT_MAXIMUM),
                log_x=True,
            )
            for one in (PRINTED.name, RAW_PRINTED.name)
        ]

    experiments = [plan.synthetic(100, records) for records in plan.RECORDS_GRID]
    title = "Algorithm 3: the share of voters whose noisy objective has no maximum"
    return _figure("algorithm-3-maximum", title, "not in the paper", 2, experiments, panels)


def _recommended(name: str, words: str, papers: EpsilonSweep) -> FigurePlan:
    """Show the recommended mechanisms and the paper's, on the crowds of its last figure."""
    ours = plan.recommended(papers)

    def panels(results: Results) -> list[Panel]:
        made = []
        for truth, meaning in truths(papers).items():
            baseline = results.curve(papers, NO_PRIVACY, truth).only
            for paradigm in PARADIGMS.values():
                theirs = results.curve(papers, PAPERS_SERIES[paradigm.name], truth)
                recommended = results.curve(ours, paradigm.name, truth)
                lines = (
                    ratio_line(
                        "the paper's mechanism (Algorithm 3: repaired)", LineStyle(ORANGE, "s"), theirs, baseline
                    ),
                    ratio_line("recommended", LineStyle(BLUE, "o"), recommended, baseline),
                )
                made.append(
                    Panel(
                        f"{paradigm.name.upper()} ({paradigm.unit.value}, {paradigm.place.value}), N = {papers.voters}",
                        EPSILON,
                        f"{meaning}, ratio" if len(truths(papers)) == 1 else f"{truth}, ratio",
                        lines,
                        log_x=True,
                        level=("no privacy (B = 2)", 1.0),
                        marks=_MARKS,
                    )
                )
        return made

    title = f"The recommended mechanism of each paradigm {words}, relative to no privacy"
    return _figure(name, title, "not in the paper", 3, [papers, ours], panels)
