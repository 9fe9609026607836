"""crowdveil release --design: dilemmas that are public, or the study's own generator, in place of a guess."""

import json

import numpy as np
import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.sources.simulated import simulate_crowd
from crowdveil.study.bundled import load_study

STUDY = load_study("kidney")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ballots of 200 simulated voters, those of 20 others, and a ledger."""
    place = tmp_path_factory.mktemp("design")
    for name, voters, seed in (("crowd", 200, 1), ("others", 20, 2), ("few", 2, 3)):
        (drawn,) = simulate_crowd(STUDY, voters, np.random.default_rng(seed))
        write_ballots(place / f"{name}.parquet", STUDY, [drawn], {})
    answer("ledger", "create", place / "ledger", "--budget", "9")
    return place


def order(folder, *more):
    return ("release", folder / "crowd.parquet", "--epsilon", "1", "--ledger", folder / "ledger", *more)


@pytest.mark.parametrize(
    ("given", "said"), [("study", "the study's own generator drew the dilemmas"), ("others", "800 public dilemmas")]
)
def test_the_release_says_which_design_was_given(folder, given, said):
    design = given if given == "study" else folder / f"{given}.parquet"
    out = folder / f"{given}.json"
    answer(*order(folder, "--paradigm", "rlcp", "--design", design, "--out", out))
    written = json.loads(out.read_text())
    assert said in written["facts"]["design"]
    assert max(written["unknown"]["doubt"]) == 0  # nothing about the dilemmas is in doubt


@pytest.mark.parametrize(
    ("paradigm", "design", "words"),
    [
        ("rlcp", "crowd", "the design is the ballots themselves"),
        ("rlcp", "few", "has 80 dilemmas: give at least 100"),
        ("alcp", "others", "design"),
        ("rlcp", "missing", "missing.parquet"),
    ],
)
def test_what_is_no_design_is_told_in_one_line_and_costs_nothing(folder, paradigm, design, words):
    before = answer("ledger", "show", folder / "ledger")
    more = ("--paradigm", paradigm, "--design", folder / f"{design}.parquet", "--out", folder / "no.json")
    refused(crowdveil(*order(folder, *more)), words)
    assert answer("ledger", "show", folder / "ledger") == before
    assert not (folder / "no.json").exists()
