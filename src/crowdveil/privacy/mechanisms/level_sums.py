"""Adds up reports by levels: voters of one level count the same.

How much a report counts depends on all voters' levels (their epsilons, and what else is public about a report), which
are known only when the last report has come. So sums are kept for each level: memory for a level, not for a voter.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeVar

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.privacy.mechanisms.influence import influence
from crowdveil.privacy.noise.distribution import Spread

R = TypeVar("R")


@dataclass(frozen=True)
class LevelSums:
    """Sums of reports (vectors) and of their squares (matrices), by level."""

    _sums: dict[tuple[int, ...], tuple[int, FloatArray, FloatArray]] = field(default_factory=dict)

    @classmethod
    def of(cls, levels: IntArray, values: FloatArray) -> LevelSums:
        """Add up some reports, a row each: what they hold, and their levels (one number or more)."""
        different, place = np.unique(levels.reshape(len(values), -1), axis=0, return_inverse=True)
        order = np.argsort(place.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(place.reshape(-1)))[:-1]
        rows_of = zip(map(tuple, different.tolist()), np.split(values[order], ends), strict=True)
        # Not a matrix product: it would start threads of its own beside those that work on other pieces.
        squares = "vj,vk->jk"
        return cls({level: (len(rows), rows.sum(axis=0), np.einsum(squares, rows, rows)) for level, rows in rows_of})

    def __add__(self, other: LevelSums) -> LevelSums:
        both = dict(self._sums)
        for level, (count, total, square) in other._sums.items():
            here = both.get(level, (0, 0.0, 0.0))
            both[level] = (here[0] + count, here[1] + total, here[2] + square)
        return LevelSums(both)

    @property
    def levels(self) -> IntArray:
        """The levels, a row each, in order."""
        return np.array(sorted(self._sums), np.int64)

    @property
    def counts(self) -> IntArray:
        """How many reports there are of each level."""
        return np.array([self._sums[level][0] for level in sorted(self._sums)], np.int64)

    def weights(self, variances: FloatArray, equal_votes: bool) -> FloatArray:
        """Return how much a report of each level counts, given its variance (``influence``)."""
        each = influence(np.repeat(variances, self.counts), equal_votes)
        return np.asarray(each[np.cumsum(self.counts) - 1])

    def mean(self, weights: FloatArray, scales: FloatArray | float = 1.0) -> FloatArray:
        """Return the weighted mean of all reports, those of a level multiplied by its scale."""
        totals = np.array([self._sums[level][1] for level in sorted(self._sums)])
        return np.asarray((weights * scales) @ totals)

    def spread(self, weights: FloatArray, scales: FloatArray | float = 1.0) -> Spread:
        """Estimate the covariance of that mean from the reports' spread around it (``spread_of``, from sums)."""
        mean, voters = self.mean(weights, scales), int(self.counts.sum())
        covariance = np.zeros((len(mean), len(mean)))
        for level, weight, scale in zip(
            sorted(self._sums), weights, np.broadcast_to(scales, weights.shape), strict=True
        ):
            count, total, square = self._sums[level]
            crossed = scale * np.outer(total, mean)
            covariance += weight**2 * (scale**2 * square - crossed - crossed.T + count * np.outer(mean, mean))
        return Spread(tuple(map(tuple, (covariance * (voters / max(voters - 1, 1))).tolist())))


def all_sums(reports: Iterable[R | LevelSums], sums: Callable[[R], LevelSums]) -> LevelSums:
    """Add up everybody's reports, of which some may be summed already."""
    return reduce(operator.add, (r if isinstance(r, LevelSums) else sums(r) for r in reports), LevelSums())


def unsummed(reports: Iterable[R | LevelSums]) -> list[R]:
    """Return everybody's reports, for what takes all of them at once."""
    kept: list[R] = []
    for report in reports:
        if isinstance(report, LevelSums):
            raise ValueError("these reports were added up, but all of them are needed")
        kept.append(report)
    return kept
