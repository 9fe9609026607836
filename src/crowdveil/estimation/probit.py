"""The probit (Thurstone-Mosteller) likelihood of one voter's records, and its derivatives.

A record is a row V_j = X_j - Z_j: the features of the chosen outcome minus those of the other. Under the
model the voter chose it with probability Phi(beta . V_j). With t = V beta, everything here is a function of
the inverse Mills ratio

    mills(t) = phi(t) / Phi(t),    (ln Phi)' = mills,    (ln Phi)'' = -mills (mills + t).

`mills` is evaluated with additions, multiplications, one division and the layout of IEEE doubles: no
mathematical library whose last digit differs between machines, and no branch, so that the compiler can
evaluate several records at once. The exact operations are fixed, so the result is the same bit for bit
whether or not it does.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx

from crowdveil.arrays import FloatArray
from crowdveil.estimation.kernel import bits_of_double, double_of_bits, inlined

# P(x)/Q(x), lowest coefficient first, is Mills' ratio (1 - Phi(x)) / phi(x) for all x >= 0 to a relative
# error of 8e-16: its interpolant at 20 Chebyshev points of (x - 3.6) / (x + 3.6), computed to 60 digits.
# Every coefficient is positive, so no digits cancel.
_P = (
    1.2533141373155001, 2.007294461916674, 1.5845105143229876, 0.7942674046007313, 0.27624965815936176,
    0.06891236531841631, 0.012338400206668232, 0.0015357354962260198, 0.00012168461053503696,
    4.759474691123115e-06,
)  # fmt: skip
_Q = (
    1.0, 2.39947382095125, 2.678759591596642, 1.8372992292980477, 0.8601559353461486, 0.28834468791036966,
    0.0704385818893115, 0.012460084816923789, 0.0015404949709188003, 0.00012168461053503324,
    4.759474691123117e-06,
)  # fmt: skip
# 1 + r + r^2 E(r) is exp(r) for |r| <= ln(2) / 2 to a relative error of 2e-17.
_E = (
    0.5000000000000001, 0.16666666666666669, 0.04166666666662413, 0.008333333333330062,
    0.0013888888917213717, 0.00019841269863053618, 2.4801521295954376e-05, 2.7557268459997064e-06,
    2.7620088445409746e-07, 2.510038549551032e-08,
)  # fmt: skip

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, held in the lowest bits
_INV_SQRT_2PI = 0.3989422804014327
_LARGEST_EXPONENT = 708.0  # exp(-708) is the smallest power that is not denormal
_LARGEST_X = 1e9  # mills(-x) = x + 1/x - ... is x to the last digit from here on


@inlined
def _polynomial9(c: tuple[float, ...], x: float) -> float:
    """c[0] + c[1] x + ... + c[9] x^9, arranged so that the products do not wait for each other."""
    x2 = x * x
    x4 = x2 * x2
    low = (c[0] + c[1] * x) + (c[2] + c[3] * x) * x2
    middle = (c[4] + c[5] * x) + (c[6] + c[7] * x) * x2
    return low + (middle + (c[8] + c[9] * x) * x4) * x4


@inlined
def _exp_of_minus(a: float) -> float:
    """exp(-a) for a >= 0, to 2 units in the last place; 0 where it would be denormal (a > 708)."""
    a_safe = min(a, _LARGEST_EXPONENT)
    shifted = _ROUNDER - a_safe * _LOG2_E
    k = shifted - _ROUNDER
    r = (-a_safe - k * _LN2_HIGH) - k * _LN2_LOW
    p = 1.0 + (r + r * r * _polynomial9(_E, r))
    two_to_k = double_of_bits((bits_of_double(shifted) + 1023) << 52)
    return p * two_to_k if a <= _LARGEST_EXPONENT else 0.0


@inlined
def mills(t: float) -> float:
    """The inverse Mills ratio phi(t) / Phi(t), to a relative error below 1e-13 for every t.

    Values below 1e-307 (t > 37.6) are given as zero.
    """
    x = min(abs(t), _LARGEST_X)
    p = _polynomial9(_P, x)
    q = _Q[0] + x * _polynomial9(_Q[1:], x)
    # t < 0: phi(x) / (1 - Phi(x)) = Q/P.  t >= 0: phi / (1 - phi P/Q) = phi Q / (Q - phi P).
    density = _INV_SQRT_2PI * _exp_of_minus(0.5 * x * x)
    above = t >= 0.0
    ratio = (density * q if above else q) / (q - density * p if above else p)
    return ratio if t > -_LARGEST_X else -t


@inlined
def mills_and_weight(t: float) -> tuple[float, float]:
    """mills(t), and the weight -(ln Phi)''(t) = mills (mills + t) in [0, 1] of a Newton step.

    The weight tends to 1 as t -> -infinity, where the sum loses its digits: below -1000 it is given as 1.
    """
    m = mills(t)
    return m, m * (m + t) if t > -1000.0 else 1.0


def slopes_and_weights(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``mills_and_weight`` of a whole array, by SciPy: phi(t) / Phi(t) = sqrt(2 / pi) / erfcx(-t / sqrt(2)).

    Its last digit may differ between machines: for estimates that are not promised bit for bit.
    """
    slopes = np.sqrt(2 / np.pi) / erfcx(-t / np.sqrt(2))
    return slopes, np.where(t > -1000.0, slopes * (slopes + t), 1.0)
