"""From the mean of voters' clipped mean scores to the crowd's preference, where nobody knows the ballots' lengths.

A voter's score along an axis of the public design is the mean over her records; it is divided by a public clip c and
kept within [-1, 1], so that no voter weighs more than another. What is seen of the crowd, through noise, is the mean of
these numbers along each axis, and the mean over voters of 1 / n, where n is the length of a ballot: short ballots
scatter more than long ones, so more of them is clipped. How much, is a model's (``ballot_means``).

The clipped means tell the direction, and 1 / n makes the size right. For each 1 / n of a grid, and each of the sizes
that margins may have (``SIZES``), the most probable gamma is found (``moments``). Where most voters are clipped, means
hardly grow with gamma any more: there the most probable one is the least that explains what was seen, and a normal law
around it knows nothing of larger ones. So, where no further step follows, preferences are drawn around each, and each
counts by how likely it makes what was seen, over the density that it was drawn from (importance sampling). A priori,
log v ~ N(log v_0, 0.8^2) where the loudness is v = 1 / n + SCORE_DISAGREEMENT^2, the variance of a mean of unit records
of voters who disagree, and v_0 that of a ballot of all records; the width lets ballots be a tenth as long, and what was
seen soon outweighs it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.estimation.moments import Belief, ScoreFit, fit_scores

SCORE_DISAGREEMENT = 0.15
"""Deviation of voters' own mean scores around the crowd's, in units of a record's: about what voters show who differ by
0.25 along each of nine axes (``guess.most_alike`` tells how that follows). It affects accuracy only."""
LONGEST = 100
"""Ballots of more records are told as ballots of so many."""

SIZES = (0.5, 1.0, 2.0)
"""Sizes of margins, each as probable as the next: crowds of which 65, 75 or 85 % agree in a dilemma. Of small crowds
that are simulated, these three octaves lose less in stated probabilities than five (tests/statistics/constants.py)."""

_LOUDNESS_WIDTH = 0.8
_NODES = 9
_REFINEMENTS = 4
_NEGLIGIBLE = 1e-4
_DRAWN = 320
"""Preferences drawn at once, for all 1 / n together."""
_ROUNDS = 2
"""So many times around what all drawn so far tell."""
_TEMPER = 1.5
"""They are drawn as if covariances were so many times as large, lest likely ones are drawn too rarely."""
_SEED = 20_190_611


class VoterMeans(Protocol):
    """A model of voters' clipped mean scores, such as ``BallotMeans``."""

    def expected(self, inverse_length: float, preference: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the means along the axes in a crowd of this preference, and their derivative by it."""

    def shown(self, inverse_length: float, preferences: FloatArray) -> FloatArray:
        """Return the means in crowds of many preferences, a row each."""


@dataclass(frozen=True)
class ClippedFit:
    """The preference along the axes that explains clipped means, and what is not known of it."""

    mean: FloatArray
    """Posterior mean, over all lengths and sizes."""
    covariance: FloatArray
    """Posterior covariance, in the same way."""
    center: FloatArray
    """The estimate without a prior on the preference, linear in what was seen: its error is the gain times theirs."""
    gain: FloatArray
    """The derivative of the center in the clipped means."""
    inverse_length: float
    """Posterior mean of 1 / n, at which center and gain are taken."""
    stretch: FloatArray
    """Covariance of the center over what is not known of the lengths: nearly along the center itself."""


def loudness(inverse_length: float) -> float:
    """Return the variance of a voter's mean score in terms of a record's."""
    return inverse_length + SCORE_DISAGREEMENT**2


def voter_clip(ballot_length: int) -> float:
    """Return the deviation of a voter's mean score over a whole ballot."""
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
    """Fit a preference along the axes to clipped means with errors of this covariance.

    ``told`` is the mean of 1 / n with the variance of its error, ``ballot_length`` that of a ballot of all records.
    Only where it is the ``last`` word are preferences drawn: a step that begins at the most probable one corrects it.
    """
    precision = np.asarray(np.linalg.inv(covariance), np.float64)
    prior = Belief.before(len(observed))
    fits: dict[float, tuple[ScoreFit, float]] = {}

    def length_at(log_loudness: float) -> float:
        """Return the logarithm of how probable the lengths are by what was told of them, and before."""
        usual = (log_loudness - math.log(loudness(1 / ballot_length))) / _LOUDNESS_WIDTH
        return -0.5 * ((_inverse_length(log_loudness) - told[0]) ** 2 / told[1] + usual**2)

    def fit_at(log_loudness: float) -> tuple[ScoreFit, float]:
        """Return the fit, and the logarithm of how probable the lengths are by all that was seen."""
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
    """A normal law that preferences are drawn from."""

    mean: FloatArray
    root: FloatArray
    """Of the covariance."""

    @classmethod
    def around(cls, mean: FloatArray, covariance: FloatArray) -> _Normal:
        """Return the law with this mean and a multiple of this covariance."""
        tiny = np.eye(len(mean)) * np.finfo(float).eps
        return cls(mean, np.asarray(np.linalg.cholesky(_TEMPER * covariance + tiny), np.float64))

    def draw(self, half_as_many: int, rng: np.random.Generator) -> FloatArray:
        """Draw some, and their opposites."""
        half = rng.standard_normal((half_as_many, len(self.mean)))
        return np.asarray(self.mean + np.concatenate([half, -half]) @ self.root.T, np.float64)

    def log_density(self, preferences: FloatArray) -> FloatArray:
        """Return the logarithm of the density, but for a constant."""
        scaled = np.linalg.solve(self.root, (preferences - self.mean).T)
        return np.asarray(-0.5 * np.square(scaled).sum(axis=0) - np.log(np.diag(self.root)).sum(), np.float64)


def _drawn(
    voters: VoterMeans, observed: FloatArray, covariance: FloatArray, lengths: list[tuple[float, float, ScoreFit]]
) -> tuple[FloatArray, FloatArray]:
    """Return preferences, a row each, and how much each counts.

    ``lengths`` are values of 1 / n, with the logarithm of their probability and a fit to begin at. For each, some are
    drawn around what is most probable under each size, and some from the widest prior, lest a long tail is missed; then
    as many around what all of these tell together. A preference counts its prior times the likelihood of what it shows,
    over the density of all that was drawn for its length (Veach and Guibas 1995).
    """
    k, rng = len(observed), np.random.default_rng(_SEED)
    precision = np.asarray(np.linalg.inv(covariance), np.float64)
    priors = [Belief(np.zeros(k), np.eye(k) * size**2 / k) for size in SIZES]
    laws: list[list[_Normal]] = []
    drawn: list[list[FloatArray]] = []
    logs: list[list[FloatArray]] = []

    def draw(place: int, law: _Normal) -> None:
        """Draw some for a length, and see how likely they are."""
        inverse_length, probable, _ = lengths[place]
        preferences = law.draw(-(-_DRAWN // (2 * len(lengths))), rng)
        miss = observed - voters.shown(inverse_length, preferences)
        squares = np.square(preferences).sum(axis=1)
        before = np.logaddexp.reduce([-0.5 * squares * k / size**2 - k * math.log(size) for size in SIZES])
        laws[place].append(law)
        drawn[place].append(preferences)
        logs[place].append(probable - 0.5 * ((miss @ precision) * miss).sum(axis=1) + before)

    def weights() -> FloatArray:
        """Return how much each of those drawn so far counts."""
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
        every, counting = np.concatenate([np.concatenate(some) for some in drawn]), weights()
        mean = counting @ every
        law = _Normal.around(mean, _scatter(counting, every - mean))
        for place in range(len(lengths)):
            draw(place, law)
    return np.concatenate([np.concatenate(some) for some in drawn]), weights()


def _evidence(fit: ScoreFit, prior: Belief, miss: FloatArray, precision: FloatArray) -> float:
    """Return about the logarithm of how probable it is to miss by so much, over all preferences (Laplace)."""
    loss = float(miss @ precision @ miss + fit.mean @ np.linalg.solve(prior.covariance, fit.mean))
    within, before = (float(np.linalg.slogdet(matrix)[1]) for matrix in (fit.covariance, prior.covariance))
    return 0.5 * (within - before - loss)


def _inverse_length(log_loudness: float) -> float:
    return math.exp(log_loudness) - SCORE_DISAGREEMENT**2


def _scatter(weights: FloatArray, gaps: FloatArray) -> FloatArray:
    return np.asarray((gaps * weights[:, None]).T @ gaps, np.float64)


@dataclass(frozen=True)
class ClippedNormal:
    """The law of clip(s / c, -1, 1) where s is normal, an entry for each axis."""

    centre: FloatArray
    variance: FloatArray
    clip: float

    @cached_property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """The clip's upper and lower end, in deviations from the centre."""
        deviation = np.sqrt(self.variance)
        return (self.clip - self.centre) / deviation, (-self.clip - self.centre) / deviation

    @cached_property
    def kept(self) -> FloatArray:
        """P(|s| < c)."""
        above, below = self._ends
        return np.asarray(ndtr(above) - ndtr(below))

    @property
    def mean(self) -> FloatArray:
        """The mean of the clipped."""
        above, below = self._ends
        inside = self.centre * self.kept - np.sqrt(self.variance) * (_density(above) - _density(below))
        return np.asarray(inside / self.clip + ndtr(-above) - ndtr(below))

    @property
    def slope(self) -> FloatArray:
        """The derivative of the mean in the centre."""
        return self.kept / self.clip

    @property
    def bend(self) -> FloatArray:
        """The derivative of the mean in the variance."""
        above, below = self._ends
        return (_density(below) - _density(above)) / (2 * self.clip * np.sqrt(self.variance))


def _density(x: FloatArray) -> FloatArray:
    return np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)
