"""crowdveil effects: tables, pictures and pages, a dry run that spends nothing, and one line for what is wrong."""

import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import read_ballots, write_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import Categories
from crowdveil.cli.terminal import WIDTH
from crowdveil.pages.effects_page import groups_section
from crowdveil.publish.effects import exact_effects
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ballots of 400 simulated voters who said which of two teams they belong to, and a ledger."""
    folder = tmp_path_factory.mktemp("effects")
    study = load_study("moral-machine")
    (drawn,) = simulated_batches(study, 400, np.random.default_rng(1))
    about = {"team": Categories(("reds", "blues & <greens>"), (np.arange(400) % 2).astype(np.int16))}
    ballots = Ballots(study, drawn.offsets, drawn.dilemmas, drawn.choices, scenarios=drawn.scenarios, about=about)
    write_ballots(folder / "crowd.parquet", study, [ballots], {})
    answer("ledger", "create", folder / "ledger", "--budget", "5")
    return folder


@pytest.fixture(scope="module")
def made(folder):
    order = ("--paradigm", "rlcp", "--epsilon", "1", "--ledger", folder / "ledger", "--by", "team")
    files = ("--out", folder / "e.json", "--table", folder / "e.csv", "--plot", folder / "e.svg")
    return answer("effects", folder / "crowd.parquet", *order, *files)


def test_one_call_writes_effects_table_and_picture(folder, made):
    assert made == json.loads((folder / "e.json").read_text())
    assert [one["label"] for one in made["groups"]] == ["reds", "blues & <greens>"]
    assert len(pl.read_csv(folder / "e.csv")) == 18
    drawn = (folder / "e.svg").read_text()
    assert "the car stays on course" in drawn
    assert "blues &amp; &lt;greens&gt;" in drawn


def test_the_page_shows_groups_and_what_is_promised(folder, made):
    answer("page", folder / "e.json")
    page = (folder / "e.html").read_text()
    for words in (
        "What was preferred",
        "Groups by team",
        "blues &amp; &lt;greens&gt;",
        "pairs of the scenario Species",
        "Who belongs to which group is not protected",
        "charged to a privacy ledger",
    ):
        assert words in page, words
    assert "<greens>" not in page
    assert "<script" not in page


def test_people_read_tables_and_a_verdict_for_each_factor(folder):
    result = crowdveil("effects", folder / "crowd.parquet", "--exact", "--by", "team")
    assert result.code == 0
    assert "Differences between groups" in result.stdout
    assert "Species: agree: all prefer people." in result.stdout
    assert "not for publishing" in result.stderr


def test_a_noisy_number_of_voters_is_about_so_many_and_an_exact_one_is_not(folder, made):
    """Half of the 400 are reds; rlcp counts them exactly."""
    answer("page", folder / "e.json")
    assert "reds: 200 voters;" in (folder / "e.html").read_text()
    order = ("--paradigm", "vlcp", "--epsilon", "1", "--ledger", folder / "ledger", "--by", "team")
    told = crowdveil("effects", folder / "crowd.parquet", *order, "--out", folder / "noisy.json").stdout
    counted = json.loads((folder / "noisy.json").read_text())["groups"][0]["voters"]
    assert f"team: reds, about {counted:.0f} voter" in told


def test_nothing_is_compared_with_a_group_of_nobody(folder, tmp_path):
    ballots = read_ballots(folder / "crowd.parquet")
    team = Categories(("reds", "blues", "greens"), ballots.about["team"].codes)
    crowd = replace(ballots, about={"team": team})
    write_ballots(tmp_path / "crowd.parquet", ballots.study, [crowd], {})
    said = crowdveil("effects", tmp_path / "crowd.parquet", "--exact", "--by", "team").stdout.partition("Differences")[
        2
    ]
    for line in said.splitlines()[2:29]:
        assert ("less greens" in line) == ("  not known    no" in line), line
    assert re.search("reds less blues +[+-]0", said)
    page = groups_section(exact_effects(crowd, by="team"))
    assert len(re.findall("less greens</td><td[^>]*></td><td[^>]*>not known</td>", page)) == 2 * 9


def test_tables_fit_80_columns(folder):
    ballots, order = folder / "crowd.parquet", ("--paradigm", "vlcp", "--epsilon", "1", "--dry-run")
    for words in (("--exact",), ("--exact", "--by", "team"), order):
        lines = crowdveil("effects", ballots, *words).stdout.splitlines()
        heading = next(i for i, line in enumerate(lines) if line.startswith("factor"))
        rows = lines[heading : heading + 10]
        assert ("read from" if words is order else "scenario") in rows[0]
        assert max(map(len, rows)) <= WIDTH


def test_a_dry_run_spends_nothing(folder):
    order = ("--paradigm", "vlcp", "--epsilon", "1", "--ledger", folder / "ledger", "--dry-run")
    before = answer("ledger", "show", folder / "ledger")
    seen = answer("effects", folder / "crowd.parquet", *order)
    assert seen["dry_run"]
    assert 0 < seen["expected_half_widths"]["species"] < 1
    assert seen["contrasts"]["law"] == "pairs that differ in it"
    assert answer("ledger", "show", folder / "ledger") == before
    assert "would charge epsilon 1" in crowdveil("effects", folder / "crowd.parquet", *order).stdout


def test_decide_refuses_effects_in_one_line(folder, made):
    refused(crowdveil("decide", folder / "e.json", "[]"), "it holds effects, which decide nothing")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "say who is protected and how much"),
        (("--paradigm", "rlcp", "--epsilon", "1"), "say where to write the effects"),
        (("--paradigm", "rlcp", "--epsilon", "1", "--out", "x.json"), "effects must be charged to a ledger"),
        (("--exact", "--epsilon", "1"), "leave out --epsilon"),
        (("--exact", "--smallest", "5"), "means nothing without --by"),
        (("--exact", "--by", "height"), "do not say what voters' 'height' is"),
        (("--exact", "--plot", "x.pdf"), "must end in .png or .svg"),
        (("--paradigm", "rlcp", "--epsilon", "1", "--weights", "w.csv", "--dry-run"), "go together"),
    ],
)
def test_wrong_calls_get_one_line(folder, given, said):
    refused(crowdveil("effects", folder / "crowd.parquet", *given), said)


def test_effects_that_an_experiment_implies_are_allowed_by_name(folder):
    experiment = ("--paradigm", "rlcp", "--epsilon", "1", "--experiment-seed", "1", "--out", folder / "r.json")
    answer("release", folder / "crowd.parquet", *experiment)
    refused(crowdveil("effects", folder / "r.json"), "commands have --allow-experiment")
    assert answer("effects", folder / "r.json", "--allow-experiment")["implied"]
