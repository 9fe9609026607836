"""Which column of a table means what: a study's usual names, or a mapping file (TOML).

::

    study = "kidney"        # a bundled study, or the path of a study file, seen from the mapping file
    voter = "id"            # the column that names the voter, or several together: ["site", "id"]
    chosen = "chosen"       # the column that says which alternative was chosen ...
    left = "0"              # ... and what it says for the left
    right = "1"             # ... and for the right one
    neither = "2"           # ... and where neither was; without it such rows are refused
    scenario = "kind"       # a column with the type of each dilemma

    [features]              # feature = [column of the left alternative, column of the right one]
    years_waiting = ["l_yearsWaiting", "r_yearsWaiting"]

    [about.age]             # what voters said of themselves: the levels, in words or as ranges of a number
    column = "age_group"    # as the question is called, if left out
    levels = ["young", "old"]

    [drop]                  # rows to leave out: column = pattern (* is any text, ? any character)
    pairid = "att_*"

Everything but ``study`` may be left out where the table has the usual names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.sources.about import AboutMapping, voter_columns
from crowdveil.study.bundled import load_study
from crowdveil.study.plain_data import check_keys
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
    about: AboutMapping = field(default_factory=AboutMapping)
    """What voters said of themselves, in columns of this table or in a file of its own."""
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
        return [*self.voter_columns, self.chosen, *values, *scenario, *self.about.columns, *self.drop]


def load_mapping(path: str | Path) -> TableMapping:
    """Read a mapping file."""
    path = Path(path)
    data = _read(path)
    check_keys(data, {"study", "voter", *_WORDS, *_SECTIONS}, str(path))
    if not isinstance(data.get("study"), str):
        raise CrowdveilError(f'{path}: say which study the table answers, such as study = "kidney"')
    voter = voter_columns(data.get("voter", "voter"), str(path))
    beside = path.parent / data["study"]
    sections = {key: _section(data, key, path) for key in _SECTIONS}
    return TableMapping(
        study=load_study(str(beside) if beside.is_file() else data["study"]),
        voter=voter if len(voter) > 1 else voter[0],
        **{key: _word(data[key], key, path) for key in _WORDS if key in data},
        features={k: _two_columns(v, k, path) for k, v in sections["features"].items()},
        about=AboutMapping.from_dict(sections["about"], str(path)),
        drop={k: _word(v, f"drop.{k}", path) for k, v in sections["drop"].items()},
    )


def load_about_mapping(path: str | Path) -> AboutMapping:
    """Read a mapping file of which only the section ``[about]`` is needed, and nothing else allowed."""
    path = Path(path)
    data = _read(path)
    check_keys(data, {"about"}, str(path))
    return AboutMapping.from_dict(_section(data, "about", path), str(path))


def choose_mapping(study: str | Study | None = None, mapping: str | Path | TableMapping | None = None) -> TableMapping:
    """Return the mapping that was given, by itself or by its file, or the usual one of a study."""
    if (study is None) == (mapping is None):
        raise CrowdveilError("give either a mapping (which column means what) or a study (for the usual column names)")
    if study is not None:
        return TableMapping(load_study(study) if isinstance(study, str) else study)
    return mapping if isinstance(mapping, TableMapping) else load_mapping(str(mapping))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CrowdveilError(f"cannot read the mapping file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CrowdveilError(f"{path} is not a readable TOML file: {error}") from None


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
