"""Scores: the share of pairs decided correctly, how good stated probabilities are, and means with 95 % intervals.

A forecast is a stated probability that a person picks the first side of a dilemma; the choice is +1 for the first side
and -1 for the second. Records in which neither was chosen (0) say nothing about it and are left out. Choices of one
voter resemble each other. So intervals of a forecast's scores treat voters, not choices, as the independent draws (a
sandwich estimate clustered by voter, Student's t with one degree of freedom less than there are voters). No interval
contains what is impossible: the share of choices predicted has Wilson's, which does not shrink to a point where all
were predicted, and the others are cut, which loses nothing because the truth is never in the part cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.crowd_preference import Weighting
from crowdveil.estimation.probit import slopes_and_weights


def sides(pairs: npt.NDArray[Any], learned: FloatArray) -> FloatArray:
    """Return which side of each pair (rows) each learned parameter (rows) chooses: 1, -1, or 0 if indifferent."""
    result: FloatArray = np.sign(pairs @ learned.T)
    return result


def share(chosen: FloatArray, expected: FloatArray | float) -> FloatArray:
    """Return the share of pairs on which each parameter chose the expected side.

    If either is indifferent, the pair counts as half right, as for a coin.
    """
    result: FloatArray = (1 + np.mean(chosen * expected, axis=0)) / 2
    return result


def same_side(pairs: npt.NDArray[Any], truth: FloatArray, learned: FloatArray) -> FloatArray:
    """Return, for each learned parameter (rows), the share of pairs decided as the truth decides them."""
    return share(sides(pairs, learned), sides(pairs, truth[None]))


def on_all_gaussian_pairs(truth: FloatArray, learned: FloatArray) -> FloatArray:
    """Return the limit of ``same_side`` for many Gaussian pairs: 1 - angle / pi.

    A Gaussian difference has a uniformly random direction; it lies between the two hyperplanes with probability
    angle / pi. Parameters are along the last axis. A parameter of length zero decides nothing: one half.
    """
    lengths = np.linalg.norm(truth, axis=-1) * np.linalg.norm(learned, axis=-1)
    product = np.sum(truth * learned, axis=-1)
    cosine = np.divide(product, lengths, out=np.zeros_like(product), where=lengths > 0)
    result: FloatArray = 1 - np.arccos(np.clip(cosine, -1, 1)) / np.pi
    return result


CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate, and where the truth lies with 95 % confidence."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def within(self, least: float, most: float) -> Interval:
        """Cut the interval to what is possible. It contains the truth as often as before."""
        return Interval(self.estimate, max(self.low, least), min(self.high, most))


def half_width(values: FloatArray, confidence: float = CONFIDENCE) -> FloatArray:
    """Return half the width of the interval of the mean over the first axis."""
    crowds = len(values)
    if crowds < 2:
        return np.full(values.shape[1:], np.inf)
    result: FloatArray = stdtrit(crowds - 1, (1 + confidence) / 2) * values.std(axis=0, ddof=1) / np.sqrt(crowds)
    return result


def mean(values: FloatArray, confidence: float = CONFIDENCE) -> Interval:
    """Return the mean over crowds. For differences of two values of the same crowds, it is a paired comparison."""
    estimate, half = float(np.mean(values)), float(half_width(values, confidence))
    return Interval(estimate, estimate - half, estimate + half)


@dataclass(frozen=True)
class ClusteredMean:
    """The mean of values in clusters, each of which is one draw, with its deviation (a sandwich estimate)."""

    estimate: float
    deviation: float
    """Infinite if there is one cluster."""
    clusters: int

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return float(stdtrit(max(self.clusters - 1, 1), (1 + CONFIDENCE) / 2)) * self.deviation

    @property
    def interval(self) -> Interval:
        """The mean with its interval."""
        return Interval(self.estimate, self.estimate - self.half_width, self.estimate + self.half_width)


def clustered_mean(values: FloatArray, clusters: IntArray) -> ClusteredMean:
    """Return the mean of values with these cluster numbers, which may be arbitrary."""
    estimate = float(values.mean())
    _, places = np.unique(clusters, return_inverse=True)
    sums = np.bincount(places, values - estimate)
    if len(sums) == 1:
        return ClusteredMean(estimate, np.inf, 1)
    deviation = float(np.sqrt(sums @ sums * len(sums) / (len(sums) - 1))) / len(values)
    return ClusteredMean(estimate, deviation, len(sums))


def difference(first: FloatArray, second: FloatArray) -> Interval:
    """Return the difference of the means of two independent sets of crowds (Welch)."""
    estimate = float(first.mean() - second.mean())
    parts = [float(values.var(ddof=1)) / len(values) for values in (first, second)]
    if sum(parts) == 0:
        return Interval(estimate, estimate, estimate)
    freedom = sum(parts) ** 2 / sum(p**2 / (len(v) - 1) for p, v in zip(parts, (first, second), strict=True))
    half = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * sum(parts) ** 0.5
    return Interval(estimate, estimate - half, estimate + half)


def ratio(numerator: FloatArray, denominator: FloatArray) -> Interval:
    """Return the ratio of the means of two values of the same crowds (delta method)."""
    bottom = float(denominator.mean())
    estimate = float(numerator.mean()) / bottom
    half = float(half_width(numerator - estimate * denominator)) / bottom
    return Interval(estimate, estimate - half, estimate + half)


_SURE = 2.0**-53
"""Distance kept from a stated 0 or 1, the precision of a double, so that no loss is infinite."""
_SETTLED = 1e-7
"""Newton step after which the remaining error is about its square."""
_MOST_STEPS = 200


@dataclass(frozen=True)
class Bin:
    """A point of the calibration curve: forecasts that stated about the same probability for the side they predict."""

    low: float
    high: float
    stated: float
    """The mean stated probability."""
    right: Interval
    """The share that came true, with Wilson's interval at the effective number of choices."""
    choices: int

    def as_dict(self) -> dict[str, Any]:
        """Return the point as plain data."""
        return {
            "from": self.low,
            "to": self.high,
            "choices": self.choices,
            "stated": self.stated,
            "right": interval_as_dict(self.right),
        }


