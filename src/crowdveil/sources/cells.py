"""Checks on the cells of a table: polars expressions that say what is wrong with a row."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from crowdveil.sources.import_report import Refusal


def number(column: str) -> pl.Expr:
    """Return a cell of text as a number, null where it is none."""
    return pl.col(column).cast(pl.Float64, strict=False)


def any_blank(columns: Iterable[str]) -> pl.Expr:
    """Say whether one of these cells of text is blank."""
    return pl.any_horizontal(pl.col(column) == "" for column in columns)


def any_not_finite(columns: Iterable[str]) -> pl.Expr:
    """Say whether one of these numbers is missing, NaN or infinite."""
    return pl.any_horizontal(~pl.col(column).is_finite().fill_null(False) for column in columns)


def any_outside(bounds: Iterable[tuple[str, float, float]]) -> pl.Expr:
    """Say whether one of these numbers lies outside its bounds."""
    return pl.any_horizontal(~pl.col(column).is_between(low, high) for column, low, high in bounds)


def first_reason(checks: Iterable[tuple[Refusal, pl.Expr]]) -> pl.Expr:
    """Return the first reason whose condition holds for the row, null where none does."""
    return pl.coalesce(pl.when(wrong).then(pl.lit(reason.value)) for reason, wrong in checks)
