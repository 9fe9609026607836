"""crowdveil demo: from choices to decisions, with a simulated crowd."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.cli.terminal import AsJson, Table, progress, say, say_wrapped, show, tell
from crowdveil.errors import CrowdveilError

if TYPE_CHECKING:
    from crowdveil.ballots.ballot_file import BallotFile
    from crowdveil.decision import Decision
    from crowdveil.privacy.epsilon import Epsilon
    from crowdveil.privacy.ledger.ledger import Ledger
    from crowdveil.releases import Release
    from crowdveil.study.study import Dilemma

SEED = 1
LEDGER = "demo.ledger"
"""The name by which a folder is known to be a demo's."""
CHILDREN_OR_PASSENGERS = [
    {"name": "the children", "features": {"girl": 2, "boy": 1, "legality": 1, "barrier": 0, "intervention": 0}},
    {"name": "the passengers", "features": {"man": 1, "old_woman": 1, "barrier": 1, "intervention": 1}},
]


def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the demo's files.")] = Path("demo"),
    voters: Annotated[int, typer.Option(help="Size of the simulated crowd.")] = 5000,
    epsilon: Annotated[str, typer.Option(metavar="NUMBER", help="Privacy parameter of each release.")] = "1",
    as_json: AsJson = False,
) -> None:
    """Simulate a Moral Machine crowd, release it under each paradigm, and decide a new dilemma from each release.

    Example: `crowdveil demo`
    """
    from crowdveil.decision import decide
    from crowdveil.files import make_folder, write_text
    from crowdveil.pages.release_page import release_page
    from crowdveil.privacy.epsilon import Epsilon

    asked = Epsilon(epsilon)
    make_folder(folder)
    ledger = _new_ledger(folder, asked)
    crowd = _simulate(folder, voters)
    dilemma = crowd.study.dilemma(CHILDREN_OR_PASSENGERS)
    released = _release_all(folder, crowd, asked, ledger)
    decided = {name: decide(release, dilemma) for name, release in released.items()}
    page = folder / "page.html"
    write_text(page, release_page(list(released.values()), decisions=list(decided.values())))
    data = {
        "voters": voters,
        "releases": {n: {"error_bar": _bar(r), "decision": decided[n].as_dict()} for n, r in released.items()},
        "page": str(page),
        "folder": str(folder),
    }
    show(data, as_json, lambda: _print(folder, crowd, dilemma, released, decided))


def _new_ledger(folder: Path, epsilon: Epsilon) -> Ledger:
    """Create a ledger, in a folder that is empty or holds an earlier demo, whose budget protects no real people."""
    from crowdveil.privacy.guarantee import PAPERS_PARADIGMS
    from crowdveil.privacy.ledger.ledger import Ledger

    if any(folder.iterdir()) and not (folder / LEDGER).exists():
        raise CrowdveilError(f"{folder} holds files that no demo wrote: name a folder of the demo's own, with --out")
    for old in folder.glob(f"{LEDGER}*"):
        old.unlink()
    return Ledger.create(folder / LEDGER, epsilon.amount * len(PAPERS_PARADIGMS))


def _simulate(folder: Path, voters: int) -> BallotFile:
    import numpy as np

    from crowdveil.ballots.ballot_file import open_ballots, write_ballots
    from crowdveil.sources.simulated import simulated_batches
    from crowdveil.study.bundled import load_study

    study = load_study("moral-machine")
    path = folder / "ballots.parquet"
    crowd = simulated_batches(study, voters, np.random.default_rng(SEED))
    tell(f"1. {voters:,} simulated people answer {study.drawing.dilemmas} dilemmas each ...")
    write_ballots(path, study, crowd, {"simulated": True, "seed": SEED})
    return open_ballots(path)


def _release_all(folder: Path, crowd: BallotFile, epsilon: Epsilon, ledger: Ledger) -> dict[str, Release]:
    from crowdveil.estimation.dilemmas import GENERATOR
    from crowdveil.privacy.guarantee import PAPERS_PARADIGMS, paradigm
    from crowdveil.publish.release import publish
    from crowdveil.publish.request import Request

    tell("2. The crowd's preference is released under each of the paper's four paradigms ...")
    released = {}
    with progress("releasing", len(PAPERS_PARADIGMS), "paradigms") as advance:
        for name in PAPERS_PARADIGMS:
            request = Request(paradigm(name), epsilon, design=GENERATOR)
            released[name] = publish(crowd, request, ledger, folder / f"{name}.json")
            advance(1)
    return released


def _certainty(certainty: float) -> str:
    """Format a certainty briefly; below one half, it says nothing for the choice and nothing against it."""
    return "–" if certainty < 0.5 else f"{certainty:.1%}" if certainty <= 0.999 else "> 99.9%"


def _bar(release: Release) -> float:
    return float(statistics.median(release.factor_bars))


def _print(
    folder: Path, crowd: BallotFile, dilemma: Dilemma, released: dict[str, Release], decided: dict[str, Decision]
) -> None:
    import numpy as np

    from crowdveil.estimation.crowd_preference import crowd_preference

    study = crowd.study
    tell("3. An AI asks each release to decide a new dilemma ...\n")
    say(study.question)
    for alternative in dilemma.alternatives:
        say(f"  {alternative.name}: {study.describe(alternative)}")
    exact = crowd_preference(crowd, directions=study.factor_matrix.astype(np.float64))
    strongest = int(np.argmax(np.abs(exact.coordinates)))
    factor = study.factors[strongest].title
    rows = Table(None, "paradigm", "protects", "noise by", "choice", "agree", "certainty", factor, numbers=3)
    for name, release in released.items():
        paradigm = release.guarantee.paradigm
        decision = decided[name]
        rows.add(
            name.upper(),
            paradigm.unit.value,
            "host" if paradigm.place == "central" else "device",
            decision.choice or "too close",
            "–" if decision.choice is None or decision.probability is None else f"{decision.probability:.0%}",
            _certainty(decision.certainty),
            f"{release.factor_values[strongest]:+.3f} ± {release.factor_bars[strongest]:.3f}"
            if release.known[strongest]
            else "not known",
        )
    margin = float(exact.preference @ study.difference(*dilemma.alternatives))
    choice, _ = dilemma.alternatives if margin > 0 else reversed(dilemma.alternatives)
    agree = f"{statistics.NormalDist().cdf(abs(margin)):.0%}"
    rows.add("none", "nobody", "nobody", choice.name, agree, "", f"{exact.coordinates[strongest]:+.3f}        ")
    say()
    rows.print()
    say()
    say_wrapped(
        f"Each release protects with epsilon {next(iter(released.values())).guarantee.epsilon}. Agree: the share of "
        "voters who would choose the same. Certainty: that the voters prefer it on the whole; below 90 % it is too "
        f"close to call, and below 50 % none is stated (–). {factor}: the strongest factor's weight, and how far it "
        "may be off: noise, sampling and what the model may be off by (95 %)."
    )
    say(
        f"\nWrote {folder}/page.html (open it in a browser), the releases, and the ledger that was charged.\n\n"
        f"Try next:\n  crowdveil decide {folder}/vlcp.json "
        '\'[{"features": {"dog": 2}}, {"features": {"cat": 1}}]\'\n'
        f"  crowdveil ledger show {folder}/{LEDGER}\n"
        "  crowdveil plan --voters 5000 --epsilon 0.1\n"
        "  crowdveil --help"
    )
