"""The amplified epsilon: against the theorem's pair by enumeration, published numbers, and a real shuffled crowd.

The promise of reports through a relay: the smallest batch, the honest share, three lines, and no trust in a file.
"""

import math
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln
from scipy.stats import binom

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.shuffling import Clones, RelayedPromise, amplified_epsilon


def enumerated_pair(local_epsilon, voters, share=None):
    """Every outcome of the theorem's pair with its two probabilities, straight from the definition."""
    share, q = share or math.exp(-local_epsilon), 1 / (1 + math.exp(-local_epsilon))
    first, second = {}, {}
    for c in range(voters):
        for a in range(c + 1):
            both = math.comb(voters - 1, c) * share**c * (1 - share) ** (voters - 1 - c) * math.comb(c, a) / 2**c
            for d, chance in ((1, q), (0, 1 - q)):
                for law, outcome in ((first, (a + d, c - a + 1 - d)), (second, (a + 1 - d, c - a + d))):
                    law[outcome] = law.get(outcome, 0.0) + both * chance
    return first, second


def hockey_stick(first, second, epsilon):
    """Return delta in both directions, the larger one."""
    outcomes = set(first) | set(second)
    pairs = [(first.get(o, 0.0), second.get(o, 0.0)) for o in outcomes]
    return max(
        math.fsum(max(p - math.exp(epsilon) * q, 0) for p, q in pairs),
        math.fsum(max(q - math.exp(epsilon) * p, 0) for p, q in pairs),
    )


@given(st.floats(0.05, 4), st.integers(1, 12), st.floats(0, 1))
def test_delta_is_that_of_the_enumerated_pair(local_epsilon, voters, part):
    epsilon = part * local_epsilon
    expected = hockey_stick(*enumerated_pair(local_epsilon, voters), epsilon)
    found = Clones(local_epsilon, voters, 1e-15).delta(epsilon)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)
    # The enumerated sum itself is a difference of numbers near 1, known to some 1e-14 only.
    assert found >= expected * (1 - 1e-12) - 1e-14


@pytest.mark.parametrize(("local_epsilon", "voters", "delta"), [(1.0, 10, 1e-2), (0.3, 12, 1e-3), (3.0, 11, 0.05)])
def test_epsilon_is_the_smallest_that_the_enumerated_pair_allows(local_epsilon, voters, delta):
    pair = enumerated_pair(local_epsilon, voters)
    epsilon = amplified_epsilon(local_epsilon, voters, delta)
    assert 0 < epsilon < local_epsilon
    assert hockey_stick(*pair, epsilon) <= delta
    assert hockey_stick(*pair, epsilon * (1 - 1e-4)) > delta


@given(st.floats(0.05, 4), st.integers(1, 12), st.floats(0, 1))
def test_one_bit_has_the_pair_with_the_blanket_of_randomised_response(local_epsilon, voters, part):
    epsilon = part * local_epsilon
    pair = enumerated_pair(local_epsilon, voters, share=2 / (math.exp(local_epsilon) + 1))
    expected = hockey_stick(*pair, epsilon)
    found = Clones(local_epsilon, voters, 1e-15, one_bit=True).delta(epsilon)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert found >= expected * (1 - 1e-12) - 1e-14


def shuffled_law(voters, labels, local_epsilon):
    """Every multiset of one-bit reports with its probability. ``voters`` say +1 before the flip, on each label."""
    flip = 1 / (1 + math.exp(local_epsilon))
    law = {(): 1.0}
    for says in voters:
        new = {}
        for reports, chance in law.items():
            for label, (drawn, truth) in enumerate(zip(labels, says, strict=True)):
                plus = truth * (1 - flip) + (1 - truth) * flip
                for bit, likely in ((1, plus), (-1, 1 - plus)):
                    key = tuple(sorted([*reports, (label, bit)]))
                    new[key] = new.get(key, 0.0) + chance * drawn * likely
        law = new
    return law


ANY_BALLOT = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1), min_size=3, max_size=3)


