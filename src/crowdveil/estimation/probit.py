"""The probit (Thurstone-Mosteller) likelihood of one voter's records, compiled, and the compiler of the inner loops.

Every compiled function promises the same bits on every processor. Hence no fast-math (the
compiler may not reorder a sum or fuse a product into it), no mathematical library (its last digit depends
on its version), and a dot product whose order of addition is part of its definition.

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

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from crowdveil.arrays import FloatArray

_SOURCES = ("probit", "active_set", "l1_ball", "clipped_means")
_FINGERPRINT = hashlib.sha256(
    b"".join(Path(__file__).with_name(f"{name}.py").read_bytes() for name in _SOURCES)
).hexdigest()


def _compiler(forceinline: bool) -> Callable[[Callable[..., Any]], Any]:
    # Division by zero gives infinity, as in NumPy: a check for it is a branch, and branches stop vectorisation.
    compile_function = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=forceinline)

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = compile_function(function)
        # numba asks whether the file of a function has changed since it was compiled, but not those of the functions
        # that it calls: without this, an edited or updated solver would go on running as it was.
        cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
        if cache_file is not None:
            cache_file._source_stamp = (cache_file._source_stamp, _FINGERPRINT)
        return dispatcher

    return decorate


compiled = _compiler(forceinline=False)
inlined = _compiler(forceinline=True)

LANES = 4

_codegen: Any = cgutils  # numba's code generation helpers carry no types


@inlined
def padded(length: int) -> int:
    """The length rounded up to whole groups of lanes; what lies beyond the length is zero."""
    return (length + LANES - 1) // LANES * LANES


def _dot(typing_context: Any, x: Any, x_start: Any, y: Any, y_start: Any, length: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x_array, x_start, y_array, y_start, length = arguments
        ir = _codegen.ir
        lanes = ir.VectorType(ir.DoubleType(), LANES)

        def pointer_to(array: Any, array_type: Any, start: Any) -> Any:
            return builder.gep(context.make_array(array_type)(context, builder, array).data, [start])

        def load_lanes(pointer: Any, index: Any) -> Any:
            loaded = builder.load(builder.bitcast(builder.gep(pointer, [index]), lanes.as_pointer()))
            loaded.align = 8  # a double's: a row need not begin where a vector register would like it to
            return loaded

        x_pointer = pointer_to(x_array, signature.args[0], x_start)
        y_pointer = pointer_to(y_array, signature.args[2], y_start)
        sums = _codegen.alloca_once_value(builder, ir.Constant(lanes, [0.0] * LANES))
        zero, stride = (context.get_constant(types.intp, value) for value in (0, LANES))
        with _codegen.for_range_slice(builder, zero, length, stride) as (index, _):
            product = builder.fmul(load_lanes(x_pointer, index), load_lanes(y_pointer, index))
            builder.store(builder.fadd(builder.load(sums), product), sums)
        total = builder.load(sums)
        part = [builder.extract_element(total, ir.Constant(ir.IntType(32), lane)) for lane in range(LANES)]
        return builder.fadd(builder.fadd(part[0], part[1]), builder.fadd(part[2], part[3]))

    return types.float64(x, types.intp, y, types.intp, types.intp), generate


def _double_of_bits(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


def _bits_of_double(typing_context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


# dot(x, x_start, y, y_start, length): the sum over i < length of x.flat[x_start + i] * y.flat[y_start + i],
# for C-contiguous float64 arrays and a length that is a multiple of LANES; nothing is checked. It adds up four
# partial sums, over the indices 0, 1, 2 and 3 modulo 4, as (sum0 + sum1) + (sum2 + sum3). A plain loop has one
# order of addition too, but one that no vector instruction can follow: it takes three times as long.
dot: Any = intrinsic(_dot)

# The double whose 64 bits are this integer, and the integer whose 64 bits are this double.
double_of_bits: Any = intrinsic(_double_of_bits)
bits_of_double: Any = intrinsic(_bits_of_double)


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


@inlined
def share_and_density(t: float) -> tuple[float, float]:
    """Phi(t) to a relative error below 1e-13, and phi(t) to the last digits; zero where that is below 1e-307."""
    x = min(abs(t), _LARGEST_X)
    density = _INV_SQRT_2PI * _exp_of_minus(0.5 * x * x)
    tail = density * _polynomial9(_P, x) / (_Q[0] + x * _polynomial9(_Q[1:], x))
    return 1.0 - tail if t >= 0.0 else tail, density


@compiled
def _mills_and_weights(t: FloatArray, slopes: FloatArray, weights: FloatArray) -> None:
    for i in range(t.size):
        slopes[i], weights[i] = mills_and_weight(t[i])


@compiled
def _both_mills(t: FloatArray, above: FloatArray, below: FloatArray) -> None:
    for i in range(t.size):
        above[i], below[i] = mills(t[i]), mills(-t[i])


@compiled
def _leanings(t: FloatArray, leanings: FloatArray, slopes: FloatArray) -> None:
    for i in range(t.size):
        share, density = share_and_density(t[i])
        leanings[i], slopes[i] = 2 * share - 1, 2 * density


def slopes_and_weights(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``mills_and_weight`` of every margin."""
    return _of_each(_mills_and_weights, t)


def both_slopes(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return mills(t) and mills(-t) of every margin: how a choice for a side, and one against it, pull at the fit."""
    return _of_each(_both_mills, t)


def leanings(t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return 2 Phi(t) - 1 of every margin, the mean of a choice that is 1 or -1, and its derivative 2 phi(t)."""
    return _of_each(_leanings, t)


def _of_each(kernel: Callable[..., None], t: FloatArray) -> tuple[FloatArray, FloatArray]:
    flat = np.ascontiguousarray(t, np.float64).reshape(-1)
    first, second = np.empty_like(flat), np.empty_like(flat)
    kernel(flat, first, second)
    return first.reshape(np.shape(t)), second.reshape(np.shape(t))
