"""Import the choices of any study from a table (CSV, gzipped CSV or Parquet) with one record per row.

The columns are ``voter``, ``chosen`` (left or right), and for each feature of the study ``left_<feature>`` and
``right_<feature>``, in the feature's own values. A table with other names needs a mapping (``mapping``). If each
alternative has its own row, the two rows of a dilemma are joined first. Voters' answers about themselves are in columns
of the table, the same in all rows of a voter, or in a separate file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from crowdveil.arrays import IntArray, SmallIntArray
from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import Categories, answered_alike, dilemmas_between
from crowdveil.errors import check_type, path_of, plural
from crowdveil.files import check_writable
from crowdveil.sources.about import About, AboutMapping, read_about, voter_name
from crowdveil.sources.import_report import (
    MOST_REFUSED,
    REASON,
    ROW,
    ImportReport,
    ImportResult,
    RowDefect,
    any_blank,
    any_not_finite,
    any_outside,
    check_allowed,
    equal_alternatives_note,
    first_reason,
    number,
    says,
    write_refused,
)
from crowdveil.sources.mapping import TableMapping, choose_mapping
from crowdveil.sources.table_file import TableFile
from crowdveil.study.features import Feature
from crowdveil.study.study import Study

_SIDES = ("left", "right")
_YES = ("1", "yes", "true")


def read_table(
    path: str | Path,
    study: str | Study | None = None,
    *,
    mapping: str | Path | TableMapping | None = None,
    about: str | Path | None = None,
    allow_refused: float = MOST_REFUSED,
    one_record_each: bool = False,
) -> Ballots:
    """Read a table of records into memory, by a study's usual column names or by a mapping.

    ``about`` is a table of voters' answers about themselves, in columns that the mapping names. A table is refused if
    more of its rows are refused than allowed, or if nearly every voter has only one record (``ImportReport.check``).
    """
    check_allowed(allow_refused, one_record_each)
    result = load_table(path, choose_mapping(study, mapping), about)
    result.report.check_any()
    result.report.check(result.ballots.study, allow_refused, one_record_each)
    return result.ballots


def import_table(
    path: str | Path,
    out: str | Path,
    mapping: TableMapping,
    refused: str | Path | None = None,
    *,
    about: str | Path | None = None,
    allow_refused: float = MOST_REFUSED,
    one_record_each: bool = False,
) -> ImportReport:
    """Read a table of records into a ballot file; optionally write the refused rows and the reasons to a CSV.

    A whole table is refused as in ``read_table``; the refused rows are written in any case.
    """
    check_allowed(allow_refused, one_record_each)
    check_type(mapping, TableMapping, "the mapping", "read it first, with load_mapping(path)")
    check_writable(path_of(out, "the ballot file"))
    if refused is not None:
        check_writable(path_of(refused, "the file of refused rows"))
    result = load_table(path, mapping, about)
    report = result.report
    ballots = result.ballots
    if refused is not None:
        write_refused(refused, result)
    report.check_any()
    report.check(mapping.study, allow_refused, one_record_each)
    write_ballots(out, mapping.study, [ballots], ballots.origin)
    return report


def load_table(
    path: str | Path,
    mapping: TableMapping,
    about: str | Path | None = None,
    progress: Callable[[int], None] | None = None,
) -> ImportResult:
    """Read a table of records into memory, with a report and the refused rows.

    ``progress`` is called with the number of rows read so far.
    """
    people = None
    if about is not None:
        people = read_about(about, mapping.about, mapping.voter_columns)
        mapping = replace(mapping, about=AboutMapping())
    table = TableFile(path, mapping.needed)
    kept: Iterable[pl.DataFrame] = (batch.filter(~_to_drop(batch, mapping)) for batch in table.batches(progress))
    if mapping.repeat is not None:
        kept = list(kept)  # whether a row is refused depends on the voter's others
    if mapping.pair:
        checks = [_check_pairs(pl.concat(list(kept)), mapping)]
    else:
        checks = [_check_rows(batch, mapping) for batch in kept]
    good, refused = (pl.concat(rows) for rows in zip(*checks, strict=True))
    if mapping.repeat is not None:
        good, without = _with_repeats(good)
        refused = pl.concat([refused, pl.concat(kept).join(without, on=ROW)], how="diagonal")
    ballots, notes = _ballots(good, mapping, people)
    refused_rows = pl.concat([table.ragged(), refused], how="diagonal").sort(ROW)
    counts = dict(refused_rows[REASON].value_counts().iter_rows())
    named = refused.filter(~any_blank(mapping.voter_columns)).select(voter_name(mapping.voter_columns)).to_series()
    if lost := len(set(named) - set(ballots.voter_names())):
        notes.append(f"{lost} of {ballots.voters + lost} people have no record that could be used: they are left out")
    report = ImportReport(
        rows=table.rows,
        records=ballots.records,
        voters=ballots.voters,
        refused={reason: counts[reason.value] for reason in RowDefect if reason.value in counts},
        dropped=table.rows - len(refused_rows) - len(good) * (2 if mapping.pair else 1),
        notes=(*table.notes(), *notes),
    )
    origin = {"imported_from": table.path.name, **report.as_dict()}
    return ImportResult(replace(ballots, origin=origin), report, refused_rows)


def _ballots(records: pl.DataFrame, mapping: TableMapping, about: About | None) -> tuple[Ballots, list[str]]:
    """Group records by voter, with notes: voters in the order of their first records, a voter's records in theirs."""
    voters = records.select("voter").with_row_index("at").group_by("voter", maintain_order=True).agg(pl.col("at"))
    records = records[voters["at"].explode(empty_as_null=False).to_numpy()]
    counts = voters["at"].list.len().to_numpy()
    alike = None
    if mapping.repeat is not None:
        alike = _alike(records, counts)
        records = records.filter(~pl.col("repeat"))
        counts = counts - 1
    left, right = (records.select(f"^{side} .*$").to_numpy() for side in _SIDES)
    dilemmas = dilemmas_between(mapping.study, left, right)
    notes = equal_alternatives_note(int((dilemmas == 0).all(axis=1).sum()), len(dilemmas))
    if alike is not None:
        tell = plural(len(alike), "second answer tells", "second answers tell")
        notes.append(f"{len(alike)} {tell} the reliability of the crowd, and no more")
    scenarios = None
    if mapping.scenario is not None:
        scenarios = Categories.encode([kind or None for kind in records["scenario"]])
        wanted = {factor.scenario for factor in mapping.study.factors if factor.scenario is not None}
        notes += [
            f"no record is of the scenario {kind}, which the effect of a factor of study {mapping.study.name} is read "
            f"from: column {mapping.scenario} has {', '.join(scenarios.labels) or 'nothing'}"
            for kind in sorted(wanted - set(scenarios.labels))
        ]
    ballots = Ballots(
        mapping.study,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        dilemmas,
        records["choice"].to_numpy(),
        pa.array(voters["voter"].to_list(), pa.string()),
        scenarios,
        alike=alike,
    )
    if about is None and mapping.about.questions:
        answers = records.select("voter", pl.col("^about .*$").name.map(lambda name: name.removeprefix("about ")))
        about = About.gather(answers, mapping.about.questions)
    if about is None:
        return ballots, notes
    return about.join(ballots), [*notes, *about.account(ballots.voters, about.missing(ballots))]


