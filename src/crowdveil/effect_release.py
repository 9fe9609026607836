"""Effects that may be published: how often each side was preferred, factor by factor and group by group.

A file of effects is JSON like a release of preferences, with its own format and a checksum. Nothing can be decided from
it: an effect is an average over the pairs that were shown, and a dilemma is a single pair.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdveil.errors import CrowdveilError, as_pandas, check_text, path_of, plural
from crowdveil.files import check_writable, replacing, write_text
from crowdveil.privacy.guarantee import Guarantee
from crowdveil.releases import (
    EFFECTS_FORMAT,
    Publication,
    publication_fields,
    publication_from_dict,
    read_json,
    read_publication,
)
from crowdveil.study.features import Factor
from crowdveil.study.study import Study

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

TABLES = (".csv", ".parquet")


@dataclass(frozen=True)
class Effect:
    """The share who preferred the side with more of a factor, minus the share who preferred the other: from -1 to 1."""

    factor: str
    contrast: str
    """The pairs that the effect is computed from, in words."""
    estimate: float
    standard_error: float | None
    """None if nothing is known."""
    low: float
    high: float
    pairs: float
    """Number of pairs: a noisy count if it is protected, and a weighted one if voters have weights."""
    known: bool
    """False if the number of pairs cannot be distinguished from zero: the interval is then the whole range."""

    def __str__(self) -> str:
        return f"{self.estimate:+.3f} [{self.low:+.3f}, {self.high:+.3f}]" if self.known else "not known"


@dataclass(frozen=True)
class GroupEffects:
    """The effects in a group of voters, one for each factor of the study."""

    label: str
    """The answer that defines the group; empty for a whole crowd."""
    voters: float | None
    """Number of voters: a noisy count if it is protected, None if it is not known."""
    effects: tuple[Effect, ...]

    @property
    def size(self) -> str:
        """The number of voters in words; a noisy count, or a sum of weights, is about so many."""
        if self.voters is None:
            return "not known"
        counted = round(self.voters)
        return f"{'' if counted == self.voters else 'about '}{counted:,} {plural(counted, 'voter')}"


@dataclass(frozen=True)
class GroupDifference:
    """The effect in one group minus that in another."""

    factor: str
    group: str
    other: str
    estimate: float
    low: float
    high: float
    told_apart: bool
    """Whether it is significant among all differences considered together (Benjamini and Hochberg)."""

    @property
    def known(self) -> bool:
        """Whether anything is known about it: not if one of the two effects is unknown, so that it may be anything."""
        return (self.low, self.high) != (-2.0, 2.0)

    def in_words(self) -> tuple[str, str]:
        """Format the difference and its interval."""
        return (f"{self.estimate:+.3f}", f"{self.low:+.3f} to {self.high:+.3f}") if self.known else ("", "not known")


@dataclass(frozen=True)
class Effects:
    """Effects of a crowd, or of its groups with their differences."""

    study: Study
    question: str | None
    """The question by which voters are grouped."""
    groups: tuple[GroupEffects, ...]
    differences: tuple[GroupDifference, ...] = ()

    def factor(self, name: str) -> Factor:
        """Find a factor of the study."""
        check_text(name, "the factor")
        for factor in self.study.factors:
            if factor.name == name:
                return factor
        names = ", ".join(factor.name for factor in self.study.factors)
        raise CrowdveilError(f"there is no factor {name!r}: study {self.study.name} has {names}")

    def effect(self, factor: str, group: str = "") -> Effect:
        """Find the effect of a factor, in a group if there are any."""
        check_text(factor, "the factor")
        check_text(group, "the group")
        for one in self.groups:
            for effect in one.effects:
                if (one.label, effect.factor) == (group, factor):
                    return effect
        groups = ", ".join(repr(one.label) for one in self.groups)
        raise CrowdveilError(f"there is no effect of {factor!r} in the group {group!r}: the groups are {groups}")

    def verdicts(self) -> list[tuple[Factor, str]]:
        """Return, for each factor, whether the groups differ, agree on the side, or neither is clear."""
        return [(factor, self._verdict(factor)) for factor in self.study.factors] if len(self.groups) > 1 else []

    def _verdict(self, factor: Factor) -> str:
        found = [one for one in self.differences if one.factor == factor.name and one.told_apart]
        if found:
            pairs = [f"{one.group} and {one.other} by {one.estimate:+.2f}" for one in found]
            return f"differ: {'; '.join(pairs)}"
        intervals = [self.effect(factor.name, group.label) for group in self.groups]
        for pole, agreed in (
            (factor.poles[1], all(one.known and one.low > 0 for one in intervals)),
            (factor.poles[0], all(one.known and one.high < 0 for one in intervals)),
        ):
            if agreed:
                return f"agree: all prefer {pole}"
        return "no difference beyond noise and chance"

    def as_dict(self) -> dict[str, Any]:
        """Return the effects as plain data."""
        return {
            "question": self.question,
            "groups": [
                {"label": one.label, "voters": one.voters, "effects": [asdict(effect) for effect in one.effects]}
                for one in self.groups
            ],
            "differences": [asdict(one) for one in self.differences],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], study: Study) -> Effects:
        """Read effects from plain data, and check that they fit the study."""
        groups = tuple(
            GroupEffects(str(one["label"]), _number_or_none(one["voters"]), tuple(map(_effect, one["effects"])))
            for one in data["groups"]
        )
        differences = tuple(_difference(one) for one in data["differences"])
        names = [factor.name for factor in study.factors]
        if not groups or any([effect.factor for effect in one.effects] != names for one in groups):
            raise CrowdveilError("its effects are not those of the study's factors")
        labels = {one.label for one in groups}
        if any(one.factor not in names or not {one.group, one.other} <= labels for one in differences):
            raise CrowdveilError("its differences are not between its groups")
        question = None if data["question"] is None else str(data["question"])
        return cls(study, question, groups, differences)

    def to_polars(self) -> pl.DataFrame:
        """Return a tidy table: one row per group and factor. A positive effect prefers the pole named in "level"."""
        import polars as pl

        rows = [
            {
                **({} if self.question is None else {"question": self.question, "group": one.label}),
                "factor": effect.factor,
                "level": self.factor(effect.factor).poles[1],
                "estimate": effect.estimate if effect.known else None,
                "standard_error": effect.standard_error,
                "low": effect.low,
                "high": effect.high,
                "voters": one.voters,
                "pairs": effect.pairs,
                "contrast": effect.contrast,
            }
            for one in self.groups
            for effect in one.effects
        ]
        numbers = ("estimate", "standard_error", "low", "high", "voters", "pairs")
        return pl.DataFrame(rows, schema_overrides=dict.fromkeys(numbers, pl.Float64))

    def write_table(self, path: str | PathLike[str]) -> None:
        """Write the tidy table, as .csv or .parquet."""
        path = path_of(path, "the table")
        check_table(path)
        table = self.to_polars()
        with replacing(path) as unfinished:
            table.write_csv(unfinished) if path.suffix == ".csv" else table.write_parquet(unfinished)

    def to_pandas(self) -> Any:
        """Return ``to_polars`` as a pandas table, if pandas is installed."""
        return as_pandas(self.to_polars())

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw the effects between their two poles, the largest at the top.

        With a path, write it to a .png or .svg file too.
        """
        from crowdveil.figure import plotted
        from crowdveil.pages.effects_page import effects_figure  # a layer above; the contract lists this exception

        return plotted(partial(effects_figure, self), path)

    def __repr__(self) -> str:
        by = "" if self.question is None else f" in {len(self.groups)} groups by {self.question}"
        factors = len(self.study.factors)
        return f"<effects of {factors} {plural(factors, 'factor')}, {self.study.name}{by}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(one.label)}</td><td>{html.escape(self.factor(effect.factor).title)}</td>"
            f"<td>{html.escape(self.factor(effect.factor).poles[1])}</td><td>{effect}</td></tr>"
            for one in self.groups
            for effect in one.effects
        )
        return f"<table><tr><th>group</th><th>factor</th><th>preferred</th><th>effect, 95 %</th></tr>{rows}</table>"


