"""crowdveil demo: the whole way from answers to decisions, on a crowd that does not exist."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from crowdveil.ballots import BallotFile, open_ballots, write_ballots
from crowdveil.cli.ledger import parse_budget
from crowdveil.cli.terminal import AsJson, err, out, progress, show, table
from crowdveil.decision import Decision, decide
from crowdveil.estimation.society import society
from crowdveil.files import write_text
from crowdveil.pages.release_page import release_page
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PAPERS_PARADIGMS, Place, Unit, paradigm
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.publish import Request, publish
from crowdveil.releases import Release
from crowdveil.sources.simulated import simulate_crowd
from crowdveil.study.bundled import load_study
from crowdveil.study.study import Dilemma

SEED = 1
CHILDREN_OR_PASSENGERS = [
    {"name": "the children", "features": {"girl": 2, "boy": 1, "legality": 1}},
    {"name": "the passengers", "features": {"man": 1, "old_woman": 1, "barrier": 1, "intervention": 1}},
]

_PROTECTED = {Unit.VOTER: "each voter", Unit.RECORD: "each answer"}
_NOISE_BY = {Place.CENTRAL: "the host", Place.DISTRIBUTED: "each device"}


def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the demo's files.")] = Path("demo"),
    voters: Annotated[int, typer.Option(help="Size of the simulated crowd.")] = 5000,
    epsilon: Annotated[str, typer.Option(help="Privacy parameter of each release.")] = "1",
    as_json: AsJson = False,
) -> None:
    """Simulate a Moral Machine crowd, release it under each paradigm, and decide a new dilemma from each release.

    Example: `crowdveil demo`
    """
    asked = Epsilon(epsilon)
    folder.mkdir(parents=True, exist_ok=True)
    crowd = _simulate(folder, voters)
    dilemma = crowd.study.dilemma(CHILDREN_OR_PASSENGERS)
    released = _release_all(folder, crowd, asked)
    decided = {name: decide(release, dilemma) for name, release in released.items()}
    page = folder / "report.html"
    write_text(page, release_page(list(released.values()), decisions=list(decided.values())))
    data = {
        "voters": voters,
        "releases": {n: {"error_bar": _bar(r), "decision": decided[n].as_dict()} for n, r in released.items()},
        "page": str(page),
        "folder": str(folder),
    }
    show(data, as_json, lambda: _print(folder, crowd, dilemma, released, decided))


def _simulate(folder: Path, voters: int) -> BallotFile:
    study, path = load_study("moral-machine"), folder / "ballots.parquet"
    err.print(f"1. {voters} simulated people answer {study.drawing.dilemmas} dilemmas each ...")
    crowd = simulate_crowd(study, voters, np.random.default_rng(SEED))
    write_ballots(path, study, crowd, {"simulated": True, "seed": SEED})
    return open_ballots(path)


def _release_all(folder: Path, crowd: BallotFile, epsilon: Epsilon) -> dict[str, Release]:
    err.print("2. Their society is released under each of the paper's four paradigms ...")
    book = folder / "study.ledger"
    for old in folder.glob("study.ledger*"):  # nobody real stands behind a demo's budget
        old.unlink()
    ledger = Ledger.create(book, parse_budget("4") * max(1, round(epsilon.value)))
    released = {}
    with progress("releasing", len(PAPERS_PARADIGMS), "paradigms") as tell:
        for name in PAPERS_PARADIGMS:
            released[name] = publish(crowd, Request(paradigm(name), epsilon), ledger, folder / f"{name}.json")
            tell(1)
    return released


def _bar(release: Release) -> float:
    return float(np.median(release.error_bars))


def _print(
    folder: Path, crowd: BallotFile, dilemma: Dilemma, released: dict[str, Release], decided: dict[str, Decision]
) -> None:
    study = crowd.study
    err.print("3. An AI asks each release to decide a new dilemma ...\n")
    out.print(study.question, markup=False)
    for alternative in dilemma.alternatives:
        out.print(f"  {alternative.name}: {study.describe(alternative)}", markup=False)
    rows = table(None, "paradigm", "protects", "noise by", "strongest", "error bar", "choice", "certainty", numbers=1)
    for name, release in released.items():
        kind, decision = release.guarantee.paradigm, decided[name]
        rows.add_row(
            name.upper(),
            _PROTECTED[kind.unit],
            _NOISE_BY[kind.place],
            f"{np.abs(release.parameter).max():.3f}",
            f"± {_bar(release):.3f}",
            decision.choice or "too close to call",
            f"{decision.certainty:.1%}",
        )
    exact = society(crowd, study.norm_bound).parameter
    first, second = dilemma.alternatives
    choice = first if float(exact @ study.difference(first, second)) > 0 else second
    rows.add_row("no privacy", "nobody", "nobody", f"{np.abs(exact).max():.3f}", "", choice.name, "")
    out.print()
    out.print(rows)
    out.print(
        f"\nEach release protects with epsilon {next(iter(released.values())).guarantee.epsilon}. Strongest: the largest "
        "preference found. Error bar: how far privacy\nmoved a preference at most, 95 % of the time. Certainty: that the "
        "noise did not change the choice; below 90 %\nthe release says so instead of guessing."
    )
    out.print(
        f"\nWrote {folder}/report.html (open it in a browser), the releases, and the ledger that was charged.\n\n"
        f'Try next:\n  crowdveil decide {folder}/vlcp.json \'[{{"features": {{"dog": 2}}}}, {{"features": {{"cat": 1}}}}]\'\n'
        f"  crowdveil ledger show {folder}/study.ledger\n"
        "  crowdveil plan --features 23 --bound 2 --epsilon 0.1 --confidence 0.95 --error 0.01\n"
        "  crowdveil --help",
        markup=False,
    )
