"""The posterior of a crowd given the clipped means of its ballots, by importance sampling.

A ballot of many records shows which side a voter is on, but hardly how strongly: beyond a small preference, the clipped
means saturate. There the posterior mode is the smallest preference that fits the data, and a normal approximation
around it ignores larger ones. So we sample crowds: a ballot length, a disagreement tau, and a preference b whose scale
has the prior of ``margin_deviations``. Each crowd is weighted by its likelihood.

Preferences are sampled in rounds. The first round samples each axis separately. It assumes that a crowd with preference
t along an axis has the clipped mean S erf(a t), where a matches the slope at zero and S the limit for large
preferences. Prior times likelihood is then a density on a line, which we sample by Latin hypercube. Each later round
samples from a normal distribution whose mean is that of all crowds so far and whose covariance is a multiple of theirs,
with lengths and disagreements drawn by their estimated posterior probabilities. All rounds are combined: the weight of
a crowd is prior times likelihood, divided by the density of the mixture of all proposals (Veach and Guibas 1995).
Rounds are added until the effective sample size is large enough, so informative data take more of them.

A release computes probabilities from a mean and a covariance. Where the scale of a preference is uncertain by a factor,
the posterior moments give the wrong ones: for a margin that is 1 or 4 they give 93 %, and the true average is 92 %; for
one that is 2 or 8 they give 93 %, and the true average is 99 %. So we split the covariance into the part explained by
the scale and the rest, and multiply the mean and the two parts by three numbers, fitted to the probabilities that the
sampled crowds give for the study's own dilemmas.
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
from crowdveil.estimation.disagreement import DISAGREEMENT, common_size, pooled_probit, reach
from crowdveil.estimation.prior import FAINTEST, margin_deviations

_CROWDS = 960
"""Crowds drawn in each round."""
_ROUNDS = 8
"""Maximum number of rounds; the minimum is two."""
_ENOUGH = 400.0
"""Effective sample size at which sampling stops."""
_LINE = 161
"""Grid points on each line."""
_FAR = 4.0
"""Half-width of a line, in prior standard deviations."""
_TEMPER = 1.5
"""Factor by which proposals widen the variances, so that no likely crowd is sampled too rarely."""
_FLOOR = 1e-3
"""Weight of the prior in the proposal along a line."""
_ANYWHERE = 0.25
"""Share of each later round that is spread evenly over lengths and disagreements."""
_SMALL, _LARGE = 0.05, 4.0
"""Preferences at which the slope and the limit of the clipped means are evaluated."""
_LEAST = 1e-6
_SUREST = 0.9
"""Largest square of a mean bit that reduces its variance, since expected means are approximate."""
_STATED_OF = 400
"""Dilemmas on which probabilities are compared."""
_FIT_ROUNDS = 12
_MOST = 1.0
"""Bound on the absolute logarithm of each of the three multipliers."""
_RIDGE = 1e-5
_SEED = 20_190_609


@dataclass(frozen=True)
class LikelyCrowds:
    """The posterior of a crowd."""

    common: FloatArray
    """Posterior mean of b."""
    mean: FloatArray
    """Mean of the pooled probit; with ``covariance`` it reproduces the crowds' probabilities."""
    covariance: FloatArray
    effective: float
    """Effective sample size."""


