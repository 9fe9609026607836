"""Publishing: charged before drawn, refused when it does not fit, and never half done."""

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import fields

import numpy as np
import pytest

from crowdveil.ballots.ballot_file import open_ballots, write_ballots
from crowdveil.ballots.ballots import Ballots, census
from crowdveil.decision import decide
from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.estimation.society import fit_voters
from crowdveil.privacy.epsilon import Amount, Epsilon, Epsilons
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.zcdp import ZcdpBudget
from crowdveil.publish.release import experiment, preview, publish, release, release_for_experiments
from crowdveil.publish.request import Request, preview_request
from crowdveil.releases import read_release
from crowdveil.sources.simulated import synthetic_crowd
from crowdveil.study.bundled import load_study

pytestmark = pytest.mark.usefixtures("few_crowds")

ONE = Epsilon.of_millionths(1_000_000)


@pytest.fixture
def crowd():
    return synthetic_crowd(200, 20, 4, np.random.default_rng(3)).ballots


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "l", 4)


@pytest.mark.parametrize("name", PARADIGMS)
def test_each_paradigm_releases_its_crowd(name, crowd, ledger, tmp_path):
    made = publish(crowd, Request(PARADIGMS[name], ONE), ledger, tmp_path / "r.json")
    assert made.guarantee.paradigm.name == name
    assert made.guarantee.voters == 200
    assert read_release(tmp_path / "r.json").as_dict() == made.as_dict()


@pytest.mark.parametrize("name", ["vlcp", "rlcp", "vldp"])
def test_the_release_is_the_exact_society_up_to_its_noise(name, crowd, ledger, tmp_path):
    made = publish(crowd, Request(PARADIGMS[name], ONE, mechanism="paper"), ledger, tmp_path / "r.json")
    truth = fit_voters(crowd, 2.0).values.mean(axis=0)
    widest = np.asarray(made.noise.half_widths(1 - 1e-9))
    assert (np.abs(made.parameter - truth) <= widest).all()


def test_the_ledger_is_charged_and_told(crowd, ledger, tmp_path):
    made = publish(crowd, Request(PARADIGMS["vlcp"], ONE), ledger, tmp_path / "r.json")
    (account,) = ledger.statement().accounts
    (entry,) = account.entries
    assert entry.dataset == census(crowd).fingerprint
    assert entry.charged.micro == 1_000_000
    assert entry.release_digest == made.digest == read_release(tmp_path / "r.json").digest
    assert made.ledger == {"id": ledger.id, "entry": entry.id}


def test_a_spent_budget_refuses_and_writes_nothing(crowd, ledger, tmp_path):
    request = Request(PARADIGMS["vlcp"], Epsilon.of_millionths(3_000_000))
    publish(crowd, request, ledger, tmp_path / "first.json")
    with pytest.raises(BudgetExceeded, match="requested epsilon 3, remaining 1 of 4, difference 2"):
        publish(crowd, request, ledger, tmp_path / "second.json")
    assert not (tmp_path / "second.json").exists()


def test_what_can_fail_early_costs_nothing(crowd, ledger, tmp_path):
    for request, path in [
        (Request(PARADIGMS["vlcp"], ONE), tmp_path / "no" / "r.json"),
        (Request(PARADIGMS["vlcp"], ONE), tmp_path),
        (Request(PARADIGMS["vlcp"], ONE, mechanism="algorithm-3"), tmp_path / "r.json"),
        (Request(PARADIGMS["vldp"], Epsilons.same(1, 3)), tmp_path / "r.json"),
    ]:
        with pytest.raises(CrowdveilError):
            publish(crowd, request, ledger, path)
    assert ledger.statement().accounts == ()


def test_the_front_door_takes_names_and_numbers(crowd, tmp_path):
    ledger = Ledger.open(tmp_path / "study.ledger", budget=3)
    assert Ledger.open(tmp_path / "study.ledger", budget="3") == ledger
    made = release(crowd, "vlcp", epsilon=0.1, ledger=ledger)
    ((entry,),) = (account.entries for account in ledger.statement().accounts)
    assert (entry.charged, entry.state) == (Amount.of("0.1"), "charged, not delivered")
    made.save(tmp_path / "release.json")
    made.save(str(tmp_path / "again.json"))
    ((entry,),) = (account.entries for account in ledger.statement().accounts)
    assert entry.release_digest == made.digest == read_release(tmp_path / "release.json").digest
    expected = preview(crowd, "vlcp", epsilon=0.1)
    assert expected.guarantee == made.guarantee


