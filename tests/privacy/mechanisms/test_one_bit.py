"""One bit: every kind, axis, draw and coin with its exact probability; and crowds whose preference is known."""

import math
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from crowdveil.ballots.ballots import Ballots, join_batches
from crowdveil.errors import Reason, Refusal
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import GRID, public_design
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.mechanisms import one_bit
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.one_bit import (
    FLIP,
    LENGTH_ONE_IN,
    BitReports,
    OneBit,
    bits_to_report,
    most_records,
    public_clip,
)
from crowdveil.privacy.mechanisms.randomised_response import choices_to_report
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study, synthetic_study
from scripted_noise import EveryOutcome

Q = Fraction(1, 3)
"""exp(-epsilon / m), of each coin."""
KEPT = (1 - Q) / (1 + Q)
"""tanh(epsilon / 2m): what is left of a bit's mean after the flip."""
CLIP = 2
STUDY = synthetic_study(2, 4)
BALLOTS = {
    1: [(n, scores) for n in (1, 2) for scores in product((-7, -2, -1, 0, 1, 4), repeat=2)],
    2: [(1, (-7, 4)), (1, (7, 4)), (1, (-3, 0)), (1, (1, 5)), (1, (-4, -4)), (1, (6, -6))],
}
"""Numbers of records, and their summed scores along two axes: some of them where two bits are reported."""


@pytest.fixture
def law_of(monkeypatch):
    """Return the exact law of the report, given the number of records, their summed scores and the number of bits."""

    def law(records, scores, size, odds_instead=()):
        draws = 2 * records * CLIP
        several = ["toss"] if size == 1 else [("tosses", size)]
        script = [LENGTH_ONE_IN, ("orders", 2), draws if size == 1 else ("below", draws, size), *several]
        noise = EveryOutcome(script, Q, dict(odds_instead))
        monkeypatch.setattr(one_bit, "public_clip", lambda study: CLIP)
        monkeypatch.setattr(one_bit, "voter_scores", lambda ballots, _: np.tile(scores, (ballots.voters, 1)))
        monkeypatch.setattr(one_bit, "bits_to_report", lambda directions, epsilon: size)
        ballots = Ballots.from_differences(
            STUDY, np.arange(noise.rows + 1) * records, np.ones((noise.rows * records, 2))
        )
        reports = OneBit().report(ballots, MechanismSettings(STUDY, 2.0), Epsilons.same(1, noise.rows), noise)
        return noise.law(np.column_stack([reports.kinds, reports.bits]))

    return law


def worst_ratio(laws):
    reports = set().union(*laws)
    return max(
        math.inf if 0 in chances else max(chances) / min(chances)
        for chances in ([law.get(report, Fraction(0)) for law in laws] for report in reports)
    )


@pytest.mark.parametrize("size", [1, 2])
def test_every_report_has_the_probability_of_the_theorem(law_of, size):
    for records, scores in BALLOTS[size]:
        clipped = [max(Fraction(-1), min(Fraction(1), Fraction(s, records * CLIP))) for s in scores]
        # Of the 2 n c integers that may be drawn, so many are below the part that stands for the length.
        draws = 2 * records * CLIP
        length = Fraction(2 * math.ceil(draws * Fraction(22 * (records - 1), 15 * (records + 6))), draws) - 1
        expected = {}
        for of_length, axes in product((0, 1), combinations(range(2), size)):
            for bits in product((1, -1), repeat=size):
                report = [0, 0]
                chance = Fraction(1 if of_length else LENGTH_ONE_IN - 1, LENGTH_ONE_IN) / math.comb(2, size)
                for axis, bit in zip(axes, bits, strict=True):
                    report[axis] = bit
                    chance *= (1 + bit * KEPT * (length if of_length else clipped[axis])) / 2
                expected[(of_length, *report)] = chance
        assert law_of(records, scores, size) == expected


@pytest.mark.parametrize(("axes", "scored"), [(1, 2), (2, 4), (3, 6), (4, None), (9, None)])
def test_where_few_axes_share_a_preference_long_ballots_are_not_scored_whole(axes, scored):
    study = synthetic_study(axes, 50)
    assert most_records(study) == scored
    assert OneBit().scoring(study).records == scored
    reach = 1 / (scored or 50) + 0.0225
    assert public_clip(study) == round(math.sqrt(reach) * GRID / 4)


