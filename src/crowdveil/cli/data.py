"""crowdveil studies, simulate, import, describe and fit: everything before privacy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from crowdveil.ballots import Ballots, census, write_ballots
from crowdveil.cli.terminal import (
    AsJson,
    BallotPath,
    EngineName,
    Master,
    err,
    import_progress,
    out,
    progress,
    show,
    table,
    watched_ballots,
)
from crowdveil.engines.choice import chosen_engine
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.society import Society, society
from crowdveil.privacy.mechanisms.algorithm3 import clipped_records
from crowdveil.sources.import_report import ImportReport, write_refused
from crowdveil.sources.moral_machine.moral_machine import spread_moral_machine, stream_moral_machine
from crowdveil.sources.moral_machine.simulated_layout import write_public_layout
from crowdveil.sources.simulated import simulate_crowd, synthetic_crowd
from crowdveil.sources.table import TableMapping, import_table, load_mapping
from crowdveil.study.bundled import BUNDLED, load_study
from crowdveil.study.drawing import draw_session
from crowdveil.study.study import Study

OutPath = Annotated[Path, typer.Option("--out", help="Where to write the ballot file (Parquet).")]
RefusedPath = Annotated[Path | None, typer.Option("--refused", help="Write the refused rows and why to this CSV.")]
Seed = Annotated[int, typer.Option(help="The same seed draws the same.")]

importing = typer.Typer(no_args_is_help=True, help="Read people's answers from a file.")


def studies(
    name: Annotated[str | None, typer.Argument(help="A bundled study or a study file (TOML).")] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a dilemma of the study, ready for `decide`.")
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """List the bundled studies, or show one: its question, its features and their public bounds.

    Example: `crowdveil studies moral-machine`, or `crowdveil studies moral-machine --example > dilemma.json`
    """
    if name is None:
        listed = [load_study(bundled) for bundled in BUNDLED]
        show({"studies": [s.as_dict() for s in listed]}, as_json, lambda: _print_studies(listed))
        return
    study = load_study(name)
    if example:
        drawn = draw_session(study, np.random.default_rng(seed))[0]
        named = [
            {"name": a.name, "features": {f: v for f, v in zip(study.feature_names, a.values, strict=True) if v}}
            for a in drawn.alternatives
        ]
        out.print(json.dumps(named, indent=2), markup=False)
        return
    show({**study.as_dict(), "fingerprint": study.fingerprint}, as_json, lambda: _print_study(study))


def simulate(
    study: Annotated[str, typer.Argument(help="A bundled study, synthetic-D, or a study file.")],
    voters: Annotated[int, typer.Option(help="How many voters.")],
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to write the ballot file (Parquet).")] = None,
    records: Annotated[int | None, typer.Option(help="Answers per voter. Default: the study's.")] = None,
    as_csv: Annotated[
        Path | None,
        typer.Option(help="Instead of ballots: a CSV in the public Moral Machine layout (gzipped if named .gz)."),
    ] = None,
    dirty: Annotated[float, typer.Option(help="With --as-csv: the share of dilemmas with something wrong.")] = 0.0,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Let a crowd that does not exist answer a study, to plan and to try things out.

    `synthetic-D` is the generator of the paper's Section 5.1; other studies draw their own dilemmas, answered by people
    who lean as the study file says.

    Example: `crowdveil simulate moral-machine --voters 1000 --out crowd.parquet`, or, as a file to try the import with,
    `crowdveil simulate moral-machine --voters 1000 --as-csv crowd.csv.gz --dirty 0.01`
    """
    found, rng = load_study(study), np.random.default_rng(seed)
    if records is not None:
        found = replace(found, drawing=replace(found.drawing, dilemmas=records))
    if as_csv is not None and out_path is None:
        _simulate_csv(found, voters, as_csv, dirty, rng, as_json)
        return
    if out_path is None or as_csv is not None:
        raise CrowdveilError("say where to write: either --out crowd.parquet (ballots) or --as-csv crowd.csv")
    if dirty:
        raise CrowdveilError("ballots cannot be dirty: --dirty is for a file to import, with --as-csv crowd.csv")
    if found.drawing.method == "gaussian":
        crowd: Iterator[Ballots] = synthetic_crowd(
            voters, found.drawing.dilemmas, found.dimension, rng
        ).ballots.batches()
    else:
        crowd = simulate_crowd(found, voters, rng)
    with progress("simulating", voters, "voters") as tell:
        written = write_ballots(out_path, found, _told(crowd, tell), {"simulated": True, "seed": seed})
    result = {
        "ballots": str(out_path),
        "study": found.name,
        "voters": written,
        "pairs": written * found.drawing.dilemmas,
    }
    show(
        result,
        as_json,
        lambda: out.print(f"Wrote {out_path}: {written} simulated voters, {found.drawing.dilemmas} answers each."),
    )


