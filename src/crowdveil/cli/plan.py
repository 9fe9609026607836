"""crowdveil plan: what a promise costs in accuracy, and what it is worth, before anything is asked or spent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.cli.help import ReadableCommand, command_group
from crowdveil.cli.terminal import AsJson, Table, say, say_wrapped, show
from crowdveil.errors import CrowdveilError, OutOfReach, plural

if TYPE_CHECKING:
    from crowdveil.privacy.planning.accuracy import Bound, RepeatedReleases
    from crowdveil.privacy.planning.forecast import Forecast
    from crowdveil.study.study import Study

planning = command_group(invoke_without_command=True)

Delta = Annotated[float, typer.Option(help="Probability that the promise may fail: far below 1 / voters, like 1e-8.")]

SHUFFLER = (
    "a trusted shuffler strips each report of its sender's name, address and time, and passes the reports on in random "
    "order; it need not read them"
)
SAME_EPSILON = (
    "all voters make their reports by the same mechanism with the same epsilon, and it protects all records of a voter "
    "together (vldp); personal epsilons and reports that protect one record or one choice at a time (rldp, aldp) are "
    "not covered"
)


@planning.callback()
def plan(
    context: typer.Context,
    study: Annotated[str, typer.Option(help="A bundled study or a study file (TOML).")] = "moral-machine",
    paradigm: Annotated[
        list[str] | None,
        typer.Option(help="One of vlcp, rlcp, vldp, rldp, alcp and aldp; may be repeated. Default: all six."),
    ] = None,
    voters: Annotated[int | None, typer.Option(help="Number of voters. If left out, it is found.")] = None,
    records: Annotated[
        int | None,
        typer.Option(help="Records of each voter: dilemmas with a choice. Default: the study's number of dilemmas."),
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Privacy parameter. If left out, it is found.")
    ] = None,
    agreement: Annotated[
        float, typer.Option(help="Share of choices that the crowd's preference, known exactly, would predict.")
    ] = 0.75,
    certainty: Annotated[float, typer.Option(help="Certainty that decisions are to have.")] = 0.9,
    design: Annotated[
        str | None,
        typer.Option(metavar="study", help="Forecast a poll, or a file released with --design study."),
    ] = None,
    predicted: Annotated[float | None, typer.Option(help="Goal: share of people's choices predicted.")] = None,
    bar: Annotated[float | None, typer.Option(help="Goal: the widest error bar of a factor.")] = None,
    decided: Annotated[
        float | None, typer.Option(help="Goal: share of dilemmas decided with the certainty. Default goal: 0.5.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Forecast a release before there is any data, or find what it takes to reach a goal.

    Give voters and epsilon to see how wide the error bars will be, what share of people's choices the release will
    predict, and how many of the study's dilemmas it will decide. Leave out voters or epsilon to find the smallest value
    that reaches your goal; give both and a goal to find the number of records that each voter has to give.

    Forecasts are typical for crowds of the agreement that you expect (0.5: nobody agrees with anybody; 0.75: about what
    people agree on in the Moral Machine's dilemmas), and for the mechanism that `release` would use. They are computed
    from the study, which is public, and from the numbers you give.

    Example, "how good will it be?": `crowdveil plan --study moral-machine --voters 2000 --epsilon 1`

    Example, "how many voters do I need?": `crowdveil plan --study kidney --paradigm vldp --epsilon 2 --predicted 0.72`
    """
    if context.invoked_subcommand is not None:
        return
    from crowdveil.privacy.guarantee import PARADIGMS
    from crowdveil.privacy.planning.plan import plan as solve
    from crowdveil.study.bundled import load_study

    found = load_study(study)
    foretold: dict[str, Forecast | CrowdveilError] = {}
    for name in paradigm or PARADIGMS:
        try:
            foretold[name] = solve(
                found,
                name,
                voters=voters,
                records=records,
                epsilon=epsilon,
                agreement=agreement,
                certainty=certainty,
                predicted=predicted,
                bar=bar,
                decided=decided,
                design=design,
            )
        except OutOfReach as error:
            foretold[name] = error
    data = {
        "forecasts": {
            name: {"out_of_reach": str(one)} if isinstance(one, CrowdveilError) else one.as_dict()
            for name, one in foretold.items()
        }
    }
    show(data, as_json, lambda: _print_forecasts(found, foretold, agreement, certainty))


