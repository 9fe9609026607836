"""Reports of devices: how they travel as JSON, and how they become one estimate.

The envelope of a report (format, study, mechanism, epsilon) is the protocol's; here is what a mechanism puts into it.
It is integers that are private already: nothing in here knows a record.

A report made with a small epsilon is mostly noise. The mean that counts all the same (the paper's) is as noisy as its
noisiest reports; weights inversely proportional to each report's known variance give the least noisy mean. Epsilons
are public and chosen before answering, so the weights cost no privacy. They depend on all voters' levels (their
epsilons, and what else is public about a report), which are known only when the last report has come. So sums are kept
for each level: memory for a level, not for a voter.

A report with unbounded noise may be any number, so one liar could send a huge one. Two controls limit liars: reports
that honest devices practically never send are refused (``within_reach``), and, where asked for, the most extreme share
of the reports at each end of each coordinate is pulled in to where the others end (a Winsorised mean). Honest noise is
symmetric, so pulling in both ends alike leaves the mean where it is; the price is a different variance
(``Winsorisation``).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol, TypeVar

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.errors import Reason, Refusal
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise.distribution import Spread
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study

R = TypeVar("R")

LARGEST = 2**63 - 1
"""Numbers of a report fit into 64 bits, with their sign."""
PUBLIC_COLUMNS = 2
"""Numbers of a report, as the audit lays it out, that are public and come before the others."""

_KEYS = 2**62


class WireFormat(Protocol[R]):
    """The way in which the reports of a mechanism are written, checked for their shape, and read."""

    @property
    def fields(self) -> frozenset[str]:
        """The fields of a report besides those of the envelope."""

    def write(self, reports: R) -> Iterable[dict[str, Any]]:
        """Return the fields of each voter's report."""

    def check(self, body: Mapping[str, Any], study: Study) -> None:
        """Refuse a report whose fields do not have the shape of one of this study."""

    def read(self, bodies: Sequence[Mapping[str, Any]], study: Study) -> R:
        """Gather reports that were checked."""


@dataclass(frozen=True)
class Reports:
    """Reports of most devices: one row of integers a voter, and the epsilon it was made with."""

    epsilons: Epsilons
    values: IntArray

    def rows(self) -> IntArray:
        """Lay out all that leaves, bit for bit, a row a voter: public columns, a mask of the values, the values."""
        none = np.zeros(len(self.values), np.int64)
        return np.column_stack([self.epsilons.micro, none, np.ones_like(self.values), self.values])


@dataclass(frozen=True)
class IntegerRow:
    """The wire format of ``Reports``: the row, in a field."""

    length: Callable[[int], int]
    """Of the row, by the number of features."""
    largest: int = LARGEST

    fields = frozenset({"values"})

    def write(self, reports: Reports) -> Iterable[dict[str, Any]]:
        """Return each voter's row."""
        return ({"values": values} for values in reports.values.tolist())

    def check(self, body: Mapping[str, Any], study: Study) -> None:
        """Refuse a row of another length, or of other than whole numbers in range."""
        check_integers("values", body["values"], self.length(study.dimension), self.largest)

    def read(self, bodies: Sequence[Mapping[str, Any]], study: Study) -> Reports:
        """Gather the rows."""
        return Reports(epsilons_of(bodies), np.array([body["values"] for body in bodies], np.int64))


def check_integers(name: str, given: Any, length: int | None, most: int, least: int | None = None) -> None:
    """Refuse what is not a list of so many whole numbers from ``least`` (or -``most``) to ``most``."""
    if not isinstance(given, list) or any(type(value) is not int for value in given):
        raise Refusal(Reason.MALFORMED, f"{name} must be a list of whole numbers")
    if length is not None and len(given) != length:
        raise Refusal(Reason.WRONG_SIZE, f"{name} has {len(given)} numbers, a report of this study {length}")
    least = -most if least is None else least
    if any(not least <= value <= most for value in given):
        raise Refusal(Reason.OUT_OF_RANGE, f"{name} must be from {least} to {most}")


def epsilons_of(bodies: Sequence[Mapping[str, Any]]) -> Epsilons:
    """Read the epsilons that reports were made with."""
    return Epsilons.of_millionths(body["epsilon_micro"] for body in bodies)


