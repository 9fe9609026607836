"""Promises with a delta: what the attack may prove is known in closed form, and mistakes in them are caught."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from laws_of_reports import flipped_law

from crowdveil.audit.answer_promises import AboutYouPromise, SeveralPromise
from crowdveil.audit.laws import gaussian_fit
from crowdveil.audit.mutants import WrongOdds
from crowdveil.audit.neighbours import Effort, worst_neighbours
from crowdveil.audit.promises import GaussianPromise, ShuffledPromise
from crowdveil.audit.setups import CentralSetup
from crowdveil.audit.trial import PrivacyPoint, TrialVerdict, put_on_trial
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import paradigm
from crowdveil.privacy.mechanisms.about_you import keep_odds
from crowdveil.privacy.mechanisms.algorithm1 import GaussianMean
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.mechanisms.registry import CENTRAL
from crowdveil.privacy.noise.coins import Odds
from crowdveil.privacy.noise.exact_noise import BulkNoise, OpenDPGaussian
from crowdveil.study.bundled import synthetic_study

ONE = Epsilon("1")
DRAWS = 20_000
EFFORT = Effort(restarts=2, rounds=80)


def small(features):
    return MechanismSettings(synthetic_study(features, 4), 2.0)


def gaussian(rho=Fraction(1, 2)):
    crowd = CentralSetup(CENTRAL["algorithm-1"], paradigm("vlcp"), small(2), ONE)
    return GaussianPromise(crowd, worst_neighbours(crowd, EFFORT), rho, OpenDPGaussian())


FLIPPED = ShuffledPromise(small(1), ONE, 10, others=(0, -1))


def test_the_gaussian_mean_is_asked_for_the_theorems_noise_on_the_worst_neighbours():
    subject = gaussian()
    assert subject.reach == pytest.approx(1, abs=1e-6)
    assert subject.reach <= 1
    assert subject.same_release()
    # rho = 1/2 and sensitivity 2^31: sigma^2 = (2^31)^2 / (2 rho).
    # The deviation of 4,000 is known to 1 / sqrt(8,000) of it: seven times that.
    rows = subject.sample(True, 4000)
    assert rows.std(axis=0) == pytest.approx([2**31] * 2, rel=0.08)


def test_the_law_of_gaussian_noise():
    drawn = OpenDPGaussian().gaussian(2**31, Fraction(1, 2), 5000)
    assert gaussian_fit(drawn, 2.0**31) > 1e-9
    assert gaussian_fit(drawn, 2.0**31 * 1.3) < 1e-9
    assert gaussian_fit(np.rint(np.random.default_rng(1).laplace(0, 2**30.5, 5000)).astype(np.int64), 2.0**31) < 1e-9


def test_shuffled_randomised_response_has_its_closed_form():
    for left, first in ((True, 1), (False, -1)):
        rows = FLIPPED.sample(left, DRAWS)
        assert (rows.sum(axis=1) == 10).all()
        counts = np.bincount(rows[:, 2], minlength=11)
        expected = flipped_law(first) * DRAWS
        # Six standard deviations for each of eleven cells.
        assert (np.abs(counts - expected) < 6 * np.sqrt(expected) + 6).all()


def test_the_score_is_the_likelihood_ratio_of_shuffled_crowds():
    (score,) = FLIPPED.scores(((), ()))
    said = np.arange(11)
    rows = np.stack([10 - said, np.zeros(11), said], axis=1)
    assert score(rows) == pytest.approx(np.log(flipped_law(1) / flipped_law(-1)))


@pytest.mark.parametrize("point", range(3))
def test_the_computed_bound_covers_the_exact_curve_of_randomised_response(point):
    promised = FLIPPED.promised[point]
    left, right = flipped_law(1), flipped_law(-1)
    for p, q in ((left, right), (right, left)):
        assert np.maximum(p - math.exp(promised.epsilon) * q, 0).sum() < promised.delta


def test_a_broken_point_is_the_one_that_is_shown():
    class Greedy(ShuffledPromise):
        """Claims too much at one delta, and hardly anything at the other."""

        promised = (PrivacyPoint(0.2, 0.01), PrivacyPoint(0.9, 0.9))

    made = put_on_trial(Greedy(small(1), ONE, 10, others=(0, -1)), DRAWS)
    assert made.verdict is TrialVerdict.VIOLATED
    assert made.claimed == PrivacyPoint(0.2, 0.01)
    assert made.as_dict()["delta"] == 0.01


def test_a_release_that_depends_on_more_than_the_noisy_sum_is_noticed():
    class CountsRecords(GaussianMean):
        def release(self, measurement, settings, loss, noise):
            made = super().release(measurement, settings, loss, noise)
            return replace(made, parameter=made.parameter / int(np.abs(measurement.total).sum()))

    assert gaussian().same_release()
    assert not replace(gaussian(), mechanism=CountsRecords()).same_release()


@pytest.mark.parametrize("options", [2, 9])
def test_what_voters_say_of_themselves_is_attacked_up_to_its_epsilon(options):
    """The options are reported e^epsilon : 1; the odds of fewer options give the true one away."""
    honest = put_on_trial(AboutYouPromise(ONE, options, BulkNoise()), DRAWS)
    assert honest.verdict in (TrialVerdict.TIGHT, TrialVerdict.HOLDS)
    assert honest.evidence.judged <= 1
    careless = WrongOdds(keep_odds(options), Odds(1, 0, 1, 0))
    assert put_on_trial(AboutYouPromise(ONE, options, careless), DRAWS, "always true").evidence.shown > 6


@pytest.mark.parametrize("options", [2, 9])
def test_what_voters_tick_is_attacked_up_to_its_epsilon(options):
    """A tick is told e^epsilon : 1; an option that is drawn among those that were ticked gives them away."""
    honest = put_on_trial(SeveralPromise(ONE, options, BulkNoise()), DRAWS)
    assert honest.verdict in (TrialVerdict.TIGHT, TrialVerdict.HOLDS)
    assert honest.evidence.judged <= 1
    careless = SeveralPromise(ONE, options, BulkNoise(), careless=True)
    assert put_on_trial(careless, DRAWS, "ticked only").evidence.shown > 6
