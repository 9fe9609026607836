from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from crowdveil.arrays import FloatArray
from crowdveil.ballots.ballot_file import open_ballots, write_ballots
from crowdveil.ballots.ballots import census, concatenate
from crowdveil.errors import CrowdveilError
from crowdveil.sources import simulated
from crowdveil.sources.simulated import simulate_crowd, simulated_batches, synthetic_crowd
from crowdveil.study.bundled import load_study, synthetic_study
from crowdveil.study.features import Feature
from crowdveil.study.study import Drawing, Study

UNLIKELY = 1e-7


def answers_follow(worth: FloatArray) -> bool:
    """Say whether alternatives that are worth |t| more were chosen with probability Phi(|t|), in bands of |t|."""
    worth = worth[np.abs(worth) > 1e-9]  # Between alternatives of equal worth there is no better choice.
    chance = stats.norm.cdf(np.abs(worth))
    bands = np.array_split(np.argsort(chance), 8)
    surprise = [
        (np.sum(worth[band] > 0) - np.sum(chance[band])) / np.sqrt(np.sum(chance[band] * (1 - chance[band])))
        for band in bands
    ]
    return bool(np.max(np.abs(surprise)) < 5.5)


def test_the_synthetic_crowd_is_the_papers() -> None:
    crowd = synthetic_crowd(500, 40, 6, np.random.default_rng(1))
    assert crowd.ballots.study == synthetic_study(6, 40)
    assert crowd.ballots.voters == 500
    assert (crowd.ballots.counts == 40).all()
    assert crowd.social.shape == (6,)
    assert crowd.preferences.shape == (500, 6)
    assert (np.abs(crowd.social) < 1).all()
    assert stats.kstest((crowd.preferences - crowd.social).ravel(), "norm").pvalue > UNLIKELY
    worth = np.sum(crowd.ballots.differences * np.repeat(crowd.preferences, 40, axis=0), axis=1)
    assert answers_follow(worth)


def test_the_synthetic_alternatives_are_standard_normal_and_their_order_is_not_the_choice() -> None:
    """|V| is that of the difference of two N(0, I): ||V||^2 / 2 is chi-squared with d degrees of freedom."""
    crowd = synthetic_crowd(200, 50, 5, np.random.default_rng(2))
    assert stats.kstest(np.sum(crowd.ballots.differences**2, axis=1) / 2, "chi2", args=(5,)).pvalue > UNLIKELY


def test_m_is_uniform() -> None:
    rng = np.random.default_rng(3)
    drawn = np.concatenate([synthetic_crowd(1, 1, 20, rng).social for _ in range(100)])
    assert stats.kstest(drawn, "uniform", args=(-1, 2)).pvalue > UNLIKELY


@pytest.mark.parametrize("name", ["moral-machine", "kidney"])
def test_without_spread_everyone_answers_by_the_studys_lean(name: str) -> None:
    study = load_study(name)
    (block,) = simulated_batches(study, 2_000, np.random.default_rng(4), spread=0)
    assert answers_follow(block.differences @ np.array([f.lean for f in study.features]))


def test_spread_is_the_standard_deviation_of_each_preference() -> None:
    """One answer a voter: beta . V ~ N(lean . V, spread^2 ||V||^2), so Phi(lean . V / sqrt(1 + spread^2 ||V||^2))."""
    features = tuple(
        Feature(f"f{k}", f"f{k}", 0, 2, levels=(0, 1, 2), lean=lean) for k, lean in enumerate((1, -2, 0.5))
    )
    study = Study("one", "One", "Which?", features, Drawing("independent", 1))
    (block,) = simulated_batches(study, 15_000, np.random.default_rng(5), spread=1.5)
    v = block.differences.astype(float)
    assert answers_follow(v @ [1, -2, 0.5] / np.sqrt(1 + 1.5**2 * np.sum(v**2, axis=1)))
    assert not answers_follow(v @ [1, -2, 0.5]), "the test would not notice a spread of 0"


