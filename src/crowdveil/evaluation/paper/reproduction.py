"""Run the evaluation and write its folder: figures, numbers, claims, and the page that shows them all."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import CrowdveilError
from crowdveil.evaluation.paper import plan
from crowdveil.evaluation.paper.claims import all_claims
from crowdveil.evaluation.paper.experiments import ALGORITHM_1, NO_PRIVACY, REPAIRED, SEPARABLE, UNBOUNDED
from crowdveil.evaluation.paper.figures import NEED_DATA, figures
from crowdveil.evaluation.paper.headline import recommended_claims
from crowdveil.evaluation.paper.plan import all_experiments
from crowdveil.evaluation.paper.verdicts import Claim
from crowdveil.evaluation.toolkit.crowds import TEST_PAIRS, MoralMachineSource, open_moral_machine
from crowdveil.evaluation.toolkit.plotting import FigurePlan, draw, numbers, png, svg
from crowdveil.evaluation.toolkit.scores import half_width, mean
from crowdveil.evaluation.toolkit.sweep import Experiment, Results, jobs, sweep
from crowdveil.files import make_folder, replacing, write_text
from crowdveil.version import VERSION

HOW_TO_GET_DATA = (
    "answers in the public Moral Machine layout (SharedResponses.csv of Awad et al. 2018) are at https://osf.io/3hvt2; "
    "give the file, or some of its rows, with --moral-machine FILE"
)
FEWEST_CROWDS = 2


@dataclass(frozen=True)
class ReproductionRequest:
    """A request to run the evaluation."""

    folder: Path
    crowds: int
    workers: int
    data: MoralMachineSource | None
    command: str
    data_words: str
    """Description of the real data, or that there are none."""


@dataclass(frozen=True)
class DrawnFigure:
    """A figure with its numbers."""

    plan: FigurePlan
    figure: Figure
    svg: str
    numbers: pl.DataFrame


@dataclass(frozen=True)
class Reproduction:
    """Everything that the page shows."""

    request: ReproductionRequest
    figures: tuple[DrawnFigure, ...]
    claims: tuple[Claim, ...]
    recommended: tuple[Claim, ...]
    """The paper's headline, tested on the recommended mechanisms."""
    choices: tuple[OpenChoice, ...]
    versions: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Return the claims and the locations of all results, as plain data."""
        return {
            "command": self.request.command,
            "crowds": self.request.crowds,
            "data": self.request.data_words,
            "versions": dict(self.versions),
            "page": str(self.request.folder / "index.html"),
            "figures": [one.plan.name for one in self.figures],
            "claims": [claim.as_dict() for claim in self.claims],
            "recommended": [claim.as_dict() for claim in self.recommended],
            "open_choices": [vars(choice) for choice in self.choices],
        }


def find_data(given: Path | None) -> tuple[MoralMachineSource | None, str]:
    """Open the given Moral Machine file and describe it; without one, say what is left out."""
    if given is None:
        return None, f"no Moral Machine file, so the figures and claims on real data are left out: {HOW_TO_GET_DATA}"
    if not given.is_file():
        raise CrowdveilError(f"there is no file {given}: {HOW_TO_GET_DATA}")
    source, everyone = open_moral_machine(given)
    return source, _describe(given, everyone)


def make_order(folder: Path, crowds: int, workers: int, given: Path | None, command: str) -> ReproductionRequest:
    """Check the request."""
    if not crowds >= FEWEST_CROWDS:
        raise CrowdveilError(f"a mean with an interval needs at least {FEWEST_CROWDS} crowds, got {crowds}")
    if not workers >= 1:
        raise CrowdveilError(f"at least one worker is needed, got {workers}")
    data, words = find_data(given)
    make_folder(folder)
    return ReproductionRequest(folder, crowds, workers, data, command, words)


JobProgress = Callable[[int], Any]
"""Takes the number of jobs; returns a context whose value is called after each finished job."""


def reproduce(request: ReproductionRequest, watch: JobProgress) -> Reproduction:
    """Run everything, write the folder, and return its contents."""
    results = _run(request, all_experiments(request.data), watch)
    drawn = tuple(_draw(request, plan, results) for plan in figures(request.data).values())
    claims = tuple(all_claims(results, request.data))
    choices = tuple(open_choices(results, request.data))
    made = Reproduction(request, drawn, claims, tuple(recommended_claims(results, request.data)), choices, _versions())
    write_text(request.folder / "claims.json", json.dumps(made.as_dict(), indent=2, ensure_ascii=False) + "\n")
    return made


def reproduce_figure(request: ReproductionRequest, name: str, watch: JobProgress) -> DrawnFigure:
    """Run what one figure needs, and write its files."""
    if name in NEED_DATA and request.data is None:
        raise CrowdveilError(f"figure {name} needs real data: {HOW_TO_GET_DATA}")
    plan = figures(request.data)[name]
    return _draw(request, plan, _run(request, plan.experiments, watch))


def figure_files(folder: Path, name: str) -> dict[str, Path]:
    """Return the paths of a figure's files."""
    return {
        "png": folder / "figures" / f"{name}.png",
        "svg": folder / "figures" / f"{name}.svg",
        "csv": folder / "numbers" / f"{name}.csv",
        "parquet": folder / "numbers" / f"{name}.parquet",
    }


