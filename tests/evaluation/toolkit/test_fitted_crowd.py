"""What squared errors are counted from, and that released crowds are the mechanisms' own."""

import numpy as np
import pytest

from crowdveil.estimation.design import public_design
from crowdveil.estimation.flipped_choices import FlippedChoices, fit_flipped_choices
from crowdveil.estimation.society import society
from crowdveil.evaluation.toolkit.crowds import fit_crowd
from crowdveil.privacy.epsilon import Epsilon, Epsilons
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.mechanisms.registry import PURE
from crowdveil.privacy.noise.float_noise import FloatNoiseForExperiments
from crowdveil.publish import experiment
from crowdveil.request import Request
from crowdveil.sources.simulated import synthetic_crowd

BALLOTS = synthetic_crowd(30, 12, 3, np.random.default_rng(1)).ballots
CROWD = fit_crowd(BALLOTS)


@pytest.mark.parametrize("name", PURE)
def test_a_release_is_the_one_that_the_library_makes(name):
    """The same noise gives the same parameter as the public way to an experiment."""
    paradigm = PARADIGMS[PURE[name].paradigms[0]]
    made = experiment(BALLOTS, Request(paradigm, Epsilon.of_millionths(2_000_000), mechanism=name), seed=5)
    released = CROWD.release(name, Epsilons.same(2, 30), 1, FloatNoiseForExperiments(5))
    # The library adds reports up in batches: an optimiser's result moves by its tolerance, other noise by far more.
    assert released == pytest.approx(made.parameter[None], rel=1e-4, abs=1e-4)


def test_several_releases_carry_fresh_noise():
    for name in ("algorithm-1", "score"):
        released = CROWD.release(name, Epsilons.same(1, 30), 3, FloatNoiseForExperiments(5))
        assert released.shape == (3, 3)
        assert len(np.unique(released, axis=0)) == 3


@pytest.mark.parametrize(
    "name", ["algorithm-1", "algorithm-2", "algorithm-3", "algorithm-3-choices", "subset-selection"]
)
def test_mechanisms_of_the_mean_are_measured_from_the_society(name):
    assert CROWD.without_noise(name) == pytest.approx(society(BALLOTS, 2.0).parameter, abs=1e-12)


@pytest.mark.parametrize("name", PURE)
def test_a_mechanism_comes_near_what_its_error_is_counted_from(name):
    """With next to no noise nearly nothing is left of the error, but for what algorithm 3 approximates."""
    many = fit_crowd(synthetic_crowd(400, 12, 3, np.random.default_rng(2)).ballots)
    released = many.release(name, Epsilons.same(50, 400), 1, FloatNoiseForExperiments(4))[0]
    assert np.linalg.norm(released - many.without_noise(name)) < (0.5 if "algorithm-3" in name else 0.15)


@pytest.mark.parametrize("name", ["randomised-response", "one-choice"])
def test_answer_mechanisms_are_measured_from_one_fit_to_all_true_answers(name):
    records, basis = BALLOTS.records, public_design(BALLOTS.study).basis
    exact = FlippedChoices(BALLOTS.differences @ basis, BALLOTS.offsets, np.zeros(records), np.full(records, 1 / 30))
    assert CROWD.without_noise(name) == pytest.approx(basis @ fit_flipped_choices([exact]).mean, abs=1e-4)
    assert CROWD.pooled.tolist() == CROWD.without_noise(name).tolist()


@pytest.mark.parametrize("name", ["voter-score", "pooled-score", "pooled-choices", "score"])
def test_score_mechanisms_are_measured_from_where_their_noise_is_centred(name):
    """Averaged over many draws at a large epsilon, noise is gone from the mean."""
    released = CROWD.release(name, Epsilons.same(40, 30), 40, FloatNoiseForExperiments(2))
    spread = released.std(axis=0) / np.sqrt(40)
    assert np.abs(released.mean(axis=0) - CROWD.without_noise(name)) == pytest.approx(0, abs=0.02 + 5 * spread.max())
    assert CROWD.without_noise(name).tolist() == CROWD.without_noise(name).tolist()


def test_equal_votes_are_equal():
    """With personal epsilons the paper's mean is as noisy as its noisiest reports."""
    epsilons = Epsilons.of(np.where(np.arange(30) < 15, 0.01, 5))
    errors = {
        equal: np.square(
            CROWD.release("algorithm-2", epsilons, 50, FloatNoiseForExperiments(3), equal) - CROWD.society
        ).mean()
        for equal in (True, False)
    }
    # Laplace variances 2 (2B / (N eps))^2: all N = 30 with weight 1/30, half of them at eps = 0.01.
    assert errors[True] == pytest.approx(15 * 2 * (4 / 30 / 0.01) ** 2, rel=0.35)
    assert errors[False] < errors[True] / 1000
