"""crowdveil describe and fit: what a ballot file says exactly. Nothing here protects anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from crowdveil.cli.inputs import BallotPath, EngineName, Master, watched_ballots
from crowdveil.cli.terminal import AsJson, Table, say, show, tell
from crowdveil.errors import CrowdveilError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crowdveil.arrays import IntArray, ValueArray
    from crowdveil.estimation.society import Society
    from crowdveil.study.study import Study


def describe(ballots: BallotPath, as_json: AsJson = False) -> None:
    """Count a ballot file: voters, records, and what the chosen side had more of, by factor and by feature.

    Exact, so not for publishing.

    Example: `crowdveil describe mm.parquet`
    """
    import numpy as np

    from crowdveil.ballots import census
    from crowdveil.privacy.mechanisms.algorithm3 import clipped_records

    with watched_ballots(ballots, "counting", walks=2) as source:
        counted = census(source)
        study = source.study
        clipped = 0
        features = np.zeros((2, study.dimension), np.int64)
        factors = np.zeros((2, len(study.factors)), np.int64)
        for batch in source.batches():
            features += _count(batch.differences)
            factors += _count(study.contrasts(batch.differences))
            clipped += clipped_records(batch, study)
    data = {
        "study": study.name,
        "voters": counted.voters,
        "pairs": counted.records,
        "fewest_per_voter": counted.fewest_records,
        "most_per_voter": counted.most_records,
        "records_beyond_record_bound": clipped,
        "fingerprint": counted.fingerprint,
        "private": True,
        "factors": _shares([factor.name for factor in study.factors], factors),
        "features": _shares(study.feature_names, features),
    }

    def in_words() -> None:
        spread = f"{counted.fewest_records} to {counted.most_records}"
        say(f"{study.title}: {counted.voters} voters, {counted.records} records ({spread} each).")
        say(
            f"{clipped} records are longer than the study's record bound {study.record_bound:.4g}: "
            "Algorithm 3 scales them down."
        )
        if not study.factors_are_features:
            poles = [f"{factor.title}: {factor.poles[1]}" for factor in study.factors]
            _print_counts("factor", poles, factors)
        _print_counts("feature", [feature.label for feature in study.features], features)
        tell("These counts are exact: they protect nobody. Publish a release instead.")

    show(data, as_json, in_words)


def _count(differences: ValueArray) -> IntArray:
    """Count in how many records the chosen side had more, and in how many the sides differ, column by column."""
    import numpy as np

    return np.stack([(differences > 0).sum(axis=0), (differences != 0).sum(axis=0)])


def _shares(names: Sequence[str], counts: IntArray) -> dict[str, dict[str, float | None]]:
    return {
        name: {"pairs_that_differ": differ, "chosen_had_more": None if differ == 0 else more / differ}
        for name, (more, differ) in zip(names, counts.T.tolist(), strict=True)
    }


def _print_counts(kind: str, labels: Sequence[str], counts: IntArray) -> None:
    rows = Table(None, kind, "pairs that differ", "chosen had more", numbers=2)
    for label, (more, differ) in zip(labels, counts.T.tolist(), strict=True):
        rows.add(label, str(differ), "" if differ == 0 else f"{more / differ:.1%}")
    rows.print()


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