def _run(request: ReproductionRequest, experiments: Sequence[Experiment], watch: JobProgress) -> Results:
    with watch(len(jobs(experiments, request.crowds))) as tell:
        return Results(sweep(experiments, request.crowds, request.workers, request.folder / "jobs", tell))


def _draw(request: ReproductionRequest, plan: FigurePlan, results: Results) -> DrawnFigure:
    panels = plan.panels(results)
    figure = draw(panels, plan.columns)
    made = DrawnFigure(plan, figure, svg(figure), numbers(panels))
    files = figure_files(request.folder, plan.name)
    for file in files.values():
        file.parent.mkdir(exist_ok=True)
    with replacing(files["png"]) as unfinished:
        unfinished.write_bytes(png(made.figure))
    write_text(files["svg"], made.svg)
    with replacing(files["csv"]) as unfinished:
        made.numbers.write_csv(unfinished)
    with replacing(files["parquet"]) as unfinished:
        made.numbers.write_parquet(unfinished)
    return made


def _describe(path: Path, everyone: Ballots) -> str:
    counts = everyone.counts
    full = int(np.sum(counts == 13))
    return (
        f"{path.name}: {everyone.records:,} records of {everyone.voters:,} voters, {counts.min()} to {counts.max()} "
        f"each. The paper's n = 13 is what a voter is asked; {full:,} of these voters answered all 13. Voters with "
        "fewer records are used as they are."
    )


def _versions() -> dict[str, str]:
    packages = ("numpy", "scipy", "numba", "polars", "matplotlib")
    return {"crowdveil": VERSION, "python": platform.python_version(), **{name: version(name) for name in packages}}


@dataclass(frozen=True)
class OpenChoice:
    """One thing that the paper does not specify."""

    question: str
    chosen: str
    matters: str


def open_choices(results: Results, data: MoralMachineSource | None) -> list[OpenChoice]:
    """Return every open choice with its measured effect."""
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


def _real_truth(results: Results, data: MoralMachineSource) -> OpenChoice:
    where = plan.real(data, plan.NO_PRIVACY_REAL_VOTERS)
    agreement, predicted = (results.curve(where, NO_PRIVACY, t).only.mean() for t in ("agreement", "predicted"))
    return OpenChoice(
        "What the truth is on real data",
        "two, side by side, on the dilemmas of everybody who is not in the crowd: what the society of all voters "
        "(mean of fits, B = 2) chooses, and what each person chose",
        f"Without privacy, 200 voters agree with the society of all on {agreement:.3f}, and predict {predicted:.3f} of "
        "people's choices: two different qualities.",
    )
