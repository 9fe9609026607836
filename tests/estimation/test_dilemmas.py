"""How dilemmas vary, counted by hand and beside the study's generator.

A public design that somebody gives: its choices are never read, what cannot be one is refused, and it is used.
"""

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest

import crowdveil.ballots.ballots
from crowdveil.ballots.ballots import Ballots, census
from crowdveil.errors import CrowdveilError
from crowdveil.estimation.crowd_preference import crowd_preference
from crowdveil.estimation.design import AxisSample, public_design
from crowdveil.estimation.dilemmas import dilemma_variation, public_dilemmas
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.mechanisms import fisher_plan
from crowdveil.privacy.mechanisms.fisher_scoring import PooledScore, VoterScore, _moments
from crowdveil.privacy.mechanisms.fisher_sums import SQUARE_REACH, square_directions
from crowdveil.privacy.mechanisms.mechanism import MechanismSettings
from crowdveil.privacy.noise.experimental_noise import SilentNoise
from crowdveil.publish.release import release_for_experiments
from crowdveil.sources.simulated import simulated_batches
from crowdveil.study.bundled import load_study
from crowdveil.study.features import Factor
from scripted_noise import RecordingNoise

GAUSSIAN_SQUARE = 2.0
"""The variance of the difference of two standard normal values."""
STUDY = replace(
    load_study("synthetic-2"),
    named_factors=(Factor("sum", "Sum", ("less", "more"), {"x1": 1, "x2": 1}),),
)
BALLOTS = Ballots(
    STUDY,
    np.array([0, 1, 4]),
    np.array([[1.0, -1.0], [2.0, 0.0], [0.0, 0.0], [0.3, -0.1]]),
    np.array([1, -1, 1, 1], np.int8),
)


def test_counts_by_hand():
    found = dilemma_variation(BALLOTS)
    first, second = found.features
    assert (first.pairs, first.share, first.chosen_had_more) == (3, 3 / 4, 2 / 3)
    assert first.mean_square == pytest.approx((1 + 4 + 0.09) / 4)
    assert (second.pairs, second.chosen_had_more) == (2, 0)
    (total,) = found.factors
    # 1 - 1 = 0 is no difference; then 2, 0 and 0.2.
    assert (total.name, total.label, total.pairs, total.chosen_had_more) == ("sum", "Sum: more", 2, 1 / 2)
    assert total.mean_square == pytest.approx((4 + 0.04) / 4)


def test_the_generator_of_gaussian_pairs_has_unit_squares():
    """40,000 differences of variance 2 each: five standard errors of their mean square are 5 x 2 sqrt(2 / 40,000)."""
    found = dilemma_variation(BALLOTS)
    for feature in found.features:
        assert feature.drawn_share == 1
        assert feature.drawn_mean_square == pytest.approx(GAUSSIAN_SQUARE, abs=5 * GAUSSIAN_SQUARE * np.sqrt(2 / 4e4))
    assert found.factors[0].drawn_mean_square == pytest.approx(2 * GAUSSIAN_SQUARE, rel=5 * np.sqrt(2 / 4e4))


def test_the_two_factors_that_go_together_unlike_the_generators_are_found():
    """x1 and x2 are alike in three of four records and opposite in one; x3 never differs, and x4 is like neither."""
    dilemmas = np.array([[1, 2, 0, 1], [1, 2, 0, -1], [-1, -2, 0, 1], [1, -2, 0, 1], [0, 0, 0, 1]], np.float64)
    choices = np.array([1, -1, 1, -1, 1], np.int8)
    found = dilemma_variation(Ballots(load_study("synthetic-4"), np.array([0, 2, 5]), dilemmas, choices))
    pair = found.furthest_together
    assert pair.factors == ("feature 1", "feature 2")
    assert pair.correlation == pytest.approx(4 / np.sqrt(4 * 16))
    assert pair.drawn == pytest.approx(0, abs=5 / np.sqrt(4e4))  # five standard errors
    assert dilemma_variation(BALLOTS).furthest_together is None, "there is one factor"
    still = Ballots(load_study("synthetic-2"), np.array([0, 1]), np.array([[1.0, 0.0]]), np.array([1], np.int8))
    assert dilemma_variation(still).furthest_together is None, "only one varies"


def test_batches_do_not_matter(monkeypatch):
    whole = dilemma_variation(BALLOTS)
    monkeypatch.setattr(crowdveil.ballots.ballots, "VOTERS_PER_BATCH", 1)
    for one, other in zip(dilemma_variation(BALLOTS).features, whole.features, strict=True):
        assert one.mean_square == pytest.approx(other.mean_square, rel=1e-12)
        assert replace(one, mean_square=0) == replace(other, mean_square=0)


