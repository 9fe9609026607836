"""A study: its features with their public bounds, its alternatives and its dilemmas.

Every bound that privacy rests on (how large a feature, a record or a preference can be) is a public fact of the study,
written down before anybody chooses. Nothing here ever looks at a choice.
"""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from reprlib import repr as shortened
from typing import Any

import numpy as np

from crowdveil.arrays import FloatArray, IntArray, ValueArray
from crowdveil.errors import CrowdveilError, check_fields, check_type, is_number, plural, shown
from crowdveil.study.features import (
    Category,
    Factor,
    Feature,
    check_categories,
    check_factors,
    read_categories,
    weight_matrix,
)
from crowdveil.study.plain_data import canonical_json, check_keys, need, number, optional

LONGEST_NAME = 200
"""Longest name of an alternative, in characters."""
MOST_DILEMMAS = 1_000_000
"""Most dilemmas that a ballot may have: enough for anybody, and a crowd of a few such voters fits into memory."""
COIN = "toss a coin"
"""The crowd's choice if most of it would treat two alternatives equally, in a study that allows this answer."""
_DECIMALS = 9
"""Decimals to which weighted sums of fractions are rounded, so that almost 0 becomes 0."""
_SETTINGS = (
    "name",
    "title",
    "question",
    "indifference",
    "repeat",
    "norm_bound",
    "record_norm",
    "parts",
    "drawing",
    "features",
    "categories",
    "factors",
    "along",
)
DRAWING_METHODS = ("moral-machine", "independent", "gaussian")
ALONG = ("factors", "features")
"""Names of what releases measure: the factors, or every direction in which features differ, factors first."""


@dataclass(frozen=True)
class Drawing:
    """The method by which a ballot's dilemmas are drawn, and their number."""

    method: str
    dilemmas: int

    def __post_init__(self) -> None:
        check_fields(self)
        if self.method not in DRAWING_METHODS:
            raise CrowdveilError(f"drawing method {self.method!r} is unknown: use one of {', '.join(DRAWING_METHODS)}")
        if not 1 <= self.dilemmas <= MOST_DILEMMAS:
            raise CrowdveilError(f"a ballot has 1 to {MOST_DILEMMAS:,} dilemmas, got {shown(self.dilemmas)}")


@dataclass(frozen=True)
class Alternative:
    """One possible outcome: a name and a value for each feature of the study, in the study's order."""

    name: str
    values: tuple[float, ...]
    left_out: frozenset[str] = field(default=frozenset(), compare=False)
    """The features that were not given and count as 0: a description does not mention them."""

    def __post_init__(self) -> None:
        check_fields(self)

    def __repr__(self) -> str:
        telling = sum(value != 0 for value in self.values)
        values = len(self.values)
        return f"<alternative {self.name!r}: {values} {plural(values, 'value')}, {telling} of them not 0>"


