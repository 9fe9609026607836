"""Categories: what is said of an alternative in words that have no order, one of a few levels.

A category has a feature for each of its levels, 1 where the alternative has it and else 0. So two alternatives differ
by +1 in one level and -1 in another: only differences of effects can be seen, and effects that sum to zero stand for
them all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.study.features import Feature
from crowdveil.study.plain_data import check_keys, need, number, optional, text

_OF_LEVELS = ("words", "leans", "part", "icon", "icons")
"""Settings of a study file that end up in the features of the levels."""


@dataclass(frozen=True)
class Category:
    """One property of an alternative that is told in words: its levels, in no order."""

    name: str
    label: str
    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        for word in (self.name, *self.levels):
            if not isinstance(word, str) or not word or not all(c.isalnum() or c in "_-" for c in word):
                raise CrowdveilError(
                    f"category {self.name!r}: its name and its levels are words of letters, digits, _ and - only, "
                    f"got {word!r}"
                )
        lowered = [level.lower() for level in self.levels]
        if len(lowered) < 2 or len(set(lowered)) < len(lowered):
            raise CrowdveilError(f"category {self.name}: needs two or more different levels, got {list(self.levels)}")

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features of the levels, in their order."""
        return tuple(f"{self.name}-{level}" for level in self.levels)

    def position(self, given: Any) -> int | None:
        """Find a level, in capitals or not; None where there is no such level."""
        wanted = str(given).strip().lower()
        return next((k for k, level in enumerate(self.levels) if level.lower() == wanted), None)

    def features(
        self, words: Mapping[str, str], leans: Mapping[str, float], part: str, icon: str, icons: Mapping[str, str]
    ) -> tuple[Feature, ...]:
        """Make the features of the levels: words, pictures, and the leanings of a simulated crowd around their mean."""
        for unknown in (level for level in (*words, *leans, *icons) if level not in self.levels):
            raise CrowdveilError(f"category {self.name}: {unknown!r} is none of its levels {', '.join(self.levels)}")
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
        """Return the category as plain data; words and leanings are in the features of its levels."""
        return {"name": self.name, "label": self.label, "levels": list(self.levels)}


def read_categories(
    entries: Sequence[Any], given: Sequence[Feature], study: str
) -> list[tuple[Category, tuple[Feature, ...]]]:
    """Read the categories of a study, each with those features of its levels that are not given already."""
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
    """Refuse categories that are named twice or like a feature, or whose levels are no features from 0 to 1."""
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
