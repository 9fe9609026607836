from __future__ import annotations

from dataclasses import replace
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from crowdveil.errors import CrowdveilError
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.drawing import count_repeats, draw_dilemmas, draw_session, has_plenty
from crowdveil.study.features import Feature
from crowdveil.study.study import Dilemma, Drawing, Study

# A fixed seed that passes once passes always; the level says how unlikely a sound law is to fail another seed.
UNLIKELY = 1e-7


def study_of(*levels: tuple[float, ...]) -> Study:
    features = tuple(Feature(f"f{k}", f"f{k}", 0, 10, levels=given) for k, given in enumerate(levels))
    return Study("small", "Small", "Which?", features, Drawing("independent", 3))


def test_independent_pairs_are_uniform_over_all_pairs_that_differ() -> None:
    left, right = draw_dilemmas(study_of((1, 2), (0, 5)), 20_000, np.random.default_rng(1))
    possible = list(permutations(product((1.0, 2.0), (0.0, 5.0)), 2))
    drawn = list(zip(map(tuple, left.tolist()), map(tuple, right.tolist()), strict=True))
    counts = [drawn.count(pair) for pair in possible]
    assert sum(counts) == len(drawn) == 60_000
    assert stats.chisquare(counts).pvalue > UNLIKELY


def test_a_feature_with_one_level_stays_while_another_varies() -> None:
    left, right = draw_dilemmas(study_of((4,), (0, 1)), 100, np.random.default_rng(1))
    assert set(left[:, 0]) == set(right[:, 0]) == {4.0}
    assert (left[:, 1] != right[:, 1]).all()


def test_levels_that_never_differ_make_no_dilemma() -> None:
    with pytest.raises(CrowdveilError, match="two levels"):
        draw_dilemmas(study_of((4,), (1, 1)), 1, np.random.default_rng(1))


def test_gaussian_features_are_standard_normal() -> None:
    left, right = draw_dilemmas(synthetic_study(3, 10), 2_000, np.random.default_rng(2))
    assert left.shape == right.shape == (20_000, 3)
    assert stats.kstest(np.concatenate([left, right]).ravel(), "norm").pvalue > UNLIKELY
    together = np.corrcoef(np.hstack([left, right]), rowvar=False)
    assert np.abs(together - np.eye(6)).max() < 5.5 / np.sqrt(20_000)


def test_gaussian_features_keep_to_the_public_bounds_and_their_alternatives_differ() -> None:
    study = replace(synthetic_study(1, 10), features=(Feature("x", "x", -0.5, 1.0),))
    left, right = draw_dilemmas(study, 1_000, np.random.default_rng(3))
    assert left.min() == -0.5
    assert left.max() == 1.0
    assert (left != right).all()
    low, high = stats.norm.cdf(-0.5), stats.norm.sf(1.0)
    differ = 1 - low**2 - high**2
    assert stats.binomtest(np.sum(left == -0.5), 10_000, low * (1 - low) / differ).pvalue > UNLIKELY
    assert stats.binomtest(np.sum(left == 1.0), 10_000, high * (1 - high) / differ).pvalue > UNLIKELY


@pytest.mark.parametrize(("low", "high"), [(5, 10), (-9, -3)])
def test_a_range_that_normal_values_do_not_reach_makes_no_dilemma(low: float, high: float) -> None:
    study = replace(synthetic_study(1, 10), features=(Feature("x", "x", low, high),))
    with pytest.raises(CrowdveilError, match="draws values around 0"):
        draw_session(study, np.random.default_rng(1))


@pytest.mark.parametrize("name", ["moral-machine", "kidney", "synthetic-4"])
def test_every_bundled_study_draws_within_its_bounds_and_repeats_with_the_seed(name: str) -> None:
    study = load_study(name)
    left, right = draw_dilemmas(study, 500, np.random.default_rng(4))
    low, high = ([getattr(f, end) for f in study.features] for end in ("low", "high"))
    for side in (left, right):
        assert side.shape == (500 * study.drawing.dilemmas, study.dimension)
        assert ((low <= side) & (side <= high)).all()
    assert (left != right).any(axis=1).all(), "two alternatives are the same"
    again = draw_dilemmas(study, 500, np.random.default_rng(4))
    assert (again[0] == left).all()
    assert (again[1] == right).all()
    other = draw_dilemmas(study, 500, np.random.default_rng(5))
    assert (other[0] != left).any()


def test_no_dilemma_comes_twice_where_there_are_plenty() -> None:
    def study(levels: int, dilemmas: int) -> Study:
        values = tuple(map(float, range(levels)))
        feature = Feature("x", "x", 0, levels - 1, levels=values)
        return Study("tiny", "tiny", "?", (feature,), Drawing("independent", dilemmas))

    plenty, scarce = study(5, 5), study(5, 6)  # Of five values, ten pairs can be made.
    assert (has_plenty(plenty), has_plenty(scarce)) == (True, False)
    rng = np.random.default_rng(7)
    assert all(count_repeats(draw_session(plenty, rng)) == 0 for _ in range(200))
    assert any(count_repeats(draw_session(scarce, rng)) for _ in range(200))
    shown = draw_session(study(5, 1), rng)[0]
    mirrored = Dilemma(shown.alternatives[::-1])
    assert count_repeats([shown, mirrored, shown]) == 2


def test_a_moral_machine_session_repeats_nothing() -> None:
    study, rng = load_study("moral-machine"), np.random.default_rng(8)
    assert all(count_repeats(draw_session(study, rng)) == 0 for _ in range(100))


@pytest.mark.parametrize("name", ["moral-machine", "kidney"])
def test_a_session_is_one_voters_dilemmas_in_the_studys_terms(name: str) -> None:
    study = load_study(name)
    left, right = draw_dilemmas(study, 1, np.random.default_rng(6))
    session = draw_session(study, np.random.default_rng(6))
    assert [[a.name for a in dilemma.alternatives] for dilemma in session] == [["left", "right"]] * len(left)
    assert np.array_equal([dilemma.alternatives[0].values for dilemma in session], left)
    assert np.array_equal([dilemma.alternatives[1].values for dilemma in session], right)
    for dilemma in session:
        for alternative in dilemma.alternatives:
            named = dict(zip(study.feature_names, alternative.values, strict=True))
            assert study.alternative(named, alternative.name) == alternative