def test_of_a_long_ballot_any_records_are_scored_and_none_is_more_likely(monkeypatch):
    """Of three records, one is scored: a bit has the mean of the three clipped scores along its axis."""
    script = [("orders", 3), LENGTH_ONE_IN, ("orders", 2), 2 * CLIP, "toss"]
    monkeypatch.setattr(one_bit, "most_records", lambda study: 1)
    monkeypatch.setattr(one_bit, "public_clip", lambda study: CLIP)
    monkeypatch.setattr(one_bit, "voter_scores", lambda ballots, _: ballots.differences.astype(np.int64))
    laws = []
    for scores in ([(1, -2), (-1, 0), (5, 1)], [(-3, -3), (-2, -9), (-4, -2)], [(4, 2), (2, 7), (3, 3)]):
        noise = EveryOutcome(script, Q)
        ballots = Ballots.from_differences(STUDY, np.arange(noise.rows + 1) * 3, np.tile(scores, (noise.rows, 1)))
        reports = OneBit().report(ballots, MechanismSettings(STUDY, 2.0), Epsilons.same(1, noise.rows), noise)
        laws.append(noise.law(np.column_stack([reports.kinds, reports.bits])))
        means = [
            sum(max(Fraction(-1), min(Fraction(1), Fraction(s, CLIP))) for s in along) / 3
            for along in zip(*scores, strict=True)
        ]
        expected = {}
        for axis, bit in product((0, 1), (1, -1)):
            # A length bit says a single record: it is -1 before the flip.
            for kind, chance, told in ((0, Fraction(19, 40), means[axis]), (1, Fraction(1, 40), -1)):
                report = [kind, 0, 0]
                report[1 + axis] = bit
                expected[tuple(report)] = chance * (1 + bit * KEPT * told) / 2
        assert laws[-1] == expected
    assert worst_ratio(laws) == 1 / Q


@pytest.mark.parametrize("size", [1, 2])
def test_no_two_ballots_differ_by_more_than_e_to_the_epsilon(law_of, size):
    """Whatever was answered, and however many dilemmas were."""
    assert worst_ratio([law_of(records, scores, size) for records, scores in BALLOTS[size]]) == 1 / Q**size


@pytest.mark.parametrize(
    ("wrong", "instead"),
    [
        ("a flip with e^-epsilon", {FLIP: Odds(0, 1, 1, 0)}),
        ("no flip", {FLIP: Odds(0, 0, 1, 0)}),
        ("a flip half as often", {FLIP: Odds(0, 1, 2, 2)}),
    ],
)
def test_wrong_coins_are_caught(law_of, wrong, instead):
    laws = [law_of(records, scores, 1, instead) for records, scores in BALLOTS[1]]
    assert worst_ratio(laws) != 1 / Q, wrong


def test_an_epsilon_that_is_not_split_is_caught(law_of):
    """Each of two bits turned over as if it were the only one: its coin has q^2 in place of q."""
    whole = {FLIP: Odds(0, Q.numerator, Q.denominator, Q.numerator)}  # q^2 / (1 + q^2), written in q = 1/3
    assert Fraction(Q.numerator * Q, Q.denominator + Q.numerator * Q) == Q**2 / (1 + Q**2)
    assert worst_ratio([law_of(records, scores, 2, whole) for records, scores in BALLOTS[2]]) == 1 / Q**4


def test_the_number_of_bits_is_that_of_choices_by_the_same_rule():
    """k choices with epsilon / k each are worth k tanh(epsilon / 2k)^2, too: another search for the same maximum."""
    for micro in range(100_000, 50_000_001, 700_000):
        epsilon = Epsilon.of_millionths(micro)
        assert bits_to_report(9, epsilon) == choices_to_report(np.array([9]), Epsilons.same(epsilon, 1))[0]
    assert bits_to_report(9, Epsilon(3)) == 1
    assert bits_to_report(9, Epsilon(4)) == 2
    assert bits_to_report(1, Epsilon(50)) == 1


def test_the_clip_is_a_quarter_of_the_deviation_of_a_whole_ballots_mean_score():
    """Thirteen records of unit variance, and voters who differ by 0.15: the root of 1/13 + 0.0225."""
    assert public_clip(load_study("moral-machine")) == round(math.sqrt(1 / 13 + 0.0225) * GRID / 4)