@dataclass(frozen=True)
class Scores:
    """The scores of some forecasts (see ``Forecasts`` for their meanings)."""

    voters: int
    choices: int
    share_predicted: Interval
    brier: Interval
    log_loss: Interval
    slope: Interval | None
    overstatement: Interval

    def as_dict(self) -> dict[str, Any]:
        """Return the scores as plain data; a bound that is not known is None."""
        means = {name: getattr(self, name) for name in MEASURES}
        plain = {name: None if found is None else interval_as_dict(found) for name, found in means.items()}
        return {"voters": self.voters, "choices": self.choices, **plain}


MEASURES = ("share_predicted", "brier", "log_loss", "slope", "overstatement")


def interval_as_dict(interval: Interval) -> dict[str, float | None]:
    """Return an interval as plain data; a bound that is not known is None."""
    low, high = (bound if np.isfinite(bound) else None for bound in (interval.low, interval.high))
    return {"estimate": interval.estimate, "low": low, "high": high}


@dataclass(frozen=True, eq=False)
class Forecasts:
    """Stated probabilities and choices; make them with ``forecasts``, which checks them."""

    stated: FloatArray
    """The stated probability of the first side."""
    choices: FloatArray
    """+1 or -1."""
    voters: IntArray
    """The voter of each choice, numbered from 0 without gaps."""
    weighting: Weighting

    def __len__(self) -> int:
        return len(self.choices)

    def where(self, kept: BoolArray) -> Forecasts:
        """Return the forecasts where the mask is true; a voter's weight does not depend on how many choices remain."""
        return forecasts(self.stated[kept], self.choices[kept], self.voters[kept], self.weighting)

    @property
    def scores(self) -> Scores:
        """All scores, which are defined one by one below."""
        return Scores(self.voter_count, len(self), *(getattr(self, name) for name in MEASURES))

    @cached_property
    def voter_count(self) -> int:
        """The number of voters behind the choices."""
        return int(self.voters.max()) + 1

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of each choice; they add up to one."""
        if self.weighting == "choices":
            return np.full(len(self), 1 / len(self))
        return 1 / (np.bincount(self.voters)[self.voters] * self.voter_count)

    @property
    def share_predicted(self) -> Interval:
        """The share of choices that went to the likelier side; a stated half is half right, as for a coin."""
        alike = self._right.min() == self._right.max()
        estimate = float(self._right[0] if alike else self.weights @ self._right)
        if self.voter_count == 1:
            return Interval(estimate, 0.0, 1.0)
        freedom = self.voter_count - 1
        by_voter = np.bincount(self.voters, self.weights)
        if alike and estimate != 0.5:
            # All were right, or none: whether voters differ cannot be seen, and each is at least one draw.
            return wilson(estimate, float(1 / (by_voter @ by_voter)), freedom=freedom)
        influences = self.weights * (self._right - estimate)
        # Voters who happen to be right equally often do not tell more than as many independent choices.
        variance = max(_variance(np.bincount(self.voters, influences)), _variance(influences))
        worth = estimate * (1 - estimate) / variance if variance > 0 else np.inf
        return wilson(estimate, worth, freedom=freedom)

    @property
    def brier(self) -> Interval:
        """The mean squared distance of the stated probability from what happened: 0 at best, 1/4 for a coin."""
        return self._mean((self.stated - (self.choices > 0)) ** 2).within(0.0, 1.0)

    @property
    def log_loss(self) -> Interval:
        """The mean of -ln of the probability stated for the chosen side: 0 at best, ln 2 for a coin."""
        return self._mean(-np.log(np.where(self.choices > 0, self.stated, 1 - self.stated))).within(0.0, np.inf)

    @property
    def overstatement(self) -> Interval:
        """The mean probability stated for the predicted side, minus the share that was right: above 0, too sure."""
        return self._mean(self._confidence - self._right).within(-0.5, 1.0)

    @cached_property
    def slope(self) -> Interval | None:
        """The calibration slope b: choices follow Phi(b Phi^-1(stated)). 1 is honest; above 1 is too timid.

        It is the maximum likelihood estimate of a probit regression of the choices on Phi^-1(stated) without intercept.
        There is none if every choice went to the predicted side, or none did, or only one half was ever stated.
        """
        margins = self.choices * ndtri(self.stated)
        if margins.min() >= 0 or margins.max() <= 0:
            return None
        slope = 1.0
        marginal, curvature = self._slope_derivatives(margins, slope)
        for _ in range(_MOST_STEPS):
            step = marginal / curvature
            reached = self._slope_derivatives(margins, slope + step)
            # A Newton step on a concave function may overshoot the maximum to where it is steeper: halve it.
            while abs(reached[0]) > abs(marginal):
                step /= 2
                reached = self._slope_derivatives(margins, slope + step)
            slope += step
            marginal, curvature = reached
            if abs(step) <= _SETTLED * max(1.0, abs(slope)):
                break
        slopes, _ = slopes_and_weights(slope * margins)
        return self._interval(slope, self.weights * margins * slopes / curvature)

    def curve(self, bins: int = 10) -> tuple[Bin, ...]:
        """Sort forecasts into bins of equal width by the probability stated for the predicted side, from 1/2 to 1.

        Empty bins are left out.
        """
        edges = np.linspace(0.5, 1.0, bins + 1)
        places = np.clip(np.searchsorted(edges, self._confidence, "right") - 1, 0, bins - 1)
        found = []
        for place in range(bins):
            inside = places == place
            weights = self.weights[inside]
            if not len(weights):
                continue
            total = weights.sum()
            right = min(1.0, float(weights @ self._right[inside] / total))
            found.append(
                Bin(
                    low=float(edges[place]),
                    high=float(edges[place + 1]),
                    stated=float(weights @ self._confidence[inside] / total),
                    right=wilson(right, float(total**2 / (weights @ weights))),
                    choices=len(weights),
                )
            )
        return tuple(found)

    @cached_property
    def _confidence(self) -> FloatArray:
        return np.maximum(self.stated, 1 - self.stated)

    @cached_property
    def _right(self) -> FloatArray:
        return (1 + np.sign(self.stated - 0.5) * self.choices) / 2

    def _slope_derivatives(self, margins: FloatArray, slope: float) -> tuple[float, float]:
        """Return the first and the negated second derivative of the mean log-likelihood in the slope."""
        slopes, curvatures = slopes_and_weights(slope * margins)
        return float(self.weights @ (slopes * margins)), float(self.weights @ (curvatures * margins**2))

    def _mean(self, values: FloatArray) -> Interval:
        estimate = float(self.weights @ values)
        return self._interval(estimate, self.weights * (values - estimate))

    def _interval(self, estimate: float, influences: FloatArray) -> Interval:
        """Return the interval of an estimate from the influence of each choice."""
        if self.voter_count == 1:
            return Interval(estimate, -np.inf, np.inf)
        deviation = np.sqrt(_variance(np.bincount(self.voters, influences)))
        half = float(stdtrit(self.voter_count - 1, (1 + CONFIDENCE) / 2) * deviation)
        return Interval(estimate, estimate - half, estimate + half)


def _variance(influences: npt.NDArray[Any]) -> float:
    """Return the variance of a sum of independent influences, two or more, that add up to zero."""
    return float(influences @ influences) * len(influences) / (len(influences) - 1)


def forecasts(
    stated: ArrayLike, choices: ArrayLike, voters: ArrayLike | None = None, weighting: Weighting = "voters"
) -> Forecasts:
    """Combine stated probabilities of the first side with the choices (+1, -1; 0, a tie, is left out).

    ``voters`` numbers the voter of each choice, in any way; without it every choice has its own voter.

    >>> honest = forecasts([0.8, 0.8, 0.8, 0.2, 0.8], [1, 1, 1, -1, -1])
    >>> honest.share_predicted.estimate, round(honest.slope.estimate, 9)
    (0.8, 1.0)
    """
    probabilities: FloatArray = np.asarray(stated, np.float64)
    signs: FloatArray = np.asarray(choices, np.float64)
    numbers: Any = np.arange(signs.size) if voters is None else np.asarray(voters)
    if not (probabilities.ndim == 1 and probabilities.shape == signs.shape == numbers.shape):
        raise CrowdveilError(
            f"{probabilities.shape} stated probabilities, {signs.shape} choices and {numbers.shape} voters: "
            "give as many of each, in one dimension"
        )
    if not np.all((probabilities >= 0) & (probabilities <= 1)):
        raise CrowdveilError("some stated probabilities are not numbers from 0 to 1")
    if not np.isin(signs, (-1, 0, 1)).all():
        raise CrowdveilError("a choice is 1 (the first side), -1 (the second) or 0 (neither), and some are not")
    if weighting not in ("voters", "choices"):
        raise CrowdveilError(f"the weighting is {weighting!r}: use 'voters' or 'choices'")
    decided = signs != 0
    if not decided.any():
        raise CrowdveilError("there is no choice to judge a probability by: all are ties, or there are none")
    _, whose = np.unique(numbers[decided], return_inverse=True)
    return Forecasts(
        np.clip(probabilities[decided], _SURE, 1 - _SURE), signs[decided], whose.astype(np.int64), weighting
    )


def wilson(share: float, number: float, confidence: float = CONFIDENCE, freedom: float = np.inf) -> Interval:
    """Return Wilson's score interval for a share of this many independent draws.

    If the number is an estimate, Student's quantile with its degrees of freedom takes the place of the normal one.
    """
    z2 = float(ndtri((1 + confidence) / 2) if np.isinf(freedom) else stdtrit(freedom, (1 + confidence) / 2)) ** 2
    centre = (share + z2 / (2 * number)) / (1 + z2 / number)
    half = float(np.sqrt(z2 / number * (share * (1 - share) + z2 / (4 * number)))) / (1 + z2 / number)
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half))
