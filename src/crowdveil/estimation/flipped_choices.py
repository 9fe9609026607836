"""Fit the pooled probit to choices that were flipped with known probabilities.

The dilemmas x are public. A reported choice y (1 or -1) was flipped with probability f, so y / (1 - 2f) is an unbiased
estimate of the true choice, whatever that depends on. So the pooled probit gamma of the true choices solves, in
expectation,

    sum w x h(t) (y / (1 - 2f) - (2 P(x) - 1)) = 0,    t = gamma . x,

for any weights h, where P(x) is the share of the crowd that prefers x. With the probit's own h = phi / (Phi (1 - Phi)),
P may be replaced by Phi(t) whatever it is: that is the definition of the pooled probit. But if y is mostly noise, this
h puts most weight on long dilemmas, which are the least informative: with margins of size 1 the variance is up to three
times the optimum. The optimal h, if P is known, is that of the reported choices, phi / (Q (1 - Q)) with Q = f +
(1 - 2f) Phi(t). We take P to be that of a crowd whose voters differ (``disagreement``) and whose pooled probit is
gamma, which may be wrong. So we interpolate: h is that of choices flipped with probability f / (1 + n / FEW), where n
is the effective number of unflipped choices per axis. With many choices, or without flips, nothing is assumed about P.
The equation is solved by Gauss-Newton with the prior of ``prior``. The resulting likelihood is then combined with a
prior for every size of margins, since weak and strong preferences need different shrinkage.

Let H be the negated slope of the sum. The error of the unshrunk root is H^-1 times that of the sum. (The root is found
by one Newton step from a point that noise does not move far. Doubt covers the error of this step for a likely
preference, and the upward bias of roots from few choices, in proportion to directions over choices.) The sum's error
has two parts. The variance due to flips is known exactly, whatever was chosen: the sum of
w^2 h^2 x x' (1 / (1 - 2f)^2 - 1). The variance due to voters is estimated from the reports: the outer product of each
voter's whole sum, minus the part due to flips, and at least what it would be if a voter's choices were independent.
A voter who holds a part h of all choices draws the root to herself, so her outer product is divided by 1 - h (Bell and
McCaffrey 2002, with a scalar leverage).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.estimation.clipped_means import SIZES
from crowdveil.estimation.disagreement import DISAGREEMENT, OTHER_DISAGREEMENTS, at_least, reach
from crowdveil.estimation.prior import prior_deviation, rest_deviation
from crowdveil.estimation.probit import both_slopes, leanings

FEW = 100
"""Choices per axis at which noise and a wrong P affect a margin equally: by about a tenth of it."""
TELLING = 20
"""Effective number of unflipped choices per direction from which every direction is fitted.

The error of a direction is sqrt(pi / 2n), and the bound on one that is not measured is 0.28. On that ground alone,
measuring pays from 54 choices on. A normal distribution of the estimate takes more.
"""
_ROUNDS = 100
_NEAR = 1e-4
_LITTLE = 1e-6
_SETTLED = 1e-9
_LEAST = 1e-300


@dataclass(frozen=True)
class FlippedChoices:
    """Reported choices of some voters: a row of ``chosen`` is x - z along the axes, with x the reported choice."""

    chosen: FloatArray
    offsets: IntArray
    flip: FloatArray
    weight: FloatArray


@dataclass(frozen=True)
class ChoiceFit:
    """The pooled preference along the axes, and its uncertainty."""

    mean: FloatArray
    """Posterior mean, over all sizes of margins."""
    covariance: FloatArray
    center: FloatArray
    """The root without a prior."""
    noise: FloatArray
    """Covariance of the center due to flips, for these voters."""
    sampling: FloatArray
    """Covariance of the center due to the sampling of voters."""
    doubt: FloatArray
    """Bound on the center's bias along each axis: a wrong tau, the error of one step, and few choices."""
    freedom: int
    """Degrees of freedom of ``sampling``: one less than (sum n)^2 / sum n^2, with n choices (weighted) of a voter.

    A sum of squares with variances v has about (sum v)^2 / sum v^2 degrees of freedom (Satterthwaite 1946), and here v
    is proportional to n if a voter's choices are nearly independent. So a few long ballots leave few.
    """


def told_choices(groups: Sequence[FlippedChoices]) -> float:
    """Return the effective number of unflipped choices."""
    return sum(float(np.square(1 - 2 * group.flip).sum()) for group in groups)


def effective_number(parts: FloatArray) -> float:
    """Return the number of equal parts with the same sum of squares, given parts that sum to 1."""
    return float(1 / (parts @ parts))


def not_drawn(parts: FloatArray) -> FloatArray:
    """Return 1 - h for voters with parts h of the weight: at least 1/2, as for two equal voters."""
    return np.maximum(1 - parts, 0.5)