def likely_crowds(
    ballots: CorrectedBallots,
    lengths: Sequence[tuple[float, float]],
    taus: Sequence[float],
    observed: FloatArray,
    variances: FloatArray,
    other_dilemmas: float = 0.0,
    surer: FloatArray | float = 0.0,
) -> LikelyCrowds:
    """Return the posterior given observed clipped means whose errors have these variances.

    If they are means of bits, these are the variances of means of zero, and a mean m varies less: by ``surer`` m^2.
    ``lengths`` are encoded lengths (``told_length``) with their probabilities; the disagreements ``taus`` are equally
    probable. If the generator did not draw the dilemmas, the clipped means that a crowd shows have a normal error,
    alike along all axes, whose length is ``other_dilemmas`` times theirs (root mean square).
    """
    drawn = _Crowds(ballots, lengths, taus, observed, variances, other_dilemmas, surer)
    effective = 0.0
    for number in range(_ROUNDS):
        drawn.draw(number)
        weights = drawn.weights()
        effective = 1 / float(weights @ weights)
        if number > 0 and effective >= _ENOUGH:
            break
    dilemmas = ballots.dilemmas[:_STATED_OF]
    pooled = np.empty_like(drawn.every)
    shares = np.zeros(len(dilemmas))
    for place, tau in enumerate(taus):
        rows = drawn.cells % len(taus) == place
        middle = weights[rows] @ drawn.every[rows] / max(float(weights[rows].sum()), np.finfo(float).tiny)
        at_middle, carried = pooled_probit(ballots.dilemmas, middle, tau)
        pooled[rows] = at_middle + (drawn.every[rows] - middle) @ carried.T
        shares += ndtr((dilemmas * reach(dilemmas, tau)[:, None]) @ drawn.every[rows].T) @ weights[rows]
    factors = ballots.dilemmas[:, : ballots.dilemmas.shape[1] - ballots.left_out]
    seen = dilemmas * (common_size(factors) * reach(factors[:_STATED_OF], DISAGREEMENT))[:, None]
    mean, covariance = _stating_the_same(seen, pooled, weights, shares)
    return LikelyCrowds(weights @ drawn.every, mean, covariance, effective)


def faintest_margins(variances: FloatArray, most: int | None = None) -> float:
    """Return the smallest prior size of margins, for clipped means whose errors have these variances.

    Along each of k axes, the mean score of n records is normal, with the mean sqrt(2 / pi) times the voter's own
    preference, and the variance 1 / n. With the usual disagreement tau, a preference b changes the mean of its sign by
    c b, c^2 = (2 / pi) (1 + k tau^2) / (tau^2 + pi / 2n). So margins of size s change all clipped means together by
    c s, squared and in units of their errors by c^2 s^2 times the mean of 1 / variance. The errors have k of these
    units. Where they are larger, the unshrunk estimate even of the longest ballots would be worse than none. These have
    n = ``most`` records, by default any number.
    """
    k = len(variances)
    of_records = 0.0 if most is None else math.pi / (2 * most)
    shown = 2 / math.pi * (1 + k * DISAGREEMENT**2) / (DISAGREEMENT**2 + of_records)
    return min(FAINTEST, math.sqrt(k / (shown * float(np.mean(1 / variances)))))


