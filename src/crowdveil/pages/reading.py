"""What a release says about each feature, in the order and with the digits in which it is shown."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from scipy.special import ndtr

from crowdveil.releases import Release

# Characters that no page may carry on from a file: controls, halves of surrogate pairs (which have no UTF-8), and
# the marks that turn the direction of all text after them.
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


class Lean(StrEnum):
    """Which way the crowd leans on a feature, as far as the noise lets it be seen."""

    MORE = "more"
    LESS = "less"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Reading:
    """One feature of a released society."""

    label: str
    value: float
    error_bar: float

    @property
    def lean(self) -> Lean:
        """The sign of the value, unless its error bar reaches zero: then noise alone could have made it."""
        if not abs(self.value) > self.error_bar:
            return Lean.UNCLEAR
        return Lean.MORE if self.value > 0 else Lean.LESS

    @property
    def share(self) -> float:
        """How often the society picks the one of two otherwise equal alternatives that has one unit more: Phi(beta)."""
        return float(ndtr(self.value))


def readings(release: Release) -> tuple[Reading, ...]:
    """Read a release feature by feature, from the most preferred to the least."""
    found = (
        Reading(one_line(feature.label), float(value), float(error_bar))
        for feature, value, error_bar in zip(release.study.features, release.parameter, release.error_bars, strict=True)
    )
    return tuple(sorted(found, key=lambda reading: -reading.value))


def decimals(shown: Iterable[Reading]) -> int:
    """Return how many decimals to show: two digits of the smallest error bar; more would be digits of noise."""
    smallest = min((r.error_bar for r in shown if r.error_bar > 0), default=0.01)
    return min(max(1 - math.floor(math.log10(smallest)), 0), 9)


def signed(value: float, places: int) -> str:
    """Write a number with its sign, and a true minus.

    >>> signed(0.25, 2), signed(-0.25, 2), signed(-0.0001, 2)
    ('+0.25', '−0.25', '0.00')
    """
    text = f"{value:+.{places}f}"
    return text.replace("-", "−") if float(text) else text[1:]


def one_line(text: str) -> str:
    """Make words from a file fit to be shown: on one line, without what a page cannot carry."""
    return " ".join(_UNSHOWABLE.sub("\ufffd", " ".join(text.split())).split())
