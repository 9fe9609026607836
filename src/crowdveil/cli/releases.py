"""crowdveil release, decide and report: from a budget to a decision."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from crowdveil.ballots import BallotSource
from crowdveil.cli.answers import imported
from crowdveil.cli.terminal import (
    AsJson,
    BallotPath,
    EngineName,
    Master,
    err,
    out,
    show,
    table,
    watched_ballots,
)
from crowdveil.decision import DEFAULT_CERTAINTY, Decision
from crowdveil.decision import decide as decide_dilemma
from crowdveil.engines.choice import chosen_engine
from crowdveil.errors import CrowdveilError
from crowdveil.files import check_writable, write_text
from crowdveil.pages.plain_words import devices_sentences, guarantee_sentences
from crowdveil.pages.release_page import release_page
from crowdveil.privacy.concentrated import ZcdpBudget
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import paradigm as find_paradigm
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.ledger.statement import Measure, decimal_text
from crowdveil.privacy.mechanisms.mechanism import Sensitivity
from crowdveil.privacy.personal_epsilons import read_personal_epsilons
from crowdveil.publish import Prepared, Request, experiment, prepare, publish
from crowdveil.releases import Release, load_release, save_release

ReleasePath = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file (JSON).")]
AllowExperiment = Annotated[
    bool,
    typer.Option("--allow-experiment", help="Accept a release made with floating-point noise, which protects nobody."),
]


def release(
    ballots: BallotPath,
    paradigm: Annotated[str, typer.Option(help="Who is protected, and where: vlcp, rlcp, vldp, rldp, alcp or aldp.")],
    epsilon: Annotated[
        str | None, typer.Option(help="Privacy parameter for all voters: smaller protects more.")
    ] = None,
    epsilons: Annotated[
        Path | None, typer.Option(help="Personal epsilons: a CSV with the columns voter and epsilon (vldp, rldp).")
    ] = None,
    rho: Annotated[
        str | None,
        typer.Option(help="Gaussian noise: a rho, charged to a zCDP ledger, instead of an epsilon (vlcp, rlcp)."),
    ] = None,
    mechanism: Annotated[
        str | None, typer.Option(help="A mechanism by name, or: paper. Default: the best for the paradigm.")
    ] = None,
    bound: Annotated[float | None, typer.Option(help="Norm bound B of a preference. Default: the study's.")] = None,
    repair: Annotated[
        bool, typer.Option(help="Algorithm 3: make the noisy objective solvable. Without it there is no maximum.")
    ] = True,
    delta: Annotated[str, typer.Option(help="Algorithm 3's sensitivity: tight (ours) or paper.")] = "tight",
    equal_votes: Annotated[
        bool, typer.Option("--equal-votes", help="Count every report the same, as in the paper, however noisy.")
    ] = False,
    robust: Annotated[
        float, typer.Option(help="Share of the most extreme reports to pull in at each end, against liars (like 0.02).")
    ] = 0.0,
    ledger: Annotated[Path | None, typer.Option(help="The ledger to charge (`crowdveil ledger create`).")] = None,
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to write the release.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show cost and expected error, spend nothing.")] = False,
    experiment_seed: Annotated[
        int | None, typer.Option(help="Repeatable floating-point noise instead: protects nobody, charges nothing.")
    ] = None,
    keep_ballots: Annotated[
        Path | None, typer.Option(help="Where to keep the ballots, if BALLOTS is a file to be imported first.")
    ] = None,
    engine: EngineName = "local",
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Release the crowd's preference under differential privacy, charged to a ledger.

    Example: `crowdveil release mm.parquet --paradigm vlcp --epsilon 1 --ledger study.ledger --out release.json`

    In place of ballots, a file in the public layout of the Moral Machine may be given: it is imported first.

    For many releases of the same answers see `crowdveil plan repeat`, then `crowdveil ledger create --delta` and `--rho`.

    The noise is exact and from the operating system. The ledger is charged before the noise is drawn; a release that
    the budget does not cover is refused.
    """
    # What can be refused is refused before a long import.
    protected = find_paradigm(paradigm)
    sensitivity: Sensitivity = "paper" if _choice("--delta", delta, "tight", "paper") == "paper" else "tight"
    level = _level(epsilon, epsilons, rho, ledger)
    account = None if ledger is None else Ledger.open(ledger)
    make = None if dry_run else _maker(out_path, account, experiment_seed)
    with (
        chosen_engine(engine, master) as workers,
        imported(ballots, keep_ballots, out_path, workers) as path,
        watched_ballots(path, "reading and fitting", walks=1 if dry_run else 2, engine=workers) as source,
    ):
        request = Request(
            paradigm=protected,
            epsilon=read_personal_epsilons(level, source.source) if isinstance(level, Path) else level,
            mechanism=mechanism,
            norm_bound=bound,
            repair=repair,
            sensitivity=sensitivity,
            equal_votes=equal_votes,
            robust=robust,
        )
        prepared = prepare(source, request) if make is None else None
        made = None if make is None else make(source, request)
    if prepared is not None:
        _show_dry_run(prepared, account, as_json)
    if made is not None:
        show(made.as_dict(), as_json, lambda: _print_release(made, out_path))


