"""The share of a heterogeneous crowd that prefers one side of a dilemma, and the crowd's pooled probit.

If voters' own preferences are N(b', tau^2) along each of k axes, a random voter prefers x with probability
Phi(b' . x / sqrt(1 + tau^2 |x|^2)): the longer x, the more the margin varies between voters. Normalised to a dilemma of
the usual length sqrt(k), that is Phi(r b . x) with r = sqrt((1 + k tau^2) / (1 + tau^2 |x|^2)). This is not a probit.
So a method that weights long and short dilemmas differently from the pooled probit estimates a different preference; it
is corrected for a crowd with tau = DISAGREEMENT. How much the estimate would change for tau = 0, or for twice
DISAGREEMENT, counts as doubt.

The pooled probit gamma of such a crowd is the best probit approximation of its choices: with P(x) = Phi(r b . x), gamma
maximises the mean of P ln Phi(gamma . x) + (1 - P) ln Phi(-gamma . x) over dilemmas.
"""

from __future__ import annotations

import numpy as np

from crowdveil.arrays import FloatArray
from crowdveil.estimation.design import weighted_products, weighted_squares
from crowdveil.estimation.probit import both_slopes, leanings

DISAGREEMENT = 0.3
"""Assumed standard deviation tau of voters' own preferences around the common one, along each axis."""
OTHER_DISAGREEMENTS = (0.0, 2 * DISAGREEMENT)
_ROUNDS = 50
_SETTLED = 1e-6


def reach(along: FloatArray, tau: float) -> FloatArray:
    """Return r for dilemmas along the axes (rows)."""
    return reach_of(np.square(along).sum(axis=1), along.shape[1], tau)


def reach_of(norms: FloatArray, directions: int, tau: float) -> FloatArray:
    """Return r for dilemmas of these squared lengths along so many axes."""
    return np.asarray(np.sqrt((1 + tau**2 * directions) / (1 + tau**2 * norms)), np.float64)


def common_size(along: FloatArray, tau: float = DISAGREEMENT) -> float:
    """Return the size of b relative to gamma, for faint preferences, over dilemmas along the axes (rows)."""
    return common_size_of(np.square(along).sum(axis=1), along.shape[1], tau)


def common_size_of(norms: FloatArray, directions: int, tau: float = DISAGREEMENT) -> float:
    """Return the same over dilemmas of these squared lengths along so many axes.

    To first order in b, gamma is the least-squares fit of r b . x by gamma . x. So over dilemmas that are uncorrelated
    and of unit size along the axes, |gamma| is the mean of r |x|^2 / k times |b|, on average over the directions of b.
    """
    seen = float(reach_of(norms, directions, tau) @ norms)
    return float(norms.sum() / max(seen, np.finfo(float).tiny))


def expected_scores(scores: FloatArray, seen: FloatArray, common: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean score of the chosen side over dilemmas (rows), and its derivative in b.

    A row of ``scores`` is that of a dilemma x, a row of ``seen`` is r x.
    """
    leaning, slopes = leanings(seen @ common)
    return scores.T @ leaning / len(seen), (scores * slopes[:, None]).T @ seen / len(seen)


def pooled_probit(along: FloatArray, common: FloatArray, tau: float) -> tuple[FloatArray, FloatArray]:
    """Return gamma of a crowd with b and tau over dilemmas along the axes (rows), and its derivative in b.

    Uses Newton's method.
    """
    seen = along * reach(along, tau)[:, None]
    leaning, slopes = leanings(seen @ common)
    gamma = common
    for _ in range(_ROUNDS):
        stated = along @ gamma
        above, below = both_slopes(stated)
        pull = (above * (1 + leaning) - below * (1 - leaning)) / 2
        information = weighted_squares(along, above * below)
        step = np.linalg.solve(information, pull @ along / len(along))
        gamma = gamma + step
        if np.abs(step).max() <= _SETTLED:
            break
    moved = (above + below) * slopes / 2
    return gamma, np.asarray(np.linalg.solve(information, weighted_products(along, moved, seen)), np.float64)


def at_least(covariance: FloatArray, least: FloatArray) -> FloatArray:
    """Return the nearest positive semidefinite matrix, with its variances raised to at least those of ``least``."""
    sizes, vectors = np.linalg.eigh(covariance)
    positive = (vectors * np.maximum(sizes, 0.0)) @ vectors.T
    return np.asarray(positive + np.diag(np.maximum(np.diag(least) - np.diag(positive), 0.0)), np.float64)
