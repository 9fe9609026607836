"""Imports answers in the public layout of the Moral Machine (Awad et al. 2018, OSF 3hvt2).

A row is one group of characters in one dilemma, and a dilemma is two rows with the same ``ResponseID``. The row
with ``Saved`` = 1 is the group that the voter spared. A voter is an ``ExtendedSessionID``. The 23 features are
columns of small whole numbers; ``NumberOfCharacters``, where it is given, must be the sum of the 20 counts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from veil.sources.cells import any_blank, any_not_finite, any_outside, first_reason, number
from veil.sources.import_report import REASON, ROW, Imported, Refusal, gather
from veil.sources.table_rows import TableRows
from veil.studies import load_study
from veil.studies.moral_machine_sessions import CHARACTERS, LARGEST_GROUP

DILEMMA, VOTER, SAVED, SIZE = "ResponseID", "ExtendedSessionID", "Saved", "NumberOfCharacters"
_SIGNAL = "CrossingSignal"
_GREEN, _RED = 1, 2


def column_of(feature: str) -> str:
    """Return the column of the public layout that a feature of the study comes from."""
    return _SIGNAL if feature == "legality" else "".join(w.capitalize() for w in feature.split("_"))


_GROUP = [column_of(character) for character in CHARACTERS]
_HIGHEST = {"Intervention": 1, "Barrier": 1, _SIGNAL: _RED, **dict.fromkeys(_GROUP, LARGEST_GROUP)}


def import_moral_machine(path: str | Path, progress: Callable[[int], None] | None = None) -> Imported:
    """Read a file of answers; rows that are not half of a good pair are refused, and counted by reason.

    ``progress`` is told how many rows have been read so far.
    """
    study = load_study("moral-machine")
    table = TableRows(path, [DILEMMA, VOTER, SAVED, *_HIGHEST], [SIZE])
    good, refused = [], []
    for batch in table.batches(progress):
        checked = _check(batch if SIZE in table.present else batch.with_columns(pl.lit("").alias(SIZE)))
        wrong = checked[REASON].is_not_null()
        good.append(checked.filter(~wrong).drop(REASON))
        refused.append(batch.filter(wrong).with_columns(checked[REASON].filter(wrong)))
    chosen, other, unusable = _pair(pl.concat(good))
    return gather(
        study,
        chosen[VOTER],
        _features(chosen, study.feature_names) - _features(other, study.feature_names),
        rows=table.rows,
        refused=[table.ragged(), *refused, unusable.with_columns(pl.exclude(ROW).cast(pl.String))],
        notes=table.notes(),
    )


def _check(batch: pl.DataFrame) -> pl.DataFrame:
    """Turn a batch of text into small whole numbers, with the reason why a row is refused, if it is."""
    numbers = [SAVED, *_HIGHEST]
    values = batch.with_columns(
        *(number(column) for column in (*numbers, SIZE)), blank=any_blank(numbers), sized=pl.col(SIZE) != ""
    )
    group = pl.sum_horizontal(_GROUP)
    reason = first_reason(
        [
            (Refusal.VOTER_MISSING, pl.col(VOTER) == ""),
            (Refusal.DILEMMA_MISSING, pl.col(DILEMMA) == ""),
            (Refusal.BLANK, pl.col("blank")),
            (Refusal.NOT_A_NUMBER, any_not_finite(numbers)),
            (Refusal.NO_SINGLE_CHOICE, ~pl.col(SAVED).is_in([0.0, 1.0])),
            (Refusal.OUT_OF_BOUNDS, any_outside((column, 0, high) for column, high in _HIGHEST.items())),
            (Refusal.OUT_OF_BOUNDS, pl.any_horizontal(pl.col(*_HIGHEST) % 1 != 0)),
            (Refusal.OUT_OF_BOUNDS, ~group.is_between(1, LARGEST_GROUP)),
            (Refusal.INCONSISTENT, pl.col("sized") & (pl.col(SIZE) != group).fill_null(True)),
        ]
    )
    return values.select(ROW, DILEMMA, VOTER, pl.col(numbers).cast(pl.Int8, strict=False), reason.alias(REASON))


def _pair(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Split good rows into chosen groups, the other groups in the same order, and rows that make no pair."""
    labelled = _label(rows)
    pairs, rest = labelled.filter(pl.col(REASON).is_null()), labelled.filter(pl.col(REASON).is_not_null())
    # A row that appears again is set aside alone: what it repeats may still be half of a good pair.
    repeated = ~rest.select(pl.struct(pl.exclude(ROW, REASON)).is_first_distinct()).to_series()
    relabelled = _label(rest.filter(~repeated).drop(REASON))
    pairs = (
        pl.concat([pairs, relabelled.filter(pl.col(REASON).is_null())])
        .with_columns(first=pl.col(ROW).min().over(DILEMMA))
        .sort("first", SAVED)
    )
    unusable = [
        rest.filter(repeated).with_columns(pl.lit(Refusal.DOUBLED.value).alias(REASON)),
        relabelled.filter(pl.col(REASON).is_not_null()),
    ]
    return pairs.gather_every(2, offset=1), pairs.gather_every(2), pl.concat(unusable)


def _label(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the reason why a row is not half of a good pair, null where it is."""
    same_dilemma = pl.len().over(DILEMMA)
    reason = first_reason(
        [
            (Refusal.UNPAIRED, same_dilemma == 1),
            (Refusal.DOUBLED, same_dilemma > 2),
            (Refusal.INCONSISTENT, pl.col(VOTER).n_unique().over(DILEMMA) > 1),
            (Refusal.NO_SINGLE_CHOICE, pl.col(SAVED).sum().over(DILEMMA) != 1),
        ]
    )
    return rows.with_columns(reason.alias(REASON))


def _features(rows: pl.DataFrame, features: tuple[str, ...]) -> npt.NDArray[np.int8]:
    """Return the study's features: a signal, which is a category, becomes +1 (green), -1 (red) or 0 (none)."""
    columns = [column_of(feature) for feature in features]
    legality = pl.col(_SIGNAL).replace_strict({0: 0, _GREEN: 1, _RED: -1}, return_dtype=pl.Int8)
    return rows.with_columns(legality).select(columns).to_numpy()
