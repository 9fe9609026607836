"""Signed subset selection, exhaustively: every coin, order and sign with its exact probability."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crowdveil.ballots.ballots import Ballots, resampled
from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.mechanisms import subset_selection
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.reports import Reports
from crowdveil.privacy.mechanisms.subset_selection import (
    FLIP,
    SubsetSelection,
    _corners,
    _select,
    mean_squared_error,
    subset_size,
)
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.study.bundled import synthetic_study
from scripted_noise import EveryOutcome

Q = Fraction(1, 3)
"""exp(-epsilon): epsilon = ln 3."""
A = 1 / Q - 1
MICRO = 1_000_000
SIZES = [(d, k) for d in (2, 3) for k in range(1, d + 1)]


def law_of_corner(corner, sign, d, size, odds_instead=()):
    """The exact law of the report for one signed corner."""
    noise = EveryOutcome(["toss", "toss", ("orders", d), ("signs", d)], Q, dict(odds_instead))
    rows = noise.rows
    drawn = _select(np.full(rows, corner), np.full(rows, sign), d, size, Epsilons.same(1, rows), noise)
    return noise.law(drawn)


def all_corners(d, size, odds_instead=()):
    return {(j, s): law_of_corner(j, s, d, size, odds_instead) for j in range(d) for s in (1, -1)}


def worst_ratio(laws):
    """The largest ratio of the probabilities of one report under two inputs."""
    reports = set().union(*laws)
    return max(
        max(law.get(report, Fraction(0)) for law in laws) / min(law.get(report, Fraction(0)) for law in laws)
        for report in reports
    )


@pytest.mark.parametrize(("d", "size"), SIZES)
def test_any_report_is_e_to_the_epsilon_times_as_likely_or_as_likely(d, size):
    laws = all_corners(d, size)
    assert all(sum(law.values()) == 1 for law in laws.values())
    reports = set().union(*laws.values())
    assert reports == {w for w in product((-1, 0, 1), repeat=d) if sum(map(abs, w)) == size}
    (least,) = {min(law.values()) for law in laws.values()}
    for (j, s), law in laws.items():
        assert {report: law[report] / least for report in reports} == {
            report: (1 / Q if report[j] == s else 1) for report in reports
        }
    assert worst_ratio(laws.values()) == 1 / Q


@pytest.mark.parametrize(("d", "size"), SIZES)
def test_reports_are_unbiased_with_the_mean_squared_error_of_the_theorem(d, size):
    r = Fraction(size, 2 * d)
    gain = (1 + r * A) / (r * A)
    for (j, s), law in all_corners(d, size).items():
        mean = [gain * sum(p * w[k] for w, p in law.items()) for k in range(d)]
        assert mean == [s if k == j else 0 for k in range(d)]
        error = sum(p * sum((gain * w[k] - mean[k]) ** 2 for k in range(d)) for w, p in law.items())
        assert error == size * gain**2 - 1  # at most size (1 + 2d / (size a))^2


@pytest.mark.parametrize(
    ("wrong", "instead"),
    [
        ("coins for k + 1", {Odds(1, 1, 1, 5): Odds(2, 2, 2, 4)}),
        ("the corner too often in the report", {Odds(1, 1, 1, 5): Odds(1, 1, 1, 4)}),
        ("a flip with 1 / e^epsilon", {FLIP: Odds(0, 1, 1, 0)}),
        ("a fair flip", {FLIP: Odds(1, 0, 2, 0)}),
    ],
)
def test_wrong_odds_are_caught(wrong, instead):
    right, mutant = all_corners(3, 1), all_corners(3, 1, instead)
    assert mutant != right, wrong
    assert worst_ratio(mutant.values()) != 1 / Q, wrong


def test_coins_of_one_size_with_signs_of_another_are_caught():
    """The report then tells by its length whether the corner is in it."""

    def mutant(j, s):
        noise = EveryOutcome(["toss", "toss", ("orders", 3), ("signs", 3)], Q, {Odds(2, 2, 2, 4): Odds(1, 1, 1, 5)})
        return noise.law(
            _select(
                *(np.full(noise.rows, x) for x in (j, s)),
                3,
                2,
                Epsilons.same(1, noise.rows),
                noise,
            )
        )

    assert worst_ratio([mutant(j, s) for j in range(3) for s in (1, -1)]) > 1 / Q


@pytest.mark.parametrize("d", [1, 2, 3])
def test_rounding_to_a_corner_is_unbiased_and_exact(d, monkeypatch):
    steps_per_bound = 6
    monkeypatch.setattr(subset_selection, "STEPS", steps_per_bound)
    for beta in product(range(-steps_per_bound, steps_per_bound + 1, 2), repeat=d):
        if sum(map(abs, beta)) <= steps_per_bound:
            law = law_of_rounding(beta, steps_per_bound)
            left = Fraction(steps_per_bound - sum(map(abs, beta)), steps_per_bound)
            for j, s in product(range(d), (1, -1)):
                expected = Fraction(max(s * beta[j], 0), steps_per_bound) + left / (2 * d)
                assert law.get((j, s), 0) == expected
            assert sum(law.values()) == 1


def law_of_rounding(beta, steps_per_bound):
    noise = EveryOutcome([steps_per_bound, 2 * len(beta)], Q)
    corner, sign = _corners(np.tile(np.array(beta), (noise.rows, 1)), noise)
    return noise.law(np.column_stack([corner, sign]))


@pytest.mark.parametrize("size", [1, 2])
def test_no_two_preferences_differ_by_more_than_e_to_the_epsilon(size, monkeypatch):
    monkeypatch.setattr(subset_selection, "STEPS", 4)
    corners = all_corners(2, size)
    laws = []
    for beta in product(range(-4, 5), repeat=2):
        if sum(map(abs, beta)) <= 4:
            rounding = law_of_rounding(beta, 4)
            reports = set().union(*corners.values())
            laws.append({w: sum(p * corners[c][w] for c, p in rounding.items()) for w in reports})
    assert worst_ratio(laws) == 1 / Q  # reached: by two opposite corners
    (uniform,) = set(laws[len(laws) // 2].values())  # beta = 0 tells nothing
    assert uniform == Fraction(1, len(laws[0]))


def test_the_real_sampler_follows_the_enumerated_law():
    study = synthetic_study(3)
    row = np.array([[1.0, 0.0, 0.0]])  # a voter whose only answer puts the fit at the corner + B e_1
    many = resampled(Ballots.from_differences(study, np.array([0, 1]), row), np.zeros(40_000, np.int64))
    epsilon = math.log(3)
    micro = round(epsilon * MICRO)
    reports = SubsetSelection().report(
        many, MechanismSettings(study, 2.0), Epsilons.of_millionths(np.full(40_000, micro)), BulkNoise()
    )
    law = law_of_corner(0, 1, 3, subset_size(3, epsilon))
    found, counts = np.unique(reports.values, axis=0, return_counts=True)
    assert {tuple(w) for w in found.tolist()} == set(law)
    expected = [float(law[tuple(w)]) * 40_000 for w in found.tolist()]
    assert stats.chisquare(counts, expected).pvalue > 1e-7


def test_everyone_gets_the_signs_and_the_weight_of_her_own_epsilon():
    study = synthetic_study(4)
    rows = np.eye(4)
    ballots = Ballots.from_differences(study, np.arange(5), rows)
    epsilons = Epsilons.of_millionths(np.array([100_000, 1_000_000, 5_000_000, 20_000_000]))
    settings = MechanismSettings(study, 2.0)
    reports = SubsetSelection().report(ballots, settings, epsilons, BulkNoise())
    assert np.abs(reports.values).sum(axis=1).tolist() == [subset_size(4, epsilon.value) for epsilon in epsilons]
    estimate = SubsetSelection().aggregate(
        [Reports(epsilons[:1], reports.values[:1]), Reports(epsilons[1:], reports.values[1:])], settings
    )
    errors = np.array([mean_squared_error(4, epsilon.value) for epsilon in epsilons])
    weights = (1 / errors) / (1 / errors).sum()
    gains = [1 + 8 / (subset_size(4, e.value) * math.expm1(e.value)) for e in epsilons]
    assert estimate.parameter == pytest.approx(weights @ (reports.values * np.array(gains)[:, None]) * 2.0, rel=1e-9)


@given(st.integers(1, 60), st.integers(100, 20_000_000))
def test_the_closed_form_finds_the_best_size(d, micro):
    a = math.expm1(micro / 1e6)
    errors = {k: k * (1 + 2 * d / (k * a)) ** 2 for k in range(1, d + 1)}
    assert mean_squared_error(d, micro / 1e6) == pytest.approx(min(errors.values()), rel=1e-12)
    assert errors[subset_size(d, micro / 1e6)] == pytest.approx(min(errors.values()), rel=1e-12)