def random_orders(rows: int, places: int, noise: Noise) -> IntArray:
    """Return a uniformly random permutation of 0..places-1 in every row: what to report, drawn without looking.

    Sorting independent keys gives each order with the same probability as long as no two keys are equal; a row with
    equal keys is drawn again, so that the law is exact.
    """
    keys = noise.uniform(_KEYS, rows, places)
    while True:
        ordered = np.sort(keys, axis=1)
        tied = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if len(tied) == 0:
            return np.argsort(keys, axis=1)
        keys[tied] = noise.uniform(_KEYS, len(tied), places)


HONEST_EXCESS = 1e-12
"""An honest report is refused with at most this probability for each of its numbers."""
MOST_INFLUENCE = 10.0
"""No voter counts more than this many times the average: influence cannot be bought with a huge epsilon."""


def influence(variances: FloatArray, equal_votes: bool) -> FloatArray:
    """Return weights that sum to 1: equal, or inverse to the variances but capped.

    The capped weights min(cap, c / variance) minimise the variance of the mean under the cap (water-filling).
    """
    voters = len(variances)
    if equal_votes or voters == 0:
        return np.full(voters, 1 / max(voters, 1))
    cap = min(1.0, MOST_INFLUENCE / voters)
    weights = 1 / variances
    capped = np.zeros(voters, bool)
    while True:
        free = 1 - cap * capped.sum()
        share = np.where(capped, cap, weights * (free / weights[~capped].sum() if not capped.all() else 0.0))
        over = (share > cap * (1 + 1e-12)) & ~capped
        if not over.any():
            return share
        capped |= over


@dataclass(frozen=True)
class LevelSums:
    """Sums of reports (vectors) and of their squares (matrices), by level."""

    _sums: dict[tuple[int, ...], tuple[int, FloatArray, FloatArray]] = field(default_factory=dict)
    _factors: tuple[float, ...] = ()
    """Where several sums are mixed: by how much the reports of each count, above 1 or below 0 too."""

    @classmethod
    def of(cls, levels: IntArray, values: FloatArray) -> LevelSums:
        """Add up some reports, a row each: what they hold, and their levels (one number or more)."""
        different, place = np.unique(levels.reshape(len(values), -1), axis=0, return_inverse=True)
        order = np.argsort(place.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(place.reshape(-1)))[:-1]
        rows_of = zip(map(tuple, different.tolist()), np.split(values[order], ends), strict=True)
        # Not a matrix product: it would start threads of its own beside those that work on other batches.
        squares = "vj,vk->jk"
        return cls({level: (len(rows), rows.sum(axis=0), np.einsum(squares, rows, rows)) for level, rows in rows_of})

    @classmethod
    def mixed(cls, parts: Sequence[LevelSums], factors: Sequence[float]) -> LevelSums:
        """Return sums in which the reports of each part count so many times. They have the levels of the parts."""
        numbered = {(*level, n): sums for n, part in enumerate(parts) for level, sums in part._sums.items()}
        return cls(numbered, tuple(factors))

    def __add__(self, other: LevelSums) -> LevelSums:
        if not (self._sums and other._sums):
            return self if self._sums else other
        both = dict(self._sums)
        for level, (count, total, square) in other._sums.items():
            here = both.get(level, (0, 0.0, 0.0))
            both[level] = (here[0] + count, here[1] + total, here[2] + square)
        return LevelSums(both)

    def only(self, first: int) -> LevelSums:
        """Return the sums of levels that begin with this number: reports of another kind may hold other things."""
        return LevelSums({level: sums for level, sums in self._sums.items() if level[0] == first}, self._factors)

    @property
    def levels(self) -> IntArray:
        """The levels, a row each, in order."""
        levels = np.array(sorted(self._sums), np.int64)
        return levels[:, :-1] if self._factors else levels

    @property
    def is_mixed(self) -> bool:
        """Whether several sums are mixed."""
        return bool(self._factors)

    @property
    def mixture(self) -> FloatArray:
        """By how much the reports of each level count beside their weights: 1 where nothing is mixed."""
        if not self._factors:
            return np.ones(len(self._sums))
        return np.array([self._factors[level[-1]] for level in sorted(self._sums)])

    @property
    def voters(self) -> int:
        """The number of reports; where they are mixed, of how many a mean would vary as much."""
        counted = self.counts @ self.mixture
        return max(round(float(counted**2 / (self.counts @ self.mixture**2))), 1)

    @property
    def counts(self) -> IntArray:
        """The number of reports of each level."""
        return np.array([self._sums[level][0] for level in sorted(self._sums)], np.int64)

    def weights(self, variances: FloatArray, equal_votes: bool) -> FloatArray:
        """Return how much a report of each level counts, given its variance (``influence``)."""
        each = influence(np.repeat(variances, self.counts), equal_votes)
        return np.asarray(each[np.cumsum(self.counts) - 1] * self.mixture)

    def mean(self, weights: FloatArray, scales: FloatArray | float = 1.0) -> FloatArray:
        """Return the weighted mean of all reports, those of a level multiplied by its scale."""
        totals = np.array([self._sums[level][1] for level in sorted(self._sums)])
        return np.asarray((weights * scales) @ totals)

    def squares(self, weights: FloatArray) -> FloatArray:
        """Return the sum over all reports of the outer product of what they hold, weighted."""
        squares = np.array([self._sums[level][2] for level in sorted(self._sums)])
        return np.asarray(np.tensordot(weights**2, squares, axes=1))

    def spread(self, weights: FloatArray, scales: FloatArray | float = 1.0) -> Spread:
        """Estimate the covariance of that mean from the reports' spread around it (``spread_of``, from sums)."""
        mean = self.mean(weights, scales)
        voters = int(self.counts.sum())
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