def test_personal_epsilons_are_a_list_of_numbers(crowd):
    chosen = [0.5, "1"] * 100
    made = release_for_experiments(crowd, "VLDP", epsilon=chosen, seed=1)
    same = experiment(crowd, Request(PARADIGMS["vldp"], Epsilons(chosen)), seed=1)
    assert made.as_dict() == same.as_dict()
    assert not made.exact


@pytest.mark.parametrize("ask", [release, preview, release_for_experiments])
def test_a_public_function_has_the_parameters_of_a_request(ask):
    """Editors and type checkers read the signature; what it says must be what is asked for."""
    parameters = inspect.signature(ask).parameters
    assert "zcdp" in parameters
    wanted = {field.name: field for field in fields(Request)}
    shared = wanted.keys() & parameters.keys()
    left_out = {"one_record_each", "public_selection"} if ask is release_for_experiments else set()
    assert wanted.keys() - shared == left_out
    for name in shared - {"paradigm", "epsilon"}:  # these two are read from names and numbers
        assert parameters[name].default == wanted[name].default
        assert parameters[name].annotation == wanted[name].type
    extra = {release: "ledger", release_for_experiments: "seed"}
    assert parameters.keys() - wanted.keys() == {"ballots", "zcdp", extra.get(ask)} - {None}


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"paradigm": "vlc"}, "there is no paradigm 'vlc': choose one of vlcp, rlcp"),
        ({"paradigm": 3}, "there is no paradigm 3"),
        ({"epsilon": None}, "give either an epsilon"),
        ({"zcdp": ZcdpBudget("0.02", 1e-6)}, "give either an epsilon"),
        ({"epsilon": None, "zcdp": 0.02}, "use ZcdpBudget"),
        ({"epsilon": "much"}, "epsilon is 'much'"),
        ({"epsilon": -1}, "epsilon is -1"),
        ({"epsilon": {"anna": 1}}, "epsilon is 'anna'"),
        ({"epsilon": object()}, "not a finite number"),
        ({"epsilon": [1, 2]}, "vlcp adds one noise for all: personal epsilons need vldp, rldp or aldp"),
        ({"paradigm": "vldp", "epsilon": [1, 2]}, "2 personal epsilons were given for 200 voters"),
        ({"mechanism": 2}, "the mechanism is 2"),
        ({"mechanism": "algorithm-3"}, "does not serve vlcp"),
        ({"norm_bound": 0}, "norm bound B must be a positive number"),
        ({"norm_bound": "2"}, "norm bound B must be a positive number"),
        ({"norm_bound": 1}, "voter-score has no option norm_bound, only design: leave it out"),
        ({"sensitivity": True}, "the sensitivity is True: use tight or paper"),
        ({"robust": 0.5}, "from 0 to below 0.5"),
        ({"robust": None}, "from 0 to below 0.5"),
        ({"ballots": "answers.csv.gz"}, "read them first"),
    ],
)
def test_a_wrong_argument_is_one_line_at_the_call(crowd, ledger, wrong, complaint):
    given = {"ballots": crowd, "paradigm": "vlcp", "epsilon": 1} | wrong
    for ask, more in ((preview, {}), (release_for_experiments, {"seed": 1}), (release, {"ledger": ledger})):
        with pytest.raises(CrowdveilError, match=re.escape(complaint)) as refusal:
            ask(**given, **more)
        assert "\n" not in str(refusal.value)
    assert ledger.statement().accounts == ()


@pytest.mark.parametrize("wrong", ["study.ledger", None, 3])
def test_a_ledger_is_opened_first(crowd, wrong):
    with pytest.raises(CrowdveilError, match=r"open it first, with Ledger\.open"):
        release(crowd, "vlcp", epsilon=1, ledger=wrong)


@pytest.mark.parametrize("seed", [None, -1, 0.5, True, "1"])
def test_a_seed_is_a_whole_number(crowd, seed):
    with pytest.raises(CrowdveilError, match="the seed is"):
        release_for_experiments(crowd, "vlcp", epsilon=1, seed=seed)


def test_one_voter_is_not_a_crowd(crowd):
    with pytest.raises(CrowdveilError, match="not a crowd"):
        preview_request(crowd[:1], Request(PARADIGMS["vlcp"], ONE))


def test_personal_epsilons_promise_the_largest_to_all_and_each_her_own(crowd):
    epsilons = Epsilons(np.round(np.linspace(0.1, 2, 200), 6))
    made = experiment(crowd, Request(PARADIGMS["vldp"], epsilons), seed=1)
    assert made.guarantee.personal
    assert (made.guarantee.smallest_epsilon, made.guarantee.epsilon) == (
        Epsilon.of_millionths(100_000),
        Epsilon.of_millionths(2_000_000),
    )


