"""What voters say about themselves, exhaustively: every coin and every other option with its exact probability."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms.about_you import AboutYou, OptionShare, corrected_mean, corrected_shares, keep_odds
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.exact_noise import BulkNoise
from scripted_noise import EveryOutcome

Q = Fraction(1, 3)
"""exp(-epsilon): epsilon = ln 3."""


def law_of_option(truth, options, odds_instead=()):
    """The exact law of what is reported for a true option."""
    noise = EveryOutcome(["toss", options - 1], Q, dict(odds_instead))
    reported = AboutYou().report(np.full(noise.rows, truth), options, Epsilons.same(1, noise.rows), noise)
    return {option: p for (option,), p in noise.law(reported[:, None]).items()}


def worst_ratio(laws, options):
    """The largest ratio of the probabilities of one report under two true options."""
    return max(
        max(law.get(option, Fraction(0)) for law in laws) / min(law.get(option, Fraction(0)) for law in laws)
        for option in range(options)
    )


@pytest.mark.parametrize("options", [2, 3, 5])
def test_the_true_option_is_e_to_the_epsilon_times_as_likely_as_each_other(options):
    """The closed form: e^epsilon / (e^epsilon + k - 1), and 1 / (e^epsilon + k - 1)."""
    total = 1 / Q + options - 1
    laws = [law_of_option(truth, options) for truth in range(options)]
    for truth, law in enumerate(laws):
        assert law == {option: (1 / Q if option == truth else 1) / total for option in range(options)}
    assert worst_ratio(laws, options) == 1 / Q


@pytest.mark.parametrize(
    ("wrong", "odds"),
    [
        ("odds of two options", Odds(1, 0, 1, 1)),
        ("odds of twice the epsilon", Odds(1, 1, 1, 3)),
        ("kept unless a coin of 1 / (1 + e^epsilon) turns it over", Odds(2, 1, 2, 2)),
    ],
)
def test_a_wrong_factor_is_caught(wrong, odds):
    laws = [law_of_option(truth, 3, {keep_odds(3): odds}) for truth in range(3)]
    assert worst_ratio(laws, 3) != 1 / Q, wrong


def law_of_ticks(ticks, odds_instead=()):
    """The exact law of the option that is drawn and of what is said of it."""
    noise = EveryOutcome([len(ticks), "toss"], Q, dict(odds_instead))
    asked, said = AboutYou().report_several(np.tile(ticks, (noise.rows, 1)), Epsilons.same(1, noise.rows), noise)
    return noise.law(np.column_stack([asked, said]))


def test_one_of_several_is_drawn_whatever_was_ticked_and_told_with_odds_of_e_to_the_epsilon():
    """All pairs of the 8 sets of ticks: no report is more than e^epsilon times as likely, and some are just so."""
    sets = [[bool(number >> k & 1) for k in range(3)] for number in range(8)]
    laws = [law_of_ticks(ticks) for ticks in sets]
    kept = 1 / Q / (1 / Q + 1)
    for ticks, law in zip(sets, laws, strict=True):
        expected = {(k, said): (kept if said == ticks[k] else 1 - kept) / 3 for k in range(3) for said in (0, 1)}
        assert law == expected
    ratios = [one[report] / other[report] for one in laws for other in laws for report in one]
    assert max(ratios) == 1 / Q


def test_a_wrong_factor_of_a_tick_is_caught():
    laws = [law_of_ticks(ticks, {keep_odds(2): Odds(1, 1, 1, 3)}) for ticks in ([True, True], [False, False])]
    assert max(laws[0][report] / laws[1][report] for report in laws[0]) != 1 / Q


def test_a_single_option_is_reported_without_a_toss():
    assert AboutYou().report(np.zeros(4, np.int64), 1, Epsilons.same(1, 4), noise=None).tolist() == [0] * 4


def test_the_real_sampler_follows_the_enumerated_law_for_everyones_own_epsilon():
    epsilons = Epsilons([1.098612, 2.197225] * 30_000)  # ln 3 and ln 9
    reported = AboutYou().report(np.full(60_000, 1), 3, epsilons, BulkNoise())
    for start, factor in ((0, 3), (1, 9)):
        expected = np.array([1, factor, 1]) * 30_000 / (factor + 2)
        assert stats.chisquare(np.bincount(reported[start::2], minlength=3), expected).pvalue > 1e-7


def test_shares_are_corrected_for_the_tosses():
    """The line from shares held to shares reported, inverted: 3 options at e^epsilon = 4 keep 4/6, and add 1/6 each."""
    found = corrected_shares([400, 350, 250], Epsilon("1.386294"))
    expected = [(times / 1000 - 1 / 6) * 2 for times in (400, 350, 250)]
    assert [one.share for one in found] == pytest.approx(expected, abs=1e-5)
    wilson = stats.binomtest(400, 1000).proportion_ci(0.95, method="wilson")
    assert (found[0].low, found[0].high) == pytest.approx([(end - 1 / 6) * 2 for end in wilson], abs=1e-5)


def test_intervals_of_corrected_shares_hold_what_is_true():
    """Seeded: 400 crowds of 300, of whom 60 % hold the first of two options, at epsilon 1: 93 % at least."""
    rng, keep, held = np.random.default_rng(1), 1 / (1 + np.exp(-1)), 0
    for _ in range(400):
        truths = rng.random(300) < 0.6
        said = int(np.where(rng.random(300) < keep, truths, ~truths).sum())
        found = corrected_shares([said, 300 - said], Epsilon(1))[0]
        held += found.low <= 0.6 <= found.high
    assert held >= 0.93 * 400


def test_exact_answers_and_none_at_all():
    assert corrected_shares([30, 10], None)[0].share == 0.75
    assert corrected_shares([0, 0], Epsilon(1)) == [OptionShare(0.0, 0.0, 1.0)] * 2


def test_the_mean_of_a_scale_is_corrected_for_the_tosses():
    """By hand: 5 points at e^epsilon = 4 keep g = 3/8; reported mean 3.4 = g mu + (1 - g) 3, so mu = 3 + 0.4 * 8/3."""
    reported = [100, 200, 200, 200, 300]
    found = corrected_mean(range(1, 6), reported, Epsilon("1.386294"))
    assert found.mean == pytest.approx(3 + 0.4 * 8 / 3, abs=1e-5)
    values = np.repeat(np.arange(1, 6), reported)
    half = stats.norm.ppf(0.975) * values.std(ddof=1) / np.sqrt(1000) * 8 / 3
    assert found.high - found.mean == pytest.approx(half, rel=1e-5)


def test_the_mean_of_exact_numbers_is_theirs():
    assert corrected_mean([10, 20], [3, 1], None).mean == 12.5
    assert corrected_mean([10, 20], [1, 0], None) is None


def test_intervals_of_corrected_means_hold_what_is_true():
    """Seeded: 400 crowds of 300 on 7 points, at epsilon 1: 93 % at least."""
    rng, levels, held = np.random.default_rng(1), np.arange(1, 8), 0
    keep = np.e / (np.e + 6)
    for _ in range(400):
        truths = rng.choice(levels, 300, p=[0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1])
        others = (truths - 1 + rng.integers(1, 7, 300)) % 7 + 1
        said = np.where(rng.random(300) < keep, truths, others)
        found = corrected_mean(levels, np.bincount(said, minlength=8)[1:], Epsilon(1))
        held += found.low <= 3.2 <= found.high
    assert held >= 0.93 * 400
