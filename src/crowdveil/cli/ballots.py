"""crowdveil ballots: parts of a ballot file, and several files put together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.cli.inputs import BallotPath
from crowdveil.cli.terminal import AsJson, say, show
from crowdveil.errors import CrowdveilError

if TYPE_CHECKING:
    from crowdveil.ballots.selection import Part

ballots = typer.Typer(
    add_completion=False, rich_markup_mode=None, help="Parts of ballots: by voter, by group, at random; and merging."
)

Out = Annotated[Path, typer.Option("--out", help="Where to write the ballots (Parquet).")]


@ballots.command("filter")
def filter_(
    path: BallotPath,
    out_path: Out,
    voters: Annotated[Path | None, typer.Option(help="A file with a voter's name in each line.")] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="QUESTION=LEVEL, as in gender=women; more levels: give it again.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Keep some voters: those in a list, or those who said something of themselves.

    Example: `crowdveil ballots filter mm.parquet --group gender=women --out women.parquet`

    Who is kept may tell what is to be protected. So what they were selected by stays with the ballots, and a release of
    them is refused unless it declares that public (`release --public-selection`). A ledger charges the people who are
    in both files for both.
    """
    from crowdveil.ballots.file import open_ballots
    from crowdveil.ballots.selection import filter_by_group, filter_by_voter

    if (voters is None) == (not group):
        raise CrowdveilError("say whom to keep: --voters FILE, or --group QUESTION=LEVEL")
    source = open_ballots(path)
    if voters is not None:
        made = filter_by_voter(source, _names(voters), f"the names in {voters.name}", out_path)
    else:
        question, levels = _levels(group or [])
        made = filter_by_group(source, question, levels, out_path)
    _show([made], as_json)


@ballots.command()
def split(
    path: BallotPath,
    out_path: Annotated[Path, typer.Option("--out", help="The part (Parquet); with --by, a folder.")],
    rest: Annotated[Path | None, typer.Option(help="Where to write the others.")] = None,
    share: Annotated[float | None, typer.Option(help="At random: the share of voters in the part.")] = None,
    seed: Annotated[int | None, typer.Option(help="At random: the same seed gives the same parts.")] = None,
    by: Annotated[str | None, typer.Option(help="By a question about voters: a file for each group.")] = None,
    as_json: AsJson = False,
) -> None:
    """Split voters at random into two parts, or by what they said of themselves into groups.

    Example: `crowdveil ballots split mm.parquet --share 0.75 --seed 1 --out some.parquet --rest others.parquet`

    A random part may be released like any crowd. Groups carry what they were selected by, as in `ballots filter`;
    results by group that protect the group come from `crowdveil effects --by`.
    """
    from crowdveil.ballots.file import open_ballots
    from crowdveil.ballots.selection import split_at_random, split_by_group

    at_random = (rest, share, seed)
    if by is not None and any(given is not None for given in at_random):
        raise CrowdveilError("--by splits by group: leave out --rest, --share and --seed")
    if by is not None:
        _show(split_by_group(open_ballots(path), by, out_path), as_json)
        return
    if rest is None or share is None or seed is None:
        raise CrowdveilError("say how to split: --share 0.75 --seed 1 --rest FILE, or --by QUESTION")
    _show(split_at_random(open_ballots(path), share, seed, out_path, rest), as_json)


@ballots.command()
def merge(
    paths: Annotated[list[Path], typer.Argument(metavar="BALLOTS...", help="Two ballot files or more.")],
    out_path: Out,
    as_json: AsJson = False,
) -> None:
    """Put crowds of one study together; a voter who is in two of them is refused.

    Example: `crowdveil ballots merge spring.parquet autumn.parquet --out year.parquet`
    """
    from crowdveil.ballots.selection import merge as merge_files

    _show([merge_files(paths, out_path)], as_json)


def _names(path: Path) -> list[str]:
    try:
        names = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise CrowdveilError(f"cannot read the names in {path}: {getattr(error, 'strerror', None) or error}") from None
    if not names:
        raise CrowdveilError(f"{path} names no voter: write a name in each line")
    return names


def _levels(given: Sequence[str]) -> tuple[str, list[str]]:
    """Read QUESTION=LEVEL, once or more for one question."""
    parts = [one.partition("=") for one in given]
    questions = {question for question, _, _ in parts}
    if len(questions) != 1 or not all(mark and level for _, mark, level in parts):
        raise CrowdveilError(f"a group is QUESTION=LEVEL of one question, as in gender=women, got {', '.join(given)}")
    return questions.pop(), [level for _, _, level in parts]


def _show(parts: Sequence[Part], as_json: bool) -> None:
    data = [{"ballots": str(one.path), "voters": one.voters, "selection": one.selection} for one in parts]

    def in_words() -> None:
        for one in parts:
            say(f"Wrote {one.path}: {one.voters:,} voters" + (f", {one.selection}." if one.selection else "."))
        if any(one.selection for one in parts):
            say("A release of selected voters must declare what they were selected by: --public-selection LABEL.")

    show({"parts": data}, as_json, in_words)
