"""Scores of stated probabilities, against closed forms, SciPy and simulation."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from crowdveil.errors import CrowdveilError
from crowdveil.evaluation.toolkit.scores import forecasts, wilson

STATED = [0.9, 0.6, 0.5, 0.2, 0.3]
CHOICES = [1, -1, 1, -1, 1]


def test_means_by_hand():
    judged = forecasts(STATED, CHOICES)
    # Right, wrong, a coin, right, wrong.
    assert judged.share_predicted.estimate == pytest.approx(2.5 / 5)
    assert judged.brier.estimate == pytest.approx((0.01 + 0.36 + 0.25 + 0.04 + 0.49) / 5)
    assert judged.log_loss.estimate == pytest.approx(-math.log(0.9 * 0.4 * 0.5 * 0.8 * 0.3) / 5)
    assert judged.overstatement.estimate == pytest.approx((0.9 + 0.6 + 0.5 + 0.8 + 0.7) / 5 - 2.5 / 5)


def test_ties_are_left_out():
    judged = forecasts([*STATED, 0.99, 0.01], [*CHOICES, 0, 0])
    assert len(judged) == 5
    assert judged.brier == forecasts(STATED, CHOICES).brier


def test_every_voter_counts_once_or_every_choice_does():
    stated, choices, voters = [0.8, 0.8, 0.8, 0.8], [1, 1, 1, -1], ["ann", "ann", "ann", "bob"]
    once = forecasts(stated, choices, voters)
    assert once.share_predicted.estimate == pytest.approx(1 / 2)
    assert once.voter_count == 2
    assert forecasts(stated, choices, voters, "choices").share_predicted.estimate == pytest.approx(3 / 4)
    # What is left of her choices weighs as much as hers did.
    kept = once.where(np.array([True, False, False, True]))
    assert kept.weights.tolist() == [1 / 2, 1 / 2]


def test_a_coin_has_the_scores_of_a_coin():
    coin = forecasts(np.full(7, 0.5), [1, -1, 1, 1, 1, -1, 1])
    assert coin.share_predicted.estimate == pytest.approx(0.5)
    assert coin.brier.estimate == pytest.approx(0.25)
    assert coin.log_loss.estimate == pytest.approx(math.log(2))
    assert coin.overstatement.estimate == pytest.approx(0)
    assert coin.slope is None


def test_a_stated_certainty_that_fails_costs_much_and_not_everything():
    sure = forecasts([1.0, 0.0], [1, 1])
    assert sure.log_loss.estimate == pytest.approx(-math.log(2.0**-53) / 2)
    assert sure.brier.estimate == pytest.approx(0.5)


def test_intervals_of_independent_choices_are_students():
    rng = np.random.default_rng(3)
    stated = rng.uniform(size=50)
    choices = np.where(rng.uniform(size=50) < stated, 1, -1)
    expected = stats.ttest_1samp((stated - (choices > 0)) ** 2, 0).confidence_interval(0.95)
    found = forecasts(stated, choices).brier
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)


def test_intervals_of_voters_with_equally_many_choices_are_students_of_their_means():
    rng = np.random.default_rng(4)
    stated = rng.uniform(size=(20, 6))
    choices = np.where(rng.uniform(size=(20, 6)) < stated, 1, -1)
    losses = -np.log(np.where(choices > 0, stated, 1 - stated)).mean(axis=1)
    expected = stats.ttest_1samp(losses, 0).confidence_interval(0.95)
    for weighting in ("voters", "choices"):
        found = forecasts(stated.ravel(), choices.ravel(), np.repeat(np.arange(20), 6), weighting).log_loss
        assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)


def test_one_voter_tells_nothing_about_voters():
    alone = forecasts([0.7, 0.7, 0.7], [1, 1, -1], [5, 5, 5])
    assert math.isinf(alone.slope.high)
    assert (alone.share_predicted.low, alone.share_predicted.high) == (0, 1)
    assert (alone.brier.low, alone.brier.high) == (0, 1)
    assert (alone.log_loss.low, alone.log_loss.high) == (0, math.inf)
    assert (alone.overstatement.low, alone.overstatement.high) == (-0.5, 1)


def ends(share, number, freedom):
    """Return the shares that are exactly Student's quantile of their own standard errors away, by bisection."""

    def far(other):
        return abs(other - share) - stats.t.ppf(0.975, freedom) * math.sqrt(other * (1 - other) / number)

    return optimize.brentq(far, 0, share, xtol=1e-14), optimize.brentq(far, share, 1, xtol=1e-14)


