"""crowdveil evaluate: is what a release says of people true of the people of a ballot file?"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crowdveil.cli.decide import AllowExperiment, ReleasePath
from crowdveil.cli.inputs import BallotPath, watched_ballots
from crowdveil.cli.terminal import WIDTH, AsJson, Table, bold, say, show, tell

if TYPE_CHECKING:
    from crowdveil.evaluation.scorecard import Coverage, Evaluation

WALKS = 20
"""About as often the ballots are read: Newton's method settles in so many steps, once in features, once in factors."""


def evaluate(
    release_path: ReleasePath,
    ballots: BallotPath,
    weighting: Annotated[
        Literal["voters", "choices"], typer.Option("--weigh", help="Who counts once: every voter, or every choice.")
    ] = "voters",
    picture: Annotated[Path | None, typer.Option(help="Draw calibration and error bars to this .png or .svg.")] = None,
    allow_experiment: AllowExperiment = False,
    as_json: AsJson = False,
) -> None:
    """Judge a release by what people chose. EXACT: for the holder of the ballots, and not for publishing.

    Predicted is the share of choices that went to the side which the release prefers. The Brier score and the log loss
    judge the probabilities that it states: a coin has 0.25 and 0.69, and less is better. The calibration slope compares
    what is stated with what is true: 1 is honest, above 1 is too timid, below 1 is too sure. Stated less right says the
    same in percentage points: above 0 is too sure. In brackets stand 95 % intervals over voters.

    The limit is what can be reached without privacy: the exact preference of these same ballots, fitted to them and so
    a little too good. Coverage asks whether the release's 95 % error bars contain that exact preference. By factor,
    only pairs that differ in the factor are judged.

    Judge by people who are not in the release, if you can: those who are in it are easier to predict.

    Example: `crowdveil evaluate mm.json others.parquet --picture mm-calibration.svg`
    """
    from crowdveil.evaluation.scorecard import NOT_PROTECTED
    from crowdveil.evaluation.scorecard import evaluate as judge
    from crowdveil.files import check_picture
    from crowdveil.releases import read_release

    if picture is not None:
        check_picture(picture)
    release = read_release(release_path, allow_experiment=allow_experiment)
    with watched_ballots(ballots, "evaluating", walks=WALKS) as source:
        found = judge(release, source, weighting=weighting)
    if picture is not None:
        found.picture(picture)
    show({**found.as_dict(), **({} if picture is None else {"picture": str(picture)})}, as_json, lambda: _print(found))
    if picture is not None:
        tell(f"Wrote {picture}")
    tell(NOT_PROTECTED)


def _print(found: Evaluation) -> None:
    released = found.released
    say(bold(repr(found.release).strip("<>").removeprefix("release: ")))
    once = "voter" if found.weighting == "voters" else "choice"
    say(f"Judged by {released.choices} choices of {released.voters} voters; every {once} counts once.\n")
    scores = Table(None, "", "release", "limit", "coin", numbers=3)
    for row in found.rows():
        scores.add(*row)
    scores.print()
    say("Honest: slope 1 (above: too timid), stated less right 0 (above: too sure).")
    rows = Table("\nCalibration: what was stated, and what came true", "stated", "choices", "mean", "right", numbers=3)
    for point in found.curve:
        rows.add(f"{point.low:.2f} to {point.high:.2f}", str(point.choices), f"{point.stated:.3f}", str(point.right))
    rows.print()
    _print_factors(found)
    _print_coverage("factor", [factor.coverage for factor in found.factors], found.factor_coverage)
    if not found.release.study.factors_are_features:
        inside, of = found.feature_coverage
        outside = [feature.title for feature in found.features if feature.inside is False]
        say(f"\nThe error bars of {inside} of {of} features contain the exact value.")
        if outside:
            say(textwrap.fill(f"Outside: {', '.join(outside)}.", WIDTH))


def _print_factors(found: Evaluation) -> None:
    title = "\nBy factor: the pairs that differ in it (beside each score, the limit's)"
    columns = ("choices", "predicted", "limit", "Brier", "limit", "slope", "limit")
    rows = Table(title, "factor", *columns, numbers=len(columns))
    for factor in found.factors:
        if factor.released is None or factor.limit is None:
            rows.add(factor.coverage.title, "0", *[""] * (len(columns) - 1))
            continue
        pairs = ((getattr(factor.released, name), getattr(factor.limit, name)) for name in ("share_predicted", "brier"))
        scores = [f"{score.estimate:.3f}" for pair in pairs for score in pair]
        slopes = ["none" if s is None else f"{s.estimate:.2f}" for s in (factor.released.slope, factor.limit.slope)]
        rows.add(factor.coverage.title, str(factor.released.choices), *scores, *slopes)
    rows.print()


def _print_coverage(kind: str, coverage: list[Coverage], counted: tuple[int, int]) -> None:
    title = f"\nError bars: {counted[0]} of {counted[1]} contain the exact value"
    rows = Table(title, kind, "released", "± bar (95 %)", "exact", "± sampling", "", numbers=5)
    for one in coverage:
        exact = "not known" if one.exact is None else f"{one.exact:+.3f}"
        sampling = "" if one.sampling_error is None else f"{one.sampling_error:.3f}"
        where = {True: "inside", False: "outside", None: ""}[one.inside]
        rows.add(one.title, f"{one.released:+.3f}", f"{one.bar:.3f}", exact, sampling, where)
    rows.print()