def decide(
    release_path: ReleasePath,
    dilemma: Annotated[str, typer.Argument(help="A JSON file, - for standard input, or the JSON itself.")],
    certainty: Annotated[
        float, typer.Option(help="Below this certainty the answer is: too close to call.")
    ] = DEFAULT_CERTAINTY,
    allow_experiment: AllowExperiment = False,
    as_json: AsJson = False,
) -> None:
    """Ask a release to decide a dilemma of two or more alternatives.

    Example: `crowdveil decide release.json '[{"name": "stay", "features": {"girl": 1}}, {"name": "swerve", "features":
    {"dog": 2, "intervention": 1}}]'`. An example for any study: `crowdveil studies moral-machine --example`.
    """
    loaded = load_release(release_path, allow_experiment=allow_experiment)
    decision = decide_dilemma(loaded, loaded.study.dilemma(_alternatives(dilemma)), certainty)
    show(decision.as_dict(), as_json, lambda: _print_decision(loaded, decision))


def report(
    release_path: ReleasePath,
    out_path: Annotated[Path | None, typer.Option("--out", help="Default: the release's name with .html.")] = None,
    allow_experiment: AllowExperiment = False,
    as_json: AsJson = False,
) -> None:
    """Write a page about a release: the parameter with error bars, and the guarantee in plain language.

    Example: `crowdveil report release.json`
    """
    loaded = load_release(release_path, allow_experiment=allow_experiment)
    target = release_path.with_suffix(".html") if out_path is None else out_path
    write_text(target, release_page([loaded]))
    show({"page": str(target)}, as_json, lambda: out.print(f"Wrote {target}: open it in a browser."))


def _maker(
    out_path: Path | None, account: Ledger | None, experiment_seed: int | None
) -> Callable[[BallotSource, Request], Release]:
    """Return how the release is to be made and written."""
    if out_path is None:
        raise CrowdveilError("say where to write the release: --out release.json (or look first with --dry-run)")
    check_writable(out_path)
    if experiment_seed is not None:

        def make(source: BallotSource, request: Request) -> Release:
            made = experiment(source, request, experiment_seed)
            save_release(made, out_path)
            return made

        return make
    if account is None:
        raise CrowdveilError(
            "a release must be charged to a ledger: give --ledger L (make one with: crowdveil ledger create L --budget 3)"
        )
    return lambda source, request: publish(source, request, account, out_path)


def _level(
    epsilon: str | None, epsilons: Path | None, rho: str | None, ledger: Path | None
) -> Epsilon | Path | ZcdpBudget:
    if sum(given is not None for given in (epsilon, epsilons, rho)) != 1:
        raise CrowdveilError(
            "give one of --epsilon (for all voters), --epsilons (a CSV of personal ones) and --rho (Gaussian noise)"
        )
    if epsilons is not None:
        return epsilons
    if epsilon is not None:
        return Epsilon(epsilon)
    delta = None if ledger is None else Ledger.open(ledger).delta
    if rho is None or delta is None:
        raise CrowdveilError(
            "--rho needs a zCDP ledger, for whose delta the promise is stated: give --ledger L "
            "(make one with: crowdveil ledger create L --budget 1 --delta 1e-6), or use --epsilon"
        )
    return ZcdpBudget.parse(rho, delta)


