"""What clipped ballots tell of a crowd where most of it is noise: the posterior, by importance sampling.

A ballot of many records says on which side a voter is, and hardly how far: beyond a small preference the clipped means
no longer grow. There the most probable preference is the least that explains what was seen, and a normal law around it
knows nothing of larger ones. So crowds are drawn: the size of margins, the lengths of ballots, how much voters differ,
and the preference b. Each counts by how likely it makes what was seen.

Preferences are drawn axis by axis from about where they are likely: if a crowd shows S erf(a t) of t along an axis,
with the slope at zero and the limit S of large preferences, prior times likelihood is a density on a line, of which
quantiles are taken in any order (Latin hypercube). The weights are those of the whole preference: its prior times the
likelihood of what it shows, over the density that it was drawn from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import erf

from crowdveil.arrays import FloatArray
from crowdveil.estimation.clipped_ballots import ClippedBallots
from crowdveil.estimation.pooled_probit import pooled_probit
from crowdveil.estimation.prior import margin_deviations

_CROWDS = 960
"""Drawn in all."""
_LINE = 161
"""Points of a line."""
_FAR = 4.0
"""Deviations of the prior that a line reaches."""
_TEMPER = 1.5
"""Crowds are drawn as if variances were so many times as large, lest likely ones are drawn too rarely."""
_FLOOR = 1e-3
"""Part of the prior that is mixed into what is drawn from."""
_SMALL, _LARGE = 0.05, 4.0
"""Preferences that slopes and limits are taken from."""
_LEAST = 1e-6
_SEED = 20_190_609


@dataclass(frozen=True)
class LikelyCrowds:
    """The posterior of a crowd."""

    common: FloatArray
    """Mean of b."""
    mean: FloatArray
    """Of the pooled probit."""
    covariance: FloatArray
    effective: float
    """As many crowds, all counting the same, would tell as much."""


def likely_crowds(
    ballots: ClippedBallots,
    lengths: Sequence[tuple[float, float]],
    taus: Sequence[float],
    observed: FloatArray,
    variances: FloatArray,
) -> LikelyCrowds:
    """Weigh crowds by the clipped means that were seen, with errors of these variances.

    ``lengths`` are told ones with their probabilities; disagreements ``taus`` are each as probable as the next.
    """
    k = len(observed)
    sizes = margin_deviations(k)
    each = 2 * max(_CROWDS // (2 * len(lengths) * len(taus) * len(sizes)), 1)
    shares = _shares(each, len(lengths) * len(taus) * len(sizes) * k).reshape(-1, each, k)
    crowds: list[FloatArray] = []
    logs: list[FloatArray] = []
    of_tau: list[FloatArray] = []
    for told, probability in lengths:
        probes = ballots.shown_by(np.vstack([_SMALL * np.eye(k), _LARGE * np.eye(k)]), told, taus[0])
        slopes, limits = np.diag(probes[:k]) / _SMALL, np.diag(probes[k:])
        for tau in taus:
            drawn = [
                _drawn(slopes, limits, size, observed, variances, shares[len(logs) * len(sizes) + place])
                for place, size in enumerate(sizes)
            ]
            here = np.concatenate([b for b, _ in drawn])
            miss = observed - ballots.shown_by(here, told, tau)
            crowds.append(here)
            logs.append(
                np.concatenate([log for _, log in drawn])
                - 0.5 * (miss**2 / variances).sum(axis=1)
                + math.log(probability)
            )
            of_tau.append(np.full(len(here), tau))
    every, log, differing = np.concatenate(crowds), np.concatenate(logs), np.concatenate(of_tau)
    weights = np.exp(log - log.max())
    weights /= weights.sum()
    pooled = np.empty_like(every)
    for tau in taus:
        rows = differing == tau
        middle = weights[rows] @ every[rows] / max(float(weights[rows].sum()), np.finfo(float).tiny)
        at_middle, carried = pooled_probit(ballots.dilemmas, middle, tau)
        pooled[rows] = at_middle + (every[rows] - middle) @ carried.T
    mean = weights @ pooled
    covariance = ((pooled - mean).T * weights) @ (pooled - mean)
    return LikelyCrowds(weights @ every, mean, covariance, 1 / float(weights @ weights))


def _drawn(
    slopes: FloatArray,
    limits: FloatArray,
    deviation: float,
    observed: FloatArray,
    variances: FloatArray,
    shares: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return preferences at these quantiles of about where they are likely, and the log of prior over density."""
    line = np.linspace(-_FAR, _FAR, _LINE) * deviation
    prior = np.exp(-0.5 * (line / deviation) ** 2)
    prior /= prior.sum()
    found, log_ratio = np.empty_like(shares), np.zeros(len(shares))
    for axis, (slope, limit) in enumerate(zip(slopes, np.maximum(limits, _LEAST), strict=True)):
        shows = limit * erf(line * slope * math.sqrt(math.pi) / (2 * limit))
        log = -((observed[axis] - shows) ** 2) / (2 * _TEMPER * variances[axis])
        density = prior * np.exp(log - log.max())
        density = (1 - _FLOOR) * density / density.sum() + _FLOOR * prior
        passed = np.cumsum(density)
        place = np.minimum(np.searchsorted(passed, shares[:, axis] * passed[-1], side="right"), _LINE - 1)
        inside = 1 - (passed[place] - shares[:, axis] * passed[-1]) / density[place]
        found[:, axis] = line[place] + (inside - 0.5) * (line[1] - line[0])
        log_ratio += np.log(prior[place] / density[place])
    return found, log_ratio


@lru_cache(maxsize=32)
def _shares(each: int, columns: int) -> FloatArray:
    """Return numbers in (0, 1), so many in each of the columns, evenly spread and in any order, and their opposites."""
    rng = np.random.default_rng(_SEED)
    half = each // 2
    order = rng.permuted(np.tile(np.arange(half), (columns, 1)), axis=1)
    spread = (order + rng.random((columns, half))).T / half
    return np.asarray(np.concatenate([spread, 1 - spread]), np.float64)
