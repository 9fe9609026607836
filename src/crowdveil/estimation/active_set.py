"""The fit of one voter in the l1 ball, compiled: Newton's method on the atoms that carry weight.

In units of the norm bound B, with the columns c_k = B V_k, the problem is

    maximise  sum_j ln Phi(t_j) - (RIDGE/2) ||beta||^2,   t = sum_k beta_k c_k,   subject to ||beta||_1 <= 1.

beta is a convex combination of atoms: signed unit vectors, whose weights are the shares |beta_k|, and the
origin, whose weight is the slack 1 - ||beta||_1. Let g be the gradient. beta is the maximiser if and only if
no atom's g . atom is above the level g . beta, and the gap max_k |g_k| - level bounds what is missing.

One iteration:
1. Evaluate the gradient and the level. Admit, with a share of zero, the steepest of the atoms above the level
   (and the origin if the level is negative).
2. Maximise the quadratic model at beta over the shares of the active atoms: Newton steps, each stopped where a
   share reaches zero; that atom is dropped and the others go on.
3. Walk to the model's maximiser, or less far if the likelihood falls before it is reached.
In the end no atom enters or leaves and the steps shrink quadratically: about five iterations a voter.

The ridge. Where the records do not tell two features apart, the likelihood has many maximisers, and they differ
by up to B in a coordinate. The ridge picks one: the same on every machine, for any order of features. It costs
less than 1e-6: at its maximiser the gap of the likelihood alone is at most RIDGE (max_k |beta_k| - ||beta||^2),
which is at most RIDGE / 4.

The inner problem of step 2 is a concave quadratic over the shares of a few atoms. `gram` (lower triangle) is the
negated matrix of second derivatives with respect to their coordinates; it is at least RIDGE times the identity. Shares
are not negative and sum up to one, together with the slack, which is the share of the origin.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crowdveil.arrays import FloatArray, IntArray
from crowdveil.estimation.probit import (
    bits_of_double,
    compiled,
    dot,
    double_of_bits,
    inlined,
    mills_and_weight,
    padded,
)

RIDGE = 3.9e-6  # why it is there, and what it costs: see above

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


_STEP_TOLERANCE = 2.5e-10  # on a share, estimated with room to spare; a release rounds shares to 2^-30 = 9e-10
_SHORT_STEP = 1e-8  # in predicted gain: a longer step is never the last
_GAP_TOLERANCE = 1e-9
_TINY = 1e-16  # a share below this is rounding
_OVERSHOOT = 0.3  # how steeply a step may end downhill, relative to how steeply it began uphill
_EPSILON = 2.2e-16
_MILLS_AT_0 = 0.7978845608028654


class Workspace(NamedTuple):
    """Arrays that `maximise` overwrites, so that a million voters need one allocation."""

    t: FloatArray  # per record
    mills: FloatArray
    weight: FloatArray
    move: FloatArray
    gradient: FloatArray  # per feature
    beta: FloatArray
    active: IntArray  # per active atom: its feature
    sign: FloatArray
    start: FloatArray
    share: FloatArray
    residual: FloatArray
    step: FloatArray
    unit: FloatArray
    gram: FloatArray  # per pair of active atoms
    factor: FloatArray


@compiled
def new_workspace(records: int, features: int) -> Workspace:
    """A workspace for voters of at most this many records."""
    n = padded(records)
    d = features
    return Workspace(
        np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(d), np.zeros(d),
        np.zeros(d, dtype=np.int64), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d),
        np.zeros((d, d)), np.zeros((d, d)),
    )  # fmt: skip


@compiled
def maximise(work: Workspace, columns: FloatArray, eagerness: float, most_iterations: int) -> tuple[int, bool]:
    """Leave the maximiser in work.beta and the gradient there in work.gradient.

    `columns` is features x padded records. Atoms are admitted if their gradient is at most `eagerness` of the
    way from the steepest down to the level; with eagerness 0, one at a time. Returns the number of iterations,
    and whether the end was reached within them.
    """
    d, n = columns.shape
    t, mills, weight, move, gradient, beta = work.t, work.mills, work.weight, work.move, work.gradient, work.beta
    active, sign, start, share, residual = work.active, work.sign, work.start, work.share, work.residual
    step, unit, gram, factor = work.step, work.unit, work.gram, work.factor
    for k in range(d):
        beta[k] = 0.0
    for j in range(n):
        t[j] = 0.0
        mills[j] = _MILLS_AT_0
        weight[j] = _MILLS_AT_0 * _MILLS_AT_0
    count: Any = np.int64(0)  # of a type: a literal zero would have what takes it compiled twice
    slack = 1.0
    settled = True  # beta maximises over the active atoms, to the tolerance
    smallest_gap = np.inf
    for iteration in range(1, most_iterations + 1):
        top = _fill_gradient(columns, mills, beta, gradient)
        level = 0.0
        for a in range(count):
            level += beta[active[a]] * gradient[active[a]]
        if settled and _GAP_TOLERANCE < top - level < 0.5 * smallest_gap:
            settled = False  # where columns are long a tiny step can still matter: go on while it helps
            smallest_gap = top - level

        before = count
        origin = slack > 0.0
        count = _admit(columns, mills, weight, gradient, beta, active, sign, count, level, top, settled, eagerness)
        if not origin and level < 0.0:
            origin = not settled or -level > _gradient_error(columns, mills, weight, beta, active, before, active[0])
        if settled and count == before and origin == (slack > 0.0):
            return iteration, True

        _fill_gram(columns, weight, move, active, count, gram)
        for a in range(count):
            start[a] = beta[active[a]]
            share[a] = abs(start[a])
            residual[a] = gradient[active[a]]
        target_slack, flattest, bent = maximise_model(
            active, sign, start, share, residual, count, slack, origin, level, gram, factor, step, unit
        )

        gained = target_slack > slack == 0.0
        gain = 0.0
        for j in range(n):
            move[j] = 0.0
        for a in range(count):
            k = active[a]
            gained |= start[a] == 0.0 and share[a] > _TINY
            step[a] = sign[a] * share[a] - start[a]
            gain += step[a] * gradient[k]
            for j in range(n):
                move[j] += step[a] * columns[k, j]
        if settled and not gained:
            return iteration, True
        settled = not bent and gain < _SHORT_STEP
        if settled and _next_step(n, t, move, gain, flattest) > _STEP_TOLERANCE:
            error = 0.0
            for a in range(count):
                error = max(error, _gradient_error(columns, mills, weight, beta, active, count, active[a]))
            settled = gain <= count * flattest * error * error  # no more than rounding alone would promise
        slack = _walk(
            columns, active, sign, start, share, step, count, slack, target_slack, gain, settled,
            move, beta, t, mills, weight,
        )  # fmt: skip

        kept = 0
        for a in range(count):
            if beta[active[a]] != 0.0:
                active[kept] = active[a]
                sign[kept] = sign[a]
                kept += 1
        count = kept
    _fill_gradient(columns, mills, beta, gradient)
    return most_iterations, False


@inlined
def _evaluate(
    columns: FloatArray,
    beta: FloatArray,
    active: IntArray,
    count: int,
    t: FloatArray,
    mills: FloatArray,
    weight: FloatArray,
) -> None:
    """t, and each record's inverse Mills ratio and Newton weight, at beta."""
    n = columns.shape[1]
    for j in range(n):
        t[j] = 0.0
    for a in range(count):
        k = active[a]
        for j in range(n):
            t[j] += beta[k] * columns[k, j]
    for j in range(n):
        mills[j], weight[j] = mills_and_weight(t[j])


