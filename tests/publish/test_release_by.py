"""release_by: a release for each group of voters, from Python."""

from decimal import Decimal

import numpy as np
import pytest

import crowdveil as cv
from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import Categories
from crowdveil.publish.groups import experiment_groups, groups_of
from crowdveil.publish.request import Request
from crowdveil.sources.simulated import simulated_batches

STUDY = cv.load_study("kidney")


@pytest.fixture
def ballots():
    """Two teams of 100 simulated voters."""
    (drawn,) = simulated_batches(STUDY, 200, np.random.default_rng(1))
    about = {"team": Categories(("reds", "blues"), (np.arange(200) % 2).astype(np.int16))}
    return Ballots(STUDY, drawn.offsets, drawn.dilemmas, drawn.choices, about=about)


def test_records_of_each_group_are_released_and_compared(ballots, tmp_path):
    ledger = cv.Ledger.open(tmp_path / "ledger", budget=4)
    made = cv.release_by(ballots, "team", "rlcp", epsilon=2, ledger=ledger)
    assert list(made.releases) == ["reds", "blues"]
    assert made["reds"].guarantee.voters == 100
    assert {(one.group, one.other) for one in made.differences} == {("reds", "blues")}
    assert len(made.differences) == len(STUDY.factors)
    assert repr(made).startswith("<releases by team: reds, blues; ")
    paths = made.save(tmp_path / "r.json")
    assert paths == {"reds": tmp_path / "r-reds.json", "blues": tmp_path / "r-blues.json"}
    assert cv.read_release(paths["blues"]).digest == made["blues"].digest


def test_where_voters_are_protected_one_charge_pays_for_all(ballots, tmp_path):
    ledger = cv.Ledger.open(tmp_path / "ledger", budget=6)
    made = cv.release_by(ballots, "team", "vlcp", epsilon=6, ledger=ledger)
    assert made["reds"].guarantee.voters == 200
    made.save(tmp_path / "r.json")
    ((entry,),) = (account.entries for account in ledger.statement().accounts)
    assert entry.state == "delivered"


def test_public_groups_are_not_merged_by_noisy_counts(ballots, tmp_path):
    ledger = cv.Ledger.open(tmp_path / "ledger", budget=6)
    with pytest.raises(cv.CrowdveilError, match="where groups are public, leave it out"):
        cv.release_by(ballots, "team", "vlcp", epsilon=2, ledger=ledger, public_groups=True, smallest=5)
    assert not [account.entries for account in ledger.statement().accounts if account.entries]


def test_a_budget_that_does_not_cover_a_group_is_refused_with_its_numbers(ballots, tmp_path):
    ledger = cv.Ledger.open(tmp_path / "ledger", budget=1)
    with pytest.raises(cv.BudgetExceeded, match=r"group 'reds': requested epsilon 1\.5, remaining 1 of 1") as refusal:
        cv.release_by(ballots, "team", "rlcp", epsilon=1.5, ledger=ledger)
    assert (refusal.value.requested, refusal.value.remaining) == (Decimal("1.5"), Decimal(1))
    assert ledger.statement().accounts == ()


def test_groups_without_names_count_as_the_same_people_and_nothing_is_spent_on_the_first(ballots, tmp_path):
    ledger = cv.Ledger.open(tmp_path / "ledger", budget=3)
    with pytest.raises(cv.BudgetExceeded, match=r"group 'blues': requested epsilon 2, remaining 1 of 3"):
        cv.release_by(ballots, "team", "rlcp", epsilon=2, ledger=ledger)
    assert ledger.statement().accounts == ()


@pytest.mark.parametrize("paradigm", ["vldp", "rldp", "aldp"])
def test_personal_epsilons_go_with_their_voters_into_the_groups(ballots, tmp_path, paradigm):
    """Reds chose 0.5 or 1, blues 2 or 3; each group is released as it would be alone, with the epsilons of its own."""
    epsilons = [(0.5, 2, 1, 3)[place % 4] for place in range(200)]
    ledger = cv.Ledger.open(tmp_path / "ledger", budget=4)
    made = cv.release_by(ballots, "team", paradigm, epsilon=epsilons, ledger=ledger, public_groups=paradigm == "vldp")
    assert {label: one.guarantee.epsilons for label, one in made.releases.items()} == {
        "reds": "0.5 to 1",
        "blues": "2 to 3",
    }
    request = Request.of(paradigm, epsilons)
    apart = experiment_groups(groups_of(ballots, "team", request), seed=7)
    for team, label in enumerate(("reds", "blues")):
        alone = ballots.take(np.arange(team, 200, 2))
        same = cv.release_for_experiments(alone, paradigm, epsilon=epsilons[team::2], seed=7 + team)
        assert apart[label].parameter.tolist() == same.parameter.tolist()


def test_personal_epsilons_of_groups_are_one_for_each_voter_of_the_crowd_and_need_public_groups(ballots, tmp_path):
    ledger = cv.Ledger.open(tmp_path / "ledger", budget=4)
    with pytest.raises(cv.CrowdveilError, match="100 personal epsilons were given for 200 voters: give one for each"):
        cv.release_by(ballots, "team", "rldp", epsilon=[1] * 100, ledger=ledger)
    with pytest.raises(cv.CrowdveilError, match=r"need one epsilon for all.*declare with public_groups=True"):
        cv.release_by(ballots, "team", "vldp", epsilon=[1] * 200, ledger=ledger)
    assert ledger.statement().accounts == ()


@pytest.mark.parametrize("paradigm", ["vlcp", "rlcp"])
def test_the_path_of_a_ledger_is_no_ledger(ballots, tmp_path, paradigm):
    with pytest.raises(cv.CrowdveilError, match="open it first"):
        cv.release_by(ballots, "team", paradigm, epsilon=2, ledger=tmp_path / "ledger")
