"""crowdveil release --by and --effects: a file for each group, one budget for two things, and nothing is lost."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.program import answer, crowdveil, refused

from crowdveil.ballots.ballot_file import open_ballots, write_ballots
from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import Categories
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study

STUDY = load_study("kidney")
DILEMMA = json.dumps([{feature.name: feature.low for feature in STUDY.features}] * 2)


@pytest.fixture
def folder(tmp_path):
    """Ballots of 200 named simulated voters in two teams, and a ledger with a budget of 2."""
    (drawn,) = simulated_batches(STUDY, 200, np.random.default_rng(1))
    about = {"team": Categories(("reds", "blues"), (np.arange(200) % 2).astype(np.int16))}
    names = Ballots.from_arrays(
        STUDY, [f"v{i}" for i in range(200)], *([[f.low for f in STUDY.features]] * 200 for _ in range(2)), [1] * 200
    ).names
    made = Ballots(STUDY, drawn.offsets, drawn.dilemmas, drawn.choices, names=names, about=about)
    write_ballots(tmp_path / "crowd.parquet", STUDY, [made], {})
    answer("ledger", "create", tmp_path / "ledger", "--budget", "2")
    return tmp_path


def test_each_group_gets_a_release_that_its_own_people_pay_for(folder):
    order = ("--paradigm", "rlcp", "--epsilon", "1.5", "--by", "team", "--ledger", folder / "ledger")
    made = answer("release", folder / "crowd.parquet", *order, "--out", folder / "r.json")
    assert made["releases"] == {"reds": str(folder / "r-reds.json"), "blues": str(folder / "r-blues.json")}
    assert {one["factor"] for one in made["differences"]} == {factor.name for factor in STUDY.factors}
    for label in ("reds", "blues"):
        written = json.loads((folder / f"r-{label}.json").read_text())
        assert written["facts"]["group"] == label
        assert "no part of it" in written["facts"]["groups_not_protected"]
        assert written["guarantee"]["voters"] == 100
    accounts = answer("ledger", "show", folder / "ledger")["accounts"]
    assert [len(account["entries"]) for account in accounts] == [1, 1]
    answer("page", folder / "r-reds.json", folder / "r-blues.json", "--out", folder / "groups.html")
    page = (folder / "groups.html").read_text()
    assert "What differs between the groups" in page
    assert "reds less blues" in page
    again = crowdveil("release", folder / "crowd.parquet", *order, "--out", folder / "s.json")
    refused(again, "the budget does not cover the group 'reds'")
    assert not (folder / "s-reds.json").exists()


@pytest.mark.parametrize("paradigm", ["rlcp", "vlcp"])
def test_a_release_of_a_group_does_not_replace_ballots(folder, paradigm):
    ballots = (folder / "crowd.parquet").rename(folder / "r-reds.parquet")
    before = ballots.read_bytes()
    order = ("--paradigm", paradigm, "--epsilon", "1", "--by", "team", "--ledger", folder / "ledger")
    lost = crowdveil("release", ballots, *order, "--out", folder / "r.parquet")
    refused(lost, f"--out: {ballots} holds ballots, which would be lost: name another file, or remove it")
    assert ballots.read_bytes() == before
    assert not (folder / "r-blues.parquet").exists()
    assert not answer("ledger", "show", folder / "ledger")["accounts"]


@pytest.mark.parametrize("paradigm", ["vlcp", "vldp"])
def test_where_voters_are_protected_one_charge_pays_for_all_groups_and_hides_who_is_in_which(folder, paradigm):
    """At an epsilon at which noise does not hide a group of 100."""
    answer("ledger", "create", folder / "large", "--budget", "7")
    order = ("--paradigm", paradigm, "--epsilon", "6", "--by", "team", "--ledger", folder / "large")
    seen = answer("release", folder / "crowd.parquet", *order, "--dry-run")
    assert seen["groups"] == ["reds", "blues"]
    assert ("what_is_left" in seen) == (paradigm == "vldp")
    made = answer("release", folder / "crowd.parquet", *order, "--out", folder / "r.json")
    for label, path in made["releases"].items():
        written = json.loads(Path(path).read_text())
        assert written["facts"]["group"] == label
        assert written["guarantee"]["voters"] == 200, "the promise is to everybody; the size of a group is noisy"
        assert "who is in which group is protected" in written["facts"]["groups_protected"]
    (account,) = answer("ledger", "show", folder / "large")["accounts"]
    assert [entry["purpose"].split()[1] for entry in account["entries"]] == [written["mechanism"]]
    assert list(made["releases"]) == ["reds", "blues"]
    answer("page", *made["releases"].values(), "--out", folder / "groups.html")
    page = (folder / "groups.html").read_text()
    assert "Who belongs to which group is protected, too" in page
    assert ("That leaves little" in page) == (paradigm == "vldp")
    again = crowdveil("release", folder / "crowd.parquet", *order, "--out", folder / "s.json")
    refused(again, "1 of 7")
    assert not (folder / "s-reds.json").exists()


def test_groups_that_are_declared_public_are_released_one_by_one(folder):
    order = ("--paradigm", "vlcp", "--epsilon", "1", "--by", "team", "--experiment-seed", "1", "--public-groups")
    made = answer("release", folder / "crowd.parquet", *order, "--out", folder / "r.json")
    written = json.loads((folder / "r-reds.json").read_text())
    assert "declared public" in written["facts"]["groups_not_protected"]
    assert written["guarantee"]["voters"] == 100
    assert len(made["differences"]) == len(STUDY.factors)
    decided = crowdveil("decide", folder / "r-reds.json", DILEMMA, "--allow-experiment").stdout
    assert decided.startswith(f"{STUDY.question}\nAsked: the group “reds”.\n")
    assert decided.endswith("Nothing is promised to the voters: the release is an experiment.\n")
    assert answer("decide", folder / "r-reds.json", DILEMMA, "--allow-experiment")["exact"] is False


def test_a_dry_run_of_public_groups_says_what_each_would_cost_what_is_left_and_how_far_noise_reaches(folder):
    crowd = folder / "crowd.parquet"
    order = ("--by", "team", "--ledger", folder / "ledger", "--dry-run")
    fits = answer("release", crowd, "--paradigm", "rlcp", "--epsilon", "1.5", *order)
    assert fits["groups"] == {"reds": 100, "blues": 100}
    for label in ("reds", "blues"):
        seen = fits["releases"][label]
        assert seen["mechanism"] == "pooled-score"
        assert seen["guarantee"]["epsilon"] == 1.5
        assert seen["budget"]["fits"]
        assert (seen["budget"]["remaining"], seen["budget"]["remaining_after"]) == (2, 0.5)
    told = crowdveil("release", crowd, "--paradigm", "rlcp", "--epsilon", "1.5", *order).stdout
    words = " ".join(told.split())
    bar = f"{fits['releases']['blues']['expected_error_bar']:.3f}"
    assert (
        "blues, 100 voters: pooled-score would charge epsilon 1.5. Remaining: 2 of 2. Noise would move a preference "
        f"by up to {bar} (95 %)." in words
    )
    short = ("--paradigm", "vlcp", "--public-groups", "--epsilon", "3")
    lacking = answer("release", crowd, *short, *order)["releases"]["reds"]["budget"]
    assert (lacking["fits"], lacking["missing"]) == (False, 1)
    said = " ".join(crowdveil("release", crowd, *short, *order).stdout.split())
    assert said.count("Remaining: 2 of 2, which is 1 too little.") == 2
    assert "budget" not in answer("release", crowd, *short, "--by", "team", "--dry-run")["releases"]["reds"]
    assert not answer("ledger", "show", folder / "ledger")["accounts"]


def test_groups_without_names_are_charged_one_after_another_in_a_dry_run_too(folder):
    (crowd,) = open_ballots(folder / "crowd.parquet").batches()
    write_ballots(folder / "nameless.parquet", STUDY, [replace(crowd, names=None)], {})
    order = ("--paradigm", "rlcp", "--epsilon", "1.5", "--by", "team", "--ledger", folder / "ledger", "--dry-run")
    said = " ".join(crowdveil("release", folder / "nameless.parquet", *order).stdout.split())
    assert "reds, 100 voters: pooled-score would charge epsilon 1.5. Remaining: 2 of 2. Noise" in said
    assert "Remaining: 0.5 of 2, which is 1 too little." in said
    assert said.count("The ledger cannot tell who these voters are") == 1


@pytest.mark.parametrize("paradigm", ["vldp", "rldp", "aldp"])
def test_personal_epsilons_are_those_of_each_group_s_own_voters(folder, paradigm):
    (folder / "own.csv").write_text("voter,epsilon\n" + "".join(f"v{i},{(0.5, 2)[i % 2]}\n" for i in range(200)))
    public = ("--public-groups",) if paradigm == "vldp" else ()
    order = ("--paradigm", paradigm, "--epsilons", folder / "own.csv", "--by", "team", *public)
    answer("release", folder / "crowd.parquet", *order, "--ledger", folder / "ledger", "--out", folder / "r.json")
    promised = [json.loads((folder / f"r-{label}.json").read_text())["guarantee"] for label in ("reds", "blues")]
    assert [one["epsilon"] for one in promised] == [0.5, 2]


def test_nothing_is_compared_along_a_factor_of_which_nothing_is_known_in_a_group(folder):
    """No dilemma of the blues differs in the second feature, and the study's own generator is not asked."""
    (crowd,) = open_ballots(folder / "crowd.parquet").batches()
    dilemmas = crowd.dilemmas.copy()
    dilemmas[np.repeat(crowd.about["team"].codes == 1, crowd.counts), 1] = 0
    write_ballots(folder / "same.parquet", STUDY, [replace(crowd, dilemmas=dilemmas)], {})
    order = ("--paradigm", "alcp", "--epsilon", "1", "--by", "team", "--experiment-seed", "1")
    result = crowdveil("release", folder / "same.parquet", *order, "--out", folder / "r.json")
    differences = result.stdout.partition("Differences")[2]
    told = [line for line in differences.splitlines() if "reds less blues" in line]
    assert len(told) == len(STUDY.factors)
    assert [bool(re.search("reds less blues +not known +no$", line)) for line in told] == [
        name == "life_years_gained" for name in STUDY.feature_names
    ]
    answer(
        "page", folder / "r-reds.json", folder / "r-blues.json", "--out", folder / "groups.html", "--allow-experiment"
    )
    page = (folder / "groups.html").read_text()
    assert len(re.findall("reds less blues</td><td[^>]*></td><td[^>]*>not known</td>", page)) == 1


