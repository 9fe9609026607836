"""Every order is equally likely, and equal keys are drawn again.

From reports to one estimate: a vote cannot be bought, sums stand for their reports, and liars do not get far.
"""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize
from scipy.stats.mstats import winsorize

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.mechanisms.reports import (
    MOST_INFLUENCE,
    LevelSums,
    influence,
    random_orders,
    unsummed,
    winsorised,
    within_reach,
)
from crowdveil.privacy.noise.distribution import empirical_normal
from crowdveil.privacy.noise.exact_noise import BulkNoise
from crowdveil.privacy.noise.experimental_noise import FloatNoiseForExperiments
from crowdveil.publish.request import Request, preview_request
from crowdveil.sources.simulated import synthetic_crowd

pytestmark = pytest.mark.usefixtures("few_crowds")


class Keys:
    """Gives out keys from a list, a batch a request."""

    def __init__(self, *batches):
        self.batches = [np.array(batch) for batch in batches]
        self.asked = []

    def uniform(self, below, rows, columns):
        self.asked.append((below, rows, columns))
        return self.batches.pop(0)


def test_every_order_of_the_keys_is_another_order_of_the_places():
    keys = list(permutations(range(4)))
    orders = random_orders(24, 4, Keys(keys))
    assert {tuple(order) for order in orders.tolist()} == set(keys)


def test_rows_with_equal_keys_are_drawn_again_until_they_differ():
    noise = Keys([[5, 1, 9], [7, 7, 2], [3, 4, 3]], [[8, 8, 1], [2, 1, 0]], [[1, 2, 0]])
    orders = random_orders(3, 3, noise)
    assert orders.tolist() == [[1, 0, 2], [2, 0, 1], [2, 1, 0]]
    assert [rows for _, rows, _ in noise.asked] == [3, 2, 1]
    assert len({below for below, _, _ in noise.asked}) == 1


variances = st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=60).map(np.array)


@given(variances, st.booleans())
def test_weights_share_out_one_and_nobody_has_more_than_the_cap(variance, equal):
    weights = influence(variance, equal)
    assert weights.sum() == pytest.approx(1, abs=1e-9)
    assert (weights > 0).all()
    assert weights.max() <= min(1, MOST_INFLUENCE / len(variance)) * (1 + 1e-9)


@given(variances)
def test_a_less_noisy_report_never_counts_less(variance):
    weights = influence(variance, equal_votes=False)
    order = np.argsort(variance)
    assert (np.diff(weights[order]) <= 1e-12).all()


@given(variances)
def test_weights_are_inverse_to_the_variances_but_for_the_cap(variance):
    """The conditions of Karush, Kuhn and Tucker: w = min(cap, c / variance) for one c. The problem is convex."""
    weights = influence(variance, equal_votes=False)
    cap = min(1, MOST_INFLUENCE / len(variance))
    free = weights < cap * (1 - 1e-9)
    marginal = weights * variance
    if free.any():
        assert marginal[free] == pytest.approx(marginal[free][0], rel=1e-6)
        assert (marginal[~free] <= marginal[free][0] * (1 + 1e-6)).all()


@pytest.mark.parametrize("seed", range(6))
def test_a_general_solver_finds_nothing_better(seed):
    rng = np.random.default_rng(seed)
    variance = rng.lognormal(0, 2, 14)
    variance[: seed % 3] = 1e-3  # some who would dominate
    cap = MOST_INFLUENCE / 14
    found = minimize(
        lambda w: w @ (variance * w),
        np.full(14, 1 / 14),
        jac=lambda w: 2 * variance * w,
        bounds=[(0, cap)] * 14,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(14)},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    weights = influence(variance, equal_votes=False)
    assert weights @ (variance * weights) == pytest.approx(found.fun, rel=1e-4)
    assert weights @ (variance * weights) <= found.fun * (1 + 1e-9)


def test_equal_votes_are_equal_whatever_the_variances():
    assert influence(np.array([1.0, 1e9, 3.0]), equal_votes=True).tolist() == [1 / 3] * 3


def test_two_who_would_dominate_both_meet_the_cap():
    variance = np.array([1e-9, 1e-9] + [1.0] * 48)
    weights = influence(variance, equal_votes=False)
    assert weights[:2] == pytest.approx([MOST_INFLUENCE / 50] * 2)
    assert weights[2:] == pytest.approx((1 - 2 * MOST_INFLUENCE / 50) / 48)


VOTERS = 60
CUTS = (slice(0, 1), slice(1, 23), slice(23, VOTERS))


