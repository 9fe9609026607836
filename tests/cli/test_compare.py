"""crowdveil compare: one JSON object, a table, a picture; mistakes are told before anything is computed."""

import re

import numpy as np
import polars as pl
import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.evaluation import comparison
from crowdveil.evaluation.comparison_runs import collect
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.sources.simulated import synthetic_crowd

SMALL = ["compare", "--voters", "8", "--records", "1", "--features", "2", "--crowds", "2"]


@pytest.fixture(scope="module")
def ballots(tmp_path_factory):
    crowd = synthetic_crowd(40, 6, 3, np.random.default_rng(1)).ballots
    path = tmp_path_factory.mktemp("compare") / "b.parquet"
    write_ballots(path, crowd.study, [crowd], {})
    return path


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Processes are tested with the comparison itself."""
    monkeypatch.setattr(
        comparison, "carry_out", lambda runs, workers, tell: collect(pl.concat([run.measure(range(1)) for run in runs]))
    )


def test_one_json_object_and_a_picture(tmp_path, monkeypatch):
    """A curve has one point that was not asked for, and thus no row; the others are counted in the next test."""
    monkeypatch.setattr(comparison, "CURVE", (Epsilon(3),))
    picture = tmp_path / "compare.svg"
    data = answer(*SMALL, "--epsilon", "0.5,20", "--paradigm", "vldp", "--all", "--plot", picture)
    asked = {"paradigm", "mechanism", "recommended", "epsilon", "accuracy", "ratio", "low", "high", "squared_error"}
    assert all(asked <= set(row) for row in data["rows"])
    assert {(row["mechanism"], row["epsilon"], row["recommended"]) for row in data["rows"]} == {
        ("algorithm-2", 0.5, False),
        ("one-bit", 0.5, True),
        ("subset-selection", 0.5, False),
        ("algorithm-2", 20.0, False),
        ("one-bit", 20.0, True),
        ("subset-selection", 20.0, False),
    }
    assert data["plot"] == str(picture)
    drawn = picture.read_text()
    for words in ("VLDP: voters protected, nobody trusted", "no privacy (society)", "paper: algorithm-2"):
        assert words in drawn


def test_only_what_is_asked_for_is_measured(monkeypatch):
    measured = []

    def watched(runs, workers, tell):
        measured.extend(task.entry.epsilon for task in runs[0].tasks)
        return collect(pl.concat([run.measure(range(1)) for run in runs]))

    monkeypatch.setattr(comparison, "carry_out", watched)
    assert "epsilon_needed" not in answer(*SMALL, "--epsilon", "0.5", "--paradigm", "rlcp")
    assert set(map(str, measured)) == {"0.5"}
    measured.clear()
    data = answer(*SMALL, "--epsilon", "0.5", "--paradigm", "rlcp", "--epsilon-needed")
    assert len(set(map(str, measured))) == 10
    assert [found["choice"] for found in data["epsilon_needed"]] == ["paper", "recommended"]


def test_a_file_is_compared_by_what_it_predicts_in_words(ballots, tmp_path):
    picture = tmp_path / "compare.png"
    result = crowdveil("compare", ballots, "--epsilon", "1", "--paradigm", "alcp", "--splits", "2", "--plot", picture)
    assert result.code == 0, result.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert re.search(r"no privacy, pooled: predicted 0\.\d+ \[", result.stdout)
    assert re.search(r"pooled-choices \*\s+1\s+0\.\d{3}", result.stdout)
    assert "releases from 30 voters" in result.stdout
    assert "Smallest epsilon for a share of pooled" in result.stdout
    without_intervals, with_intervals = "-", r"[01]\.\d\d"
    for who, covered in (
        (r"pooled\s+no privacy", without_intervals),
        (r"society\s+no privacy", without_intervals),
        (r"pooled-choices\s+1", with_intervals),
    ):
        stated = r"\s+0\.\d{4}\s+-?\d+\.\d\d\s+[+-]0\.\d{3}"
        assert re.search(rf"{who}{stated}\s+{covered}\n", result.stdout)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epsilon", "0.1,,1"], "epsilon is ''"),
        (["--epsilon", "0.1;1"], "0.0001 to 50"),
        (["--paradigm", "vlcp,xyz"], "no paradigm 'xyz'"),
        (["--personal", "--epsilon", "1"], "exclude each other"),
        (["--personal", "--paradigm", "vlcp"], "vldp, rldp or aldp"),
        (["--personal", "--plot", "a.png"], "one point"),
        (["--personal", "--epsilon-needed"], "--epsilon-needed is for one epsilon for all"),
        (["--plot", "a.pdf"], ".png or .svg"),
        (["--plot", "nowhere/a.png"], "no directory"),
        (["--splits", "3"], "--crowds"),
        (["--crowds", "1"], "2 or more"),
        (["--voters", "1"], "from 2 to 10,000,000"),
        (["--workers", "0"], "1 or more"),
    ],
)
def test_mistakes_are_refused_at_once(words, said):
    refused(crowdveil("compare", *words), said)


def test_options_of_synthetic_crowds_do_not_go_with_a_file(ballots):
    for option in ("--voters", "--records", "--features", "--crowds"):
        refused(crowdveil("compare", ballots, option, "5"), option)
    refused(crowdveil("compare", ballots.with_name("none.parquet")), "crowdveil simulate")
