"""Intervals, against SciPy's."""

import numpy as np
import pytest
from scipy import stats

from crowdveil.evaluation.toolkit import scores as intervals

RNG = np.random.default_rng(7)


def close(interval, expected):
    assert (interval.low, interval.high) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("crowds", [2, 10, 200])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.999])
def test_mean(crowds, confidence):
    values = RNG.normal(0.7, 0.1, crowds)
    close(intervals.mean(values, confidence), stats.ttest_1samp(values, 0).confidence_interval(confidence))


def test_difference_is_welchs():
    first, second = RNG.normal(0.7, 0.1, 30), RNG.normal(0.6, 0.3, 50)
    close(
        intervals.difference(first, second), stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    )
    assert intervals.difference(np.full(3, 0.5), np.full(4, 0.25)) == intervals.Interval(0.25, 0.25, 0.25)


def test_ratio_covers_the_truth():
    covered = 0
    rng = np.random.default_rng(8)  # its own: the draws do not depend on which tests ran before
    for _ in range(1000):
        baseline = rng.normal(0.9, 0.02, 40)
        interval = intervals.ratio(0.8 * baseline + rng.normal(0, 0.05, 40), baseline)
        covered += interval.low <= 0.8 <= interval.high
    # 95 % of 1,000, five standard deviations either way.
    assert 915 <= covered <= 985


def test_one_crowd_says_nothing():
    interval = intervals.mean(np.array([0.5]))
    assert (interval.low, interval.high) == (-np.inf, np.inf)
