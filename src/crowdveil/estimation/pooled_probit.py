"""The pooled probit of a crowd whose voters differ: the gamma that comes nearest to what the crowd would choose.

Of a crowd of which the share P(x) = Phi(r b . x) prefers x (``disagreement``), it maximises the mean of
P ln Phi(gamma . x) + (1 - P) ln Phi(-gamma . x) over dilemmas, by Newton's method.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.estimation.disagreement import reach
from crowdveil.estimation.probit import slopes_and_weights

_ROUNDS = 50
_SETTLED = 1e-6


def pooled_probit(along: FloatArray, common: FloatArray, tau: float) -> tuple[FloatArray, FloatArray]:
    """Return gamma for a crowd of b and tau over dilemmas along the axes (rows), and its derivative in b."""
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