@planning.command(cls=ReadableCommand)
def society(
    voters: Annotated[
        int | None, typer.Option(help="Number of voters N; 1 for one voter's report (Theorem 4).")
    ] = None,
    features: Annotated[int | None, typer.Option(help="Number of features d.")] = None,
    bound: Annotated[float | None, typer.Option(help="Norm bound B of a preference.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Privacy parameter.")] = None,
    confidence: Annotated[float | None, typer.Option(help="Probability that the error stays below, like 0.95.")] = None,
    error: Annotated[float | None, typer.Option(help="Largest error of any coordinate.")] = None,
    as_json: AsJson = False,
) -> None:
    """Solve the paper's accuracy theorem for the number left out.

    It is about the paper's society. Theorem 2 (Algorithm 1): with the given confidence, privacy moves no coordinate by
    more than 2B / (N epsilon) ln(d / (1 - confidence)). Algorithm 3 has no such theorem in the paper.

    Example: `crowdveil plan society --features 23 --bound 2 --epsilon 1 --confidence 0.95 --error 0.05`
    """
    from crowdveil.privacy.planning.accuracy import solve_bound

    solved = solve_bound(
        voters=voters, features=features, norm_bound=bound, epsilon=epsilon, confidence=confidence, error=error
    )
    show(solved.as_dict(), as_json, lambda: _print_bound(solved))


@planning.command(cls=ReadableCommand)
def shuffle(
    epsilon: Annotated[str, typer.Option(metavar="NUMBER", help="Epsilon of each report by itself (vldp).")],
    voters: Annotated[int, typer.Option(help="Number of voters whose reports are shuffled together.")],
    delta: Delta,
    as_json: AsJson = False,
) -> None:
    """Compute how private shuffled reports become.

    A trusted shuffler hides whose report is whose.

    The bound is numerical (Feldman, McMillan and Talwar 2021) and rounded up. It holds for every mechanism of vldp,
    with one epsilon for all voters.

    Example: `crowdveil plan shuffle --epsilon 1 --voters 10000 --delta 1e-8`
    """
    from crowdveil.privacy.epsilon import Epsilon
    from crowdveil.privacy.shuffling import amplified_epsilon

    local = Epsilon(epsilon)
    amplified = amplified_epsilon(local.value, voters, delta)
    data = {
        "local_epsilon": local.value,
        "voters": voters,
        "delta": delta,
        "epsilon": amplified,
        "needs": [SHUFFLER, SAME_EPSILON],
    }

    def in_words() -> None:
        say_wrapped(
            f"{voters:,} reports, each of epsilon {local}, are together ({amplified:.4g}, {delta:g})-differentially "
            "private for whoever sees them only after the shuffling."
        )
        say_wrapped(f"This needs: {SHUFFLER}.")
        say_wrapped(f"It also needs: {SAME_EPSILON}.")
        say_wrapped(f"Against the shuffler itself each voter is protected by the report's own epsilon, {local}.")
        _warn_of_large_delta(delta, voters)

    show(data, as_json, in_words)


