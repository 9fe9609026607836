"""plan relay: what it proposes keeps the promise, and the next local epsilon would not."""

import pytest
from tests.program import answer, crowdveil

from crowdveil.errors import CrowdveilError, OutOfReach
from crowdveil.privacy.planning.relay import plan_relay
from crowdveil.privacy.shuffling import amplified_epsilon
from crowdveil.study.bundled import load_study


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
