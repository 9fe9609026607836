"""crowdveil plan with its two questions, a zCDP ledger, and a release with Gaussian noise: from the command line."""

import numpy as np
import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.sources.simulated import synthetic_crowd


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repeated")
    crowd = synthetic_crowd(30, 10, 3, np.random.default_rng(1)).ballots
    write_ballots(folder / "b.parquet", crowd.study, [crowd], {})
    return folder


def test_plan_solves_the_theorem_as_before():
    solved = answer(
        "plan", "society", "--features", 10, "--bound", 2, "--epsilon", 1, "--confidence", 0.95, "--error", 0.1
    )
    assert solved["voters"] == 212  # 4 ln(200) / 0.1, rounded up
    refused(crowdveil("plan", "society"), "leave out exactly one")


def test_plan_shuffle():
    found = answer("plan", "shuffle", "--epsilon", 1, "--voters", 10_000, "--delta", "1e-8")
    assert 0.067 < found["epsilon"] <= 0.070
    said = " ".join(crowdveil("plan", "shuffle", "--epsilon", 1, "--voters", 100, "--delta", 0.1).stdout.split())
    assert "trusted shuffler" in said
    assert "the same epsilon" in said
    assert "too large for 100 voters" in said
    refused(crowdveil("plan", "shuffle", "--epsilon", 1, "--voters", 0, "--delta", "1e-8"), "number of voters must be")


def test_plan_repeat():
    words = ("--epsilon", 1, "--delta", "1e-6", "--voters", 10_000, "--features", 23, "--bound", 2)
    many, few = answer("plan", "repeat", "--releases", 52, *words), answer("plan", "repeat", "--releases", 3, *words)
    assert (many["better"], few["better"]) == ("gaussian", "laplace")
    assert many["laplace"]["error_bar"] == pytest.approx(4 * 52 / 10_000 * np.log(20))
    refused(crowdveil("plan", "repeat", "--releases", 0, *words), "number of releases must be 1 or more")
    assert "--rho 0.000468 --ledger L" in crowdveil("plan", "repeat", "--releases", 52, *words).stdout


def test_a_zcdp_ledger_and_two_kinds_of_releases(folder):
    ledger, release = folder / "z", ("release", folder / "b.parquet", "--paradigm", "vlcp", "--ledger", folder / "z")
    made = answer("ledger", "create", ledger, "--budget", 1, "--delta", "1e-6")
    assert (made["delta"], made["rho"]) == (1e-6, 0.024355)
    looked = answer(*release, "--rho", "0.000468", "--dry-run")
    assert (looked["budget"]["measure"], looked["budget"]["requested"]) == ("rho", 0.000468)
    gaussian = answer(*release, "--rho", "0.000468", "--out", folder / "g.json")
    assert gaussian["guarantee"]["rho"] == 0.000468
    pure = answer(*release, "--epsilon", "0.03", "--out", folder / "p.json")
    assert "delta" not in pure["guarantee"]
    shown = answer("ledger", "show", ledger)
    assert [entry["rho"] for entry in shown["accounts"][0]["entries"]] == [0.000468, 0.00045]
    assert "are together (0.17" in crowdveil("ledger", "show", ledger).stdout
    refused(
        crowdveil(*release, "--rho", "1", "--out", folder / "x.json"), "requested rho 1, remaining 0.023437 of 0.024355"
    )
    refused(crowdveil(*release, "--rho", "1", "--epsilon", 1, "--out", folder / "x.json"), "give one of --epsilon")
    assert not (folder / "x.json").exists()


def test_a_rho_needs_a_zcdp_ledger(folder):
    answer("ledger", "create", folder / "pure", "--budget", 1)
    release = ("release", folder / "b.parquet", "--paradigm", "vlcp", "--rho", "0.000468", "--out", folder / "y.json")
    refused(crowdveil(*release, "--ledger", folder / "pure"), "--rho needs a zCDP ledger")
    refused(crowdveil(*release), "--rho needs a zCDP ledger")
