"""What an experiment is: a name that says all it depends on, and a table of what it measured on some crowds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import polars as pl

from crowdveil.arrays import FloatArray

NO_PRIVACY_AT = float("inf")
"""Where on an axis of epsilons a result without privacy stands."""


class Experiment(Protocol):
    """Something that can be measured on crowds numbered from 0."""

    @property
    def name(self) -> str:
        """Says everything that the results depend on, apart from which crowds and which code."""

    def measure(self, crowds: range) -> pl.DataFrame:
        """Measure these crowds: see ``rows`` for the columns."""


def rows(
    crowds: range, series: str, points: tuple[float, ...], measured: Mapping[str, FloatArray]
) -> list[pl.DataFrame]:
    """Return a table for each measure (crowds, points): series, measure, point, crowd, value."""
    tables = []
    for measure, values in measured.items():
        if values.shape != (len(crowds), len(points)):
            raise ValueError(
                f"{series}, {measure}: {values.shape} values for {len(crowds)} crowds, {len(points)} points"
            )
        tables.append(
            pl.DataFrame(
                {
                    "series": pl.repeat(series, values.size, eager=True),
                    "measure": pl.repeat(measure, values.size, eager=True),
                    "point": np.tile(np.array(points, dtype=np.float64), len(crowds)),
                    "crowd": np.repeat(np.array(crowds, dtype=np.int32), len(points)),
                    "value": values.reshape(-1),
                }
            )
        )
    return tables
