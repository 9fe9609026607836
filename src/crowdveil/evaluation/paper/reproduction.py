"""Runs the evaluation and writes its folder: figures, numbers, claims, and the page that shows them all."""

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
from crowdveil.evaluation.paper.claim import Claim
from crowdveil.evaluation.paper.claims import all_claims
from crowdveil.evaluation.paper.figures import NEED_DATA, figures
from crowdveil.evaluation.paper.headline import recommended_claims
from crowdveil.evaluation.paper.open_choices import OpenChoice, open_choices
from crowdveil.evaluation.paper.plan import all_experiments
from crowdveil.evaluation.toolkit.crowds import MoralMachine, open_moral_machine
from crowdveil.evaluation.toolkit.drawing import FigurePlan, draw, numbers, png, svg
from crowdveil.evaluation.toolkit.sweep import Experiment, Results, jobs, sweep
from crowdveil.files import replacing, write_text
from crowdveil.version import VERSION

HOW_TO_GET_DATA = (
    "answers in the public Moral Machine layout (SharedResponses.csv of Awad et al. 2018) are at https://osf.io/3hvt2; "
    "give the file, or some of its rows, with --data FILE"
)
FEWEST_CROWDS = 2


@dataclass(frozen=True)
class Order:
    """A request to run the evaluation."""

    folder: Path
    crowds: int
    workers: int
    data: MoralMachine | None
    command: str
    data_words: str
    """Which real data, in words; or that there are none."""


@dataclass(frozen=True)
class DrawnFigure:
    """A figure with the numbers in it."""

    plan: FigurePlan
    figure: Figure
    svg: str
    numbers: pl.DataFrame


@dataclass(frozen=True)
class Reproduction:
    """Everything that the page shows."""

    order: Order
    figures: tuple[DrawnFigure, ...]
    claims: tuple[Claim, ...]
    recommended: tuple[Claim, ...]
    """The paper's headline, asked of the recommended mechanisms."""
    choices: tuple[OpenChoice, ...]
    versions: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """Return the claims and where everything is, as plain data."""
        return {
            "command": self.order.command,
            "crowds": self.order.crowds,
            "data": self.order.data_words,
            "versions": dict(self.versions),
            "page": str(self.order.folder / "index.html"),
            "figures": [one.plan.name for one in self.figures],
            "claims": [claim.as_dict() for claim in self.claims],
            "recommended": [claim.as_dict() for claim in self.recommended],
            "open_choices": [vars(choice) for choice in self.choices],
        }


def find_data(given: Path | None) -> tuple[MoralMachine | None, str]:
    """Open the Moral Machine file that was given, and describe it; without one, say what is left out."""
    if given is None:
        return None, f"no Moral Machine file, so the figures and claims on real data are left out: {HOW_TO_GET_DATA}"
    if not given.is_file():
        raise CrowdveilError(f"there is no file {given}: {HOW_TO_GET_DATA}")
    source, everyone = open_moral_machine(given)
    return source, _describe(given, everyone)


def make_order(folder: Path, crowds: int, workers: int, given: Path | None, command: str) -> Order:
    """Check what was asked for."""
    if not crowds >= FEWEST_CROWDS:
        raise CrowdveilError(f"a mean with an interval needs at least {FEWEST_CROWDS} crowds, got {crowds}")
    if not workers >= 1:
        raise CrowdveilError(f"at least one worker is needed, got {workers}")
    data, words = find_data(given)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CrowdveilError(f"cannot make the folder {folder}: {error.strerror or error}") from None
    return Order(folder, crowds, workers, data, command, words)


Watch = Callable[[int], Any]
"""Told the number of jobs; returns a context whose value is told of each finished one."""


def reproduce(order: Order, watch: Watch) -> Reproduction:
    """Run everything, write the folder, and return what stands in it."""
    results = _run(order, all_experiments(order.data), watch)
    drawn = tuple(_draw(order, plan, results) for plan in figures(order.data).values())
    claims = tuple(all_claims(results, order.data))
    choices = tuple(open_choices(results, order.data))
    made = Reproduction(order, drawn, claims, tuple(recommended_claims(results, order.data)), choices, _versions())
    write_text(order.folder / "claims.json", json.dumps(made.as_dict(), indent=2, ensure_ascii=False) + "\n")
    return made


def reproduce_figure(order: Order, name: str, watch: Watch) -> DrawnFigure:
    """Run what one figure needs and write its files."""
    if name in NEED_DATA and order.data is None:
        raise CrowdveilError(f"figure {name} needs real data: {HOW_TO_GET_DATA}")
    plan = figures(order.data)[name]
    return _draw(order, plan, _run(order, plan.experiments, watch))


def figure_files(folder: Path, name: str) -> dict[str, Path]:
    """Where the files of a figure are."""
    return {
        "png": folder / "figures" / f"{name}.png",
        "svg": folder / "figures" / f"{name}.svg",
        "csv": folder / "numbers" / f"{name}.csv",
        "parquet": folder / "numbers" / f"{name}.parquet",
    }


def _run(order: Order, experiments: Sequence[Experiment], watch: Watch) -> Results:
    with watch(len(jobs(experiments, order.crowds))) as tell:
        return Results(sweep(experiments, order.crowds, order.workers, order.folder / "jobs", tell))


def _draw(order: Order, plan: FigurePlan, results: Results) -> DrawnFigure:
    panels = plan.panels(results)
    figure = draw(panels, plan.columns)
    made = DrawnFigure(plan, figure, svg(figure), numbers(panels))
    files = figure_files(order.folder, plan.name)
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
