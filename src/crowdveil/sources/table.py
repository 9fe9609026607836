"""Imports the choices of any study from a table (CSV, gzipped CSV or Parquet) with a row a record.

The columns are ``voter``, ``chosen`` (left or right), and for each feature of the study ``left_<feature>`` and
``right_<feature>``, in the feature's own values. A table with other names needs a mapping file (TOML)::

    study = "kidney"        # a bundled study, or the path of a study file, seen from the mapping file
    voter = "id"            # the column that names the voter, or several together: ["site", "id"]
    chosen = "chosen"       # the column that says which alternative was chosen ...
    left = "0"              # ... and what it says for the left
    right = "1"             # ... and for the right one
    neither = "2"           # ... and where neither was; without it such rows are refused
    scenario = "kind"       # a column with the type of each dilemma

    [features]              # feature = [column of the left alternative, column of the right one]
    years_waiting = ["l_yearsWaiting", "r_yearsWaiting"]

    [about]                 # what voters said of themselves: question = column, with a few categories
    age = "age_group"

    [drop]                  # rows to leave out: column = pattern (* is any text, ? any character)
    pairid = "att_*"

Everything but ``study`` may be left out where the table has the usual names. What a voter said of themselves is the
same in all their rows; where it is not, or blank, it is unknown.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from crowdveil.ballot_file import write_ballots
from crowdveil.ballots import Ballots
from crowdveil.categories import Categories
from crowdveil.errors import CrowdveilError
from crowdveil.files import check_writable
from crowdveil.records import dilemmas_between
from crowdveil.sources.import_report import (
    MOST_REFUSED,
    REASON,
    ROW,
    ImportReport,
    ImportResult,
    Refusal,
    any_blank,
    any_not_finite,
    any_outside,
    equal_alternatives_note,
    first_reason,
    number,
    write_refused,
)
from crowdveil.sources.table_file import TableFile
from crowdveil.study.bundled import load_study
from crowdveil.study.study import Study

_WORDS = ("chosen", "left", "right", "neither", "scenario")
_SECTIONS = ("features", "about", "drop")


@dataclass(frozen=True)
class TableMapping:
    """Where in a table the records of a study are. What is not said has the usual name."""

    study: Study
    voter: str | tuple[str, ...] = "voter"
    """The column that names the voter, or several that do so together."""
    chosen: str = "chosen"
    left: str = "left"
    right: str = "right"
    neither: str | None = None
    """What the column says where neither was chosen; None where that is no answer."""
    scenario: str | None = None
    """The column with the type of each dilemma, if there is one."""
    features: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Feature -> (column of the left alternative, column of the right one)."""
    about: Mapping[str, str] = field(default_factory=dict)
    """Question -> column with what the voter said."""
    drop: Mapping[str, str] = field(default_factory=dict)
    """Column -> pattern: rows to leave out."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.features if name not in self.study.feature_names]
        if unknown:
            raise CrowdveilError(
                f"the mapping names the feature {unknown[0]!r}, but study {self.study.name} has "
                f"{', '.join(self.study.feature_names)}"
            )
        sides = {"left": self.left, "right": self.right, "neither": self.neither}
        words = {side: word.strip().lower() for side, word in sides.items() if word is not None}
        for one, other in (("left", "right"), ("left", "neither"), ("right", "neither")):
            if words[one] == words.get(other):
                raise CrowdveilError(f"the mapping says {sides[one]!r} for {one} and for {other}")

    @property
    def voter_columns(self) -> tuple[str, ...]:
        """The columns that name the voter."""
        return (self.voter,) if isinstance(self.voter, str) else self.voter

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The columns of each feature's left and right value, in the study's order."""
        return [self.features.get(n, (f"left_{n}", f"right_{n}")) for n in self.study.feature_names]

    @property
    def needed(self) -> list[str]:
        """All columns that the table must have."""
        values = [column for pair in self.columns for column in pair]
        scenario = [] if self.scenario is None else [self.scenario]
        return [*self.voter_columns, self.chosen, *values, *scenario, *self.about.values(), *self.drop]


