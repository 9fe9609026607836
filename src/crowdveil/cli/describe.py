"""crowdveil describe and fit: exact numbers about a ballot file. Nothing here protects anybody."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdveil.cli.inputs import BallotPath, EngineName, Master, watched_ballots
from crowdveil.cli.terminal import AsJson, Table, say, say_wrapped, show, tell
from crowdveil.errors import CrowdveilError, plural

if TYPE_CHECKING:
    from crowdveil.estimation.crowd_preference import CrowdPreference
    from crowdveil.estimation.dilemmas import Correlation, Variation
    from crowdveil.estimation.society import Society
    from crowdveil.study.study import Study

WALKS = 20
"""Approximate number of passes over the ballots: steps of Newton's method, for both weightings together."""
FAR = 1.25
"""Ratio of mean squares above which a factor is reported."""
TOGETHER = 0.2
"""Difference of correlations above which two factors are reported."""


def describe(ballots: BallotPath, as_json: AsJson = False) -> None:
    """Describe a ballot file: what was asked, and what was preferred. Exact, so not for publishing.

    By factor and by feature: in how many records the two sides differ, and by how much (mean square), each next to the
    same number for dilemmas from the study's own generator; and how often the chosen side had more. If a file differs
    from the generator, also in which factors go together, a mechanism that assumes the generator's dilemmas is off.

    Then the crowd's exact preference: Phi(preference x difference) of people choose the side with more; where people
    may choose neither, Phi(preference x difference - tau). It is fitted twice: once with every voter counted once, and
    once with every choice counted once, so that those who answered more count more.

    Example: `crowdveil describe mm.parquet`
    """
    from crowdveil.ballots.ballots import census
    from crowdveil.estimation.crowd_preference import WEIGHTINGS, crowd_preference
    from crowdveil.estimation.dilemmas import dilemma_variation
    from crowdveil.estimation.threshold import exact_threshold
    from crowdveil.privacy.mechanisms.algorithm3 import clipped_records
    from crowdveil.privacy.mechanisms.reliability import answered_alike
    from crowdveil.privacy.mechanisms.shares import STEPS

    with watched_ballots(ballots, "counting", walks=WALKS) as source:
        study = source.study
        counted = census(source)
        clipped = sum(clipped_records(batch, study) for batch in source.batches())
        variation = dilemma_variation(source)
        directions = study.factor_matrix.astype("float64")
        voters, choices = (crowd_preference(source, weighting=w, directions=directions) for w in WEIGHTINGS)
        third = None
        if study.indifference is not None:
            neither = sum(int((batch.choices == 0).sum()) for batch in source.batches())
            # Decided choices alone give too steep a preference: a release estimates that of the threshold model.
            fits = [exact_threshold(source, weighting=weighting) for weighting in WEIGHTINGS]
            voters, choices = (
                replace(found, coordinates=study.factor_map @ fit.preference)
                for found, fit in zip((voters, choices), fits, strict=True)
            )
            third = {"share": neither / counted.records, "tau": fits[0].tau}
        alike = None
        if study.repeat:
            alike = sum(int(answered_alike(batch)[0]) for batch in source.batches()) / (STEPS * counted.voters)
    data = {
        "study": study.name,
        "voters": counted.voters,
        "records": counted.records,
        "fewest_per_voter": counted.fewest_records,
        "most_per_voter": counted.most_records,
        "records_beyond_record_bound": clipped,
        "fingerprint": counted.fingerprint,
        "private": True,
        "factors": {one.name: one.as_dict() for one in variation.factors},
        "features": {one.name: one.as_dict() for one in variation.features},
        "furthest_together": None if variation.furthest_together is None else asdict(variation.furthest_together),
        "crowd_preference": {
            found.weighting: {
                factor.name: float(value) if known else None
                for factor, value, known in zip(study.factors, found.coordinates, found.known, strict=True)
            }
            for found in (voters, choices)
        },
        **({} if third is None else {"indifference": third}),
        **({} if alike is None else {"answered_alike": alike}),
    }

    def in_words() -> None:
        fewest, most = counted.fewest_records, counted.most_records
        spread = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        say(
            f"{study.title}: {counted.voters} {plural(counted.voters, 'voter')}, {counted.records} "
            f"{plural(counted.records, 'record')} ({spread} each)."
        )
        exceed, them = ("exceeds", "it") if clipped == 1 else ("exceed", "them")
        say(f"{clipped} {exceed} the study's record bound {study.record_bound:.4g}: Algorithm 3 scales {them} down.")
        if not study.factors_are_features:
            _print_variation("factor", variation.factors)
        _print_variation("feature", variation.features)
        say("Drawn: the same for dilemmas that the study's own generator draws.")
        _print_furthest(variation.factors)
        _print_together(variation.furthest_together)
        if third is not None:
            say("")
            say_wrapped(
                f"Neither side was chosen in {third['share']:.1%} of the records (threshold tau {third['tau']:.3f}). "
                "The numbers above leave them out; the preference below counts them."
            )
        if alike is not None:
            say(f"\nOf a dilemma that was asked twice, {alike:.1%} of the voters gave the same answer both times.")
        _print_weightings([one.label for one in variation.factors], voters, choices)
        tell("These numbers are exact: they protect nobody. Publish a release instead.")

    show(data, as_json, in_words)


