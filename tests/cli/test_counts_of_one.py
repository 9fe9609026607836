"""One voter is a voter, and one record a record, wherever a command prints how many there are."""

import re

import numpy as np
import pytest
from tests.privacy.ledger.posting import post
from tests.program import answer, crowdveil

from crowdveil import simulated_voters
from crowdveil.ballots.ballot_file import open_ballots, write_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.society import society
from crowdveil.privacy.guarantee import Unit
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.publish.effects import exact_effects
from crowdveil.simulated_voters import Turnout
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study, synthetic_study

SEVERAL = re.compile(
    r"\b1 (simulated )?(voters|votes|records|rows|releases|choices|features|factors|weights|values|dilemmas|people"
    r"|exceed)\b"
)


def said(*words):
    result = crowdveil(*words)
    assert result.code == 0, result.stderr
    told = result.stdout + result.stderr
    assert not SEVERAL.search(told), told
    return told


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """The ballots of one voter with one record."""
    path = tmp_path_factory.mktemp("one") / "one.parquet"
    assert "1 simulated voter, 1 record each." in said(
        "simulate", "kidney", "--voters", "1", "--records", "1", "--out", path
    )
    return path


def test_ballots_of_one_voter(one):
    assert "1 voter, 1 record (1 each)." in said("describe", one)
    assert ", 1 voter, no privacy" in said("fit", one)
    opened = open_ballots(one)
    assert repr(opened).endswith("kidney: 1 voter)")
    (batch,) = opened.batches()
    assert repr(batch) == "Ballots(kidney: 1 voter, 1 record)"
    with pytest.raises(CrowdveilError, match="there is 1 voter: give positions from 0 to 0"):
        batch.take([3])


def test_a_file_with_one_row(tmp_path):
    said("simulate", "moral-machine", "--voters", "1", "--records", "1", "--as-csv", tmp_path / "one.csv")
    table = tmp_path / "table.csv"
    names = load_study("kidney").feature_names
    columns = [f"{side}_{name}" for side in ("left", "right") for name in names]
    values = ["1"] * len(names) + ["2"] * len(names)
    table.write_text(",".join(["voter", "chosen", *columns]) + "\n" + ",".join(["a", "left", *values]) + "\n")
    order = ("--study", "kidney", "--out", tmp_path / "t.parquet", "--one-record-each")
    assert "1 record of 1 voter, from 1 row." in said("import", "table", table, *order)


def test_one_voter_of_several(tmp_path):
    study = load_study("kidney")
    write_ballots(tmp_path / "two.parquet", study, simulated_batches(study, 2, np.random.default_rng(1)), {})
    parts = ("--share", "0.5", "--seed", "1", "--out", tmp_path / "a.parquet", "--rest", tmp_path / "b.parquet")
    assert said("ballots", "split", tmp_path / "two.parquet", *parts).count("1 voter") == 2


def test_one_vote_on_a_website(monkeypatch):
    monkeypatch.setattr(simulated_voters, "find_poll", lambda client, name: name)
    turnout = Turnout("kidney", 1, {"strong": 1}, {}, 0.5)
    monkeypatch.setattr(simulated_voters, "send_crowd", lambda *given, **options: turnout)
    told = said("crowd", "--url", "http://127.0.0.1:9", "--poll", "kidney", "--voters", "1")
    assert "1 vote stored in kidney in 0.5 s (2 a second)." in told


def test_a_ledger_that_knows_of_one_voter(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", 3)
    post(ledger, "a" * 64, 1_000_000, Unit.VOTER, 5, "x")
    assert "Crowd 1, 1 voter: 2 of 3 remain." in said("ledger", "show", ledger.path)
    assert repr(ledger.statement().accounts[0]) == "<crowd 1, 1 voter: 1 of 3 spent>"


def test_a_plan_of_one_release():
    order = ("--epsilon", "1", "--delta", "1e-6", "--voters", "100", "--features", "1", "--bound", "2")
    assert "1 release of one crowd's mean" in said("plan", "repeat", "--releases", "1", *order)


def test_a_study_of_one_feature_and_one_dilemma(tmp_path):
    study = tmp_path / "one.toml"
    study.write_text(
        'name = "one"\ntitle = "One"\nquestion = "Which?"\n[drawing]\nmethod = "independent"\ndilemmas = 1\n'
        '[[features]]\nname = "a"\nlow = 0\nhigh = 1\nlevels = [0, 1]\nlean = 0.5\n'
    )
    assert "1 dilemma a ballot" in said("studies", study)
    said("simulate", study, "--voters", "40", "--out", tmp_path / "b.parquet")
    order = ("--paradigm", "vlcp", "--epsilon", "1", "--experiment-seed", "1", "--one-record-each")
    answer("release", tmp_path / "b.parquet", *order, "--out", tmp_path / "r.json")
    said("page", tmp_path / "r.json", "--allow-experiment")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert not SEVERAL.search(page)
    assert "What the crowd prefers: 1 feature with" in page
    assert "<dt>feature</dt>" in page


def test_python_says_one_too():
    study = synthetic_study(1, 1)
    ballots = Ballots(study, np.array([0, 1, 2]), np.ones((2, 1)), np.array([1, -1], np.int8))
    alternative = study.alternative({"x1": 1}, "A")
    shown = [study, alternative, exact_effects(ballots), society(ballots, 2.0), crowd_preference(ballots)]
    for one in map(repr, shown):
        assert "1 " in one or "2 voters" in one
        assert not SEVERAL.search(one)