@inlined
def _fill_gradient(columns: FloatArray, mills: FloatArray, beta: FloatArray, gradient: FloatArray) -> float:
    """The gradient at beta; returns its largest magnitude."""
    d, n = columns.shape
    for k in range(d):
        gradient[k] = dot(mills, 0, columns, k * n, n) - RIDGE * beta[k]
    top = 0  # doubles that are not negative are ordered like their bits, and integers compare in vectors
    for k in range(d):
        top = max(top, bits_of_double(abs(gradient[k])))
    return float(double_of_bits(top))


@compiled
def _gradient_error(
    columns: FloatArray, mills: FloatArray, weight: FloatArray, beta: FloatArray, active: IntArray, count: int, k: int
) -> float:
    """The most that rounding in t and in the sum over records can add to the gradient of feature k."""
    error = 0.0
    for j in range(columns.shape[1]):
        t_terms = 0.0
        for a in range(count):
            t_terms += abs(beta[active[a]] * columns[active[a], j])
        error += (mills[j] + weight[j] * t_terms) * abs(columns[k, j])
    return _EPSILON * error


@inlined
def _admit(
    columns: FloatArray, mills: FloatArray, weight: FloatArray, gradient: FloatArray, beta: FloatArray,
    active: IntArray, sign: FloatArray, count: int, level: float, top: float, settled: bool, eagerness: float,
) -> int:  # fmt: skip
    """Append the steepest atoms above the level; once settled, only if rounding cannot explain their height."""
    before = count
    threshold = top - eagerness * (top - level)
    for k in range(columns.shape[0]):
        height = abs(gradient[k])
        if height >= threshold and height > level and beta[k] == 0.0:
            if settled and height - level <= _gradient_error(columns, mills, weight, beta, active, before, k):
                continue
            active[count] = k
            sign[count] = 1.0 if gradient[k] > 0.0 else -1.0
            count += 1
            if eagerness == 0.0:
                break
    return count