def _print_variation(kind: str, rows: Sequence[Variation]) -> None:
    table = Table("", kind, "differ", "drawn", "mean square", "drawn", "chosen had more", numbers=5)
    for row in rows:
        chosen = "" if row.chosen_had_more is None else f"{row.chosen_had_more:.1%}"
        squares = (f"{row.mean_square:.3g}", f"{row.drawn_mean_square:.3g}")
        table.add(row.label, f"{row.share:.1%}", f"{row.drawn_share:.1%}", *squares, chosen)
    table.print()


def _print_furthest(rows: Sequence[Variation]) -> None:
    """Name the factor whose variation differs most from the study's generator, if it differs much."""

    def distance(row: Variation) -> float:
        small, large = sorted((row.mean_square, row.drawn_mean_square))
        return large / small if small else math.inf if large else 1.0

    far = max(rows, key=distance)
    if distance(far) > FAR:
        squares = f"mean square {far.mean_square:.3g} in the file, {far.drawn_mean_square:.3g} drawn"
        say_wrapped(f"Furthest from the generator: {far.label} ({squares}).")


def _print_together(pair: Correlation | None) -> None:
    """Name the two factors that go together least as in the generator's dilemmas, if they differ much in that."""
    if pair is None or abs(pair.correlation - pair.drawn) <= TOGETHER:
        return
    say_wrapped(
        f"Unlike in the generator's dilemmas, {pair.factors[0]} and {pair.factors[1]} go together (correlation "
        f"{pair.correlation:+.2f} in the file, {round(pair.drawn, 2) + 0.0:+.2f} drawn). vlcp and rlcp measure that "
        "in large crowds; in small ones, and of vldp and rldp, error bars may be too short for it. If everybody may "
        "know such dilemmas, give some with release --design (vlcp, rlcp), or release with alcp or aldp, which know "
        "them."
    )


def _print_weightings(labels: Sequence[str], voters: CrowdPreference, choices: CrowdPreference) -> None:
    title = "\nThe crowd's preference, exactly: every voter counts once, or every choice"
    table = Table(title, "factor", "by voter", "by choice", "difference", "± sampling", numbers=4)
    for k, label in enumerate(labels):
        if not (voters.known[k] and choices.known[k]):
            table.add(label, *["not known"] * 2, "", "")
            continue
        one = voters.coordinates[k]
        other = choices.coordinates[k]
        error = voters.standard_errors[k]
        sampling = f"{error:.3f}" if math.isfinite(error) else ""
        table.add(label, f"{one:+.3f}", f"{other:+.3f}", f"{other - one:+.3f}", sampling)
    table.print()


def fit(
    ballots: BallotPath,
    bound: Annotated[float | None, typer.Option(help="Norm bound B. Default: the study's.")] = None,
    unbounded: Annotated[
        bool, typer.Option("--unbounded", help="No bound: the estimate of Noothigattu et al., where it exists.")
    ] = False,
    engine: EngineName = "local",
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Fit every voter and average, WITHOUT privacy: for comparison on your own machine only.

    Example: `crowdveil fit mm.parquet`
    """
    from crowdveil.engines.engine import chosen_engine
    from crowdveil.estimation.society import society

    if unbounded and bound is not None:
        raise CrowdveilError("--unbounded and --bound exclude each other: give one of them")
    with chosen_engine(engine, master) as workers, watched_ballots(ballots, "fitting", engine=workers) as source:
        limit = None if unbounded else source.study.norm_bound if bound is None else bound
        fitted = society(source, limit)
    study = source.study
    data: dict[str, Any] = {
        "study": study.name,
        "private": False,
        "norm_bound": limit,
        "voters": fitted.voters,
        "voters_without_estimate": fitted.left_out,
        "largest_gap": fitted.largest_gap,
        "parameter": dict(zip(study.feature_names, fitted.parameter.tolist(), strict=True)),
    }
    show(data, as_json, lambda: _print_society(study, fitted))


def _print_society(study: Study, fitted: Society) -> None:
    voters = plural(fitted.voters, "voter")
    rows = Table(f"{study.title}, {fitted.voters} {voters}, no privacy", "feature", "society", numbers=1)
    for feature, value in sorted(zip(study.features, fitted.parameter, strict=True), key=lambda row: -row[1]):
        rows.add(feature.label, f"{value:+.4f}")
    rows.print()
    if fitted.largest_gap is None:
        lost = plural(fitted.left_out, "voter has", "voters have")
        say(f"{fitted.left_out} {lost} no unbounded estimate (separable records): left out.")
    else:
        say(f"Certified: every voter is within {fitted.largest_gap:.1e} of the best log-likelihood.")
    tell("Not private: do not publish these numbers. Use `crowdveil release`.")