def _choice(option: str, given: str, *allowed: str) -> str:
    if given not in allowed:
        raise CrowdveilError(f"{option} is {given!r}: use {' or '.join(allowed)}")
    return given


def _alternatives(given: str) -> Any:
    """Read the alternatives of a dilemma from a file, from stdin or from the argument itself."""
    text = given
    try:
        if given == "-":
            text = sys.stdin.read()
        elif not given.lstrip().startswith(("[", "{")):
            text = Path(given).read_text(encoding="utf-8")
        data = json.loads(text)
    except OSError as error:
        raise CrowdveilError(f"cannot read the dilemma {given}: {error.strerror or error}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise CrowdveilError(f"the dilemma is not JSON: {error}") from None
    alternatives = data.get("alternatives") if isinstance(data, dict) else data
    if not isinstance(alternatives, list):
        raise CrowdveilError(
            'a dilemma is a JSON list of alternatives, or {"alternatives": [...]}; '
            "see an example with: crowdveil studies moral-machine --example"
        )
    return alternatives


def _show_dry_run(prepared: Prepared, account: Ledger | None, as_json: bool) -> None:
    data, guarantee = prepared.as_dict(), prepared.guarantee
    if account is not None:
        fits = account.preview(
            prepared.dataset.fingerprint, guarantee.epsilon.micro, guarantee.paradigm.unit, guarantee.rho_micro
        )
        data["budget"] = fits.as_dict()

    def in_words() -> None:
        bar = data["expected_error_bar"]
        charge = f"epsilon {guarantee.epsilon}"
        if account is not None and fits.measure is Measure.RHO:
            delta = f" and delta {guarantee.delta:g}" if guarantee.delta else ""
            charge = f"rho {decimal_text(fits.requested_micro)}, for {charge}{delta}"
        out.print(f"Nothing was spent. {prepared.mechanism} would charge {charge}.")
        if account is not None:
            out.print(
                f"Remaining: {decimal_text(fits.remaining_micro)} of {decimal_text(fits.budget_micro)}"
                + ("." if fits.fits else f", which is {decimal_text(fits.missing_micro)} too little.")
            )
        known = (
            "is known only afterwards (the noise goes through a maximisation)"
            if bar is None
            else f"would be ± {bar:.3g}"
        )
        out.print(f"The 95 % error bar of each coordinate {known}.")

    show(data, as_json, in_words)


def _print_release(made: Release, path: Path | None) -> None:
    society = table(made.study.title, "feature", "society", "± noise (95 %)", numbers=2)
    rows = zip(made.study.features, made.parameter, made.error_bars, strict=True)
    for feature, value, bar in sorted(rows, key=lambda row: -row[1]):
        society.add_row(feature.label, f"{value:+.3f}", f"{bar:.3f}")
    out.print(society)
    out.print()
    for sentence in (*guarantee_sentences(made.guarantee), *devices_sentences(made.facts)):
        out.print(sentence, markup=False)
    for name, value in made.facts.items():
        if name != "reports_made_by":  # said in a sentence above
            out.print(f"{name.replace('_', ' ')}: {value}", markup=False)
    if not made.exact:
        err.print("Experiment: made with floating-point noise, this release protects nobody.")
    out.print(f"\nWrote {path}. Next: crowdveil decide {path} DILEMMA, or crowdveil report {path}", markup=False)


def _print_decision(loaded: Release, decision: Decision) -> None:
    out.print(loaded.study.question, markup=False)
    ranking = table(None, "", "alternative", "", "score", numbers=1)
    for place, ranked in enumerate(decision.ranking, start=1):
        ranking.add_row(f"{place}.", ranked.name, ranked.description, f"{ranked.score:+.3f}")
    out.print(ranking)
    verdict = "Too close to call" if decision.choice is None else f"Choice: {decision.choice}"
    out.print(f"[bold]{verdict}[/bold]: {decision.reason}.")
    if decision.probability is not None and decision.choice is not None:
        out.print(f"The crowd's model prefers it with probability {decision.probability:.0%}.")
    out.print(
        f"Certainty that privacy noise did not change the choice: {decision.certainty:.1%} "
        f"({decision.paradigm}, epsilon {decision.epsilon:g}{f', delta {decision.delta:g}' if decision.delta else ''})."
    )
