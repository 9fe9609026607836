"""Features that describe alternatives, categories of features, and factors that contrast them.

A category is a property with a few unordered levels in words. It has one feature per level: 1 if the alternative has
the level, else 0. So two alternatives differ by +1 in one level and -1 in another. Only differences of effects are
observable, and effects that sum to zero represent them all.

Factors are the few respects in which a study's alternatives differ, as whole-number contrasts of its features. A
preference theta over the factors is the preference beta = A theta over the features, where A has one column of weights
per factor: beta . (x - z) = theta . A'(x - z).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.errors import CrowdveilError, check_fields, shown
from crowdveil.study.plain_data import check_keys, need, number, optional, text

ICONS = (
    *("person", "people", "elder", "child", "heart", "clock", "calendar", "work", "home", "money", "scales", "shield"),
    *("book", "health", "weight", "food", "leaf", "flag", "globe", "car"),
)
"""Pictures that the voter's page can draw beside a fact."""
LONGEST_EMOJI = 12
"""In code points: some emoji consist of several."""
FINEST = 2.0**-10
"""The step in which devices count differences of values, unless all levels are whole: then it is 1."""
MOST_STEPS = 2**20
"""Most steps between two levels. An axis is an integer near 2^20 (``design.GRID``) over the spread of the values in
steps: beyond, it is 0, and nothing is measured."""
LARGEST_VALUE = 2.0**43
"""Largest size of a value: up to here, a double has 53 bits for every whole number of the finest steps."""
LARGEST_REACH = 2.0**20
"""Largest width of a range, in units. A preference is a whole number of steps of B / 2^30 (``privacy/grid.py``), of
which one would else move a choice by more than B / 2^10. Within a width of 1 / 2^20, none moves it by more than
B / 2^20: that is the smallest."""


