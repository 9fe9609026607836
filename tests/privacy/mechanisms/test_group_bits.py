"""One bit with the voter's group in it: the exact law of every report, and groups whose preferences are known."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from crowdveil.ballots.ballots import Ballots
from crowdveil.ballots.columns import CODE, Categories
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms import group_bits, one_bit
from crowdveil.privacy.mechanisms.about_you import keep_odds
from crowdveil.privacy.mechanisms.group_bits import GroupBits
from crowdveil.privacy.mechanisms.group_mechanism import OTHERS, Grouping
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.one_bit import LENGTH_ONE_IN
from crowdveil.study.bundled import synthetic_study
from scripted_noise import EveryOutcome

pytestmark = pytest.mark.usefixtures("few_crowds")

Q = Fraction(1, 3)
"""exp(-epsilon)."""
CLIP = 1
STUDY = synthetic_study(2, 4)
GROUPING = Grouping("side", ("a", "b"))
VOTERS = [(n, scores, group) for n in (1, 2) for scores in product((-4, 1), repeat=2) for group in (-1, 0, 1)]
"""Numbers of records, their summed scores along two axes, and the group."""


@pytest.fixture
def law_of(monkeypatch):
    def law(records, scores, group, odds_instead=()):
        noise = EveryOutcome([LENGTH_ONE_IN, 2, 2 * records * CLIP, "toss", 4], Q, dict(odds_instead))
        monkeypatch.setattr(group_bits, "public_clip", lambda study: CLIP)
        monkeypatch.setattr(group_bits, "voter_scores", lambda ballots, _: np.tile(scores, (ballots.voters, 1)))
        made = Ballots.from_differences(STUDY, np.arange(noise.rows + 1) * records, np.ones((noise.rows * records, 2)))
        about = {"side": Categories(GROUPING.labels, np.full(noise.rows, group, CODE))}
        ballots = Ballots(made.study, made.offsets, made.dilemmas, made.choices, about=about)
        reports = GroupBits(GROUPING).report(
            ballots, MechanismSettings(STUDY, 2.0), Epsilons.same(1, noise.rows), noise
        )
        return noise.law(np.column_stack([reports.kinds, reports.axes, reports.said]))

    return law


def worst_ratio(laws):
    return max(max(law[report] for law in laws) / min(law[report] for law in laws) for report in set().union(*laws))


def test_no_two_voters_differ_by_more_than_e_to_the_epsilon_whatever_they_answered_and_whichever_their_group(law_of):
    laws = [law_of(*voter) for voter in VOTERS]
    assert all(sum(law.values()) == 1 and len(law) == 2 * 2 * 5 for law in laws)
    assert worst_ratio(laws) == 1 / Q


def test_of_a_long_ballot_any_record_may_be_scored(monkeypatch):
    """Of three records of a member of group b, one is scored: the bit has the mean of their clipped scores."""
    scores, gain = [(1, -2), (-1, 0), (5, 1)], (1 - Q) / (1 + 4 * Q)
    noise = EveryOutcome([("orders", 3), LENGTH_ONE_IN, 2, 2 * CLIP, "toss", 4], Q)
    monkeypatch.setattr(one_bit, "most_records", lambda study: 1)
    monkeypatch.setattr(group_bits, "public_clip", lambda study: CLIP)
    monkeypatch.setattr(group_bits, "voter_scores", lambda ballots, _: ballots.differences.astype(np.int64))
    made = Ballots.from_differences(STUDY, np.arange(noise.rows + 1) * 3, np.tile(scores, (noise.rows, 1)))
    about = {"side": Categories(GROUPING.labels, np.ones(noise.rows, CODE))}
    ballots = Ballots(made.study, made.offsets, made.dilemmas, made.choices, about=about)
    reports = GroupBits(GROUPING).report(ballots, MechanismSettings(STUDY, 2.0), Epsilons.same(1, noise.rows), noise)
    law = noise.law(np.column_stack([reports.kinds, reports.axes, reports.said]))
    for axis, mean in ((0, Fraction(1, 3)), (1, Fraction(0, 3))):
        for said, bit in ((3, 1), (4, -1)):
            kept = gain * (1 + bit * mean) / 2 + Q / (1 + 4 * Q)
            assert law[0, axis, said] == Fraction(LENGTH_ONE_IN - 1, 2 * LENGTH_ONE_IN) * kept


def test_odds_of_three_answers_for_five_are_caught(law_of):
    laws = [law_of(*voter, {keep_odds(5): keep_odds(3)}) for voter in VOTERS]
    assert worst_ratio(laws) > 1 / Q


def test_a_bit_is_corrected_for_the_tosses_and_comes_from_the_group_that_it_was_said_in():
    """Counts as they are on average, of two groups of 300 and 700 whose mean bits are 0.4 and -0.2 along both axes."""
    voters = 1_000_000.0
    made = GroupBits(GROUPING)
    spread, gain = math.exp(2) + 4, math.expm1(2) / (math.exp(2) + 4)
    held = np.array([0.0, 0.3 * 0.7, 0.3 * 0.3, 0.7 * 0.4, 0.7 * 0.6])
    said = voters * (gain * held + 1 / spread)
    counts = np.zeros((2, 2, 5))
    counts[0], counts[1] = said * 0.475, said * 0.025
    means = []

    def note(heard, design, settings):
        means.append(heard)
        raise StopIteration

    estimate, group_bits.estimate_from_means = group_bits.estimate_from_means, note
    try:
        for group in ((0,), (1,), (0, 1)):
            size = sum((0.3, 0.7)[g] for g in group) * voters
            with pytest.raises(StopIteration):
                made._estimate(group_bits.NoisyGroup("", group, size, 1.0), counts, MechanismSettings(STUDY, 2.0), gain)
    finally:
        group_bits.estimate_from_means = estimate
    assert [heard.means.tolist() for heard in means] == [pytest.approx([mean] * 2) for mean in (0.4, -0.2, -0.02)]
    # Of N / 2 reports about an axis, 475 in 500 about directions: the variance of a multinomial's difference.
    reports = 0.475 * voters
    both, apart = said[1] + said[2], said[1] - said[2]
    variance = 0.475 * (both - 0.475 * apart**2 / reports) / (gain * 0.3 * reports) ** 2
    assert means[0].variances == pytest.approx([variance] * 2)


def test_groups_that_are_small_by_corrected_counts_are_merged_and_worth_is_a_ratio_of_variances():
    epsilon, grouping = Epsilon(1), Grouping("side", ("a", "b", "c"))
    made = GroupBits(grouping)
    spread = math.e + 6
    gain = (math.e - 1) / spread
    held = np.array([0.0, 0.42, 0.42, 0.04, 0.04, 0.04, 0.04])
    counts = np.broadcast_to(50_000 * (gain * held + 1 / spread), (2, 2, 7))
    found = made.estimates([counts], MechanismSettings(STUDY, 2.0), epsilon, smallest=20_000)
    assert [(one.group.label, one.group.members) for one in found] == [("a", (0,)), (OTHERS, (1, 2))]
    assert [one.group.voters for one in found] == pytest.approx([168_000, 32_000])
    known = 1 / math.tanh(0.5) ** 2 * 3  # per voter of the crowd, for a third of them
    secret = (gain / 3 + 2 / spread) / (gain / 3) ** 2
    assert made.worth(epsilon) == pytest.approx(known / secret)