@cache
def crowd(voters, seed=1):
    study = load_study("moral-machine")
    ballots = join_batches(study, list(simulated_batches(study, voters, np.random.default_rng(seed))))
    return ballots, MechanismSettings(study, study.norm_bound, drawn=True)


@cache
def preference_of(voters):
    """Without noise, along the axes of the design."""
    ballots, settings = crowd(voters)
    return crowd_preference(ballots, directions=public_design(settings.study).basis).coordinates


def test_scores_are_exact_integers_and_the_bits_follow_them():
    """Against sums of Python's integers; thousands of copies of a voter show the mean of a direction bit."""
    ballots, settings = crowd(3)
    design, copies = public_design(settings.study).rotated, 40_000
    for voter in range(3):
        records = ballots.differences[ballots.offsets[voter] : ballots.offsets[voter + 1]].tolist()
        axes = design.axes.tolist()
        sums = [sum(int(v) * axes[k][a] for r in records for k, v in enumerate(r)) for a in range(design.directions)]
        reach = len(records) * public_clip(settings.study)
        same = Ballots.from_differences(
            settings.study, np.arange(copies + 1) * len(records), np.tile(records, (copies, 1)).astype(np.int8)
        )
        reports = OneBit().report(same, settings, Epsilons.same(10, copies), BulkNoise())
        left = math.tanh(10 / (2 * bits_to_report(9, Epsilon(10))))  # of a bit's mean, after the flip
        for axis, total in enumerate(sums):
            said = reports.bits[(reports.kinds == 0) & (reports.bits[:, axis] != 0), axis]
            chance = (1 + left * min(max(total / reach, -1), 1)) / 2
            assert stats.binomtest(int((said > 0).sum()), len(said), chance).pvalue > 1e-8
            told = reports.bits[(reports.kinds == 1) & (reports.bits[:, axis] != 0), axis]
            chance = (1 + left * (2 * 22 * 12 / (15 * 19) - 1)) / 2  # thirteen records
            assert stats.binomtest(int((told > 0).sum()), len(told), chance).pvalue > 1e-8


def test_kinds_and_axes_do_not_depend_on_the_answers():
    ballots, settings = crowd(20_000)
    reports = OneBit().report(ballots, settings, Epsilons.same(1, ballots.voters), BulkNoise())
    axes = np.abs(reports.bits).argmax(axis=1)
    assert stats.binomtest(int(reports.kinds.sum()), ballots.voters, 1 / LENGTH_ONE_IN).pvalue > 1e-8
    assert stats.chisquare(np.bincount(axes, minlength=9)).pvalue > 1e-8
    assert (np.abs(reports.bits).sum(axis=1) == 1).all()


EXTREMES = ((1, 0.1), (1, 50), (30, 0.1), (30, 50))
"""Of voters and epsilons; what lies between them is tried by the long sweep, with posteriors of many draws."""


def thinned(ballots, records):
    """The same voters, of whose dilemmas so many are left, drawn at random."""
    orders = np.random.default_rng(9).random((ballots.voters, 13)).argsort(axis=1)[:, :records]
    kept = (ballots.offsets[:-1, None] + orders).reshape(-1)
    return Ballots.from_differences(ballots.study, np.arange(ballots.voters + 1) * records, ballots.differences[kept])


@pytest.mark.parametrize("records", [1, pytest.param(2, marks=pytest.mark.slow), 4, 13])
def test_a_crowd_is_understood_whatever_the_length_of_its_ballots(records):
    """Against the exact preference of the same crowd along the same axes, over its whole ballots."""
    whole, settings = crowd(20_000)
    design, truth = public_design(settings.study), preference_of(20_000)
    ballots = thinned(whole, records)
    reports = OneBit().report(ballots, settings, Epsilons.same(3, ballots.voters), BulkNoise())
    estimate = OneBit().aggregate([reports], settings)
    unknown = estimate.unknown
    along = np.linalg.pinv(design.basis)
    deviations = np.sqrt(np.diag(unknown.sampling) + np.diag(along @ estimate.noise.matrix @ along.T))
    # Six deviations, and what the release itself calls doubt.
    assert (np.abs(unknown.center - truth) < 6 * deviations + unknown.doubt + 0.02).all()
    assert np.corrcoef(unknown.mean, truth)[0, 1] > (0.9 if records >= 4 else 0.6)