@importing.command("moral-machine")
def moral_machine(
    file: Annotated[Path, typer.Argument(help="CSV in the public Moral Machine layout, also gzipped, or Parquet.")],
    out_path: OutPath,
    refused: RefusedPath = None,
    shards: Annotated[
        bool, typer.Option("--shards", help="Write a folder of ballot files. With --engine spark it is always one.")
    ] = False,
    engine: EngineName = "local",
    master: Master = None,
    as_json: AsJson = False,
) -> None:
    """Import answers in the public layout of the Moral Machine (two rows a dilemma), in bounded memory.

    An import that was interrupted goes on when the same command is given again.

    Example: `crowdveil import moral-machine SharedResponses.csv.gz --out mm.parquet --refused refused.csv`, or by a cluster
    `crowdveil import moral-machine SharedResponses.csv --out mm --engine spark --master spark://host:7077`
    """
    in_shards = shards or engine != "local"
    if in_shards and refused is not None:
        raise CrowdveilError(
            "--refused is for an import into one file, by the local engine: leave it out, or the others"
        )
    try:
        with chosen_engine(engine, master) as workers, import_progress() as tell:
            if in_shards:
                report = spread_moral_machine(file, out_path, workers, tell)
            else:
                report = stream_moral_machine(file, out_path, refused, tell)
    except KeyboardInterrupt:
        err.print(
            f"crowdveil: {out_path} is not written. Give the same command again, and the import goes on.", markup=False
        )
        raise
    _show_import(report, "moral-machine", out_path, refused, as_json)


@importing.command("table")
def table_file(
    file: Annotated[Path, typer.Argument(help="A table of comparisons, one a row: CSV (also gzipped) or Parquet.")],
    out_path: OutPath,
    mapping: Annotated[Path | None, typer.Option(help="Which column means what (TOML).")] = None,
    study: Annotated[str | None, typer.Option(help="The study, where no mapping names it.")] = None,
    refused: RefusedPath = None,
    as_json: AsJson = False,
) -> None:
    """Import any study's answers from a table: columns `voter`, `chosen` (left or right), `left_F` and `right_F`.

    Other column names need a mapping file, no code; examples/kidney-mapping.toml is one.

    Example: `crowdveil import table answers.csv --mapping mapping.toml --out answers.parquet`
    """
    if (mapping is None) == (study is None):
        raise CrowdveilError(
            "give either --mapping (which column means what) or --study (for the documented column names)"
        )
    columns = load_mapping(mapping) if mapping is not None else TableMapping(load_study(str(study)))
    imported = import_table(file, columns)
    report, ballots = imported.report, imported.ballots
    if refused is not None:
        write_refused(refused, imported)
    write_ballots(out_path, ballots.study, ballots.batches(), {"imported_from": file.name, **report.as_dict()})
    _show_import(report, ballots.study.name, out_path, refused, as_json)


