"""A crowd whose voters differ: what share of it prefers one side of a dilemma.

If voters' own preferences are N(b', tau^2) along each of k axes, a random voter prefers x with probability
Phi(b' . x / sqrt(1 + tau^2 |x|^2)): the longer a dilemma, the more of its margin is a matter of whom one asks. Stated
for a dilemma of the usual length sqrt(k), that is Phi(r b . x) with r = sqrt((1 + k tau^2) / (1 + tau^2 |x|^2)). It is
no probit, so methods that weigh long and short dilemmas otherwise than the pooled probit does find another preference,
and are corrected for a crowd of DISAGREEMENT. What they would have found for a crowd of one mind, or for one twice as
divided, is doubt.
"""

from __future__ import annotations

import numpy as np

from crowdveil.arrays import FloatArray

DISAGREEMENT = 0.3
"""Assumed deviation tau of voters' own preferences from the common one along each axis."""
OTHER_DISAGREEMENTS = (0.0, 2 * DISAGREEMENT)


def reach(along: FloatArray, tau: float) -> FloatArray:
    """Return r for dilemmas along the axes, a row each."""
    lengths = np.square(along).sum(axis=1)
    return np.asarray(np.sqrt((1 + tau**2 * along.shape[1]) / (1 + tau**2 * lengths)), np.float64)
