"""A mean that a few lying voters cannot move far.

A report with unbounded noise may be any number, so one liar could send a huge one. Two controls limit liars: reports
that honest devices practically never send are refused (``within_reach``), and, where asked for, the most extreme share
of the reports at each end of each coordinate is pulled in to where the others end (a Winsorised mean). Honest noise is
symmetric, so pulling in both ends alike leaves the mean where it is; the price is a slightly different variance.
"""

from __future__ import annotations

import math

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray, IntArray
from crowdveil.privacy.epsilon import Epsilons

HONEST_EXCESS = 1e-12
"""An honest report is refused with at most this probability for each of its numbers."""


def within_reach(values: IntArray, largest: IntArray, sensitivity: int, epsilons: Epsilons, terms: int) -> BoolArray:
    """Say for each report (row) whether its numbers could have been made by an honest device.

    ``largest`` bounds each voter's exact numbers. The noise is Laplace (``terms`` = 1) or a coordinate of cube noise,
    whose radius is a sum of ``terms`` = m + 1 exponentials; such a sum exceeds x with a probability of at most
    (e x / terms)^terms e^-x, in units of sensitivity / epsilon (Chernoff), which is solved for x.
    """
    x = float(terms)
    for _ in range(100):
        x = -math.log(HONEST_EXCESS) + terms * (1 + math.log(x / terms))
    reach = largest + np.ceil(x * sensitivity * 1e6 / epsilons.micro).astype(np.int64)
    return np.asarray((np.abs(values) <= reach[:, None]).all(axis=1))


def winsorised(estimates: FloatArray, weights: FloatArray, reported: BoolArray, share: float) -> FloatArray:
    """Pull the lowest and highest ``share`` (by weight) of the reported numbers of each coordinate in."""
    result = estimates.copy()
    for k in range(estimates.shape[1]):
        rows = np.flatnonzero(reported[:, k])
        order = rows[np.argsort(estimates[rows, k], kind="stable")]
        mass = np.cumsum(weights[order])
        inner = (
            order[(mass > share * mass[-1]) & (mass - weights[order] < (1 - share) * mass[-1])] if len(order) else order
        )
        if len(inner):
            result[rows, k] = np.clip(estimates[rows, k], estimates[inner[0], k], estimates[inner[-1], k])
    return result
