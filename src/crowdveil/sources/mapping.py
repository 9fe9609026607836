"""Mappings of a table's columns: a study's usual names, or a mapping file (TOML).

::

    study = "kidney"        # a bundled study, or the path of a study file, seen from the mapping file
    voter = "id"            # the column that names the voter, or several together: ["site", "id"]
    chosen = "chosen"       # the column that says which alternative was chosen ...
    left = "0"              # ... and what it says for the left
    right = "1"             # ... and for the right one
    neither = "2"           # ... and where neither was; such rows are refused without it, unless the study allows them
    scenario = "kind"       # a column with the type of each dilemma
    repeat = "again"        # a column that says 1 (or yes, true) in the row of a second answer to a dilemma

    [features]              # feature = [column of the left alternative, column of the right one]
    years_waiting = ["l_yearsWaiting", "r_yearsWaiting"]

    [levels.blood]          # of a category: level = what a cell says for it; its name or its words, if left out
    zero = ["0", "O"]

    [about.age]             # voters' answers about themselves: the levels, in words or as ranges of a number
    column = "age_group"    # the name of the question, if left out
    levels = ["young", "old"]

    [drop]                  # rows to leave out: column = pattern (* is any text, ? any character)
    pairid = "att_*"

Everything but ``study`` may be left out if the table has the usual names. If each alternative has its own row, ``pair``
names the columns that join the two rows of a dilemma, ``chosen`` is ``yes`` in the row of the chosen alternative and
``no`` in the other, and a feature has one column::

    pair = ["voter", "question"]
    yes = "1"
    no = "0"
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdveil.errors import CrowdveilError, check_fields, path_of
from crowdveil.sources.about import AboutMapping, columns_of, read_levels
from crowdveil.study.bundled import find_study, load_study
from crowdveil.study.features import Category
from crowdveil.study.plain_data import check_keys, read_toml
from crowdveil.study.study import Study

_WORDS = ("chosen", "left", "right", "neither", "yes", "no", "scenario", "repeat")
_ONE_ROW = ("left", "right", "neither")
_TWO_ROWS = ("yes", "no")
_SECTIONS = ("features", "levels", "about", "drop")


@dataclass(frozen=True)
class TableMapping:
    """The columns of a table that contain the records of a study. Anything not specified has the usual name."""

    study: Study
    voter: str | tuple[str, ...] = "voter"
    """The column that names the voter, or several that do so together."""
    chosen: str = "chosen"
    left: str = "left"
    right: str = "right"
    neither: str | None = None
    """The cell that means that neither was chosen; None if that is not an answer.

    In a study that allows it, ``neither`` unless another word is given.
    """
    pair: tuple[str, ...] = ()
    """The columns that join the two rows of a dilemma, if each alternative has its own row."""
    yes: str = "1"
    no: str = "0"
    scenario: str | None = None
    """The column with the type of each dilemma, if there is one."""
    repeat: str | None = None
    """The column that marks second answers, in a study that asks one dilemma twice; ``repeat`` by default."""
    features: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Feature or category -> (column of the left alternative, column of the right one).

    If each alternative has its own row, both are the same column.
    """
    levels: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """Category -> level -> the cells that mean it."""
    about: AboutMapping = field(default_factory=AboutMapping)
    """Voters' answers about themselves, in columns of this table or in a separate file."""
    drop: Mapping[str, str] = field(default_factory=dict)
    """Column -> pattern: rows to leave out."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.neither is None and self.study.indifference is not None and not self.pair:
            object.__setattr__(self, "neither", "neither")
        if self.repeat is not None and not self.study.repeat:
            raise CrowdveilError(
                f"the mapping names the column {self.repeat!r} of second answers, but study {self.study.name} asks no "
                "dilemma twice: say repeat = true in the study"
            )
        if self.study.repeat and self.repeat is None:
            object.__setattr__(self, "repeat", "repeat")
        names = [attribute.name for attribute in self.study.attributes]
        for unknown in (name for name in self.features if name not in names):
            raise CrowdveilError(
                f"the mapping names the feature {unknown!r}, but study {self.study.name} has {', '.join(names)}"
            )
        categories = {category.name: category for category in self.study.categories}
        for name, levels in self.levels.items():
            if name not in categories:
                raise CrowdveilError(
                    f"the mapping gives levels of {name!r}, but {self.study.name} has no such category"
                )
            for level in levels:
                if level not in categories[name].levels:
                    raise CrowdveilError(
                        f"the mapping gives the level {level!r}, but {name} has {', '.join(categories[name].levels)}"
                    )
        for category in self.study.categories:
            cells = [cell.lower() for said in self.cells(category).values() for cell in said]
            if doubled := sorted({cell for cell in cells if cells.count(cell) > 1}):
                raise CrowdveilError(f"the mapping says {doubled[0]!r} for more than one level of {category.name}")
        sides = {"yes": self.yes, "no": self.no}
        if not self.pair:
            sides = {"left": self.left, "right": self.right}
            sides |= {} if self.neither is None else {"neither": self.neither}
        for one, other in itertools.combinations(sides, 2):
            if sides[one].strip().lower() == sides[other].strip().lower():
                raise CrowdveilError(f"the mapping says {sides[one]!r} for {one} and for {other}")

    def __repr__(self) -> str:
        voter = " and ".join(self.voter_columns)
        return f"<mapping to study {self.study.name}: voters in {voter}, choices in {self.chosen}>"

    @property
    def voter_columns(self) -> tuple[str, ...]:
        """The columns that name the voter."""
        return (self.voter,) if isinstance(self.voter, str) else self.voter

    @property
    def columns(self) -> dict[str, tuple[str, str]]:
        """The columns of each attribute's left and right value."""
        usual = {
            a.name: (a.name, a.name) if self.pair else (f"left_{a.name}", f"right_{a.name}")
            for a in self.study.attributes
        }
        return {name: self.features.get(name, columns) for name, columns in usual.items()}

    def cells(self, category: Category) -> dict[str, tuple[str, ...]]:
        """Return the cells that mean each level: those in the mapping, or else its name and its words."""
        given = self.levels.get(category.name, {})
        features = {feature.name: feature for feature in self.study.features}
        usual = {
            level: tuple({level.lower(): level, features[name].phrase(1).lower(): features[name].phrase(1)}.values())
            for level, name in zip(category.levels, category.feature_names, strict=True)
        }
        return {level: given.get(level, words) for level, words in usual.items()}

    @property
    def needed(self) -> list[str]:
        """All columns that the table must have."""
        values = [column for pair in self.columns.values() for column in pair]
        single = [column for column in (self.scenario, self.repeat) if column is not None]
        return [*self.voter_columns, *self.pair, self.chosen, *values, *single, *self.about.columns, *self.drop]