@pytest.mark.parametrize("weighting", ["voters", "choices"])
def test_the_share_predicted_has_wilsons_interval_at_what_clustered_choices_are_worth(weighting):
    # One choice each, 19 of 20 right: the variance is p (1 - p) / 19. (Student's interval would end at 1.05.)
    found = forecasts(np.full(20, 0.8), [1] * 19 + [-1], weighting=weighting).share_predicted
    assert found.estimate == pytest.approx(0.95)
    assert (found.low, found.high) == pytest.approx(ends(0.95, 19, 19), abs=1e-9)
    # Five choices each, all alike: 20 voters are still 20 draws.
    alike = forecasts(np.full(100, 0.8), [1] * 95 + [-1] * 5, np.repeat(np.arange(20), 5), weighting)
    assert (alike.share_predicted.low, alike.share_predicted.high) == pytest.approx((found.low, found.high), abs=1e-9)


def test_where_all_choices_were_predicted_every_voter_is_one_draw():
    """Wilson's lower end at a share of 1 is n / (n + t^2)."""
    quantile = stats.t.ppf(0.975, 11)
    for flip, end in ((1, "low"), (-1, "high")):
        found = forecasts(np.full(60, 0.9), np.full(60, flip), np.repeat(np.arange(12), 5)).share_predicted
        assert found.estimate == (1 + flip) / 2
        assert getattr(found, end) == pytest.approx(0.5 + flip * (12 / (12 + quantile**2) - 0.5))
        assert (found.high if flip > 0 else found.low) == found.estimate


def test_voters_who_are_right_equally_often_tell_no_more_than_as_many_choices():
    found = forecasts(np.full(40, 0.8), [1, 1, 1, -1] * 10, np.repeat(np.arange(10), 4)).share_predicted
    assert (found.low, found.high) == pytest.approx(ends(0.75, 39, 9), abs=1e-9)
    coin = forecasts(np.full(8, 0.5), [1, -1] * 4).share_predicted
    assert (coin.low, coin.estimate, coin.high) == (0.5, 0.5, 0.5)


def test_the_share_predicted_is_covered_where_nearly_all_are():
    """One choice each, 98 % predicted: Student's interval covers about 55 %, for often all of 40 are right."""
    rng = np.random.default_rng(9)
    covered = 0
    for _ in range(400):
        choices = np.where(rng.uniform(size=40) < 0.98, 1, -1)
        found = forecasts(np.full(40, 0.8), choices).share_predicted
        covered += found.low <= 0.98 <= found.high
    # 95 % of 400 is 380, six standard deviations (26) below.
    assert covered >= 354


def test_no_interval_contains_what_is_impossible():
    """Two voters, whose scores differ much: Student's quantile with one degree of freedom is 12.7."""
    for stated, choices in (([0.9, 0.6], [1, -1]), ([0.99, 0.99], [1, -1]), ([0.5, 1.0], [1, 1]), ([1.0, 1.0], [1, 1])):
        judged = forecasts(stated, choices)
        for name, (least, most) in {
            "share_predicted": (0, 1),
            "brier": (0, 1),
            "log_loss": (0, math.inf),
            "overstatement": (-0.5, 1),
        }.items():
            found = getattr(judged, name)
            assert least <= found.low <= found.estimate <= found.high <= most, name


def test_slope_where_one_probability_is_stated():
    """The best slope makes it the share that was right, r; its variance is r (1 - r) / n by the delta method."""
    stated, right, n = 0.9, 30, 40
    judged = forecasts(np.full(n, stated), [1] * right + [-1] * (n - right))
    margin, share = stats.norm.ppf(stated), right / n
    slope = stats.norm.ppf(share) / margin
    deviation = math.sqrt(share * (1 - share) / (n - 1)) / (margin * stats.norm.pdf(slope * margin))
    half = stats.t.ppf(0.975, n - 1) * deviation
    assert judged.slope.estimate == pytest.approx(slope, rel=1e-9)
    assert (judged.slope.low, judged.slope.high) == pytest.approx((slope - half, slope + half), rel=1e-9)


@pytest.mark.parametrize("weighting", ["voters", "choices"])
@pytest.mark.parametrize("true_slope", [-0.5, 0.3, 1, 4])
def test_slope_is_the_most_likely_one(weighting, true_slope):
    rng = np.random.default_rng(5)
    margins, voters = rng.normal(size=400), rng.integers(0, 90, size=400)
    choices = np.where(rng.normal(size=400) < true_slope * margins, 1, -1)
    weights = 1 / np.bincount(voters)[voters] if weighting == "voters" else np.ones(400)

    def loss(slope):
        return -weights @ stats.norm.logcdf(slope * choices * margins)

    found = forecasts(stats.norm.cdf(margins), choices, voters, weighting).slope
    # Brent's method finds a minimum to the square root of the precision of the loss.
    assert found.estimate == pytest.approx(optimize.minimize_scalar(loss).x, abs=1e-5)
    assert found.low < found.estimate < found.high


