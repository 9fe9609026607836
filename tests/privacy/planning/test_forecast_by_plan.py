"""Releases foretold: closed forms against simulation, the numbers that a goal needs, and what is refused.

Plans of relays: what is proposed keeps the promise, and the next local epsilon would not.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.program import answer, crowdveil

from crowdveil.errors import CrowdveilError, OutOfReach
from crowdveil.estimation.design import public_design
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.planning.forecast import forecast
from crowdveil.privacy.planning.plan import plan, plan_relay
from crowdveil.privacy.shuffling import amplified_epsilon
from crowdveil.study.bundled import load_study

pytestmark = pytest.mark.usefixtures("few_crowds")

KIDNEY = load_study("kidney")
MORAL_MACHINE = load_study("moral-machine")


@pytest.mark.parametrize("paradigm", PARADIGMS.values(), ids=lambda paradigm: paradigm.name)
def test_a_loud_crowd_is_predicted_as_well_as_its_agreement_allows(paradigm):
    foretold = forecast(KIDNEY, paradigm, 1_000_000, 20, Epsilon(5), agreement=0.7)
    assert foretold.predicted == pytest.approx(0.7, abs=0.002)
    assert foretold.widest < 0.5


@pytest.mark.parametrize("paradigm", PARADIGMS.values(), ids=lambda paradigm: paradigm.name)
def test_of_a_faint_crowd_nothing_is_known(paradigm):
    foretold = forecast(MORAL_MACHINE, paradigm, 2, 1, Epsilon("0.001"))
    assert foretold.predicted < 0.51
    # Noise alone passes for a margin with certainty 0.9 in a tenth of cases on either side: once rightly.
    assert foretold.decided < 0.1 + 5 * math.sqrt(0.09 / 4000)
    assert set(foretold.bars.values()) == {None}


def test_a_repeat_takes_a_tenth_of_the_budget_or_of_the_reports():
    twice = replace(KIDNEY, repeat=True)
    central = forecast(twice, PARADIGMS["rlcp"], 1000, 10, Epsilon(1))
    assert central.bars == forecast(KIDNEY, PARADIGMS["rlcp"], 1000, 10, Epsilon("0.9")).bars
    devices = forecast(twice, PARADIGMS["rldp"], 1000, 10, Epsilon(1))
    assert devices.bars == forecast(KIDNEY, PARADIGMS["rldp"], 900, 10, Epsilon(1)).bars


def test_the_share_predicted_is_that_of_simulated_choices():
    """Randomised response has errors in closed form: pi / (2 N n tanh^2), and how voters differ."""
    voters, records, epsilon, agreement, rng = 200, 5, 0.5, 0.7, np.random.default_rng(1)
    foretold = forecast(MORAL_MACHINE, PARADIGMS["aldp"], voters, records, Epsilon("0.5"), agreement)
    assert foretold.mechanism == "randomised-response"
    x = public_design(MORAL_MACHINE).along[:4000]
    low, high = 0.0, 10.0
    while high - low > 1e-9:  # the deviation at which the exact preference predicts the agreement
        middle = (low + high) / 2
        lengths = middle * np.linalg.norm(x, axis=1)
        right = 0.5 + np.arcsin(lengths / np.sqrt(1 + lengths**2)) / math.pi
        low, high = (low, middle) if right.mean() > agreement else (middle, high)
    draws = 40
    rows = np.repeat(np.arange(len(x)), draws)
    gamma = rng.normal(0, low, (len(rows), x.shape[1]))
    indifferent = math.pi / 2 / (voters * records * math.tanh(epsilon / 2) ** 2)
    told = []
    for grown in (1.0, 1.6):  # a crowd of this agreement tells less by each answer, and more than 1 / 1.6 of it
        error = math.sqrt(grown * (indifferent + 0.3**2 / voters))
        released = gamma + rng.normal(0, error, gamma.shape)
        inclined = (gamma * x[rows]).sum(axis=1) + rng.normal(size=len(rows))
        told.append(float(((released * x[rows]).sum(axis=1) * inclined > 0).mean()))
    simulation = 5 * 0.5 / math.sqrt(len(rows))
    assert told[1] - simulation < foretold.predicted < told[0] + simulation


@pytest.mark.parametrize("paradigm", ["vlcp", "vldp", "rldp", "aldp"])
def test_the_voters_found_reach_the_goal_and_one_less_does_not(paradigm):
    found = plan(KIDNEY, paradigm, epsilon=1, predicted=0.7)
    assert found.predicted >= 0.7
    assert plan(KIDNEY, paradigm, epsilon=1, voters=found.voters - 1).predicted < 0.7


def test_the_epsilon_found_reaches_the_goal_and_a_smaller_one_does_not():
    found = plan(KIDNEY, "vlcp", voters=300, bar=0.5)
    assert found.widest <= 0.5
    assert plan(KIDNEY, "vlcp", voters=300, epsilon=round(found.epsilon * 0.9, 6)).widest > 0.5


def test_records_are_found_where_all_else_is_given():
    found = plan(KIDNEY, "aldp", voters=300, epsilon=1, predicted=0.74)
    assert found.voters == 300
    assert found.predicted >= 0.74
    assert found.records == 1 or plan(KIDNEY, "aldp", voters=300, epsilon=1, records=found.records - 1).predicted < 0.74


def test_the_strictest_promise_is_the_dearest():
    share = {name: plan(MORAL_MACHINE, name, voters=1500, epsilon="0.3").predicted for name in ("vldp", "rldp", "vlcp")}
    assert share["vldp"] < share["rldp"] < share["vlcp"]


@pytest.mark.parametrize(
    ("given_numbers", "words"),
    [
        ({}, "one can be found"),
        ({"voters": 1, "epsilon": 1}, "the number of voters is .* from 2 to 10,000,000,000"),
        ({"voters": 10, "epsilon": 1, "records": 0}, "the number of records is .* from 1 to 10,000,000,000"),
        ({"voters": 10, "epsilon": 1, "agreement": 1.0}, "agreement must be"),
        ({"voters": 10, "epsilon": 1, "certainty": 1.0}, "certainty asked for"),
        ({"epsilon": 1, "predicted": 0.9}, "between 0.5 and the agreement"),
        ({"epsilon": 1, "bar": math.inf}, "positive number"),
        ({"epsilon": 1, "decided": 1.0}, "between 0 and 1"),
        ({"voters": 10, "epsilon": 1, "records": 2, "decided": 0.5}, "leave one out"),
    ],
)
def test_what_makes_no_sense_is_refused(given_numbers, words):
    with pytest.raises(CrowdveilError, match=words):
        plan(KIDNEY, "vlcp", **given_numbers)


def test_a_goal_out_of_reach_is_said_to_be():
    with pytest.raises(OutOfReach, match="no epsilon up to 20 reaches it"):
        plan(KIDNEY, "rldp", voters=3, predicted=0.74)
    with pytest.raises(OutOfReach, match="no number of voters up to 100,000,000 reaches it"):
        plan(KIDNEY, "vldp", epsilon=0.1, bar=0.001)


def test_plans_keep_the_promise_and_smaller_batches_pay_for_it():
    plans = plan_relay(load_study("kidney"), 2000, 0.5)
    assert [one.batch for one in plans] == [2000, 1000, 500, 200]
    for one in plans:
        local, honest = one.promise.local.value, one.batch * 9 // 10
        kept = amplified_epsilon(local, honest, 1e-6, one_bit=one.promise.bits == 1)
        assert kept <= 0.5
        if one.promise.bits == 1 and local < 2.5:  # below where reports begin to have two bits
            assert amplified_epsilon(local + 0.05, honest, 1e-6, one_bit=True) > 0.5
    assert [one.foretold.predicted for one in plans] == sorted((o.foretold.predicted for o in plans), reverse=True)


def test_a_crowd_too_small_to_hide_in():
    with pytest.raises(OutOfReach, match="cannot hide"):
        plan_relay(load_study("kidney"), 2, 0.01)
    with pytest.raises(CrowdveilError, match="above 0"):
        plan_relay(load_study("kidney"), 100, 0.0)


def test_the_command():
    words = ("plan", "relay", "--study", "kidney", "--voters", 2000, "--epsilon", 0.5)
    assert [one["batch"] for one in answer(*words)["plans"]] == [2000, 1000, 500, 200]
    assert "fewer reports than one batch nothing is released" in crowdveil(*words).stdout