def _with_repeats(records: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the records of voters with one second answer to one of their dilemmas, and the numbers of other rows."""
    ordered = records.with_row_index("at").sort("voter", "at", maintain_order=True)
    counts = ordered.group_by("voter", maintain_order=True).len()["len"].to_numpy()
    whole = pl.Series(np.repeat(_alike(ordered, counts) != 0, counts), dtype=pl.Boolean)
    without = ordered.filter(~whole)
    rows = pl.concat([without[name].rename(ROW) for name in (ROW, OTHER_ROW) if name in without.columns])
    refused = rows.to_frame().with_columns(pl.lit(RowDefect.NO_REPEAT.value).alias(REASON))
    return ordered.filter(whole).sort("at").drop("at"), refused


def _alike(records: pl.DataFrame, counts: IntArray) -> SmallIntArray:
    """Compare second answers with the first ones, for records in the order of voters."""
    left, right = (records.select(f"^{side} .*$").to_numpy() for side in _SIDES)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return answered_alike(offsets, left, right, records["choice"].to_numpy(), records["repeat"].to_numpy())


def _to_drop(batch: pl.DataFrame, mapping: TableMapping) -> pl.Series:
    """Return which rows the mapping leaves out."""
    dropped = pl.repeat(False, len(batch), eager=True)
    for column, pattern in mapping.drop.items():
        cells = batch[column]
        dropped |= cells.is_in([cell for cell in cells.unique() if fnmatchcase(cell, pattern)])
    return dropped


def _check_rows(rows: pl.DataFrame, mapping: TableMapping) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the good records, and the refused rows with the reason."""
    checked = _check(rows, mapping)
    wrong = checked[REASON].is_not_null()
    return checked.filter(~wrong), rows.filter(wrong).with_columns(checked[REASON].filter(wrong))


def _check_pairs(rows: pl.DataFrame, mapping: TableMapping) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the same if each alternative has its own row."""
    joined, unjoined = join_rows(rows, mapping)
    good, wrong = _check_rows(joined, joined_mapping(mapping))
    reasons = pl.concat([wrong.select(ROW, REASON), wrong.select(pl.col(OTHER_ROW).alias(ROW), REASON)])
    return good, pl.concat([unjoined, rows.join(reasons, on=ROW)], how="diagonal")


def _check(batch: pl.DataFrame, mapping: TableMapping) -> pl.DataFrame:
    """Turn a batch of text into numbers, with the reason if a row is refused."""
    numbers = [a.name for a in mapping.study.attributes if isinstance(a, Feature)]
    said = {1: mapping.left, -1: mapping.right, 0: mapping.neither}
    chosen = {choice: says(pl.col(mapping.chosen), word) for choice, word in said.items() if word is not None}
    values = batch.select(
        voter_name(mapping.voter_columns).alias("voter"),
        any_blank(mapping.voter_columns).alias("no voter"),
        pl.coalesce(pl.when(chose).then(pl.lit(choice, pl.Int8)) for choice, chose in chosen.items()).alias("choice"),
        pl.sum_horizontal(chosen.values()).alias("choices"),
        any_blank(column for pair in mapping.columns.values() for column in pair).alias("blank"),
        *(
            value.alias(f"{side} {name}")
            for k, side in enumerate(_SIDES)
            for name, value in _values(mapping, k).items()
        ),
        *([] if mapping.scenario is None else [pl.col(mapping.scenario).alias("scenario")]),
        *([] if mapping.repeat is None else [_is_repeat(mapping.repeat).alias("repeat"), pl.col(ROW)]),
        *([OTHER_ROW] if mapping.repeat is not None and OTHER_ROW in batch.columns else []),
        *(pl.col(question.column).alias(f"about {question.name}") for question in mapping.about.questions),
    )
    bounds = [(f"{side} {f.name}", f.low, f.high) for side in _SIDES for f in mapping.study.features]
    levels = [[f"{side} {name}" for name in c.feature_names] for side in _SIDES for c in mapping.study.categories]
    reason = first_reason(
        [
            (RowDefect.VOTER_MISSING, pl.col("no voter")),
            (RowDefect.NO_SINGLE_CHOICE, pl.col("choices") != 1),
            (RowDefect.BLANK, pl.col("blank")),
            (RowDefect.NOT_A_NUMBER, any_not_finite(f"{side} {name}" for side in _SIDES for name in numbers)),
            (RowDefect.OUT_OF_BOUNDS, any_outside(bounds)),
            (
                RowDefect.NO_LEVEL,
                pl.any_horizontal(pl.lit(False), *(pl.sum_horizontal(names) != 1 for names in levels)),
            ),
        ]
    )
    return values.with_columns(reason.alias(REASON))


def _is_repeat(column: str) -> pl.Expr:
    return pl.any_horizontal(says(pl.col(column), word) for word in _YES)


def _values(mapping: TableMapping, side: int) -> dict[str, pl.Expr]:
    """Return the value of each feature of one alternative, in the study's order, or null if it is not a number."""
    values = {}
    for attribute in mapping.study.attributes:
        column = mapping.columns[attribute.name][side]
        if isinstance(attribute, Feature):
            values[attribute.name] = number(column)
            continue
        for name, cells in zip(attribute.feature_names, mapping.cells(attribute).values(), strict=True):
            said = pl.any_horizontal(says(pl.col(column), cell) for cell in cells)
            values[name] = said.cast(pl.Float64)
    return {name: values[name] for name in mapping.study.feature_names}


OTHER_ROW = "row of the other alternative"
_CHOSEN = "which was chosen"


def join_rows(rows: pl.DataFrame, mapping: TableMapping) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a table with one row per dilemma (its left side is the earlier row), and rows that cannot be joined."""
    keys = list(mapping.pair)
    together = pl.len().over(keys)
    reason = first_reason(
        [
            (RowDefect.DILEMMA_MISSING, any_blank(keys)),
            (RowDefect.UNPAIRED, together < 2),
            (RowDefect.DOUBLED, together > 2),
            (RowDefect.INCONSISTENT, pl.struct(mapping.voter_columns).n_unique().over(keys) > 1),
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
    """Return the mapping of a table with joined rows."""
    return replace(
        mapping,
        pair=(),
        chosen=_CHOSEN,
        left="left",
        right="right",
        features={name: (f"left {left}", f"right {right}") for name, (left, right) in mapping.columns.items()},
    )