@planning.command(cls=ReadableCommand)
def relay(
    voters: Annotated[int, typer.Option(help="Number of voters expected.")],
    epsilon: Annotated[float, typer.Option(help="Desired epsilon against whoever sees the reports.")],
    delta: Delta = 1e-6,
    honest: Annotated[float, typer.Option(help="Share of reports in a batch that nobody made up or knows.")] = 0.9,
    study: Annotated[str, typer.Option(help="A bundled study or a study file (TOML).")] = "moral-machine",
    agreement: Annotated[
        float, typer.Option(help="Share of choices that the crowd's preference, known exactly, would predict.")
    ] = 0.75,
    as_json: AsJson = False,
) -> None:
    """Plan a poll through a relay.

    It shows which local epsilons and which batches keep a promise. A relay hands reports over in batches, shuffled, so
    that they hide each other. The larger the smallest batch, the larger the local epsilon may be, and the better the
    result; but a poll that gets fewer reports than one batch releases nothing.

    Example: `crowdveil plan relay --voters 1573 --epsilon 1`
    """
    from crowdveil.privacy.planning.plan import plan_relay
    from crowdveil.study.bundled import load_study

    found = load_study(study)
    plans = plan_relay(found, voters, epsilon, delta, honest, agreement)

    def in_words() -> None:
        rows = Table(
            f"{found.title}: {voters:,} voters through a relay, epsilon {epsilon:g}, delta {delta:g}",
            "batch",
            "local epsilon",
            "epsilon",
            "predicted",
            "decided",
            numbers=5,
        )
        for one in plans:
            rows.add(
                f"{one.batch:,}",
                f"{one.promise.local}",
                f"{one.promise.epsilon:.3g}",
                f"{one.foretold.predicted:.1%}",
                f"{one.foretold.decided:.0%}",
            )
        rows.print()
        say_wrapped(
            f"A batch is counted as if only {honest:.0%} of its reports were honest: reports that the reader made or "
            "knows hide nobody."
        )
        say_wrapped(
            "With fewer reports than one batch nothing is released: choose a batch that the poll will surely reach."
        )
        say_wrapped("Against a host and a relay that collude, each voter is protected by the local epsilon.")
        _warn_of_large_delta(delta, voters)

    show({"plans": [one.as_dict() for one in plans]}, as_json, in_words)


@planning.command(cls=ReadableCommand)
def repeat(
    releases: Annotated[int, typer.Option(help="How many times the same crowd's mean is published, like 52.")],
    epsilon: Annotated[str, typer.Option(metavar="NUMBER", help="Epsilon of all releases together.")],
    delta: Delta,
    voters: Annotated[int, typer.Option(help="Number of voters N.")],
    features: Annotated[int, typer.Option(help="Number of features d.")],
    bound: Annotated[float, typer.Option(help="Norm bound B of a preference.")],
    as_json: AsJson = False,
) -> None:
    """Compare Laplace and Gaussian noise for many releases.

    Both publish many times under one promise.

    Laplace noise, each release with epsilon / k, promises pure epsilon-differential privacy and needs no delta.
    Gaussian noise, accounted as zCDP, promises (epsilon, delta)-differential privacy.

    Example: `crowdveil plan repeat --releases 52 --epsilon 1 --delta 1e-6 --voters 10000 --features 23 --bound 2`
    """
    from crowdveil.privacy.epsilon import Epsilon
    from crowdveil.privacy.planning.accuracy import compare_repeated

    compared = compare_repeated(releases, Epsilon(epsilon).value, delta, voters, features, bound)
    show(compared.as_dict(), as_json, lambda: _print_repeated(compared, voters))


