"""Experiments, the table of all their results, and the curves in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import polars as pl

from crowdveil.arrays import BoolArray, FloatArray

NO_PRIVACY_AT = float("inf")
"""Where on an axis of epsilons a result without privacy stands."""


class Experiment(Protocol):
    """Something that can be measured on crowds numbered from 0."""

    @property
    def name(self) -> str:
        """Everything that the results depend on, apart from which crowds and which code."""

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


@dataclass(frozen=True)
class Curve:
    """One series of one experiment: values (crowds, points)."""

    points: tuple[float, ...]
    values: FloatArray

    def at(self, point: float) -> FloatArray:
        """Return the values of all crowds at one point."""
        return self.values[:, self.points.index(point)]

    @property
    def only(self) -> FloatArray:
        """The values of a curve of a single point."""
        (point,) = self.points
        return self.at(point)

    @property
    def overall(self) -> FloatArray:
        """Each crowd's mean over all points."""
        result: FloatArray = self.values.mean(axis=1)
        return result

    def where(self, keep: BoolArray) -> Curve:
        """Return the curve at some of its points."""
        points = tuple(point for point, kept in zip(self.points, keep, strict=True) if kept)
        return replace(self, points=points, values=self.values[:, keep])


@dataclass(frozen=True)
class Results:
    """Everything that was measured."""

    table: pl.DataFrame

    def curve(self, experiment: Experiment, series: str, measure: str) -> Curve:
        """Return one series, its points and crowds in order."""
        wide = self._parts[experiment.name, series, measure].pivot("point", index="crowd", values="value").sort("crowd")
        points = tuple(float(point) for point in wide.columns[1:])
        order = np.argsort(points)
        values = wide.drop("crowd").to_numpy()[:, order]
        return Curve(tuple(points[i] for i in order), values)

    @cached_property
    def _parts(self) -> dict[tuple[str, str, str], pl.DataFrame]:
        parts = self.table.partition_by("experiment", "series", "measure", as_dict=True)
        return {(str(a), str(b), str(c)): part for (a, b, c), part in parts.items()}
