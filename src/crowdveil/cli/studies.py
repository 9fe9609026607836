"""crowdveil studies and simulate: show what is asked, and simulate voters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdveil.cli.terminal import AsJson, Seed, Table, bold, progress, say, show
from crowdveil.errors import CrowdveilError, check_whole, plural

if TYPE_CHECKING:
    import numpy as np

    from crowdveil.ballots.ballots import Ballots
    from crowdveil.study.study import Study


def studies(
    name: Annotated[str | None, typer.Argument(metavar="STUDY", help="A bundled study or a study file (TOML).")] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a dilemma of the study, ready for `decide`.")
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """List the bundled studies, or show one: its question, its features and their public bounds, and its factors.

    Example: `crowdveil studies moral-machine`, or `crowdveil studies moral-machine --example > dilemma.json`
    """
    from crowdveil.study.bundled import BUNDLED, load_study

    if name is None:
        listed = [load_study(bundled) for bundled in BUNDLED]
        show({"studies": [s.as_dict() for s in listed]}, as_json, lambda: _print_studies(listed))
        return
    study = load_study(name)
    if example:
        say(json.dumps(_example(study, seed), indent=2))
        return
    show({**study.as_dict(), "fingerprint": study.fingerprint}, as_json, lambda: _print_study(study))


def simulate(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="A bundled study, synthetic-D, or a study file.")],
    voters: Annotated[int, typer.Option(help="How many voters.")],
    out_path: Annotated[Path | None, typer.Option("--out", help="Where to write the ballot file (Parquet).")] = None,
    records: Annotated[int | None, typer.Option(help="Records per voter. Default: the study's dilemmas.")] = None,
    as_csv: Annotated[
        Path | None,
        typer.Option(help="Instead of ballots: a CSV in the public Moral Machine layout (gzipped if named .gz)."),
    ] = None,
    dirty: Annotated[float, typer.Option(help="With --as-csv: the share of dilemmas with something wrong.")] = 0.0,
    tau: Annotated[
        float | None, typer.Option(help="The voters' threshold, in a study that allows a third answer. Default: 0.3.")
    ] = None,
    alike: Annotated[
        float | None,
        typer.Option(
            help="Ask everybody one dilemma twice: the share who answer it alike. Default, in a study with a repeat: "
            "by the model."
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Write the ballots of simulated voters, to plan and to try things out.

    `synthetic-D` is the generator of the paper's Section 5.1; other studies draw their own dilemmas, and the voters
    lean as the study file says.

    Example: `crowdveil simulate moral-machine --voters 1000 --out crowd.parquet`, or, as a file to try the import with,
    `crowdveil simulate moral-machine --voters 1000 --as-csv crowd.csv.gz --dirty 0.01`. With `--alike 0.9`, everybody
    is asked one dilemma twice, and nine in ten give the same answer.
    """
    import numpy as np

    from crowdveil.ballots.ballot_file import write_ballots
    from crowdveil.sources.simulated import TAU, simulated_batches, synthetic_crowd
    from crowdveil.study.bundled import is_synthetic, load_study

    found = load_study(study)
    synthetic = is_synthetic(found)
    check_whole(seed, "the seed", 0)
    rng = np.random.default_rng(seed)
    if tau is not None and found.indifference is None:
        raise CrowdveilError(f"study {found.name} allows no third answer: leave out --tau, or give it indifference")
    if alike is not None:
        found = replace(found, repeat=True)
    if found.repeat and (as_csv is not None or synthetic):
        raise CrowdveilError(
            f"study {found.name} asks one dilemma twice, which neither the Moral Machine's layout nor the paper's "
            "generator knows: simulate ballots (--out) of a study with levels"
        )
    if found.indifference is not None and (as_csv is not None or synthetic):
        raise CrowdveilError(
            f"study {found.name} allows a third answer, which neither the Moral Machine's layout nor the paper's "
            "generator knows: simulate ballots (--out) of a study with levels"
        )
    if records is not None:
        found = replace(found, drawing=replace(found.drawing, dilemmas=records))
    if as_csv is not None and out_path is None:
        _simulate_csv(found, voters, as_csv, dirty, rng, as_json)
        return
    if out_path is None or as_csv is not None:
        raise CrowdveilError("say where to write: either --out crowd.parquet (ballots) or --as-csv crowd.csv")
    if dirty:
        raise CrowdveilError("ballots cannot be dirty: --dirty is for a file to import, with --as-csv crowd.csv")
    dilemmas = found.drawing.dilemmas
    if synthetic:
        crowd = synthetic_crowd(voters, dilemmas, found.dimension, rng).ballots.batches()
    else:
        crowd = simulated_batches(found, voters, rng, tau=TAU if tau is None else tau, alike=alike)
    with progress("simulating", voters, "voters") as advance:
        written = write_ballots(out_path, found, _counted(crowd, advance), {"simulated": True, "seed": seed})
    show(
        {"ballots": str(out_path), "study": found.name, "voters": written, "records": written * dilemmas},
        as_json,
        lambda: say(
            f"Wrote {out_path}: {written} simulated {plural(written, 'voter')}, {dilemmas} "
            f"{plural(dilemmas, 'record')} each."
        ),
    )


