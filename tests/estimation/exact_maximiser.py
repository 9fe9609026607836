"""The maximiser of the regularised likelihood to 40 digits, proved by its optimality conditions.

Decimal arithmetic throughout. Given the right support and signs (any guess will do: a wrong one fails the proof),
Newton's method solves g_k(beta) = multiplier * sign_k on the support, together with ||beta||_1 = 1 or multiplier 0.
The likelihood is concave, so these conditions are sufficient: signs kept, multiplier >= 0, and |g_k| <= multiplier
off the support.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

DIGITS = 60


def exact_maximiser(records: np.ndarray, bound: float, ridge: float, guess: np.ndarray) -> np.ndarray:
    """beta / bound as Decimals; raises AssertionError if support or signs of `guess` are not the maximiser's."""
    with localcontext() as context:
        context.prec = DIGITS
        scaled = [[Decimal(float(v)) * Decimal(bound) for v in row] for row in records]
        support = [int(k) for k in np.flatnonzero(guess)]
        sign = [Decimal(1) if guess[k] > 0 else Decimal(-1) for k in support]
        beta = [Decimal(float(guess[k])) / Decimal(bound) for k in support]
        on_sphere = abs(1 - sum(abs(b) for b in beta)) < Decimal("1e-12")
        multiplier = Decimal(0)
        for _ in range(8):
            gradient, curvature = _derivatives(scaled, support, beta, Decimal(ridge))
            residual = [gradient[k] - multiplier * s for k, s in zip(support, sign, strict=True)]
            matrix = [row[:] for row in curvature]
            if on_sphere:
                matrix = [[*row, s] for row, s in zip(matrix, sign, strict=True)] + [[*sign, Decimal(0)]]
                residual.append(1 - sum(b * s for b, s in zip(beta, sign, strict=True)))
            step = _solve(matrix, residual)
            beta = [b + x for b, x in zip(beta, step, strict=False)]
            if on_sphere:
                multiplier += step[-1]
        gradient, _ = _derivatives(scaled, support, beta, Decimal(ridge))
        tiny = Decimal("1e-40")
        assert all(abs(gradient[k] - multiplier * s) < tiny for k, s in zip(support, sign, strict=True))
        assert all(b * s > 0 for b, s in zip(beta, sign, strict=True))
        assert multiplier >= 0
        assert sum(abs(b) for b in beta) <= 1 + tiny
        assert all(abs(g) <= multiplier + tiny for k, g in enumerate(gradient) if k not in support)
        exact = np.array([Decimal(0)] * records.shape[1])
        exact[support] = beta
        return exact


def _derivatives(scaled, support, beta, ridge):
    mills, weight = [], []
    for row in scaled:
        t = sum((b * row[k] for k, b in zip(support, beta, strict=True)), Decimal(0))
        m = _mills(t)
        mills.append(m)
        weight.append(m * (m + t))
    position = {k: a for a, k in enumerate(support)}
    gradient = [
        sum((m * row[k] for m, row in zip(mills, scaled, strict=True)), Decimal(0))
        - (ridge * beta[position[k]] if k in position else 0)
        for k in range(len(scaled[0]))
    ]
    curvature = [
        [sum((w * row[k] * row[i] for w, row in zip(weight, scaled, strict=True)), Decimal(0)) for i in support]
        for k in support
    ]
    for a in range(len(support)):
        curvature[a][a] += ridge
    return gradient, curvature


def _mills(t: Decimal) -> Decimal:
    """phi / Phi by Phi = 1/2 + phi (t + t^3/3 + t^5/15 + ...)."""
    density = (-t * t / 2).exp() / (2 * _PI).sqrt()
    term, total, i = t, t, 1
    while abs(term) > Decimal(10) ** -DIGITS:
        i += 2
        term *= t * t / i
        total += term
    return density / (Decimal("0.5") + density * total)


_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")


def _solve(matrix, right):
    """Gaussian elimination with pivoting."""
    rows = [[*row, r] for row, r in zip(matrix, right, strict=True)]
    size = len(rows)
    for i in range(size):
        pivot = max(range(i, size), key=lambda j: abs(rows[j][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(i + 1, size):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [x - factor * y for x, y in zip(rows[j], rows[i], strict=True)]
    solution = [Decimal(0)] * size
    for i in range(size - 1, -1, -1):
        known = sum((rows[i][j] * solution[j] for j in range(i + 1, size)), Decimal(0))
        solution[i] = (rows[i][size] - known) / rows[i][i]
    return solution