def test_slope_tells_too_timid_from_too_sure():
    rng = np.random.default_rng(6)
    margins = rng.normal(size=4000)
    choices = np.where(rng.normal(size=4000) < margins, 1, -1)
    timid, sure = (forecasts(stats.norm.cdf(size * margins), choices).slope for size in (0.25, 2))
    assert timid.low <= 4 <= timid.high
    assert sure.low <= 0.5 <= sure.high


def test_slope_interval_covers_where_voters_resemble_themselves():
    """Each voter leans her own way: answers are far from independent, and the interval knows."""
    rng = np.random.default_rng(8)
    voters, each = 150, 10
    # With a lean of variance s^2, the crowd's choices follow Phi(m / sqrt(1 + s^2)).
    lean, covered = 1.5, 0
    for _ in range(200):
        margins = rng.normal(size=(voters, each))
        sides = rng.choice([-1, 1], size=(voters, 1))
        leaning = lean * rng.normal(size=(voters, 1)) * sides
        choices = np.where(rng.normal(size=(voters, each)) < margins + leaning, 1, -1)
        stated = stats.norm.cdf(margins / math.sqrt(1 + lean**2))
        found = forecasts(stated.ravel(), choices.ravel(), np.repeat(np.arange(voters), each)).slope
        covered += found.low <= 1 <= found.high
    # 95 % of 200 is 190, five standard deviations (15) below.
    assert covered >= 175


def test_no_slope_where_nothing_went_wrong_or_nothing_right():
    assert forecasts([0.9, 0.2], [1, -1]).slope is None
    assert forecasts([0.9, 0.2], [-1, 1]).slope is None


@pytest.mark.parametrize(("right", "number"), [(0, 7), (3, 10), (50, 50), (817, 1000)])
def test_wilson_is_scipys(right, number):
    expected = stats.binomtest(right, number).proportion_ci(0.95, method="wilson")
    found = wilson(right / number, number)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_wilson_with_students_quantile_solves_its_equation():
    found = wilson(0.3, 7.5, freedom=4)
    assert (found.low, found.high) == pytest.approx(ends(0.3, 7.5, 4), abs=1e-9)


def test_curve_counts_what_was_stated_and_what_came_true():
    curve = forecasts([0.5, 0.52, 0.47, 0.9, 0.08, 0.93, 1.0], [1, 1, 1, 1, -1, -1, 1]).curve()
    assert [(round(b.low, 2), round(b.high, 2), b.choices) for b in curve] == [
        (0.5, 0.55, 3),
        (0.9, 0.95, 3),
        (0.95, 1.0, 1),
    ]
    # A stated half is half right, .52 is right and .47 (.53 for the other side) is wrong.
    assert curve[0].right.estimate == pytest.approx(1.5 / 3)
    assert curve[0].stated == pytest.approx((0.5 + 0.52 + 0.53) / 3)
    expected = stats.binomtest(2, 3).proportion_ci(0.95, method="wilson")
    assert (curve[1].right.low, curve[1].right.high) == pytest.approx((expected.low, expected.high))


def test_curve_weighs_voters():
    curve = forecasts([0.7, 0.7, 0.7], [1, 1, -1], [0, 0, 1]).curve(1)
    assert curve[0].right.estimate == pytest.approx(1 / 2)
    # Weights 1/4, 1/4, 1/2 are worth 1 / (1/16 + 1/16 + 1/4) = 8/3 choices.
    assert curve[0].right == wilson(0.5, 8 / 3)


@pytest.mark.parametrize(
    ("stated", "choices", "voters", "weighting", "said"),
    [
        ([0.5, 0.5], [1], None, "voters", "as many of each"),
        ([0.5], [1], [1, 2], "voters", "as many of each"),
        ([1.5], [1], None, "voters", "from 0 to 1"),
        ([math.nan], [1], None, "voters", "from 0 to 1"),
        ([0.5], [2], None, "voters", "a choice is 1"),
        ([0.5], [0], None, "voters", "no choice"),
        ([], [], None, "voters", "no choice"),
        ([0.5], [1], None, "people", "'voters' or 'choices'"),
    ],
)
def test_mistakes_are_named(stated, choices, voters, weighting, said):
    with pytest.raises(CrowdveilError, match=said):
        forecasts(stated, choices, voters, weighting)
