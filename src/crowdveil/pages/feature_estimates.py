"""A release feature by feature, in the order and with the digits in which it is shown, and its findings in words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import ndtr

from crowdveil.decision import stated_margins, three_shares
from crowdveil.errors import plural
from crowdveil.privacy.guarantee import Place
from crowdveil.privacy.noise.distribution import EmpiricalNormal, Gaussian, LaplaceSum, NoiseDistribution
from crowdveil.privacy.uncertainty import ERROR_BAR
from crowdveil.releases import Release

# Characters that a page must not copy from a file: controls, halves of surrogate pairs (which have no UTF-8), and marks
# that change the direction of all text after them.
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


class PreferenceSign(StrEnum):
    """The sign of the crowd's preference on a feature, as far as it can be determined."""

    MORE = "more"
    LESS = "less"
    UNCLEAR = "unclear"

    @classmethod
    def of(cls, value: float, low: float, high: float) -> PreferenceSign:
        """Return the sign of a value, unless its error bar, from ``low`` to ``high``, reaches zero."""
        if value > 0 and low > 0:
            return cls.MORE
        return cls.LESS if value < 0 and high < 0 else cls.UNCLEAR


@dataclass(frozen=True)
class FeatureEstimate:
    """One feature of a release."""

    label: str
    value: float
    error_bar: float
    """The largest error of the value."""
    interval: tuple[float, float] | None = None
    """The ends of the error bar, which lies around the unshrunk estimate; None for a society, where it lies around the
    value."""
    share: float | None = None
    """Share of voters who pick the alternative with one unit more, all else equal, as decisions state it; None for a
    society."""
    known: bool = True
    """Whether anything is known about the feature: not if the study's dilemmas never differ in it."""

    @property
    def sign(self) -> PreferenceSign:
        """The sign of the value, unless its error bar reaches zero."""
        return PreferenceSign.of(self.value, *self.ends)

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of the error bar."""
        return self.interval or (self.value - self.error_bar, self.value + self.error_bar)

    def bar_text(self, places: int, to: str = " to ") -> str:
        """Format the error bar, if anything is known."""
        if not self.known:
            return "not known"
        if self.interval is None:
            return f"± {self.error_bar:.{places}f}"
        return to.join(signed(end, places) for end in self.interval)


def feature_estimates(release: Release, labels: Iterable[str] | None = None) -> tuple[FeatureEstimate, ...]:
    """Return the features of a release, from the most preferred to the least; ``labels`` are their words."""
    shares: list[float | None] = [None] * release.study.dimension
    steps = np.eye(release.study.dimension)
    if release.indifference is not None:
        shares = [three_shares(release, step)[0] for step in steps]
    elif release.unknown is not None:
        shares = ndtr(stated_margins(release, steps)).tolist()
    found = zip(
        map(one_line, labels or (feature.label for feature in release.study.features)),
        release.parameter.tolist(),
        release.error_bars.tolist(),
        [None] * len(shares) if release.unknown is None else map(tuple, release.intervals.tolist()),
        shares,
        release.features_known.tolist(),
        strict=True,
    )
    return tuple(sorted((FeatureEstimate(*one) for one in found), key=lambda estimate: -estimate.value))


def decimals(shown: Iterable[FeatureEstimate]) -> int:
    """Return how many decimals to show: two digits of the smallest error bar; more would be digits of noise."""
    smallest = min((r.error_bar for r in shown if r.error_bar > 0), default=0.01)
    return min(max(1 - math.floor(math.log10(smallest)), 0), 9)


def signed(value: float, places: int) -> str:
    """Format a number with its sign, and a true minus.

    >>> signed(0.25, 2), signed(-0.25, 2), signed(-0.0001, 2)
    ('+0.25', '−0.25', '0.00')
    """
    text = f"{value:+.{places}f}"
    return text.replace("-", "−") if float(text) else text[1:]


def one_line(text: str) -> str:
    """Make words from a file displayable: on one line, without characters that a page cannot contain."""
    return " ".join(_UNSHOWABLE.sub("\ufffd", " ".join(text.split())).split())


def third_answer_sentences(release: Release) -> list[str]:
    """State how often the crowd would toss a coin, in a study that allows this answer; otherwise return nothing."""
    third = release.indifference
    if third is None:
        return []
    bar = 1.96 * third.share_deviation
    low, share, high = np.clip([third.share - bar, third.share, third.share + bar], 0, 1).tolist()
    return [
        f"In about {share:.0%} of their choices ({low:.0%} to {high:.0%}, with {ERROR_BAR:.0%}) these voters treated "
        f"both sides equally. The threshold tau below which a difference leaves them indifferent is {third.tau:.2f} "
        f"({third.low:.2f} to {third.high:.2f})."
    ]


def reliability_sentences(release: Release) -> list[str]:
    """State how many people answer alike, in a study that asks one dilemma twice; otherwise return nothing."""
    found = release.reliability
    if found is None:
        return []
    return [
        f"Asked one dilemma a second time, with its sides swapped, about {found.share:.0%} of people like these voters "
        f"answer it alike ({found.low:.0%} to {found.high:.0%}, with {ERROR_BAR:.0%}, over noise and the draw of the "
        "voters); tossing a coin each time gives 50%. The second answer counts nowhere else."
    ]


def split_sentences(split: Mapping[str, float], place: Place) -> list[str]:
    """State how a budget, or the reports of devices, are split; return nothing if there is only one part."""
    if len(split) < 2:
        return []
    *first, last = (
        f"{part:g} for the {thing}" if place is Place.CENTRAL else f"{part:.0%} about the {thing}"
        for thing, part in split.items()
    )
    what = "Of epsilon" if place is Place.CENTRAL else "Of the reports"
    return [f"{what}: {', '.join(first)} and {last}."]


def error_bar_sentence(release: Release, features: int) -> str:
    """Explain what the error bars cover and what they do not."""
    if release.unknown is not None:
        return (
            "An error bar is a bound: it covers the noise that privacy added, the draw of the voters from all people "
            "like them, and what clipping and the model may be off by. It holds the value of those people in at least "
            f"{ERROR_BAR:.0%} of cases, unless who votes depends on what they prefer. It lies around what was "
            "measured; where little is known, the value is drawn toward zero."
        )
    covered = (
        "the noise and the differences between voters, as far as the spread of the noisy reports shows them; a bias of "
        "the mechanism is not covered"
        if isinstance(release.noise, EmpiricalNormal)
        else "the noise that privacy added, and nothing else: not how well these voters stand for everybody"
    )
    missing = round((1 - ERROR_BAR) * features)
    expected = f", so expect about {missing} of these {features} to miss" if missing else ""
    return f"An error bar covers {covered}. It misses the truth in {1 - ERROR_BAR:.0%} of cases{expected}."


_NOISE_ONLY = "That is the noise only: the error bars of a crowd's preference cover more, and are known afterwards."


def expected_error_bar_sentence(noise: NoiseDistribution | None, robust: float = 0.0) -> str:
    """State, before a release, how far its noise will reach, as far as that is known."""
    if noise is None:
        return "How wide the error bars are is known only afterwards: the noise goes through an estimate."
    widest = f"± {float(np.max(noise.half_widths(ERROR_BAR))):.3g}"
    sure = f"{100 * ERROR_BAR:g} %"  # as everywhere else on the host's pages
    if isinstance(noise, LaplaceSum | Gaussian) and not robust:
        return f"The noise will move each value by up to {widest}, with {sure}. {_NOISE_ONLY}"
    return (
        f"The noise would move no value by more than about {widest}, with {sure} each, for a crowd that is "
        f"indifferent on the whole and in which everybody answered every dilemma. It can be more. {_NOISE_ONLY}"
    )


def finding_sentences(shown: Sequence[FeatureEstimate], places: int) -> list[str]:
    """Summarise what stands out in a release, and how much of it cannot be told from zero."""
    clear = [r for r in shown if r.sign is not PreferenceSign.UNCLEAR]
    unasked = ", ".join(f"“{r.label}”" for r in shown if not r.known)
    never = [f"Nothing is known about {unasked}: the study’s dilemmas never differ in it."] if unasked else []
    if not clear:
        which = "The only feature cannot" if len(shown) == 1 else f"None of the {len(shown)} features can"
        heeded = "whether the crowd heeds it" if len(shown) == 1 else "which of them the crowd heeds"
        return [
            f"{which} be told from zero: with this many voters and this epsilon, the release does not show {heeded}.",
            *never,
        ]
    sentences = [f"{len(clear)} of {len(shown)} {plural(len(shown), 'feature')} can be told from zero."]
    liked = [r for r in clear if r.sign is PreferenceSign.MORE][:3]
    disliked = [r for r in reversed(clear) if r.sign is PreferenceSign.LESS][:3]
    if liked:
        sentences.append(f"What speaks most for an alternative: {_listed(liked, places)}.")
    if disliked:
        sentences.append(f"What speaks most against one: {_listed(disliked, places)}.")
    return [*sentences, *never]


def _listed(shown: Sequence[FeatureEstimate], places: int) -> str:
    # The mark keeps a number left to right beside a label that is written right to left.
    return ", ".join(f"“{r.label}”\u200e ({signed(r.value, places)})" for r in shown)
