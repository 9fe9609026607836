"""A study with a third answer on the command line: simulate, describe, release, decide, evaluate."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import read_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import CrowdveilError
from crowdveil.sources.table import read_table
from crowdveil.study.bundled import load_study

STUDY = Path(__file__).parents[2] / "examples/indecision-study.toml"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("third")
    answer("simulate", STUDY, "--voters", "400", "--tau", "0.8", "--out", made / "crowd.parquet")
    answer("ledger", "create", made / "ledger", "--budget", "5")
    order = ("--paradigm", "rlcp", "--epsilon", "2", "--ledger", made / "ledger")
    answer("release", made / "crowd.parquet", *order, "--out", made / "release.json")
    return made


def test_a_crowd_is_described_with_its_coins(folder):
    told = answer("describe", folder / "crowd.parquet")["indifference"]
    assert told["tau"] == pytest.approx(0.68, abs=0.05)  # 0.8, less what voters' differences take from it
    assert 0.3 < told["share"] < 0.7
    assert "Neither side was chosen in" in crowdveil("describe", folder / "crowd.parquet").stdout


def test_a_crowd_is_described_by_the_preference_that_a_release_estimates(folder):
    """That of the threshold model; the decided choices alone have a steeper one, and evaluate shows the same."""
    shown = answer("describe", folder / "crowd.parquet")["crowd_preference"]["voters"]
    ballots = read_ballots(folder / "crowd.parquet")
    dilemmas, choices = ballots.dilemmas.astype(float), ballots.choices
    weights = np.repeat(1 / ballots.counts, ballots.counts)

    def loss(given):
        first, second = (norm.cdf(side * (dilemmas @ given[:-1]) - given[-1]) for side in (1, -1))
        return -weights @ np.log(np.choose(choices + 1, [second, 1 - first - second, first])) / ballots.voters

    best = minimize(loss, [0, 0, 0, 0.5], tol=1e-9).x
    assert list(shown.values()) == pytest.approx(best[:-1], abs=1e-4)
    evaluated = answer("evaluate", folder / "release.json", folder / "crowd.parquet")
    judged = {name: factor["value"]["exact"] for name, factor in evaluated["factors"].items()}
    assert judged == pytest.approx(shown)


def test_one_charge_buys_preference_and_threshold(folder):
    (account,) = answer("ledger", "show", folder / "ledger")["accounts"]
    assert [entry["epsilon"] for entry in account["entries"]] == [2]
    release = json.loads((folder / "release.json").read_text())
    assert release["guarantee"]["epsilon"] == 2
    assert release["indifference"]["tau"] == pytest.approx(0.68, abs=0.2)


def test_a_decision_has_three_probabilities(folder):
    decided = answer("decide", folder / "release.json", '[{"age": 1}, {"age": 1}]')
    assert decided["choice"] == "toss a coin"
    assert sum(decided["probabilities"].values()) == pytest.approx(1)
    said = crowdveil("decide", folder / "release.json", '[{"age": 1}, {"age": 1}]').stdout
    assert "Choice: toss a coin" in said


def test_a_release_is_judged_by_three_answers(folder):
    told = answer("evaluate", folder / "release.json", folder / "crowd.parquet")["third_answer"]
    assert told["limit"] <= told["log_loss"] < told["limit"] + 0.02
    assert "three-way log loss" in crowdveil("evaluate", folder / "release.json", folder / "crowd.parquet").stdout


def test_a_table_says_neither_as_the_host_s_export_does(tmp_path):
    table = tmp_path / "answers.csv"
    columns = [f"{side}_{name}" for side in ("left", "right") for name in ("age", "dependents", "drinking")]
    table.write_text(f"voter,chosen,{','.join(columns)}\na,neither,0,0,0,1,1,1\na,left,0,0,0,1,1,1\n")
    assert read_table(table, study=load_study(str(STUDY))).choices.tolist() == [0, 1]


def test_what_cannot_be_is_refused_in_one_line(folder, tmp_path):
    kidney = ("simulate", "kidney", "--voters", "5", "--out", tmp_path / "x.parquet")
    refused(crowdveil(*kidney, "--tau", "1"), "allows no third answer")
    below = crowdveil("simulate", STUDY, "--voters", "5", "--tau", "-1", "--out", tmp_path / "x.parquet")
    refused(below, "must be 0 or more")
    order = ("--paradigm", "vlcp", "--ledger", folder / "ledger", "--out", tmp_path / "r.json")
    crowd = folder / "crowd.parquet"
    refused(crowdveil("release", crowd, *order, "--epsilon", "1", "--mechanism", "paper"), "algorithm-1 cannot carry")
    refused(crowdveil("release", crowd, *order, "--epsilon", "0.0005"), "too small to be shared")
    choices = read_ballots(crowd).choices
    said = f"in {(choices == 0).sum()} of {len(choices)} records neither side was chosen"
    refused(crowdveil("compare", crowd, "--paradigm", "rlcp", "--epsilon", "1", "--splits", "1"), said)


def test_ballots_of_other_studies_may_not_hold_neither(folder):
    ballots = read_ballots(folder / "crowd.parquet")
    (batch, *_) = ballots.batches()
    forced = Ballots(replace(batch.study, indifference=None), batch.offsets, batch.dilemmas, batch.choices)
    with pytest.raises(CrowdveilError, match="by words for indifference"):
        forced.differences.sum()


def test_a_study_of_ones_own_may_draw_normal_values_as_the_papers_does(tmp_path):
    head = 'name = "own"\ntitle = "T"\nquestion = "Q?"\nindifference = "A coin"\nrepeat = true\n'
    drawing = '[drawing]\nmethod = "gaussian"\ndilemmas = 5\n'
    feature = '[[features]]\nname = "x1"\nlow = -8\nhigh = 8\nlean = 5\n'
    (tmp_path / "own.toml").write_text(head + drawing + feature, encoding="utf-8")
    answer("simulate", tmp_path / "own.toml", "--voters", 300, "--out", tmp_path / "b.parquet")
    ballots = read_ballots(tmp_path / "b.parquet")
    assert ballots.study.name == "own"
    assert np.count_nonzero(ballots.choices == 0) > 0
    assert np.mean(ballots.choices == np.sign(ballots.dilemmas[:, 0])) > 0.8  # they lean as the study says
