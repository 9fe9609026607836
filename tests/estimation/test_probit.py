""""""

import hashlib
import math
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from scipy.special import erf, erfcx, ndtr
from scipy.stats import norm

from crowdveil.estimation import l1_ball, probit
from crowdveil.estimation.probit import (
    LANES,
    bits_of_double,
    both_slopes,
    compiled,
    dot,
    double_of_bits,
    leanings,
    mills,
    mills_and_weight,
    padded,
    share_and_density,
    slopes_and_weights,
)

EVERYWHERE = np.concatenate([np.linspace(-45, 37.5, 3001), [-1e300, -1e12, -1e9, -1e8, -3e4, -1e3, -1e-9, 0.0, 1e-300]])


def reference_mills(t: float) -> float:
    """phi / Phi by the scaled complementary error function, which neither underflows nor cancels for t < 0."""
    if t < 0:
        return math.sqrt(2 / math.pi) / erfcx(-t / math.sqrt(2))
    return math.exp(-0.5 * t * t) / math.sqrt(2 * math.pi) / ndtr(t)


def test_mills_agrees_with_scipy_everywhere():
    ours = [mills(float(t)) for t in EVERYWHERE]
    np.testing.assert_allclose(ours, [reference_mills(t) for t in EVERYWHERE], rtol=2e-13)


def test_mills_keeps_nearly_all_digits_where_voters_are():
    middle = np.linspace(-8, 8, 2001)
    np.testing.assert_allclose([mills(float(t)) for t in middle], [reference_mills(t) for t in middle], rtol=5e-15)


def test_mills_closed_forms_and_limits():
    assert mills(0.0) == pytest.approx(math.sqrt(2 / math.pi), rel=1e-15)
    assert mills(40.0) == 0.0
    assert mills(-1e300) == 1e300
    assert math.isnan(mills(math.nan))


def test_weight_is_the_negated_derivative_of_mills():
    for t in np.linspace(-30, 8, 200):
        h = 1e-4
        numerical = (reference_mills(t - h) - reference_mills(t + h)) / (2 * h)
        assert mills_and_weight(float(t))[1] == pytest.approx(numerical, rel=1e-5, abs=1e-9)
    assert mills_and_weight(0.0)[1] == pytest.approx(2 / math.pi, rel=1e-15)


def test_weight_far_out_follows_its_expansion():
    for t in (-100.0, -999.0, -1001.0, -1e5, -1e12):
        assert mills_and_weight(t)[1] == pytest.approx(1 - 1 / t**2, abs=2e-6)
    assert mills_and_weight(50.0) == (0.0, 0.0)


def test_slopes_and_weights_are_the_derivatives_of_the_log_probability():
    margins = np.linspace(-30, 8, 200)
    slopes, weights = slopes_and_weights(margins)
    step = 1e-5
    numerical = (norm.logcdf(margins + step) - norm.logcdf(margins - step)) / (2 * step)
    np.testing.assert_allclose(slopes, numerical, rtol=1e-6, atol=1e-9)
    higher, lower = slopes_and_weights(margins + step)[0], slopes_and_weights(margins - step)[0]
    np.testing.assert_allclose(weights, (lower - higher) / (2 * step), rtol=1e-5, atol=1e-9)


def test_arrays_get_the_same_slopes_and_weights():
    far = np.array([-1e12, -2000.0, -999.0, *np.linspace(-30, 37, 500)])
    slopes, weights = slopes_and_weights(far)
    # t^2 / 2 = 685 in the exponent is rounded to 1e-16 of itself.
    np.testing.assert_allclose(slopes, [reference_mills(t) for t in far], rtol=1e-12)
    # mills + t loses digits in the lower tail: |t| eps in a sum of size 1 / |t|, so t^2 eps of a weight near 1.
    np.testing.assert_allclose(weights, [mills_and_weight(float(t))[1] for t in far], rtol=1e-8, atol=1e-300)


def test_both_slopes_are_those_of_a_choice_and_of_the_other():
    margins = np.linspace(-30, 30, 603).reshape(3, 201)
    for found, sign in zip(both_slopes(margins), (1, -1), strict=True):
        expected = np.exp(norm.logpdf(margins) - norm.logcdf(sign * margins))
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_leanings_are_the_mean_of_a_choice_and_its_slope():
    """Of arrays of any shape and order in memory."""
    margins = np.array([*np.linspace(-9, 9, 2002), -1e100, -40.0, 40.0, 1e100]).reshape(2, -1).T
    leaning, slope = leanings(margins)
    np.testing.assert_allclose(leaning, erf(margins / np.sqrt(2)), rtol=0, atol=1e-15)
    np.testing.assert_allclose(slope, 2 * norm.pdf(margins), rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("t", [-36.0, -5.0, -0.1, 0.0, 1e-9, 3.0, 8.5])
def test_a_share_keeps_its_digits_in_the_tail(t):
    share, density = share_and_density(t)
    assert share == pytest.approx(norm.cdf(t), rel=1e-13)
    assert density == pytest.approx(norm.pdf(t), rel=1e-13)


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
    folder = Path(probit.__file__).parent
    compiled_modules = {p.stem for p in folder.glob("*.py") if re.search(r"^@(compiled|inlined)$", p.read_text(), re.M)}
    assert compiled_modules <= set(probit._SOURCES)
    digest = hashlib.sha256(b"".join((folder / f"{name}.py").read_bytes() for name in probit._SOURCES)).hexdigest()
    assert l1_ball._fit_some._cache._cache_file._source_stamp[1] == digest