def load_mapping(path: str | Path) -> TableMapping:
    """Read a mapping file."""
    path = path_of(path, "the mapping file")
    data = _read(path)
    check_keys(data, {"study", "voter", "pair", *_WORDS, *_SECTIONS}, str(path))
    if not isinstance(data.get("study"), str):
        raise CrowdveilError(f'{path}: say which study the table answers, such as study = "kidney"')
    voter = columns_of(data.get("voter", "voter"), "voter", str(path))
    pair = columns_of(data["pair"], "pair", str(path)) if "pair" in data else ()
    for key in _ONE_ROW if pair else _TWO_ROWS:
        if key in data:
            raise CrowdveilError(
                f"{path}: {key!r} is for a table with {'one row' if pair else 'two rows'} a dilemma, this mapping has "
                f"{'a' if pair else 'no'} 'pair': leave one of them out"
            )
    beside = path.parent / data["study"]
    sections = {key: _section(data, key, path) for key in _SECTIONS}
    return TableMapping(
        study=load_study(str(beside) if beside.is_file() else data["study"]),
        voter=voter if len(voter) > 1 else voter[0],
        **{key: _word(data[key], key, path) for key in _WORDS if key in data},
        pair=pair,
        features={k: _sides(v, k, bool(pair), path) for k, v in sections["features"].items()},
        levels={k: read_levels(v, f"{path}: levels.{k}") for k, v in sections["levels"].items()},
        about=AboutMapping.from_dict(sections["about"], str(path)),
        drop={k: _word(v, f"drop.{k}", path) for k, v in sections["drop"].items()},
    )


def load_about_mapping(path: str | Path) -> AboutMapping:
    """Read a mapping file that contains only the section ``[about]``."""
    path = path_of(path, "the mapping file")
    data = _read(path)
    check_keys(data, {"about"}, str(path))
    return AboutMapping.from_dict(_section(data, "about", path), str(path))


def choose_mapping(study: str | Study | None = None, mapping: str | Path | TableMapping | None = None) -> TableMapping:
    """Return the given mapping, read it from its file, or return the usual one of a study."""
    if (study is None) == (mapping is None):
        raise CrowdveilError("give either a mapping (which column means what) or a study (for the usual column names)")
    if study is not None:
        return TableMapping(find_study(study))
    assert mapping is not None  # one of the two was given
    return mapping if isinstance(mapping, TableMapping) else load_mapping(mapping)


def _read(path: Path) -> dict[str, Any]:
    return read_toml(path, "mapping file", "say in it which column means what")


def _section(data: Mapping[str, Any], key: str, path: Path) -> Mapping[str, Any]:
    section = data.get(key, {})
    if not isinstance(section, dict):
        raise CrowdveilError(f"{path}: {key} must be a section ([{key}]), got {section!r}")
    return section


def _word(value: Any, key: str, path: Path) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise CrowdveilError(f"{path}: {key} must be a text, got {value!r}")
    return str(value)


def _sides(value: Any, feature: str, two_rows: bool, path: Path) -> tuple[str, str]:
    match value:
        case str(column) if two_rows:
            return column, column
        case [str(left), str(right)] if not two_rows:
            return left, right
        case _:
            form = '"column"' if two_rows else '["left column", "right column"]'
            raise CrowdveilError(f"{path}: {feature} must be {form}, got {value!r}")