def _parts(groups: Sequence[FlippedChoices]) -> list[FloatArray]:
    """Return the part of the weight of all choices that each voter holds."""
    held = [np.add.reduceat(group.weight, group.offsets[:-1]) for group in groups]
    whole = sum(float(each.sum()) for each in held)
    return [np.asarray(each / whole, np.float64) for each in held]


def fit_flipped_choices(groups: Sequence[FlippedChoices], factors: int | None = None) -> ChoiceFit:
    """Fit one preference to the choices of all groups.

    The first ``factors`` axes (default: all) are those of factors; the others have a narrower prior.
    """
    directions = groups[0].chosen.shape[1]
    factors = directions if factors is None else factors
    deviation = prior_deviation(factors)
    left_out = directions - factors
    prior = np.diag(np.repeat([deviation, rest_deviation(left_out)], [factors, left_out]) ** -2.0)
    gamma = np.zeros(directions)
    equation = _Equation(groups, DISAGREEMENT, factors)
    for _ in range(_ROUNDS):
        at = equation.evaluate(gamma)
        told = at.slope @ np.linalg.inv(_invertible(at.coins + at.voters))
        step = np.linalg.solve(told @ at.slope + prior, told @ at.total - prior @ gamma)
        # The prior keeps the root within a few units, so a longer step is an artefact of linearisation.
        gamma = gamma + step / max(1.0, float(np.abs(step).max()) / deviation)
        if np.abs(step).max() <= _SETTLED:
            break
    at = equation.evaluate(gamma)
    reports = np.linalg.inv(_invertible(at.coins + at.voters))
    information = at.slope @ reports @ at.slope
    covariance = np.asarray(np.linalg.inv(information + prior), np.float64)
    mean, spread = _of_all_sizes(information, (information + prior) @ gamma, factors)
    count = told_choices(groups)
    point, likely = _point(equation, gamma, covariance, prior, deviation, count >= TELLING * directions)
    at, ahead = equation.evaluate(point), equation.evaluate(likely)
    inverse, carried = (np.linalg.inv(_invertible(each.slope)) for each in (at, ahead))
    others = [_Equation(groups, tau, factors).evaluate(point).total for tau in OTHER_DISAGREEMENTS]
    center = point + inverse @ at.total
    doubt = np.max([np.abs(inverse @ (other - at.total)) for other in others], axis=0)
    # The error of the step for a likely preference, and the upward bias of a root from few choices.
    doubt = doubt + np.abs(likely - point - inverse @ equation.leaning(point, likely))
    doubt = doubt + np.abs(center) * min(directions / max(count, 1.0), 1.0)
    return ChoiceFit(
        mean=mean,
        covariance=np.asarray(spread + np.diag(doubt**2) / 4, np.float64),
        center=np.asarray(center, np.float64),
        noise=np.asarray(carried @ ahead.coins @ carried, np.float64),
        sampling=np.asarray(carried @ ahead.voters @ carried, np.float64),
        doubt=np.asarray(doubt, np.float64),
        # Rounding must not lose one of equal voters.
        freedom=max(math.floor(effective_number(np.concatenate(_parts(groups))) + _LITTLE) - 1, 1),
    )


def _of_all_sizes(information: FloatArray, told: FloatArray, factors: int) -> tuple[FloatArray, FloatArray]:
    """Return the posterior mean and covariance for the likelihood N(y, I^-1), where I y = told, over all sizes.

    Given the size s of margins (``clipped_means.SIZES``), the prior is N(0, s^2 / k) along the axes of factors. With P
    its precision, the posterior is N((I + P)^-1 told, (I + P)^-1), and the weight of s is the square root of
    |P| / |I + P| times exp(told . mean / 2).
    """
    left_out = len(told) - factors
    logs, means, spreads = [], [], []
    for size in SIZES:
        deviation = size / math.sqrt(factors)
        prior = np.repeat([deviation, rest_deviation(left_out)], [factors, left_out]) ** -2.0
        spread = np.linalg.inv(information + np.diag(prior))
        mean = spread @ told
        logs.append(0.5 * (np.log(prior).sum() + np.linalg.slogdet(spread)[1] + told @ mean))
        means.append(mean)
        spreads.append(spread)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    middle = weights @ np.array(means)
    apart = np.array(means) - middle
    return middle, np.asarray(np.tensordot(weights, spreads, 1) + (apart.T * weights) @ apart, np.float64)


