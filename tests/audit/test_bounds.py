"""Bounds on probabilities and on epsilon, against scipy's exact intervals."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from crowdveil.audit.bounds import at_least, at_most, least_epsilon


@pytest.mark.parametrize("hits", [0, 1, 7, 500, 999, 1000])
@pytest.mark.parametrize("miss", [1e-3, 1e-8])
def test_probabilities_are_clopper_and_pearsons(hits, miss):
    interval = binomtest(hits, 1000).proportion_ci(1 - 2 * miss, method="exact")
    assert at_least(np.array([hits]), 1000, miss)[0] == pytest.approx(interval.low, rel=1e-6, abs=1e-12)
    assert at_most(np.array([hits]), 1000, miss)[0] == pytest.approx(interval.high, rel=1e-6)


def test_epsilon_is_the_logarithm_of_the_ratio_of_the_bounds():
    low = binomtest(600, 1000).proportion_ci(1 - 1e-3, method="exact").low
    high = binomtest(200, 1000).proportion_ci(1 - 1e-3, method="exact").high
    proved = least_epsilon(np.array([600]), np.array([200]), 1000, 1e-3)[0]
    assert proved == pytest.approx(math.log(low / high), rel=1e-6)


def test_an_event_that_never_happens_on_one_side_proves_what_the_number_of_draws_allows():
    """All of 10,000 against none: by Clopper and Pearson's closed form, p >= m^(1/n) and p' <= 1 - m^(1/n)."""
    root = (5e-4) ** (1 / 10_000)
    proved = least_epsilon(np.array([10_000]), np.array([0]), 10_000, 1e-3)[0]
    assert proved == pytest.approx(math.log(root / (1 - root)), rel=1e-9)


def test_equal_counts_and_empty_events_prove_nothing():
    proved = least_epsilon(np.array([0, 300, 0]), np.array([0, 300, 900]), 1000, 1e-3)
    assert proved.tolist() == [0.0, 0.0, 0.0]
