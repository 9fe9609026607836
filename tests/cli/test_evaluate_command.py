"""crowdveil evaluate: tables at 80 columns, one JSON object, a picture, and the words that nothing is protected."""

import numpy as np
import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.sources.simulated import simulate_crowd
from crowdveil.study.bundled import load_study

PROTECTS_NOBODY = "Exact: these numbers protect nobody."


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release from some voters, and the ballots of others."""
    folder = tmp_path_factory.mktemp("evaluate")
    study = load_study("moral-machine")
    for name, seed in (("in.parquet", 1), ("out.parquet", 2)):
        write_ballots(folder / name, study, simulate_crowd(study, 60, np.random.default_rng(seed)), {})
    answer("ledger", "create", folder / "ledger", "--budget", "5")
    order = ("--paradigm", "vlcp", "--mechanism", "algorithm-1", "--epsilon", "1", "--ledger", folder / "ledger")
    answer("release", folder / "in.parquet", *order, "--out", folder / "release.json")
    return folder


def test_tables_fit_in_80_columns_and_say_that_they_protect_nobody(made):
    result = crowdveil("evaluate", made / "release.json", made / "out.parquet")
    assert result.code == 0, result.stderr
    assert PROTECTS_NOBODY in result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    for words in (
        "Judged by 780 choices of 60 voters; every voter counts once.",
        "choices predicted",
        "Calibration: what was stated",
        "By factor",
        "of 9 contain the exact value",
        "features contain the exact value",
    ):
        assert words in result.stdout


def test_json_has_every_factor_and_feature(made):
    picture = made / "picture.svg"
    data = answer("evaluate", made / "release.json", made / "out.parquet", "--weigh", "choices", "--plot", picture)
    study = load_study("moral-machine")
    assert data["protected"] is False
    assert (data["voters"], data["choices"], data["weighting"]) == (60, 780, "choices")
    assert list(data["factors"]) == [factor.name for factor in study.factors]
    assert list(data["features"]) == list(study.feature_names)
    assert set(data["scores"]) == {"release", "limit", "coin"}
    assert sum(point["choices"] for point in data["curve"]) == 780
    assert data["plot"] == str(picture)
    assert "Calibration" in picture.read_text()


def test_mistakes_are_told_before_anything_is_computed(made, tmp_path):
    release, ballots = made / "release.json", made / "out.parquet"
    refused(crowdveil("evaluate", release, ballots, "--plot", tmp_path / "a.pdf"), ".png or .svg")
    refused(crowdveil("evaluate", release, ballots, "--plot", tmp_path / "no" / "a.svg"), "there is no directory")
    refused(crowdveil("evaluate", release, ballots, "--weigh", "people"), "people")
    refused(crowdveil("evaluate", ballots, release), "Parquet file, not a release")
    other = tmp_path / "kidney.parquet"
    answer("simulate", "kidney", "--voters", "3", "--out", other)
    refused(crowdveil("evaluate", release, other), "ballots of its own study")