@dataclass(frozen=True)
class Feature:
    """One measured property of an alternative, with its public range."""

    name: str
    label: str
    low: float
    high: float
    unit: float = 1.0
    """The amount that counts as 1 in the model: differences are divided by it."""
    levels: tuple[float, ...] = ()
    """Values that an independently drawn dilemma may show."""
    words: Mapping[str, str] | None = None
    """Value -> phrase; ``other`` stands for any value not listed; ``{n}`` is the value; "" omits it."""
    part: str = ""
    """Phrases of features of the same part are joined with "and"."""
    lean: float = 0.0
    """Mean preference of a simulated crowd. Only simulations use it."""
    icon: str = ""
    """The picture beside the feature on a voter's card: one of ``ICONS``, or an emoji."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.name or not all(c.isalnum() or c in "_-" for c in self.name):
            raise CrowdveilError(f"feature name {self.name!r}: use letters, digits, _ and - only")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise CrowdveilError(
                f"feature {self.name}: needs finite bounds with low < high, got low={self.low}, high={self.high}"
            )
        if not (self.unit > 0 and math.isfinite(self.unit)):
            raise CrowdveilError(f"feature {self.name}: unit must be a positive number, got {self.unit}")
        self._check_range()
        if not math.isfinite(self.lean):
            raise CrowdveilError(f"feature {self.name}: lean must be a finite number, got {self.lean}")
        if not (self.icon == "" or self.icon in ICONS or _is_emoji(self.icon)):
            raise CrowdveilError(
                f"feature {self.name}: icon {self.icon!r} is neither an emoji nor one of {', '.join(ICONS)}"
            )
        for level in self.levels:
            if not self.low <= level <= self.high:
                raise CrowdveilError(f"feature {self.name}: level {level} is outside {self.low} to {self.high}")
        self._check_levels()
        check_phrases(self.words or (), f"feature {self.name}")

    def _check_range(self) -> None:
        """Refuse a range that is too large or too small for the arithmetic."""
        if not (max(-self.low, self.high) <= LARGEST_VALUE and self.high - self.low >= FINEST):
            raise CrowdveilError(
                f"feature {self.name}: values are from -2^43 to 2^43, in a range of 1/1024 at least, "
                f"got {self.low:g} to {self.high:g}; choose another unit of measure"
            )
        if not 1 / LARGEST_REACH <= self.reach <= LARGEST_REACH:
            raise CrowdveilError(
                f"feature {self.name}: a range is from 2^-20 to 2^20 units wide, "
                f"got {self.low:g} to {self.high:g} with unit={self.unit:g}; choose a unit nearer to its width"
            )

    def _check_levels(self) -> None:
        """Refuse levels that devices cannot tell apart, or that are too far apart to be measured."""
        levels = sorted(set(map(float, self.levels)))
        step = 1.0 if all(level.is_integer() for level in levels) else FINEST
        near = any(above - level < step for level, above in pairwise(levels))
        if near or (levels and levels[-1] - levels[0] > MOST_STEPS * step):
            raise CrowdveilError(
                f"feature {self.name}: levels are whole numbers up to 2^20 apart, or any from 1/1024 to 1024 apart, "
                f"got {shown(list(self.levels))}; choose another unit of measure"
            )

    def __repr__(self) -> str:
        return f"<feature {self.name}: {self.label:.60}, {self.low:g} to {self.high:g}>"

    @property
    def default(self) -> float | None:
        """The value if an alternative does not mention the feature: 0 if 0 is possible."""
        return 0.0 if self.low <= 0 <= self.high else None

    @property
    def reach(self) -> float:
        """The largest absolute difference between two alternatives, in model units."""
        return (self.high - self.low) / self.unit

    def phrase(self, value: float) -> str:
        """Express a value of this feature in the study's words."""
        shown = f"{value:g}"
        if self.words is None:
            return f"{self.label}: {shown}"
        return self.words.get(shown, self.words.get("other", "{n} " + self.label)).replace("{n}", shown)

    def as_dict(self) -> dict[str, Any]:
        """Return the feature as plain data; optional settings appear only if they are set.

        Numbers are floats, so that equal studies give equal data.
        """
        return {
            "name": self.name,
            "label": self.label,
            "low": float(self.low),
            "high": float(self.high),
            "unit": float(self.unit),
            **({"levels": [float(level) for level in self.levels]} if self.levels else {}),
            **({"words": dict(self.words)} if self.words is not None else {}),
            **({"part": self.part} if self.part else {}),
            **({"lean": float(self.lean)} if self.lean else {}),
            **({"icon": self.icon} if self.icon else {}),
        }

    @classmethod
    def from_dict(cls, data: Any, study: str) -> Feature:
        """Build a feature of a study from plain data."""
        if not isinstance(data, dict):
            raise CrowdveilError(f"{study}: each feature must be a table ([[features]]), got {data!r}")
        where = f"{study}, feature {data.get('name', '?')!r}"
        check_keys(data, {"name", "label", "low", "high", "unit", "levels", "words", "part", "lean", "icon"}, where)
        words = optional(data, "words", {}, where)
        return cls(
            name=need(data, "name", str, where),
            label=str(data.get("label", data["name"])),
            low=number(data, "low", where),
            high=number(data, "high", where),
            unit=number(data, "unit", where, 1.0),
            levels=tuple(number({"levels": level}, "levels", where) for level in optional(data, "levels", [], where)),
            words={str(value): str(phrase) for value, phrase in words.items()} if "words" in data else None,
            part=str(data.get("part", "")),
            lean=number(data, "lean", where, 0.0),
            icon=str(data.get("icon", "")),
        )


def check_phrases(values: Iterable[str], where: str) -> None:
    """Refuse words that are neither for a value nor for all others."""
    for value in values:
        if value != "other" and not _is_value(value):
            raise CrowdveilError(f"{where}: words are for a value, such as 0 or 2.5, or for other, got {value!r}")


