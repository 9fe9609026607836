"""Gaussian noise on the mean: its law, what it is charged, what its file says, and what is refused."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.estimation.society import fit_voters
from crowdveil.privacy.epsilon import Amount, Epsilon
from crowdveil.privacy.guarantee import PARADIGMS, Guarantee
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.mechanisms.algorithm1 import GaussianMean
from crowdveil.privacy.mechanisms.mechanism import Measurement, MechanismSettings
from crowdveil.privacy.noise.distribution import Gaussian, noise_from_dict
from crowdveil.privacy.noise.exact_noise import OpenDPGaussian
from crowdveil.privacy.zcdp import ZcdpBudget
from crowdveil.publish.release import experiment, publish
from crowdveil.publish.request import Request, preview_request
from crowdveil.releases import read_release, release_from_dict
from crowdveil.sources.simulated import synthetic_crowd
from crowdveil.study.bundled import synthetic_study

FALSE_ALARM = 1e-8
DELTA = 1e-6
ASKED = ZcdpBudget("0.02", DELTA)


@pytest.fixture(scope="module")
def crowd():
    return synthetic_crowd(200, 20, 4, np.random.default_rng(3)).ballots


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "l", 1, DELTA)


def test_the_noise_on_the_mean_has_the_deviation_of_the_theorem():
    """2B / (N sqrt(2 rho)), with B = 2, N = 50 and rho = 0.02: 0.4. Half of it would be caught."""
    settings = MechanismSettings(synthetic_study(1000), 2.0)
    nothing = Measurement(np.zeros(1000, np.int64), 50, 1000)
    made = [GaussianMean().release(nothing, settings, Fraction(2, 100), OpenDPGaussian()) for _ in range(5)]
    assert made[0].noise == Gaussian(pytest.approx(0.4))
    values = np.concatenate([one.parameter for one in made]) / 0.4
    assert stats.kstest(values, "norm").pvalue > FALSE_ALARM
    for wrong in (0.5, 1 / math.sqrt(2), math.sqrt(2), 2.0):
        assert stats.kstest(values * wrong, "norm").pvalue < FALSE_ALARM


@pytest.mark.parametrize("name", ["vlcp", "rlcp"])
def test_a_release(name, crowd, ledger, tmp_path):
    made = publish(crowd, Request(PARADIGMS[name], ASKED), ledger, tmp_path / "r.json")
    truth = fit_voters(crowd, 2.0).values.mean(axis=0)
    deviation = 2 * 2 / (200 * math.sqrt(2 * 0.02))
    assert (np.abs(made.parameter - truth) <= 7 * deviation).all()
    assert made.error_bars == pytest.approx(1.959964 * deviation, rel=1e-6)
    assert (made.mechanism, made.exact) == ("gaussian-mean", True)
    guarantee = json.loads((tmp_path / "r.json").read_text())["guarantee"]
    # 0.8999352676..., as OpenDP converts rho = 0.02, rounded up.
    assert (guarantee["epsilon"], guarantee["delta"], guarantee["rho"]) == (0.899936, DELTA, 0.02)
    assert read_release(tmp_path / "r.json").as_dict() == made.as_dict()
    (entry,) = ledger.statement().accounts[0].entries
    assert (entry.charged.micro, entry.release_digest) == (20_000, made.digest)


def test_the_second_one_does_not_fit(crowd, ledger, tmp_path):
    publish(crowd, Request(PARADIGMS["vlcp"], ASKED), ledger, tmp_path / "1.json")
    with pytest.raises(BudgetExceeded, match=r"requested rho 0\.02, remaining 0\.004355"):
        publish(crowd, Request(PARADIGMS["vlcp"], ASKED), ledger, tmp_path / "2.json")
    assert not (tmp_path / "2.json").exists()


def test_a_pure_ledger_refuses_it(crowd, tmp_path):
    pure = Ledger.create(tmp_path / "pure", 4)
    with pytest.raises(CrowdveilError, match="adds up pure epsilons"):
        publish(crowd, Request(PARADIGMS["vlcp"], ASKED), pure, tmp_path / "r.json")
    assert not (tmp_path / "r.json").exists()
    assert pure.statement().accounts == ()


def test_the_delta_is_the_ledgers(crowd, ledger, tmp_path):
    with pytest.raises(CrowdveilError, match="the ledger's delta is 1e-06"):
        publish(crowd, Request(PARADIGMS["vlcp"], ZcdpBudget("0.02", 1e-5)), ledger, tmp_path / "r.json")
    assert ledger.statement().accounts == ()


def test_a_pure_release_in_a_zcdp_ledger_stays_pure(crowd, ledger, tmp_path):
    made = publish(crowd, Request(PARADIGMS["vlcp"], Epsilon.of_millionths(100_000)), ledger, tmp_path / "r.json")
    assert {"delta", "rho"}.isdisjoint(made.guarantee.as_dict())
    (entry,) = ledger.statement().accounts[0].entries
    assert entry.charged.micro == 5_000


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request(PARADIGMS["vldp"], ASKED), "serves vlcp and rlcp only, and not vldp"),
        (
            Request(PARADIGMS["vlcp"], ASKED, mechanism="algorithm-1"),
            "algorithm-1 does not take a rho: with a rho choose gaussian-mean",
        ),
        (
            Request(PARADIGMS["vlcp"], Epsilon.of_millionths(100_000), mechanism="gaussian-mean"),
            "gaussian-mean does not take an epsilon: with an epsilon choose algorithm-1 or voter-score",
        ),
    ],
)
def test_requests_that_do_not_go_together(crowd, request_, said):
    with pytest.raises(CrowdveilError, match=said):
        preview_request(crowd, request_)


def test_an_experiment_repeats_and_says_what_it_is(crowd):
    first, again = (experiment(crowd, Request(PARADIGMS["vlcp"], ASKED), 5) for _ in range(2))
    other = experiment(crowd, Request(PARADIGMS["vlcp"], ASKED), 6)
    assert first.parameter.tolist() == again.parameter.tolist() != other.parameter.tolist()
    assert not first.exact
    drawn = np.concatenate(
        [
            experiment(crowd, Request(PARADIGMS["vlcp"], ASKED), seed).parameter - first.parameter
            for seed in range(9, 29)
        ]
    )
    assert 0.4 < drawn.std() / (math.sqrt(2) * first.noise.deviation) < 2


@pytest.mark.parametrize(("key", "value"), [("delta", 0.0), ("delta", 1.5), ("rho", 0.0), ("rho", -1.0)])
def test_a_file_with_an_impossible_promise_is_refused(crowd, key, value):
    made = experiment(crowd, Request(PARADIGMS["vlcp"], ASKED), 5)
    changed = {key: Amount(round(value * 1e6)) if key == "rho" else value}
    broken = replace(made, guarantee=replace(made.guarantee, **changed))
    with pytest.raises(CrowdveilError, match=r"must be between 0 and 1|rho of a zCDP release is a number from"):
        release_from_dict(broken.as_dict(), allow_experiment=True)


def test_a_guarantee_comes_back_as_it_was():
    made = Guarantee(
        PARADIGMS["rlcp"],
        Epsilon.of_millionths(899_936),
        Epsilon.of_millionths(899_936),
        2.0,
        40,
        DELTA,
        Amount(20_000),
    )
    assert Guarantee.from_dict(made.as_dict()) == made
    assert made.rho.fraction == Fraction(2, 100)


@pytest.mark.parametrize("margin", [-1.0, 0.0, 0.3, 2.0])
def test_the_law_of_the_noise(margin):
    noise, direction = Gaussian(0.4), np.array([1.0, -2.0, 0.0])
    assert noise.below(direction, margin) == pytest.approx(stats.norm(scale=0.4 * math.sqrt(5)).cdf(margin))
    assert noise.below(np.zeros(3), margin) == (0.5 if margin == 0 else float(margin > 0))
    assert noise.half_widths(0.95) == pytest.approx(0.4 * 1.959964, rel=1e-6)
    assert noise_from_dict(noise.as_dict(), 3) == noise


@pytest.mark.parametrize("deviation", [0.0, -1.0, math.inf])
def test_a_deviation_that_is_none(deviation):
    with pytest.raises(ValueError, match="must be positive"):
        noise_from_dict({"kind": "gaussian", "deviation": deviation}, 3)


@pytest.mark.parametrize("rho", ["0", "-1", "nan", "inf", "x", "", "0.0000001", "0.0000015", "1251", "1e999999"])
def test_rhos_out_of_range(rho):
    with pytest.raises(CrowdveilError, match=r"a rho is a number from 0\.000001 to 1250"):
        ZcdpBudget(rho, DELTA)


def test_rhos_are_read_exactly():
    assert ZcdpBudget("0.000468", DELTA) == ZcdpBudget(0.000468, DELTA)
    assert ZcdpBudget("0.3", DELTA).rho.fraction == Fraction(3, 10)
    with pytest.raises(CrowdveilError, match="delta must be between 0 and 1"):
        ZcdpBudget("0.3", math.nan)
    with pytest.raises(CrowdveilError, match=r"epsilon is .* 0\.0001 to 50"):
        _ = ZcdpBudget("1000", DELTA).epsilon
