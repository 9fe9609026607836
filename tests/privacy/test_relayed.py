"""The promise of reports through a relay: the smallest batch, the honest share, three lines, and no trust in a file."""

import math
from itertools import combinations, permutations, product

import pytest

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.relayed import RelayedPromise
from crowdveil.privacy.shuffling import Clones, amplified_epsilon


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


LABELS = (("direction", 0, 0.7), ("direction", 1, 0.25), ("length", 0, 0.05))
"""What a report may be about, with the public chance of it: two axes, and the length of the ballot."""


def law_of_report(answers, local):
    """The law of one report, from the definition: a label by its chance, a bit, and a coin that may turn it over."""
    flip = 1 / (1 + math.exp(local))
    law = {}
    for (kind, axis, chance), up in zip(LABELS, answers, strict=True):
        kept = up * (1 - flip) + (1 - up) * flip
        law[kind, axis, 1], law[kind, axis, -1] = chance * kept, chance * (1 - kept)
    return law


def law_of_batch(laws):
    """The law of what a host sees of one batch: which reports, in no order."""
    seen = {(): 1.0}
    for law in laws:
        longer = {}
        for before, chance in seen.items():
            for report, more in law.items():
                key = tuple(sorted((*before, report)))
                longer[key] = longer.get(key, 0.0) + chance * more
        seen = longer
    return seen


def law_of_two_batches(victim, others, liar, local):
    """The law of all that a host sees: four honest voters in two batches at random, and a known report in each."""
    honest = [law_of_report(answers, local) for answers in (victim, *others)]
    splits = list(combinations(range(4), 2))
    law = {}
    for split in splits:
        first = law_of_batch([*(honest[i] for i in split), liar])
        second = law_of_batch([*(honest[i] for i in range(4) if i not in split), liar])
        for (a, p), (b, q) in product(first.items(), second.items()):
            law[a, b] = law.get((a, b), 0.0) + p * q / len(splits)
    return law


def test_batches_liars_and_kinds_make_nothing_easier_than_the_smallest_honest_batch():
    """By enumeration of every outcome, over the corners and the middle of what a voter's ballot can make likely."""
    local, epsilons = 1.5, (0.1, 0.5, 1.0, 1.3)
    liar = {("direction", 1, -1): 1.0}
    bounds = {epsilon: Clones(local, 2, 1e-15, one_bit=True).delta(epsilon) for epsilon in epsilons}
    worst = dict.fromkeys(epsilons, 0.0)
    crowds = [[(0, 0, 0)] * 3, [(1, 0, 0.5), (0.5, 0.5, 0.5), (0, 1, 1)]]
    ballots = [(1, 1, 1), (0, 0, 0), (1, 0, 0.5)]
    for others in crowds:
        laws = [law_of_two_batches(ballot, others, liar, local) for ballot in ballots]
        for first, second in permutations(laws, 2):
            for epsilon in epsilons:
                found = math.fsum(max(p - math.exp(epsilon) * second.get(seen, 0.0), 0) for seen, p in first.items())
                worst[epsilon] = max(worst[epsilon], found)
    for epsilon in epsilons:
        assert worst[epsilon] <= bounds[epsilon] * (1 + 1e-9) + 1e-14
    assert worst[0.1] > 0.5 * bounds[0.1], "the bound would hold whatever the code computed"
