"""Crowds of all kinds, simulated from what is public of a study: what the constants of mechanisms are chosen on.

A population has a preference from the prior (``estimation.prior``), in the directions that factors leave out, too;
voters who differ by a size of their own along each axis; people who sometimes answer at random; ballots of one length,
or of several; and dilemmas of the study's generator, or others: of those that differ along some axes, most were not
asked.
How much they disagree and answer at random was widened after a look at the public Moral Machine file.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from populations import probit_of
from scipy.special import ndtr, xlogy

from crowdveil.ballots.ballots import Ballots
from crowdveil.decision import stated_margins
from crowdveil.estimation.design import public_design
from crowdveil.estimation.prior import prior_deviation, rest_deviation
from crowdveil.releases import Release
from crowdveil.study.drawing import draw_dilemmas
from crowdveil.study.study import Study

LENGTHS = ((1,), (1, 2, 3, 4), (4,), (5, 9, 11, 13), (13,))
_JUDGED = 4000


@dataclass(frozen=True)
class VariedPopulation:
    """Voters of one of many populations."""

    study: Study
    preference: np.ndarray
    """Along every direction, those of the factors first."""
    spread: np.ndarray
    """How much voters differ, in the same way."""
    lapse: float
    """The share of answers that are given at random."""
    lengths: tuple[int, ...]
    asked: np.ndarray
    """The share of dilemmas that were asked of those that differ along each axis of a factor."""

    def dilemmas(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Draw dilemmas (differences in model units), in no order."""
        kept: list[np.ndarray] = []
        while sum(map(len, kept)) < count:
            left, right = draw_dilemmas(self.study, -(-2 * count // self.study.drawing.dilemmas), rng)
            drawn = (left - right).astype(np.float64) / self.study.units
            differs = np.abs(drawn @ public_design(self.study).basis) > 1
            kept.append(drawn[rng.random(len(drawn)) < np.where(differs, self.asked, 1.0).prod(axis=1)])
        return np.concatenate(kept)[:count]

    def shares(self, dilemmas: np.ndarray) -> np.ndarray:
        """Return the share of answers for the first side of each dilemma."""
        x = dilemmas @ public_design(self.study).whole.basis
        sure = ndtr(x @ self.preference / np.sqrt(1 + (x**2) @ self.spread**2))
        return (1 - self.lapse) * sure + self.lapse / 2

    def crowd(self, voters: int, rng: np.random.Generator) -> Ballots:
        """Draw voters, with dilemmas and choices of their own."""
        counts = rng.choice(self.lengths, voters)
        shown = self.dilemmas(int(counts.sum()), rng)
        own = np.repeat(rng.normal(self.preference, self.spread, (voters, len(self.preference))), counts, axis=0)
        margins = (shown @ public_design(self.study).whole.basis * own).sum(axis=1)
        margins = np.where(rng.random(len(shown)) < self.lapse, 0.0, margins)
        choices = np.where(margins + rng.standard_normal(len(shown)) > 0, 1, -1)
        return Ballots.from_differences(self.study, np.concatenate([[0], counts.cumsum()]), shown * choices[:, None])

    @cached_property
    def judged(self) -> tuple[np.ndarray, np.ndarray]:
        """Dilemmas such as were asked, and the shares that prefer their first sides."""
        dilemmas = self.dilemmas(_JUDGED, np.random.default_rng(1))
        return dilemmas, self.shares(dilemmas)

    @cached_property
    def value(self) -> np.ndarray:
        """The pooled probit along the axes of the factors, over the population's own dilemmas."""
        dilemmas = self.dilemmas(100_000, np.random.default_rng(2))
        x, shares = dilemmas @ public_design(self.study).basis, self.shares(dilemmas)
        return probit_of(x, shares)

    def loss(self, release: Release) -> float:
        """Return what a release's probabilities lose against the true shares: their divergence, in thousandths."""
        dilemmas, true = self.judged
        stated = np.clip(ndtr(stated_margins(release, dilemmas)), 1e-9, 1 - 1e-9)
        return 1000 * float(np.mean(xlogy(true, true / stated) + xlogy(1 - true, (1 - true) / (1 - stated))))


def varied_population(
    study: Study, rng: np.random.Generator, lengths: tuple[int, ...] | None = None
) -> VariedPopulation:
    """Draw a population; ballots have these lengths, or lengths of its own."""
    design = public_design(study)
    k, left_out = design.directions, design.rest.shape[1]
    deviations = np.concatenate([np.full(k, prior_deviation(k)), np.full(left_out, rest_deviation(left_out))])
    asked = np.ones(k)
    if rng.random() < 0.5:
        asked[rng.permutation(k)[: rng.integers(1, 3)]] = rng.uniform(0.2, 0.6)
    return VariedPopulation(
        study,
        rng.normal(0, deviations) * rng.uniform(0.5, 1.2),
        rng.uniform(0.1, 0.7) * rng.uniform(0.5, 1.5, k + left_out) * np.repeat([1.0, 0.3], [k, left_out]),
        float(rng.choice([0.0, 0.03, 0.1])),
        LENGTHS[rng.integers(len(LENGTHS))] if lengths is None else lengths,
        asked,
    )
