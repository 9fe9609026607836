"""How dilemmas vary, counted by hand and beside the study's generator."""

from dataclasses import replace

import numpy as np
import pytest

import crowdveil.ballots.ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.estimation.variation import dilemma_variation
from crowdveil.sources.simulated import simulate_crowd
from crowdveil.study.bundled import load_study
from crowdveil.study.factors import Factor

GAUSSIAN_SQUARE = 2.0
"""The variance of the difference of two standard normal values."""
STUDY = replace(
    load_study("synthetic-2"),
    named_factors=(Factor("sum", "Sum", ("less", "more"), {"x1": 1, "x2": 1}),),
)
BALLOTS = Ballots(
    STUDY,
    np.array([0, 1, 4]),
    np.array([[1.0, -1.0], [2.0, 0.0], [0.0, 0.0], [0.3, -0.1]]),
    np.array([1, -1, 1, 1], np.int8),
)


def test_counts_by_hand():
    found = dilemma_variation(BALLOTS)
    first, second = found.features
    assert (first.pairs, first.share, first.chosen_had_more) == (3, 3 / 4, 2 / 3)
    assert first.mean_square == pytest.approx((1 + 4 + 0.09) / 4)
    assert (second.pairs, second.chosen_had_more) == (2, 0)
    (total,) = found.factors
    # 1 - 1 = 0 is no difference; then 2, 0 and 0.2.
    assert (total.name, total.label, total.pairs, total.chosen_had_more) == ("sum", "Sum: more", 2, 1 / 2)
    assert total.mean_square == pytest.approx((4 + 0.04) / 4)


def test_the_generator_of_gaussian_pairs_has_unit_squares():
    """40,000 differences of variance 2 each: five standard errors of their mean square are 5 x 2 sqrt(2 / 40,000)."""
    found = dilemma_variation(BALLOTS)
    for feature in found.features:
        assert feature.drawn_share == 1
        assert feature.drawn_mean_square == pytest.approx(GAUSSIAN_SQUARE, abs=5 * GAUSSIAN_SQUARE * np.sqrt(2 / 4e4))
    assert found.factors[0].drawn_mean_square == pytest.approx(2 * GAUSSIAN_SQUARE, rel=5 * np.sqrt(2 / 4e4))


def test_batches_do_not_matter(monkeypatch):
    whole = dilemma_variation(BALLOTS)
    monkeypatch.setattr(crowdveil.ballots.ballots, "VOTERS_PER_BATCH", 1)
    for one, other in zip(dilemma_variation(BALLOTS).features, whole.features, strict=True):
        assert one.mean_square == pytest.approx(other.mean_square, rel=1e-12)
        assert replace(one, mean_square=0) == replace(other, mean_square=0)


def test_a_crowd_that_the_study_drew_varies_like_its_generator():
    study = load_study("moral-machine")
    (crowd,) = simulate_crowd(study, 1500, np.random.default_rng(2))
    found = dilemma_variation(crowd)
    for one in (*found.factors, *found.features):
        # 19,500 pairs, 13 of one voter together: six standard errors of a share are below 6 x .5 x sqrt(13 / 19,500).
        assert one.share == pytest.approx(one.drawn_share, abs=0.078)
        assert one.mean_square == pytest.approx(one.drawn_mean_square, rel=0.25)


def test_features_that_are_factors_have_one_label():
    ballots = replace(BALLOTS, study=load_study("synthetic-2"))
    found = dilemma_variation(ballots)
    assert [one.label for one in found.factors] == [one.label for one in found.features]
