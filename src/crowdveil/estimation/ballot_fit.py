"""The crowd's preference from clipped means of ballots of any length, and what is not known of it.

Lengths are mixed by how probable they are: a priori, half that ballots are whole, one in ten that they are of one
record each, and otherwise that they are of any told length; times the likelihood of what was told. (Of single records
much less shows than of two: were they not probable as such, what is not known of lengths would make a preference too
small.) How much voters differ hardly matters for ballots of a dozen records, and
more than all else for ballots of hundreds: on which side a voter is who answered everything depends on b / tau only. So
tau is half, once, twice or four times DISAGREEMENT, each as probable as the next. (Fitted one by one, the kidney
study's voters differ by 0.3 to 1.2 along its axes.)

The posterior serves probabilities (``likely_crowds``); where so much is known that few of the drawn crowds explain it,
a normal law does. Bars and certainty are about the unshrunk estimate: a line in what was seen, at each length and each
tau. How far these are apart is told as well. A first fit tells where the model is to be corrected by simulation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.estimation.clipped_ballots import ClippedBallots, CorrectedBallots
from crowdveil.estimation.disagreement import DISAGREEMENT, pooled_probit
from crowdveil.estimation.likely_crowds import likely_crowds
from crowdveil.estimation.prior import prior_deviation

_WHOLE, _SINGLE = 0.5, 0.1
"""Prior probability that all ballots are whole, and that all are of one record."""
_PARTS = 4
"""Lengths that stand for those which are probable otherwise, each as probable as the next."""
_OTHER_PARTS = (0.5, 2.0, 4.0)
_STEPS = 400
_KNOWN = 1e-9
"""Variance of what is known."""
_ROUNDS, _MORE_ROUNDS = 30, 2
_SETTLED = 1e-3
_NEGLIGIBLE = 0.01
"""Lengths of less probability are left out."""
_ENOUGH = 50
"""From so many effective crowds on, the posterior is theirs."""


@dataclass(frozen=True)
class BallotFit:
    """The preference along the axes that explains clipped means, and what is not known of it."""

    mean: FloatArray
    """Posterior mean of the pooled probit."""
    covariance: FloatArray
    center: FloatArray
    """The estimate without a prior, linear in what was seen: its error is the gain times theirs."""
    gain: FloatArray
    """The derivative of the center in the clipped means."""
    stretch: FloatArray
    """Covariance of the center over what is not known of lengths."""
    doubt: FloatArray
    """How far the center may be off along each axis because voters differ more or less than assumed, but for its size,
    and because it is a line in what was seen."""
    size: float
    """How far its size may be off, relatively, because voters differ more or less than assumed."""


def fit_ballots(
    ballots: ClippedBallots, observed: FloatArray, covariance: FloatArray, told: float, told_variance: float
) -> BallotFit:
    """Fit to clipped means with errors of this covariance, and to the mean told length with its variance."""
    nodes, weights = _probable(ballots.whole_told, told, told_variance)
    taus = [DISAGREEMENT, *(part * DISAGREEMENT for part in _OTHER_PARTS)]
    lengths = list(zip(nodes.tolist(), weights.tolist(), strict=True))
    middle = float(weights @ nodes)
    precision = np.asarray(np.linalg.inv(covariance), np.float64)
    about = _Lines(ballots, observed, precision).fit(middle, DISAGREEMENT, np.zeros(len(observed)), _ROUNDS)
    corrected = ballots.near(about.common, middle, taus)
    likely = likely_crowds(corrected, lengths, taus, observed, np.diag(covariance))

    lines = _Lines(corrected, observed, precision)
    usual = lines.fit(middle, DISAGREEMENT, about.common, _MORE_ROUNDS)
    found = [lines.fit(node, DISAGREEMENT, usual.common, _MORE_ROUNDS) for node in nodes.tolist()]
    crowds = [usual, *(lines.fit(middle, tau, usual.common, _MORE_ROUNDS) for tau in taus[1:])]
    center = np.mean([crowd.center for crowd in crowds], axis=0)
    apart = np.array([fit.center - usual.center for fit in found])
    sizes, turned = _by_size(np.array([crowd.center for crowd in crowds]) - center, center)

    mean, spread = likely.mean, likely.covariance
    if likely.effective < _ENOUGH:
        mean, spread = _mixed(found, weights, crowds)
    return BallotFit(
        mean=mean,
        covariance=spread,
        center=np.asarray(center, np.float64),
        gain=np.asarray(np.mean([crowd.gain for crowd in crowds], axis=0), np.float64),
        stretch=np.asarray((apart.T * weights) @ apart, np.float64),
        doubt=np.asarray(np.abs(turned).max(axis=0) + usual.bent, np.float64),
        size=float(np.abs(sizes).max()),
    )


def _by_size(gaps: FloatArray, center: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Tell gaps (rows) from the center apart: by which part of it they make it longer, and what else they do."""
    parts = gaps @ center / max(float(center @ center), _KNOWN)
    return parts, gaps - np.outer(parts, center)


