"""Which pairs are a factor's contrast, and who preferred which side there."""

import numpy as np
import pytest
from scipy import stats

from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.effects import (
    added_by_group,
    chosen_signs,
    contrasts,
    counts_of_voters,
    exact_moments,
    moments,
    pair_signs,
    public_shares,
    ratio_of,
)
from crowdveil.estimation.ratios import Ratio, difference
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
    # Residuals 2 - 2/3 and -1 - 1/3, squared, added up, times 2 / (2 - 1), over n (1 - e^2); one degree of freedom.
    widened = (stats.t.ppf(0.975, 1) / stats.norm.ppf(0.975)) ** 2
    assert ratio.clustering == pytest.approx(widened * 2 * ((4 / 3) ** 2 + (4 / 3) ** 2) / (3 * (1 - 1 / 9)))


def summed(differences, pairs):
    """The moments of voters whose answers bear no noise."""
    return moments(np.array(differences, float), np.array(pairs, float), np.zeros(len(pairs))).sum(axis=0)


def drawn(lengths, rng):
    """The moments of as many voters, whose choices are correlated by 0.2; the effect is 0.3."""
    chances = rng.beta(0.65 * 4, 0.35 * 4, len(lengths))
    return summed(2 * rng.binomial(lengths, chances) - lengths, lengths)


def test_voters_with_many_pairs_leave_fewer_degrees_of_freedom():
    """Of 40 pairs 20 are of two voters: 40^2 / (2 * 10^2 + 20 * 1^2) voters with equally many pairs."""
    pairs = np.array([10.0] * 2 + [1.0] * 20)
    signs = np.array([1.0, -1.0] * 11)
    freedom = 1600 / 220 - 1
    widened = (stats.t.ppf(0.975, freedom) / stats.norm.ppf(0.975)) ** 2
    found = ratio_of(summed(signs * pairs, pairs))
    assert found.clustering == pytest.approx(widened * 220 / 40 * (freedom + 1) / freedom)


def test_one_voter_counts_as_one_pair():
    alone = ratio_of(summed([13], [13]))
    assert alone.interval() == pytest.approx(Ratio(1.0, 1.0, 0.0, 0.0, 0.0, 1.0).interval())


@pytest.mark.parametrize("freedom", [9, 59, 299])
def test_with_equal_lengths_only_the_quantile_is_students(freedom):
    signs = np.array([1.0, 1.0, -1.0, 1.0, -1.0] * ((freedom + 1) // 5))
    widened = (stats.t.ppf(0.975, freedom) / stats.norm.ppf(0.975)) ** 2
    assert ratio_of(summed(7 * signs, np.full(len(signs), 7))).clustering == pytest.approx(
        7 * widened * (freedom + 1) / freedom
    )


def test_intervals_hold_the_effect_and_no_difference_is_told_where_lengths_are_very_unequal():
    """One voter in ten has 200 pairs, all others one. With as many degrees of freedom as voters, 0.6 were held."""
    rng = np.random.default_rng(3)
    lengths = np.array([200] * 3 + [1] * 27)
    held, told = [], []
    for _ in range(800):
        one, other = (ratio_of(drawn(lengths, rng)) for _ in range(2))
        low, high = one.interval()
        held.append(low <= 0.3 <= high)
        told.append(difference(one, other).p_value < 0.05)
    assert np.mean(held) > 0.93
    assert np.mean(told) < 0.06


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