def test_an_experiment_is_repeatable_and_marked(crowd):
    a, b, c = (experiment(crowd, Request(PARADIGMS["vlcp"], ONE), seed) for seed in (1, 1, 2))
    assert a.parameter.tolist() == b.parameter.tolist() != c.parameter.tolist()
    assert not a.exact
    assert a.ledger is None


@pytest.mark.parametrize("epsilon", [1, 3])
@pytest.mark.parametrize("name", ["alcp", "aldp"])
def test_nothing_is_known_of_a_feature_that_nobody_was_asked_about(name, epsilon, crowd):
    unasked = crowd.differences.copy()
    unasked[:, 1] = 0
    made = release_for_experiments(
        Ballots.from_differences(crowd.study, crowd.offsets, unasked), name, epsilon=epsilon, seed=1
    )
    assert made.known.tolist() == [True, False, True, True]
    features = crowd.study.feature_names
    decision = decide(made, [{features[1]: 1.0}, {features[1]: -1.0}], certainty=0.5)
    assert decision.choice is None
    assert decision.probability == pytest.approx(0.5, abs=0.02)
    assert decide(made, [{features[0]: 2.0}, {features[0]: -2.0}]).certainty > 0.9


def test_exact_noise_is_never_the_same(crowd, ledger, tmp_path):
    request = Request(PARADIGMS["vlcp"], ONE)
    a, b = (publish(crowd, request, ledger, tmp_path / f"{i}.json") for i in range(2))
    assert a.parameter.tolist() != b.parameter.tolist()


def test_the_release_does_not_depend_on_how_the_crowd_is_cut(crowd, tmp_path):
    class Cut:
        study, voters = crowd.study, crowd.voters

        def batches(self):
            yield crowd[:7]
            yield crowd[7:200]

    request = Request(PARADIGMS["vlcp"], ONE)
    assert experiment(Cut(), request, 1).parameter.tolist() == experiment(crowd, request, 1).parameter.tolist()
    assert census(Cut()) == census(crowd)


RELEASE_FOREVER = """
import os
import sys
from pathlib import Path
from crowdveil.ballots.ballot_file import open_ballots
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.publish.release import publish
from crowdveil.publish.request import Request
folder, request = Path(sys.argv[1]), Request(PARADIGMS["vlcp"], Epsilon.of_millionths(100))
for run in range(int(sys.argv[2])):
    if child := os.fork():
        os.waitpid(child, 0)
        continue
    source, ledger = open_ballots(folder / "b.parquet"), Ledger.open(folder / "l")
    for i in range(10**6):
        publish(source, request, ledger, folder / f"{run}-{i}.json")
        if i == 0:
            print(os.getpid(), flush=True)
"""
"""Everything is imported once; every run is a process of its own."""


def test_a_kill_at_any_moment_leaves_no_uncharged_release(crowd, ledger, tmp_path):
    write_ballots(tmp_path / "b.parquet", crowd.study, [crowd], {})
    rng, runs = np.random.default_rng(), 4
    words = [sys.executable, "-c", RELEASE_FOREVER, str(tmp_path), str(runs)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(runs):
            child = int(process.stdout.readline())
            time.sleep(float(rng.uniform(0, 0.3)))
            os.kill(child, signal.SIGKILL)
    assert process.returncode == 0
    (account,) = ledger.statement().accounts
    entries = {e.id: e for e in account.entries}
    files = list(tmp_path.glob("*-*.json"))
    assert files
    for path in files:
        made = read_release(path)  # whole, or not there
        entry = entries[made.ledger["entry"]]
        assert entry.release_digest in (made.digest, None)
    assert len(entries) >= len(files)
    assert {e.id for e in account.undelivered} >= set(entries) - {
        json.loads(p.read_text())["ledger"]["entry"] for p in files
    }
    assert open_ballots(tmp_path / "b.parquet").voters == 200


def test_voters_that_may_be_rows_are_confirmed_by_name() -> None:
    study = load_study("kidney")
    ballots = Ballots.from_differences(study, np.arange(31), np.ones((30, study.dimension)))
    with pytest.raises(CrowdveilError, match="30 voters have 30 records, nearly all of them one each"):
        preview(ballots, "vlcp", epsilon=1)
    assert preview(ballots, "vlcp", epsilon=1, one_record_each=True).guarantee.voters == 30
    assert preview(ballots, "rlcp", epsilon=1).guarantee.voters == 30
    assert release_for_experiments(ballots, "vlcp", epsilon=1, seed=0).guarantee.voters == 30
