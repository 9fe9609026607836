"""The posterior of a preference given the mean scores of records, by importance sampling.

Clipped scores saturate as a preference grows, so under noise the posterior is skewed: its mean is up to twice as long
as its mode, and a normal approximation around the mode is far too short and too narrow. So we sample preferences b,
each with a disagreement tau (``disagreement``), and weight them by prior times likelihood.

- Prior: along each axis b is N(0, s^2 / (k (1 + k tau^2))), where s is the size of voters' mean margins. s is unknown
  too, since a crowd may be nearly indifferent or nearly unanimous; the data weight its values
  (``prior.LIKELY_MARGINS``).
- Likelihood: scores are normal around the expected scores of a crowd with b and tau. Their covariance adds the error of
  the reports, the sampling error of the dilemmas used to compute the expectation, and the error of the dilemmas' tilt
  (``tilted_design``), which shifts the expectation linearly. So every source of uncertainty shrinks the preference
  once, as noise does.
- Proposals: for each size and disagreement, Student's t around the posterior mode, with draws in proportion to the
  probability that Laplace's approximation gives it. Of many axes nothing else would do: a draw for one size is far out
  for the next. Then Student's t around the weighted mean of the draws so far, until the effective sample size is large
  enough. All draws are weighted by the density of the whole mixture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.estimation.design import AxisSample
from crowdveil.estimation.disagreement import (
    DISAGREEMENT,
    OTHER_DISAGREEMENTS,
    expected_scores,
    pooled_probit,
    reach,
)
from crowdveil.estimation.prior import likely_deviations
from crowdveil.estimation.probit import mills
from crowdveil.estimation.record_axes import RecordAxes
from crowdveil.estimation.tilted_design import TiltedDesign

Float32Array = NDArray[np.float32]

RECORD_TAUS = (DISAGREEMENT, *OTHER_DISAGREEMENTS)
"""Equally probable disagreements tau, the usual one first."""
_DILEMMAS = 1250
"""Dilemmas on which draws are evaluated. The difference to all dilemmas, linear around a posterior mode, is added."""
_BEYOND = 2.0
"""Multiple of the largest size at which one more mode is found, whose proposal covers the long tail of preferences."""
_FIRST = 3200
"""Draws around the posterior modes; each later proposal gets _LATER."""
_LATER = 1200
_TAIL = 200
"""Draws for the long tail."""
_ANYWHERE = 0.25
"""Share of the first draws that is spread evenly over all modes."""
_ENOUGH = 1000
"""Effective sample size: a mean is then known to a thirtieth of the posterior standard deviation."""
_LAWS = 6
"""Maximum number of later proposals."""
_LEAST_FREEDOM = 6
"""Minimum degrees of freedom of the proposals; otherwise they equal the number of axes."""
_WIDER = 3.0
"""Proposals widen variances by the factor 1 + this / (number of axes)."""
_AT_ONCE = 128
"""Draws evaluated at once. Their covariances fit into the processor's cache."""
_ROUNDS = 40
_NEAR = 1e-2
_LONGEST_STEP = 0.5
_HUGE = 1e300
_SEED = 20_261_117


@dataclass(frozen=True)
class LikelyPreferences:
    """The posterior of the pooled probit along the axes."""

    mean: FloatArray
    covariance: FloatArray
    effective: float
    """Effective sample size."""


