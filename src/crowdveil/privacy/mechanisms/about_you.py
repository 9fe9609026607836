"""Voters' answers about themselves: randomised response over the options of each question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import BoolArray, IntArray
from crowdveil.estimation.ratios import Ratio
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.source import Noise

_TWO_SIDED_95 = 1.959964


class AboutYou:
    """k-ary randomised response: the true option is e^epsilon times as likely to be reported as any other.

    Theorem. The report on a question is epsilon-differentially private for the voter's answer to it.

    Proof. The true option is reported with probability e^epsilon / (e^epsilon + k - 1), each other one with probability
    1 / (e^epsilon + k - 1). So for two answers, the probabilities of an option differ by a factor of at most e^epsilon.

    Numbers in a range and points of a scale are options like any others; the report does not use their order.

    Theorem (several answers). If any number of k options may be ticked, one of the k is drawn uniformly, independently
    of the ticks. The report is that option, and whether it was ticked, by binary randomised response. It is
    epsilon-differentially private for the whole set of ticked options.

    Proof. Let S and T be two sets. An option j is drawn with probability 1 / k under both. Given j, the bit is the true
    one with probability e^epsilon / (e^epsilon + 1). So its probabilities under S and T are equal if both agree on j,
    and differ by a factor of at most e^epsilon if they do not. The same holds for their products with 1 / k.

    One option gets the whole epsilon. Reporting all k with epsilon / k each would be less informative about every
    option as long as epsilon is below 3, for then tanh(epsilon / 2)^2 / k > tanh(epsilon / (2 k))^2 for every k.

    Each question has this epsilon to itself, in addition to that of the report on dilemmas: n answers together cost
    n epsilon. Whether a question was answered at all is not hidden.
    """

    name = "about-you"
    title = "Randomised response on what voters say about themselves"
    words = "coin tosses, by which each voter's device may report another option of a question than the true one"
    paradigms = ()
    papers = ()
    options = ()

    def report(self, truths: IntArray, options: int, epsilons: Epsilons, noise: Noise) -> IntArray:
        """Report an option for each voter, given the true one of so many options, all counted from 0."""
        if options == 1:
            return truths
        kept = noise.tosses(keep_odds(options), epsilons, 1)[:, 0]
        other = noise.uniform(options - 1, len(truths), 1)[:, 0]
        return np.where(kept, truths, other + (other >= truths))

    def report_several(self, ticked: BoolArray, epsilons: Epsilons, noise: Noise) -> tuple[IntArray, BoolArray]:
        """Report one option for each voter and whether it was ticked, given a row of ticks for each."""
        voters, options = ticked.shape
        asked = noise.uniform(options, voters, 1)[:, 0]
        kept = noise.tosses(keep_odds(2), epsilons, 1)[:, 0]
        return asked, ticked[np.arange(voters), asked] == kept


def keep_odds(options: int) -> Odds:
    """Return the odds of the true option: 1 / (1 + (k - 1) q), with q = e^-epsilon."""
    return Odds(1, 0, 1, options - 1)


@dataclass(frozen=True)
class OptionShare:
    """The share of people who hold an option, with its 95 % interval."""

    share: float
    low: float
    high: float


@dataclass(frozen=True)
class MeanAnswer:
    """The mean of a number or of points on a scale, with its 95 % interval."""

    mean: float
    low: float
    high: float


def corrected_mean(levels: Sequence[int], reported: Sequence[int], epsilon: Epsilon | None) -> MeanAnswer | None:
    """Return the mean of the levels that people hold, given how often each was reported; None for fewer than two.

    With g as in ``corrected_shares``, a reported level has the mean g mu + (1 - g) m, where m is the mean of all
    levels: so mu is the line back, and its standard error that of the reports over g.
    """
    values, times = np.array(levels, np.float64), np.array(reported, np.float64)
    total = times.sum()
    if total < 2:
        return None
    gain = 1.0 if epsilon is None else math.expm1(epsilon.value) / (math.exp(epsilon.value) + len(levels) - 1)
    said = float(times @ values) / total
    variance = float(times @ (values - said) ** 2) / (total - 1)
    mean = (said - (1 - gain) * float(values.mean())) / gain
    half = _TWO_SIDED_95 * math.sqrt(variance / total) / gain
    return MeanAnswer(mean, mean - half, mean + half)


def corrected_shares(reported: Sequence[int], epsilon: Epsilon | None) -> list[OptionShare]:
    """Return what shares of people hold each option, given how often each was reported.

    Of N reports with k options, an option that a share p holds is reported by g p + 1 / (e^epsilon + k - 1) of them on
    average, with g = (e^epsilon - 1) / (e^epsilon + k - 1). The share of reports is binomial, so its Wilson interval,
    carried back through this line, covers the coin tosses and the draw of people. Without an epsilon nothing was
    tossed. A share is kept within 0 and 1.
    """
    total = sum(reported)
    options = len(reported)
    if total == 0:
        return [OptionShare(0.0, 0.0, 1.0)] * options
    floor, gain = 0.0, 1.0
    if epsilon is not None:
        spread = math.exp(epsilon.value) + options - 1
        floor, gain = 1 / spread, math.expm1(epsilon.value) / spread
    found = []
    for times in reported:
        low, high = Ratio(2 * times - total, total, 0.0, 0.0, 0.0, 1.0).interval()
        ends = [min(max(((1 + end) / 2 - floor) / gain, 0.0), 1.0) for end in (2 * times / total - 1, low, high)]
        found.append(OptionShare(*ends))
    return found
