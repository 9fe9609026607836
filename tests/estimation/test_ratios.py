"""Intervals of ratios with noisy denominators, their differences, and which of many are there."""

import math

import numpy as np
import pytest
from scipy import stats

from crowdveil.estimation.ratios import Ratio, difference, told_apart

Z = stats.norm.ppf(0.975)


def exact(plus, pairs, clustering=1.0):
    return Ratio(2.0 * plus - pairs, float(pairs), 0.0, 0.0, 0.0, clustering)


@pytest.mark.parametrize(("plus", "pairs"), [(7, 10), (0, 12), (500, 1000), (1, 400)])
def test_without_noise_it_is_wilsons_interval_for_a_share(plus, pairs):
    share = stats.binomtest(plus, pairs).proportion_ci(0.95, method="wilson")
    assert exact(plus, pairs).interval() == pytest.approx((2 * share.low - 1, 2 * share.high - 1))


def test_clustered_pairs_count_as_so_many_fewer():
    few, many = exact(60, 100), exact(120, 200, clustering=2.0)
    assert many.interval() == pytest.approx(few.interval())


@pytest.mark.parametrize("ratio", [Ratio(40, 90, 60, 30, -20, 1.3), Ratio(-5, 60, 200, 100, 50, 1.0)])
def test_it_holds_every_effect_that_noise_and_sampling_explain(ratio):
    """Fieller's inequality, tried at ten thousand effects."""
    e = np.linspace(-1, 1, 10_001)
    noise = ratio.difference_variance - 2 * e * ratio.covariance + e**2 * ratio.pairs_variance
    allowed = Z**2 * (noise + ratio.pairs * ratio.clustering * (1 - e**2))
    held = e[(ratio.difference - e * ratio.pairs) ** 2 <= allowed]
    assert ratio.interval() == pytest.approx((held.min(), held.max()), abs=3e-4)


@pytest.mark.parametrize("pairs", [-3.0, 0.0, 19.0])
def test_where_pairs_cannot_be_told_from_none_nothing_is_known(pairs):
    ratio = Ratio(10.0, pairs, 100.0, 100.0, 0.0, 1.0)
    assert not ratio.known
    assert ratio.interval() == (-1.0, 1.0)
    assert ratio.standard_error == math.inf
    assert Ratio(10.0, 20.0, 100.0, 100.0, 0.0, 1.0).known


def test_the_standard_error_is_that_of_the_delta_method():
    ratio = Ratio(30.0, 100.0, 50.0, 20.0, 5.0, 1.5)
    variance = 50 - 2 * 0.3 * 5 + 0.09 * 20 + 100 * 1.5 * (1 - 0.09)
    assert ratio.standard_error == pytest.approx(math.sqrt(variance) / 100)


def test_a_difference_of_large_samples_is_the_usual_one():
    """Two shares of 0.62 and 0.55, of 20,000 and 30,000 pairs: Wald's interval is good enough there."""
    found = difference(exact(12_400, 20_000), exact(16_500, 30_000))
    error = 2 * math.sqrt(0.62 * 0.38 / 20_000 + 0.55 * 0.45 / 30_000)
    assert found.estimate == pytest.approx(0.14)
    assert (found.low, found.high) == pytest.approx((0.14 - Z * error, 0.14 + Z * error), abs=2e-4)
    assert found.p_value == pytest.approx(2 * stats.norm.sf(0.14 / error), rel=0.1)


def test_nothing_is_known_of_a_difference_from_an_unknown_effect():
    found = difference(exact(60, 100), Ratio(1.0, 2.0, 100.0, 100.0, 0.0, 1.0))
    assert (found.low, found.high, found.p_value) == (-2.0, 2.0, 1.0)


def test_differences_are_told_by_the_procedure_of_benjamini_and_hochberg():
    rng = np.random.default_rng(5)
    for _ in range(50):
        p_values = (rng.random(12) ** 3).tolist()
        adjusted = stats.false_discovery_control(p_values)
        assert told_apart(p_values) == (adjusted <= 0.05).tolist()
    assert told_apart([]) == []