def test_what_to_type_next_is_quoted(folder, monkeypatch):
    monkeypatch.chdir(folder)
    order = ("--paradigm", "rlcp", "--epsilon", "1", "--experiment-seed", "1")
    said = crowdveil("release", "crowd.parquet", *order, "--out=-o ut.json").stdout
    assert said.endswith("Next: crowdveil decide './-o ut.json' DILEMMA, or crowdveil page './-o ut.json'\n")
    said = crowdveil("release", "crowd.parquet", *order, "--by", "team", "--out", "o ut.json").stdout
    assert said.endswith("Next: crowdveil page 'o ut-reds.json' 'o ut-blues.json'\n")
    said = crowdveil("effects", "crowd.parquet", *order, "--out", "o ut.json").stdout
    assert said.endswith("Next: crowdveil page 'o ut.json'\n")


def test_a_decision_says_from_which_epsilon_to_which_voters_chose(folder):
    (folder / "own.csv").write_text("voter,epsilon\n" + "".join(f"v{i},{(0.5, 2)[i % 2]}\n" for i in range(200)))
    order = ("--paradigm", "rldp", "--epsilons", folder / "own.csv", "--ledger", folder / "ledger")
    answer("release", folder / "crowd.parquet", *order, "--out", folder / "r.json")
    decided = crowdveil("decide", folder / "r.json", DILEMMA).stdout
    assert answer("decide", folder / "r.json", DILEMMA)["exact"] is True
    assert decided.endswith("Promised to the voters: rldp, epsilon 0.5 to 2.\n")
    assert "Asked: the group" not in decided


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--epsilon", "0.1"), "a group needs about 566 to be told from none"),
        (("--epsilon", "1", "--mechanism", "paper"), "have a mechanism of their own"),
        (("--epsilon", "1", "--smallest", "-1"), "a whole number of voters, 0 or more"),
        (("--epsilon", "1", "--smallest", "5", "--public-groups"), "where groups are public, leave it out"),
    ],
)
def test_what_secret_groups_cannot_be_is_told_and_nothing_is_spent(folder, given, said):
    order = ("--paradigm", "vlcp", "--by", "team", "--ledger", folder / "ledger", "--out", folder / "r.json")
    refused(crowdveil("release", folder / "crowd.parquet", *order, *given), said)
    assert not answer("ledger", "show", folder / "ledger")["accounts"]