def test_a_crowd_that_the_study_drew_varies_like_its_generator():
    study = load_study("moral-machine")
    (crowd,) = simulated_batches(study, 1500, np.random.default_rng(2))
    found = dilemma_variation(crowd)
    for one in (*found.factors, *found.features):
        # 19,500 pairs, 13 of one voter together: six standard errors of a share are below 6 x .5 x sqrt(13 / 19,500).
        assert one.share == pytest.approx(one.drawn_share, abs=0.078)
        assert one.mean_square == pytest.approx(one.drawn_mean_square, rel=0.25)


def test_features_that_are_factors_have_one_label():
    ballots = replace(BALLOTS, study=load_study("synthetic-2"))
    found = dilemma_variation(ballots)
    assert [one.label for one in found.factors] == [one.label for one in found.features]


KIDNEY, MACHINE = load_study("kidney"), load_study("moral-machine")
OTHERS = "another data set"


def crowd(study, voters, seed):
    return next(simulated_batches(study, voters, np.random.default_rng(seed)))


def test_choices_are_not_read():
    ballots = crowd(KIDNEY, 20, 1)
    signs = np.random.default_rng(2).choice([-1.0, 1.0], ballots.records)
    turned = Ballots.from_differences(KIDNEY, ballots.offsets, ballots.differences * signs[:, None])
    one, two = (public_dilemmas(given, KIDNEY, OTHERS).differences for given in (ballots, turned))
    assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("generator", "give ballots whose dilemmas are public, or 'study'"),
        (crowd(MACHINE, 20, 1), "of study moral-machine, the ballots of kidney"),
        (crowd(KIDNEY, 2, 1), "has 80 dilemmas: give at least 100"),
        (
            Ballots.from_differences(KIDNEY, np.array([0, 200]), np.zeros((200, KIDNEY.dimension))),
            "no dilemma in which anything differs",
        ),
    ],
)
def test_what_is_no_design_is_refused(given, words):
    with pytest.raises(CrowdveilError, match=words):
        public_dilemmas(given, KIDNEY, OTHERS)


def test_the_protected_ballots_are_not_taken_for_public_ones():
    ballots = crowd(KIDNEY, 20, 1)
    with pytest.raises(CrowdveilError, match="the design is the ballots themselves"):
        public_dilemmas(ballots, KIDNEY, census(ballots).fingerprint)


@pytest.mark.parametrize("mechanism", [VoterScore(), PooledScore()], ids=lambda m: m.name)
def test_a_design_that_is_known_is_not_bought_and_not_in_doubt(mechanism):
    ballots, epsilon = crowd(KIDNEY, 1200, 3), Epsilon(1)
    sizes, doubts = [], []
    for given in (None, public_dilemmas("study", KIDNEY, OTHERS)):
        settings, noise = MechanismSettings(KIDNEY, 2.0, design=given), RecordingNoise()
        made = mechanism.release(mechanism.measure(ballots, settings, epsilon), settings, epsilon, noise)
        sizes.append(sum(columns for _, _, _, columns in noise.asked))
        doubts.append(made.unknown.doubt.sum())
    # Of 1,200 voters the squares along five axes, and of their 48,000 records those between any two axes, too; and the
    # square in the direction of the first estimate.
    assert sizes[0] - sizes[1] == (5 + 1 if mechanism.by_voter else 5 + 10 + 1)
    assert doubts[1] < doubts[0]


def test_rare_dilemmas_are_read_rightly_where_their_law_is_given():
    """Of dilemmas that differ along the first feature, three in four were not asked: the public design says so."""
    rng = np.random.default_rng(5)

    def thinned(voters, seed):
        whole = crowd(KIDNEY, voters, seed)
        kept = (np.abs(whole.differences[:, 0]) == 0) | (rng.random(whole.records) < 0.25)
        counts = np.add.reduceat(kept, whole.offsets[:-1])
        offsets = np.concatenate([[0], counts.cumsum()])
        return Ballots.from_differences(KIDNEY, offsets, whole.differences[kept]), whole

    asked, whole = thinned(3000, 6)
    truth = release_for_experiments(whole, "rlcp", epsilon=50, seed=1).parameter[0]
    known, guessed = (
        release_for_experiments(asked, "rlcp", epsilon="0.012", seed=1, design=design)
        for design in (thinned(300, 7)[0], None)
    )
    assert abs(known.parameter[0] - truth) < abs(guessed.parameter[0] - truth)
    assert "public dilemmas were given" in known.facts["dilemmas"]
    assert "of epsilon measured" in guessed.facts["dilemmas"]


def trade_offs(voters, seed):
    """Voters who are mostly asked dilemmas in which the side that has more of one feature has less of another."""
    whole = crowd(KIDNEY, voters, seed)
    along = whole.differences @ public_design(KIDNEY).basis
    kept = (along[:, 0] * along[:, 1] < 0) | (np.random.default_rng(seed).random(whole.records) < 0.2)
    offsets = np.concatenate([[0], np.add.reduceat(kept, whole.offsets[:-1]).cumsum()])
    return Ballots.from_differences(KIDNEY, offsets, whole.differences[kept])


