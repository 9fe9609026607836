"""Crowds that tell little or nothing: they are released all the same and the release says so, or nothing is spent."""

import json
from dataclasses import replace

import numpy as np
import pytest

import crowdveil as cv

pytestmark = pytest.mark.usefixtures("few_crowds")

PARADIGMS = ("vlcp", "rlcp", "alcp", "vldp", "rldp", "aldp")


def study(**changes):
    features = [
        {"name": "price", "low": 0, "high": 10, "levels": [1, 2]},
        {"name": "wait", "low": 0, "high": 60, "unit": 10, "levels": [5, 10, 20]},
    ]
    drawing = {"method": "independent", "dilemmas": 5}
    return cv.Study.from_dict(
        {"name": "soup", "title": "Soup", "question": "Which?", "drawing": drawing, "features": features, **changes}
    )


TWO, THREE = study(), study(indifference="Toss a coin")


@pytest.fixture
def ledger(tmp_path):
    return cv.Ledger.create(tmp_path / "l", 1000)


@pytest.mark.parametrize("paradigm", ["rlcp", "alcp", "vlcp", "aldp"])
@pytest.mark.parametrize("tau", [2.0, 3.0, None])
def test_a_crowd_that_mostly_tosses_a_coin_is_released_with_wide_intervals(paradigm, tau):
    """Without a tau, all of its choices are coins."""
    ballots = cv.simulate_crowd(THREE, 300, seed=1, tau=tau or 1.0)
    if tau is None:
        ballots = replace(ballots, choices=np.zeros_like(ballots.choices))
    assert np.mean(ballots.choices == 0) > 0.9
    for seed in range(4):
        made = cv.release_for_experiments(ballots, paradigm, epsilon=3, seed=seed)
        said = made.indifference
        assert 1.3 < said.low < said.tau < 3
        assert said.high - said.low > 0.05
        assert said.high > 1.8
        assert (made.intervals[:, 0] < 0).all()
        assert (made.intervals[:, 1] > 0).all()
        assert (np.diff(made.intervals) > 0.5).all()
        json.dumps(made.as_dict(), allow_nan=False)


@pytest.mark.parametrize("asked", [TWO, THREE])
@pytest.mark.parametrize("paradigm", PARADIGMS)
def test_a_crowd_that_was_asked_about_equal_alternatives_only_is_released_as_one_that_tells_nothing(
    asked, paradigm, ledger, tmp_path
):
    same = [[1, 10]] * 300
    choices = ["left"] * 300
    equal = cv.Ballots.from_arrays(asked, [f"v{i // 5}" for i in range(300)], same, same, choices)
    for seed in (1, 2):
        made = cv.release_for_experiments(equal, paradigm, epsilon=5, seed=seed)
        assert made.no_leaning_sentence is not None
        json.dumps(made.as_dict(), allow_nan=False)
        if paradigm in ("alcp", "aldp"):  # the dilemmas are public
            assert not made.known.any()
            assert made.parameter.tolist() == [0, 0]
    made = cv.release(equal, paradigm, epsilon=5, ledger=ledger)
    made.save(tmp_path / "r.json")
    assert cv.read_release(tmp_path / "r.json") == made


def test_a_crowd_of_any_size_is_released_where_all_dilemmas_are_alike():
    """One fact with two values: the crowd's own probit is exactly what its scores tell, up to rounding."""
    fact = {"name": "hurt", "low": 0, "high": 1, "levels": [0, 1]}
    for voters, epsilon in ((2, 0.01), (3000, 1)):
        asked = cv.simulate_crowd(study(features=[fact]), voters, seed=3)
        for seed in range(5):
            made = cv.release_for_experiments(asked, "rldp", epsilon=epsilon, seed=seed)
            json.dumps(made.as_dict(), allow_nan=False)


@pytest.mark.parametrize("paradigm", ["vldp", "rldp"])
def test_two_voters_are_released_whatever_their_devices_report_about(paradigm, ledger):
    """Of two reports, both are about the threshold or the reliability in one of thirteen crowds."""
    two = cv.simulate_crowd(study(indifference="Toss a coin", repeat=True), 2, seed=1)
    for seed in range(25):
        made = cv.release_for_experiments(two, paradigm, epsilon=1, seed=seed)
        assert made.facts["reports_about_indifference"] + made.facts["reports_about_reliability"] < 2
    cv.release(two, paradigm, epsilon=1, ledger=ledger)
