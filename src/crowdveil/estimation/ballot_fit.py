"""Estimate the crowd's preference, and its uncertainty, from clipped means of ballots of unknown length.

The prior on ballot length puts 1/2 on whole ballots, 1/10 on single records and the rest uniformly on all encoded
lengths; where not all records are scored, longer ballots count as the longest. The reported lengths supply the
likelihood. (A single record shows much less of a preference than two do. Without a prior atom there, uncertainty about
lengths would bias the preference toward zero.)

The disagreement tau hardly matters for ballots of a dozen records, and dominates for ballots of hundreds: which side a
voter is on, given answers to everything, depends on b / tau only. So tau is 1/2, 1, 2 or 4 times DISAGREEMENT, with
equal probability. (In per-voter fits, the kidney study's voters differ by 0.3 to 1.2 along its axes.)

Probabilities come from the posterior (``likely_crowds``), or from a normal approximation where the data are so
informative that the effective sample size is too small. Error bars and certainty come from the unshrunk estimate, which
is linear in the observations at each length and each tau; the spread of these estimates is part of the result. A first
fit locates the preference at which simulation corrects the model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.estimation.clipped_ballots import ClippedBallots, CorrectedBallots
from crowdveil.estimation.disagreement import DISAGREEMENT, pooled_probit
from crowdveil.estimation.likely_crowds import likely_crowds
from crowdveil.estimation.prior import prior_deviations

_WHOLE, _SINGLE = 0.5, 0.1
"""Prior probabilities that all ballots are whole, and that all have one record."""
_PARTS = 4
"""Number of equally probable nodes that represent all other lengths."""
BALLOT_TAUS = tuple(part * DISAGREEMENT for part in (1.0, 0.5, 2.0, 4.0))
"""Equally probable disagreements tau, the usual one first."""
_STEPS = 400
_LEAST = 1e-9
"""Smallest squared length of a center by which gaps are divided."""
_ROUNDS, _MORE_ROUNDS = 30, 2
_SETTLED = 1e-3
_NEGLIGIBLE = 0.01
"""Lengths of lower probability are dropped."""
_NOISELESS = 1e-3
"""Variance for which what a crowd would show is fitted: the fit hardly shrinks, and does not run away where nearly all
bits agree."""
_LENGTHS = 5
"""Encoded lengths at which a fit without noise is made."""
_ENOUGH = 50
"""Effective sample size from which the sampled posterior is used."""


@dataclass(frozen=True)
class UnshrunkFit:
    """The preference along the axes fitted to clipped means without a prior, and its errors."""

    center: FloatArray
    """The estimate without a prior, linear in the clipped means: its error is the gain times theirs."""
    gain: FloatArray
    """Derivative of the center with respect to the clipped means."""
    stretch: FloatArray
    """Covariance of the center due to the unknown lengths."""
    doubt: FloatArray
    """Bound on the center's bias along each axis, its size aside, from a wrong tau and from linearisation."""
    size: float
    """Bound on the relative bias of the center's size from a wrong tau."""


@dataclass(frozen=True)
class BallotFit:
    """The preference along the axes fitted to clipped means, with and without a prior."""

    mean: FloatArray
    """Posterior mean of the pooled probit."""
    covariance: FloatArray
    unshrunk: UnshrunkFit


def fit_ballots(
    ballots: ClippedBallots,
    observed: FloatArray,
    covariance: FloatArray,
    told: float,
    told_variance: float,
    other_dilemmas: float = 0.0,
    surer: FloatArray | float = 0.0,
) -> BallotFit:
    """Fit clipped means whose errors have this covariance, given the mean encoded length and its variance.

    ``other_dilemmas`` is how far the clipped means may be off because the generator did not draw the dilemmas
    (``likely_crowds``), and ``surer`` by how much their variances fall with their squares. Both count for
    probabilities, not for the unshrunk estimate.
    """
    nodes, weights = _probable(ballots, told, told_variance)
    lengths = list(zip(nodes.tolist(), weights.tolist(), strict=True))
    middle = float(weights @ nodes)
    precision = np.asarray(np.linalg.inv(covariance), np.float64)
    about = _Observations(ballots, observed, precision).fit(middle, DISAGREEMENT, np.zeros(len(observed)), _ROUNDS)
    corrected = ballots.near(about.common, middle, BALLOT_TAUS)
    likely = likely_crowds(corrected, lengths, BALLOT_TAUS, observed, np.diag(covariance), other_dilemmas, surer)
    lines = _Observations(corrected, observed, precision).lines(nodes, weights, about.common)
    mean, spread = likely.mean, likely.covariance
    if likely.effective < _ENOUGH:
        mean, spread = lines.mixed()
    return BallotFit(mean, spread, lines.unshrunk())


