"""A dilemma that is asked twice, on the command line: simulate, describe, release, and parts of a crowd."""

import json

import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import read_ballots
from crowdveil.releases import read_release


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("repeats")
    answer("simulate", "kidney", "--voters", "500", "--alike", "0.9", "--out", made / "crowd.parquet")
    answer("ledger", "create", made / "ledger", "--budget", "5")
    return made


def test_a_simulated_crowd_is_asked_twice(folder):
    crowd = read_ballots(folder / "crowd.parquet")
    assert (crowd.alike == 1).mean() == pytest.approx(0.9, abs=0.06)
    assert answer("describe", folder / "crowd.parquet")["answered_alike"] == pytest.approx((crowd.alike == 1).mean())
    assert "of the voters gave the same answer both times" in crowdveil("describe", folder / "crowd.parquet").stdout


def test_one_charge_buys_preference_and_reliability_and_the_split_is_shown_first(folder):
    order = ("release", folder / "crowd.parquet", "--paradigm", "rlcp", "--epsilon", "2", "--ledger", folder / "ledger")
    assert answer(*order, "--dry-run")["split"] == {"preference": 1.8, "reliability": 0.2}
    said = crowdveil(*order, "--dry-run").stdout
    assert "Of epsilon: 1.8 for the preference and 0.2 for the reliability." in said
    told = crowdveil(*order, "--out", folder / "release.json").stdout
    assert "answer it alike" in told
    (account,) = answer("ledger", "show", folder / "ledger")["accounts"]
    assert [entry["epsilon"] for entry in account["entries"]] == [2]
    found = json.loads((folder / "release.json").read_text())["reliability"]
    assert found["low"] <= found["share"] <= found["high"]
    assert abs(found["share"] - 0.9) < 0.35  # noise of scale 1/100: beyond once in 10^15
    made = read_release(folder / "release.json")
    assert f"{made.reliability.share:.0%} answer alike" in repr(made)
    crowdveil("page", folder / "release.json", "--out", folder / "page.html")
    assert "answer it alike" in (folder / "page.html").read_text()


def test_parts_of_a_crowd_keep_their_repeats(folder):
    halves = folder / "half.parquet", folder / "rest.parquet"
    answer(
        "ballots",
        "split",
        folder / "crowd.parquet",
        "--share",
        "0.5",
        "--seed",
        "1",
        "--out",
        halves[0],
        "--rest",
        halves[1],
    )
    both = [read_ballots(half).alike for half in halves]
    whole = read_ballots(folder / "crowd.parquet").alike
    assert sum((one == 1).sum() for one in both) == (whole == 1).sum()


def test_what_cannot_be_is_refused_in_one_line(folder, tmp_path):
    out = ("--voters", "5", "--out", tmp_path / "x.parquet")
    refused(crowdveil("simulate", "kidney", *out, "--alike", "2"), "from 0 to 1")
    refused(crowdveil("simulate", "synthetic-3", *out, "--alike", "0.5"), "asks one dilemma twice, which neither")
    answer("ledger", "create", tmp_path / "rho", "--budget", "1", "--delta", "1e-6")
    order = ("release", folder / "crowd.parquet", "--paradigm", "vlcp", "--ledger", tmp_path / "rho")
    refused(crowdveil(*order, "--rho", "0.1", "--out", tmp_path / "r.json"), "no mechanism with a rho")