@given(
    ballots=st.lists(ANY_BALLOT, min_size=2, max_size=5),
    changed=ANY_BALLOT,
    weights=st.lists(st.floats(0.05, 1), min_size=3, max_size=3),
    local_epsilon=st.floats(0.1, 4),
    part=st.floats(0, 1),
)
def test_no_ballots_axes_or_ties_beat_the_theorem_of_one_bit_reports(ballots, changed, weights, local_epsilon, part):
    labels = [weight / sum(weights) for weight in weights]
    before = shuffled_law(ballots, labels, local_epsilon)
    after = shuffled_law([changed, *ballots[1:]], labels, local_epsilon)
    bound = Clones(local_epsilon, len(ballots), 1e-15, one_bit=True).delta(part * local_epsilon)
    assert hockey_stick(before, after, part * local_epsilon) <= bound + 1e-12


def test_the_theorem_of_one_bit_reports_is_reached_by_opposite_voters_alone():
    """With nobody else the bound is exact; with others, their own bits hide a little more than their blankets."""
    for others, slack in ((0, 1e-7), (1, 0.6)):
        crowd = [[1.0, 1.0], *[[0.5, 0.5]] * others]
        pair = shuffled_law(crowd, [0.3, 0.7], 1.0), shuffled_law([[0.0, 0.0], *crowd[1:]], [0.3, 0.7], 1.0)
        bound = Clones(1.0, 1 + others, 1e-15, one_bit=True).delta(0.4)
        assert bound * (1 - slack) <= hockey_stick(*pair, 0.4) <= bound * (1 + 1e-7)


def test_one_bit_reports_of_the_real_crowd():
    assert amplified_epsilon(3.0, 1573, 1e-6) == pytest.approx(0.93, abs=0.005)
    assert amplified_epsilon(3.0, 1573, 1e-6, one_bit=True) == pytest.approx(0.63, abs=0.005)


def test_the_published_bound_for_shuffled_bits_is_never_better():
    """Cheu, Smith, Ullman, Zeber and Zhilyaev 2019, Theorem 3.1, in terms of the expected number of blankets."""
    for local_epsilon, voters, delta in ((1.0, 10**4, 1e-6), (3.0, 10**5, 1e-6), (2.0, 10**4, 1e-8)):
        clones = 2 * voters / (math.exp(local_epsilon) + 1)
        few = clones - math.sqrt(2 * clones * math.log(2 / delta))
        published = math.sqrt(32 * math.log(4 / delta) / few) * (1 - few / voters)
        generic = amplified_epsilon(local_epsilon, voters, delta)
        assert amplified_epsilon(local_epsilon, voters, delta, one_bit=True) < min(published, generic)


def direct_delta(local_epsilon, voters, epsilon):
    """The same sum for thousands of voters, term by term, with log-gamma in place of SciPy's distributions."""
    share, q = math.exp(-local_epsilon), 1 / (1 + math.exp(-local_epsilon))
    n, total = voters - 1, 0.0
    deviation = math.sqrt(n * share * (1 - share))
    for c in range(max(0, int(n * share - 9 * deviation)), min(n, int(n * share + 9 * deviation)) + 1):
        log_c = (
            gammaln(n + 1) - gammaln(c + 1) - gammaln(n - c + 1) + c * math.log(share) + (n - c) * math.log1p(-share)
        )
        a = np.arange(c + 1)
        b = np.exp(log_c + gammaln(c + 1) - gammaln(a + 1) - gammaln(c - a + 1) - c * math.log(2))
        one, other = np.append(0.0, b), np.append(b, 0.0)
        p, r = q * one + (1 - q) * other, (1 - q) * one + q * other
        total += float(np.maximum(p - math.exp(epsilon) * r, 0).sum())
    return total


def test_thousands_of_voters_agree_with_the_sum_term_by_term():
    epsilon = amplified_epsilon(1.0, 2000, 1e-6)
    assert direct_delta(1.0, 2000, epsilon) == pytest.approx(1e-6, rel=1e-3)


@pytest.mark.parametrize(("voters", "published"), [(10**4, 0.070), (10**5, 0.021), (10**6, 0.0063)])
def test_large_crowds(voters, published):
    """Values computed independently, with a slightly looser cut: ours are no larger, and within 4 per cent."""
    epsilon = amplified_epsilon(1.0, voters, 1e-8)
    assert 0.96 * published < epsilon <= published


