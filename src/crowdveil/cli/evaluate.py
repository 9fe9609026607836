"""crowdveil evaluate and align: compare a release with the people of a ballot file, and AI models with its crowd."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from crowdveil.cli.decide import AllowExperiment, ReleasePath
from crowdveil.cli.inputs import BallotPath, watched_ballots
from crowdveil.cli.terminal import AsJson, Table, bold, progress, say, say_wrapped, show, tell
from crowdveil.errors import CrowdveilError, plural

if TYPE_CHECKING:
    from crowdveil.evaluation.alignment import Agreement, Alignment, ModelAlignment
    from crowdveil.evaluation.model_prompting import Ask
    from crowdveil.evaluation.scorecard import Coverage, Evaluation


WALKS = 20
"""Approximate number of passes over the ballots: steps of Newton's method, once for features and once for factors."""


def evaluate(
    release_path: ReleasePath,
    ballots: BallotPath,
    weighting: Annotated[
        Literal["voters", "choices"], typer.Option("--weigh", help="Who counts once: every voter, or every choice.")
    ] = "voters",
    plot: Annotated[Path | None, typer.Option(help="Draw calibration and error bars to this .png or .svg.")] = None,
    allow_experiment: AllowExperiment = False,
    as_json: AsJson = False,
) -> None:
    """Judge a release by what people chose. EXACT: for the holder of the ballots, and not for publishing.

    Predicted is the share of choices that went to the side that the release prefers. The Brier score and the log loss
    judge the probabilities that it states: a coin has 0.25 and 0.69, and less is better. The calibration slope compares
    what is stated with what is true: 1 is honest, above 1 is too timid, below 1 is too sure. Stated less right says the
    same in percentage points: above 0 is too sure. The brackets contain 95 % intervals over voters.

    The limit is what can be reached without privacy: the exact preference of these same ballots, which was fitted to
    them and is therefore a little too good. Coverage asks whether the release's 95 % error bars contain that exact
    preference. By factor, only pairs that differ in the factor are judged.

    Judge by people who are not in the release, if you can: those who are in it are easier to predict.

    Example: `crowdveil evaluate mm.json others.parquet --plot mm-calibration.svg`
    """
    from crowdveil.evaluation.scorecard import NOT_PROTECTED
    from crowdveil.evaluation.scorecard import evaluate as judge
    from crowdveil.files import check_picture
    from crowdveil.releases import read_release

    if plot is not None:
        check_picture(plot)
    release = read_release(release_path, allow_experiment=allow_experiment)
    with watched_ballots(ballots, "evaluating", walks=WALKS) as source:
        found = judge(release, source, weighting=weighting)
    if plot is not None:
        found.plot(plot)
    show({**found.as_dict(), **({} if plot is None else {"plot": str(plot)})}, as_json, lambda: _print(found))
    if plot is not None:
        tell(f"Wrote {plot}")
    tell(NOT_PROTECTED)


def _print(found: Evaluation) -> None:
    released = found.released
    say(bold(repr(found.release).strip("<>").removeprefix("release: ")))
    once = "voter" if found.weighting == "voters" else "choice"
    say(
        f"Judged by {released.choices} {plural(released.choices, 'choice')} of {released.voters} "
        f"{plural(released.voters, 'voter')}; every {once} counts once."
    )
    say_wrapped("If they are in the release themselves, they are easier to predict than others: judge by others.")
    say()
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
    known = found.release.known.tolist()
    _print_coverage([factor.coverage for factor in found.factors], known, found.factor_coverage)
    if not found.release.study.factors_are_features:
        inside, of = found.feature_coverage
        outside = [feature.title for feature in found.features if feature.inside is False]
        say(f"\nThe error bars of {inside} of {of} features contain the exact value.")
        if outside:
            say_wrapped(f"Outside: {', '.join(outside)}.")


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


