"""Many releases of one crowd: the formulas by hand, the bars by simulation, the crossing by trying every number."""

import math

import numpy as np
import pytest

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.planning.repeated import repeated
from crowdveil.privacy.zcdp import epsilon_of

CROWD = {"epsilon": 1.0, "delta": 1e-6, "voters": 10_000, "features": 23, "norm_bound": 2.0}


def test_by_hand():
    found = repeated(52, **CROWD)
    assert epsilon_of(52 * found.gaussian.charge, 1e-6) == pytest.approx(1.0, rel=1e-6)
    assert found.laplace.charge == pytest.approx(1 / 52)
    assert found.laplace.error_bar == pytest.approx(2 * 2 * 52 / 10_000 * math.log(20))
    assert found.gaussian.error_bar == pytest.approx(
        1.959964 * 2 * 2 / 10_000 / math.sqrt(2 * found.rho / 52), rel=1e-6
    )
    assert found.better == "gaussian"


def test_the_bars_by_simulation():
    """Of 40,000 simulated releases, 95 % stay within each bar; five deviations of a share of 0.05 are 0.0055."""
    found, rng = repeated(7, **CROWD), np.random.default_rng(5)
    laplace = np.abs(rng.laplace(scale=2 * 2 * 7 / 10_000, size=(40_000, 23)))
    gaussian = np.abs(rng.normal(scale=found.gaussian.standard_deviation, size=(40_000, 23)))
    for noise, bars in ((laplace, found.laplace), (gaussian, found.gaussian)):
        assert math.sqrt(np.mean(noise**2)) == pytest.approx(bars.standard_deviation, rel=0.02)
        assert (noise[:, 0] <= bars.error_bar).mean() == pytest.approx(0.95, abs=0.0055)
        assert (noise.max(axis=1) <= bars.largest_error).mean() == pytest.approx(0.95, abs=0.0055)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (3.0, 1e-4)])
def test_gaussian_noise_pays_from_the_crossing_on(epsilon, delta):
    crowd = {**CROWD, "epsilon": epsilon, "delta": delta}
    crossing = repeated(1, **crowd).gaussian_better_from
    assert crossing > 1
    for releases in range(1, 3 * crossing):
        found = repeated(releases, **crowd)
        assert found.gaussian_better_from == crossing
        assert (found.gaussian.error_bar < found.laplace.error_bar) == (releases >= crossing)
        assert (found.better == "gaussian") == (releases >= crossing)


def test_about_ten_releases_at_epsilon_one():
    assert 8 <= repeated(1, **CROWD).gaussian_better_from <= 12


@pytest.mark.parametrize(
    "change", [{"releases": 0}, {"voters": 0}, {"features": 0}, {"epsilon": 0.0}, {"epsilon": math.nan},
               {"norm_bound": -1.0}, {"delta": 0.0}, {"delta": 1.0}],
)  # fmt: skip
def test_numbers_outside_their_range_are_refused(change):
    with pytest.raises(CrowdveilError, match="must be"):
        repeated(**{"releases": 5, **CROWD, **change})