def describe(ballots: BallotPath, as_json: AsJson = False) -> None:
    """Count a ballot file: voters, answers, and what the chosen side had more of. Exact, so not for publishing.

    Example: `crowdveil describe mm.parquet`
    """
    with watched_ballots(ballots, "counting", walks=2) as source:
        counted, clipped = census(source), 0
        more, differ = (np.zeros(source.study.dimension, np.int64) for _ in range(2))
        for chunk in source.batches():
            more += (chunk.differences > 0).sum(axis=0)
            differ += (chunk.differences != 0).sum(axis=0)
            clipped += clipped_records(chunk, source.study)
    shares = {
        name: {"pairs_that_differ": int(d), "chosen_had_more": None if d == 0 else float(m / d)}
        for name, m, d in zip(source.study.feature_names, more, differ, strict=True)
    }
    data = {
        "study": source.study.name,
        "voters": counted.voters,
        "pairs": counted.records,
        "fewest_per_voter": counted.fewest_records,
        "most_per_voter": counted.most_records,
        "records_beyond_record_bound": clipped,
        "fingerprint": counted.fingerprint,
        "private": True,
        "features": shares,
    }

    def in_words() -> None:
        spread = f"{counted.fewest_records} to {counted.most_records}"
        out.print(f"{source.study.title}: {counted.voters} voters, {counted.records} answers ({spread} each).")
        out.print(
            f"{clipped} answers are longer than the study's record bound {source.study.record_bound:.4g}: "
            "Algorithm 3 scales them down."
        )
        rows = table(None, "feature", "pairs that differ", "chosen had more", numbers=2)
        for feature, m, d in zip(source.study.features, more, differ, strict=True):
            rows.add_row(feature.label, str(d), "" if d == 0 else f"{m / d:.1%}")
        out.print(rows)
        err.print("These counts are exact: they protect nobody. Publish a release instead.")

    show(data, as_json, in_words)


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


def _simulate_csv(study: Study, voters: int, path: Path, dirty: float, rng: np.random.Generator, as_json: bool) -> None:
    with progress("simulating", voters, "voters") as tell:
        expected = write_public_layout(path, study, voters, rng, dirty, tell)

    def in_words() -> None:
        out.print(f"Wrote {path}: {expected.rows} rows. An import must find {expected.pairs} pairs of", end=" ")
        out.print(f"{expected.voters} voters" + (", and refuse:" if expected.refused else "."))
        for reason, count in expected.refused.items():
            out.print(f"  {count} rows: {reason.value}")

    show({"file": str(path), "study": study.name, **expected.as_dict()}, as_json, in_words)


def _show_import(report: ImportReport, study: str, out_path: Path, refused: Path | None, as_json: bool) -> None:
    def in_words() -> None:
        out.print(f"Wrote {out_path}: {report.pairs} pairs of {report.voters} voters, from {report.rows} rows.")
        if report.dropped:
            out.print(f"  left out {report.dropped} rows, as the mapping says")
        for reason, count in report.refused.items():
            out.print(f"  refused {count} rows: {reason.value}")
        if report.refused and refused is None:
            out.print("  (see which with --refused FILE)")
        for note in report.notes:
            out.print(f"  note: {note}", markup=False)

    show({"ballots": str(out_path), "study": study, **report.as_dict()}, as_json, in_words)


def _told(crowd: Iterator[Ballots], tell: Any) -> Iterator[Ballots]:
    for chunk in crowd:
        yield chunk
        tell(chunk.voters)


def _print_studies(listed: list[Study]) -> None:
    rows = table(None, "study", "title", "features", "answers per voter", numbers=2)
    for study in listed:
        rows.add_row(study.name, study.title, str(study.dimension), str(study.drawing.dilemmas))
    out.print(rows)
    out.print("synthetic-D has D features. Look closer with: crowdveil studies NAME")


def _print_study(study: Study) -> None:
    out.print(f"[bold]{study.title}[/bold]\n{study.question}")
    rows = table(None, "feature", "meaning", "from", "to", "unit", numbers=3)
    for f in study.features:
        rows.add_row(f.name, f.label, f"{f.low:g}", f"{f.high:g}", f"{f.unit:g}")
    out.print(rows)
    out.print(
        f"Norm bound B = {study.norm_bound:g}, record bound {study.record_bound:.4g}, "
        f"{study.drawing.dilemmas} dilemmas a ballot ({study.drawing.method}).\nFingerprint {study.fingerprint}"
    )


def _print_society(study: Study, fitted: Society) -> None:
    rows = table(f"{study.title}, {fitted.voters} voters, no privacy", "feature", "society", numbers=1)
    for feature, value in sorted(zip(study.features, fitted.parameter, strict=True), key=lambda row: -row[1]):
        rows.add_row(feature.label, f"{value:+.4f}")
    out.print(rows)
    if fitted.largest_gap is None:
        out.print(f"{fitted.left_out} voters have no unbounded estimate (separable answers) and are left out.")
    else:
        out.print(f"Certified: every voter is within {fitted.largest_gap:.1e} of the best log-likelihood.")
    err.print("Not private: do not publish these numbers. Use `crowdveil release`.")
