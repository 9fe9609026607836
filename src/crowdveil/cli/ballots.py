"""crowdveil import and ballots: import, filter, split and merge ballot files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdveil.cli.help import ReadableCommand, ReadableGroup, command_group
from crowdveil.cli.inputs import BallotPath, EngineName, Master, OneRecordEach, import_progress
from crowdveil.cli.terminal import AsJson, say, show, tell
from crowdveil.errors import CrowdveilError, plural

if TYPE_CHECKING:
    from crowdveil.ballots.selection import WrittenBallots
    from crowdveil.sources.import_report import ImportReport


OutPath = Annotated[Path, typer.Option("--out", help="Where to write the ballot file (Parquet).")]
RefusedPath = Annotated[Path | None, typer.Option("--refused", help="Write the refused rows and why to this CSV.")]

AllowRefused = Annotated[
    float, typer.Option("--allow-refused", help="The share of rows that may be refused, from 0 to 1.")
]
AboutPath = Annotated[
    Path | None, typer.Option("--about", help="A table of voters' answers about themselves (CSV, Parquet).")
]
MOST_REFUSED = 0.05


class ImportGroup(ReadableGroup):
    """The layouts that can be imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the layout; a file given in its place is answered with both of them."""
        given = args[0]
        if given not in self.commands and (Path(given).suffix or Path(given).exists()):
            raise CrowdveilError(
                f"say which layout {given} has: crowdveil import moral-machine {given} (two rows for each dilemma, "
                f"one for each side), or crowdveil import table {given} (one row for each dilemma)"
            )
        return super().resolve_command(ctx, args)


importing = command_group(cls=ImportGroup, help="Read what people chose from a file.")


@importing.command("moral-machine", cls=ReadableCommand)
def moral_machine(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV in the public Moral Machine layout, also gzipped, or Parquet.")
    ],
    out_path: OutPath,
    about: AboutPath = None,
    mapping: Annotated[
        Path | None, typer.Option(help="The questions of --about with their columns and levels (TOML).")
    ] = None,
    refused: RefusedPath = None,
    shards: Annotated[
        bool, typer.Option("--shards", help="Write a folder of ballot files. --engine spark always does.")
    ] = False,
    allow_refused: AllowRefused = MOST_REFUSED,
    one_record_each: OneRecordEach = False,
    engine: EngineName = "local",
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Import a file in the Moral Machine's public layout.

    It has two rows for each dilemma and is read in bounded memory. An interrupted import resumes when the same command
    is given again. With --about, ballots include voters' answers about themselves; examples/moral-machine-about.toml is
    a mapping for it.

    Example: `crowdveil import moral-machine SharedResponses.csv.gz --out mm.parquet --refused refused.csv`, or on a
    cluster `crowdveil import moral-machine SharedResponses.csv --out mm --engine spark --master spark://host:7077`
    """
    from crowdveil.engines.engine import chosen_engine
    from crowdveil.sources.moral_machine.engine_import import import_with_engine
    from crowdveil.sources.moral_machine.importing import import_moral_machine

    in_shards = shards or engine != "local"
    if in_shards and refused is not None:
        raise CrowdveilError(
            "--refused is for an import into one file, by the local engine: leave it out, or the others"
        )
    try:
        with chosen_engine(engine, master) as workers, import_progress() as advance:
            if in_shards:
                report = import_with_engine(
                    file,
                    out_path,
                    workers,
                    advance,
                    about=about,
                    mapping=mapping,
                    allow_refused=allow_refused,
                    one_record_each=one_record_each,
                )
            else:
                report = import_moral_machine(
                    file,
                    out_path,
                    refused,
                    advance,
                    about=about,
                    mapping=mapping,
                    allow_refused=allow_refused,
                    one_record_each=one_record_each,
                )
    except KeyboardInterrupt:
        tell(f"crowdveil: {out_path} was not written. Give the same command again to resume the import.")
        raise
    _show_import(report, "moral-machine", out_path, refused, as_json)


@importing.command("table", cls=ReadableCommand)
def table(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A table of comparisons, one per row: CSV (also gzipped) or Parquet.")
    ],
    out_path: OutPath,
    mapping: Annotated[Path | None, typer.Option(help="Which column means what (TOML).")] = None,
    study: Annotated[str | None, typer.Option(help="The study, if no mapping names it.")] = None,
    about: AboutPath = None,
    refused: RefusedPath = None,
    allow_refused: AllowRefused = MOST_REFUSED,
    one_record_each: OneRecordEach = False,
    as_json: AsJson = False,
) -> None:
    """Import any study's choices from a table.

    Its columns are `voter`, `chosen` (left or right) and, for each feature F, `left_F` and `right_F`.

    Other column names need a mapping file, but no code; examples/kidney-mapping.toml is one.

    Example: `crowdveil import table answers.csv --mapping mapping.toml --out answers.parquet`
    """
    from crowdveil.sources.mapping import choose_mapping
    from crowdveil.sources.table import import_table

    if (mapping is None) == (study is None):
        raise CrowdveilError(
            "give either --mapping (which column means what) or --study (for the documented column names)"
        )
    columns = choose_mapping(study, mapping)
    report = import_table(
        file, out_path, columns, refused, about=about, allow_refused=allow_refused, one_record_each=one_record_each
    )
    _show_import(report, columns.study.name, out_path, refused, as_json)


