"""The public grid of integers on which everything that leaves is expressed, and how far one neighbour can move it.

Privacy proved for real numbers does not hold for floating-point ones (Mironov 2012). So a preference is
truncated onto whole steps of B / 2^30 and its norm is checked in integers: from there on the proof is about
integers, and depends neither on the optimiser having converged nor on a CPU's rounding.

Sensitivities are a function per theorem, all in l1, for bounded neighbours: one voter (or one record) is replaced, the
numbers of voters and records stay the same.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar

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
    scaled = values / norm_bound
    np.clip(scaled, -1.0, 1.0, out=scaled)
    scaled *= STEPS
    steps = scaled.astype(np.int64)  # truncates
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


def sum_of_preferences() -> int:
    """Sensitivity of the sum of preferences, and of one voter's own, in grid steps (Theorems 1 and 3).

    Every preference lies in the l1 ball of STEPS steps. Replacing one voter's records, all of them or only
    one, moves that voter's preference from one point of the ball to another, and by the triangle inequality
    these are at most 2 STEPS apart. (On the mean of N voters this is the paper's 2B/N.) It is reached, for
    one record too: flip the only informative choice of a voter.
    """
    return 2 * STEPS


def papers_delta(dimension: int) -> float:
    """The paper's Delta_upper for the coefficients of Algorithm 3: 2 sqrt(2d/pi) + 2d/pi (Section 4.4)."""
    return 2 * math.sqrt(2 * dimension / math.pi) + 2 * dimension / math.pi


def tight_delta(dimension: int) -> float:
    """Bound the same sensitivity more tightly, by what two records can do together.

    Let a record of l2 norm at most 1 contribute c(V) = (sqrt(2/pi) V, (1/pi) V V'). For records V and W,
    ||V - W||_1 <= sqrt(d) ||V - W||_2 and ||VV' - WW'||_1 <= d ||VV' - WW'||_F (Cauchy-Schwarz), so

        ||c(V) - c(W)||_1 <= sqrt(2d/pi) ||V - W||_2 + (d/pi) ||VV' - WW'||_F.

    Write r and s for the norms and t for the angle. Scaling both records up increases both terms, so let
    r = 1 >= s. With x = -s cos t they are sqrt(1 + s^2 + 2x) and sqrt(1 + s^4 - 2x^2); replacing x by |x|
    only increases the first, and at a fixed x in [0, s] both increase with s. So the maximum has s = 1,
    where every x in [0, 1] is allowed. With x = -cos t again this is

        max over t in [pi/2, pi] of 2 sqrt(2d/pi) sin(t/2) + (d/pi) sqrt(2) sin t,

    which is 8.36 instead of 11.41 at d = 10 and 16.08 instead of 22.30 at d = 23. The function is concave on
    that interval (a sum of concave sines), so the search below finds its maximum; a relative 1e-9 is added
    for the search's tolerance.
    """
    first, second = 2 * math.sqrt(2 * dimension / math.pi), math.sqrt(2) * dimension / math.pi
    found = minimize_scalar(
        lambda t: -(first * math.sin(t / 2) + second * math.sin(t)),
        bounds=(math.pi / 2, math.pi),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(-found.fun) * (1 + 1e-9)


def coefficient_steps(dimension: int, delta: float) -> int:
    """Sensitivity in grid steps of Algorithm 3's integer coefficients, for a real-valued Delta.

    Each coefficient of each record is truncated toward zero onto the grid. For real x and y,
    |trunc x - trunc y| <= |x - y| + 1: with opposite signs both move toward each other, with equal signs
    each moves by less than 1 in the same direction. So truncation adds at most one step per coefficient.
    """
    coefficients = dimension + dimension * (dimension + 1) // 2
    return math.ceil(math.nextafter(delta * STEPS, math.inf)) + coefficients
