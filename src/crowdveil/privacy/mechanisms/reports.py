"""Reports of devices: their JSON format, and how they are combined into one estimate.

The protocol defines the envelope of a report (format, study, mechanism, epsilon); this module defines the mechanism's
part of it. That part consists of integers that are already private: nothing here sees a record.

A report made with a small epsilon is mostly noise. An unweighted mean (the paper's) is as noisy as its noisiest
reports; weights inversely proportional to each report's known variance minimise the variance. Epsilons are public and
chosen before answering, so the weights cost no privacy. They depend on all voters' levels (their epsilons and other
public properties of a report), which are known only once the last report has arrived. So sums are kept per level:
memory grows with the number of levels, not of voters.

A report with unbounded noise may be any number, so one liar could send a huge one. Two controls limit liars. Reports
that honest devices practically never send are refused (``within_reach``). And, optionally, the most extreme share of
the reports at each end of each coordinate is pulled in to the nearest of the others (a Winsorised mean). Honest noise
is symmetric, so this leaves the mean unbiased, but changes its variance (``Winsorisation``).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol, TypeVar

import numba
import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.errors import Reason, Refusal
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.noise.distribution import EmpiricalNormal
from crowdveil.privacy.noise.source import Noise
from crowdveil.study.study import Study

R = TypeVar("R")

LARGEST = 2**63 - 1
"""Largest number in a report: a signed 64-bit integer."""
PUBLIC_COLUMNS = 2
"""Number of public columns at the start of a report's row (``rows``), as the audit reads it."""

_KEYS = 2**62


class WireFormat(Protocol[R]):
    """The serialisation of a mechanism's reports."""

    @property
    def fields(self) -> frozenset[str]:
        """The fields of a report besides those of the envelope."""

    def write(self, reports: R) -> Iterable[dict[str, Any]]:
        """Return the fields of each voter's report."""

    def check(self, body: Mapping[str, Any], study: Study) -> None:
        """Refuse a report whose fields do not have the shape that this study requires."""

    def read(self, bodies: Sequence[Mapping[str, Any]], study: Study) -> R:
        """Gather checked reports."""


@dataclass(frozen=True)
class Reports:
    """The reports of most mechanisms: one row of integers per voter, and its epsilon."""

    epsilons: Epsilons
    values: IntArray

    def rows(self) -> IntArray:
        """Return all that leaves the devices, one row per voter: public columns, a mask of the values, the values."""
        none = np.zeros(len(self.values), np.int64)
        return np.column_stack([self.epsilons.micro, none, np.ones_like(self.values), self.values])


@dataclass(frozen=True)
class IntegerFormat:
    """The wire format of ``Reports``: one field with the row."""

    length: Callable[[int], int]
    """Length of the row, as a function of the number of features."""
    largest: int = LARGEST

    fields = frozenset({"values"})

    def write(self, reports: Reports) -> Iterable[dict[str, Any]]:
        """Return each voter's row."""
        return ({"values": values} for values in reports.values.tolist())

    def check(self, body: Mapping[str, Any], study: Study) -> None:
        """Refuse a row of the wrong length, or with anything but integers in range."""
        check_integers("values", body["values"], self.length(study.dimension), self.largest)

    def read(self, bodies: Sequence[Mapping[str, Any]], study: Study) -> Reports:
        """Gather the rows."""
        return Reports(epsilons_of(bodies), np.array([body["values"] for body in bodies], np.int64))


def check_integers(name: str, given: Any, length: int | None, most: int, least: int | None = None) -> None:
    """Refuse anything but a list of ``length`` integers from ``least`` (default: -``most``) to ``most``."""
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
    """Return a uniformly random permutation of 0..places-1 in every row, to choose what to report.

    Sorting independent keys gives each order with the same probability if no two keys are equal. A row with equal keys
    is drawn again, so the distribution is exact.
    """
    keys = noise.uniform(_KEYS, rows, places)
    while True:
        ordered = np.sort(keys, axis=1)
        tied = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        if len(tied) == 0:
            return np.argsort(keys, axis=1)
        keys[tied] = noise.uniform(_KEYS, len(tied), places)


