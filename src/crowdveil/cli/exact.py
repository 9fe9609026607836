"""crowdveil describe and fit: what a ballot file says exactly. Nothing here protects anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdveil.cli.inputs import BallotPath, EngineName, Master, watched_ballots
from crowdveil.cli.terminal import AsJson, Table, say, show, tell
from crowdveil.errors import CrowdveilError

if TYPE_CHECKING:
    from crowdveil.estimation.society import Society
    from crowdveil.study.study import Study


def describe(ballots: BallotPath, as_json: AsJson = False) -> None:
    """Count a ballot file: voters, records, and what the chosen side had more of. Exact, so not for publishing.

    Example: `crowdveil describe mm.parquet`
    """
    import numpy as np

    from crowdveil.ballots import census
    from crowdveil.privacy.mechanisms.algorithm3 import clipped_records

    with watched_ballots(ballots, "counting", walks=2) as source:
        counted = census(source)
        clipped = 0
        more = np.zeros(source.study.dimension, np.int64)
        differ = np.zeros(source.study.dimension, np.int64)
        for batch in source.batches():
            more += (batch.differences > 0).sum(axis=0)
            differ += (batch.differences != 0).sum(axis=0)
            clipped += clipped_records(batch, source.study)
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
        say(f"{source.study.title}: {counted.voters} voters, {counted.records} records ({spread} each).")
        say(
            f"{clipped} records are longer than the study's record bound {source.study.record_bound:.4g}: "
            "Algorithm 3 scales them down."
        )
        rows = Table(None, "feature", "pairs that differ", "chosen had more", numbers=2)
        for feature, m, d in zip(source.study.features, more, differ, strict=True):
            rows.add(feature.label, str(d), "" if d == 0 else f"{m / d:.1%}")
        rows.print()
        tell("These counts are exact: they protect nobody. Publish a release instead.")

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
    rows = Table(f"{study.title}, {fitted.voters} voters, no privacy", "feature", "society", numbers=1)
    for feature, value in sorted(zip(study.features, fitted.parameter, strict=True), key=lambda row: -row[1]):
        rows.add(feature.label, f"{value:+.4f}")
    rows.print()
    if fitted.largest_gap is None:
        say(f"{fitted.left_out} voters have no unbounded estimate (separable records) and are left out.")
    else:
        say(f"Certified: every voter is within {fitted.largest_gap:.1e} of the best log-likelihood.")
    tell("Not private: do not publish these numbers. Use `crowdveil release`.")
