"""Which pairs are a factor's contrast, and who preferred which side there."""

import numpy as np
import pytest

from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.effects import (
    added_by_group,
    chosen_signs,
    contrasts,
    counts_of_voters,
    exact_moments,
    pair_signs,
    public_shares,
    ratio_of,
)
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study

STUDY = load_study("moral-machine")
FACTORS = [factor.name for factor in STUDY.factors]


def ballots(*rows):
    """Ballots of (voter, spared, other, scenario)."""
    voters, spared, other, scenarios = zip(*rows, strict=True)
    sides = [[STUDY.alternative(one, "x").values for one in column] for column in (spared, other)]
    return Ballots.from_arrays(STUDY, voters, *sides, [1] * len(rows), scenario=scenarios)


def test_of_a_designated_factor_only_its_scenario_counts():
    found = ballots(
        ("ann", {"woman": 2}, {"man": 2}, "Gender"),
        ("ann", {"man": 1}, {"woman": 1}, "Gender"),
        ("ann", {"woman": 1}, {"man": 2}, "Utilitarian"),
        ("bob", {"woman": 1, "legality": 1}, {"man": 1, "legality": -1}, None),
    )
    signs = chosen_signs(found)
    assert signs[:, FACTORS.index("gender")].tolist() == [1, -1, 0, 0]
    assert signs[:, FACTORS.index("number")].tolist() == [0, 0, -1, 0]
    assert signs[:, FACTORS.index("law")].tolist() == [0, 0, 0, 1]
    assert contrasts(STUDY, typed=True)[FACTORS.index("law")] == "pairs that differ in it"
    assert contrasts(STUDY, typed=True)[FACTORS.index("gender")] == "pairs of the scenario Gender"


def test_without_types_of_scenario_all_pairs_that_differ_count():
    left = np.array([STUDY.alternative({"woman": 2, "man": 1}, "x").values])
    right = np.array([STUDY.alternative({"man": 2}, "x").values])
    signs = pair_signs(STUDY, left - right)[0]
    assert signs[FACTORS.index("gender")] == 1
    assert signs[FACTORS.index("number")] == 1
    assert signs[FACTORS.index("age")] == 0
    assert set(contrasts(STUDY, typed=False)) == {"pairs that differ in it"}


def test_an_effect_is_a_difference_of_shares_and_its_interval_knows_voters():
    """Ann preferred women twice, Bob men once: (2 - 1) / 3. Voters are the draws, so the interval is that of two."""
    found = ballots(
        ("ann", {"woman": 1}, {"man": 1}, "Gender"),
        ("ann", {"girl": 1}, {"boy": 1}, "Gender"),
        ("bob", {"man": 1}, {"woman": 1}, "Gender"),
    )
    plus, minus = counts_of_voters(found)
    gender = FACTORS.index("gender")
    assert plus[:, gender].tolist() == [2, 0]
    assert minus[:, gender].tolist() == [0, 1]
    ratio = ratio_of(added_by_group(exact_moments(found), np.zeros(2, np.int64), 1)[0, gender])
    assert ratio.estimate == pytest.approx(1 / 3)
    # Residuals 2 - 2/3 and -1 - 1/3, squared, added up, times 2 / (2 - 1), over n (1 - e^2).
    assert ratio.clustering == pytest.approx(2 * ((4 / 3) ** 2 + (4 / 3) ** 2) / (3 * (1 - 1 / 9)))


def test_the_generator_keeps_the_types_of_scenario():
    (drawn,) = simulated_batches(STUDY, 300, np.random.default_rng(1))
    counts = np.bincount(drawn.scenarios.codes, minlength=7) / 300
    assert dict(zip(drawn.scenarios.labels, counts.tolist(), strict=True)) == {
        **dict.fromkeys(("Utilitarian", "Gender", "Fitness", "Age", "Social Status", "Species"), 2.0),
        "Random": 1.0,
    }
    signs = chosen_signs(drawn)
    gender = signs[:, FACTORS.index("gender")] != 0
    assert set(np.unique(drawn.scenarios.codes[gender])) == {1}


def test_public_shares_are_those_of_the_generator():
    """Two of thirteen dilemmas are about gender, and in each of these the two sides differ in it."""
    assert public_shares(STUDY, typed=True)[FACTORS.index("gender")] == pytest.approx(2 / 13, abs=1e-3)
    assert (public_shares(STUDY, typed=False) > public_shares(STUDY, typed=True) - 1e-12).all()