def _print_forecasts(
    study: Study, foretold: Mapping[str, Forecast | CrowdveilError], agreement: float, certainty: float
) -> None:
    rows = Table(
        f"{study.title}: forecast of releases",
        "paradigm",
        "mechanism",
        "voters",
        "records",
        "epsilon",
        "predicted",
        "decided",
        numbers=5,
    )
    good = {name: one for name, one in foretold.items() if not isinstance(one, CrowdveilError)}
    for name, one in good.items():
        rows.add(
            name,
            one.mechanism,
            f"{one.voters:,}",
            f"{one.records:,}",
            f"{one.epsilon:g}",
            f"{one.predicted:.1%}",
            f"{one.decided:.0%}",
        )
    rows.print()
    for name, missed in foretold.items():
        if isinstance(missed, CrowdveilError):
            say_wrapped(f"{name}: {missed}")
    if good:
        say()
        _print_bars(study, good)
        say()
        widely = [name for name, one in good.items() if one.along == "features" and study.along is None]
        if widely:
            say_wrapped(
                f"{' and '.join(widely)}: measured along features, every direction in which they differ, which "
                'promises the least error here. In a poll, write along = "features"; of a file whose dilemmas the '
                "study's generator drew, `release --design study` does so by itself."
            )
            say()
        drawn = any(one.drawn for one in good.values())
        say_wrapped(
            "Of a poll, or of a file released with --design study: the study's generator drew the dilemmas."
            if drawn
            else "Of a file, whose dilemmas anybody may have drawn. Of a poll, or of a file that is released with "
            "--design study, more is known: add --design study."
        )
        say()
        say_wrapped(
            f"For a crowd whose preference, known exactly, would predict {agreement:.0%} of people's choices, "
            "predicted is the share that the release will predict, and decided the share of the study's dilemmas that "
            f"it will decide as they would, with certainty {certainty:g}. Bars forecast intervals of 95 % (noise, "
            "sampling, what the model may be off by); those of a release may be wider, as they hold for crowds of any "
            "preference."
        )


def _print_bars(study: Study, foretold: Mapping[str, Forecast]) -> None:
    rows = Table("Error bars of the factors", "factor", *foretold, numbers=len(foretold))
    for factor in study.factors:
        bars = [one.bars[factor.name] for one in foretold.values()]
        rows.add(factor.title, *("not known" if bar is None else f"± {bar:.2g}" for bar in bars))
    rows.print()


def _print_bound(solved: Bound) -> None:
    say_wrapped(
        f"With {solved.voters:g} {plural(solved.voters, 'voter')}, {solved.features:g} "
        f"{plural(solved.features, 'feature')}, norm bound {solved.norm_bound:.4g} and epsilon {solved.epsilon:.4g}, "
        f"privacy moves no coordinate of the society by more than {solved.error:.4g} with "
        f"probability {solved.confidence:.4g} or more (Theorem 2; exactly: {solved.exact_confidence:.4g})."
    )


def _print_repeated(compared: RepeatedReleases, voters: int) -> None:

    rows = Table(
        f"{compared.releases:,} {plural(compared.releases, 'release')} of one crowd's mean, together epsilon "
        f"{compared.epsilon:g}",
        "noise",
        "promise",
        "a release costs",
        "± one coordinate",
        "± any coordinate",
        numbers=3,
    )
    for name, promise, unit, bars in (
        ("Laplace", "pure", "epsilon", compared.laplace),
        ("Gaussian", f"delta {compared.delta:g}", "rho", compared.gaussian),
    ):
        rows.add(name, promise, f"{unit} {bars.charge:.4g}", f"{bars.error_bar:.4g}", f"{bars.largest_error:.4g}")
    rows.print()
    say_wrapped(
        f"Both error bars hold with probability 95 %. Better here: {compared.better.capitalize()} noise. "
        "Gaussian noise has the smaller error bar from "
        f"{compared.gaussian_better_from:,} {plural(compared.gaussian_better_from, 'release')} on; below that, the "
        "pure promise is also the more accurate one."
    )
    if compared.better == "gaussian" and compared.rho_each:
        say_wrapped(
            f"To publish so: crowdveil ledger create L --budget {compared.epsilon} --delta {compared.delta}, "
            "then each time "
            f"crowdveil release BALLOTS --paradigm vlcp --rho {compared.rho_each} --ledger L --out FILE"
        )
    _warn_of_large_delta(compared.delta, voters)


def _warn_of_large_delta(delta: float, voters: int) -> None:
    if not delta < 1 / voters:
        say_wrapped(
            f"A delta of {delta:g} is too large for {voters:,} {plural(voters, 'voter')}: 1 / voters or more would "
            "allow one voter's records to be published whole."
        )
