"""What clipped ballots tell of a crowd: the posterior, by importance sampling.

A ballot of many records says on which side a voter is, and hardly how far: beyond a small preference the clipped means
no longer grow. There the most probable preference is the least that explains what was seen, and a normal law around it
knows nothing of larger ones. So crowds are drawn: the lengths of ballots, how much voters differ, and the preference b,
of which the size of margins is as uncertain as ``margin_deviations`` says. Each counts by how likely it makes what was
seen.

Preferences are drawn in rounds. At first axis by axis, from about where they are likely: if a crowd shows S erf(a t) of
t along an axis, with the slope at zero and the limit S of large preferences, prior times likelihood is a density on a
line, of which quantiles are taken in any order (Latin hypercube). Later from a normal law with the mean and a multiple
of the covariance that all crowds so far give, at lengths and disagreements as probable as these found them. All rounds
count together: a crowd weighs its prior times the likelihood of what it shows, over the density of all that was drawn
(Veach and Guibas 1995). There are more rounds the more is known, until enough crowds count.

A release states probabilities from a mean and a covariance. Where the size of a preference may be off by factors, its
moments are not those: of a margin that is 1 or 4 they would state 93 %, and the two state 92 %, but of one that is 2
or 8, 93 % where it is 99 %. So the mean, and the covariance apart by what goes along with the size and what does not,
are multiplied by the three numbers that come nearest to what all crowds state of the study's own dilemmas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import erf, ndtr, ndtri

from crowdveil.arrays import FloatArray
from crowdveil.estimation.clipped_ballots import CorrectedBallots
from crowdveil.estimation.disagreement import pooled_probit
from crowdveil.estimation.prior import margin_deviations

_CROWDS = 320
"""Drawn in a round."""
_ROUNDS = 8
"""At most, and two at least."""
_ENOUGH = 150.0
"""Effective crowds after which no more are drawn."""
_LINE = 161
"""Points of a line."""
_FAR = 4.0
"""Deviations of the prior that a line reaches."""
_TEMPER = 1.5
"""Crowds are drawn as if variances were so many times as large, lest likely ones are drawn too rarely."""
_FLOOR = 1e-3
"""Part of the prior that is mixed into what is drawn from."""
_ANYWHERE = 0.25
"""Part of a later round that is spread evenly over lengths and disagreements."""
_SMALL, _LARGE = 0.05, 4.0
"""Preferences that slopes and limits are taken from."""
_LEAST = 1e-6
_STATED_OF = 400
"""Dilemmas of which probabilities are compared."""
_FIT_ROUNDS = 12
_MOST = 1.0
"""Logarithm of the largest of the three numbers; it is the least if negative."""
_RIDGE = 1e-5
_SEED = 20_190_609


@dataclass(frozen=True)
class LikelyCrowds:
    """The posterior of a crowd."""

    common: FloatArray
    """Mean of b."""
    mean: FloatArray
    """Of the pooled probit: with the covariance, what states the crowds' probabilities."""
    covariance: FloatArray
    effective: float
    """As many crowds, all counting the same, would tell as much."""


def likely_crowds(
    ballots: CorrectedBallots,
    lengths: Sequence[tuple[float, float]],
    taus: Sequence[float],
    observed: FloatArray,
    variances: FloatArray,
) -> LikelyCrowds:
    """Weigh crowds by the clipped means that were seen, with errors of these variances.

    ``lengths`` are told ones with their probabilities; disagreements ``taus`` are each as probable as the next.
    """
    drawn = _Crowds(ballots, lengths, taus, observed, variances)
    effective = 0.0
    for number in range(_ROUNDS):
        drawn.draw(number)
        weights = drawn.weights()
        effective = 1 / float(weights @ weights)
        if number > 0 and effective >= _ENOUGH:
            break
    pooled = np.empty_like(drawn.every)
    for place, tau in enumerate(taus):
        rows = drawn.cells % len(taus) == place
        middle = weights[rows] @ drawn.every[rows] / max(float(weights[rows].sum()), np.finfo(float).tiny)
        at_middle, carried = pooled_probit(ballots.dilemmas, middle, tau)
        pooled[rows] = at_middle + (drawn.every[rows] - middle) @ carried.T
    mean, covariance = _stating_the_same(ballots.dilemmas[:_STATED_OF], pooled, weights)
    return LikelyCrowds(weights @ drawn.every, mean, covariance, effective)


