"""crowdveil compare: the accuracy of each mechanism, on crowds of a given size or on a real file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.cli.terminal import AsJson, Table, bold, progress, say, show, tell
from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS, Paradigm, Place
from crowdveil.privacy.guarantee import paradigm as find_paradigm

if TYPE_CHECKING:
    from crowdveil.evaluation.comparison import Comparison
    from crowdveil.evaluation.comparison_runs import Population

VOTERS = 50
RECORDS = 100
FEATURES = 10
CROWDS = 40
SPLITS = 8
EPSILONS = "0.1,0.3,1"


def compare(
    ballots: Annotated[
        Path | None, typer.Argument(metavar="BALLOTS", help="A ballot file. Default: the paper's synthetic crowds.")
    ] = None,
    voters: Annotated[int | None, typer.Option(help=f"Synthetic: voters N. Default: {VOTERS}.")] = None,
    records: Annotated[int | None, typer.Option(help=f"Synthetic: records per voter n. Default: {RECORDS}.")] = None,
    features: Annotated[int | None, typer.Option(help=f"Synthetic: features d. Default: {FEATURES}.")] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help=f"One or more, with commas. Default: {EPSILONS}.")
    ] = None,
    personal: Annotated[
        bool, typer.Option("--personal", help="The paper's groups of personal epsilons instead (vldp, rldp, aldp).")
    ] = False,
    paradigm: Annotated[
        str | None, typer.Option(metavar="NAMES", help="One or more, with commas. Default: all.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every mechanism, not only the paper's and the recommended one.")
    ] = False,
    crowds: Annotated[int | None, typer.Option(help=f"Synthetic: how many crowds. Default: {CROWDS}.")] = None,
    splits: Annotated[int | None, typer.Option(help=f"File: how many random splits. Default: {SPLITS}.")] = None,
    epsilon_needed: Annotated[
        bool, typer.Option("--epsilon-needed", help="Also find the epsilon that reaches 80, 90 and 95 % of no privacy.")
    ] = False,
    voters_needed: Annotated[
        bool, typer.Option("--voters-needed", help="Also find how many voters reach 95 % (simulates: takes minutes).")
    ] = False,
    relay: Annotated[
        bool, typer.Option("--relay", help="Also: whole voters protected through a relay, all of them in one batch.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the curves to this .png or .svg.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed draws the same crowds and noise.")] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Processes. Default: one per core. The results are the same.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the paper's mechanisms, the recommended ones and no privacy: accuracy per paradigm and epsilon.

    Synthetic crowds: accuracy is the share of 10,000 fresh Gaussian pairs on which the release and the social parameter
    m, from which the crowd was drawn, choose the same side. A file: 75 % of its voters make the release, and predicted
    is the share of the others' own choices that it predicts (ties count half). Ratio is to no privacy on the same
    crowds: the mean of the bounded fits (society) for synthetic crowds, one fit to all records (pooled) for a file. Low
    and high are its 95 % interval.

    Probabilities, as a decision states them, are judged by the held-out choices, or by those of fresh voters drawn in
    the same way as the synthetic crowd. Brier is the mean squared distance from what was chosen (a coin: 0.25). Slope
    is that of a probit regression of the choices on Phi^-1(stated): 1 is honest, and below 1 the release is
    overconfident. Stated - right is the mean probability stated for the predicted side, minus the share predicted.
    Covered is the share of the factors' 95 % intervals that contain the exact preference of the crowd itself.

    Squared error is the mean of |release - target|^2. The target is the mean of the bounded fits for algorithms 1 to 3
    and subset selection, and the crowd's exact preference for the others (every voter counts once in it if voters are
    protected, and every choice otherwise).

    Through a relay (--relay), every report has the largest epsilon of its own for which all reports, shuffled together,
    keep the requested epsilon, with delta 1e-6 and 90 % of the reports honest.

    The noise is seeded floating-point noise: nothing is released, and no ledger is charged. Whatever is printed about a
    file is exact and protects nobody.

    Example: `crowdveil compare --voters 50 --records 100 --features 10 --epsilon 0.1,0.3,1 --plot compare.svg`
    """
    from crowdveil.evaluation.comparison import ComparisonRequest
    from crowdveil.evaluation.comparison import compare as run_comparison
    from crowdveil.files import check_picture

    if plot is not None:
        check_picture(plot)
        if personal:
            raise CrowdveilError("personal epsilons are one point, not a curve: leave out --plot, or give --epsilon")
    if personal and epsilon is not None:
        raise CrowdveilError("--personal and --epsilon exclude each other: give one of them")
    population, number = _population(ballots, voters, records, features, crowds, splits)
    request = ComparisonRequest(
        population=population,
        paradigms=_paradigms(paradigm, personal),
        epsilons=() if personal else _epsilons(EPSILONS if epsilon is None else epsilon),
        number=number,
        seed=seed,
        everything=everything,
        whole_curves=epsilon_needed or plot is not None,
        count_voters=voters_needed,
        relay=relay,
        workers=workers if workers is not None else os.cpu_count() or 1,
    )
    made = run_comparison(request, lambda task, total: progress(task, total, "crowds"))
    if plot is not None:
        made.plot(plot)
    data = {**made.as_dict(), **({} if plot is None else {"plot": str(plot)})}
    show(data, as_json, lambda: _print(made, plot))