def load_mapping(path: str | Path) -> TableMapping:
    """Read a mapping file."""
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CrowdveilError(f"cannot read the mapping file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CrowdveilError(f"{path} is not a readable TOML file: {error}") from None
    known = {"study", "voter", *_WORDS, *_SECTIONS}
    if unknown := sorted(set(data) - known):
        raise CrowdveilError(f"{path}: unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}")
    if not isinstance(data.get("study"), str):
        raise CrowdveilError(f'{path}: say which study the table answers, such as study = "kidney"')
    beside = path.parent / data["study"]
    sections = {key: _section(data, key, path) for key in _SECTIONS}
    return TableMapping(
        study=load_study(str(beside) if beside.is_file() else data["study"]),
        voter=_voter_columns(data.get("voter", "voter"), path),
        **{key: _word(data[key], key, path) for key in _WORDS if key in data},
        features={k: _two_columns(v, k, path) for k, v in sections["features"].items()},
        about={k: _word(v, f"about.{k}", path) for k, v in sections["about"].items()},
        drop={k: _word(v, f"drop.{k}", path) for k, v in sections["drop"].items()},
    )


def choose_mapping(study: str | Study | None = None, mapping: str | Path | TableMapping | None = None) -> TableMapping:
    """Return the mapping that was given, by itself or by its file, or the usual one of a study."""
    if (study is None) == (mapping is None):
        raise CrowdveilError("give either a mapping (which column means what) or a study (for the usual column names)")
    if study is not None:
        return TableMapping(load_study(study) if isinstance(study, str) else study)
    return mapping if isinstance(mapping, TableMapping) else load_mapping(str(mapping))


def read_table(
    path: str | Path,
    study: str | Study | None = None,
    *,
    mapping: str | Path | TableMapping | None = None,
    allow_refused: float = MOST_REFUSED,
    one_record_each: bool = False,
) -> Ballots:
    """Read a table of records into memory, by a study's usual column names or by a mapping.

    A table of which a larger share of rows is refused than allowed, or in which nearly every voter has one record only,
    is refused (``ImportReport.check``).
    """
    result = load_table(path, choose_mapping(study, mapping))
    result.report.check(result.ballots.study, allow_refused, one_record_each)
    return result.ballots


def import_table(
    path: str | Path,
    out: str | Path,
    mapping: TableMapping,
    refused: str | Path | None = None,
    *,
    allow_refused: float = MOST_REFUSED,
    one_record_each: bool = False,
) -> ImportReport:
    """Read a table of records into a ballot file; optionally write the refused rows and why to a CSV.

    What is refused as a whole is as in ``read_table``; the refused rows are written all the same.
    """
    check_writable(Path(out))
    result = load_table(path, mapping)
    report, ballots = result.report, result.ballots
    if refused is not None:
        write_refused(refused, result)
    if ballots.voters:
        report.check(mapping.study, allow_refused, one_record_each)
    write_ballots(out, mapping.study, [ballots] if ballots.voters else [], ballots.origin)
    return report


def load_table(path: str | Path, mapping: TableMapping, progress: Callable[[int], None] | None = None) -> ImportResult:
    """Read a table of records into memory, with a report and the rows that were refused.

    ``progress`` is told how many rows have been read so far.
    """
    table = TableFile(path, mapping.needed)
    good, refused, dropped = [], [], 0
    for batch in table.batches(progress):
        kept = batch.filter(~_to_drop(batch, mapping))
        dropped += len(batch) - len(kept)
        checked = _check(kept, mapping)
        wrong = checked[REASON].is_not_null()
        good.append(checked.filter(~wrong))
        refused.append(kept.filter(wrong).with_columns(checked[REASON].filter(wrong)))
    refused_rows = pl.concat([table.ragged(), *refused], how="diagonal").sort(ROW)
    counts = dict(refused_rows[REASON].value_counts().iter_rows())
    ballots, notes = _ballots(pl.concat(good), mapping)
    report = ImportReport(
        rows=table.rows,
        pairs=ballots.records,
        voters=ballots.voters,
        refused={reason: counts[reason.value] for reason in Refusal if reason.value in counts},
        dropped=dropped,
        notes=(*table.notes(), *notes),
    )
    origin = {"imported_from": table.path.name, **report.as_dict()}
    return ImportResult(replace(ballots, origin=origin), report, refused_rows)


def _ballots(records: pl.DataFrame, mapping: TableMapping) -> tuple[Ballots, list[str]]:
    """Put records together by voter, with notes: in the order of the first records, a voter's in theirs."""
    voters = records.select("voter").with_row_index("at").group_by("voter", maintain_order=True).agg(pl.col("at"))
    records = records[voters["at"].explode(empty_as_null=False).to_numpy()]
    counts = voters["at"].list.len().to_numpy()
    left, right = (records.select(f"^{side} .*$").to_numpy() for side in ("left", "right"))
    dilemmas = dilemmas_between(mapping.study, left, right)
    notes = equal_alternatives_note(int((dilemmas == 0).all(axis=1).sum()), len(dilemmas))
    about = {}
    for question in mapping.about:
        column = f"about {question}"
        said = records.group_by("voter", maintain_order=True).agg(pl.col(column).unique())[column].to_list()
        about[question] = Categories.encode([one[0] or None if len(one) == 1 else None for one in said])
        if several := sum(len(one) > 1 for one in said):
            notes.append(
                f"{several} of {len(said)} voters gave different answers to {question!r}: it is unknown of them"
            )
    scenarios = None
    if mapping.scenario is not None:
        scenarios = Categories.encode([kind or None for kind in records["scenario"]])
    ballots = Ballots(
        mapping.study,
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        dilemmas,
        records["choice"].to_numpy(),
        pa.array(voters["voter"].to_list(), pa.string()),
        scenarios,
        about,
    )
    return ballots, notes


def _to_drop(batch: pl.DataFrame, mapping: TableMapping) -> pl.Series:
    """Tell which rows the mapping leaves out."""
    dropped = pl.repeat(False, len(batch), eager=True)
    for column, pattern in mapping.drop.items():
        cells = batch[column]
        dropped |= cells.is_in([cell for cell in cells.unique() if fnmatchcase(cell, pattern)])
    return dropped


def _check(batch: pl.DataFrame, mapping: TableMapping) -> pl.DataFrame:
    """Turn a batch of text into numbers, with the reason why a row is refused, if it is."""
    sides = {"left": [pair[0] for pair in mapping.columns], "right": [pair[1] for pair in mapping.columns]}
    said = {1: mapping.left, -1: mapping.right, 0: mapping.neither}
    chosen = {choice: _says(mapping.chosen, word) for choice, word in said.items() if word is not None}
    values = batch.select(
        _voter(mapping.voter_columns).alias("voter"),
        any_blank(mapping.voter_columns).alias("no voter"),
        pl.coalesce(pl.when(says).then(pl.lit(choice, pl.Int8)) for choice, says in chosen.items()).alias("choice"),
        pl.sum_horizontal(chosen.values()).alias("choices"),
        any_blank([*sides["left"], *sides["right"]]).alias("blank"),
        *(number(column).alias(f"{side} {k}") for side in sides for k, column in enumerate(sides[side])),
        *([] if mapping.scenario is None else [pl.col(mapping.scenario).alias("scenario")]),
        *(pl.col(column).alias(f"about {question}") for question, column in mapping.about.items()),
    )
    bounds = [(f"{side} {k}", f.low, f.high) for side in sides for k, f in enumerate(mapping.study.features)]
    reason = first_reason(
        [
            (Refusal.VOTER_MISSING, pl.col("no voter")),
            (Refusal.NO_SINGLE_CHOICE, pl.col("choices") != 1),
            (Refusal.BLANK, pl.col("blank")),
            (Refusal.NOT_A_NUMBER, any_not_finite(value for value, _, _ in bounds)),
            (Refusal.OUT_OF_BOUNDS, any_outside(bounds)),
        ]
    )
    return values.with_columns(reason.alias(REASON))


def _voter(columns: tuple[str, ...]) -> pl.Expr:
    r"""Return the voter's name: one cell as it is, several joined by /, with \/ and \\ for / and \ in them."""
    if len(columns) == 1:
        return pl.col(columns[0])
    escaped = (pl.col(c).str.replace_all("\\", "\\\\", literal=True) for c in columns)
    return pl.concat_str([cell.str.replace_all("/", "\\/", literal=True) for cell in escaped], separator="/")


def _says(column: str, word: str) -> pl.Expr:
    """Tell whether a cell holds the word, in capitals or not; where the word is a number, 1.0 says 1."""
    same = pl.col(column).str.to_lowercase() == word.strip().lower()
    try:
        return same | (number(column) == float(word)).fill_null(False)
    except ValueError:
        return same


def _section(data: Mapping[str, Any], key: str, path: Path) -> Mapping[str, Any]:
    section = data.get(key, {})
    if not isinstance(section, dict):
        raise CrowdveilError(f"{path}: {key} must be a section ([{key}]), got {section!r}")
    return section


def _word(value: Any, key: str, path: Path) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise CrowdveilError(f"{path}: {key} must be a text, got {value!r}")
    return str(value)


def _voter_columns(value: Any, path: Path) -> str | tuple[str, ...]:
    if isinstance(value, list) and value and all(isinstance(column, str) for column in value):
        return tuple(value)
    if isinstance(value, str):
        return value
    raise CrowdveilError(f'{path}: voter must be a column or several, such as "id" or ["site", "id"], got {value!r}')


def _two_columns(value: Any, feature: str, path: Path) -> tuple[str, str]:
    if not (isinstance(value, list) and len(value) == 2 and all(isinstance(column, str) for column in value)):
        raise CrowdveilError(f'{path}: {feature} must be ["left column", "right column"], got {value!r}')
    return value[0], value[1]