@inlined
def _fill_gram(
    columns: FloatArray, weight: FloatArray, weighted: FloatArray, active: IntArray, count: int, gram: FloatArray
) -> None:
    """The negated second derivatives in the active coordinates (lower triangle)."""
    n = columns.shape[1]
    for a in range(count):
        k = active[a]
        for j in range(n):
            weighted[j] = weight[j] * columns[k, j]
        for b in range(a + 1):
            gram[a, b] = dot(weighted, 0, columns, active[b] * n, n)
        gram[a, a] += RIDGE


@inlined
def _next_step(n: int, t: FloatArray, move: FloatArray, gain: float, flattest: float) -> float:
    """An estimate of the Newton step after this one, as a share.

    While t moves by dt, a record's weight changes by a factor of at most exp(|dt| (1 + |t|)) or so; that relative
    change of the second derivatives is also that of the next step against this one, in the norm in
    which this step's square is its gain. `flattest` turns that norm into shares.
    """
    bend = 0.0
    for j in range(n):
        bend = max(bend, abs(move[j]) * (1.0 + abs(t[j])))
    return float(bend * np.sqrt(max(gain, 0.0) * flattest))


@inlined
def _walk(
    columns: FloatArray, active: IntArray, sign: FloatArray, start: FloatArray, share: FloatArray, step: FloatArray,
    count: int, slack: float, target_slack: float, gain: float, settled: bool,
    move: FloatArray, beta: FloatArray, t: FloatArray, mills: FloatArray, weight: FloatArray,
) -> float:  # fmt: skip
    """Set beta on the way from start to the target shares, evaluate there, and return the slack.

    All the way if the objective does not fall too steeply there; otherwise to where its slope nearly vanishes,
    found by Newton's method within a bracket.
    """
    n = columns.shape[1]
    ridge_slope = 0.0
    ridge_curve = 0.0
    for a in range(count):
        ridge_slope += RIDGE * step[a] * start[a]
        ridge_curve += RIDGE * step[a] * step[a]
    length, low, high = 1.0, 0.0, 1.0
    while True:
        total = 0.0
        for a in range(count):
            x = share[a] if length == 1.0 else sign[a] * (start[a] + length * step[a])
            if x < _TINY:
                x = 0.0
            beta[active[a]] = sign[a] * x
            total += x
        new_slack = 1.0 - total
        on_sphere = target_slack == 0.0 and (length == 1.0 or slack == 0.0)
        if (on_sphere or new_slack < _TINY) and total > 0.0:
            new_slack = 0.0
            for a in range(count):
                beta[active[a]] /= total
        _evaluate(columns, beta, active, count, t, mills, weight)
        slope = dot(mills, 0, move, 0, n) - ridge_slope - length * ridge_curve
        if slope < -_OVERSHOOT * gain:
            high = length
        elif slope > _OVERSHOOT * gain and length < 1.0:
            low = length
        else:
            return new_slack
        if settled or high - low < _TINY:
            return new_slack
        curve = ridge_curve
        for j in range(n):
            curve += weight[j] * move[j] * move[j]
        length += slope / curve
        if not low < length < high:
            length = 0.5 * (low + high)