@dataclass(frozen=True)
class Dilemma:
    """Two or more alternatives to choose from."""

    alternatives: tuple[Alternative, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        if len(self.alternatives) < 2:
            raise CrowdveilError(f"a dilemma needs two or more alternatives, got {len(self.alternatives)}")
        names = [a.name for a in self.alternatives]
        if len(set(names)) < len(names):
            raise CrowdveilError(f"two alternatives have the same name: {', '.join(names)}")

    def __repr__(self) -> str:
        return f"<dilemma: {' or '.join(repr(one.name) for one in self.alternatives):.100}>"


@dataclass(frozen=True)
class Study:
    """A study: its features, its words, the drawing of dilemmas, and its public privacy bounds."""

    name: str
    title: str
    question: str
    features: tuple[Feature, ...]
    drawing: Drawing
    norm_bound: float = 2.0
    """B: the largest l1 norm of a voter's preference (the paper's constraint)."""
    record_norm: float | None = None
    """Largest l2 norm of a record's difference that Algorithm 3 keeps; longer ones are scaled down to it."""
    parts: tuple[str, ...] = ()
    """The order of the parts of a description."""
    named_factors: tuple[Factor, ...] = ()
    """The factors that the study names; if it names none, its features are its factors."""
    categories: tuple[Category, ...] = ()
    """Properties in words: groups of features, one for each level. An alternative has one level of each."""
    indifference: str | None = None
    """The words of the third answer, to treat both sides equally; None if people have to choose."""
    repeat: bool = False
    """Whether one dilemma of a ballot is asked again, mirrored, to measure how reliably people answer."""
    along: str | None = None
    """The name of what releases measure, one of ``ALONG``; None if each mechanism chooses, by public numbers."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.features:
            raise CrowdveilError(f"study {self.name!r} has no features")
        names = self.feature_names
        doubled = sorted({n for n in names if names.count(n) > 1})
        if doubled:
            raise CrowdveilError(f"study {self.name!r} names a feature twice: {', '.join(doubled)}")
        if self.indifference is not None and not (self.indifference.strip() and _is_text(self.indifference)):
            raise CrowdveilError(
                f"study {self.name!r}: indifference must be the words of the third answer, such as "
                '"Treat them equally: toss a coin"; leave it out where people have to choose'
            )
        if self.repeat and self.drawing.dilemmas < 2:
            raise CrowdveilError(
                f"study {self.name!r} asks one dilemma: to ask one again, some way off, repeat needs two or more"
            )
        check_along(self.along, f"study {self.name!r}: along")
        if not (self.norm_bound > 0 and math.isfinite(self.norm_bound)):
            raise CrowdveilError(f"study {self.name!r}: norm_bound must be a positive number, got {self.norm_bound}")
        if self.record_norm is not None and not (self.record_norm > 0 and math.isfinite(self.record_norm)):
            raise CrowdveilError(f"study {self.name!r}: record_norm must be a positive number, got {self.record_norm}")
        if self.categories and self.drawing.method != "independent":
            raise CrowdveilError(
                f"study {self.name!r} has categories, which are drawn by the method 'independent' only, "
                f"got {self.drawing.method!r}"
            )
        for feature in self.features:
            if self.drawing.method == "independent" and not feature.levels:
                raise CrowdveilError(
                    f"study {self.name!r}: feature {feature.name} needs levels to be drawn independently"
                )
            if feature.part and feature.part not in self.parts:
                raise CrowdveilError(
                    f"study {self.name!r}: feature {feature.name} has part {feature.part!r}, "
                    f"which is not among parts = {list(self.parts)}"
                )
        check_categories(self.categories, self.features, f"study {self.name!r}")
        if self.named_factors:
            check_factors(self.named_factors, names, f"study {self.name!r}")

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def dimension(self) -> int:
        """The number of features d."""
        return len(self.features)

    @property
    def answers(self) -> int:
        """The number of answers in a whole ballot: one to each dilemma, and one to the repeat if there is one."""
        return self.drawing.dilemmas + self.repeat

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The features' names in order."""
        return tuple(f.name for f in self.features)

    @cached_property
    def units(self) -> FloatArray:
        """The divisor of each feature's raw difference."""
        return np.array([f.unit for f in self.features])

    @cached_property
    def reach(self) -> FloatArray:
        """Public bound on each coordinate of |X - Z|, in model units."""
        return np.array([f.reach for f in self.features])

    @cached_property
    def attributes(self) -> tuple[Feature | Category, ...]:
        """The properties by which an alternative is described: numeric features and categories."""
        levels = {name for category in self.categories for name in category.feature_names}
        return *(feature for feature in self.features if feature.name not in levels), *self.categories

    @cached_property
    def level_columns(self) -> tuple[IntArray, ...]:
        """The positions of each category's levels among the features."""
        places = {name: place for place, name in enumerate(self.feature_names)}
        return tuple(np.array([places[name] for name in one.feature_names]) for one in self.categories)

    @cached_property
    def record_bound(self) -> float:
        """Public l2 bound of a record: the study's ``record_norm``, or the bound implied by the ranges of features.

        Alternatives that differ in a category differ by 1 in two of its levels.
        """
        numbers = sum(feature.reach**2 for feature in self.attributes if isinstance(feature, Feature))
        widest = math.sqrt(numbers + 2 * len(self.categories))
        return widest if self.record_norm is None else min(self.record_norm, widest)

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The respects in which alternatives differ: those that the study names, or else its features."""
        whose = {name: category.label for category in self.categories for name in category.feature_names}
        return self.named_factors or tuple(Factor.of_feature(f, whose.get(f.name)) for f in self.features)

    @cached_property
    def factors_are_features(self) -> bool:
        """Whether each feature is a factor of its own, whatever the words for its poles."""
        return [(f.name, f.weights) for f in self.factors] == [(name, {name: 1}) for name in self.feature_names]

    @cached_property
    def factor_matrix(self) -> IntArray:
        """A: one row of weights per feature, one column per factor. A'V is the contrast of V in each factor."""
        return weight_matrix(self.factors, self.feature_names)

    def contrasts(self, differences: ValueArray) -> FloatArray:
        """Return the contrasts of differences (rows) in each factor; exactly 0 where fractions add up to almost 0."""
        return np.asarray(differences @ self.factor_matrix.astype(np.float64), np.float64).round(_DECIMALS)

    @cached_property
    def factor_map(self) -> FloatArray:
        """The linear map from beta to theta, one row per factor: A theta is nearest to beta (least squares)."""
        return np.linalg.pinv(self.factor_matrix.astype(np.float64))

    def split(self, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split a preference beta = A theta + rest into theta and a rest that is orthogonal to every factor."""
        theta = self.factor_map @ preference
        return theta, preference - self.factor_matrix @ theta

    @cached_property
    def pole_steps(self) -> FloatArray:
        """The step from the negative pole to the positive one, one row of differences per factor.

        It changes this factor and no other, by as much as one unit of one feature at either pole does: one person
        instead of one pet, crossing on green instead of crossing on red.
        """
        low, high = np.array([(f.low / f.unit, f.high / f.unit) for f in self.features]).T
        weights = self.factor_matrix.T
        one_unit = np.hstack([weights * np.clip(low, -1, 0), weights * np.clip(high, 0, 1)])
        lengths: FloatArray = one_unit.max(axis=1) - one_unit.min(axis=1)
        return self.factor_map * lengths[:, None]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of everything that is asked and estimated: two studies are the same iff this is.

        It includes the names and weights of factors, but not their words. Factors that are the features are left out,
        and so is what releases measure.
        """
        definition = self.as_dict()
        definition.pop("factors", None)
        definition.pop("along", None)
        if not self.factors_are_features:
            columns = self.factor_matrix.T.tolist()
            named = zip(self.named_factors, columns, strict=True)
            definition["factors"] = [{"name": factor.name, "weights": weights} for factor, weights in named]
        return hashlib.sha256(canonical_json(definition).encode(errors="surrogatepass")).hexdigest()

    def alternative(self, features: Mapping[str, Any], name: str) -> Alternative:
        """Check the values of one alternative against the study and put them in order.

        A feature that is not mentioned counts as 0 if 0 is a possible value. A category is given by the word for its
        level, ``{"race": "black"}``; one that is not mentioned counts as the mean of its levels.
        """
        check_type(features, Mapping, "the alternative's features", 'give a mapping, like {"girl": 1}')
        said = dict(features)
        for category in self.categories:
            if category.name in said:
                said |= self._level(category, said.pop(category.name), name)
        for given in said:
            if given not in self.feature_names:
                known = [attribute.name for attribute in self.attributes]
                close = difflib.get_close_matches(str(given), known, n=3)
                hint = f"did you mean {' or '.join(close)}?" if close else f"it has: {', '.join(known)}"
                raise CrowdveilError(f"alternative {name!r}: study {self.name} has no feature {given!r}; {hint}")
        values = tuple(
            _value(f, said[f.name], name) if f.name in said else _default_value(f, name) for f in self.features
        )
        for category, columns in zip(self.categories, self.level_columns, strict=True):
            levels = [values[column] for column in columns]
            if any(levels) and sorted(levels)[-2:] != [0, 1]:
                raise CrowdveilError(f"alternative {name!r}: {category.name} must be one of its levels, got {levels}")
        return Alternative(name, values, frozenset(self.feature_names) - set(said))

    def _level(self, category: Category, given: Any, name: str) -> dict[str, int]:
        """Return the value of each level's feature for a given word."""
        position = category.position(given)
        if position is None:
            raise CrowdveilError(
                f"alternative {name!r}: {category.name} must be one of {', '.join(category.levels)}, "
                f"got {shortened(given)}"
            )
        return {feature: int(k == position) for k, feature in enumerate(category.feature_names)}

    def plain_values(self, values: Sequence[float]) -> dict[str, float | str]:
        """Return an alternative's values as people write them: numbers for features, words for categories."""
        said: dict[str, float | str] = dict(zip(self.feature_names, values, strict=True))
        for category in self.categories:
            levels = [said.pop(name) for name in category.feature_names]
            if any(levels):
                said[category.name] = category.levels[levels.index(1)]
        return said

    def first_without_level(self, values: ValueArray) -> tuple[int, Category] | None:
        """Find the first alternative (row) that does not have exactly one level of each category."""
        for category, columns in zip(self.categories, self.level_columns, strict=True):
            levels = np.asarray(values)[:, columns]
            wrong = (levels.sum(axis=1) != 1) | ((levels != 0) & (levels != 1)).any(axis=1)
            if wrong.any():
                return int(wrong.argmax()), category
        return None

    def dilemma(self, given: Any) -> Dilemma:
        """Build a dilemma from plain data, in any of the accepted forms.

        These are a list of alternatives, each given by its features (``{"girl": 1}``, then called A, B, ...) or with a
        name (``{"name": "stay", "features": {"girl": 1}}``), and a mapping of names to features. Either may be nested
        under the key ``alternatives``. A dilemma is returned as it is, if it is one of this study.
        """
        if isinstance(given, Dilemma):
            for one in given.alternatives:
                self._check_alternative(one)
            return given
        if isinstance(given, Mapping):
            given = given.get("alternatives", given)
        if isinstance(given, Mapping) and _is_one_alternative(given):
            raise CrowdveilError(
                f"the dilemma is one alternative, {shortened(given)}: give a list of two or more, like "
                f'[{{"girl": 1}}, {{"dog": 2}}]; see an example with: crowdveil studies {self.name} --example'
            )
        if isinstance(given, Mapping):
            given = [{"name": name, "features": features} for name, features in given.items()]
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise CrowdveilError(
                f'the dilemma is {given!r:.80}: give a list of alternatives, like [{{"girl": 1}}, {{"dog": 2}}]; '
                f"see an example with: crowdveil studies {self.name} --example"
            )
        dilemma = Dilemma(tuple(self._alternative(position, one) for position, one in enumerate(given)))
        for category, columns in zip(self.categories, self.level_columns, strict=True):
            silent = [a.name for a in dilemma.alternatives if not any(a.values[column] for column in columns)]
            if silent and len(silent) < len(dilemma.alternatives):
                raise CrowdveilError(
                    f"alternative {silent[0]!r}: {category.name} is missing, and others have it: "
                    f"give one of {', '.join(category.levels)}"
                )
        return dilemma

    def _alternative(self, position: int, given: Any) -> Alternative:
        """Read one alternative of a dilemma: its features, or an object with its name and its features."""
        name = chr(ord("A") + position) if position < 26 else str(position + 1)
        features = given
        if isinstance(given, Mapping) and "features" in given and set(given) <= {"name", "features"}:
            features = given["features"]
            name = name if given.get("name") is None else given["name"]
        if not isinstance(features, Mapping):
            raise CrowdveilError(
                f"alternative {position + 1} of the dilemma must look like "
                '{"feature": number, ...} or {"name": "...", "features": {"feature": number, ...}}, '
                f"got {shortened(features)}"
            )
        if not (isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and _is_text(name)):
            raise CrowdveilError(
                f"alternative {position + 1} of the dilemma has the name {name!r:.80}: "
                f"a name is a text of 1 to {LONGEST_NAME} characters"
            )
        if self.indifference is not None and name == COIN:
            raise CrowdveilError(f"an alternative cannot be called {name!r}: in study {self.name} that is an answer")
        return self.alternative(features, name)

    def _check_alternative(self, given: Alternative) -> None:
        """Refuse what is no alternative of this study."""
        check_type(given, Alternative, "the alternative", 'make it with study.alternative({"girl": 1}, "A")')
        if len(given.values) != self.dimension:
            raise CrowdveilError(
                f"alternative {given.name!r} has {len(given.values)} values: study {self.name} has {self.dimension} "
                "features"
            )

    def difference(self, chosen: Alternative, other: Alternative) -> FloatArray:
        """Return V = X - Z in model units."""
        self._check_alternative(chosen)
        self._check_alternative(other)
        return np.subtract(chosen.values, other.values) / self.units

    def describe(self, alternative: Alternative) -> str:
        """Describe an alternative in the study's own words, as far as its features were given."""
        self._check_alternative(alternative)
        said: dict[str, list[str]] = {part: [] for part in ("", *self.parts)}
        for feature, value in zip(self.features, alternative.values, strict=True):
            phrase = "" if feature.name in alternative.left_out else feature.phrase(value)
            if phrase:
                said[feature.part].append(phrase)
        groups = [_join(phrases) for part, phrases in said.items() if part and phrases] + said[""]
        return ", ".join(groups)

    def __repr__(self) -> str:
        features, dilemmas = self.dimension, self.drawing.dilemmas
        counted = f"{features} {plural(features, 'feature')}, {dilemmas} {plural(dilemmas, 'dilemma')} a voter"
        return f"<study {self.name}: {counted}>"

    def as_dict(self) -> dict[str, Any]:
        """Return the study as plain data, in the same shape as its TOML file."""
        return {
            "name": self.name,
            "title": self.title,
            "question": self.question,
            **({"indifference": self.indifference} if self.indifference is not None else {}),
            **({"repeat": True} if self.repeat else {}),
            "norm_bound": float(self.norm_bound),
            **({"record_norm": float(self.record_norm)} if self.record_norm is not None else {}),
            **({"parts": list(self.parts)} if self.parts else {}),
            "drawing": {"method": self.drawing.method, "dilemmas": self.drawing.dilemmas},
            "features": [f.as_dict() for f in self.features],
            **({"categories": [c.as_dict() for c in self.categories]} if self.categories else {}),
            **({"factors": [f.as_dict() for f in self.named_factors]} if self.named_factors else {}),
            **({"along": self.along} if self.along is not None else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Study:
        """Build a study from plain data, and name whatever does not fit."""
        check_type(data, Mapping, "the study", "give the settings of a study file, by name")
        where = f"study {data.get('name', '?')!r}"
        check_keys(data, _SETTINGS, where)
        drawing = need(data, "drawing", dict, where)
        check_keys(drawing, {"method", "dilemmas"}, f"{where}, [drawing]")
        listed = optional(data, "categories", [], where)
        numbers = optional(data, "features", [], where) if listed else need(data, "features", list, where)
        features = [Feature.from_dict(entry, where) for entry in numbers]
        categories = read_categories(listed, features, where)
        return cls(
            name=need(data, "name", str, where),
            title=str(data.get("title", data["name"])),
            question=str(data.get("question", "Which do you prefer?")),
            features=(*features, *(feature for _, levels in categories for feature in levels)),
            drawing=Drawing(need(drawing, "method", str, where), need(drawing, "dilemmas", int, where)),
            norm_bound=number(data, "norm_bound", where, 2.0),
            record_norm=number(data, "record_norm", where) if "record_norm" in data else None,
            parts=tuple(str(part) for part in optional(data, "parts", [], where)),
            named_factors=tuple(Factor.from_dict(entry, where) for entry in optional(data, "factors", [], where)),
            categories=tuple(category for category, _ in categories),
            indifference=need(data, "indifference", str, where) if "indifference" in data else None,
            repeat=need(data, "repeat", bool, where) if "repeat" in data else False,
            along=need(data, "along", str, where) if "along" in data else None,
        )


def check_along(along: object, what: str) -> None:
    """Refuse anything but a name of what releases measure, or None."""
    if along is not None and not (isinstance(along, str) and along in ALONG):
        raise CrowdveilError(
            f"{what} is {shown(along)}: use {' or '.join(map(repr, ALONG))}, or leave it out, and the mechanism chooses"
        )


def _is_one_alternative(given: Mapping[str, Any]) -> bool:
    """Whether a mapping holds the features of one alternative, with its name or without, in place of several."""
    named = "features" in given and set(given) <= {"name", "features"}
    return named or (bool(given) and not any(isinstance(features, Mapping) for features in given.values()))


def _join(phrases: Sequence[str]) -> str:
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def _is_text(given: str) -> bool:
    """Whether a string can be encoded: half of a surrogate pair cannot."""
    return given.encode(errors="replace").decode() == given


def _value(feature: Feature, given: Any, name: str) -> float:
    """Check the value that was given for a feature of an alternative; NumPy numbers are accepted."""
    if not is_number(given) or not feature.low <= float(given) <= feature.high:
        raise CrowdveilError(
            f"alternative {name!r}: feature {feature.name} must be a number from "
            f"{feature.low:g} to {feature.high:g}, got {shortened(given)}"
        )
    return float(given)


def _default_value(feature: Feature, name: str) -> float:
    """Return the value of a feature that is not mentioned."""
    if feature.default is None:
        raise CrowdveilError(
            f"alternative {name!r}: feature {feature.name} is missing "
            f"(a number from {feature.low:g} to {feature.high:g})"
        )
    return feature.default
