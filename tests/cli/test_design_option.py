"""crowdveil release --design and --along: which dilemmas were asked, and what of a preference is measured."""

import json
from html import unescape

import numpy as np
import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.releases import read_release
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study

STUDY = load_study("kidney")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ballots of 200 simulated voters, those of 20 others, and a ledger."""
    place = tmp_path_factory.mktemp("design")
    for name, voters, seed in (("crowd", 200, 1), ("others", 20, 2), ("few", 2, 3)):
        (drawn,) = simulated_batches(STUDY, voters, np.random.default_rng(seed))
        write_ballots(place / f"{name}.parquet", STUDY, [drawn], {})
    answer("ledger", "create", place / "ledger", "--budget", "99")
    return place


def order(folder, *more):
    return ("release", folder / "crowd.parquet", "--epsilon", "1", "--ledger", folder / "ledger", *more)


@pytest.mark.parametrize(
    ("given", "said"), [("study", "The study's own generator drew the dilemmas"), ("others", "800 public dilemmas")]
)
def test_the_release_says_which_design_was_given(folder, given, said):
    design = given if given == "study" else folder / f"{given}.parquet"
    out = folder / f"{given}.json"
    answer(*order(folder, "--paradigm", "rlcp", "--design", design, "--out", out))
    written = json.loads(out.read_text())
    assert said in written["facts"]["dilemmas"]
    assert max(written["unknown"]["doubt"]) == 0  # nothing about the dilemmas is in doubt


@pytest.mark.parametrize(
    ("paradigm", "said", "how"),
    [
        # 200 voters at epsilon 1 are 40 for each of five factors, and their 8,000 records are 1,600.
        ("vlcp", "taken to be the study's own; error bars allow for 15% of the second step's change", "2 steps; every"),
        ("rlcp", "need not be the study's own: 0.12 of epsilon measured", "every record counts once"),
        ("alcp", "are known: only the choices are secret", "every choice counts once"),
        (
            "vldp",
            "taken to be the study's own; error bars allow for 15%",
            "1 bit a report, along one of 5 axes; every voter",
        ),
        ("rldp", "of 200 reports measured how much they differ", "5 numbers a report, along 5 of 5 axes; every record"),
        ("aldp", "of 200 reports measured how much they differ", "every record counts once"),  # by score, here
    ],
)
def test_every_release_says_what_it_did_about_the_dilemmas_of_a_file(folder, paradigm, said, how):
    out = folder / f"{paradigm}.json"
    told = " ".join(crowdveil(*order(folder, "--paradigm", paradigm, "--out", out)).stdout.split())
    made = read_release(out)
    assert said in made.facts["dilemmas"]
    assert told.count(made.facts["dilemmas"]) == 1
    assert how in told
    made.page(folder / "page.html")
    page = unescape((folder / "page.html").read_text())
    assert page.count(made.facts["dilemmas"]) == 1
    assert all(f"<dd>{phrase}</dd>" in page for phrase in how.split("; ")[:-1])


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


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    """Ballots of 300 simulated voters of the study that has more features than factors, and a ledger."""
    place = tmp_path_factory.mktemp("along")
    study = load_study("moral-machine")
    (drawn,) = simulated_batches(study, 300, np.random.default_rng(1))
    write_ballots(place / "crowd.parquet", study, [drawn], {})
    answer("ledger", "create", place / "ledger", "--budget", "99")
    return place


@pytest.mark.parametrize(
    ("given", "measured"),
    [
        (("--paradigm", "rldp", "--epsilon", "1", "--design", "study"), "factors"),
        (("--paradigm", "rldp", "--epsilon", "9", "--design", "study"), "features"),
        (("--paradigm", "rldp", "--epsilon", "9"), None),
        (("--paradigm", "vlcp", "--epsilon", "1", "--along", "features"), "features"),
    ],
)
def test_what_is_measured_is_asked_for_or_chosen_by_public_numbers_and_stands_in_the_release(machine, given, measured):
    out = machine / "out.json"
    answer("release", machine / "crowd.parquet", *given, "--ledger", machine / "ledger", "--out", out)
    written = json.loads(out.read_text())
    assert written["study"].get("along") == measured
    axes = len(written["unknown"]["center"])
    assert axes == (23 if measured == "features" else 9)
    # Whatever is measured, the factors are told, and the release decides dilemmas of the same study.
    assert len(answer("decide", out, '[{"features": {"girl": 1}}, {"features": {"dog": 2}}]')["ranking"]) == 2


def test_a_release_says_what_it_measured(machine):
    order = ("release", machine / "crowd.parquet", "--paradigm", "rldp", "--epsilon", "1", "--design", "study")
    for along, said in (("factors", "bounded by its prior"), ("features", "every direction in which they differ")):
        given = ("--along", along, "--ledger", machine / "ledger", "--out", machine / f"{along}.json")
        told = " ".join(crowdveil(*order, *given).stdout.split())
        assert f"Measured along {along}: " in told
        assert said in told
        assert read_release(machine / f"{along}.json").measured == along


def test_a_study_whose_factors_leave_nothing_out_needs_no_such_words(folder):
    out = folder / "kidney.json"
    assert "Measured along" not in crowdveil(*order(folder, "--paradigm", "rlcp", "--out", out)).stdout
    assert read_release(out).measured is None


def test_a_wrong_word_for_what_to_measure_names_the_right_ones_and_costs_nothing(machine):
    before = answer("ledger", "show", machine / "ledger")
    given = ("--paradigm", "vlcp", "--epsilon", "1", "--along", "axes", "--out", machine / "wrong.json")
    refused(
        crowdveil("release", machine / "crowd.parquet", *given, "--ledger", machine / "ledger"),
        "along is 'axes': use 'factors' or 'features', or leave it out",
    )
    assert answer("ledger", "show", machine / "ledger") == before