@pytest.mark.parametrize("mechanism", [VoterScore(), PooledScore()], ids=lambda m: m.name)
def test_trade_offs_are_read_rightly_where_products_are_measured(mechanism, monkeypatch):
    """Without noise, against the fit to these choices themselves; and what squares alone would say."""
    ballots, settings, epsilon = trade_offs(1500, 8), MechanismSettings(KIDNEY, 2.0), Epsilon(10)
    basis = public_design(KIDNEY).basis
    exact = crowd_preference(ballots, weighting="voters" if mechanism.by_voter else "choices").preference
    truth = np.linalg.solve(basis.T @ basis, basis.T @ exact)
    off = []
    for noise in (fisher_plan._PRODUCTS_NOISE, 0.0):
        monkeypatch.setattr(fisher_plan, "_PRODUCTS_NOISE", noise)
        measured = mechanism.measure(ballots, settings, epsilon)
        unknown = mechanism.release(measured, settings, epsilon, SilentNoise()).unknown
        off.append(np.linalg.norm(unknown.mean - truth) / np.linalg.norm(truth))
    assert off[0] < 0.05
    assert off[1] > 2 * off[0]


@pytest.mark.parametrize("mechanism", [VoterScore(), PooledScore()], ids=lambda m: m.name)
def test_the_square_ahead_tells_how_long_the_step_has_to_be(mechanism, monkeypatch):
    """Where products are not measured, and what speaks for a side by the crowd's preference is mostly not asked."""
    whole = crowd(KIDNEY, 1500, 9)
    speaks = np.square(whole.differences @ crowd_preference(whole).preference)
    kept = (speaks < np.median(speaks)) | (np.random.default_rng(9).random(whole.records) < 0.1)
    offsets = np.concatenate([[0], np.add.reduceat(kept, whole.offsets[:-1]).cumsum()])
    ballots = Ballots.from_differences(KIDNEY, offsets, whole.differences[kept])
    exact = crowd_preference(ballots, weighting="voters" if mechanism.by_voter else "choices").preference
    settings, epsilon = MechanismSettings(KIDNEY, 2.0), Epsilon(10)
    monkeypatch.setattr(fisher_plan, "_PRODUCTS_NOISE", 0.0)
    planned, off = fisher_plan.FisherPlan.of, []
    for ahead in (True, False):
        without = partial(planned) if ahead else lambda *given, **named: replace(planned(*given, **named), ahead=False)
        monkeypatch.setattr(fisher_plan.FisherPlan, "of", without)
        measured = mechanism.measure(ballots, settings, epsilon)
        unknown = mechanism.release(measured, settings, epsilon, SilentNoise()).unknown
        off.append(1 - float(unknown.basis @ unknown.mean @ exact / (exact @ exact)))
    assert 0 < 3 * off[0] < off[1]


def test_noisy_squares_between_axes_are_shrunk_toward_none():
    """Noise of the size that was expected, and no products: of squares of 36 draws, a spread of at most twice that."""
    sample, k, deviation = AxisSample(np.random.default_rng(1).standard_normal((40_000, 9))), 9, 0.05
    public = np.minimum(np.square(sample.along @ square_directions(k, True)) / SQUARE_REACH, 1.0).mean(axis=0)
    told = public + deviation * public * np.random.default_rng(2).standard_normal(len(public))
    found = _moments(sample, told, float((deviation * public.mean()) ** 2), True)
    between = found.moments[np.triu_indices(k, 1)]
    unshrunk = (told / public)[k:] - np.add(*((told / public)[side] for side in np.triu_indices(k, 1))) / 2
    assert np.linalg.norm(between) < 0.5 * np.linalg.norm(unshrunk)
    assert found.products < deviation


def test_squares_without_noise_tell_the_products():
    """Of corners of a cube, no square of which is clipped, some asked more often than others."""
    corners = np.array(list(product([-1.0, 1.0], repeat=3)))
    chances = np.array([3, 1, 2, 2, 2, 2, 1, 3]) / 16
    told = chances @ np.square(corners @ square_directions(3, True)) / SQUARE_REACH
    found = _moments(AxisSample(corners), told, 1e-12, True)
    assert found.moments == pytest.approx(corners.T @ (chances[:, None] * corners), abs=1e-6)
    assert (found.squares < 1e-3).all()
    assert found.products < 1e-3


def test_mechanisms_that_know_the_dilemmas_take_no_design():
    with pytest.raises(CrowdveilError, match="design"):
        release_for_experiments(crowd(KIDNEY, 20, 1), "alcp", epsilon=1, seed=1, design="study")