HONEST_EXCESS = 1e-12
"""Maximum probability, per number in a report, of refusing an honest report."""
MOST_INFLUENCE = 10.0
"""Maximum weight of a voter, relative to the average: a huge epsilon cannot buy more influence."""


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
    """Factors of the parts of a mixture; they may be above 1 or below 0. Empty if nothing is mixed."""

    @classmethod
    def of(cls, levels: IntArray, values: FloatArray) -> LevelSums:
        """Sum reports (rows of ``values``) by their levels (one number or more each)."""
        each = levels.reshape(len(values), -1)
        order = np.lexsort(each.T[::-1])
        ordered = each[order]
        begins = np.flatnonzero(np.diff(ordered, axis=0, prepend=ordered[:1] - 1).any(axis=1))
        rows_of = zip(map(tuple, ordered[begins].tolist()), np.split(values[order], begins[1:]), strict=True)
        return cls({level: (len(rows), rows.sum(axis=0), _sum_of_squares(rows)) for level, rows in rows_of})

    @classmethod
    def mixed(cls, parts: Sequence[LevelSums], factors: Sequence[float]) -> LevelSums:
        """Return sums in which the reports of each part are multiplied by a factor. Levels stay those of the parts."""
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
        """Return the sums of levels that begin with this number, such as reports of one kind."""
        return LevelSums({level: sums for level, sums in self._sums.items() if level[0] == first}, self._factors)

    @property
    def levels(self) -> IntArray:
        """The sorted levels, one per row."""
        levels = np.array(sorted(self._sums), np.int64)
        return levels[:, :-1] if self._factors else levels

    @property
    def is_mixed(self) -> bool:
        """Whether several sums are mixed."""
        return bool(self._factors)

    @property
    def mixture(self) -> FloatArray:
        """The factor of each level's reports, apart from their weights; 1 if nothing is mixed."""
        if not self._factors:
            return np.ones(len(self._sums))
        return np.array([self._factors[level[-1]] for level in sorted(self._sums)])

    @property
    def voters(self) -> int:
        """The number of reports, or the effective number of a mixture."""
        counted = self.counts @ self.mixture
        return max(round(float(counted**2 / (self.counts @ self.mixture**2))), 1)

    @property
    def counts(self) -> IntArray:
        """The number of reports of each level."""
        return np.array([self._sums[level][0] for level in sorted(self._sums)], np.int64)

    def weights(self, variances: FloatArray, equal_votes: bool) -> FloatArray:
        """Return the weight of a report of each level, given its variance (``influence``)."""
        each = influence(np.repeat(variances, self.counts), equal_votes)
        return np.asarray(each[np.cumsum(self.counts) - 1] * self.mixture)

    def mean(self, weights: FloatArray, scales: FloatArray | float = 1.0) -> FloatArray:
        """Return the weighted mean of all reports, after multiplying those of each level by its scale."""
        totals = np.array([self._sums[level][1] for level in sorted(self._sums)])
        return np.asarray((weights * scales) @ totals)

    def squares(self, weights: FloatArray) -> FloatArray:
        """Return the weighted sum of the outer products of all reports with themselves."""
        squares = np.array([self._sums[level][2] for level in sorted(self._sums)])
        return np.asarray(np.tensordot(weights**2, squares, axes=1))

    def spread(self, weights: FloatArray, scales: FloatArray | float = 1.0) -> EmpiricalNormal:
        """Estimate the covariance of ``mean`` from the reports' spread around it (``empirical_normal``, from sums)."""
        mean = self.mean(weights, scales)
        voters = int(self.counts.sum())
        covariance = np.zeros((len(mean), len(mean)))
        for level, weight, scale in zip(
            sorted(self._sums), weights, np.broadcast_to(scales, weights.shape), strict=True
        ):
            count, total, square = self._sums[level]
            crossed = scale * np.outer(total, mean)
            covariance += weight**2 * (scale**2 * square - crossed - crossed.T + count * np.outer(mean, mean))
        return EmpiricalNormal(tuple(map(tuple, (covariance * (voters / max(voters - 1, 1))).tolist())))


def _sum_of_squares(rows: FloatArray) -> FloatArray:
    """Sum the outer products of rows with themselves.

    Not by a matrix product, which would start threads of its own beside those of other batches, and would multiply
    the zeros of reports that hold a few numbers among many.
    """
    result = np.zeros((rows.shape[1], rows.shape[1]))
    _add_squares(rows, result)
    return result


@numba.njit(cache=True, nogil=True)
def _add_squares(rows: Any, result: Any) -> None:
    for i in range(len(rows)):
        for j in range(rows.shape[1]):
            if rows[i, j] != 0:
                for k in range(rows.shape[1]):
                    result[j, k] += rows[i, j] * rows[i, k]


def all_sums(reports: Iterable[R | LevelSums], sums: Callable[[R], LevelSums]) -> LevelSums:
    """Sum all reports, some of which may be summed already."""
    return reduce(operator.add, (r if isinstance(r, LevelSums) else sums(r) for r in reports), LevelSums())


def unsummed(reports: Iterable[R | LevelSums]) -> list[R]:
    """Return all reports, for a computation that needs each of them."""
    kept: list[R] = []
    for report in reports:
        if isinstance(report, LevelSums):
            raise ValueError("these reports were added up, but all of them are needed")
        kept.append(report)
    return kept


def within_reach(values: IntArray, largest: IntArray, sensitivity: int, epsilons: Epsilons, terms: int) -> BoolArray:
    """Return for each report (row) whether an honest device could have made its numbers.

    ``largest`` bounds each voter's exact numbers. The noise is Laplace (``terms`` = 1) or a coordinate of cube noise,
    whose radius is a sum of ``terms`` = m + 1 exponentials. In units of sensitivity / epsilon, such a sum exceeds x
    with probability at most (e x / terms)^terms e^-x (Chernoff); this is solved for x.
    """
    x = float(terms)
    for _ in range(100):
        x = -math.log(HONEST_EXCESS) + terms * (1 + math.log(x / terms))
    reach = largest + np.ceil(x * sensitivity * 1e6 / epsilons.micro).astype(np.int64)
    return np.asarray((np.abs(values) <= reach[:, None]).all(axis=1))


@dataclass(frozen=True)
class Winsorisation:
    """Winsorised numbers, for a mean that few liars can move."""

    values: FloatArray
    pseudo_values: FloatArray
    """Numbers whose spread gives the variance of that mean: one beyond an end moves the end itself, by share / density.

    (The influence function of a Winsorised mean, Huber 1981, section 3.3.) The density is estimated from the distance
    between the quantiles at 0.5 and at 1.5 times the share.
    """


def winsorised(estimates: FloatArray, weights: FloatArray, reported: BoolArray, share: float) -> Winsorisation:
    """Winsorise the lowest and highest ``share`` (by weight) of the reported numbers of each coordinate."""
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