def _population(
    ballots: Path | None,
    voters: int | None,
    records: int | None,
    features: int | None,
    crowds: int | None,
    splits: int | None,
) -> tuple[Population, int]:
    from crowdveil.evaluation.comparison_runs import of_file, synthetic

    if ballots is None:
        if splits is not None:
            raise CrowdveilError("--splits is for a ballot file; synthetic crowds are counted with --crowds")
        usual = ((voters, VOTERS), (records, RECORDS), (features, FEATURES))
        size = (default if given is None else given for given, default in usual)
        return synthetic(*size), CROWDS if crowds is None else crowds
    given = {"--voters": voters, "--records": records, "--features": features, "--crowds": crowds}
    for option, value in given.items():
        if value is not None:
            raise CrowdveilError(f"{option} is for synthetic crowds: leave it out, or leave out {ballots}")
    return of_file(ballots), SPLITS if splits is None else splits


def _epsilons(text: str) -> tuple[Epsilon, ...]:
    return tuple(dict.fromkeys(Epsilon(part.strip()) for part in text.split(",")))


def _paradigms(text: str | None, personal: bool) -> tuple[Paradigm, ...]:
    if text is None:
        return tuple(p for p in PARADIGMS.values() if p.place is Place.DISTRIBUTED or not personal)
    return tuple(dict.fromkeys(find_paradigm(part.strip()) for part in text.split(",")))


def _print(made: Comparison, plot: Path | None) -> None:
    population = made.request.population
    say(bold(population.describe(made.request.number)))
    for entry in population.baselines:
        say(f"no privacy, {entry.mechanism}: {population.quality} {made.quality(entry)}")
    for paradigm in made.request.paradigms:
        _table(made, paradigm).print()
    if made.request.relay:
        _relayed(made).print()
    say("* recommended")
    _calibration(made).print()
    if made.request.whole_curves:
        _print_epsilon_needed(made)
    if made.request.count_voters:
        _print_voters_needed(made)
    if plot is not None:
        say(f"\nWrote {plot}")
    if population.quality == "predicted":
        tell("These shares are exact: they protect nobody. Do not publish them.")


def _table(made: Comparison, paradigm: Paradigm) -> Table:
    from crowdveil.pages.plain_words import paradigm_title

    quality = made.request.population.quality
    base = made.request.population.baselines[0].mechanism
    title = f"\n{paradigm.name}: {paradigm_title(paradigm)}"
    rows = Table(title, "mechanism", "epsilon", quality, f"of {base} [95 %]", "squared error", numbers=4)
    for compared in made.shown:
        entry = compared.entry
        if compared.paradigm is paradigm and compared.relayed is None:
            votes = "equal votes" if entry.equal_votes else "weighted votes"
            rows.add(
                entry.mechanism + (" *" if compared.recommended else ""),
                votes if entry.epsilon is None else str(entry.epsilon),
                f"{made.quality(entry).estimate:.3f}",
                str(made.ratio(entry)),
                f"{made.measured[entry].squared_error.mean():.3g}",
            )
    return rows


def _relayed(made: Comparison) -> Table:
    quality = made.request.population.quality
    base = made.request.population.baselines[0].mechanism
    title = "\nvldp through a relay: voters protected, nobody trusted, if host and relay keep apart what they know"
    rows = Table(title, "mechanism", "epsilon", "each report", quality, f"of {base} [95 %]", numbers=4)
    for compared in made.shown:
        if compared.relayed is not None:
            promise = compared.relayed
            entry = compared.entry
            rows.add(
                entry.mechanism,
                f"{promise.epsilon:.3f}, delta {promise.delta:g}",
                str(entry.epsilon),
                f"{made.quality(entry).estimate:.3f}",
                str(made.ratio(entry)),
            )
    return rows


def _calibration(made: Comparison) -> Table:
    rows = Table(
        "\nStated probabilities and intervals",
        "mechanism",
        "epsilon",
        "Brier",
        "slope",
        "stated - right",
        "covered",
        numbers=5,
    )
    private = dict.fromkeys(compared.entry for compared in made.shown)
    for entry in (*made.request.population.baselines, *private):
        votes = "equal votes" if entry.equal_votes else "weighted votes"
        level = "no privacy" if entry not in private else votes if entry.epsilon is None else str(entry.epsilon)
        found = made.calibration(entry)
        formats = {"brier": "{:.4f}", "slope": "{:.2f}", "overstatement": "{:+.3f}", "coverage": "{:.2f}"}
        cells = ("-" if found[name] is None else form.format(found[name]) for name, form in formats.items())
        rows.add(entry.mechanism, level, *cells)
    return rows


def _print_epsilon_needed(made: Comparison) -> None:
    base = made.request.population.baselines[0].mechanism
    shares = ("80%", "90%", "95%")
    rows = Table(f"\nSmallest epsilon for a share of {base}", "paradigm", "choice", "mechanism", *shares, numbers=3)
    for found in made.epsilon_needed():
        names = ", ".join(found["mechanisms"])
        needed = ("not reached" if found[share] is None else f"{found[share]:.2g}" for share in shares)
        rows.add(found["paradigm"], found["choice"], names, *needed)
    rows.print()


def _print_voters_needed(made: Comparison) -> None:
    base = made.request.population.baselines[0].mechanism
    rows = Table(f"\nVoters needed for 95 % of {base}", "paradigm", "choice", "epsilon", "voters", numbers=2)
    for needed in made.voters_needed:
        number = f"more than {needed.simulated_up_to}" if needed.voters is None else str(needed.voters)
        rows.add(needed.paradigm, needed.choice, str(needed.epsilon), number)
    rows.print()
