import hashlib
import math
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from crowdveil.estimation import kernel, l1_ball
from crowdveil.estimation.kernel import LANES, bits_of_double, compiled, dot, double_of_bits, padded


@compiled
def call_dot(x, x_start, y, y_start, length):
    return dot(x, x_start, y, y_start, length)


@compiled
def call_bits(value):
    return bits_of_double(value)


@compiled
def call_double(bits):
    return double_of_bits(bits)


@pytest.mark.parametrize("length", [0, 4, 8, 52, 400])
def test_dot_adds_in_the_documented_order(length):
    rng = np.random.default_rng(length)
    x, y = rng.normal(size=(2, 7, 100)) * 10.0 ** rng.integers(-9, 9, (2, 7, 100))
    sums = [0.0] * LANES
    for i in range(length):
        sums[i % LANES] += float(x.flat[3 + i]) * float(y.flat[205 + i])
    assert call_dot(x, 3, y, 205, length) == (sums[0] + sums[1]) + (sums[2] + sums[3])


def test_dot_is_a_dot_product():
    x = np.random.default_rng(0).normal(size=64)
    assert call_dot(x, 0, x, 0, 64) == pytest.approx(math.fsum(x * x), rel=1e-14)


@pytest.mark.parametrize("value", [0.0, 1.0, -1.5, math.pi, 1e-310, -math.inf])
def test_bits_are_those_of_ieee_754(value):
    bits = struct.unpack("<q", struct.pack("<d", value))[0]
    assert call_bits(value) == bits
    assert call_double(bits) == value


def test_padded_is_the_next_multiple():
    assert [padded(n) for n in (0, 1, 4, 5, 13)] == [0, 4, 4, 8, 16]


def test_the_compiled_solver_is_tied_to_the_source_of_everything_it_calls():
    """Every module with a compiled function is fingerprinted, and numba's cache of the outermost one knows it."""
    folder = Path(kernel.__file__).parent
    compiled_modules = {p.stem for p in folder.glob("*.py") if re.search(r"^@(compiled|inlined)$", p.read_text(), re.M)}
    assert compiled_modules <= set(kernel._SOURCES)
    digest = hashlib.sha256(b"".join((folder / f"{name}.py").read_bytes() for name in kernel._SOURCES)).hexdigest()
    assert l1_ball._fit_some._cache._cache_file._source_stamp[1] == digest
