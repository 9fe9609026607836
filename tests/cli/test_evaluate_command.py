"""crowdveil evaluate: tables at 80 columns, one JSON object, a picture, and the words that nothing is protected."""

import numpy as np
import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import write_ballots
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study
from crowdveil.study.features import Feature
from crowdveil.study.study import Drawing, Study

PROTECTS_NOBODY = "Exact: these numbers protect nobody."


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release from some voters, and the ballots of others."""
    folder = tmp_path_factory.mktemp("evaluate")
    study = load_study("moral-machine")
    for name, seed in (("in.parquet", 1), ("out.parquet", 2)):
        write_ballots(folder / name, study, simulated_batches(study, 60, np.random.default_rng(seed)), {})
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


def test_the_bar_of_a_feature_that_the_study_never_varies_is_not_known(tmp_path):
    study = dilemmas_with_a_fixed_feature()
    write_ballots(tmp_path / "b.parquet", study, simulated_batches(study, 60, np.random.default_rng(1)), {})
    order = ("--paradigm", "vlcp", "--epsilon", "1", "--experiment-seed", "1")
    answer("release", tmp_path / "b.parquet", *order, "--out", tmp_path / "r.json")
    result = crowdveil("evaluate", tmp_path / "r.json", tmp_path / "b.parquet", "--allow-experiment")
    assert result.code == 0, result.stderr
    _, shown = result.stdout.split("Error bars: ")
    rows = {line.split()[0]: line.split()[2] for line in shown.splitlines()[2:]}
    assert rows["fixed"] == "not"
    assert float(rows["patients"]) > 0


def dilemmas_with_a_fixed_feature():
    features = (
        Feature("patients", "patients", 0, 5, levels=(1, 2, 3), lean=0.4),
        Feature("fixed", "fixed", 0, 5, levels=(2,)),
    )
    return Study("one-level", "One level", "Which?", features, Drawing("independent", 5))
