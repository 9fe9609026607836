"""From counts to an epsilon: the least that is consistent with how often an event was seen.

A mechanism is epsilon-differentially private iff P(E | left) <= e^epsilon P(E | right) for all events E and all
neighbours left and right. So an event that was seen more often on one side than the other refutes every epsilon below
ln(p / p'), where p is at least and p' at most what the counts allow (Clopper and Pearson 1934, exact for any count).
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainccinv, betaincinv

from crowdveil.arrays import FloatArray, IntArray

SHOWN = 1e-3
"""Bounds are shown at 99.9 %: each is too high with at most this probability."""
JUDGED = 1e-8
"""A promise is called broken only by a bound that is too high with at most this probability, so that a whole audit
of some thirty trials raises a false alarm less than once in a million runs."""


def at_least(hits: IntArray, draws: int, miss: float) -> FloatArray:
    """Return a lower bound of the probability of an event that was seen ``hits`` times."""
    return np.where(hits == 0, 0.0, betaincinv(np.maximum(hits, 1), draws - hits + 1, miss))


def at_most(hits: IntArray, draws: int, miss: float) -> FloatArray:
    """Return an upper bound of the probability of an event that was seen ``hits`` times."""
    return np.where(hits == draws, 1.0, betainccinv(hits + 1, np.maximum(draws - hits, 1), miss))


def least_epsilon(hits: IntArray, others: IntArray, draws: int, miss: float, delta: float = 0.0) -> FloatArray:
    """Return lower bounds of epsilon from how often events were seen on one side and on the other.

    Each is too high with a probability of at most ``miss``, half of it spent on either count. A promise with a delta
    allows P(E | left) <= e^epsilon P(E | right) + delta, so delta is taken off first.
    """
    with np.errstate(divide="ignore"):
        more = np.maximum(at_least(hits, draws, miss / 2) - delta, 0.0)
        ratio = np.log(more) - np.log(at_most(others, draws, miss / 2))
    return np.asarray(np.maximum(ratio, 0.0))