@pytest.fixture(scope="module")
def small_crowd():
    return synthetic_crowd(VOTERS, 12, 4, np.random.default_rng(8)).ballots


@pytest.mark.parametrize(
    ("name", "robust"),
    [(name, 0.0) for name in DISTRIBUTED]
    + [(n, 0.1) for n, mechanism in DISTRIBUTED.items() if "robust" in mechanism.options],
)
def test_condensed_reports_give_the_same_estimate(name, robust, small_crowd):
    mechanism, settings = DISTRIBUTED[name], MechanismSettings(small_crowd.study, 2.0, robust=robust)
    epsilons = Epsilons(np.random.default_rng(1).choice([0.5, 1, 3], VOTERS))
    noise = FloatNoiseForExperiments(4)
    reports = [mechanism.report(small_crowd[batch], settings, epsilons[batch], noise) for batch in CUTS]
    plain = mechanism.aggregate(reports, settings)
    condensed = mechanism.aggregate([mechanism.condense(report, settings) for report in reports], settings)
    # The same sums in the same order, whoever made them: the same bits.
    assert np.array_equal(condensed.parameter, plain.parameter)
    assert condensed.noise.as_dict() == plain.noise.as_dict()
    assert condensed.facts == plain.facts


def test_what_leaves_a_worker_does_not_grow_with_its_voters(small_crowd):
    settings = MechanismSettings(small_crowd.study, 2.0)
    for name in ("algorithm-2", "algorithm-3", "algorithm-3-choices", "subset-selection", "score"):
        report = DISTRIBUTED[name].report(small_crowd, settings, Epsilons.same(1, VOTERS), FloatNoiseForExperiments(1))
        condensed = DISTRIBUTED[name].condense(report, settings)
        assert isinstance(condensed, LevelSums)
        assert len(condensed.counts) <= 2  # of one epsilon; with and without a maximum for Algorithm 3
        assert condensed.counts.sum() == VOTERS


def test_the_mean_and_its_spread_are_those_of_the_single_reports():
    rng = np.random.default_rng(2)
    values, levels = rng.normal(size=(VOTERS, 3)), rng.integers(0, 4, (VOTERS, 2))
    sums = LevelSums.of(levels[:20], values[:20]) + LevelSums.of(levels[20:], values[20:])
    variances = 1.0 + sums.levels @ [1.0, 10.0]
    weights = sums.weights(variances, equal_votes=False)
    by_level = {tuple(level): weight for level, weight in zip(sums.levels.tolist(), weights, strict=True)}
    each = np.array([by_level[tuple(level)] for level in levels.tolist()])
    assert each.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(sums.mean(weights), each @ values, atol=1e-14)
    np.testing.assert_allclose(sums.spread(weights).matrix, empirical_normal(values, each).matrix, atol=1e-14)


def test_what_needs_every_report_does_not_take_sums(small_crowd):
    settings = MechanismSettings(small_crowd.study, 2.0)
    report = DISTRIBUTED["algorithm-2"].report(
        small_crowd, settings, Epsilons.same(1, VOTERS), FloatNoiseForExperiments(1)
    )
    summed = DISTRIBUTED["algorithm-2"].condense(report, settings)
    with pytest.raises(ValueError, match="all of them are needed"):
        DISTRIBUTED["algorithm-2"].aggregate([summed], replace(settings, robust=0.1))
    assert unsummed([1, 2]) == [1, 2]


@pytest.fixture(scope="module")
def crowd():
    return synthetic_crowd(300, 12, 4, np.random.default_rng(1))