def likely_preferences(
    axes: RecordAxes, scores: FloatArray, covariance: FloatArray, dilemmas: TiltedDesign | None = None
) -> LikelyPreferences:
    """Return the posterior given mean scores (in units of the clip) whose errors have this covariance.

    ``axes`` are those of the dilemmas that were answered. If the generator did not draw them, ``dilemmas`` is the
    tilted design that models them.
    """
    k = len(scores)
    model = _Model(axes, scores, covariance, dilemmas)
    wider = 1 + _WIDER / k
    laws = model.tops(wider)
    drawn = _Draws.of(laws, 0)
    likely, density = model.log_posterior(drawn), _log_density(laws, drawn)
    for left in reversed(range(_LAWS + 1)):
        weights = _weights(likely - density)
        effective = 1 / float(weights @ weights)
        if effective >= _ENOUGH or not left:
            break
        mean = weights @ drawn.at
        scatter = _scatter(weights, drawn.at - mean)
        # The scatter of few effective draws is too narrow: blend it with the spread of the last proposal.
        trust = min(1.0, effective / (10 * k))
        spread = wider * (trust * scatter + (1 - trust) * laws[-1].spread)
        more_laws = [_Law(mean, spread, tau, _LATER // len(RECORD_TAUS)) for tau in RECORD_TAUS]
        more = _Draws.of(more_laws, len(laws))
        laws += more_laws
        density = np.concatenate([np.logaddexp(density, _log_density(more_laws, drawn)), _log_density(laws, more)])
        drawn = drawn.with_more(more)
        likely = np.concatenate([likely, model.log_posterior(more)])
    pooled = np.empty_like(drawn.at)
    for tau, rows in drawn.by_tau():
        middle = weights[rows] @ drawn.at[rows] / max(float(weights[rows].sum()), np.finfo(float).tiny)
        at_middle, carried = pooled_probit(axes.design.along, middle, tau)
        pooled[rows] = at_middle + (drawn.at[rows] - middle) @ carried.T
    mean = weights @ pooled
    return LikelyPreferences(mean, _scatter(weights, pooled - mean), effective)


class _Model:
    """The observed scores, and the posterior density of preferences given them."""

    def __init__(
        self, axes: RecordAxes, scores: FloatArray, covariance: FloatArray, dilemmas: TiltedDesign | None
    ) -> None:
        self._observed = scores
        self._axes = axes
        along = axes.design.along
        rows = slice(None, None, max(len(along) // _DILEMMAS, 1))
        self._scores = axes.scores[rows]
        self._seen = {tau: along[rows] * reach(along[rows], tau)[:, None] for tau in RECORD_TAUS}
        usual = self._seen[DISAGREEMENT]
        self._unshown = np.linalg.inv(math.sqrt(2 / math.pi) * self._scores.T @ usual / len(usual)).T
        k = len(scores)
        self._pairs = np.triu_indices(k)
        self._reported = covariance[self._pairs]
        self._errors = _Errors.of(self._scores, usual, len(along), dilemmas, rows)
        self._about = np.zeros(k)
        self._more = {tau: np.zeros(k) for tau in RECORD_TAUS}
        self._steeper = {tau: np.zeros((k, k)) for tau in RECORD_TAUS}

    def tops(self, wider: float) -> list[_Law]:
        """Return a proposal around the posterior mode for each size of margins and each disagreement.

        One more, for a size beyond them all, covers the long tail.
        """
        k = len(self._observed)
        common = self._top(self._deviations(DISAGREEMENT)[-1], DISAGREEMENT, np.zeros(k))[0]
        along, scores = self._axes.design.along, self._axes.scores
        for tau in RECORD_TAUS:
            exact, slope = AxisSample(along * reach(along, tau)[:, None]).instrumented(scores, common)
            shown, shown_slope = expected_scores(self._scores, self._seen[tau], common)
            self._more[tau] = exact - shown
            self._steeper[tau] = slope - shown_slope
        self._about = common
        tail, spread = self._top(_BEYOND * self._deviations(DISAGREEMENT)[-1], DISAGREEMENT, common)
        laws = [_Law(tail, wider * spread, DISAGREEMENT, _TAIL)]
        found, logs = [], []
        for tau in RECORD_TAUS:
            deviations = self._deviations(tau)[::-1]
            top, tops = common, []
            for of_size in deviations:
                top, spread = self._top(of_size, tau, top)
                tops.append((top, spread))
            found += [(tau, *each) for each in tops]
            logs.append(self._evidence(deviations, tau, *map(np.array, zip(*tops, strict=True))))
        shares = (1 - _ANYWHERE) * _weights(np.concatenate(logs)) + _ANYWHERE / len(found)
        for (tau, top, spread), share in zip(found, shares.tolist(), strict=True):
            laws.append(_Law(top, wider * spread, tau, 2 * math.ceil(_FIRST / 2 * share)))
        return laws

    def _deviations(self, tau: float) -> FloatArray:
        """Return the prior standard deviations along the axes (columns), for each size of margins (rows)."""
        return likely_deviations(len(self._observed), tau, self._axes.design.left_out)

    def _evidence(self, deviations: FloatArray, tau: float, tops: FloatArray, spreads: FloatArray) -> FloatArray:
        """Return the log of the probability of the scores by Laplace's approximation around each mode."""
        prior = -0.5 * np.square(tops / deviations).sum(axis=1) - np.log(deviations).sum(axis=1)
        return np.asarray(prior + self._log_likelihood(tops, tau) + 0.5 * np.linalg.slogdet(spreads)[1], np.float64)

    def _top(self, deviations: FloatArray, tau: float, common: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the posterior mode, found by Gauss-Newton, and the inverse of the curvature there."""
        prior = np.diag(deviations**-2)
        for _ in range(_ROUNDS):
            shown, slope = expected_scores(self._scores, self._seen[tau], common)
            shown += self._correction(common, tau)
            slope += self._steeper[tau]
            told = np.linalg.solve(self._covariance(shown), slope).T
            curvature = told @ slope + prior
            step = np.linalg.solve(curvature, told @ (self._observed - shown) - prior @ common)
            common = common + step / max(1.0, float(np.abs(step).max()) / _LONGEST_STEP)
            if np.abs(step).max() <= _NEAR:
                break
        return common, np.asarray(np.linalg.inv(curvature), np.float64)

    def log_posterior(self, drawn: _Draws) -> FloatArray:
        """Return the log of prior times likelihood of each draw."""
        result = np.empty(len(drawn.at))
        for tau, rows in drawn.by_tau():
            precisions = self._deviations(tau) ** -2
            exponents = -0.5 * (np.square(drawn.at[rows]) @ precisions.T - np.log(precisions).sum(axis=1))
            prior = np.logaddexp.reduce(exponents, axis=1)
            result[rows] = prior
            for some in np.split(rows, range(_AT_ONCE, len(rows), _AT_ONCE)):
                result[some] += self._log_likelihood(drawn.at[some], tau)
        return result

    def _log_likelihood(self, drawn: FloatArray, tau: float) -> FloatArray:
        shown = self._shown(drawn, tau)
        count, k = shown.shape
        first, second = self._pairs
        # The Cholesky factor L of a covariance with the misses m as one more row has the row L^-1 m.
        bordered = np.zeros((count, k + 1, k + 1))
        bordered[:, second, first] = self._covariances(shown)
        bordered[:, k, :k] = self._observed - shown
        bordered[:, k, k] = _HUGE
        lower = np.linalg.cholesky(bordered)
        volume = np.log(np.diagonal(lower, axis1=1, axis2=2)[:, :k]).sum(axis=1)
        return np.asarray(-0.5 * np.square(lower[:, k, :k]).sum(axis=1) - volume, np.float64)

    def _shown(self, drawn: FloatArray, tau: float) -> FloatArray:
        """Return the expected mean scores of crowds (rows)."""
        leaning = drawn @ self._seen[tau].T
        _lean(leaning)
        return np.asarray(leaning @ self._scores / len(self._scores) + self._correction(drawn, tau), np.float64)

    def _correction(self, drawn: FloatArray, tau: float) -> FloatArray:
        """Return the difference that all dilemmas make to the mean scores of a crowd, to first order."""
        return np.asarray(self._more[tau] + (drawn - self._about) @ self._steeper[tau].T, np.float64)

    def _covariance(self, shown: FloatArray) -> FloatArray:
        """Return the error covariance of the scores for a crowd with these expected scores."""
        first, second = self._pairs
        result = np.empty((len(shown), len(shown)))
        result[first, second] = result[second, first] = self._covariances(shown[None])[0]
        return result

    def _covariances(self, shown: FloatArray) -> FloatArray:
        """Return the error covariance of each pair of scores (columns) for crowds with these expected scores (rows).

        The effect of a tilt or of another sample of dilemmas is that on the linearised model: on the preference that
        would have these expected scores if scores did not saturate.
        """
        return self._reported + self._errors.covariances((shown @ self._unshown).astype(np.float32))


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _lean(margins: Any) -> None:
    """Replace each margin t by 2 Phi(t) - 1, the share that prefers a side minus that which prefers the other."""
    every = margins.reshape(-1)
    for i in range(len(every)):
        above, below = mills(every[i]), mills(-every[i])
        every[i] = (below - above) / (below + above)


@dataclass(frozen=True)
class _Errors:
    """The error covariance of scores that a sample of dilemmas, which may be tilted, adds.

    For a dilemma x with scores z, the derivative of score a with respect to a small preference along axis c is
    sqrt(2 / pi) z_a x_c. Its mean over dilemmas has an error, because these are a sample and may be tilted. So the
    covariance of the errors of two scores is a quadratic form of the preference. All is in single precision: the
    errors' errors are far below those of the reports.
    """

    seen: Float32Array
    products: Float32Array
    """Products of two scores (columns) of each dilemma, divided by the number of dilemmas."""
    mean: Float32Array
    """Mean of z_a x_c over dilemmas."""
    moved: Float32Array
    """Effect of each independent part of the tilt (last) on the mean of z_a x_c (c first)."""
    sampled: int
    """Number of dilemmas in the whole sample."""

    @classmethod
    def of(
        cls, scores: FloatArray, seen: FloatArray, sampled: int, dilemmas: TiltedDesign | None, rows: slice
    ) -> _Errors:
        """Prepare the forms, given the scores and the dilemmas of some ``rows`` of the sample."""
        x, z = seen.astype(np.float32), scores.astype(np.float32)
        count, k = x.shape
        first, second = np.triu_indices(k)
        moved = np.zeros((k, k, 0), np.float32)
        if dilemmas is not None:
            told = dilemmas.moments[rows]
            told = (told - told.mean(axis=0)) @ np.linalg.cholesky(dilemmas.spread)
            each = (x[:, :, None] * z[:, None, :]).reshape(count, -1)
            moved = (each.T @ told.astype(np.float32) / count).reshape(k, k, -1)
        return cls(x, z[:, first] * z[:, second] / count, z.T @ x / count, moved, sampled)

    def covariances(self, small: Float32Array) -> Float32Array:
        """Return the error covariance of each pair of scores (columns) for small preferences (rows)."""
        first, second = np.triu_indices(small.shape[1])
        if len(first) < len(self.seen):
            return np.asarray((small[:, first] * small[:, second]) @ self._table, np.float32)
        return self._forms(small)

    @cached_property
    def _table(self) -> Float32Array:
        """The part of each product of two preferences (rows): with few axes, there are fewer products than dilemmas."""
        units = np.eye(self.seen.shape[1], dtype=np.float32)
        first, second = np.triu_indices(len(units))
        alone, together = self._forms(units), self._forms(units[first] + units[second])
        return np.where((first == second)[:, None], alone[first], together - alone[first] - alone[second])

    def _forms(self, small: Float32Array) -> Float32Array:
        count, k = small.shape
        first, second = np.triu_indices(k)
        mean = small @ self.mean.T
        result = np.square(small @ self.seen.T) @ self.products
        result -= mean[:, first] * mean[:, second]
        result /= self.sampled
        if self.moved.size:
            moved = (small @ self.moved.reshape(k, -1)).reshape(count, k, -1)
            result += (moved @ moved.transpose(0, 2, 1))[:, first, second]
        return np.asarray(2 / math.pi * result, np.float32)


@dataclass(frozen=True)
class _Law:
    """A multivariate Student's t proposal for crowds with one disagreement, and the number of draws from it."""

    center: FloatArray
    spread: FloatArray
    tau: float
    count: int

    def draws(self, number: int) -> FloatArray:
        """Return the draws; ``number`` seeds them."""
        return self.center + _student(self.count, len(self.center), number) @ np.linalg.cholesky(self.spread).T

    def log_density(self, at: FloatArray) -> FloatArray:
        """Return the log density up to a constant."""
        lower = np.linalg.cholesky(self.spread)
        away = np.square((at - self.center) @ np.linalg.inv(lower).T).sum(axis=1)
        freedom = max(len(self.center), _LEAST_FREEDOM)
        raised = (freedom + len(self.center)) / 2
        return np.asarray(-np.log(np.diag(lower)).sum() - raised * np.log1p(away / freedom), np.float64)


@dataclass(frozen=True)
class _Draws:
    """Preferences (rows), each with a disagreement."""

    at: FloatArray
    taus: FloatArray

    @classmethod
    def of(cls, laws: Sequence[_Law], number: int) -> _Draws:
        """Draw from proposals, which are seeded by their numbers from this one on."""
        at = np.concatenate([law.draws(number + place) for place, law in enumerate(laws)])
        return cls(at, np.repeat([law.tau for law in laws], [law.count for law in laws]))

    def with_more(self, more: _Draws) -> _Draws:
        """Return these draws and more."""
        return _Draws(np.concatenate([self.at, more.at]), np.concatenate([self.taus, more.taus]))

    def by_tau(self) -> list[tuple[float, IntArray]]:
        """Return the places of the draws that have each disagreement."""
        return [(tau, np.flatnonzero(self.taus == tau)) for tau in RECORD_TAUS]


def _log_density(laws: Sequence[_Law], drawn: _Draws) -> FloatArray:
    """Return the log density of the mixture of proposals, each weighted by its number of draws."""
    result = np.empty(len(drawn.at))
    for tau, rows in drawn.by_tau():
        of_tau = [law.log_density(drawn.at[rows]) + math.log(law.count) for law in laws if law.tau == tau]
        result[rows] = np.logaddexp.reduce(of_tau)
    return result


def _weights(logs: FloatArray) -> FloatArray:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum(), np.float64)


def _scatter(weights: FloatArray, gaps: FloatArray) -> FloatArray:
    return np.asarray((gaps * weights[:, None]).T @ gaps, np.float64)


def _student(count: int, dimension: int, number: int) -> FloatArray:
    """Return antithetic draws from a standard multivariate Student's t."""
    rng = np.random.default_rng([_SEED, number])
    half = rng.standard_normal((count // 2, dimension))
    freedom = max(dimension, _LEAST_FREEDOM)
    lengths = np.sqrt(rng.chisquare(freedom, count // 2) / freedom)[:, None]
    return np.asarray(np.concatenate([half / lengths, -half / lengths]), np.float64)