def _simulate_csv(study: Study, voters: int, path: Path, dirty: float, rng: np.random.Generator, as_json: bool) -> None:
    from crowdveil.sources.simulated_layout import write_public_layout

    with progress("simulating", voters, "voters") as advance:
        expected = write_public_layout(path, study, voters, rng, dirty, advance)

    def in_words() -> None:
        refused = ", and refuse:" if expected.refused else "."
        say(
            f"Wrote {path}: {expected.rows} {plural(expected.rows, 'row')}. An import must find {expected.records} "
            f"{plural(expected.records, 'record')} of {expected.voters} {plural(expected.voters, 'voter')}{refused}"
        )
        for reason, count in expected.refused.items():
            say(f"  {count} {plural(count, 'row')}: {reason.value}")

    show({"file": str(path), "study": study.name, **expected.as_dict()}, as_json, in_words)


def _counted(crowd: Iterator[Ballots], advance: Callable[[int], None]) -> Iterator[Ballots]:
    for batch in crowd:
        yield batch
        advance(batch.voters)


def _example(study: Study, seed: int) -> list[dict[str, object]]:
    """Draw a dilemma in the form that `crowdveil decide` reads; features that are 0 are left out."""
    import numpy as np

    from crowdveil.study.drawing import draw_session

    check_whole(seed, "the seed", 0)
    drawn = draw_session(study, np.random.default_rng(seed))[0]
    return [
        {"name": a.name, "features": {f: v for f, v in study.plain_values(a.values).items() if v}}
        for a in drawn.alternatives
    ]


def _print_studies(listed: list[Study]) -> None:
    rows = Table(None, "study", "title", "features", "dilemmas per voter", numbers=2)
    for study in listed:
        rows.add(study.name, study.title, str(study.dimension), str(study.drawing.dilemmas))
    rows.print()
    say("synthetic-D has D features. Look closer with: crowdveil studies NAME")


def _print_study(study: Study) -> None:
    from crowdveil.study.features import Feature

    say(f"{bold(study.title)}\n{study.question}")
    rows = Table(None, "feature", "meaning", "from", "to", "unit", numbers=3)
    for f in study.attributes:
        if isinstance(f, Feature):
            rows.add(f.name, f.label, f"{f.low:g}", f"{f.high:g}", f"{f.unit:g}")
    rows.print()
    categories = Table(None, "category", "meaning", "levels")
    for category in study.categories:
        categories.add(category.name, category.label, ", ".join(category.levels))
    categories.print()
    factors = Table(None, "factor", "title", "from", "to")
    for factor in study.named_factors:
        factors.add(factor.name, factor.title, *factor.poles)
    factors.print()
    say(
        f"Norm bound B = {study.norm_bound:g}, record bound {study.record_bound:.4g}, "
        f"{study.drawing.dilemmas} {plural(study.drawing.dilemmas, 'dilemma')} a ballot ({study.drawing.method})"
        f"{', one of them asked twice' if study.repeat else ''}.\nFingerprint {study.fingerprint}"
    )
