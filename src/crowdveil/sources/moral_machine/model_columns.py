"""Reads answers of models that name outcomes of a file in the public layout, with a column for each model.

``ResponseID`` and ``Intervention`` together name one outcome, that is one row of that file. A model's cell is 1 where
it spares this group, 0 where it spares the other, and blank in both rows where it was not asked. Where the two rows do
not say the opposite of each other, the model has refused to choose.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import CrowdveilError
from crowdveil.sources.import_report import REASON, ROW, number
from crowdveil.sources.moral_machine.blocks import open_layout
from crowdveil.sources.moral_machine.layout import DILEMMA, GREEN, HIGHEST, RED, SIGNAL, SIZE
from crowdveil.sources.moral_machine.rows import check
from crowdveil.sources.table_file import TableFile
from crowdveil.study.bundled import load_study
from crowdveil.study.study import Study

ACTION = "Intervention"
NAMED_BY = (DILEMMA, ACTION)


def read_model_columns(path: str | Path, dilemmas: str | Path, study: Study, allow_refused: float) -> Ballots:
    """Read the answers of all models in a file, as ballots of which a voter is a model."""
    if study.fingerprint != load_study("moral-machine").fingerprint:
        raise CrowdveilError(f"{path} answers dilemmas of the Moral Machine, and the release is of {study.name}")
    models = [column for column in TableFile(path, NAMED_BY).columns if column not in NAMED_BY]
    if not models:
        raise CrowdveilError(f"{path} has no column of a model's answers beside {' and '.join(NAMED_BY)}")
    table = TableFile(path, [*NAMED_BY, *models])
    answers = _outcomes(pl.concat(table.batches()).drop(ROW), str(path))
    if not len(answers):
        raise CrowdveilError(f"{path} has no dilemma with both of its outcomes")
    differences = _differences(dilemmas)
    joined = answers.join(differences, on=DILEMMA, how="inner", maintain_order="left")
    missing = len(answers) - len(joined)
    if missing > allow_refused * len(answers):
        raise CrowdveilError(
            f"{missing} of {len(answers)} dilemmas that {path} names are not in {dilemmas}: name the file with the "
            "dilemmas that the models were asked"
        )
    records = []
    for model in models:
        cells = joined.select(DILEMMA, *HIGHEST, stays=number(f"{model} 0"), swerves=number(f"{model} 1"))
        asked = cells.filter((joined[f"{model} 0"] != "") | (joined[f"{model} 1"] != ""))
        stays, swerves = pl.col("stays"), pl.col("swerves")
        first, second = (stays == 1) & (swerves == 0), (stays == 0) & (swerves == 1)
        chosen = pl.when(first).then(1).when(second).then(-1).otherwise(0)
        records.append(asked.select(*HIGHEST, choice=chosen.cast(pl.Int8), model=pl.lit(model)))
    answered = pl.concat(records)
    if not len(answered):
        raise CrowdveilError(f"{path} has no answer: the columns of all models are blank")
    counts = answered.group_by("model", maintain_order=True).len()
    return Ballots(
        study,
        np.concatenate([[0], np.cumsum(counts["len"].to_numpy())]).astype(np.int64),
        answered.select(*HIGHEST).to_numpy(),
        answered["choice"].to_numpy(),
        counts["model"].to_arrow().cast("string"),
        origin={"answers_from": Path(path).name, "dilemmas_not_found": missing},
    )


def _outcomes(rows: pl.DataFrame, path: str) -> pl.DataFrame:
    """Put the two outcomes of each dilemma in one row; a column ends in 0 if the car stays, in 1 if it swerves."""
    sides = [
        rows.filter(number(ACTION) == action).select(DILEMMA, pl.exclude(NAMED_BY).name.suffix(f" {action}"))
        for action in (0, 1)
    ]
    if any(side[DILEMMA].is_duplicated().any() for side in sides):
        raise CrowdveilError(f"{path} names an outcome twice: keep one row for each {' and '.join(NAMED_BY)}")
    return sides[0].join(sides[1], on=DILEMMA, how="inner", maintain_order="left")


def _differences(path: str | Path) -> pl.DataFrame:
    """Return each dilemma of a file in the public layout: its features where the car stays less where it swerves."""
    good = []
    for batch in open_layout(path).batches():
        checked = check(batch if SIZE in batch.columns else batch.with_columns(pl.lit("").alias(SIZE)))
        good.append(checked.filter(pl.col(REASON).is_null()).select(DILEMMA, *HIGHEST))
    legality = pl.col(SIGNAL).replace_strict({0: 0, GREEN: 1, RED: -1}, return_dtype=pl.Int8)
    rows = pl.concat(good).with_columns(legality).unique((DILEMMA, ACTION), keep="first", maintain_order=True)
    sides = [rows.filter(pl.col(ACTION) == action) for action in (0, 1)]
    pairs = sides[0].join(sides[1], on=DILEMMA, how="inner", suffix=" 1")
    return pairs.select(DILEMMA, *(pl.col(column) - pl.col(f"{column} 1") for column in HIGHEST))