def _stating_the_same(dilemmas: FloatArray, pooled: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a mean and a covariance that state what weighted probits (rows) do, by Gauss and Newton's method.

    Stated of x is Phi(a m . x / sqrt(1 + c x'Cx + s x'Sx)), with the mean m and the covariance C + S, of which S goes
    along with the size: it is what the part along m explains.
    """
    mean = weights @ pooled
    covariance = ((pooled - mean).T * weights) @ (pooled - mean)
    along = covariance @ mean
    explained = float(mean @ along)
    if not explained > 0:
        return mean, covariance
    with_size = np.outer(along, along) / explained
    across = covariance - with_size
    stated = np.clip(ndtr(dilemmas @ pooled.T) @ weights, _LEAST, 1 - _LEAST)
    margins = dilemmas @ mean
    parts = np.stack([((dilemmas @ part) * dilemmas).sum(axis=1) for part in (across, with_size)])
    logs = np.zeros(3)
    for _ in range(_FIT_ROUNDS):
        size, *multiples = np.exp(logs).tolist()
        spread = 1 + np.array(multiples) @ parts
        found = size * margins / np.sqrt(spread)
        density = np.exp(-0.5 * found**2) / math.sqrt(2 * math.pi)
        slopes = found * np.stack([np.ones_like(found), *(-0.5 * np.array(multiples)[:, None] * parts / spread)])
        weighted = slopes * (density**2 / (stated * (1 - stated)))
        miss = (stated - ndtr(found)) / np.maximum(density, _LEAST)
        # A little of a ridge, where there is nothing to tell the numbers apart.
        step = np.linalg.solve(weighted @ slopes.T + _RIDGE * len(found) * np.eye(3), weighted @ miss)
        logs = np.clip(logs + step, -_MOST, _MOST)
    size, more, along_with = np.exp(logs).tolist()
    return size * mean, np.asarray(more * across + along_with * with_size, np.float64)


class _Crowds:
    """Crowds that were drawn so far: each with a length and a disagreement, of which all pairs are cells."""

    def __init__(
        self,
        ballots: CorrectedBallots,
        lengths: Sequence[tuple[float, float]],
        taus: Sequence[float],
        observed: FloatArray,
        variances: FloatArray,
    ) -> None:
        self._ballots, self._observed, self._variances = ballots, observed, variances
        k = len(observed)
        self._sizes = margin_deviations(k)
        self._of_cell = [(told, tau) for told, _ in lengths for tau in taus]
        self._log_prior = np.log(np.repeat([probability / len(taus) for _, probability in lengths], len(taus)))
        self._lines = [_Lines.at(ballots, told, taus[0], self._sizes, observed, variances) for told, _ in lengths]
        self._taus = len(taus)
        self._laws: list[tuple[FloatArray, _Normal]] = []
        """Of each later round, how many crowds it drew in each cell, and from what."""
        self._at_first = 2 * -(-_CROWDS // (2 * len(self._of_cell)))
        self.every = np.empty((0, k))
        """Preferences, a row each."""
        self.cells = np.empty(0, np.int64)
        self._log_likelihood = np.empty(0)

    def draw(self, number: int) -> None:
        """Draw a round of crowds, from lines at first and then from a normal law. Opposite ones are in one cell."""
        k, count = self.every.shape[1], len(self._of_cell)
        if number == 0:
            cells = np.repeat(np.arange(count), self._at_first)
            shares = _shares(number, len(cells), k)
            crowds = np.empty_like(shares)
            for place, line in enumerate(self._lines):
                here = cells // self._taus == place
                crowds[here] = line.quantiles(shares[here])
        else:
            weights = self.weights()
            law = _Normal.of(self.every, _flattened(weights, 4 * k))
            chances = (1 - _ANYWHERE) * np.bincount(self.cells, weights, count) + _ANYWHERE / count
            pairs = (np.arange(_CROWDS // 2) + 0.5) / (_CROWDS // 2) * chances.sum()
            cells = np.repeat(np.searchsorted(np.cumsum(chances), pairs), 2)
            self._laws.append((np.bincount(cells, minlength=count).astype(np.float64), law))
            crowds = law.quantiles(_shares(number, _CROWDS, k))
        shown = np.empty_like(crowds)
        for cell in np.unique(cells).tolist():
            rows = cells == cell
            shown[rows] = self._ballots.shown_by(crowds[rows], *self._of_cell[cell])
        surprise = 0.5 * ((self._observed - shown) ** 2 / self._variances).sum(axis=1)
        self.every = np.concatenate([self.every, crowds])
        self.cells = np.concatenate([self.cells, cells])
        self._log_likelihood = np.concatenate([self._log_likelihood, -surprise])

    def weights(self) -> FloatArray:
        """Return how much each crowd counts."""
        first = np.empty(len(self.every))
        for place, line in enumerate(self._lines):
            rows = self.cells // self._taus == place
            first[rows] = line.log_density(self.every[rows])
        densities = [math.log(self._at_first) + first]
        with np.errstate(divide="ignore"):
            densities += [np.log(counts)[self.cells] + law.log_density(self.every) for counts, law in self._laws]
        prior = _log_mean(
            [_log_normal(self.every / size) - self.every.shape[1] * math.log(size) for size in self._sizes]
        )
        log = prior + self._log_prior[self.cells] + self._log_likelihood - np.logaddexp.reduce(densities, axis=0)
        weights = np.exp(log - log.max())
        return np.asarray(weights / weights.sum(), np.float64)


@dataclass(frozen=True)
class _Lines:
    """Densities along each axis of about where preferences are likely, for each size of margins and an axis a row."""

    ends: FloatArray
    """Where the line of a size ends."""
    densities: FloatArray
    """Of steps of a line: size, axis, step."""

    @classmethod
    def at(
        cls,
        ballots: CorrectedBallots,
        told: float,
        tau: float,
        sizes: Sequence[float],
        observed: FloatArray,
        variances: FloatArray,
    ) -> _Lines:
        """Find them for ballots of a told length."""
        k = len(observed)
        indifferent, *probes = ballots.shown_by(
            np.vstack([np.zeros(k), _SMALL * np.eye(k), _LARGE * np.eye(k)]), told, tau
        )
        slopes, limits = np.diag(probes[:k] - indifferent) / _SMALL, np.diag(probes[k:] - indifferent)
        limits = np.maximum(limits, _LEAST)
        steps = np.linspace(-_FAR, _FAR, _LINE)
        prior = np.exp(-0.5 * steps**2)
        prior /= prior.sum()
        lines = np.multiply.outer(np.array(sizes), steps)
        bent = (slopes * math.sqrt(math.pi) / (2 * limits))[:, None]
        shows = limits[:, None] * erf(lines[:, None, :] * bent)
        log = -((observed[:, None] - indifferent[:, None] - shows) ** 2) / (2 * _TEMPER * variances[:, None])
        density = prior * np.exp(log - log.max(axis=2, keepdims=True))
        density = (1 - _FLOOR) * density / density.sum(axis=2, keepdims=True) + _FLOOR * prior
        return cls(_FAR * np.array(sizes), density)

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """Return preferences at these quantiles, of each size in turn."""
        found = np.empty_like(shares)
        for place, end in enumerate(self.ends.tolist()):
            rows = np.arange(len(shares)) // 2 % len(self.ends) == place
            for axis, density in enumerate(self.densities[place]):
                passed = np.cumsum(density)
                wanted = shares[rows, axis] * passed[-1]
                step = np.minimum(np.searchsorted(passed, wanted, side="right"), _LINE - 1)
                inside = 1 - (passed[step] - wanted) / density[step]
                found[rows, axis] = ((step + inside - 0.5) * 2 / (_LINE - 1) - 1) * end
        return found

    def log_density(self, crowds: FloatArray) -> FloatArray:
        """Return the logarithm of the density of all sizes together."""
        logs = []
        for end, densities in zip(self.ends.tolist(), self.densities, strict=True):
            width = 2 * end / (_LINE - 1)
            step = np.rint((crowds / end + 1) * (_LINE - 1) / 2).astype(np.int64)
            inside = ((step >= 0) & (step < _LINE)).all(axis=1)
            near = np.clip(step, 0, _LINE - 1)
            log = np.log(densities[np.arange(crowds.shape[1]), near] / width).sum(axis=1)
            logs.append(np.where(inside, log, -np.inf))
        return _log_mean(logs)


@dataclass(frozen=True)
class _Normal:
    """A normal law to draw preferences from."""

    mean: FloatArray
    root: FloatArray
    """Of the covariance."""

    @classmethod
    def of(cls, crowds: FloatArray, weights: FloatArray) -> _Normal:
        """Return the law with the mean of weighted crowds and a multiple of their covariance."""
        mean = weights @ crowds
        covariance = _TEMPER * ((crowds - mean).T * weights) @ (crowds - mean)
        root = np.linalg.cholesky(covariance + _LEAST * np.eye(len(mean)))
        return cls(mean, np.asarray(root, np.float64))

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """Return preferences at these quantiles."""
        return np.asarray(self.mean + ndtri(shares) @ self.root.T, np.float64)

    def log_density(self, crowds: FloatArray) -> FloatArray:
        """Return the logarithm of the density."""
        scaled = np.asarray(np.linalg.solve(self.root, (crowds - self.mean).T).T, np.float64)
        return _log_normal(scaled) - float(np.log(np.diag(self.root)).sum())


def _log_normal(crowds: FloatArray) -> FloatArray:
    return np.asarray(-0.5 * np.square(crowds).sum(axis=1) - crowds.shape[1] / 2 * math.log(2 * math.pi), np.float64)


def _log_mean(logs: Sequence[FloatArray]) -> FloatArray:
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - math.log(len(logs)), np.float64)


def _flattened(weights: FloatArray, least: int) -> FloatArray:
    """Return weights made more even, until as many count as are needed to tell a covariance."""
    power = 1.0
    while 1 / float(weights @ weights) < least and power > _LEAST:
        power /= 2
        weights = np.sqrt(weights)
        weights = weights / weights.sum()
    return weights


@lru_cache(maxsize=32)
def _shares(number: int, crowds: int, axes: int) -> FloatArray:
    """Return numbers in (0, 1), evenly spread along each axis and in any order; every other row has opposites."""
    rng = np.random.default_rng([_SEED, number])
    half = -(-crowds // 2)
    order = rng.permuted(np.tile(np.arange(half), (axes, 1)), axis=1)
    spread = (order + rng.random((axes, half))).T / half
    return np.asarray(np.stack([spread, 1 - spread], axis=1).reshape(-1, axes)[:crowds], np.float64)
