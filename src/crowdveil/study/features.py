"""Features: what is measured of an alternative, with the public range that privacy rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowdveil.errors import CrowdveilError
from crowdveil.study.plain_data import check_keys, need, number, optional

ICONS = (
    *("person", "people", "elder", "child", "heart", "clock", "calendar", "work", "home", "money", "scales", "shield"),
    *("book", "health", "weight", "food", "leaf", "flag", "globe", "car"),
)
"""Pictures that the voter's page can draw beside a fact."""
LONGEST_EMOJI = 12
"""In code points: some emoji are put together from several."""


@dataclass(frozen=True)
class Feature:
    """One measured property of an alternative, with the public range that it can take."""

    name: str
    label: str
    low: float
    high: float
    unit: float = 1.0
    """The amount that counts as 1 in the model: differences are divided by it."""
    levels: tuple[float, ...] = ()
    """Values that an independently drawn dilemma may show."""
    words: Mapping[str, str] | None = None
    """Value -> phrase; ``other`` stands for any value not listed; ``{n}`` is the value; "" is not said."""
    part: str = ""
    """Phrases of features of the same part are joined with "and"."""
    lean: float = 0.0
    """The mean preference of a simulated crowd. Used by simulations only."""
    icon: str = ""
    """The picture beside it on a voter's card: one of ``ICONS``, or an emoji."""

    def __post_init__(self) -> None:
        if not self.name or not all(c.isalnum() or c in "_-" for c in self.name):
            raise CrowdveilError(f"feature name {self.name!r}: use letters, digits, _ and - only")
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise CrowdveilError(
                f"feature {self.name}: needs finite bounds with low < high, got low={self.low}, high={self.high}"
            )
        if not (self.unit > 0 and math.isfinite(self.unit)):
            raise CrowdveilError(f"feature {self.name}: unit must be a positive number, got {self.unit}")
        if not math.isfinite(self.lean):
            raise CrowdveilError(f"feature {self.name}: lean must be a finite number, got {self.lean}")
        if not (self.icon == "" or self.icon in ICONS or _is_emoji(self.icon)):
            raise CrowdveilError(
                f"feature {self.name}: icon {self.icon!r} is neither an emoji nor one of {', '.join(ICONS)}"
            )
        for level in self.levels:
            if not self.low <= level <= self.high:
                raise CrowdveilError(f"feature {self.name}: level {level} is outside {self.low} to {self.high}")

    @property
    def default(self) -> float | None:
        """The value of a feature that an alternative does not mention: 0 where 0 is possible."""
        return 0.0 if self.low <= 0 <= self.high else None

    @property
    def reach(self) -> float:
        """The largest absolute difference between two alternatives, in model units."""
        return (self.high - self.low) / self.unit

    def phrase(self, value: float) -> str:
        """Put a value of this feature in the study's words."""
        shown = f"{value:g}"
        if self.words is None:
            return f"{self.label}: {shown}"
        return self.words.get(shown, self.words.get("other", "{n} " + self.label)).replace("{n}", shown)

    def as_dict(self) -> dict[str, Any]:
        """Return the feature as plain data; optional parts appear only when they are set.

        Numbers are floats, so that studies that are equal read the same.
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


def _is_emoji(text: str) -> bool:
    """Tell whether a text is short and begins with a sign that is neither a letter, a digit nor a space."""
    return len(text) <= LONGEST_EMOJI and not text.isascii() and not text[0].isalnum() and text.split() == [text]
