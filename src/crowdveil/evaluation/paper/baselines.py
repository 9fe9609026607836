"""No privacy at all: the mean of bounded fits, and Noothigattu et al.'s unbounded estimates where they exist."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from crowdveil.estimation.fit import fit_voters, fit_voters_unbounded
from crowdveil.evaluation.paper.accuracy import on_all_gaussian_pairs
from crowdveil.evaluation.paper.across_epsilons import NO_PRIVACY
from crowdveil.evaluation.paper.crowds import NORM_BOUND, Source
from crowdveil.evaluation.paper.experiment import NO_PRIVACY_AT, rows

UNBOUNDED = "no privacy, no bound"
SEPARABLE = "voters without an unbounded estimate"
OWN = "each voter's estimate against the voter's own preference"


@dataclass(frozen=True)
class Baselines:
    """The same crowds as ``AcrossEpsilons`` has, judged without privacy."""

    source: Source
    voters: int

    @property
    def name(self) -> str:
        """Source and N."""
        return f"no privacy, {self.source.name} N={self.voters}"

    def measure(self, crowds: range) -> pl.DataFrame:
        """Fit with and without a bound; a mean of unbounded estimates is over the voters who have one (NaN: nobody)."""
        drawn = self.source.draw(self.voters, crowds)
        bounded = fit_voters(drawn.ballots, NORM_BOUND, threads=1).values
        free = fit_voters_unbounded(drawn.ballots)
        exists, unbounded = drawn.by_crowd(free.exists), np.where(free.exists[:, None], free.values, 0.0)
        having = np.where(exists.any(axis=1), exists.sum(axis=1), np.nan)[:, None]
        own = drawn.by_crowd(bounded).mean(axis=1)
        society = drawn.by_crowd(unbounded).sum(axis=1) / having
        at = (NO_PRIVACY_AT,)
        tables = rows(crowds, NO_PRIVACY, at, drawn.judge(own[:, None], own))
        tables += rows(crowds, UNBOUNDED, at, drawn.judge(society[:, None], own))
        tables += rows(crowds, UNBOUNDED, at, {SEPARABLE: 1 - exists.mean(axis=1, keepdims=True)})
        if drawn.own_preferences is not None:
            close = drawn.by_crowd(on_all_gaussian_pairs(drawn.own_preferences, bounded))
            tables += rows(crowds, NO_PRIVACY, at, {OWN: close.mean(axis=1, keepdims=True)})
            close = np.where(exists, drawn.by_crowd(on_all_gaussian_pairs(drawn.own_preferences, unbounded)), 0.0)
            tables += rows(crowds, UNBOUNDED, at, {OWN: close.sum(axis=1, keepdims=True) / having})
        return pl.concat(tables)
