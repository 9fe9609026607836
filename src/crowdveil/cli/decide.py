"""crowdveil decide and page: decisions from a release, and a page that explains it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdveil.cli.terminal import AsJson, Table, bold, say, say_wrapped, show
from crowdveil.errors import CrowdveilError, shown
from crowdveil.study.plain_data import parse_json

if TYPE_CHECKING:
    from crowdveil.decision import Decision
    from crowdveil.releases import Release

BYTE_ORDER_MARK = "\ufeff"
"""The mark that some editors write at the beginning of a file."""
ReleasePath = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file (JSON).")]
AllowExperiment = Annotated[
    bool,
    typer.Option("--allow-experiment", help="Accept a release made with floating-point noise, which protects nobody."),
]


def decide(
    release_path: ReleasePath,
    dilemma: Annotated[
        str, typer.Argument(metavar="DILEMMA", help="A JSON file, - for standard input, or the JSON itself.")
    ],
    certainty: Annotated[float, typer.Option(help="Below this certainty it is too close to call.")] = 0.9,
    allow_experiment: AllowExperiment = False,
    as_json: AsJson = False,
) -> None:
    """Ask a release to decide a dilemma of two or more alternatives.

    The probability is the share of voters who agree with the choice. The certainty is how certain it is that the voters
    as a whole would make it, and the population certainty is the same for the people from whom they were drawn.

    Example: `crowdveil decide release.json '[{"girl": 1}, {"dog": 2, "intervention": 1}]'`, or with names `'{"stay":
    {"girl": 1}, "swerve": {"dog": 2}}'`. An example for any study: `crowdveil studies moral-machine --example`.
    """
    from crowdveil.decision import decide as decide_dilemma
    from crowdveil.releases import read_release

    loaded = read_release(release_path, allow_experiment=allow_experiment)
    decision = decide_dilemma(loaded, _read_dilemma(dilemma), certainty)
    data = {**decision.as_dict(), "exact": loaded.exact}
    show(data, as_json, lambda: _print_decision(loaded, decision))


def page(
    release_paths: Annotated[
        list[Path], typer.Argument(metavar="RELEASE", help="A release file or more (JSON), or a file of effects.")
    ],
    out_path: Annotated[Path | None, typer.Option("--out", help="Default: the release's name with .html.")] = None,
    allow_experiment: AllowExperiment = False,
    as_json: AsJson = False,
) -> None:
    """Write a page about a release or about effects: numbers with error bars, and the guarantee in plain language.

    Example: `crowdveil page release.json`

    Several releases are shown side by side; for groups (`release --by`), the page also shows how they differ.
    """
    from crowdveil.effect_release import holds_effects, read_effects
    from crowdveil.files import write_text
    from crowdveil.pages.release_page import release_page
    from crowdveil.releases import read_release

    first = release_paths[0]
    if not first.name:
        raise CrowdveilError(f"{first}: it is a directory, not a release file")
    target = first.with_suffix(".html") if out_path is None else out_path
    if target in release_paths:
        raise CrowdveilError(f"{target} is the file that is read: say where to write the page, with --out")
    if any(map(holds_effects, release_paths)):
        if len(release_paths) > 1:
            raise CrowdveilError("a file of effects gets a page of its own: give one at a time")
        read_effects(first, allow_experiment=allow_experiment).page(target)
    else:
        loaded = [read_release(path, allow_experiment=allow_experiment) for path in release_paths]
        write_text(target, release_page(loaded, files=[path.name for path in release_paths]))
    show({"page": str(target)}, as_json, lambda: say(f"Wrote {target}: open it in a browser."))


def _read_dilemma(given: str) -> Any:
    """Read a dilemma from a file, from stdin or from the argument itself."""
    text = given
    try:
        if given == "-":
            text = sys.stdin.read()
        elif not given.lstrip().startswith(("[", "{")):
            text = Path(given).read_text(encoding="utf-8")
        return parse_json(text.removeprefix(BYTE_ORDER_MARK))
    except IsADirectoryError:
        found = f"{given} is a directory" if given else "the dilemma is empty"
        raise CrowdveilError(f"{found}: give a dilemma as JSON, a file with one, or - to read it from stdin") from None
    except OSError as error:
        raise CrowdveilError(f"cannot read the dilemma {shown(given)}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise CrowdveilError(f"the dilemma in {given} is not JSON: it is not text in UTF-8") from None
    except ValueError as error:
        raise CrowdveilError(f"the dilemma is not JSON: {error}") from None


def _print_decision(loaded: Release, decision: Decision) -> None:
    say(loaded.study.question)
    if "group" in loaded.facts:
        say_wrapped(f"Asked: the group “{loaded.facts['group']}”.")
    ranking = Table(None, "", "alternative", "", "score", numbers=1)
    for place, ranked in enumerate(decision.ranking, start=1):
        ranking.add(f"{place}.", ranked.name, ranked.description, f"{ranked.score:+.3f}")
    ranking.print()
    verdict = "Too close to call" if decision.choice is None else f"Choice: {decision.choice}"
    say_wrapped(f"{bold(verdict)}: {decision.reason}.")
    for sentence in decision.sentences:
        say_wrapped(sentence)
    if not loaded.exact:
        say("Nothing is promised to the voters: the release is an experiment.")
        return
    delta = f", delta {decision.delta:g}" if decision.delta else ""
    say(f"Promised to the voters: {decision.paradigm}, epsilon {loaded.guarantee.epsilons}{delta}.")
