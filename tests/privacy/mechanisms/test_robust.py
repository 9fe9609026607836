"""Liars: refused when out of range, and pulled in when asked; honest reports pass."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats.mstats import winsorize

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.registry import DISTRIBUTED
from crowdveil.privacy.mechanisms.robust import winsorised, within_reach
from crowdveil.privacy.noise.bulk_noise import BulkNoise
from crowdveil.publish import Request, prepare
from crowdveil.sources.simulated import synthetic_crowd

MICRO = 1_000_000


@pytest.fixture(scope="module")
def crowd():
    return synthetic_crowd(300, 12, 4, np.random.default_rng(1))


@given(st.integers(20, 60), st.integers(0, 9), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_equal_weights_give_scipys_winsorised_sample(count, cut, seed):
    values = np.random.default_rng(seed).normal(size=(count, 2))
    share = (cut + 0.5) / count  # between two ranks, so that rounding does not matter
    ours = winsorised(values, np.full(count, 1 / count), np.ones(values.shape, bool), share)
    for k in range(2):
        theirs = np.sort(winsorize(values[:, k], limits=(share, share), inclusive=(True, True)))
        assert np.sort(ours[:, k]) == pytest.approx(np.asarray(theirs))


def test_numbers_that_were_not_reported_stay_zero_and_do_not_count():
    values, reported = np.array([[5.0], [1.0], [2.0], [0.0]]), np.array([[True], [True], [True], [False]])
    pulled = winsorised(values, np.full(4, 0.25), reported, 0.34)
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
    settings_ = Settings(ballots.study, 2.0)
    epsilons = Epsilons.of(np.random.default_rng(2).choice([0.1, 1, 5], ballots.voters))
    reports = DISTRIBUTED[name].report(ballots, settings_, epsilons, BulkNoise())
    accepted = DISTRIBUTED[name].acceptable(reports, settings_)
    assert accepted.shape == (ballots.voters,)
    assert accepted.all()


@pytest.mark.parametrize(("name", "field"), [("algorithm-2", "values"), ("subset-selection", "values"),
                                             ("score", "values"), ("randomised-response", "choices")])  # fmt: skip
def test_impossible_reports_are_refused_and_only_those(name, field, crowd):
    ballots = crowd.ballots
    settings_ = Settings(ballots.study, 2.0)
    reports = DISTRIBUTED[name].report(ballots, settings_, Epsilons.same(1, ballots.voters), BulkNoise())
    lied = getattr(reports, field).copy()
    lied.reshape(-1)[0] = 2**50  # the first voter's first number
    accepted = DISTRIBUTED[name].acceptable(replace(reports, **{field: lied}), settings_)
    assert accepted.tolist() == [False] + [True] * (ballots.voters - 1)


@pytest.mark.parametrize("name", ["algorithm-2", "score"])
def test_a_robust_mean_moves_less(name, crowd):
    ballots, mechanism = crowd.ballots, DISTRIBUTED[name]
    plain = Settings(ballots.study, 2.0)
    robust = replace(plain, robust=0.05)
    honest = mechanism.report(ballots, plain, Epsilons.same(1, ballots.voters), BulkNoise())
    values = honest.values.copy()
    values[:6] = np.where(values[:6] != 0, 40 * np.abs(values).max(), 0)  # 2 % liars
    lied = replace(honest, values=values)
    moved = {
        case: np.linalg.norm(mechanism.aggregate([lied], s).parameter - mechanism.aggregate([honest], s).parameter)
        for case, s in (("plain", plain), ("robust", robust))
    }
    assert moved["robust"] < 0.25 * moved["plain"]


def test_a_robust_mean_is_refused_where_it_means_nothing(crowd):
    with pytest.raises(CrowdveilError, match="needs no robust mean"):
        prepare(crowd.ballots, Request(PARADIGMS["vlcp"], Epsilon.of_millionths(MICRO), robust=0.1))
    with pytest.raises(CrowdveilError, match="below"):
        prepare(crowd.ballots, Request(PARADIGMS["rldp"], Epsilon.of_millionths(MICRO), robust=0.7))
