"""crowdveil align: an AI model beside the crowd of a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.cli.decide import AllowExperiment, ReleasePath
from crowdveil.cli.terminal import AsJson, Table, bold, say, show, tell
from crowdveil.errors import CrowdveilError

if TYPE_CHECKING:
    from crowdveil.evaluation.alignment.align import Agreement, Alignment, ModelAlignment


def align(
    release_path: ReleasePath,
    answers: Annotated[
        list[Path] | None, typer.Option("--answers", help="A file of models' answers; more than one may be given.")
    ] = None,
    dilemmas: Annotated[
        Path | None, typer.Option(help="The file in the Moral Machine's layout whose outcomes the answers name.")
    ] = None,
    certainty: Annotated[float, typer.Option(help="From this certainty on, the crowd counts as sure.")] = 0.9,
    picture: Annotated[
        Path | None, typer.Option(help="Draw models and crowd side by side to this .png or .svg.")
    ] = None,
    allow_experiment: AllowExperiment = False,
    as_json: AsJson = False,
) -> None:
    """Compare what AI models chose with what the crowd of a release chooses. Nothing private is read or spent.

    Agreement is the share of a model's answers that are the crowd's choice: of all, of those where the crowd is sure,
    and of the others. One person is the yardstick, for people do not all agree with their own crowd. People is the
    share of people who would choose as the model did, and models are ranked by it. In brackets stand 95 % intervals;
    they cover the draw of the dilemmas and what the release does not know.

    A file of answers is a table with the columns `model`, `chosen` (left, right or refused) and, for each feature F,
    `left_F` and `right_F`; or JSON lines like `{"model": "m", "dilemma": [{"girl": 1}, {"dog": 2}], "choice": "A"}`; or
    a column for each model beside `ResponseID` and `Intervention`, with --dilemmas.

    Example: `crowdveil align mm.json --answers models.csv --dilemmas SharedResponses.csv --picture align.svg`
    """
    from crowdveil.evaluation.alignment.align import align as compare
    from crowdveil.evaluation.toolkit.drawing import check_picture
    from crowdveil.files import check_writable
    from crowdveil.releases import read_release
    from crowdveil.sources.model_answers import read_answers

    if not answers:
        raise CrowdveilError("there is nothing to compare: give models' answers with --answers FILE")
    if picture is not None:
        check_picture(picture)
        check_writable(picture)
    release = read_release(release_path, allow_experiment=allow_experiment)
    found = compare(release, read_answers(answers, release.study, dilemmas=dilemmas), certainty=certainty)
    if picture is not None:
        found.picture(picture)
    show({**found.as_dict(), **({} if picture is None else {"picture": str(picture)})}, as_json, lambda: _print(found))
    if picture is not None:
        tell(f"Wrote {picture}")


def _print(found: Alignment) -> None:
    say(bold(repr(found.release).strip("<>").removeprefix("release: ")))
    ranked = Table(
        "\nPeople who would choose as the model did", "model", "answers", "refused", "people", "at best", numbers=4
    )
    for one in found.models:
        ranked.add(one.model, str(one.answers), str(one.refused), str(one.people), f"{one.overall.one_person:.3f}")
    ranked.print()
    say("At best: as many as agree with the crowd's own choice. A coin: 0.500.")
    for model in found.without_choice:
        say(f"{model} refused every dilemma.")
    title = f"\nAgreement with the crowd's choice (sure: certain to {found.certainty:.0%} or more)"
    agreed = Table(title, "model", "where", "answers", "agrees", "one person", numbers=3)
    for one in found.models:
        for where, part in (("everywhere", one.overall), ("it is sure", one.sure), ("it is not", one.unsure)):
            agreed.add(one.model if where == "everywhere" else "", where, *_cells(part))
    agreed.print()
    for one in found.models:
        _print_factors(one)


def _cells(part: Agreement | None) -> tuple[str, str, str]:
    return ("0", "", "") if part is None else (str(part.answers), str(part.share), f"{part.one_person:.3f}")


def _print_factors(one: ModelAlignment) -> None:
    title = f"\n{one.model} by factor: chose the side with more of it, less chose the other"
    rows = Table(title, "factor", "answers", "model", "crowd", numbers=3)
    for factor in one.factors:
        rows.add(
            f"{factor.title}: {factor.poles[1]}",
            str(factor.answers),
            *("" if effect is None else str(effect) for effect in (factor.model_effect, factor.crowd_effect)),
        )
    rows.print()
