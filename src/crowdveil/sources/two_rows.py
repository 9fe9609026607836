"""Tables in which each alternative has a row of its own: the two rows of a dilemma are joined to one."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from crowdveil.sources.import_report import REASON, ROW, Refusal, any_blank, first_reason, says
from crowdveil.sources.mapping import TableMapping

OTHER_ROW = "row of the other alternative"
_CHOSEN = "which was chosen"


def join_rows(rows: pl.DataFrame, mapping: TableMapping) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a table with a row a dilemma, the earlier row its left side, and the rows that could not be joined."""
    keys = list(mapping.pair)
    together = pl.len().over(keys)
    reason = first_reason(
        [
            (Refusal.DILEMMA_MISSING, any_blank(keys)),
            (Refusal.UNPAIRED, together < 2),
            (Refusal.DOUBLED, together > 2),
            (Refusal.INCONSISTENT, pl.struct(mapping.voter_columns).n_unique().over(keys) > 1),
        ]
    )
    checked = rows.with_columns(reason.alias(REASON))
    pairs = checked.filter(pl.col(REASON).is_null()).drop(REASON).group_by(keys, maintain_order=True).agg(pl.all())
    values = {column for sides in mapping.columns.values() for column in sides}
    chose = [
        says(pl.col(mapping.chosen).list.get(side), mapping.yes)
        & says(pl.col(mapping.chosen).list.get(1 - side), mapping.no)
        for side in (0, 1)
    ]
    shared = [column for column in rows.columns if column not in keys]
    joined = pairs.select(
        *keys,
        *(pl.col(column).list.first() for column in shared),
        pl.col(ROW).list.last().alias(OTHER_ROW),
        *(pl.col(c).list.get(k).alias(f"{side} {c}") for c in values for k, side in enumerate(("left", "right"))),
        pl.when(chose[0])
        .then(pl.lit("left"))
        .when(chose[1])
        .then(pl.lit("right"))
        .otherwise(pl.lit(""))
        .alias(_CHOSEN),
    )
    return joined, checked.filter(pl.col(REASON).is_not_null())


def joined_mapping(mapping: TableMapping) -> TableMapping:
    """Return the mapping of a table whose rows are joined."""
    return replace(
        mapping,
        pair=(),
        chosen=_CHOSEN,
        left="left",
        right="right",
        features={name: (f"left {left}", f"right {right}") for name, (left, right) in mapping.columns.items()},
    )