def within_reach(values: IntArray, largest: IntArray, sensitivity: int, epsilons: Epsilons, terms: int) -> BoolArray:
    """Tell for each report (row) whether an honest device could have made its numbers.

    ``largest`` bounds each voter's exact numbers. The noise is Laplace (``terms`` = 1) or a coordinate of cube noise,
    whose radius is a sum of ``terms`` = m + 1 exponentials; such a sum exceeds x with a probability of at most
    (e x / terms)^terms e^-x, in units of sensitivity / epsilon (Chernoff), which is solved for x.
    """
    x = float(terms)
    for _ in range(100):
        x = -math.log(HONEST_EXCESS) + terms * (1 + math.log(x / terms))
    reach = largest + np.ceil(x * sensitivity * 1e6 / epsilons.micro).astype(np.int64)
    return np.asarray((np.abs(values) <= reach[:, None]).all(axis=1))


@dataclass(frozen=True)
class Winsorisation:
    """Numbers of which the lowest and the highest were pulled in, for a mean that few liars can move."""

    values: FloatArray
    pseudo_values: FloatArray
    """Numbers with the spread of that mean: one beyond an end moves the end itself, by share / density there.

    (The influence function of a Winsorised mean, Huber 1981, section 3.3.) The density is told from the distance
    between the quantiles of half the share and of one and a half.
    """


def winsorised(estimates: FloatArray, weights: FloatArray, reported: BoolArray, share: float) -> Winsorisation:
    """Pull the lowest and highest ``share`` (by weight) of the reported numbers of each coordinate in."""
    values, pseudo_values = estimates.copy(), estimates.copy()
    for k in range(estimates.shape[1]):
        rows = np.flatnonzero(reported[:, k])
        order = rows[np.argsort(estimates[rows, k], kind="stable")]
        mass = np.cumsum(weights[order])
        inner = order[(mass > share * mass[-1:]) & (mass - weights[order] < (1 - share) * mass[-1:])]
        if not len(inner):
            continue
        low, high = estimates[inner[[0, -1]], k]
        middle = (mass - weights[order] / 2) / mass[-1]
        near = np.interp([share / 2, 1.5 * share, 1 - 1.5 * share, 1 - share / 2], middle, estimates[order, k])
        values[rows, k] = np.clip(estimates[rows, k], low, high)
        below, above = estimates[rows, k] < low, estimates[rows, k] > high
        pseudo_values[rows, k] = values[rows, k] - below * (near[1] - near[0]) + above * (near[3] - near[2])
    return Winsorisation(values, pseudo_values)
