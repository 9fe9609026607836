"""Estimate the crowd's preference from the mean of voters' clipped mean scores, with unknown ballot lengths.

A voter's score along an axis of the public design is the mean over her records, divided by a public clip c and clipped
to [-1, 1] to bound each voter's influence. The noisy observations are the mean of these scores along each axis and the
mean over voters of 1 / n, where n is the length of a ballot. Short ballots scatter more than long ones, so clipping
removes more of their scores; ``ballot_means`` models how much.

The clipped means determine the direction of the preference, and 1 / n its size. For each 1 / n of a grid and each size
that margins may have (``SIZES``), we find the posterior mode of gamma (``moments``). Where most voters are clipped, the
means saturate: the mode is then the smallest preference that fits the data, and a normal approximation around it
ignores larger ones. So if no further step follows, we sample preferences around each mode and weight them by importance
sampling.

Let v = 1 / n + SCORE_DISAGREEMENT^2 be the variance of the mean of n records of unit variance from a voter who differs
from the crowd (``loudness``), and v_0 its value for a ballot of all records. The prior is log v ~ N(log v_0, 0.8^2). It
is wide enough for ballots a tenth as long, and the data soon outweigh it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.estimation.moments import Belief, ScoreFit, fit_scores
from crowdveil.estimation.probit import compiled, share_and_density

SCORE_DISAGREEMENT = 0.15
"""Standard deviation of voters' own mean scores around the crowd's, in units of that of a record's score. Voters who
differ by 0.25 along each of nine axes have about this much (derivation: ``step_estimate.most_alike``). It affects
accuracy only."""
LONGEST = 100
"""Longer ballots are treated as ballots of this many records."""

SIZES = (0.5, 1.0, 2.0)
"""Equally probable sizes of margins: crowds of which 65, 75 or 85 % agree on a dilemma. On simulated small crowds, the
probabilities stated with these three octaves have a lower loss than with five (tests/statistics/constants.py)."""

_LOUDNESS_WIDTH = 0.8
_NODES = 9
_REFINEMENTS = 4
_NEGLIGIBLE = 1e-4
_DRAWN = 320
"""Preferences drawn from one proposal, over all values of 1 / n."""
_ROUNDS = 2
"""Rounds of draws around the weighted mean of all draws so far."""
_TEMPER = 1.5
"""Factor by which proposals widen the covariances, so that no likely preference is sampled too rarely."""
_SEED = 20_190_611


class VoterMeans(Protocol):
    """A model of voters' clipped mean scores, such as ``BallotMeans``."""

    def expected(self, inverse_length: float, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means along the axes for a crowd with this preference, and their derivative."""

    def shown(self, inverse_length: float, preferences: FloatArray) -> FloatArray:
        """Return the means for many preferences (rows)."""


@dataclass(frozen=True)
class ClippedFit:
    """The preference along the axes fitted to clipped means, and its uncertainty."""

    mean: FloatArray
    """Posterior mean, over all lengths and sizes."""
    covariance: FloatArray
    """Posterior covariance, over all lengths and sizes."""
    center: FloatArray
    """The estimate without a prior on it, linear in the clipped means: its error is the gain times theirs."""
    gain: FloatArray
    """Derivative of the center with respect to the clipped means."""
    inverse_length: float
    """Posterior mean of 1 / n, at which center and gain are evaluated."""
    stretch: FloatArray
    """Covariance of the center due to the unknown lengths: nearly along the center itself."""


def loudness(inverse_length: float) -> float:
    """Return the variance of a voter's mean score, relative to that of a record's score."""
    return inverse_length + SCORE_DISAGREEMENT**2


def voter_clip(ballot_length: int) -> float:
    """Return the standard deviation of a voter's mean score over a whole ballot."""
    return math.sqrt(loudness(1 / ballot_length))


def fit_clipped_means(
    voters: VoterMeans,
    observed: FloatArray,
    covariance: FloatArray,
    told: tuple[float, float],
    ballot_length: int,
    *,
    last: bool = True,
) -> ClippedFit:
    """Fit a preference along the axes to clipped means whose errors have this covariance.

    ``told`` is the mean of 1 / n and the variance of its error; ``ballot_length`` is that of a ballot of all records.
    Sample the posterior only if this is the ``last`` step: a further step starts at the mode and corrects it.
    """
    precision = np.asarray(np.linalg.inv(covariance), np.float64)
    prior = Belief.before(len(observed))
    fits: dict[float, tuple[ScoreFit, float]] = {}

    def length_at(log_loudness: float) -> float:
        """Return the log posterior of the lengths given their reported mean alone."""
        usual = (log_loudness - math.log(loudness(1 / ballot_length))) / _LOUDNESS_WIDTH
        return -0.5 * ((_inverse_length(log_loudness) - told[0]) ** 2 / told[1] + usual**2)

    def fit_at(log_loudness: float) -> tuple[ScoreFit, float]:
        """Return the fit, and the log posterior of the lengths given all observations."""
        if log_loudness not in fits:
            inverse_length = _inverse_length(log_loudness)
            nearest = min(fits, key=lambda other: abs(other - log_loudness), default=None)
            start = None if nearest is None else fits[nearest][0].mean
            expected = partial(voters.expected, inverse_length)
            fit = fit_scores(expected, observed, covariance, prior, start)
            miss = observed - expected(fit.mean)[0]
            fits[log_loudness] = fit, _evidence(fit, prior, miss, precision) + length_at(log_loudness)
        return fits[log_loudness]

    low, high = (math.log(loudness(end)) for end in (1 / LONGEST, 1.0))
    for _ in range(_REFINEMENTS):
        nodes = np.linspace(low, high, _NODES)
        logs = np.array([fit_at(node)[1] for node in nodes.tolist()])
        weights = np.exp(logs - logs.max())
        heavy = np.flatnonzero(weights > _NEGLIGIBLE)
        first = max(heavy[0] - 1, 0)
        end = min(heavy[-1] + 1, _NODES - 1)
        if end - first > _NODES // 2:
            break
        low, high = nodes[first], nodes[end]
    lengths = [(_inverse_length(nodes[place]), length_at(nodes[place]), fit_at(nodes[place])[0]) for place in heavy]
    weights /= weights.sum()

    centers = np.array([fit_at(node)[0].center for node in nodes.tolist()])
    inverse_length = float(weights @ [_inverse_length(node) for node in nodes.tolist()])
    means = np.array([fit_at(node)[0].mean for node in nodes.tolist()])
    best = fit_scores(partial(voters.expected, inverse_length), observed, covariance, prior, weights @ means)
    if last:
        drawn, counting = _drawn(voters, observed, covariance, lengths)
        mean = counting @ drawn
        posterior = _scatter(counting, drawn - mean)
    else:
        mean = weights @ means
        within = np.tensordot(weights, np.array([fit_at(node)[0].covariance for node in nodes.tolist()]), 1)
        posterior = within + _scatter(weights, means - mean)
    return ClippedFit(
        mean,
        posterior,
        best.center,
        best.gain,
        inverse_length,
        _scatter(weights, centers - best.center),
    )


@dataclass(frozen=True)
class _Normal:
    """A normal proposal for preferences."""

    mean: FloatArray
    root: FloatArray
    """Cholesky factor of the covariance."""

    @classmethod
    def around(cls, mean: FloatArray, covariance: FloatArray) -> _Normal:
        """Return the normal with this mean and a multiple of this covariance."""
        tiny = np.eye(len(mean)) * np.finfo(float).eps
        return cls(mean, np.asarray(np.linalg.cholesky(_TEMPER * covariance + tiny), np.float64))

    def draw(self, half_as_many: int, rng: np.random.Generator) -> FloatArray:
        """Return antithetic draws."""
        half = rng.standard_normal((half_as_many, len(self.mean)))
        return np.asarray(self.mean + np.concatenate([half, -half]) @ self.root.T, np.float64)

    def log_density(self, preferences: FloatArray) -> FloatArray:
        """Return the log density up to a constant."""
        scaled = np.linalg.solve(self.root, (preferences - self.mean).T)
        return np.asarray(-0.5 * np.square(scaled).sum(axis=0) - np.log(np.diag(self.root)).sum(), np.float64)


def _drawn(
    voters: VoterMeans, observed: FloatArray, covariance: FloatArray, lengths: list[tuple[float, float, ScoreFit]]
) -> tuple[FloatArray, FloatArray]:
    """Return sampled preferences (rows) and their importance weights.

    ``lengths`` are values of 1 / n, each with its log probability and a fit to start from. For each, sample around the
    posterior mode under each size, and from the widest prior, which covers long tails. Then sample as many around the
    weighted mean of all draws. The weight of a preference is prior times likelihood, divided by the density of the
    mixture of all proposals for its length (Veach and Guibas 1995).
    """
    k = len(observed)
    rng = np.random.default_rng(_SEED)
    precision = np.asarray(np.linalg.inv(covariance), np.float64)
    priors = [Belief(np.zeros(k), np.eye(k) * size**2 / k) for size in SIZES]
    laws: list[list[_Normal]] = []
    drawn: list[list[FloatArray]] = []
    logs: list[list[FloatArray]] = []

    def draw(place: int, law: _Normal) -> None:
        """Draw preferences for a length, and record their log posterior."""
        inverse_length, probable, _ = lengths[place]
        preferences = law.draw(-(-_DRAWN // (2 * len(lengths))), rng)
        miss = observed - voters.shown(inverse_length, preferences)
        squares = np.square(preferences).sum(axis=1)
        before = np.logaddexp.reduce([-0.5 * squares * k / size**2 - k * math.log(size) for size in SIZES])
        laws[place].append(law)
        drawn[place].append(preferences)
        logs[place].append(probable - 0.5 * ((miss @ precision) * miss).sum(axis=1) + before)

    def weights() -> FloatArray:
        """Return the normalised importance weights of all draws so far."""
        each = [
            np.concatenate(logs[place])
            - np.logaddexp.reduce([law.log_density(np.concatenate(drawn[place])) for law in laws[place]])
            for place in range(len(lengths))
        ]
        log = np.concatenate(each)
        counting = np.exp(log - log.max())
        return np.asarray(counting / counting.sum(), np.float64)

    for place, (inverse_length, _, start) in enumerate(lengths):
        laws.append([])
        drawn.append([])
        logs.append([])
        for prior in priors:
            fit = fit_scores(partial(voters.expected, inverse_length), observed, covariance, prior, start.mean)
            draw(place, _Normal.around(fit.mean, fit.covariance))
        draw(place, _Normal.around(priors[-1].mean, priors[-1].covariance))
    for _ in range(_ROUNDS):
        every = np.concatenate([np.concatenate(some) for some in drawn])
        counting = weights()
        mean = counting @ every
        law = _Normal.around(mean, _scatter(counting, every - mean))
        for place in range(len(lengths)):
            draw(place, law)
    return np.concatenate([np.concatenate(some) for some in drawn]), weights()


def _evidence(fit: ScoreFit, prior: Belief, miss: FloatArray, precision: FloatArray) -> float:
    """Return the log marginal likelihood, by Laplace's approximation."""
    loss = float(miss @ precision @ miss + fit.mean @ np.linalg.solve(prior.covariance, fit.mean))
    within, before = (float(np.linalg.slogdet(matrix)[1]) for matrix in (fit.covariance, prior.covariance))
    return 0.5 * (within - before - loss)


def _inverse_length(log_loudness: float) -> float:
    return math.exp(log_loudness) - SCORE_DISAGREEMENT**2


def _scatter(weights: FloatArray, gaps: FloatArray) -> FloatArray:
    return np.asarray((gaps * weights[:, None]).T @ gaps, np.float64)


@dataclass(frozen=True)
class ClippedNormal:
    """The distribution of clip(s / c, -1, 1) for normal s, one entry per axis."""

    centre: FloatArray
    variance: FloatArray
    clip: float

    @cached_property
    def _computed(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The mean, P(|s| < c), and the derivative of the mean with respect to the variance."""
        shape = np.broadcast_shapes(np.shape(self.centre), np.shape(self.variance))
        centre, variance = (
            np.ascontiguousarray(np.broadcast_to(each, shape), np.float64).reshape(-1)
            for each in (self.centre, self.variance)
        )
        found = np.empty((3, len(centre)))
        _clipped_normals(centre, variance, self.clip, *found)
        mean, kept, bend = found.reshape(3, *shape)
        return mean, kept, bend

    @property
    def mean(self) -> FloatArray:
        """The mean of the clipped score."""
        return self._computed[0]

    @property
    def kept(self) -> FloatArray:
        """P(|s| < c)."""
        return self._computed[1]

    @property
    def slope(self) -> FloatArray:
        """The derivative of the mean with respect to the centre."""
        return self.kept / self.clip

    @property
    def bend(self) -> FloatArray:
        """The derivative of the mean with respect to the variance."""
        return self._computed[2]


@compiled
def _clipped_normals(
    centre: FloatArray, variance: FloatArray, clip: float, mean: FloatArray, kept: FloatArray, bend: FloatArray
) -> None:
    for i in range(centre.size):
        deviation = math.sqrt(variance[i])
        above, upper = share_and_density((clip - centre[i]) / deviation)
        below, lower = share_and_density((-clip - centre[i]) / deviation)
        kept[i] = above - below
        mean[i] = (centre[i] * kept[i] - deviation * (upper - lower)) / clip + (1 - above) - below
        bend[i] = (lower - upper) / (2 * clip * deviation)
