"""Imports the answers to any study from a table (CSV, gzipped CSV or Parquet) with a row an answer.

The columns are ``voter``, ``chosen`` (left or right), and for each feature of the study ``left_<feature>`` and
``right_<feature>``, in the feature's own values. A table with other names needs a mapping file (TOML)::

    study = "kidney"        # a bundled study, or the path of a study file, seen from the mapping file
    voter = "id"            # the column that names the voter
    chosen = "chosen"       # the column that says which alternative was chosen ...
    left = "0"              # ... and what it says for the left
    right = "1"             # ... and for the right one

    [features]              # feature = [column of the left alternative, column of the right one]
    years_waiting = ["l_yearsWaiting", "r_yearsWaiting"]

    [drop]                  # rows to leave out: column = pattern (* is any text, ? any character)
    pairid = "att_*"

Everything but ``study`` may be left out where the table has the usual names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from crowdveil.arrays import ValueArray
from crowdveil.ballot_file import write_ballots
from crowdveil.ballots import Ballots, smallest_type
from crowdveil.errors import CrowdveilError
from crowdveil.files import check_writable
from crowdveil.sources.import_report import (
    REASON,
    ImportReport,
    ImportResult,
    Refusal,
    any_blank,
    any_not_finite,
    any_outside,
    first_reason,
    gather,
    number,
    write_refused,
)
from crowdveil.sources.table_file import TableFile
from crowdveil.study.bundled import load_study
from crowdveil.study.study import Study


@dataclass(frozen=True)
class TableMapping:
    """Where in a table the answers to a study are. What is not said has the usual name."""

    study: Study
    voter: str = "voter"
    chosen: str = "chosen"
    left: str = "left"
    right: str = "right"
    features: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Feature -> (column of the left alternative, column of the right one)."""
    drop: Mapping[str, str] = field(default_factory=dict)
    """Column -> pattern: rows to leave out."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.features if name not in self.study.feature_names]
        if unknown:
            raise CrowdveilError(
                f"the mapping names the feature {unknown[0]!r}, but study {self.study.name} has "
                f"{', '.join(self.study.feature_names)}"
            )
        if self.left.strip().lower() == self.right.strip().lower():
            raise CrowdveilError(f"the mapping says {self.left!r} for the left and for the right alternative")

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The columns of each feature's left and right value, in the study's order."""
        return [self.features.get(n, (f"left_{n}", f"right_{n}")) for n in self.study.feature_names]


def load_mapping(path: str | Path) -> TableMapping:
    """Read a mapping file."""
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CrowdveilError(f"cannot read the mapping file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CrowdveilError(f"{path} is not a readable TOML file: {error}") from None
    known = {"study", "voter", "chosen", "left", "right", "features", "drop"}
    if unknown := sorted(set(data) - known):
        raise CrowdveilError(f"{path}: unknown setting {unknown[0]!r}; known are {', '.join(sorted(known))}")
    if not isinstance(data.get("study"), str):
        raise CrowdveilError(f'{path}: say which study the table answers, such as study = "kidney"')
    beside = path.parent / data["study"]
    names = {key: _word(data[key], key, path) for key in ("voter", "chosen", "left", "right") if key in data}
    return TableMapping(
        study=load_study(str(beside) if beside.is_file() else data["study"]),
        **names,
        features={k: _two_columns(v, k, path) for k, v in _section(data, "features", path).items()},
        drop={k: _word(v, f"drop.{k}", path) for k, v in _section(data, "drop", path).items()},
    )


def choose_mapping(study: str | Study | None = None, mapping: str | Path | TableMapping | None = None) -> TableMapping:
    """Return the mapping that was given, by itself or by its file, or the usual one of a study."""
    if (study is None) == (mapping is None):
        raise CrowdveilError("give either a mapping (which column means what) or a study (for the usual column names)")
    if study is not None:
        return TableMapping(load_study(study) if isinstance(study, str) else study)
    return mapping if isinstance(mapping, TableMapping) else load_mapping(str(mapping))


def read_table(
    path: str | Path, study: str | Study | None = None, *, mapping: str | Path | TableMapping | None = None
) -> Ballots:
    """Read a table of answers into memory, by a study's usual column names or by a mapping."""
    return load_table(path, choose_mapping(study, mapping)).ballots


def import_table(
    path: str | Path, out: str | Path, mapping: TableMapping, refused: str | Path | None = None
) -> ImportReport:
    """Read a table of answers into a ballot file; optionally write the refused rows and why to a CSV."""
    check_writable(Path(out))
    result = load_table(path, mapping)
    if refused is not None:
        write_refused(refused, result)
    origin = {"imported_from": Path(path).name, **result.report.as_dict()}
    write_ballots(out, mapping.study, result.ballots.batches() if result.ballots.voters else [], origin)
    return result.report


def load_table(path: str | Path, mapping: TableMapping, progress: Callable[[int], None] | None = None) -> ImportResult:
    """Read a table of answers into memory, with a report and the rows that were refused.

    ``progress`` is told how many rows have been read so far.
    """
    study = mapping.study
    numbers = [column for pair in mapping.columns for column in pair]
    table = TableFile(path, [mapping.voter, mapping.chosen, *numbers, *mapping.drop])
    good, refused, dropped = [], [], 0
    for batch in table.batches(progress):
        kept = batch.filter(~_to_drop(batch, mapping))
        dropped += len(batch) - len(kept)
        checked = _check(kept, mapping)
        wrong = checked[REASON].is_not_null()
        good.append(checked.filter(~wrong))
        refused.append(kept.filter(wrong).with_columns(checked[REASON].filter(wrong)))
    answers = pl.concat(good)
    left, right = (answers.select(f"^{side} .*$").to_numpy() for side in ("left", "right"))
    chose_left = answers["chose left"].to_numpy()[:, None]
    differences: ValueArray = np.where(chose_left, left - right, right - left) / study.units
    if smallest_type(study) is np.int8 and (differences == np.rint(differences)).all():
        differences = differences.astype(np.int8)
    return gather(
        study,
        answers["voter"],
        differences,
        rows=table.rows,
        refused=[table.ragged(), *refused],
        notes=table.notes(),
        dropped=dropped,
    )


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
    values = batch.select(
        pl.col(mapping.voter).alias("voter"),
        _says(mapping.chosen, mapping.left).alias("chose left"),
        _says(mapping.chosen, mapping.right).alias("chose right"),
        any_blank([*sides["left"], *sides["right"]]).alias("blank"),
        *(number(column).alias(f"{side} {k}") for side in sides for k, column in enumerate(sides[side])),
    )
    bounds = [(f"{side} {k}", f.low, f.high) for side in sides for k, f in enumerate(mapping.study.features)]
    reason = first_reason(
        [
            (Refusal.VOTER_MISSING, pl.col("voter") == ""),
            (Refusal.NO_SINGLE_CHOICE, pl.col("chose left") == pl.col("chose right")),
            (Refusal.BLANK, pl.col("blank")),
            (Refusal.NOT_A_NUMBER, any_not_finite(value for value, _, _ in bounds)),
            (Refusal.OUT_OF_BOUNDS, any_outside(bounds)),
        ]
    )
    return values.with_columns(reason.alias(REASON))


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


def _two_columns(value: Any, feature: str, path: Path) -> tuple[str, str]:
    if not (isinstance(value, list) and len(value) == 2 and all(isinstance(column, str) for column in value)):
        raise CrowdveilError(f'{path}: {feature} must be ["left column", "right column"], got {value!r}')
    return value[0], value[1]
