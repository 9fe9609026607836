"""The recommended mechanisms beside the paper's: not in the paper, on the crowds of its last figure."""

from __future__ import annotations

from crowdveil.evaluation.paper import plan
from crowdveil.evaluation.paper.across_epsilons import NO_PRIVACY, AcrossEpsilons
from crowdveil.evaluation.paper.crowds import MoralMachine
from crowdveil.evaluation.paper.experiment import Experiment
from crowdveil.evaluation.paper.figure_words import BESIDE_THE_PAPER
from crowdveil.evaluation.paper.panels import BLUE, EPSILON, ORANGE, FigurePlan, Look, Panel, ratio_line
from crowdveil.evaluation.paper.reached import PAPERS, THRESHOLDS, truths
from crowdveil.evaluation.paper.results import Results
from crowdveil.privacy.guarantee import PARADIGMS

_PAPERS_LOOK, _RECOMMENDED_LOOK = Look(ORANGE, "s"), Look(BLUE, "o")


def recommended_figures(data: MoralMachine | None) -> list[FigurePlan]:
    """Return a figure for synthetic crowds, and one for real voters where there are some."""
    names = ("recommended", "moral-machine-recommended")
    titles = ("on synthetic data", "on Moral Machine data, by two truths")
    return [_figure(*one) for one in zip(names, titles, plan.headline(data), strict=False)]


def _figure(name: str, words: str, papers: AcrossEpsilons) -> FigurePlan:
    ours = plan.recommended(papers)

    def panels(results: Results) -> list[Panel]:
        made = []
        for truth, meaning in truths(papers).items():
            baseline = results.curve(papers, NO_PRIVACY, truth).only
            for paradigm in PARADIGMS.values():
                unit, place = paradigm.unit.value, paradigm.place.value
                series: dict[str, tuple[Look, Experiment, str]] = {
                    "the paper's mechanism (Algorithm 3: repaired)": (_PAPERS_LOOK, papers, PAPERS[paradigm.name]),
                    "recommended": (_RECOMMENDED_LOOK, ours, paradigm.name),
                }
                lines = tuple(
                    ratio_line(label, look, results.curve(of, one, truth), baseline)
                    for label, (look, of, one) in series.items()
                )
                made.append(
                    Panel(
                        f"{paradigm.name.upper()} ({unit}, {place}), N = {papers.voters}",
                        EPSILON,
                        f"{meaning}, ratio" if len(truths(papers)) == 1 else f"{truth}, ratio",
                        lines,
                        log_x=True,
                        level=("no privacy (B = 2)", 1.0),
                        marks=tuple((edge, wanted) for edge, _, wanted in THRESHOLDS),
                    )
                )
        return made

    title = f"The recommended mechanism of each paradigm {words}, relative to no privacy"
    return FigurePlan(name, title, "not in the paper", 3, (papers, ours), panels, BESIDE_THE_PAPER[name])