@pytest.mark.usefixtures("few_crowds_here")
def test_sums_are_enough():
    ballots, settings = crowd(500)
    epsilons = Epsilons(np.resize([0.5, 1, 4], 500))
    reports = OneBit().report(ballots, settings, epsilons, BulkNoise())
    parts = [BitReports(epsilons[p], reports.kinds[p], reports.bits[p]) for p in (slice(0, 200), slice(200, 500))]
    whole = OneBit().aggregate([reports], settings)
    summed = OneBit().aggregate([OneBit().condense(part, settings) for part in parts], settings)
    assert summed.parameter == pytest.approx(whole.parameter, abs=1e-12)
    assert whole.facts == summed.facts
    assert (whole.facts["bits_per_report"], whole.facts["axes"]) == ([1, 2], 9)


@pytest.mark.parametrize("equal_votes", [False, True])
def test_personal_epsilons_are_combined_without_bias(equal_votes):
    """Voters of one opinion, whose bits before any flip are all +1 along every axis, at three epsilons."""
    study = load_study("moral-machine")
    settings = MechanismSettings(study, study.norm_bound, equal_votes=equal_votes, drawn=True)
    rng, voters = np.random.default_rng(2), 60_000
    epsilons = Epsilons(np.resize([0.5, 1, 6], voters))
    sizes = np.array([bits_to_report(9, epsilon) for epsilon in epsilons.distinct])[np.arange(voters) % 3]
    spoken = rng.random((voters, 9)).argsort(axis=1).argsort(axis=1) < sizes[:, None]
    flip = 1 / (1 + np.exp(epsilons.values / sizes))[:, None]
    bits = np.where(spoken, np.where(rng.random((voters, 9)) < flip, -1, 1), 0)
    reports = BitReports(epsilons, (rng.random(voters) < 0.05).astype(np.int64), bits)
    design = public_design(study)
    heard = one_bit._axis_means(OneBit().condense(reports, settings), design, settings)
    assert heard.means == pytest.approx(np.ones(9), abs=6 * math.sqrt(heard.variances.max()))
    assert heard.told == pytest.approx(1, abs=6 * math.sqrt(heard.told_variance))
    # What the variances are by themselves: 20,000 voters of each epsilon, 19 in 20 of them for nine axes.
    worth = {e: m * math.tanh(e / (2 * m)) ** 2 for e, m in [(0.5, 1), (1, 1), (6, sizes.max())]}
    each = 20_000 * 0.95 / 9
    best = 1 / (each * sum(worth.values()))
    equal = sum(1 / w for w in worth.values()) / 9 / each
    assert heard.variances == pytest.approx(np.full(9, equal if equal_votes else best), rel=0.1)


@pytest.mark.parametrize("equal_votes", [False, True])
def test_a_mean_of_bits_has_the_variance_of_its_coins(equal_votes):
    """Along an axis, n bits of mean m t, divided by t, have a mean of variance (1 / t^2 - m^2) / n."""
    settings = MechanismSettings(STUDY, 2.0, equal_votes=equal_votes, drawn=True)
    bits = np.zeros((50, 2), np.int64)
    bits[:40, 0], bits[40:, 1] = 1, -1
    reports = BitReports(Epsilons.same(1, 50), np.zeros(50, np.int64), bits)
    heard = one_bit._axis_means(OneBit().condense(reports, settings), public_design(STUDY).rotated, settings)
    coins = np.array([1 / 40, 1 / 10])
    assert heard.variances == pytest.approx(coins / math.tanh(0.5) ** 2)
    assert heard.surer == pytest.approx(coins)


@pytest.mark.usefixtures("few_crowds_unless_slow")
@pytest.mark.parametrize(
    ("voters", "epsilon"),
    [*EXTREMES, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in product([1, 2, 30], [0.1, 1, 50]))],
)
def test_a_few_voters_leave_finite_numbers_that_know_how_little_they_know(voters, epsilon):
    ballots, settings = crowd(voters)
    reports = OneBit().report(ballots, settings, Epsilons.same(epsilon, voters), BulkNoise())
    estimate = OneBit().aggregate([reports], settings)
    assert np.isfinite(estimate.parameter).all()
    assert np.isfinite(estimate.noise.matrix).all()
    unheard = ~(reports.bits[reports.kinds == 0] != 0).any(axis=0)
    assert (np.diag(estimate.unknown.covariance)[unheard] > 0.05).all()
    assert (np.abs(estimate.unknown.mean) < 2).all()