@pytest.mark.parametrize("paradigm", ["rlcp", "vlcp"])
def test_groups_that_cannot_be_written_cost_nothing(folder, paradigm):
    public = () if paradigm == "rlcp" else ("--public-groups",)
    order = ("--paradigm", paradigm, "--epsilon", "1", "--by", "team", *public, "--ledger", folder / "ledger")
    refused(
        crowdveil("release", folder / "crowd.parquet", *order, "--out", folder / "nowhere" / "r.json"),
        "there is no directory",
    )
    assert not answer("ledger", "show", folder / "ledger")["accounts"]


def test_one_epsilon_makes_preferences_and_effects_and_the_split_is_shown_first(folder):
    order = ("--paradigm", "rlcp", "--epsilon", "1", "--effects", folder / "e.json", "--effects-share", "0.25")
    charged = ("--ledger", folder / "ledger", "--out", folder / "r.json")
    seen = answer("release", folder / "crowd.parquet", *order, *charged, "--dry-run")
    assert seen["split"] == {"preferences": 0.75, "effects": 0.25}
    assert not (folder / "r.json").exists()
    made = answer("release", folder / "crowd.parquet", *order, *charged)
    assert made["release"]["guarantee"]["epsilon"] == 0.75
    assert made["effects"]["guarantee"]["epsilon"] == 0.25
    assert json.loads((folder / "e.json").read_text()) == made["effects"]
    (account,) = answer("ledger", "show", folder / "ledger")["accounts"]
    assert [entry["purpose"].split()[-1] for entry in account["entries"]] == ["pooled-score", "effects"]


