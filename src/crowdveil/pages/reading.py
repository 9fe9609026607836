"""A release read feature by feature, in the order and with the digits in which it is shown, and the findings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import ndtr

from crowdveil.privacy.noise.distribution import Gaussian, LaplaceSum, NoiseDistribution, Spread
from crowdveil.releases import ERROR_BAR, Release

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


def error_bar_sentence(noise: NoiseDistribution, features: int) -> str:
    """Tell what the error bars cover and what they do not."""
    covered = (
        "the noise and the differences between voters, as far as the spread of the noisy reports shows them; a bias of "
        "the mechanism is not covered"
        if isinstance(noise, Spread)
        else "the noise that privacy added, and nothing else: not how well these voters stand for everybody"
    )
    missing = round((1 - ERROR_BAR) * features)
    expected = f", so expect about {missing} of these {features} to miss" if missing else ""
    return f"An error bar covers {covered}. It misses the truth in {1 - ERROR_BAR:.0%} of cases{expected}."


def expected_error_bar_sentence(noise: NoiseDistribution | None, robust: float = 0.0) -> str:
    """Tell before a release what its error bars will be, as far as that is known then."""
    if noise is None:
        return "How wide the error bars are is known only afterwards: the noise goes through an estimate."
    widest = f"± {float(np.max(noise.half_widths(ERROR_BAR))):.3g}"
    if isinstance(noise, LaplaceSum | Gaussian) and not robust:
        return f"The {ERROR_BAR:.0%} error bar of each value will be {widest}."
    return (
        f"The widest {ERROR_BAR:.0%} error bar would be about {widest} for a crowd that is indifferent on the whole "
        "and in which everybody answered every dilemma. It can come out wider."
    )


def finding_sentences(shown: Sequence[Reading], places: int) -> list[str]:
    """Tell what stands out in a release, and how much of it could be noise."""
    clear = [r for r in shown if r.lean is not Lean.UNCLEAR]
    if not clear:
        return [
            f"None of the {len(shown)} features can be told from noise: with this many voters and this epsilon, the "
            "release does not show what the crowd prefers."
        ]
    sentences = [f"{len(clear)} of {len(shown)} features can be told from the privacy noise."]
    liked = [r for r in clear if r.lean is Lean.MORE][:3]
    disliked = [r for r in reversed(clear) if r.lean is Lean.LESS][:3]
    if liked:
        sentences.append(f"What speaks most for an alternative: {_listed(liked, places)}.")
    if disliked:
        sentences.append(f"What speaks most against one: {_listed(disliked, places)}.")
    return sentences


def _listed(shown: Sequence[Reading], places: int) -> str:
    return ", ".join(f"“{r.label}” ({signed(r.value, places)})" for r in shown)