def test_the_closed_form_of_the_same_paper_is_never_better():
    """Theorem 3.1 there: log(1 + (e^eps0 - 1) / (e^eps0 + 1) (8 sqrt(e^eps0 log(4 / delta) / n) + 8 e^eps0 / n))."""
    for local_epsilon, voters, delta in ((0.5, 10**4, 1e-6), (1.0, 10**5, 1e-8), (2.0, 10**6, 1e-8)):
        e = math.exp(local_epsilon)
        spread = 8 * math.sqrt(e * math.log(4 / delta) / voters) + 8 * e / voters
        assert amplified_epsilon(local_epsilon, voters, delta) < math.log1p((e - 1) / (e + 1) * spread)


@given(st.floats(1e-4, 50), st.integers(1, 10**6), st.floats(-15, -0.1))
def test_never_above_what_each_report_promises(local_epsilon, voters, exponent):
    assert 0 <= amplified_epsilon(local_epsilon, voters, 10**exponent) <= local_epsilon


@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_more_voters_larger_delta_and_stronger_reports_hide_better(delta):
    slack = 1 + 1e-5
    by_voters = [amplified_epsilon(1.0, n, delta) for n in (1, 2, 10, 100, 1000, 30_000, 10**6)]
    assert all(b <= a * slack for a, b in pairwise(by_voters))
    assert by_voters[-1] < by_voters[0] / 50
    assert amplified_epsilon(1.0, 1000, delta / 10) > amplified_epsilon(1.0, 1000, delta)
    by_epsilon = [amplified_epsilon(e, 10_000, delta) for e in (0.01, 0.1, 1.0, 3.0, 8.0)]
    assert by_epsilon == sorted(by_epsilon)


@pytest.mark.parametrize("local_epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("voters", [2, 10, 100, 1000])
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
@pytest.mark.parametrize("one_bit", [False, True])
def test_shuffled_randomised_response_keeps_the_promise(local_epsilon, voters, delta, one_bit):
    """What a shuffler passes on of yes-or-no reports is the number of yeses, whose law is known exactly."""
    truth, lie = 1 / (1 + math.exp(-local_epsilon)), 1 / (1 + math.exp(local_epsilon))
    epsilon = amplified_epsilon(local_epsilon, voters, delta, one_bit=one_bit)
    count = np.arange(voters)
    for yeses in {0, (voters - 1) // 2, voters - 1}:
        others = np.convolve(binom.pmf(count, yeses, truth), binom.pmf(count, voters - 1 - yeses, lie))[:voters]
        yes = truth * np.append(0.0, others) + lie * np.append(others, 0.0)
        no = lie * np.append(0.0, others) + truth * np.append(others, 0.0)
        for p, q in ((yes, no), (no, yes)):
            assert np.maximum(p - math.exp(epsilon) * q, 0).sum() <= delta * (1 + 1e-9)


def test_the_promise_is_not_kept_with_a_fifth_of_the_epsilon():
    """The check above can fail: randomised response needs a good part of what the theorem allows."""
    truth, lie, voters, delta = 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1)), 1000, 1e-6
    others = binom.pmf(np.arange(voters), voters - 1, lie)
    yes = truth * np.append(0.0, others) + lie * np.append(others, 0.0)
    no = lie * np.append(0.0, others) + truth * np.append(others, 0.0)
    epsilon = amplified_epsilon(1.0, voters, delta) / 5
    assert np.maximum(yes - math.exp(epsilon) * no, 0).sum() > delta


def test_a_delta_that_allows_everything_needs_no_epsilon():
    assert amplified_epsilon(1.0, 1000, 0.9) == 0.0


@pytest.mark.parametrize(
    ("local_epsilon", "voters", "delta"),
    [(0.0, 10, 1e-6), (math.nan, 10, 1e-6), (51.0, 10, 1e-6), (1.0, 0, 1e-6), (1.0, 10, 0.0), (1.0, 10, 1.0),
     (1.0, 10, math.nan), (1.0, 10**11, 1e-6)],
)  # fmt: skip
def test_numbers_outside_their_range_are_refused(local_epsilon, voters, delta):
    with pytest.raises(CrowdveilError, match="must be"):
        amplified_epsilon(local_epsilon, voters, delta)


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
