"""Every figure by name: the paper's ten, one that explains its third, and those of the recommended mechanisms."""

from __future__ import annotations

from crowdveil.errors import CrowdveilError
from crowdveil.evaluation.paper.crowds import MoralMachine
from crowdveil.evaluation.paper.figures_real import no_privacy_figure, real_figures
from crowdveil.evaluation.paper.figures_recommended import recommended_figures
from crowdveil.evaluation.paper.figures_synthetic import maximum_figure, synthetic_figures
from crowdveil.evaluation.paper.panels import FigurePlan

FIGURE_NAMES = (
    "algorithm-1",
    "algorithm-2",
    "algorithm-3",
    "compare-algorithms",
    "dimension",
    "personal-epsilons",
    "norm-bound",
    "moral-machine",
    "moral-machine-comparison",
    "moral-machine-personal-epsilons",
    "compare-no-privacy",
    "algorithm-3-maximum",
    "recommended",
    "moral-machine-recommended",
)
NEED_DATA = tuple(name for name in FIGURE_NAMES if name.startswith("moral-machine"))


def figures(data: MoralMachine | None) -> dict[str, FigurePlan]:
    """Return the figures; those on real data only where there is a file."""
    real = [] if data is None else real_figures(data)
    plans = [*synthetic_figures(), *real, no_privacy_figure(data), maximum_figure(), *recommended_figures(data)]
    return {one.name: one for one in plans}


def check_figure_name(name: str) -> None:
    """Refuse a name that no figure has."""
    if name not in FIGURE_NAMES:
        raise CrowdveilError(f"there is no figure {name!r}: choose one of {', '.join(FIGURE_NAMES)}")