def test_a_budget_that_covers_only_one_of_them_spends_nothing(folder):
    order = ("--paradigm", "rlcp", "--epsilon", "2.5", "--effects", folder / "e.json", "--effects-share", "0.5")
    result = crowdveil(
        "release", folder / "crowd.parquet", *order, "--ledger", folder / "ledger", "--out", folder / "r.json"
    )
    refused(result, "the budget does not cover both together: requested epsilon 2.5, remaining 2 of 2")
    assert not answer("ledger", "show", folder / "ledger")["accounts"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--by", "size"), "do not say what voters' 'size' is"),
        (("--by", "team", "--effects", "e.json"), "give --by or --effects, not both"),
        (("--effects", "e.json", "--effects-share", "1"), "between 0 and 1"),
        (("--effects", "e.json", "--mechanism", "paper"), "leave out --mechanism"),
        (("--effects", "e.json", "--design", "study", "--bound", "1"), "leave out --bound, --design"),
        (("--effects", "e.json", "--experiment-seed", "1"), "leave out --experiment-seed"),
        (("--effects-share", "0.5"), "means nothing without --effects"),
        (("--public-groups",), "means nothing without --by"),
        (("--smallest", "5"), "means nothing without --by"),
    ],
)
def test_wrong_calls_get_one_line(folder, given, said):
    order = ("--paradigm", "rlcp", "--epsilon", "1", "--dry-run")
    refused(crowdveil("release", folder / "crowd.parquet", *order, *given), said)