def body(**changes):
    return {"epsilon_micro": 4_000_000, "kind": "direction", "axes": [2, 7], "bits": [1, -1], **changes}


def test_a_report_travels_as_its_kind_its_axes_and_its_bits():
    study, wire = load_study("moral-machine"), OneBit().wire
    given = [body(), body(kind="length", axes=[0, 8], bits=[-1, -1])]
    for one in given:
        wire.check(one, study)
    reports = wire.read(given, study)
    assert reports.bits.tolist() == [[0, 0, 1, 0, 0, 0, 0, -1, 0], [-1, 0, 0, 0, 0, 0, 0, 0, -1]]
    assert list(wire.write(reports)) == [{k: one[k] for k in ("kind", "axes", "bits")} for one in given]
    assert OneBit().acceptable(reports, MechanismSettings(study, 2.0)).all()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": "both"}, Reason.MALFORMED),
        ({"kind": ["direction"]}, Reason.MALFORMED),
        ({"axes": [2]}, Reason.WRONG_SIZE),
        ({"axes": [2, 9]}, Reason.OUT_OF_RANGE),
        ({"axes": [-1, 2]}, Reason.OUT_OF_RANGE),
        ({"axes": [7, 2]}, Reason.MALFORMED),
        ({"axes": [2, 2]}, Reason.MALFORMED),
        ({"bits": [1]}, Reason.WRONG_SIZE),
        ({"bits": [1, 0]}, Reason.OUT_OF_RANGE),
        ({"bits": [1, 2]}, Reason.OUT_OF_RANGE),
        ({"bits": [1, 1.0]}, Reason.MALFORMED),
        ({"bits": [1, True]}, Reason.MALFORMED),
        ({"axes": [2, 7, 8], "bits": [1, 1, 1]}, Reason.WRONG_SIZE),
    ],
)
def test_what_no_device_sends_is_refused(changes, reason):
    with pytest.raises(Refusal) as refused:
        OneBit().wire.check(body(**changes), load_study("moral-machine"))
    assert refused.value.reason is reason


def test_a_liar_moves_the_estimate_no_further_than_a_voter_who_feels_strongly():
    """One report more, whatever it says: nothing in it is larger than a bit."""
    ballots, settings = crowd(1000)
    reports = OneBit().report(ballots, settings, Epsilons.same(1, 1000), BulkNoise())
    before = one_bit._axis_means(OneBit().condense(reports, settings), public_design(settings.study), settings).means
    axis = int(np.abs(reports.bits[0]).argmax())
    lie = reports.bits.copy()
    lie[0] = -lie[0]
    lied = BitReports(reports.epsilons, reports.kinds, lie)
    after = one_bit._axis_means(OneBit().condense(lied, settings), public_design(settings.study), settings).means
    others = int((np.abs(reports.bits[reports.kinds == 0, axis])).sum())
    assert np.abs(after - before).max() <= 2 / math.tanh(0.5) / others + 1e-12


@pytest.mark.usefixtures("few_crowds_here")
def test_noise_is_expected_as_it_comes():
    """Of a nearly indifferent crowd, whose devices spread over the axes by chance."""
    ballots, settings = crowd(20_000)
    epsilons = Epsilons.same(1, ballots.voters)
    rng = np.random.default_rng(5)
    turned = ballots.differences * rng.choice(np.array([-1, 1], np.int8), (ballots.records, 1))
    indifferent = Ballots.from_differences(ballots.study, ballots.offsets, turned)
    estimate = OneBit().aggregate([OneBit().report(indifferent, settings, epsilons, BulkNoise())], settings)
    expected = OneBit().expected_noise(settings, epsilons)
    # The length is told by a thousand coins, and widths follow it.
    assert expected.half_widths(0.95) == pytest.approx(estimate.noise.half_widths(0.95), rel=0.5)