def test_a_crowd_depends_on_the_seed_and_not_on_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "VOTERS_PER_BLOCK", 64)
    study = load_study("moral-machine")
    crowd = concatenate(study, list(simulated_batches(study, 150, np.random.default_rng(6))))
    assert crowd.voters == 150
    assert (crowd.counts == 13).all()
    again = concatenate(study, list(simulated_batches(study, 150, np.random.default_rng(6))))
    assert np.array_equal(again.differences, crowd.differences)
    interrupted = list(islice(simulated_batches(study, 150, np.random.default_rng(6)), 2))
    assert np.array_equal(interrupted[1].differences, crowd[64:128].differences)
    other = concatenate(study, list(simulated_batches(study, 150, np.random.default_rng(7))))
    assert not np.array_equal(other.differences, crowd.differences)
    first, second = (crowd[start : start + 64].differences for start in (0, 64))
    assert not np.array_equal(first, second), "two blocks are the same voters"


@pytest.mark.parametrize(
    ("name", "kind"), [("moral-machine", np.int8), ("kidney", np.float64), ("synthetic-3", np.float64)]
)
def test_a_simulated_crowd_fits_a_ballot_file(tmp_path: Path, name: str, kind: type) -> None:
    study = load_study(name)
    blocks = list(simulated_batches(study, 40, np.random.default_rng(8)))
    assert all(block.differences.dtype == kind for block in blocks)
    assert all((np.abs(block.differences) <= study.reach).all() for block in blocks)
    assert write_ballots(tmp_path / "crowd", study, blocks, {}) == 40
    assert census(open_ballots(tmp_path / "crowd")) == census(concatenate(study, blocks))


def test_levels_between_whole_numbers_are_kept() -> None:
    feature = Feature("share", "share", 0, 1, levels=(0, 0.5, 1))
    study = Study("half", "Half", "Which?", (feature,), Drawing("independent", 20))
    (block,) = simulated_batches(study, 20, np.random.default_rng(9))
    assert set(np.abs(block.differences).ravel()) == {0.5, 1.0}


@pytest.mark.parametrize("voters", [0, -1])
def test_a_crowd_needs_a_voter(voters: int) -> None:
    with pytest.raises(
        CrowdveilError, match=r"the number of voters is .*: give a whole number from 1 to 10,000,000,000"
    ):
        simulated_batches(load_study("kidney"), voters, np.random.default_rng(1))
    with pytest.raises(
        CrowdveilError, match=r"the number of voters is .*: give a whole number from 1 to 10,000,000,000"
    ):
        synthetic_crowd(voters, 5, 5, np.random.default_rng(1))


@pytest.mark.parametrize("spread", [-0.1, float("nan"), float("inf")])
def test_a_spread_is_a_finite_number(spread: float) -> None:
    with pytest.raises(CrowdveilError, match="spread"):
        simulated_batches(load_study("kidney"), 1, np.random.default_rng(1), spread)


def test_a_study_may_have_any_number_of_dilemmas() -> None:
    study = replace(load_study("moral-machine"), drawing=Drawing("moral-machine", 5))
    (block,) = simulated_batches(study, 3, np.random.default_rng(1))
    assert block.counts.tolist() == [5, 5, 5]


def test_a_crowd_is_ready_to_be_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crowdveil.sources.simulated.VOTERS_PER_BLOCK", 40)
    study = load_study("kidney")
    crowd = simulate_crowd("kidney", 100, seed=7)
    assert census(crowd) == census(concatenate(study, list(simulated_batches(study, 100, np.random.default_rng(7)))))
    assert census(simulate_crowd("kidney", 100)) == census(simulate_crowd(study, 100, seed=0)) != census(crowd)
    assert crowd.origin == {"simulated": True, "seed": 7}
    with pytest.raises(CrowdveilError, match="the seed is -1: give a whole number from 0 up"):
        simulate_crowd("kidney", 100, seed=-1)
