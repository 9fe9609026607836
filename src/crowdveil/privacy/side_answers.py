"""Further results of a release beside the preference: a threshold, and a reliability.

The threshold of a third answer is how close two alternatives must be for people to treat them equally. With the margin
t of a dilemma, a share Phi(t - tau) of the crowd chooses the one side, Phi(-t - tau) the other, and the rest would toss
a coin (``estimation.threshold``).

The reliability is the share of people who answer alike when a dilemma is asked a second time, mirrored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from statistics import NormalDist
from typing import Any, Self

_HALVINGS = 60


@dataclass(frozen=True)
class Indifference:
    """The threshold of a release, and the share of indifferent choices that it was found from."""

    tau: float
    deviation: float
    """Posterior standard deviation of tau: noise, sampling, and the prior where the data are weak."""
    low: float
    """The ends of a 95 % interval for tau."""
    high: float
    share: float
    """Share of the crowd's choices in which neither side was chosen; noise may move it below 0 or above 1."""
    share_deviation: float

    def __post_init__(self) -> None:
        numbers = [getattr(self, field.name) for field in fields(self)]
        if not all(math.isfinite(number) for number in numbers):
            raise ValueError("a threshold is made of finite numbers")
        if not (0 <= self.low <= self.tau <= self.high and self.deviation >= 0 and self.share_deviation >= 0):
            raise ValueError("a threshold is 0 or more and lies in its interval")

    def shares(self, margin: float, variance: float) -> tuple[float, float, float]:
        """Return the shares who choose the one side, the other, and neither, given a margin known up to a variance.

        Margin and threshold are taken to be normal and independent: of margin - tau + noise > 0, the probability is
        Phi of the mean over the deviation of all of it.
        """
        deviation = math.sqrt(1 + variance + self.deviation**2)
        first, second = (NormalDist().cdf((side - self.tau) / deviation) for side in (margin, -margin))
        total = first + second
        return (first, second, 1 - total) if total < 1 else (first / total, second / total, 0.0)

    @property
    def even_margin(self) -> float:
        """The margin at which as many choose the one side as would toss a coin; below it, most would toss one.

        0 where no margin is so small that tossing a coin is the commonest answer: tau below 0.43.
        """
        return even_margin(self.tau)

    @property
    def even_slope(self) -> float:
        """By how much the even margin grows with tau."""
        step = 1e-4
        return (even_margin(self.tau + step) - even_margin(max(self.tau - step, 0.0))) / (
            self.tau + step - max(self.tau - step, 0.0)
        )

    def as_dict(self) -> dict[str, float]:
        """Return it as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read it from a release file."""
        return cls(**{field.name: float(data[field.name]) for field in fields(cls)})


def even_margin(tau: float) -> float:
    """Return the margin m >= 0 at which Phi(m - tau) = 1 - Phi(m - tau) - Phi(-m - tau), or 0 if there is none."""
    phi = NormalDist().cdf

    def excess(margin: float) -> float:
        return 2 * phi(margin - tau) + phi(-margin - tau) - 1

    if excess(0.0) >= 0:
        return 0.0
    low = 0.0
    high = tau + 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return high


@dataclass(frozen=True)
class Reliability:
    """The released share of people who answer consistently. For people who toss a coin each time it is one half."""

    share: float
    """Estimated share in the population, clipped to [0, 1]."""
    deviation: float
    """Standard deviation of its error: noise, and the sampling of voters."""
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
