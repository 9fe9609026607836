"""Promises with a delta: what the attack may prove is known in closed form, and mistakes in them are caught."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

from crowdveil.audit.approximate import Point, try_curve
from crowdveil.audit.bounds import least_epsilon
from crowdveil.audit.gaussian import GaussianTrial
from crowdveil.audit.noise_laws import gaussian_fit
from crowdveil.audit.shuffled import ShuffledTrial
from crowdveil.audit.subjects import Central
from crowdveil.audit.targets import curves
from crowdveil.audit.trial import Flaw, Verdict
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import paradigm
from crowdveil.privacy.mechanisms.mechanism import Settings
from crowdveil.privacy.mechanisms.registry import CENTRAL
from crowdveil.privacy.zcdp import OpenDPGaussian
from crowdveil.study.bundled import synthetic_study

ONE = Epsilon("1")
DRAWS = 20_000


def small(features):
    return Settings(synthetic_study(features, 4), 2.0)


def gaussian(rho=Fraction(1, 2)):
    crowd = Central(CENTRAL["algorithm-1"], paradigm("vlcp"), small(2), ONE)
    return GaussianTrial(crowd, rho, OpenDPGaussian(), (2, 80))


FLIPPED = ShuffledTrial(small(1), ONE, 10, others=(0, -1))


def gaussian_delta(mu, epsilon):
    """The exact delta of two unit Gaussians at a distance of mu (Balle and Wang 2018, Theorem 5)."""
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def test_a_delta_is_taken_off_before_the_quotient():
    hits, others, draws = np.array([60_000]), np.array([10_000]), 100_000
    assert least_epsilon(hits, others, draws, 1e-3, 0.1)[0] == pytest.approx(math.log(0.5 / 0.1), abs=0.05)
    assert least_epsilon(hits, others, draws, 1e-3, 0.1)[0] < math.log(0.5 / 0.1)
    assert least_epsilon(hits, others, draws, 1e-3, 0.7)[0] == 0


def test_the_gaussian_mean_is_asked_for_the_theorems_noise_on_the_worst_neighbours():
    subject = gaussian()
    assert subject.reach == pytest.approx(1, abs=1e-6)
    assert subject.reach <= 1
    assert subject.same_release()
    # rho = 1/2 and sensitivity 2^31: sigma^2 = (2^31)^2 / (2 rho).
    rows = subject.sample(True, 4000)
    assert rows.std(axis=0) == pytest.approx([2**31] * 2, rel=0.08)


def test_what_is_proved_of_the_gaussian_mean_is_below_its_exact_curve():
    """With rho = 1/2 the sides are one standard deviation apart; the exact epsilon lies below the promised one."""
    made = try_curve(gaussian(), DRAWS)
    assert made.verdict is Verdict.HOLDS
    assert gaussian_delta(1.0, made.evidence.judged) > made.delta
    assert gaussian_delta(1.0, made.claimed) < made.delta
    assert made.evidence.shown > 0.5 * made.claimed


def test_the_law_of_gaussian_noise():
    drawn = OpenDPGaussian().gaussian(2**31, Fraction(1, 2), 5000)
    assert gaussian_fit(drawn, 2.0**31) > 1e-9
    assert gaussian_fit(drawn, 2.0**31 * 1.3) < 1e-9
    assert gaussian_fit(np.rint(np.random.default_rng(1).laplace(0, 2**30.5, 5000)).astype(np.int64), 2.0**31) < 1e-9


def flipped_law(first):
    """How often one of ten randomised answers is +: the first voter's true answer is +1 or -1, all others' is -1."""
    keep = math.e / (1 + math.e)
    others, yes = binom.pmf(np.arange(10), 9, 1 - keep), keep if first > 0 else 1 - keep
    return yes * np.append(0, others) + (1 - yes) * np.append(others, 0)


def test_shuffled_randomised_response_has_its_closed_form():
    for left, first in ((True, 1), (False, -1)):
        rows = FLIPPED.sample(left, DRAWS)
        assert (rows.sum(axis=1) == 10).all()
        counts = np.bincount(rows[:, 2], minlength=11)
        expected = flipped_law(first) * DRAWS
        # Six standard deviations for each of eleven cells.
        assert (np.abs(counts - expected) < 6 * np.sqrt(expected) + 6).all()


def test_the_score_is_the_likelihood_ratio_of_shuffled_crowds():
    (score,) = FLIPPED.scores()
    said = np.arange(11)
    rows = np.stack([10 - said, np.zeros(11), said], axis=1)
    assert score(rows) == pytest.approx(np.log(flipped_law(1) / flipped_law(-1)))


@pytest.mark.parametrize("point", range(3))
def test_the_computed_bound_covers_the_exact_curve_of_randomised_response(point):
    promised = FLIPPED.promised[point]
    left, right = flipped_law(1), flipped_law(-1)
    for p, q in ((left, right), (right, left)):
        assert np.maximum(p - math.exp(promised.epsilon) * q, 0).sum() < promised.delta


def test_what_is_proved_of_shuffled_reports_is_below_the_exact_curve():
    made = try_curve(FLIPPED, DRAWS)
    assert made.verdict is Verdict.HOLDS
    left, right = flipped_law(1), flipped_law(-1)
    exact = max(np.maximum(p - math.exp(made.evidence.judged) * q, 0).sum() for p, q in ((left, right), (right, left)))
    assert exact > made.delta
    assert made.evidence.shown > 0.3 * made.claimed


@pytest.mark.parametrize("target", [t for t in curves(ONE, (2, 80)) if t.bug], ids=lambda target: target.bug)
def test_mistakes_are_caught_by_the_attack(target):
    made = try_curve(target.subject, DRAWS, target.bug)
    assert made.verdict is Verdict.CAUGHT
    assert Flaw.BOUND in made.flaws


def test_a_broken_point_is_the_one_that_is_shown():
    class Greedy(ShuffledTrial):
        """Claims too much at one delta, and hardly anything at the other."""

        promised = (Point(0.2, 0.01), Point(0.9, 0.9))

    made = try_curve(Greedy(small(1), ONE, 10, others=(0, -1)), DRAWS)
    assert made.verdict is Verdict.VIOLATED
    assert (made.claimed, made.delta) == (0.2, 0.01)
    assert made.as_dict()["delta"] == 0.01


def test_a_release_that_depends_on_more_than_the_noisy_sum_is_noticed(monkeypatch):
    from crowdveil.audit import gaussian as module

    class CountsRecords(type(module.GAUSSIAN_MEAN)):
        def release(self, measurement, settings, rho, noise):
            made = super().release(measurement, settings, rho, noise)
            return replace(made, parameter=made.parameter / int(np.abs(measurement.total).sum()))

    assert gaussian().same_release()
    monkeypatch.setattr(module, "GAUSSIAN_MEAN", CountsRecords())
    assert not gaussian().same_release()
