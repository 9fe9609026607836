"""The compiler of the inner loops, and the three operations that Python cannot spell.

Every compiled function here promises the same bits on every processor. Hence no fast-math (the
compiler may not reorder a sum or fuse a product into it), no mathematical library (its last digit depends
on its version), and a dot product whose order of addition is part of its definition.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import cgutils, types
from numba.extending import intrinsic

_SOURCES = ("kernel", "probit", "quadratic_model", "active_set", "l1_ball")
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