def _is_value(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_emoji(text: str) -> bool:
    """Whether a text is short and begins with a character that is neither a letter, a digit nor a space."""
    return len(text) <= LONGEST_EMOJI and not text.isascii() and not text[0].isalnum() and text.split() == [text]


_OF_LEVELS = ("words", "leans", "part", "icon", "icons")
"""Settings of a study file that end up in the features of the levels."""


@dataclass(frozen=True)
class Category:
    """One property of an alternative that is expressed in words, with unordered levels."""

    name: str
    label: str
    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        for word in (self.name, *self.levels):
            if not word or not all(c.isalnum() or c in "_-" for c in word):
                raise CrowdveilError(
                    f"category {self.name!r}: its name and its levels are words of letters, digits, _ and - only, "
                    f"got {word!r}"
                )
        lowered = [level.lower() for level in self.levels]
        if len(lowered) < 2 or len(set(lowered)) < len(lowered):
            raise CrowdveilError(f"category {self.name}: needs two or more different levels, got {list(self.levels)}")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the levels' features, in order."""
        return tuple(f"{self.name}-{level}" for level in self.levels)

    def position(self, given: Any) -> int | None:
        """Find a level, ignoring case; None if there is no such level."""
        wanted = str(given).strip().lower()
        return next((k for k, level in enumerate(self.levels) if level.lower() == wanted), None)

    def features(
        self, words: Mapping[str, str], leans: Mapping[str, float], part: str, icon: str, icons: Mapping[str, str]
    ) -> tuple[Feature, ...]:
        """Make the features of the levels: words, pictures, and the leans of a simulated crowd minus their mean."""
        for unknown in (level for level in (*words, *leans, *icons) if level not in self.levels):
            raise CrowdveilError(f"category {self.name}: {unknown!r} is not one of its levels {', '.join(self.levels)}")
        mean = math.fsum(leans.values()) / len(self.levels)
        return tuple(
            Feature(
                name,
                f"{self.label}: {words.get(level, level)}",
                0,
                1,
                levels=(0, 1),
                words={"0": "", "1": words.get(level, level)},
                part=part,
                lean=round(leans.get(level, 0.0) - mean, 6),
                icon=icons.get(level, icon),
            )
            for name, level in zip(self.feature_names, self.levels, strict=True)
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the category as plain data; words and leans are in the features of its levels."""
        return {"name": self.name, "label": self.label, "levels": list(self.levels)}


def read_categories(
    entries: Sequence[Any], given: Sequence[Feature], study: str
) -> list[tuple[Category, tuple[Feature, ...]]]:
    """Read the categories of a study, each with those features of its levels that are not already given."""
    found: list[tuple[Category, tuple[Feature, ...]]] = []
    known = {feature.name for feature in given}
    for entry in entries:
        if not isinstance(entry, dict):
            raise CrowdveilError(f"{study}: each category must be a table ([[categories]]), got {entry!r}")
        where = f"{study}, category {entry.get('name', '?')!r}"
        check_keys(entry, ("name", "label", "levels", *_OF_LEVELS), where)
        name = need(entry, "name", str, where)
        levels = need(entry, "levels", list, where)
        category = Category(name, text({"label": name, **entry}, "label", where), tuple(levels))
        if known.issuperset(category.feature_names):
            if doubled := [key for key in _OF_LEVELS if key in entry]:
                raise CrowdveilError(f"{where}: the features of its levels are given already; leave out {doubled[0]}")
            found.append((category, ()))
            continue
        words = {level: text(entry["words"], level, where) for level in optional(entry, "words", {}, where)}
        leans = {level: number(entry["leans"], level, where) for level in optional(entry, "leans", {}, where)}
        icons = {level: text(entry["icons"], level, where) for level in optional(entry, "icons", {}, where)}
        part, icon = str(entry.get("part", "")), str(entry.get("icon", ""))
        found.append((category, category.features(words, leans, part, icon, icons)))
    return found


def check_categories(categories: Sequence[Category], features: Sequence[Feature], where: str) -> None:
    """Refuse categories with a name in use, or whose levels are not features from 0 to 1."""
    by_name = {feature.name: feature for feature in features}
    names = [category.name for category in categories]
    for name in names:
        if names.count(name) > 1 or name in by_name:
            raise CrowdveilError(f"{where} uses the name {name!r} for a category and for something else")
    for category in categories:
        for name in category.feature_names:
            feature = by_name.get(name)
            if feature is None or (feature.low, feature.high, feature.unit) != (0, 1, 1):
                raise CrowdveilError(f"{where}: the level {name} of a category must be a feature from 0 to 1")


LARGEST_WEIGHT = 1000
"""Keeps every contrast of a dilemma exact, in 64 bits and in a browser's 53."""


@dataclass(frozen=True)
class Factor:
    """One respect in which alternatives differ, between two poles."""

    name: str
    title: str
    poles: tuple[str, str]
    """The negative pole and the positive one, in words."""
    weights: Mapping[str, int]
    """Feature -> whole number; features that are not mentioned do not count."""
    scenario: str | None = None
    """The type of scenario whose pairs contrast this factor; None if all pairs that differ in it do."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.name or not all(c.isalnum() or c in "_-" for c in self.name):
            raise CrowdveilError(f"factor name {self.name!r}: use letters, digits, _ and - only")
        if not self.weights:
            raise CrowdveilError(f"factor {self.name}: has no weights; give some feature a whole number")
        for feature, weight in self.weights.items():
            if not 1 <= abs(weight) <= LARGEST_WEIGHT:
                raise CrowdveilError(
                    f"factor {self.name}: the weight of {feature} must be a whole number from 1 to {LARGEST_WEIGHT} "
                    f"or from -{LARGEST_WEIGHT} to -1, got {weight!r}; leave out what does not count"
                )

    def __repr__(self) -> str:
        features = "feature" if len(self.weights) == 1 else "features"
        return f"<factor {self.name}: {self.poles[0]:.40} to {self.poles[1]:.40}, {len(self.weights)} {features}>"

    @classmethod
    def of_feature(cls, feature: Feature, category: str | None = None) -> Factor:
        """Make a factor of one feature; the level of a category is contrasted with the other levels."""
        poles = (f"less {feature.label}", f"more {feature.label}")
        if category is not None:
            poles = (f"other {category}", feature.phrase(1) or feature.label)
        return cls(feature.name, feature.label, poles, {feature.name: 1})

    def as_dict(self) -> dict[str, Any]:
        """Return the factor as plain data."""
        contrast = {} if self.scenario is None else {"scenario": self.scenario}
        poles = list(self.poles)
        return {"name": self.name, "title": self.title, "poles": poles, "weights": dict(self.weights), **contrast}

    @classmethod
    def from_dict(cls, data: Any, study: str) -> Factor:
        """Build a factor of a study from plain data."""
        if not isinstance(data, dict):
            raise CrowdveilError(f"{study}: each factor must be a table ([[factors]]), got {data!r}")
        where = f"{study}, factor {data.get('name', '?')!r}"
        check_keys(data, ("name", "title", "poles", "weights", "scenario"), where)
        name = need(data, "name", str, where)
        return cls(
            name=name,
            title=text({"title": name, **data}, "title", where),
            poles=read_poles(data, where),
            weights=dict(need(data, "weights", dict, where)),
            scenario=text(data, "scenario", where) if "scenario" in data else None,
        )


def read_poles(data: Mapping[str, Any], where: str) -> tuple[str, str]:
    """Return the words for the negative and the positive pole."""
    match data.get("poles"):
        case [str(negative), str(positive)] if negative.strip() and positive.strip() and negative != positive:
            return negative, positive
        case given:
            raise CrowdveilError(
                f'{where}: \'poles\' must be two different texts, the negative pole first, such as ["pets", "people"], '
                f"got {given!r}"
            )


def check_factors(factors: Sequence[Factor], features: Sequence[str], where: str) -> None:
    """Refuse duplicate names, unknown features, and a factor that is a combination of others."""
    names = [factor.name for factor in factors]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise CrowdveilError(f"{where} names a factor twice: {', '.join(doubled)}")
    for factor in factors:
        unknown = [feature for feature in factor.weights if feature not in features]
        if unknown:
            raise CrowdveilError(
                f"{where}: factor {factor.name} weighs {unknown[0]!r}, but the study has no such feature"
            )
    if len(factors) > len(features):
        raise CrowdveilError(f"{where} has {len(factors)} factors, and only {len(features)} features; leave some out")
    matrix = weight_matrix(factors, features)
    if np.linalg.matrix_rank(matrix) < len(factors):
        first = next(k for k in range(len(factors)) if np.linalg.matrix_rank(matrix[:, : k + 1]) <= k)
        raise CrowdveilError(
            f"{where}: factor {names[first]} is a combination of the factors before it; leave it out, or change weights"
        )


def weight_matrix(factors: Sequence[Factor], features: Sequence[str]) -> IntArray:
    """Return A: one row per feature, one column per factor."""
    rows = {name: row for row, name in enumerate(features)}
    matrix = np.zeros((len(features), len(factors)), dtype=np.int64)
    for column, factor in enumerate(factors):
        for name, weight in factor.weights.items():
            matrix[rows[name], column] = weight
    return matrix