def _show_import(report: ImportReport, study: str, out_path: Path, refused: Path | None, as_json: bool) -> None:
    def in_words() -> None:
        say(
            f"Wrote {out_path}: {report.records} {plural(report.records, 'record')} of {report.voters} "
            f"{plural(report.voters, 'voter')}, from {report.rows} {plural(report.rows, 'row')}."
        )
        if report.dropped:
            say(f"  left out {report.dropped} {plural(report.dropped, 'row')}, as the mapping says")
        for reason, count in report.refused.items():
            say(f"  refused {count} {plural(count, 'row')}: {reason.value}")
        if report.refused and refused is None:
            say("  (see which with --refused FILE)")
        for note in report.notes:
            say(f"  note: {note}")

    show({"ballots": str(out_path), "study": study, **report.as_dict()}, as_json, in_words)


ballots = command_group(help="Filter, split and merge ballot files.")

Out = Annotated[Path, typer.Option("--out", help="Where to write the ballots (Parquet).")]


@ballots.command("filter", cls=ReadableCommand)
def filter_(
    path: BallotPath,
    out_path: Out,
    names: Annotated[Path | None, typer.Option(help="A file with a voter's name in each line.")] = None,
    group: Annotated[
        list[str] | None, typer.Option(help="QUESTION=LEVEL, as in gender=women; repeat it for more levels.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Keep the voters in a list, or those of a group.

    A group are those who gave a certain answer about themselves.

    Example: `crowdveil ballots filter mm.parquet --group gender=women --out women.parquet`

    Who is kept may reveal what is to be protected. So the ballots record the selection, and a release of them is
    refused unless it declares the selection public (`release --public-selection`). A ledger charges the people who are
    in both files for both.
    """
    from crowdveil.ballots.ballot_file import open_ballots
    from crowdveil.ballots.selection import filter_by_group, filter_by_voter

    if (names is None) == (not group):
        raise CrowdveilError("say whom to keep: --names FILE, or --group QUESTION=LEVEL")
    source = open_ballots(path)
    if names is not None:
        made = filter_by_voter(source, _read_names(names), f"the names in {names.name}", out_path)
    else:
        question, levels = _levels(group or [])
        made = filter_by_group(source, question, levels, out_path)
    _show([made], as_json)


@ballots.command(cls=ReadableCommand)
def split(
    path: BallotPath,
    out_path: Annotated[Path, typer.Option("--out", help="The part (Parquet); with --by, a folder.")],
    rest: Annotated[Path | None, typer.Option(help="Where to write the others.")] = None,
    share: Annotated[float | None, typer.Option(help="At random: the share of voters in the part.")] = None,
    seed: Annotated[int | None, typer.Option(help="At random: the same seed gives the same parts.")] = None,
    by: Annotated[str | None, typer.Option(help="By a question about voters: a file for each group.")] = None,
    as_json: AsJson = False,
) -> None:
    """Split voters into two parts at random, or into groups.

    Example: `crowdveil ballots split mm.parquet --share 0.75 --seed 1 --out some.parquet --rest others.parquet`

    A random part may be released like any crowd. Groups record how they were selected, as in `ballots filter`; results
    by group that protect the group come from `crowdveil effects --by`.
    """
    from crowdveil.ballots.ballot_file import open_ballots
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


@ballots.command(cls=ReadableCommand)
def merge(
    paths: Annotated[list[Path], typer.Argument(metavar="BALLOTS", help="Two ballot files or more.")],
    out_path: Out,
    as_json: AsJson = False,
) -> None:
    """Merge crowds of one study.

    A voter who is in two of them is refused.

    Example: `crowdveil ballots merge spring.parquet autumn.parquet --out year.parquet`
    """
    from crowdveil.ballots.selection import merge as merge_files

    _show([merge_files(paths, out_path)], as_json)


def _read_names(path: Path) -> list[str]:
    try:
        names = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise CrowdveilError(f"cannot read the names in {path}: {getattr(error, 'strerror', None) or error}") from None
    if not names:
        raise CrowdveilError(f"{path} names no voter: write a name in each line")
    return names


def _levels(given: Sequence[str]) -> tuple[str, list[str]]:
    """Read QUESTION=LEVEL, given once or more for one question."""
    parts = [one.partition("=") for one in given]
    questions = {question for question, _, _ in parts}
    if len(questions) != 1 or not all(mark and level for _, mark, level in parts):
        raise CrowdveilError(f"a group is QUESTION=LEVEL of one question, as in gender=women, got {', '.join(given)}")
    return questions.pop(), [level for _, _, level in parts]


def _show(parts: Sequence[WrittenBallots], as_json: bool) -> None:
    data = [{"ballots": str(one.path), "voters": one.voters, "selection": one.selection} for one in parts]

    def in_words() -> None:
        for one in parts:
            selected = f", {one.selection}" if one.selection else ""
            say(f"Wrote {one.path}: {one.voters:,} {plural(one.voters, 'voter')}{selected}.")
        if any(one.selection for one in parts):
            say("A release of selected voters must declare what they were selected by: --public-selection LABEL.")

    show({"parts": data}, as_json, in_words)