@dataclass(frozen=True)
class NoiselessFits:
    """The fits to what a crowd would show without noise, for forecasts: by the model, without its corrections."""

    ballots: ClippedBallots
    told: float
    by_length: dict[float, _Line]
    by_tau: list[_Line]

    @classmethod
    def of(cls, ballots: ClippedBallots, preference: FloatArray, told: float) -> NoiselessFits:
        """Fit what a crowd with this pooled probit, and ballots of this encoded length, would show."""
        pooled = pooled_probit(ballots.dilemmas, preference, DISAGREEMENT)[0]
        common = preference * np.linalg.norm(preference) / np.linalg.norm(pooled)
        observed = ballots.shown(common, told, DISAGREEMENT)[0]
        observations = _Observations(ballots, observed, np.eye(len(observed)) / _NOISELESS)
        lengths = np.linspace(0, ballots.whole_told, _LENGTHS).tolist()
        by_length = {node: observations.fit(node, DISAGREEMENT, common, _MORE_ROUNDS) for node in lengths}
        by_tau = [observations.fit(told, tau, common, _MORE_ROUNDS) for tau in BALLOT_TAUS]
        return cls(ballots, told, by_length, by_tau)

    def unshrunk(self, told_variance: float) -> UnshrunkFit:
        """Return the unshrunk fit if the mean encoded length is told with this variance."""
        nodes, weights = _probable(self.ballots, self.told, told_variance)
        nearest = [min(self.by_length, key=lambda node: abs(node - wanted)) for wanted in nodes.tolist()]
        return _Lines(weights, [self.by_length[node] for node in nearest], self.by_tau).unshrunk()