def fit_whole(ballots: ClippedBallots, observed: FloatArray, covariance: FloatArray) -> BallotFit:
    """Fit to clipped means of voters of whom it is known that their ballots are whole."""
    return fit_ballots(ballots, observed, covariance, ballots.whole_told, _KNOWN)


def _probable(whole: float, told: float, variance: float) -> tuple[FloatArray, FloatArray]:
    """Return told lengths that stand for all probable ones, and their weights."""
    any_length = (np.arange(_STEPS) + 0.5) / _STEPS
    surprise = (any_length - told) ** 2 / (2 * variance)
    likelihood = np.exp(surprise.min() - surprise)
    # In logarithms, lest any vanish: how likely whole ballots, single records and any length are, for their prior.
    named = np.array([whole, 0.0])
    logs = np.append(float(surprise.min()) - (named - told) ** 2 / (2 * variance), math.log(likelihood.mean()))
    chances = np.array([_WHOLE, _SINGLE, 1 - _WHOLE - _SINGLE]) * np.exp(logs - logs.max())
    chances /= chances.sum()
    passed = (np.cumsum(likelihood) - likelihood / 2) / likelihood.sum()
    parts = np.interp((np.arange(_PARTS) + 0.5) / _PARTS, passed, any_length)
    nodes, weights = np.append(named, parts), np.append(chances[:2], np.full(_PARTS, chances[2] / _PARTS))
    kept = weights >= _NEGLIGIBLE
    return nodes[kept], weights[kept] / weights[kept].sum()


@dataclass(frozen=True)
class _Line:
    """The most probable preference and the unshrunk estimate, at one told length and one disagreement."""

    common: FloatArray
    """The most probable b."""
    mean: FloatArray
    """Its pooled probit."""
    covariance: FloatArray
    """Of a normal law around it."""
    center: FloatArray
    gain: FloatArray
    """How noise moves the estimate, as the slope at the most probable b carries it."""
    bent: FloatArray
    """How far the line misses the most probable preference, along each axis."""


@dataclass(frozen=True)
class _Lines:
    """What was seen, and with which precision."""

    ballots: ClippedBallots | CorrectedBallots
    observed: FloatArray
    precision: FloatArray

    def fit(self, told: float, tau: float, start: FloatArray, rounds: int) -> _Line:
        """Find the most probable b by Gauss-Newton, and a line near it."""
        k = len(self.observed)
        deviation = prior_deviation(k)
        prior = np.eye(k) / deviation**2
        common = start
        for _ in range(rounds):
            expected, slope = self.ballots.shown(common, told, tau)
            spread = np.linalg.inv(slope.T @ self.precision @ slope + prior)
            step = spread @ (slope.T @ self.precision @ (self.observed - expected) - prior @ common)
            # The prior keeps the top within a few units: a longer step follows a slope that does not last.
            step = step / max(1.0, float(np.abs(step).max()) / deviation)
            common = common + step
            if np.abs(step).max() <= _SETTLED:
                break
        # A line through a point that is nearer to zero the more is noise: were it the most probable preference itself,
        # noise would bend the line.
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


def _mixed(found: list[_Line], weights: FloatArray, crowds: list[_Line]) -> tuple[FloatArray, FloatArray]:
    """Mix normal laws over lengths and disagreements."""
    lengths, differing = (np.array([line.mean for line in lines]) for lines in (found, crowds))
    within = np.tensordot(weights, np.array([line.covariance for line in found]), 1)
    among_lengths, among_crowds = lengths - weights @ lengths, differing - differing.mean(axis=0)
    mean = weights @ lengths + differing.mean(axis=0) - differing[0]
    spread = within + (among_lengths.T * weights) @ among_lengths + among_crowds.T @ among_crowds / len(crowds)
    return np.asarray(mean, np.float64), np.asarray(spread, np.float64)