@given(st.integers(20, 60), st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_equal_weights_give_scipys_winsorised_sample(count, cut, seed):
    values = np.random.default_rng(seed).normal(size=(count, 2))
    share = (cut + 0.5) / count  # between two ranks, so that rounding does not matter
    ours = winsorised(values, np.full(count, 1 / count), np.ones(values.shape, bool), share).values
    for k in range(2):
        theirs = np.sort(winsorize(values[:, k], limits=(share, share), inclusive=(True, True)))
        assert np.sort(ours[:, k]) == pytest.approx(np.asarray(theirs))


def test_numbers_that_were_not_reported_stay_zero_and_do_not_count():
    values, reported = np.array([[5.0], [1.0], [2.0], [0.0]]), np.array([[True], [True], [True], [False]])
    pulled = winsorised(values, np.full(4, 0.25), reported, 0.34).values
    assert pulled[:, 0].tolist() == [2.0, 2.0, 2.0, 0.0]


@pytest.mark.parametrize("terms", [1, 4, 24])
def test_honest_noise_is_refused_about_as_rarely_as_promised(terms):
    """The radius of the noise is Gamma(terms): the bound may not be looser than 1e-12 nor wildly stricter."""
    epsilons, zero = Epsilons.same(1, 1), np.array([0])

    def accepted(x):
        return within_reach(np.array([[x]]), zero, 10**6, epsilons, terms)[0]

    edge = max(x for x in range(0, 200 * 10**6, 10**5) if accepted(x))
    excess = stats.gamma(terms).sf(edge / 1e6)
    assert 1e-20 < excess <= 1.1e-12


@pytest.mark.parametrize("name", DISTRIBUTED)
def test_honest_reports_are_accepted(name, crowd):
    ballots = crowd.ballots
    settings_ = MechanismSettings(ballots.study, 2.0)
    epsilons = Epsilons(np.random.default_rng(2).choice([0.1, 1, 5], ballots.voters))
    reports = DISTRIBUTED[name].report(ballots, settings_, epsilons, BulkNoise())
    accepted = DISTRIBUTED[name].acceptable(reports, settings_)
    assert accepted.shape == (ballots.voters,)
    assert accepted.all()


@pytest.mark.parametrize(("name", "field"), [("algorithm-2", "values"), ("subset-selection", "values"),
                                             ("score", "values"), ("randomised-response", "choices")])  # fmt: skip
def test_impossible_reports_are_refused_and_only_those(name, field, crowd):
    ballots = crowd.ballots
    settings_ = MechanismSettings(ballots.study, 2.0)
    reports = DISTRIBUTED[name].report(ballots, settings_, Epsilons.same(1, ballots.voters), BulkNoise())
    lied = getattr(reports, field).copy()
    lied.reshape(-1)[0] = 2**50  # the first voter's first number
    accepted = DISTRIBUTED[name].acceptable(replace(reports, **{field: lied}), settings_)
    assert accepted.tolist() == [False] + [True] * (ballots.voters - 1)


@pytest.mark.parametrize("name", ["algorithm-2", "score"])
def test_a_robust_mean_moves_less(name, crowd):
    ballots, mechanism = crowd.ballots, DISTRIBUTED[name]
    plain = MechanismSettings(ballots.study, 2.0)
    robust = replace(plain, robust=0.05)
    honest = mechanism.report(ballots, plain, Epsilons.same(1, ballots.voters), BulkNoise())
    values = honest.values.copy()
    values[:6] = np.where(values[:6] != 0, 40 * np.abs(values).max(), 0)  # 2 % liars
    lied = replace(honest, values=values)

    def unshrunk(reports, settings_):
        """A prior would hide how far the mean has moved: lies look like noise."""
        estimate = mechanism.aggregate([reports], settings_)
        return estimate.parameter if estimate.unknown is None else estimate.unknown.center

    moved = {
        case: np.linalg.norm(unshrunk(lied, s) - unshrunk(honest, s))
        for case, s in (("plain", plain), ("robust", robust))
    }
    assert moved["robust"] < 0.25 * moved["plain"]


def test_a_robust_mean_is_refused_where_it_means_nothing(crowd):
    with pytest.raises(CrowdveilError, match="has no option robust, only design: leave it out"):
        preview_request(crowd.ballots, Request(PARADIGMS["vlcp"], Epsilon(1), robust=0.1))
    with pytest.raises(CrowdveilError, match="below"):
        preview_request(crowd.ballots, Request(PARADIGMS["rldp"], Epsilon(1), robust=0.7))


@pytest.mark.parametrize(
    "law", [stats.laplace(), stats.norm(), stats.uniform(-1, 2)], ids=["laplace", "normal", "uniform"]
)
@pytest.mark.parametrize("share", [0.05, 0.1, 0.25])
def test_the_spread_of_what_is_felt_is_that_of_the_mean(law, share):
    """Against the means of many samples. Quantiles apart tell the density: on the Laplace law a tenth too low."""
    rng, runs, count = np.random.default_rng(6), 3000, 400
    samples = law.rvs((count, runs), random_state=rng)
    weights = np.full(count, 1 / count)
    pulled = winsorised(samples, weights, np.ones(samples.shape, bool), share)
    told = np.sqrt(np.mean(pulled.pseudo_values.var(axis=0))) / np.sqrt(count)
    assert told == pytest.approx((weights @ pulled.values).std(), rel=0.12)
    assert np.sqrt(np.mean(pulled.values.var(axis=0) / count)) < told
