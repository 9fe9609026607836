"""crowdveil import: what people chose, from a file of another layout to ballots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.cli.inputs import EngineName, Master, OneRecordEach, import_progress
from crowdveil.cli.terminal import AsJson, say, show, tell
from crowdveil.errors import CrowdveilError

if TYPE_CHECKING:
    from crowdveil.sources.import_report import ImportReport

OutPath = Annotated[Path, typer.Option("--out", help="Where to write the ballot file (Parquet).")]
RefusedPath = Annotated[Path | None, typer.Option("--refused", help="Write the refused rows and why to this CSV.")]

AllowRefused = Annotated[
    float, typer.Option("--allow-refused", help="The share of rows that may be refused, from 0 to 1.")
]
AboutPath = Annotated[
    Path | None, typer.Option("--about", help="A table of what voters said of themselves (CSV, Parquet).")
]
MOST_REFUSED = 0.05

importing = typer.Typer(add_completion=False, rich_markup_mode=None, help="Read what people chose from a file.")


@importing.command("moral-machine")
def moral_machine(
    file: Annotated[Path, typer.Argument(help="CSV in the public Moral Machine layout, also gzipped, or Parquet.")],
    out_path: OutPath,
    about: AboutPath = None,
    mapping: Annotated[
        Path | None, typer.Option(help="The questions of --about with their columns and levels (TOML).")
    ] = None,
    refused: RefusedPath = None,
    shards: Annotated[
        bool, typer.Option("--shards", help="Write a folder of ballot files. With --engine spark it is always one.")
    ] = False,
    allow_refused: AllowRefused = MOST_REFUSED,
    one_record_each: OneRecordEach = False,
    engine: EngineName = "local",
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Import the public layout of the Moral Machine. Two rows a dilemma; in bounded memory.

    An import that was interrupted goes on when the same command is given again. With --about, ballots carry what voters
    said of themselves; examples/moral-machine-about.toml is a mapping for it.

    Example: `crowdveil import moral-machine SharedResponses.csv.gz --out mm.parquet --refused refused.csv`, or by a
    cluster `crowdveil import moral-machine SharedResponses.csv --out mm --engine spark --master spark://host:7077`
    """
    from crowdveil.engines.engine import chosen_engine
    from crowdveil.sources.moral_machine.importing import import_moral_machine
    from crowdveil.sources.moral_machine.spread import spread_moral_machine

    in_shards = shards or engine != "local"
    if in_shards and refused is not None:
        raise CrowdveilError(
            "--refused is for an import into one file, by the local engine: leave it out, or the others"
        )
    try:
        with chosen_engine(engine, master) as workers, import_progress() as advance:
            if in_shards:
                report = spread_moral_machine(
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
        tell(f"crowdveil: {out_path} is not written. Give the same command again, and the import goes on.")
        raise
    _show_import(report, "moral-machine", out_path, refused, as_json)


@importing.command("table")
def table(
    file: Annotated[Path, typer.Argument(help="A table of comparisons, one a row: CSV (also gzipped) or Parquet.")],
    out_path: OutPath,
    mapping: Annotated[Path | None, typer.Option(help="Which column means what (TOML).")] = None,
    study: Annotated[str | None, typer.Option(help="The study, where no mapping names it.")] = None,
    about: AboutPath = None,
    refused: RefusedPath = None,
    allow_refused: AllowRefused = MOST_REFUSED,
    one_record_each: OneRecordEach = False,
    as_json: AsJson = False,
) -> None:
    """Import any study's choices from a table.

    Its columns are `voter`, `chosen` (left or right) and, for each feature F, `left_F` and `right_F`.

    Other column names need a mapping file, no code; examples/kidney-mapping.toml is one.

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
        say(f"Wrote {out_path}: {report.pairs} pairs of {report.voters} voters, from {report.rows} rows.")
        if report.dropped:
            say(f"  left out {report.dropped} rows, as the mapping says")
        for reason, count in report.refused.items():
            say(f"  refused {count} rows: {reason.value}")
        if report.refused and refused is None:
            say("  (see which with --refused FILE)")
        for note in report.notes:
            say(f"  note: {note}")

    show({"ballots": str(out_path), "study": study, **report.as_dict()}, as_json, in_words)
