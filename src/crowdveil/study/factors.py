"""Factors: the few respects in which a study's alternatives differ, as whole-number contrasts of its features.

A preference theta over the factors is the preference beta = A theta over the features, where A has a column of
weights for each factor: beta . (x - z) = theta . A'(x - z).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.errors import CrowdveilError
from crowdveil.study.features import Feature
from crowdveil.study.plain_data import check_keys, need, text

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
    """The type of scenario whose pairs are this factor's contrast; None: all pairs that differ in it are."""

    def __post_init__(self) -> None:
        if not self.name or not all(c.isalnum() or c in "_-" for c in self.name):
            raise CrowdveilError(f"factor name {self.name!r}: use letters, digits, _ and - only")
        if not self.weights:
            raise CrowdveilError(f"factor {self.name}: has no weights; give some feature a whole number")
        for feature, weight in self.weights.items():
            whole = isinstance(weight, int) and not isinstance(weight, bool)
            if not whole or not 1 <= abs(weight) <= LARGEST_WEIGHT:
                raise CrowdveilError(
                    f"factor {self.name}: the weight of {feature} must be a whole number from 1 to {LARGEST_WEIGHT} "
                    f"or from -{LARGEST_WEIGHT} to -1, got {weight!r}; leave out what does not count"
                )

    @classmethod
    def of_feature(cls, feature: Feature, category: str | None = None) -> Factor:
        """Take a feature as a factor of its own; the level of a category stands against the others."""
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
    """Refuse factors that are named twice, that weigh an unknown feature, or of which one follows from the others."""
    names = [factor.name for factor in factors]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise CrowdveilError(f"{where} names a factor twice: {', '.join(doubled)}")
    for factor in factors:
        unknown = [feature for feature in factor.weights if feature not in features]
        if unknown:
            raise CrowdveilError(f"{where}: factor {factor.name} weighs {unknown[0]!r}, which is no feature of it")
    if len(factors) > len(features):
        raise CrowdveilError(f"{where} has {len(factors)} factors, and only {len(features)} features; leave some out")
    matrix = weight_matrix(factors, features)
    if np.linalg.matrix_rank(matrix) < len(factors):
        first = next(k for k in range(len(factors)) if np.linalg.matrix_rank(matrix[:, : k + 1]) <= k)
        raise CrowdveilError(
            f"{where}: factor {names[first]} is a combination of the factors before it; leave it out, or change weights"
        )


def weight_matrix(factors: Sequence[Factor], features: Sequence[str]) -> IntArray:
    """Return A: a row for each feature, a column for each factor."""
    rows = {name: row for row, name in enumerate(features)}
    matrix = np.zeros((len(features), len(factors)), dtype=np.int64)
    for column, factor in enumerate(factors):
        for name, weight in factor.weights.items():
            matrix[rows[name], column] = weight
    return matrix
