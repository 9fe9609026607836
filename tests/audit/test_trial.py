"""The attack on laws whose epsilon is known in closed form, and its bounds against scipy's exact intervals."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from crowdveil.audit.trial import (
    at_least,
    at_most,
    attack,
    choose_event,
    discriminant,
    frequencies,
    least_epsilon,
)

DRAWS = 40_000


def pairs_of(sample):
    """A training pair and a fresh one."""
    return tuple((sample(True), sample(False)) for _ in range(2))


def test_a_coin_is_told_apart_by_what_its_odds_allow_and_no_more():
    rng = np.random.default_rng(1)
    up = {True: 0.6, False: 0.3}
    train, fresh = pairs_of(lambda left: (rng.random((DRAWS, 1)) < up[left]).astype(np.int64))
    evidence = attack(train, fresh, [])
    assert math.log(2) - 0.05 < evidence.shown < math.log(2)
    assert evidence.judged < evidence.shown


def test_the_better_direction_is_found():
    """A one tells ln(0.9 / 0.45) = ln 2, a zero ln(0.55 / 0.1) = ln 5.5."""
    rng = np.random.default_rng(2)
    up = {True: 0.9, False: 0.45}
    train, fresh = pairs_of(lambda left: (rng.random((DRAWS, 1)) < up[left]).astype(np.int64))
    assert attack(train, fresh, []).shown == pytest.approx(math.log(5.5), abs=0.12)


def test_equal_laws_prove_next_to_nothing():
    rng = np.random.default_rng(3)
    train, fresh = pairs_of(lambda left: rng.integers(0, 5, (DRAWS, 3)))
    assert attack(train, fresh, []).shown < 0.05


def test_a_threshold_does_not_split_an_atom():
    """Half of all outputs share one value: the event has to take all of them or none."""
    rng = np.random.default_rng(4)

    def sample(left):
        rows = rng.normal(0.0, 1.0, DRAWS)
        return np.where(rng.random(DRAWS) < (0.5 if left else 0.2), 10.0, rows)[:, None]

    event = choose_event((sample(True), sample(False)), [lambda rows: rows[:, 0]])
    assert event.hits(np.array([[10.0], [9.0]])) == (1 if event.above else 0)
    assert event.threshold <= 10.0


def test_the_discriminant_finds_what_carries_no_noise():
    """Two columns share their noise: their difference tells the sides apart, however large it is."""
    rng = np.random.default_rng(5)

    def sample(left):
        noise = rng.laplace(0.0, 1e9, DRAWS).astype(np.int64)
        return np.column_stack([noise + (10**8 if left else 0), noise, rng.integers(0, 9, DRAWS)])

    train, fresh = pairs_of(sample)
    score = discriminant(train)
    assert score(fresh[0]).min() > score(fresh[1]).max()


def test_a_constant_that_differs_is_found():
    train = tuple(np.column_stack([np.full(100, side), np.arange(100) % 7]) for side in (3, 4))
    score = discriminant(train)
    assert score(train[0]).min() > score(train[1]).max()


def test_frequencies_are_logarithms_of_ratios_and_unknown_outputs_say_nothing():
    left, right = np.repeat([[1], [2]], [30, 10], axis=0), np.repeat([[1], [2]], [10, 30], axis=0)
    score = frequencies((left, right))
    expected = [math.log(30.5 / 10.5), math.log(10.5 / 30.5), 0.0]
    assert score(np.array([[1], [2], [3]])) == pytest.approx(expected)


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


def test_a_delta_is_taken_off_before_the_quotient():
    hits, others, draws = np.array([60_000]), np.array([10_000]), 100_000
    assert least_epsilon(hits, others, draws, 1e-3, 0.1)[0] == pytest.approx(math.log(0.5 / 0.1), abs=0.05)
    assert least_epsilon(hits, others, draws, 1e-3, 0.1)[0] < math.log(0.5 / 0.1)
    assert least_epsilon(hits, others, draws, 1e-3, 0.7)[0] == 0
