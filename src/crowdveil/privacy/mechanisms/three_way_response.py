"""Randomised response among three answers: the dilemmas are public, and each answer may be replaced by another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.design import public_design
from crowdveil.estimation.flipped_choices import FlippedChoices, fit_flipped_choices
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms.about_you import AboutYou
from crowdveil.privacy.mechanisms.aggregation import LevelSums, influence, unsummed
from crowdveil.privacy.mechanisms.indifference import with_threshold
from crowdveil.privacy.mechanisms.mechanism import Estimate, Settings, unknown_along
from crowdveil.privacy.mechanisms.randomised_response import ChoiceReports, RandomisedResponse
from crowdveil.privacy.mechanisms.shares import NoisyShare
from crowdveil.privacy.noise.distribution import Spread
from crowdveil.privacy.noise.source import Noise

ANSWERS = 3


class ThreeWayResponse(RandomisedResponse):
    """Replace each answer (one side, the other, neither) by one of the other two with probability 2 / (e^epsilon + 2).

    Theorem. Where the dilemmas shown are public and only the answers are secret, each voter's report is
    epsilon-differentially private for ALDP.

    Proof. Neighbours differ in one answer. The true one is reported with probability e^epsilon / (e^epsilon + 2), each
    other one with probability 1 / (e^epsilon + 2): for two answers, the probabilities of a report differ by a factor of
    e^epsilon at most. All other reported answers have the same law.

    With q = 1 / (e^epsilon + 2), a report is neither with probability q + (1 - 3 q) s, where s is the share of
    indifferent answers. Completed by a fair coin, it is the one side with probability 1/2 + (1 - 3 q)(g - 1/2), where g
    is that of the completed truth: a choice turned over with probability 3 q / 2. In place of the coin, a report of
    neither counts half for either side.
    """

    title = "Randomised response among three answers to every dilemma, and a threshold beside the probit"
    words = "coin tosses, by which each voter's device replaces some answers by another of the three"
    facts: Mapping[str, str] = {"weighing": "every choice counts the same"}

    def report(self, ballots: Ballots, settings: Settings, epsilons: Epsilons, noise: Noise) -> ChoiceReports:
        """Turn the dilemmas so that their first non-zero entry is positive, and replace some answers."""
        first = (ballots.dilemmas != 0).argmax(axis=1)
        signs = np.where(ballots.dilemmas[np.arange(ballots.records), first] < 0, -1, 1)
        dilemmas = ballots.dilemmas * signs[:, None].astype(ballots.dilemmas.dtype) + 0
        truths = ballots.choices.astype(np.int64) * signs + 1
        said = AboutYou().report(truths, ANSWERS, epsilons.repeat(ballots.counts), noise) - 1
        return ChoiceReports(epsilons, ballots.offsets, dilemmas, said)

    def acceptable(self, reports: ChoiceReports, settings: Settings) -> BoolArray:
        """Refuse what is not an answer."""
        return np.asarray(np.logical_and.reduceat(np.abs(reports.choices) <= 1, reports.offsets[:-1]))

    def aggregate(self, reports: Iterable[ChoiceReports | LevelSums], settings: Settings) -> Estimate:
        """Fit one preference to everybody's completed answers; the share of neither tells the threshold."""
        design = public_design(settings.study)
        batches = unsummed(reports)
        epsilons = Epsilons.joined(batch.epsilons for batch in batches).values
        weights = influence(1 / _right(epsilons) ** 2, settings.equal_votes)
        groups = []
        shares = []
        start = 0
        for batch in batches:
            voters = slice(start, start + len(batch.epsilons))
            groups.append(_completed(batch, design.basis, epsilons[voters], weights[voters]))
            shares.append(_neither(batch, epsilons[voters], weights[voters]))
            start = voters.stop
        fit = fit_flipped_choices(groups)
        carried = design.basis @ fit.noise @ design.basis.T
        estimate = Estimate(
            design.basis @ fit.mean,
            Spread(tuple(map(tuple, carried.tolist()))),
            self.facts,
            unknown_along(
                design,
                mean=fit.mean,
                covariance=fit.covariance,
                center=fit.center,
                sampling=fit.sampling,
                doubt=fit.doubt,
                freedom=max(len(epsilons) - 1, 1),
                records=sum(len(batch.choices) for batch in batches),
            ),
        )
        return with_threshold(estimate, settings, _share(np.concatenate(shares)))


def _right(epsilons: FloatArray) -> FloatArray:
    """Return 1 - 3 q: how much of the truth is left in a report."""
    return np.asarray(1 - 3 / (np.exp(epsilons) + 2), np.float64)


def _completed(batch: ChoiceReports, basis: FloatArray, epsilons: FloatArray, weights: FloatArray) -> FlippedChoices:
    """Put two rows of half the weight, one for either side, in place of each report of neither."""
    neither = batch.choices == 0
    times = np.where(neither, 2, 1)
    place = np.repeat(np.arange(len(times)), times)
    second = np.concatenate([[False], place[1:] == place[:-1]])
    sides = np.where(second, -1, np.where(neither, 1, batch.choices)[place])
    counts = np.array([times[start:stop].sum() for start, stop in pairwise(batch.offsets.tolist())], np.int64)
    return FlippedChoices(
        chosen=(batch.dilemmas @ basis)[place] * sides[:, None],
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        flip=np.repeat((1 - _right(epsilons)) / 2, counts),
        weight=np.repeat(weights, counts) / times[place],
    )


def _neither(batch: ChoiceReports, epsilons: FloatArray, weights: FloatArray) -> FloatArray:
    """Return for each voter the weighted sum of what her reports tell of s, and of their weights."""
    counts = np.diff(batch.offsets)
    said = np.add.reduceat(batch.choices == 0, batch.offsets[:-1], dtype=np.int64)
    right = _right(epsilons)
    told = (said - counts * (1 - right) / 3) / right
    return np.stack([weights * told, weights * counts], axis=1)


def _share(voters: FloatArray) -> NoisyShare:
    """Take the ratio of the sums; its error is told by how voters differ from it."""
    told, counted = voters.sum(axis=0)
    value = float(told / counted)
    residuals = voters[:, 0] - value * voters[:, 1]
    count = len(voters)
    spread = float(residuals @ residuals) * count / max(count - 1, 1) / counted**2
    # Fewer than a handful of voters tell little of how they differ.
    return NoisyShare(value, float(np.sqrt(spread + 1 / (4 * count**2))))