def _stating_the_same(
    dilemmas: FloatArray, pooled: FloatArray, weights: FloatArray, shares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return a mean and a covariance that reproduce the probabilities of weighted probits (rows), by Gauss-Newton.

    The probability of x is Phi(a m . x / sqrt(1 + c x'Cx + s x'Sx)), where m is the mean and C + S the covariance. S is
    the part explained by the component along m, that is, by the scale. The fit is over a, c and s.
    """
    mean = weights @ pooled
    covariance = ((pooled - mean).T * weights) @ (pooled - mean)
    along = covariance @ mean
    explained = float(mean @ along)
    if not explained > 0:
        return mean, covariance
    with_size = np.outer(along, along) / explained
    across = covariance - with_size
    stated = np.clip(shares, _LEAST, 1 - _LEAST)
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
        # A small ridge, for data that do not identify the three multipliers.
        step = np.linalg.solve(weighted @ slopes.T + _RIDGE * len(found) * np.eye(3), weighted @ miss)
        logs = np.clip(logs + step, -_MOST, _MOST)
    size, more, along_with = np.exp(logs).tolist()
    return size * mean, np.asarray(more * across + along_with * with_size, np.float64)


class _Crowds:
    """The crowds drawn so far. Each pair of a length and a disagreement is a cell; a crowd belongs to one."""

    def __init__(
        self,
        ballots: CorrectedBallots,
        lengths: Sequence[tuple[float, float]],
        taus: Sequence[float],
        observed: FloatArray,
        variances: FloatArray,
        other_dilemmas: float,
        surer: FloatArray | float,
    ) -> None:
        self._ballots, self._observed, self._variances = ballots, observed, variances
        self._other_dilemmas, self._surer = other_dilemmas, surer
        k = len(observed)
        self._deviations = margin_deviations(k, faintest_margins(variances, ballots.most), ballots.left_out)
        self._of_cell = [(told, tau) for told, _ in lengths for tau in taus]
        self._log_prior = np.log(np.repeat([probability / len(taus) for _, probability in lengths], len(taus)))
        self._lines = [
            _Lines.at(ballots, told, taus[0], self._deviations, observed, variances, other_dilemmas)
            for told, _ in lengths
        ]
        self._taus = len(taus)
        self._laws: list[tuple[FloatArray, _Normal]] = []
        """For each later round, the number of crowds in each cell and the proposal."""
        self._at_first = 2 * -(-_CROWDS // (2 * len(self._of_cell)))
        self.every = np.empty((0, k))
        """Preferences, one per row."""
        self.cells = np.empty(0, np.int64)
        self._log_likelihood = np.empty(0)

    def draw(self, number: int) -> None:
        """Draw a round of crowds: from the lines first, then from a normal. Antithetic pairs share a cell."""
        k = self.every.shape[1]
        count = len(self._of_cell)
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
        squares = np.square(shown)
        variances = self._variances - self._surer * np.minimum(squares, _SUREST)
        variances += self._other_dilemmas**2 * squares.mean(axis=1, keepdims=True)
        surprise = 0.5 * ((self._observed - shown) ** 2 / variances + np.log(variances)).sum(axis=1)
        self.every = np.concatenate([self.every, crowds])
        self.cells = np.concatenate([self.cells, cells])
        self._log_likelihood = np.concatenate([self._log_likelihood, -surprise])

    def weights(self) -> FloatArray:
        """Return the normalised importance weight of each crowd."""
        first = np.empty(len(self.every))
        for place, line in enumerate(self._lines):
            rows = self.cells // self._taus == place
            first[rows] = line.log_density(self.every[rows])
        densities = [math.log(self._at_first) + first]
        with np.errstate(divide="ignore"):
            densities += [np.log(counts)[self.cells] + law.log_density(self.every) for counts, law in self._laws]
        prior = _log_mean(
            [_log_normal(self.every / deviations) - float(np.log(deviations).sum()) for deviations in self._deviations]
        )
        log = prior + self._log_prior[self.cells] + self._log_likelihood - np.logaddexp.reduce(densities, axis=0)
        weights = np.exp(log - log.max())
        return np.asarray(weights / weights.sum(), np.float64)


@dataclass(frozen=True)
class _Lines:
    """Approximate posterior densities along each axis, for each prior scale."""

    ends: FloatArray
    """The ends of the lines, indexed by (scale, axis)."""
    densities: FloatArray
    """Density of each step of a line, indexed by (scale, axis, step)."""

    @classmethod
    def at(
        cls,
        ballots: CorrectedBallots,
        told: float,
        tau: float,
        deviations: FloatArray,
        observed: FloatArray,
        variances: FloatArray,
        other_dilemmas: float,
    ) -> _Lines:
        """Compute the densities for ballots of one encoded length, with a row of prior deviations for each scale."""
        k = len(observed)
        indifferent, *probes = ballots.shown_by(
            np.vstack([np.zeros(k), _SMALL * np.eye(k), _LARGE * np.eye(k)]), told, tau
        )
        slopes = np.diag(probes[:k] - indifferent) / _SMALL
        limits = np.diag(probes[k:] - indifferent)
        limits = np.maximum(limits, _LEAST)
        steps = np.linspace(-_FAR, _FAR, _LINE)
        prior = np.exp(-0.5 * steps**2)
        prior /= prior.sum()
        lines = np.multiply.outer(deviations, steps)
        bent = (slopes * math.sqrt(math.pi) / (2 * limits))[:, None]
        shows = limits[:, None] * erf(lines * bent)
        errors = _TEMPER * (variances[:, None] + np.square(other_dilemmas * shows))
        log = -0.5 * ((observed[:, None] - indifferent[:, None] - shows) ** 2 / errors + np.log(errors))
        density = prior * np.exp(log - log.max(axis=2, keepdims=True))
        density = (1 - _FLOOR) * density / density.sum(axis=2, keepdims=True) + _FLOOR * prior
        return cls(_FAR * deviations, density)

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """Return the preferences at these quantiles, cycling through the scales."""
        found = np.empty_like(shares)
        for place, ends in enumerate(self.ends.tolist()):
            rows = np.arange(len(shares)) // 2 % len(self.ends) == place
            for axis, (end, density) in enumerate(zip(ends, self.densities[place], strict=True)):
                passed = np.cumsum(density)
                wanted = shares[rows, axis] * passed[-1]
                step = np.minimum(np.searchsorted(passed, wanted, side="right"), _LINE - 1)
                inside = 1 - (passed[step] - wanted) / density[step]
                found[rows, axis] = ((step + inside - 0.5) * 2 / (_LINE - 1) - 1) * end
        return found

    def log_density(self, crowds: FloatArray) -> FloatArray:
        """Return the log density of the mixture over scales."""
        logs = []
        for ends, densities in zip(self.ends, self.densities, strict=True):
            widths = 2 * ends / (_LINE - 1)
            step = np.rint((crowds / ends + 1) * (_LINE - 1) / 2).astype(np.int64)
            inside = ((step >= 0) & (step < _LINE)).all(axis=1)
            near = np.clip(step, 0, _LINE - 1)
            log = np.log(densities[np.arange(crowds.shape[1]), near] / widths).sum(axis=1)
            logs.append(np.where(inside, log, -np.inf))
        return _log_mean(logs)


@dataclass(frozen=True)
class _Normal:
    """A normal proposal for preferences."""

    mean: FloatArray
    root: FloatArray
    """Cholesky factor of the covariance."""

    @classmethod
    def of(cls, crowds: FloatArray, weights: FloatArray) -> _Normal:
        """Return the normal with the mean of weighted crowds and a multiple of their covariance."""
        mean = weights @ crowds
        covariance = _TEMPER * ((crowds - mean).T * weights) @ (crowds - mean)
        root = np.linalg.cholesky(covariance + _LEAST * np.eye(len(mean)))
        return cls(mean, np.asarray(root, np.float64))

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """Return the preferences at these quantiles."""
        return np.asarray(self.mean + ndtri(shares) @ self.root.T, np.float64)

    def log_density(self, crowds: FloatArray) -> FloatArray:
        """Return the log density."""
        scaled = np.asarray(np.linalg.solve(self.root, (crowds - self.mean).T).T, np.float64)
        return _log_normal(scaled) - float(np.log(np.diag(self.root)).sum())


def _log_normal(crowds: FloatArray) -> FloatArray:
    return np.asarray(-0.5 * np.square(crowds).sum(axis=1) - crowds.shape[1] / 2 * math.log(2 * math.pi), np.float64)


def _log_mean(logs: Sequence[FloatArray]) -> FloatArray:
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - math.log(len(logs)), np.float64)


def _flattened(weights: FloatArray, least: int) -> FloatArray:
    """Flatten weights until the effective sample size suffices to estimate a covariance."""
    power = 1.0
    while 1 / float(weights @ weights) < least and power > _LEAST:
        power /= 2
        weights = np.sqrt(weights)
        weights = weights / weights.sum()
    return weights


@lru_cache(maxsize=32)
def _shares(number: int, crowds: int, axes: int) -> FloatArray:
    """Return a Latin hypercube sample of (0, 1)^axes in antithetic pairs of rows."""
    rng = np.random.default_rng([_SEED, number])
    half = -(-crowds // 2)
    order = rng.permuted(np.tile(np.arange(half), (axes, 1)), axis=1)
    spread = (order + rng.random((axes, half))).T / half
    return np.asarray(np.stack([spread, 1 - spread], axis=1).reshape(-1, axes)[:crowds], np.float64)
