"""Voters' answers about themselves: questions with public levels, and codes.

The levels of a question, and the ranges into which numbers are cut, are in the mapping and never come from the rows:
the list of groups must not reveal that somebody gave a rare answer. An answer that is none of the levels is unknown,
and counted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import CODE, UNKNOWN, Categories
from crowdveil.errors import CrowdveilError, is_number
from crowdveil.sources.import_report import any_blank
from crowdveil.sources.table_file import TableFile
from crowdveil.study.plain_data import check_keys, text

_VOTER = "voter"


@dataclass(frozen=True)
class AboutQuestion:
    """A question to voters about themselves: its column, and its levels as words or as ranges of a number."""

    name: str
    column: str
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Level -> the cells that mean it, ignoring case."""
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Level -> its lower end (included) and upper end (excluded, except in the highest range)."""

    def __post_init__(self) -> None:
        if bool(self.levels) == bool(self.ranges):
            raise CrowdveilError(
                f"about {self.name}: give its levels, such as ['yes', 'no'], or ranges of a number, such as "
                "{young = [0, 40], old = [40, 120]}: they never come from the rows"
            )
        cells = [cell.strip().lower() for said in self.levels.values() for cell in said]
        if doubled := sorted({cell for cell in cells if cells.count(cell) > 1}):
            raise CrowdveilError(f"about {self.name}: {doubled[0]!r} stands for more than one level")
        if not all(cells) or not all(label.strip() for label in self.labels):
            raise CrowdveilError(f"about {self.name}: a level is a text that is not empty")
        ordered = sorted(self.ranges.values())
        for low, high in ordered:
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise CrowdveilError(f"about {self.name}: a range is two numbers, the smaller first, got {[low, high]}")
        for (_, end), (start, _) in itertools.pairwise(ordered):
            if start < end:
                raise CrowdveilError(f"about {self.name}: ranges overlap between {start:g} and {end:g}")

    @property
    def labels(self) -> tuple[str, ...]:
        """The levels, in the order of the mapping."""
        return tuple(self.levels or self.ranges)

    def code(self, cell: pl.Expr) -> pl.Expr:
        """Return the position of a cell's level, or -1 if it has none."""
        if self.levels:
            lowered = cell.str.to_lowercase()
            meanings = [lowered.is_in([word.strip().lower() for word in said]) for said in self.levels.values()]
        else:
            number = cell.cast(pl.Float64, strict=False)
            top = max(high for _, high in self.ranges.values())
            meanings = [
                number.is_between(low, high, "both" if high == top else "left") for low, high in self.ranges.values()
            ]
        codes = [pl.when(meant).then(pl.lit(code, pl.Int16)) for code, meant in enumerate(meanings)]
        return pl.coalesce(*codes, pl.lit(UNKNOWN, pl.Int16))


@dataclass(frozen=True)
class AboutMapping:
    """The questions about voters, and the columns that name the voter in a file of such answers."""

    questions: tuple[AboutQuestion, ...] = ()
    voter: tuple[str, ...] | None = None
    """None if they are the same as in the table of choices."""

    @property
    def columns(self) -> list[str]:
        """The questions' columns."""
        return [question.column for question in self.questions]

    @classmethod
    def from_dict(cls, section: Mapping[str, Any], where: str) -> AboutMapping:
        """Read the section ``[about]`` of a mapping."""
        given = dict(section)
        voter = given.pop(_VOTER) if _VOTER in given and not isinstance(given[_VOTER], dict) else None
        return cls(
            tuple(_question(name, value, f"{where}: about.{name}") for name, value in given.items()),
            None if voter is None else columns_of(voter, "voter", where),
        )


@dataclass(frozen=True)
class About:
    """People's answers about themselves: one row per person, with a code for each question."""

    labels: Mapping[str, tuple[str, ...]]
    people: pl.DataFrame
    notes: tuple[str, ...] = ()

    @classmethod
    def gather(cls, answers: pl.DataFrame, questions: Sequence[AboutQuestion], notes: Iterable[str] = ()) -> About:
        """Combine people's answers from one or more rows each; if these differ, the answer is unknown.

        ``answers`` has the column ``voter`` and, as text, one with the name of each question.
        """
        told = list(notes)
        coded = answers.select(
            _VOTER, *(question.code(pl.col(question.name)).alias(question.name) for question in questions)
        )
        people = coded.group_by(_VOTER, maintain_order=True).agg(pl.col(q.name).unique() for q in questions)
        for question in questions:
            name = question.name
            other = answers.filter((pl.col(name) != "") & (coded[name] == UNKNOWN))
            if len(other):
                told.append(
                    f"{other[_VOTER].n_unique()} of {len(people)} people answered {name!r} with something that is "
                    f"not one of its levels (first {other[name][0]!r:.40}): their {name!r} counts as unknown"
                )
            several = people[name].list.len() > 1
            if several.any():
                told.append(
                    f"{several.sum()} of {len(people)} people gave different answers to {name!r}: "
                    f"their {name!r} counts as unknown"
                )
            one = pl.when(several).then(pl.lit(UNKNOWN, pl.Int16)).otherwise(pl.col(name).list.first())
            people = people.with_columns(one.alias(name))
        return cls({question.name: question.labels for question in questions}, people, tuple(told))

    def missing(self, ballots: Ballots) -> int:
        """Count the voters who have no row here."""
        names = pl.Series(ballots.voter_names(), dtype=pl.String)
        return int((~names.is_in(self.people[_VOTER].implode())).sum())

    def join(self, ballots: Ballots) -> Ballots:
        """Return ballots with their voters' answers about themselves, unknown for voters without a row."""
        names = pl.DataFrame({_VOTER: ballots.voter_names()}, schema={_VOTER: pl.String})
        found = names.join(self.people, on=_VOTER, how="left", maintain_order="left")
        about = {
            question: Categories(labels, found[question].fill_null(UNKNOWN).to_numpy().astype(CODE))
            for question, labels in self.labels.items()
        }
        return replace(ballots, about=about)

    def account(self, voters: int, missing: int) -> list[str]:
        """Return notes on the join: who has no row, and which rows are about nobody here."""
        told = list(self.notes)
        if missing:
            told.append(f"{missing} of {voters} voters have no row about themselves: their answers are unknown")
        if strangers := len(self.people) - (voters - missing):
            told.append(
                f"{strangers} of {len(self.people)} people with a row about themselves are not among the voters"
            )
        return told


