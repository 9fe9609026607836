"""crowdveil describe: how a file varies beside its study's generator, and what counting voters or choices changes."""

import numpy as np
import pytest
from scipy import stats
from tests.program import answer, crowdveil

from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study


def test_factors_beside_the_generator(tmp_path):
    study = load_study("moral-machine")
    write_ballots(tmp_path / "b", study, simulated_batches(study, 40, np.random.default_rng(1)), {})
    data = answer("describe", tmp_path / "b")
    assert list(data["factors"]) == [factor.name for factor in study.factors]
    assert list(data["features"]) == list(study.feature_names)
    intervention = data["factors"]["intervention"]
    assert intervention["share_that_differ"] == intervention["generator"]["share_that_differ"] == 1
    assert set(data["crowd_preference"]) == {"voters", "choices"}
    shown = crowdveil("describe", tmp_path / "b")
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "protect nobody" in shown.stderr
    for words in ("Species: people", "are passengers", "every voter counts once, or every choice", "± sampling"):
        assert words in shown.stdout


def test_voters_or_choices(tmp_path):
    """Four voters: one chose the larger side nine times, of the others two chose the smaller side once."""
    study = load_study("synthetic-1")
    ballots = Ballots(study, np.array([0, 9, 10, 11, 12]), np.ones((12, 1)), np.array([1] * 10 + [-1] * 2, np.int8))
    write_ballots(tmp_path / "b", study, [ballots], {})
    found = answer("describe", tmp_path / "b")["crowd_preference"]
    assert found["voters"]["x1"] == pytest.approx(stats.norm.ppf(2 / 4), abs=1e-9)
    assert found["choices"]["x1"] == pytest.approx(stats.norm.ppf(10 / 12), rel=1e-9)
    lines = crowdveil("describe", tmp_path / "b").stdout.splitlines()
    assert "+0.967" in lines[-1]
    assert any("Furthest from the generator" in line and "(mean square 1 in the file, " in line for line in lines)


def test_factors_that_go_together_unlike_the_generators_are_named(tmp_path):
    """Alike in nine of ten records, which a correlation of 0.8 is; the generator draws them apart."""
    study = load_study("synthetic-2")
    dilemmas = np.array([[1.0, 1.0]] * 9 + [[1.0, -1.0]])
    ballots = Ballots(study, np.arange(11), dilemmas, np.array([1, -1] * 5, np.int8))
    write_ballots(tmp_path / "b", study, [ballots], {})
    assert answer("describe", tmp_path / "b")["furthest_together"]["correlation"] == pytest.approx(0.8)
    said = " ".join(crowdveil("describe", tmp_path / "b").stdout.split())
    assert "feature 1 and feature 2 go together (correlation +0.80 in the file, " in said
    write_ballots(tmp_path / "c", study, simulated_batches(study, 40, np.random.default_rng(1)), {})
    assert "go together" not in crowdveil("describe", tmp_path / "c").stdout


def test_a_factor_that_nobody_was_asked_about_is_not_known(tmp_path):
    study = load_study("synthetic-2")
    dilemmas = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    write_ballots(tmp_path / "b", study, [Ballots(study, np.arange(4), dilemmas, np.array([1, 1, 1], np.int8))], {})
    assert answer("describe", tmp_path / "b")["crowd_preference"]["voters"]["x2"] is None
    assert "not known" in crowdveil("describe", tmp_path / "b").stdout
