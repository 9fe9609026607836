"""Theorems 2 and 4: the formulas, the solver in every direction, and the promise itself by simulation.

Many releases of one crowd: the formulas by hand, the bars by simulation, the crossing by trying every number.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.planning.accuracy import compare_repeated, error_bound, solve_bound
from crowdveil.privacy.zcdp import epsilon_of

KNOWN = {"voters": 500, "features": 23, "norm_bound": 2.0, "epsilon": 0.5, "confidence": 0.9}


def test_theorem_2_by_hand():
    assert error_bound(**KNOWN) == pytest.approx(2 * 2 / (500 * 0.5) * math.log(23 / 0.1))


def test_theorem_4_is_theorem_2_for_one_voter():
    assert error_bound(1, 10, 2.0, 1.0, 0.95) == pytest.approx(4 * math.log(10 / 0.05))


@given(st.integers(1, 10**6), st.integers(1, 500), st.floats(0.01, 100), st.floats(0.01, 20), st.floats(0.01, 0.999))
def test_solving_for_each_number_gives_it_back(voters, features, norm_bound, epsilon, confidence):
    known = {"voters": voters, "features": features, "norm_bound": norm_bound, "epsilon": epsilon}
    whole = solve_bound(**known, confidence=confidence, error=None)
    numbers = {**known, "confidence": confidence, "error": whole.error}
    for name, value in numbers.items():
        if name == "features":
            numbers_with_slack = {**numbers, "error": whole.error * (1 + 1e-9)}
            assert solve_bound(**{**numbers_with_slack, name: None}).features == features
        elif name == "voters":
            assert solve_bound(**{**numbers, "error": whole.error * (1 + 1e-9), name: None}).voters == voters
        else:
            assert getattr(solve_bound(**{**numbers, name: None}), name) == pytest.approx(value, rel=1e-6)


def test_the_promise_holds_and_the_exact_confidence_is_exact():
    whole = solve_bound(**KNOWN, error=None)
    rng = np.random.default_rng(7)
    noise = rng.laplace(scale=2 * 2.0 / (500 * 0.5), size=(200_000, 23))
    held = (np.abs(noise).max(axis=1) <= whole.error).mean()
    deviation = math.sqrt(0.09 / 200_000)
    assert held >= 0.9 - 5 * deviation
    assert held == pytest.approx(whole.exact_confidence, abs=5 * deviation)


@pytest.mark.parametrize(
    "change", [{"epsilon": 0.0}, {"epsilon": math.nan}, {"confidence": 1.0}, {"voters": -3}, {"norm_bound": math.inf}]
)
def test_numbers_outside_their_range_are_refused(change):
    with pytest.raises(CrowdveilError, match="must be"):
        solve_bound(**{**KNOWN, "error": None, **change})


@pytest.mark.parametrize("given_numbers", [{**KNOWN, "error": 0.1}, {**KNOWN, "error": None, "voters": None}])
def test_exactly_one_number_is_left_out(given_numbers):
    with pytest.raises(CrowdveilError, match="exactly one"):
        solve_bound(**given_numbers)


def test_what_the_theorem_cannot_promise_is_said():
    with pytest.raises(CrowdveilError, match="promises nothing"):
        solve_bound(**{**KNOWN, "error": 1e-6, "confidence": None})
    with pytest.raises(CrowdveilError, match="not even one feature"):
        solve_bound(**{**KNOWN, "error": 1e-6, "features": None})


CROWD = {"epsilon": 1.0, "delta": 1e-6, "voters": 10_000, "features": 23, "norm_bound": 2.0}


def test_by_hand():
    found = compare_repeated(52, **CROWD)
    assert epsilon_of(52 * found.gaussian.charge, 1e-6) == pytest.approx(1.0, rel=1e-6)
    assert found.laplace.charge == pytest.approx(1 / 52)
    assert found.laplace.error_bar == pytest.approx(2 * 2 * 52 / 10_000 * math.log(20))
    assert found.gaussian.error_bar == pytest.approx(
        1.959964 * 2 * 2 / 10_000 / math.sqrt(2 * found.rho / 52), rel=1e-6
    )
    assert found.better == "gaussian"


def test_the_bars_by_simulation():
    """Of 40,000 simulated releases, 95 % stay within each bar; five deviations of a share of 0.05 are 0.0055."""
    found, rng = compare_repeated(7, **CROWD), np.random.default_rng(5)
    laplace = np.abs(rng.laplace(scale=2 * 2 * 7 / 10_000, size=(40_000, 23)))
    gaussian = np.abs(rng.normal(scale=2 * 2 / 10_000 / math.sqrt(2 * found.rho / 7), size=(40_000, 23)))
    for noise, bars in ((laplace, found.laplace), (gaussian, found.gaussian)):
        assert (noise[:, 0] <= bars.error_bar).mean() == pytest.approx(0.95, abs=0.0055)
        assert (noise.max(axis=1) <= bars.largest_error).mean() == pytest.approx(0.95, abs=0.0055)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (3.0, 1e-4)])
def test_gaussian_noise_pays_from_the_crossing_on(epsilon, delta):
    crowd = {**CROWD, "epsilon": epsilon, "delta": delta}
    crossing = compare_repeated(1, **crowd).gaussian_better_from
    assert crossing > 1
    for releases in range(1, 3 * crossing):
        found = compare_repeated(releases, **crowd)
        assert found.gaussian_better_from == crossing
        assert (found.gaussian.error_bar < found.laplace.error_bar) == (releases >= crossing)
        assert (found.better == "gaussian") == (releases >= crossing)


def test_about_ten_releases_at_epsilon_one():
    assert 8 <= compare_repeated(1, **CROWD).gaussian_better_from <= 12


@pytest.mark.parametrize(
    "change", [{"releases": 0}, {"voters": 0}, {"features": 0}, {"epsilon": 0.0}, {"epsilon": math.nan},
               {"norm_bound": -1.0}, {"delta": 0.0}, {"delta": 1.0}],
)  # fmt: skip
def test_numbers_of_releases_outside_their_range_are_refused(change):
    with pytest.raises(CrowdveilError, match="must be"):
        compare_repeated(**{"releases": 5, **CROWD, **change})