def read_about(path: str | Path, mapping: AboutMapping, voter: tuple[str, ...]) -> About:
    """Read a table of people's answers about themselves.

    ``voter`` are the columns that name the person, unless the mapping names them.
    """
    if not mapping.questions:
        raise CrowdveilError(f"the mapping has no section [about], which says what to read from {path}")
    voter = mapping.voter or voter
    table = TableFile(path, [*voter, *mapping.columns])
    batches = []
    nameless = 0
    for batch in table.batches():
        named = batch.filter(~any_blank(voter))
        nameless += len(batch) - len(named)
        questions = (pl.col(question.column).alias(question.name) for question in mapping.questions)
        batches.append(named.select(voter_name(voter).alias(_VOTER), *questions))
    notes = []
    if nameless:
        notes.append(f"{nameless} of {table.rows} rows of {table.path.name} name no voter")
    if ragged := len(table.ragged()):
        notes.append(f"{ragged} of {table.rows} rows of {table.path.name} are cut short, or too long")
    return About.gather(pl.concat(batches), mapping.questions, notes)


def voter_name(columns: tuple[str, ...]) -> pl.Expr:
    r"""Return the voter's name: one cell as it is, several joined by /, with \/ and \\ for / and \ in them."""
    if len(columns) == 1:
        return pl.col(columns[0])
    escaped = (pl.col(c).str.replace_all("\\", "\\\\", literal=True) for c in columns)
    return pl.concat_str([cell.str.replace_all("/", "\\/", literal=True) for cell in escaped], separator="/")


def columns_of(value: Any, key: str, where: str) -> tuple[str, ...]:
    """Read a column name, or several that belong together."""
    columns = [value] if isinstance(value, str) else value
    if isinstance(columns, list) and columns and all(isinstance(column, str) for column in columns):
        return tuple(columns)
    raise CrowdveilError(f'{where}: {key} must be a column or several, such as "id" or ["site", "id"], got {value!r}')


def _question(name: str, given: Any, where: str) -> AboutQuestion:
    if name == _VOTER or not isinstance(given, dict):
        raise CrowdveilError(f"{where} must be a section with levels or ranges ([about.{name}]), got {given!r}")
    check_keys(given, ("column", "levels", "ranges"), where)
    ranges = given.get("ranges", {})
    if not isinstance(ranges, dict):
        raise CrowdveilError(f"{where}: ranges must look like {{ young = [0, 40], old = [40, 120] }}, got {ranges!r}")
    return AboutQuestion(
        name,
        text({"column": name, **given}, "column", where),
        read_levels(given.get("levels", {}), where),
        {label: _range(ends, label, where) for label, ends in ranges.items()},
    )


def read_levels(given: Any, where: str) -> dict[str, tuple[str, ...]]:
    """Read levels: a list of words, or a table of the cells that mean each level, one text or several."""
    if isinstance(given, list):
        given = {str(word): word for word in given}
    if not isinstance(given, dict):
        raise CrowdveilError(f"{where}: levels must be a list of words, or a table of level = cells, got {given!r}")
    levels = {label: cells if isinstance(cells, list) else [cells] for label, cells in given.items()}
    for label, cells in levels.items():
        if not cells or any(isinstance(cell, bool) or not isinstance(cell, str | int | float) for cell in cells):
            raise CrowdveilError(f"{where}: the level {label!r} must be given as a text or several, got {cells!r}")
    return {label: tuple(str(cell) for cell in cells) for label, cells in levels.items()}


def _range(ends: Any, label: str, where: str) -> tuple[float, float]:
    match ends:
        case [low, high] if is_number(low) and is_number(high):
            return float(low), float(high)
        case _:
            raise CrowdveilError(f"{where}: the range {label!r} must be two numbers, such as [0, 40], got {ends!r}")
