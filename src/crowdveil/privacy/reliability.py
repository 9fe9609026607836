"""The reliability of a crowd: the share of people who answer alike when a dilemma is asked a second time, mirrored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self


@dataclass(frozen=True)
class Reliability:
    """The share of people who answer alike, as a release tells it. One who tosses a coin each time does so by half."""

    share: float
    """Of the people like these voters, estimated; kept between 0 and 1."""
    deviation: float
    """Standard deviation of its error: noise, and the draw of the voters."""
    low: float
    """The ends of a 95 % interval, which covers both."""
    high: float

    def __post_init__(self) -> None:
        if not (0 <= self.low <= self.share <= self.high <= 1 and 0 <= self.deviation < math.inf):
            raise ValueError("a reliability is a share in its interval")

    def as_dict(self) -> dict[str, float]:
        """Return it as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read it from a release file."""
        return cls(**{field.name: float(data[field.name]) for field in fields(cls)})
