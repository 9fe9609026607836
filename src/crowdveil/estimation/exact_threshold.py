"""The crowd's preference and threshold, exactly and without privacy: what a release of three answers estimates.

They maximise the mean over voters of her mean ln P of what she answered, where with t = beta . (x - z)
P(x) = Phi(t - tau), P(z) = Phi(-t - tau), and the rest is neither. In (beta, tau) the logarithm of each of the three is
concave (an interval of a log-concave law), so there is one maximum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

from crowdveil.arrays import FloatArray
from crowdveil.ballots.ballots import BallotSource
from crowdveil.errors import ImpossibleEstimate
from crowdveil.estimation.crowd_preference import Weighting

_LEAST = 1e-9
_RIDGE = 1e-9
"""Keeps what never differs at zero, and moves nothing else."""


@dataclass(frozen=True)
class ExactThreshold:
    """The exact preference and threshold of a crowd. They protect nobody."""

    preference: FloatArray
    tau: float
    log_loss: float
    """The mean of -ln P of what was answered, at the maximum."""


def exact_threshold(source: BallotSource, *, weighting: Weighting = "voters") -> ExactThreshold:
    """Fit a crowd's preference and threshold to its three answers."""
    rows, choices, weights = [], [], []
    for batch in source.batches():
        rows.append(batch.dilemmas.astype(np.float64))
        choices.append(batch.choices.astype(np.float64))
        each = np.repeat(1 / batch.counts, batch.counts) if weighting == "voters" else np.ones(batch.records)
        weights.append(each)
    dilemmas, answered, weight = np.concatenate(rows), np.concatenate(choices), np.concatenate(weights)
    if not answered.any():
        raise ImpossibleEstimate("no choice was decided: a crowd's preference needs at least one")
    weight = weight / weight.sum()

    def loss(given: FloatArray) -> tuple[float, FloatArray]:
        beta = given[:-1]
        tau = float(given[-1])
        values, slopes, by_tau = _log_shares(dilemmas @ beta, tau, answered)
        gradient = np.concatenate([(weight * slopes) @ dilemmas, [weight @ by_tau]])
        penalty = np.concatenate([_RIDGE * beta, [0.0]])
        return float(-weight @ values + _RIDGE * (beta @ beta) / 2), penalty - gradient

    start = np.append(np.zeros(dilemmas.shape[1]), 0.3)
    bounds = [(None, None)] * dilemmas.shape[1] + [(_LEAST, None)]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-13, "gtol": 1e-9})
    values = _log_shares(dilemmas @ found.x[:-1], float(found.x[-1]), answered)[0]
    return ExactThreshold(np.asarray(found.x[:-1], np.float64), float(found.x[-1]), float(-weight @ values))


def _log_shares(margins: FloatArray, tau: float, choices: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ln P of each answer, and its slopes by the margin and by tau."""
    away = choices * margins - tau
    decided = log_ndtr(away)
    steep = np.exp(-0.5 * away**2 - decided) / np.sqrt(2 * np.pi)
    # The interval is read in the tail where it keeps its digits.
    low, high = -np.abs(margins) - tau, -np.abs(margins) + tau
    neither = np.maximum(ndtr(high) - ndtr(low), 1e-300)
    at_low, at_high = (np.exp(-0.5 * end**2) / np.sqrt(2 * np.pi) for end in (low, high))
    none = choices == 0
    slopes = np.where(none, -np.sign(margins) * (at_high - at_low) / neither, choices * steep)
    by_tau = np.where(none, (at_high + at_low) / neither, -steep)
    return np.where(none, np.log(neither), decided), slopes, by_tau
