"""The inner problem of `active_set`: a concave quadratic over the shares of a few atoms, compiled.

The atoms are signed coordinates. `gram` (lower triangle) is the negated matrix of second derivatives with respect
to these coordinates; it is at least RIDGE times the identity. Shares are not negative and sum up to one, together
with the slack, which is the share of the origin.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.estimation.kernel import inlined

RIDGE = 3.9e-6  # why it is there, and what it costs: see active_set

_PIVOT_ERROR = 1e-13  # of a pivot, relative to the entry it started from


@inlined
def maximise_model(
    active: IntArray, sign: FloatArray, start: FloatArray, share: FloatArray, residual: FloatArray, count: int,
    slack: float, origin: bool, level: float, gram: FloatArray, factor: FloatArray, step: FloatArray, unit: FloatArray,
) -> tuple[float, float, bool]:  # fmt: skip
    """Maximise the model over the shares of the `count` atoms, and of the origin if it is active.

    `residual` is the model's gradient in the coordinates and is kept up to date. Atoms whose share reaches zero are
    dropped: moved behind the others, together with their `start`. (A dropped atom that ought to come back is
    admitted again in the next iteration.) Returns the slack, the largest inverse pivot, and whether the way bent:
    whether something was dropped after the first move.
    """
    bent = False
    first: Any = np.int64(0)  # of a type: a literal zero would have what takes it compiled twice
    while True:
        flattest = _factorise(gram, first, count, factor)
        # Without the origin the step keeps the sum of the shares: it solves gram step = residual - multiplier sign,
        # where the multiplier makes sign . step vanish. Starting from the level keeps the numbers small.
        multiplier = 0.0 if origin else level
        for a in range(count):
            step[a] = residual[a] - multiplier * sign[a]
            unit[a] = sign[a]
        _solve(factor, count, step, unit)
        total, total_unit = 0.0, 0.0
        for a in range(count):
            total += sign[a] * step[a]
            total_unit += sign[a] * unit[a]
        if not origin:
            for a in range(count):
                step[a] -= total / total_unit * unit[a]
            total = 0.0

        length = 1.0
        blocker = -1
        if slack - total < 0.0:
            length = slack / total
            blocker = count
        for a in range(count):
            growth = sign[a] * step[a]
            if share[a] + length * growth < 0.0:
                length = share[a] / -growth
                blocker = a
        slack -= length * total
        for a in range(count):
            share[a] += length * sign[a] * step[a]
        if blocker < 0:
            return slack, flattest, bent

        if length > 0.0:
            bent = True
            for a in range(count):
                change = 0.0
                for b in range(a):
                    change += gram[a, b] * step[b]
                for b in range(a, count):
                    change += gram[b, a] * step[b]
                residual[a] -= length * change
        if blocker == count:
            origin = False
            slack = 0.0
            first = count
        else:
            share[blocker] = 0.0
            for a in range(count - 1, -1, -1):
                if share[a] == 0.0 and sign[a] * step[a] < 0.0:
                    _drop(a, count, active, sign, start, share, residual, gram)
                    count -= 1
                    first = a


@inlined
def _factorise(gram: FloatArray, first: int, count: int, factor: FloatArray) -> float:
    """gram = L D L': L and the inverse of D in `factor`, where rows before `first` are already right.

    Returns the largest entry of the inverse of D. No pivot can be below RIDGE, nor known better than to
    _PIVOT_ERROR: a pivot below these is rounding.
    """
    for a in range(first, count):
        for b in range(a):
            entry = gram[a, b]
            for c in range(b):
                entry -= factor[a, c] * factor[b, c]
            factor[a, b] = entry
        pivot = gram[a, a]
        for b in range(a):
            entry = factor[a, b]
            factor[a, b] = entry * factor[b, b]
            pivot -= entry * factor[a, b]
        factor[a, a] = 1.0 / max(pivot, RIDGE, _PIVOT_ERROR * gram[a, a])
    flattest = 0.0
    for a in range(count):
        flattest = max(flattest, factor[a, a])
    return flattest


@inlined
def _solve(factor: FloatArray, count: int, x: FloatArray, y: FloatArray) -> None:
    """Replace x and y by gram^-1 x and gram^-1 y."""
    for a in range(count):
        x_a, y_a = x[a], y[a]
        for b in range(a):
            x_a -= factor[a, b] * x[b]
            y_a -= factor[a, b] * y[b]
        x[a], y[a] = x_a, y_a
    for a in range(count):
        x[a] *= factor[a, a]
        y[a] *= factor[a, a]
    for a in range(count - 1, -1, -1):
        x_a, y_a = x[a], y[a]
        for b in range(a + 1, count):
            x_a -= factor[b, a] * x[b]
            y_a -= factor[b, a] * y[b]
        x[a], y[a] = x_a, y_a


@inlined
def _drop(
    position: int,
    count: int,
    active: IntArray,
    sign: FloatArray,
    start: FloatArray,
    share: FloatArray,
    residual: FloatArray,
    gram: FloatArray,
) -> None:
    """Move one atom behind the others, with a share of zero."""
    feature, direction, origin = active[position], sign[position], start[position]
    for a in range(position, count - 1):
        active[a] = active[a + 1]
        sign[a] = sign[a + 1]
        start[a] = start[a + 1]
        share[a] = share[a + 1]
        residual[a] = residual[a + 1]
        for b in range(position):
            gram[a, b] = gram[a + 1, b]
        for b in range(position, a + 1):
            gram[a, b] = gram[a + 1, b + 1]
    active[count - 1], sign[count - 1], start[count - 1], share[count - 1] = feature, direction, origin, 0.0