def _by_size(gaps: FloatArray, center: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split gaps (rows) into multiples of the center, which change its size, and the remainders."""
    parts = gaps @ center / max(float(center @ center), _LEAST)
    return parts, gaps - np.outer(parts, center)


@lru_cache(maxsize=8)
def gain_of_whole(ballots: ClippedBallots) -> FloatArray:
    """Return ``UnshrunkFit.gain`` for an indifferent crowd whose ballots are known to be whole, whatever the errors."""
    indifferent = np.zeros(ballots.directions)
    gains = []
    for tau in BALLOT_TAUS:
        slope = ballots.shown(indifferent, ballots.whole_told, tau)[1]
        carried = pooled_probit(ballots.dilemmas, indifferent, tau)[1]
        gains.append(np.linalg.solve(slope.T, carried.T).T)
    return np.asarray(np.mean(gains, axis=0), np.float64)


def _probable(ballots: ClippedBallots, told: float, variance: float) -> tuple[FloatArray, FloatArray]:
    """Return encoded lengths that represent their posterior, with their weights."""
    any_length = np.minimum((np.arange(_STEPS) + 0.5) / _STEPS, ballots.longest_told)
    surprise = (any_length - told) ** 2 / (2 * variance)
    likelihood = np.exp(surprise.min() - surprise)
    # In logarithms, against underflow: the likelihoods of whole ballots, of single records and of any length.
    named = np.array([ballots.whole_told, 0.0])
    logs = np.append(float(surprise.min()) - (named - told) ** 2 / (2 * variance), math.log(likelihood.mean()))
    chances = np.array([_WHOLE, _SINGLE, 1 - _WHOLE - _SINGLE]) * np.exp(logs - logs.max())
    chances /= chances.sum()
    passed = (np.cumsum(likelihood) - likelihood / 2) / likelihood.sum()
    parts = np.interp((np.arange(_PARTS) + 0.5) / _PARTS, passed, any_length)
    nodes = np.append(named, parts)
    weights = np.append(chances[:2], np.full(_PARTS, chances[2] / _PARTS))
    kept = weights >= _NEGLIGIBLE
    return nodes[kept], weights[kept] / weights[kept].sum()


@dataclass(frozen=True)
class _Line:
    """The posterior mode and the unshrunk estimate at one encoded length and one disagreement."""

    common: FloatArray
    """Posterior mode of b."""
    mean: FloatArray
    """Pooled probit of the mode."""
    covariance: FloatArray
    """Covariance of the normal approximation around ``mean``."""
    center: FloatArray
    gain: FloatArray
    """Derivative of the estimate with respect to the observations, at the mode."""
    bent: FloatArray
    """Linearisation error at the mode, along each axis."""


@dataclass(frozen=True)
class _Lines:
    """The fits at each encoded length, and at each disagreement."""

    weights: FloatArray
    """Weights of the lengths."""
    by_length: list[_Line]
    by_tau: list[_Line]
    """At the mean length, the usual disagreement first."""

    def unshrunk(self) -> UnshrunkFit:
        """Return the mean over disagreements, and its errors."""
        usual = self.by_tau[0]
        center = np.mean([line.center for line in self.by_tau], axis=0)
        apart = np.array([line.center - usual.center for line in self.by_length])
        sizes, turned = _by_size(np.array([line.center for line in self.by_tau]) - center, center)
        return UnshrunkFit(
            center=np.asarray(center, np.float64),
            gain=np.asarray(np.mean([line.gain for line in self.by_tau], axis=0), np.float64),
            stretch=np.asarray((apart.T * self.weights) @ apart, np.float64),
            doubt=np.asarray(np.abs(turned).max(axis=0) + usual.bent, np.float64),
            size=float(np.abs(sizes).max()),
        )

    def mixed(self) -> tuple[FloatArray, FloatArray]:
        """Return the mean and the covariance of the mixture of normals over lengths and disagreements."""
        lengths, differing = (np.array([line.mean for line in lines]) for lines in (self.by_length, self.by_tau))
        within = np.tensordot(self.weights, np.array([line.covariance for line in self.by_length]), 1)
        among_lengths = lengths - self.weights @ lengths
        among_crowds = differing - differing.mean(axis=0)
        mean = self.weights @ lengths + differing.mean(axis=0) - differing[0]
        spread = within + (among_lengths.T * self.weights) @ among_lengths
        spread += among_crowds.T @ among_crowds / len(self.by_tau)
        return np.asarray(mean, np.float64), np.asarray(spread, np.float64)


@dataclass(frozen=True)
class _Observations:
    """The observed means of ballots, and their precision."""

    ballots: ClippedBallots | CorrectedBallots
    observed: FloatArray
    precision: FloatArray

    def lines(self, nodes: FloatArray, weights: FloatArray, start: FloatArray) -> _Lines:
        """Fit at each of these encoded lengths with the usual disagreement, and at their mean with each one."""
        middle = float(weights @ nodes)
        usual = self.fit(middle, DISAGREEMENT, start, _MORE_ROUNDS)
        by_length = [self.fit(node, DISAGREEMENT, usual.common, _MORE_ROUNDS) for node in nodes.tolist()]
        others = [self.fit(middle, tau, usual.common, _MORE_ROUNDS) for tau in BALLOT_TAUS[1:]]
        return _Lines(weights, by_length, [usual, *others])

    def fit(self, told: float, tau: float, start: FloatArray, rounds: int) -> _Line:
        """Find the posterior mode of b by Gauss-Newton, and linearise near it."""
        k = len(self.observed)
        deviations = prior_deviations(k, self.ballots.left_out)
        prior = np.diag(deviations**-2)
        common = start
        for _ in range(rounds):
            expected, slope = self.ballots.shown(common, told, tau)
            spread = np.linalg.inv(slope.T @ self.precision @ slope + prior)
            step = spread @ (slope.T @ self.precision @ (self.observed - expected) - prior @ common)
            # The prior keeps the mode within a few units, so a longer step is an artefact of linearisation.
            step = step / max(1.0, float(np.abs(step / deviations).max()))
            common = common + step
            if np.abs(step).max() <= _SETTLED:
                break
        # Linearise at a point that shrinks to zero as the noise grows. At the mode itself, the noise would enter the
        # slope, and the estimate would not be linear.
        point = common - spread @ prior @ common
        expected, slope = self.ballots.shown(point, told, tau)
        passed, turned = pooled_probit(self.ballots.dilemmas, point, tau)
        line = np.asarray(np.linalg.solve(slope.T, turned.T).T, np.float64)
        shown, slope = self.ballots.shown(common, told, tau)
        pooled, carried = pooled_probit(self.ballots.dilemmas, common, tau)
        spread = np.linalg.inv(slope.T @ self.precision @ slope + prior)
        return _Line(
            common,
            pooled,
            np.asarray(carried @ spread @ carried.T, np.float64),
            passed + line @ (self.observed - expected),
            np.asarray(np.linalg.solve(slope.T, carried.T).T, np.float64),
            np.abs(pooled - passed - line @ (shown - expected)),
        )
