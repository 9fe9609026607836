"""The promise of reports through a relay: the smallest batch, the honest share, three lines, and no trust in a file."""

import math

import pytest

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.relayed import RelayedPromise
from crowdveil.privacy.shuffling import amplified_epsilon


def test_the_smallest_batch_counts_and_only_its_honest_reports():
    promise = RelayedPromise(Epsilon(3), 1, (1000, 500, 800), 1e-6, 0.9)
    assert promise.batches == (500, 800, 1000)
    expected = amplified_epsilon(3.0, 450, 1e-6, one_bit=True)
    assert expected <= promise.epsilon <= expected + 1e-6


def test_several_bits_take_the_theorem_for_any_report():
    two, one = (RelayedPromise(Epsilon(3), bits, (1573,), 1e-6, 1.0) for bits in (2, 1))
    assert two.epsilon == pytest.approx(0.93, abs=0.005)
    assert one.epsilon == pytest.approx(0.63, abs=0.005)
    assert "Theorem 3.2" in two.theorem
    assert "randomised response" in one.theorem


def test_a_small_batch_gains_next_to_nothing_and_never_more_than_the_reports_promise():
    assert 2.99 < RelayedPromise(Epsilon(3), 2, (200,)).epsilon <= 3.0
    assert RelayedPromise(Epsilon(3), 1, (2,)).epsilon == 3.0


def test_a_share_written_as_a_decimal_is_that_decimal():
    """29 % of 100 reports are 29, though 0.29 * 100 is 28.999999999999996."""
    expected = amplified_epsilon(1.0, 29, 1e-3, one_bit=True)
    assert expected <= RelayedPromise(Epsilon(1), 1, (100,), 1e-3, 0.29).epsilon <= expected + 1e-6


def test_a_file_is_computed_again():
    promise = RelayedPromise(Epsilon("2.5"), 1, (900, 400), 1e-6, 0.8)
    assert RelayedPromise.from_dict(promise.as_dict()) == promise
    with pytest.raises(CrowdveilError, match="do not rely on it"):
        RelayedPromise.from_dict({**promise.as_dict(), "epsilon": promise.epsilon / 2})


def test_the_three_lines_name_both_epsilons():
    everybody, colluding, relay = RelayedPromise(Epsilon(3), 1, (1573,)).lines
    assert "epsilon 0.6687 with delta 1e-06" in everybody
    assert "epsilon 3 " in colluding
    assert "nothing about the answers" in relay


@pytest.mark.parametrize(
    "wrong", [{"batches": ()}, {"batches": (0,)}, {"delta": 0.0}, {"delta": math.nan}, {"honest": 0.0}, {"honest": 1.1}]
)
def test_terms_that_mean_nothing_are_refused(wrong):
    with pytest.raises(CrowdveilError):
        RelayedPromise(**{"local": Epsilon(1), "bits": 1, "batches": (10,), **wrong})