def _point(
    equation: _Equation, gamma: FloatArray, covariance: FloatArray, prior: FloatArray, deviation: float, telling: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the starting point of the unshrunk estimate's Newton step, and the likely preference it was shrunk from.

    The point shrinks to zero as the noise grows. At the posterior mode itself, the noise would enter the slope. If the
    choices suffice to estimate every direction (``telling``), only the flips count as noise, since the estimand is the
    preference of this crowd. The prior is then equally wide in all directions, and without flips the step ends at the
    root itself.
    """
    if telling:
        prior = np.eye(len(gamma)) / deviation**2
        for _ in range(_ROUNDS):
            at = equation.evaluate(gamma)
            told = at.slope @ np.linalg.inv(_invertible(at.coins + _LITTLE * at.voters))
            covariance = np.asarray(np.linalg.inv(told @ at.slope + prior), np.float64)
            step = covariance @ (told @ at.total - prior @ gamma)
            gamma = gamma + step / max(1.0, float(np.abs(step).max()) / deviation)
            if np.abs(step).max() <= _NEAR:
                break
    return gamma - covariance @ prior @ gamma, gamma


@dataclass(frozen=True)
class _Evaluation:
    """The estimating function at a preference, its negated slope, and its covariance due to flips and to voters."""

    total: FloatArray
    slope: FloatArray
    coins: FloatArray
    voters: FloatArray


class _Equation:
    """The estimating equation of a crowd whose voters differ by tau along the axes of factors."""

    def __init__(self, groups: Sequence[FlippedChoices], tau: float, factors: int) -> None:
        self._groups = groups
        self._tau = tau
        self._reaches = [reach(group.chosen[:, :factors], tau) for group in groups]
        self._common: FloatArray | None = None
        self._not_drawn = [not_drawn(parts) for parts in _parts(groups)]
        self._heed = 1 / (1 + told_choices(groups) / (FEW * factors))

    def evaluate(self, gamma: FloatArray) -> _Evaluation:
        """Evaluate the estimating equation at a preference."""
        common = self._behind(gamma)
        total = np.zeros(len(gamma))
        slope, coins, alone, clustered = (np.zeros((len(gamma), len(gamma))) for _ in range(4))
        for group, r, kept in zip(self._groups, self._reaches, self._not_drawn, strict=True):
            right = 1 - 2 * group.flip
            weights, density = self._weights(group, gamma)
            leaning, _ = leanings(r * (group.chosen @ common))
            by_voter = np.add.reduceat(
                group.chosen * (weights * (1 / right - leaning))[:, None], group.offsets[:-1], axis=0
            )
            total += by_voter.sum(axis=0)
            clustered += _weighted(by_voter, 1 / kept)
            slope += _weighted(group.chosen, 2 * weights * density)
            coins += _weighted(group.chosen, weights**2 * (1 / right**2 - 1))
            alone += _weighted(group.chosen, weights**2 * (1 - leaning**2))
        return _Evaluation(total, slope, coins, at_least(clustered - coins, alone))

    def leaning(self, gamma: FloatArray, other: FloatArray) -> FloatArray:
        """Return the expected sum at ``gamma`` for a crowd with preference ``other``."""
        total = np.zeros(len(gamma))
        here, there = self._behind(gamma), self._behind(other)
        for group, r in zip(self._groups, self._reaches, strict=True):
            weights, _ = self._weights(group, gamma)
            at_there, at_here = (leanings(r * (group.chosen @ b))[0] for b in (there, here))
            total += (weights * (at_there - at_here)) @ group.chosen
        return total

    def _weights(self, group: FlippedChoices, gamma: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return w h for each choice, and phi."""
        margins = group.chosen @ gamma
        flip = self._heed * group.flip
        seen = flip + (1 - 2 * flip) * ndtr(margins)
        density = np.exp(-0.5 * margins**2) / np.sqrt(2 * np.pi)
        unseen = flip + (1 - 2 * flip) * ndtr(-margins)  # 1 - seen would cancel
        return group.weight * density / np.maximum(seen * unseen, _LEAST), density

    def _behind(self, gamma: FloatArray) -> FloatArray:
        """Return the b of the crowd whose pooled probit is gamma: sum w x phi / (Phi (1 - Phi)) (P - Phi) = 0."""
        if self._tau == 0:
            return gamma
        common = gamma if self._common is None else self._common
        for _ in range(_ROUNDS):
            miss, slope = np.zeros(len(gamma)), np.zeros((len(gamma), len(gamma)))
            for group, r in zip(self._groups, self._reaches, strict=True):
                margins = group.chosen @ gamma
                seen = r * (group.chosen @ common)
                this, other = both_slopes(margins)
                leaning, steep = leanings(seen)
                miss += (group.weight / 2 * (other * (1 - leaning) - this * (1 + leaning))) @ group.chosen
                slope += _weighted(group.chosen, group.weight / 2 * (this + other) * steep * r)
            # Directions that never vary in these dilemmas stay put, and steps along a vanishing slope are cut.
            step = np.linalg.solve(_invertible(slope), miss)
            step = step / max(1.0, float(np.abs(step).max()))
            common = common + step
            if np.abs(step).max() <= _SETTLED:
                break
        self._common = common
        return common


def _invertible(moments: FloatArray) -> FloatArray:
    """Return moments with a small ridge, for directions that never vary."""
    size = float(np.trace(moments)) / len(moments)
    return np.asarray(moments + (_LITTLE * size + np.finfo(float).tiny) * np.eye(len(moments)), np.float64)


def _weighted(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted sum of the outer products of the rows."""
    return np.asarray((rows * weights[:, None]).T @ rows, np.float64)
