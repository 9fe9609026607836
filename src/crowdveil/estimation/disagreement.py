"""A crowd whose voters differ: what share of it prefers one side of a dilemma.

If voters' own preferences are N(b', tau^2) along each of k axes, a random voter prefers x with probability
Phi(b' . x / sqrt(1 + tau^2 |x|^2)): the longer a dilemma, the more of its margin is a matter of whom one asks. Stated
for a dilemma of the usual length sqrt(k), that is Phi(r b . x) with r = sqrt((1 + k tau^2) / (1 + tau^2 |x|^2)). It is
no probit, so methods that weigh long and short dilemmas otherwise than the pooled probit does find another preference,
and are corrected for a crowd of DISAGREEMENT. What they would have found for a crowd of one mind, or for one twice as
divided, is doubt.

The pooled probit of such a crowd is the gamma that comes nearest to what it would choose: of a crowd of which the share
P(x) = Phi(r b . x) prefers x, it maximises the mean of P ln Phi(gamma . x) + (1 - P) ln Phi(-gamma . x) over dilemmas.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.estimation.probit import slopes_and_weights

DISAGREEMENT = 0.3
"""Assumed deviation tau of voters' own preferences from the common one along each axis."""
OTHER_DISAGREEMENTS = (0.0, 2 * DISAGREEMENT)
_ROUNDS = 50
_SETTLED = 1e-6


def reach(along: FloatArray, tau: float) -> FloatArray:
    """Return r for dilemmas along the axes, a row each."""
    lengths = np.square(along).sum(axis=1)
    return np.asarray(np.sqrt((1 + tau**2 * along.shape[1]) / (1 + tau**2 * lengths)), np.float64)


def pooled_probit(along: FloatArray, common: FloatArray, tau: float) -> tuple[FloatArray, FloatArray]:
    """Return gamma for a crowd of b and tau over dilemmas along the axes (rows), and its derivative in b.

    By Newton's method.
    """
    seen = along * reach(along, tau)[:, None]
    margins = seen @ common
    shares = ndtr(margins)
    gamma = common
    for _ in range(_ROUNDS):
        stated = along @ gamma
        above, below = slopes_and_weights(stated)[0], slopes_and_weights(-stated)[0]
        pull = above * shares - below * (1 - shares)
        information = (along * (above * below)[:, None]).T @ along
        step = np.linalg.solve(information, along.T @ pull)
        gamma = gamma + step
        if np.abs(step).max() <= _SETTLED:
            break
    moved = (above + below) * np.exp(-0.5 * margins**2) / np.sqrt(2 * np.pi)
    return gamma, np.asarray(np.linalg.solve(information, (along * moved[:, None]).T @ seen), np.float64)


def at_least(covariance: FloatArray, least: FloatArray) -> FloatArray:
    """Return the nearest covariance without negative variances, with at least the variances of ``least``."""
    sizes, vectors = np.linalg.eigh(covariance)
    positive = (vectors * np.maximum(sizes, 0.0)) @ vectors.T
    return np.asarray(positive + np.diag(np.maximum(np.diag(least) - np.diag(positive), 0.0)), np.float64)