def _print_coverage(coverage: list[Coverage], known: list[bool], counted: tuple[int, int]) -> None:
    title = f"\nError bars: {counted[0]} of {counted[1]} contain the exact value"
    rows = Table(title, "factor", "released", "± bar (95 %)", "exact", "± sampling", "", numbers=5)
    for one, told in zip(coverage, known, strict=True):
        exact = "not known" if one.exact is None else f"{one.exact:+.3f}"
        sampling = "" if one.sampling_error is None else f"{one.sampling_error:.3f}"
        where = {True: "inside", False: "outside", None: ""}[one.inside]
        bar = f"{one.bar:.3f}" if told else "not known"
        rows.add(one.title, f"{one.released:+.3f}", bar, exact, sampling, where)
    rows.print()


ASKING = "Asking a model"


def align(
    release_path: ReleasePath,
    answers: Annotated[
        list[Path] | None, typer.Option("--answers", help="A file of models' answers; more than one may be given.")
    ] = None,
    dilemmas: Annotated[
        Path | None, typer.Option(help="The file in the Moral Machine's layout whose outcomes the answers name.")
    ] = None,
    ask: Annotated[
        str | None,
        typer.Option(help="Base URL of a chat endpoint of the OpenAI protocol to ask.", rich_help_panel=ASKING),
    ] = None,
    ask_command: Annotated[
        str | None,
        typer.Option(help="A program to ask: question on its stdin, reply on its stdout.", rich_help_panel=ASKING),
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model's name.", rich_help_panel=ASKING)] = None,
    transcript: Annotated[
        Path | None, typer.Option(help="Save every answer here, and resume from what is there.", rich_help_panel=ASKING)
    ] = None,
    number: Annotated[
        int, typer.Option(help="How many dilemmas to ask, each in both orders.", rich_help_panel=ASKING)
    ] = 100,
    at_once: Annotated[int, typer.Option(help="How many questions to ask at once.", rich_help_panel=ASKING)] = 4,
    seed: Annotated[int, typer.Option(help="The same seed draws the same dilemmas.", rich_help_panel=ASKING)] = 1,
    timeout: Annotated[float, typer.Option(help="Seconds to wait for a reply.", rich_help_panel=ASKING)] = 60.0,
    key_from: Annotated[
        str, typer.Option(help="The environment variable that holds the key, if one is needed.", rich_help_panel=ASKING)
    ] = "OPENAI_API_KEY",
    certainty: Annotated[float, typer.Option(help="From this certainty on, the crowd counts as sure.")] = 0.9,
    plot: Annotated[Path | None, typer.Option(help="Draw models and crowd side by side to this .png or .svg.")] = None,
    allow_experiment: AllowExperiment = False,
    as_json: AsJson = False,
) -> None:
    """Compare what AI models chose with what the crowd of a release chooses. Nothing private is read or spent.

    Agreement is the share of a model's answers that are the crowd's choice: of all, of those where the crowd is sure,
    and of the others. One person is the yardstick, because people do not all agree with their own crowd. People is the
    share of people who would choose as the model did, and models are ranked by it. The brackets contain 95 % intervals,
    which cover the draw of the dilemmas and the uncertainty of the release.

    A file of answers is a table with the columns `model`, `chosen` (left, right or refused) and, for each feature F,
    `left_F` and `right_F`; or JSON lines like `{"model": "m", "dilemma": [{"girl": 1}, {"dog": 2}], "choice": "A"}`; or
    a column for each model beside `ResponseID` and `Intervention`, with --dilemmas.

    With --ask or --ask-command, dilemmas that the study draws are put to a model in words, twice each, with either side
    first. Every answer is saved to the transcript immediately, with the model's words; after a failure, the same
    command resumes. The transcript can be given as --answers later.

    Example: `crowdveil align mm.json --ask http://localhost:11434/v1 --model llama3 --transcript llama3.jsonl`, or
    `crowdveil align mm.json --answers models.csv --dilemmas SharedResponses.csv --plot align.svg`
    """
    from crowdveil.evaluation.alignment import align as compare
    from crowdveil.evaluation.model_prompting import ask_model
    from crowdveil.files import check_picture
    from crowdveil.releases import read_release
    from crowdveil.sources.model_answers import read_answers

    asking = ask is not None or ask_command is not None
    if not answers and not asking:
        raise CrowdveilError("there is nothing to compare: give --answers FILE, --ask URL or --ask-command PROGRAM")
    if ask is not None and ask_command is not None:
        raise CrowdveilError("give --ask or --ask-command, not both: one transcript is of one model")
    if asking != (transcript is not None) or asking != (model is not None):
        raise CrowdveilError("--ask and --ask-command need --model NAME and --transcript FILE, and only they do")
    if plot is not None:
        check_picture(plot)
    release = read_release(release_path, allow_experiment=allow_experiment)
    files = list(answers or [])
    if transcript is not None and model is not None:
        with progress("asking", 2 * number, "questions") as advance:
            ask_model(
                _endpoint(ask, ask_command, model, timeout, key_from),
                model,
                release.study,
                transcript,
                dilemmas=number,
                seed=seed,
                at_once=at_once,
                advance=advance,
            )
        files.append(transcript)
    found = compare(release, read_answers(files, release.study, dilemmas=dilemmas), certainty=certainty)
    if plot is not None:
        found.plot(plot)
    show(
        {**found.as_dict(), **({} if plot is None else {"plot": str(plot)})},
        as_json,
        lambda: _print_alignment(found),
    )
    if plot is not None:
        tell(f"Wrote {plot}")


def _endpoint(url: str | None, command: str | None, model: str, timeout: float, key_from: str) -> Ask:
    from crowdveil.evaluation.model_prompting import ChatEndpoint, ModelProgram

    if url is not None:
        return ChatEndpoint(url, model, os.environ.get(key_from), timeout)
    return ModelProgram(command or "", timeout)


def _print_alignment(found: Alignment) -> None:
    say(bold(repr(found.release).strip("<>").removeprefix("release: ")))
    ranked = Table(
        "\nPeople who would choose as the model did", "model", "answers", "refused", "people", "at best", numbers=4
    )
    for one in found.models:
        ranked.add(one.model, str(one.answers), str(one.refused), str(one.people), f"{one.overall.one_person:.3f}")
    ranked.print()
    say("At best: as many as agree with the crowd's own choice. A coin: 0.500.")
    for one in found.models:
        if one.steady is not None:
            say(
                f"{one.model} gave the same answer to {one.steady:.0%} of the dilemmas that it was asked twice or more."
            )
    for model in found.without_choice:
        say(f"{model} refused every dilemma.")
    title = f"\nAgreement with the crowd's choice (sure: certain to {found.certainty:.0%} or more)"
    agreed = Table(title, "model", "where", "answers", "agrees", "one person", numbers=3)
    for one in found.models:
        for where, part in (("everywhere", one.overall), ("it is sure", one.sure), ("it is not", one.unsure)):
            agreed.add(one.model if where == "everywhere" else "", where, *_cells(part))
    agreed.print()
    for one in found.models:
        _print_model_factors(one)


def _cells(part: Agreement | None) -> tuple[str, str, str]:
    return ("0", "", "") if part is None else (str(part.answers), str(part.share), f"{part.one_person:.3f}")


def _print_model_factors(one: ModelAlignment) -> None:
    title = f"\n{one.model} by factor: chose the side with more of it, less chose the other"
    rows = Table(title, "factor", "answers", "model", "crowd", numbers=3)
    for factor in one.factors:
        rows.add(
            f"{factor.title}: {factor.poles[1]}",
            str(factor.answers),
            *("" if effect is None else str(effect) for effect in (factor.model_effect, factor.crowd_effect)),
        )
    rows.print()
