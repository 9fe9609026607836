"""Voters' answers about themselves: randomised response over the options of each question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import IntArray
from crowdveil.estimation.ratios import Ratio
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.source import Noise


class AboutYou:
    """Keep the true one of k options with odds of e^epsilon to one against each other (k-ary randomised response).

    Theorem. What is reported of a question is epsilon-differentially private for the voter's answer to it.

    Proof. The true option is reported with probability e^epsilon / (e^epsilon + k - 1), each other one with probability
    1 / (e^epsilon + k - 1). So for two answers, the probabilities of an option differ by a factor of e^epsilon at most.

    Each question has this epsilon by itself, beside that of the report on dilemmas. Whether a question was answered at
    all is not hidden.
    """

    name = "about-you"
    title = "Randomised response on what a voter says about herself"
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


def keep_odds(options: int) -> Odds:
    """Return the odds of the true option: 1 / (1 + (k - 1) q), with q = e^-epsilon."""
    return Odds(1, 0, 1, options - 1)


@dataclass(frozen=True)
class OptionShare:
    """The share of people who hold an option, with its 95 % interval."""

    share: float
    low: float
    high: float


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
