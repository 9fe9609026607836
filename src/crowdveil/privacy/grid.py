"""The public grid of integers on which everything that leaves is expressed.

Privacy proved for real numbers does not hold for floating-point ones (Mironov 2012). So a preference is
truncated onto whole steps of B / 2^30 and its norm is checked in integers: from there on the proof is about
integers, and depends neither on the optimiser having converged nor on a CPU's rounding.
"""

from __future__ import annotations

import numpy as np

from crowdveil.arrays import FloatArray, IntArray

STEPS = 2**30
"""Steps per norm bound B."""


def to_steps(values: FloatArray, norm_bound: float) -> IntArray:
    """Truncate vectors (rows) of l1 norm at most B onto the grid; the result's l1 norm is at most STEPS.

    Truncation is toward zero, so a norm cannot grow by rounding. Where float error left a norm above the
    bound all the same, the excess is taken off the largest coordinate: the promise is kept in integers,
    whatever came in.
    """
    if not np.isfinite(values).all():
        raise ValueError("a preference is not finite: this is a bug in the fit")
    scaled = np.clip(values / norm_bound, -1.0, 1.0) * STEPS
    steps = np.trunc(scaled).astype(np.int64)
    excess = np.maximum(np.abs(steps).sum(axis=1) - STEPS, 0)
    while excess.any():
        rows = np.flatnonzero(excess)
        largest = np.abs(steps[rows]).argmax(axis=1)
        entry = steps[rows, largest]
        steps[rows, largest] = np.sign(entry) * np.maximum(np.abs(entry) - excess[rows], 0)
        excess = np.maximum(np.abs(steps).sum(axis=1) - STEPS, 0)
    return steps


def from_steps(steps: IntArray | FloatArray, norm_bound: float) -> FloatArray:
    """Return grid steps as real numbers."""
    return np.asarray(steps, dtype=np.float64) * (norm_bound / STEPS)