@dataclass(frozen=True, eq=False)
class EffectsRelease(Publication):
    """Effects with their guarantee."""

    effects: Effects
    guarantee: Guarantee
    mechanism: str
    sampler: str
    """Where the noise came from, in words."""
    exact: bool
    """False for floating-point noise, which is for experiments and protects nobody."""
    facts: Mapping[str, Any]
    ledger: Mapping[str, Any] | None
    """The id of the ledger that was charged, and the entry."""
    version: str
    on_save: Callable[[str], None] | None = field(default=None, repr=False)

    @property
    def study(self) -> Study:
        """The study that was asked."""
        return self.effects.study

    def content(self) -> dict[str, Any]:
        """Return the content of the file apart from the guarantee."""
        return {
            "format": EFFECTS_FORMAT,
            "study": self.study.as_dict(),
            "study_fingerprint": self.study.fingerprint,
            **self.effects.as_dict(),
        }

    def to_polars(self) -> pl.DataFrame:
        """Return a tidy table: one row per group and factor."""
        return self.effects.to_polars()

    def to_pandas(self) -> Any:
        """Return ``to_polars`` as a pandas table, if pandas is installed."""
        return self.effects.to_pandas()

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw the effects; with a path, write them to a .png or .svg file too."""
        return self.effects.plot(path)

    def page(self, path: str | PathLike[str]) -> None:
        """Write a readable page about the effects."""
        from crowdveil.pages.effects_page import effects_page  # a layer above; the contract lists this exception

        write_text(path_of(path), effects_page(self))

    def __repr__(self) -> str:
        promise = self.guarantee
        by = "" if self.effects.question is None else f" by {self.effects.question}"
        what = "" if self.exact else ", for experiments: protects nobody"
        return (
            f"<effects{by}: {self.study.title}, {promise.voters} voters, {promise.paradigm.name} at epsilon "
            f"{promise.epsilons}{what}>"
        )

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self).strip('<>'))}</p>{self.effects._repr_html_()}"


def holds_effects(path: Path) -> bool:
    """Whether a file holds effects, rather than a release of preferences."""
    try:
        data = read_json(path)
    except CrowdveilError:
        return False
    return isinstance(data, dict) and data.get("format") == EFFECTS_FORMAT


def read_effects(path: str | PathLike[str], *, allow_experiment: bool = False) -> EffectsRelease:
    """Read and check a file of effects; one made with floating-point noise must be allowed explicitly."""
    return read_publication(path, "the file of effects", effects_from_dict, allow_experiment)


def effects_from_dict(data: Any, *, allow_experiment: bool = False) -> EffectsRelease:
    """Check the plain data of a file of effects and build the release."""
    return publication_from_dict(data, EFFECTS_FORMAT, "file of effects", _effects_release, allow_experiment)


def _effects_release(data: Mapping[str, Any], study: Study) -> EffectsRelease:
    return EffectsRelease(effects=Effects.from_dict(data, study), **publication_fields(data))


def check_table(path: Path) -> None:
    """Refuse a table that could not be written there, or of an unknown type."""
    if path.suffix not in TABLES:
        raise CrowdveilError(f"the table {path} must end in {' or '.join(TABLES)}")
    check_writable(path)


def _effect(data: Mapping[str, Any]) -> Effect:
    numbers = {name: float(data[name]) for name in ("estimate", "low", "high", "pairs")}
    if not all(map(math.isfinite, numbers.values())) or not -1 <= numbers["low"] <= numbers["high"] <= 1:
        raise CrowdveilError(f"its effect of {data['factor']} has no interval within -1 and 1")
    error = _number_or_none(data["standard_error"])
    return Effect(
        str(data["factor"]), str(data["contrast"]), standard_error=error, known=data["known"] is True, **numbers
    )


def _difference(data: Mapping[str, Any]) -> GroupDifference:
    estimate, low, high = (float(data[name]) for name in ("estimate", "low", "high"))
    factor, group, other = (str(data[name]) for name in ("factor", "group", "other"))
    return GroupDifference(factor, group, other, estimate, low, high, data["told_apart"] is True)


def _number_or_none(value: Any) -> float | None:
    return None if value is None else float(value)
